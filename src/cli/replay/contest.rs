//! Who is replayed: the simulator's policies by name, and a model.

use std::path::Path;

use anyhow::Result;

use crate::cli::sim::{chosen, distinct};
use crate::policy::network::{Model, Native, Precision};
use crate::policy::ShieldMode;
use crate::rtapp::live::{own_means, FIFO_BY_RATE, KERNELS_OWN};
use crate::rtapp::outcome::{Means, Needs};
use crate::sim::compare::Contestant;
use crate::sim::policies::{Decided, Policy};
use crate::sim::task::TaskSet;
use crate::train::env::policy;

/// What a model's policy is called.
const TEMPONET: &str = "temponet";

type Make = Box<dyn Fn() -> Box<dyn Policy> + Sync>;

/// The schedulers in the order asked for.
pub struct Contest {
    entrants: Vec<(String, Make)>,
    /// What the model says it is.
    pub model: Option<String>,
}

impl Contest {
    /// A model given but not asked for by name comes last.
    pub fn new(names: &[String], path: Option<&Path>, set: &TaskSet) -> Result<Contest> {
        let named = names.iter().any(|name| name == TEMPONET);
        let model = match path.is_some() || named {
            true => Some(Model::open(path)?),
            false => None,
        };
        let mut entrants: Vec<(String, Make)> = Vec::new();
        for name in distinct(names) {
            let make = if name == TEMPONET {
                model.as_ref().map(shielded)
            } else {
                let entry = chosen(std::slice::from_ref(name), set)?[0];
                Some(Box::new(entry.make) as Make)
            };
            entrants.extend(make.map(|make| (name.clone(), make)));
        }
        if !named {
            entrants.extend(
                model
                    .as_ref()
                    .map(|model| (TEMPONET.to_owned(), shielded(model))),
            );
        }
        Ok(Contest {
            entrants,
            model: model.map(|model| model.provenance().name.clone()),
        })
    }

    pub fn contestants(&self) -> Vec<Contestant<'_>> {
        self.entrants
            .iter()
            .map(|(name, make)| Contestant {
                name: name.clone(),
                make,
            })
            .collect()
    }
}

/// What one would load for a simulated policy. Only those that behave alike have one.
pub fn means(name: &str) -> Means {
    match name {
        "edf" | "plain-edf" | TEMPONET => own_means(name),
        "eevdf" => Means::new(Needs::Kernel, KERNELS_OWN),
        "rm" | "dm" => Means::new(Needs::Kernel, FIFO_BY_RATE),
        "fcfs" => Means::new(Needs::Kernel, "SCHED_FIFO with one priority for all"),
        _ => Means::new(Needs::Nowhere, "simulated"),
    }
}

/// As it runs beside the kernel: under the shield, which knows that late jobs go on.
fn shielded(model: &Model) -> Make {
    let native = Native::new(model.weights(), Precision::Float);
    let config = policy(model.tokenizer(), ShieldMode::On);
    Box::new(move || Box::new(Decided::for_machine(config.clone(), native.clone())))
}
