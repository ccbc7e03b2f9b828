//! Whom a live run can be scheduled by.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{bail, Result};

use crate::rtapp::outcome::{Means, Needs};
use crate::spelling::did_you_mean;

/// Policies of our own scheduler, as `--policy` names them.
const OWN: [&str; 4] = ["edf", "plain-edf", "temponet", "distilled"];
/// What the kernel schedules itself.
const KERNEL_S: [&str; 4] = ["as-is", "eevdf", "fifo-rm", "deadline"];
/// Our own without declared deadlines.
const NO_HINTS: &str = "-nohints";

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The kernel's own, with all threads as the file has them.
    AsWritten,
    /// The kernel's own, with all threads in its fair class.
    Eevdf,
    /// SCHED_FIFO, the shorter the period the higher the priority.
    FifoRm,
    /// SCHED_DEADLINE with what the threads declare.
    Deadline,
    /// This program.
    Own { policy: String, hints: bool },
    /// Another sched_ext scheduler that is installed.
    Peer(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entrant {
    /// As it was asked for, flags included.
    pub name: String,
    pub kind: Kind,
    /// What its program is given beside what it always gets.
    pub flags: Vec<String>,
}

impl Entrant {
    /// A name, and for a program its flags: `temponet --slow-inference 10`.
    pub fn parse(text: &str) -> Result<Entrant> {
        let mut words = text.split_whitespace();
        let name = words.next().unwrap_or_default();
        let flags: Vec<String> = words.map(str::to_owned).collect();
        let kind = Entrant::kind_of(name)?;
        if !flags.is_empty() && !matches!(kind, Kind::Own { .. } | Kind::Peer(_)) {
            bail!("{name} is the kernel's own and takes no flags");
        }
        Ok(Entrant {
            name: text.into(),
            kind,
            flags,
        })
    }

    fn kind_of(name: &str) -> Result<Kind> {
        let own = name.strip_suffix(NO_HINTS).unwrap_or(name);
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        Ok(match name {
            "as-is" => Kind::AsWritten,
            "eevdf" => Kind::Eevdf,
            "fifo-rm" => Kind::FifoRm,
            "deadline" => Kind::Deadline,
            _ if OWN.contains(&own) => Kind::Own {
                policy: own.into(),
                hints: own == name,
            },
            "scx_temponet" => bail!("scx_temponet goes by the name of its policy: edf, temponet"),
            peer if peer.starts_with("scx_") && peer.chars().all(plain) => Kind::Peer(peer.into()),
            _ => bail!(
                "there is no scheduler {name:?} to run against{}; there are as-is, eevdf, fifo-rm, \
                 deadline, edf, plain-edf, temponet and distilled (also with -nohints), and every installed \
                 scx_NAME",
                did_you_mean(name, &[&KERNEL_S[..], &OWN[..]].concat())
            ),
        })
    }

    /// What it takes to run under it outside of a comparison.
    pub fn means(&self) -> Means {
        let kernel = |how: &str| Means::new(Needs::Kernel, how);
        match &self.kind {
            Kind::AsWritten | Kind::Eevdf => kernel(KERNELS_OWN),
            Kind::FifoRm => kernel(FIFO_BY_RATE),
            Kind::Deadline => kernel("SCHED_DEADLINE"),
            Kind::Own { policy, hints } => Means {
                declares: *hints,
                ..own_means(policy)
            },
            Kind::Peer(name) => Means::new(Needs::Scheduler, format!("`{name}`")),
        }
    }

    /// Declared deadlines are for our own scheduler; nobody else reads them.
    pub fn wants_hints(&self) -> bool {
        matches!(self.kind, Kind::Own { hints: true, .. })
    }

    /// Whether a network decides.
    pub fn wants_model(&self) -> bool {
        matches!(&self.kind, Kind::Own { policy, .. } if uses_network(policy))
    }

    /// How its program is started; nothing for the kernel's own.
    pub fn command(&self, density: f64, model: Option<&Path>) -> Result<Option<Vec<OsString>>> {
        match &self.kind {
            Kind::Own { policy, .. } => {
                let program = std::env::current_exe()?;
                // Workloads that ask for more than there is are the point of many runs.
                let most = format!("{:.2}", (density * 1.05).max(0.95));
                let mut words: Vec<OsString> = vec![
                    program.into(),
                    "--policy".into(),
                    policy.into(),
                    "--hint-util-max".into(),
                    most.into(),
                ];
                if let Some(model) = model.filter(|_| self.wants_model()) {
                    words.extend(["--model".into(), model.into()]);
                }
                words.extend(self.flags.iter().map(OsString::from));
                Ok(Some(words))
            }
            Kind::Peer(name) => match installed(name) {
                Some(path) => {
                    let flags = self.flags.iter().map(OsString::from);
                    Ok(Some(std::iter::once(path.into()).chain(flags).collect()))
                }
                None => bail!("{name} is not installed: it is in no folder of PATH"),
            },
            _ => Ok(None),
        }
    }

    /// Is this what it called itself when it was loaded?
    pub fn goes_by(&self, ops: &str) -> bool {
        let is = |name: &str| ops.starts_with(name);
        match &self.kind {
            Kind::Own { .. } => is("temponet"),
            Kind::Peer(name) => is(name.trim_start_matches("scx_")) || is(name),
            _ => false,
        }
    }
}

/// What everybody has.
pub const KERNELS_OWN: &str = "the kernel's own scheduler";
/// What the kernel has for rate-monotonic order.
pub const FIFO_BY_RATE: &str = "SCHED_FIFO with the higher priority for the shorter period";

/// This program with that policy.
pub fn own_means(policy: &str) -> Means {
    let needs = match uses_network(policy) {
        true => Needs::Network,
        false => Needs::Scheduler,
    };
    Means::new(needs, format!("`scx_temponet --policy {policy}`"))
}

fn uses_network(policy: &str) -> bool {
    !policy.ends_with("edf")
}

/// Where a program is that PATH leads to.
pub fn installed(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|program| program.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_who_schedules_and_whether_deadlines_are_declared() {
        let kind = |name: &str| Entrant::parse(name).unwrap().kind;
        let own = |policy: &str, hints| Kind::Own {
            policy: policy.into(),
            hints,
        };
        assert_eq!(kind("edf"), own("edf", true));
        assert_eq!(kind("temponet-nohints"), own("temponet", false));
        assert_eq!(kind("scx_bpfland"), Kind::Peer("scx_bpfland".into()));
        for wrong in ["eevdf-nohints", "scx_temponet", "scx_/bin/sh", "", "rm -rf"] {
            assert!(Entrant::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn flags_reach_programs_and_the_kernel_takes_none() {
        let slow = Entrant::parse("edf --slow-inference 10").unwrap();
        let words = slow.command(0.5, None).unwrap().unwrap();
        assert_eq!(words[words.len() - 2..], ["--slow-inference", "10"]);
        assert!(Entrant::parse("eevdf --fast").is_err());
    }

    #[test]
    fn a_scheduler_is_known_by_what_it_calls_itself() {
        let bpfland = Entrant::parse("scx_bpfland").unwrap();
        assert!(bpfland.goes_by("bpfland_1.1.4_x86_64"));
        assert!(!bpfland.goes_by("rustland_1.1.4"));
        assert!(Entrant::parse("edf").unwrap().goes_by("temponet_0.1"));
        assert!(!Entrant::parse("eevdf").unwrap().goes_by("temponet"));
    }
}
