//! The simulator: task sets, workload generators, engine, classic schedulers,
//! oracle and metrics. Fast, exact, deterministic, and as unkind as a kernel
//! when asked to be.

pub mod arrivals;
pub mod compare;
pub mod engine;
pub mod file;
pub mod metrics;
pub mod oracle;
pub mod policies;
pub mod reward;
pub mod rng;
pub mod situation;
pub mod stats;
pub mod task;
pub mod time;
pub mod workload;
