//! How kind the simulated machine is. The default is the textbook; every field
//! away from it makes the machine more like a kernel.

use serde::{Deserialize, Serialize};

use crate::sim::task::Semantics;
use crate::sim::time::Ns;

/// What a policy may know of the work a job has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Knowledge {
    /// The truth, as the paper assumes.
    Known,
    /// The worst case less what has run.
    Wcet,
    /// The running mean of the task's past jobs less what has run; the worst
    /// case until there is a past.
    History,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Options {
    pub semantics: Semantics,
    pub knowledge: Knowledge,
    /// Running jobs are only preempted at multiples of this; 0: at any event.
    /// A core that falls idle is refilled at once either way.
    pub quantum_ns: Ns,
    /// A decision takes effect this long after the state it was made for; freed
    /// cores take the earliest deadline meanwhile, as the kernel half does.
    pub decision_latency_ns: Ns,
    /// A release becomes visible to the policy only this much later.
    pub staleness_ns: Ns,
    /// A core loses this much whenever it turns to another job.
    pub context_switch_ns: Ns,
    /// A job loses this much (the paper's δ) whenever it changes cores.
    pub migration_ns: Ns,
}

impl Options {
    pub fn new(semantics: Semantics) -> Self {
        Self {
            semantics,
            knowledge: Knowledge::Known,
            quantum_ns: 0,
            decision_latency_ns: 0,
            staleness_ns: 0,
            context_switch_ns: 0,
            migration_ns: 0,
        }
    }

    /// True when decisions take effect at once and at any event.
    pub fn decides_instantly(&self) -> bool {
        self.quantum_ns == 0 && self.decision_latency_ns == 0 && self.staleness_ns == 0
    }
}

/// What to keep beside the totals; each costs memory per job or per dispatch.
#[derive(Clone, Copy, Debug, Default)]
pub struct Record {
    /// The fate of every job.
    pub jobs: bool,
    /// Who ran where and when.
    pub segments: bool,
    /// Completions, misses and migrations as they happen, for rewards. Deadlines
    /// become events even where jobs go on.
    pub events: bool,
}
