//! A scheduler by its name, on a kernel and in the simulator.

use anyhow::{bail, Result};

use crate::rtapp::live::{Entrant, Kind};
use crate::sim::policies::{self, Entry};

#[derive(Clone)]
pub struct Scheduler {
    pub name: String,
    /// Nothing for a policy that only the simulator has.
    pub entrant: Option<Entrant>,
    simulated: Result<Simulated, String>,
}

/// What behaves alike in the simulator.
#[derive(Clone, Copy)]
pub struct Simulated {
    pub entry: &'static Entry,
    /// False: it is told of no worst case.
    pub is_told: bool,
}

impl Scheduler {
    pub fn parse(name: &str) -> Result<Scheduler> {
        let name = name.trim();
        let entrant = match Entrant::parse(name) {
            Ok(entrant) => Some(entrant),
            Err(why) if policies::find(name).is_none() => bail!(why),
            Err(_) => None,
        };
        Ok(Scheduler {
            name: name.to_owned(),
            simulated: simulated(name, entrant.as_ref()),
            entrant,
        })
    }

    /// The reason where there is none.
    pub fn simulated(&self) -> Result<Simulated, String> {
        self.simulated.clone()
    }

    /// Its figures depend on how this program was built.
    pub fn is_own(&self) -> bool {
        let kind = self.entrant.as_ref().map(|entrant| &entrant.kind);
        matches!(kind, Some(Kind::Own { .. }))
    }
}

fn simulated(name: &str, entrant: Option<&Entrant>) -> Result<Simulated, String> {
    let find = |policy: &str, is_told| match policies::find(policy) {
        Some(entry) => Ok(Simulated { entry, is_told }),
        None => Err(format!("the simulator has no policy {policy}")),
    };
    let Some(entrant) = entrant else {
        return find(name, true);
    };
    if !entrant.flags.is_empty() {
        return Err("the simulator knows no flags".into());
    }
    match &entrant.kind {
        Kind::Eevdf => find("eevdf", true),
        Kind::FifoRm => find("rm", true),
        Kind::Own { policy, hints } if policy == "distilled" => find("distilled-shield", *hints),
        Kind::Own { policy, hints } => find(policy, *hints),
        Kind::AsWritten | Kind::Deadline | Kind::Peer(_) => {
            Err(format!("the simulator has no model of {name}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_means_the_same_on_a_kernel_and_in_the_simulator() {
        let policy = |name: &str| {
            let simulated = Scheduler::parse(name).unwrap().simulated();
            simulated.map(|simulated| (simulated.entry.name, simulated.is_told))
        };
        assert_eq!(policy("eevdf"), Ok(("eevdf", true)));
        assert_eq!(policy("fifo-rm"), Ok(("rm", true)));
        assert_eq!(policy("edf-nohints"), Ok(("edf", false)));
        assert_eq!(policy("srpt"), Ok(("srpt", true)));
        assert!(policy("scx_bpfland").is_err());
        assert!(policy("edf --slow-inference 3").is_err());
        assert!(Scheduler::parse("srpt").unwrap().entrant.is_none());
        let wrong = Scheduler::parse("temponett").err().unwrap().to_string();
        assert!(wrong.contains("temponet"), "{wrong}");
    }
}
