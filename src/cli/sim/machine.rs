//! How kind the simulated machine is, on the command line.

use clap::{Args, ValueEnum};

use crate::cli::time::parse_time;
use crate::sim::engine::{Knowledge, Options};
use crate::sim::task::Semantics;
use crate::sim::time::Ns;

#[derive(Args, Clone, Debug)]
pub struct MachineArgs {
    /// What policies know of the work a job has left.
    #[arg(long, value_enum, default_value = "known")]
    pub knowledge: KnowledgeArg,
    /// Preempt only at multiples of this.
    #[arg(long, value_parser = parse_time, default_value = "0", value_name = "TIME")]
    pub quantum: Ns,
    /// Decisions take effect this much later; EDF fills in meanwhile.
    #[arg(long, value_parser = parse_time, default_value = "0", value_name = "TIME")]
    pub decision_latency: Ns,
    /// Policies see releases this much later.
    #[arg(long, value_parser = parse_time, default_value = "0", value_name = "TIME")]
    pub staleness: Ns,
    /// Cost of a context switch.
    #[arg(long, value_parser = parse_time, default_value = "0", value_name = "TIME")]
    pub switch_cost: Ns,
    /// Cost of a migration (the paper's δ).
    #[arg(long, value_parser = parse_time, default_value = "0", value_name = "TIME")]
    pub migration_cost: Ns,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum KnowledgeArg {
    Known,
    Wcet,
    History,
}

impl MachineArgs {
    pub fn options(&self, semantics: Semantics) -> Options {
        Options {
            semantics,
            knowledge: match self.knowledge {
                KnowledgeArg::Known => Knowledge::Known,
                KnowledgeArg::Wcet => Knowledge::Wcet,
                KnowledgeArg::History => Knowledge::History,
            },
            quantum_ns: self.quantum,
            decision_latency_ns: self.decision_latency,
            staleness_ns: self.staleness,
            context_switch_ns: self.switch_cost,
            migration_ns: self.migration_cost,
        }
    }
}
