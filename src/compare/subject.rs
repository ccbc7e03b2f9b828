//! What schedulers are compared on: a task set with a name, wherever it comes from.

use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::rtapp::convert::{convert, Converted, Wishes};
use crate::rtapp::of_set::of_set;
use crate::rtapp::Workload;
use crate::sim::task::TaskSet;
use crate::sim::time::Ns;
use crate::sim::workload::tournament::Knobs;

#[derive(Clone, Debug)]
pub struct Subject {
    pub case: String,
    /// Of a generator.
    pub seed: Option<u64>,
    pub knobs: Option<Knobs>,
    pub work: Work,
    /// The set that the simulator runs.
    pub set: TaskSet,
}

impl Subject {
    /// For a row of a table.
    pub fn label(&self) -> String {
        match self.seed {
            Some(seed) => format!("{} {seed}", self.case),
            None => self.case.clone(),
        }
    }

    /// What it is like, in a line.
    pub fn describe(&self) -> String {
        match &self.knobs {
            Some(knobs) => knobs.describe(),
            None => format!(
                "{} tasks on {} CPUs, load {:.2}",
                self.set.tasks.len(),
                self.set.cores,
                self.set.load_at(0)
            ),
        }
    }
}

/// What a kernel is given: it makes the workload again from this.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Work {
    Set(TaskSet),
    RtApp {
        text: String,
        horizon_ns: Ns,
        cores: usize,
    },
}

impl Work {
    /// `slowdown`: see [`of_set`]; a workload that somebody wrote runs as it is.
    pub fn to_workload(&self, slowdown: u64) -> Result<(Workload, Converted)> {
        match self {
            Work::Set(set) => {
                let rendered = of_set(set, slowdown)?;
                Ok((rendered.workload, rendered.converted))
            }
            Work::RtApp {
                text,
                horizon_ns,
                cores,
            } => {
                let workload = Workload::parse(text.as_bytes())?;
                let wishes = Wishes {
                    horizon: Some(*horizon_ns),
                    cores: Some(*cores),
                };
                let converted = convert(&workload, &wishes)?;
                Ok((workload, converted))
            }
        }
    }
}
