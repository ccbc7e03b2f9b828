//! The control plane: loads the BPF half, tells it about the machine, answers
//! for its figures.

mod bpf;
mod machine;
mod scheduler;
pub mod stats;

pub use scheduler::{Config, Ended, Scheduler};
