//! Whom to run, and where: a set of jobs in, an assignment of jobs to CPUs out.
//!
//! This room knows nothing of kernels or simulators. Both call the same
//! [`Decider::decide`], so what was trained is what runs:
//!
//! ```text
//! Situation ──> shield: who may run until the next decision    (demand test)
//!           └─> tokenizer: slack and work bins, a multiset     (Urgency Tokenizer)
//!                 └─> Scorer: one score per job, and idle      (network or distilled rule)
//!                       └─> mapping: scores ─> one job per CPU (masked greedy or Sinkhorn)
//! ```
//!
//! Times are integer nanoseconds (`i64`) on whatever clock the caller uses.
//! After the first few calls nothing here allocates: every stage owns the
//! buffers it needs and reuses them.

pub mod diagnostics;
pub mod linux;
pub mod mapping;
pub mod network;
pub mod shield;
pub mod tokenizer;

mod course;
mod cpumask;
mod decide;
mod job;
mod kmeans;
mod late;
mod mitigation;
mod plan;
mod quantiser;
mod scorer;
#[cfg(test)]
pub(crate) mod tests;

pub use cpumask::{CpuId, CpuMask, MAX_CPUS};
pub use decide::{Decider, Decision, PolicyConfig, ShieldMode};
pub use job::{Job, Situation, Slack, Standing, Upcoming};
pub use late::{LateConfig, LateRule};
pub use mapping::{Assignment, MappingConfig, MappingKind};
pub use mitigation::{BurstConfig, BurstMonitor, LongSlackReserve, SparsePlan};
pub use quantiser::{Quantiser, QuantiserError, Scheme};
pub use scorer::{Blend, Context, DistilledRule, Edf, Scorer, Srpt};
pub use shield::{OverloadRule, Shield, ShieldConfig, Verdict};
pub use tokenizer::{Token, TokenSet, Tokenizer};
