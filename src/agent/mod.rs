//! The control plane: loads the BPF half, tells it about the machine, answers
//! for its figures.

mod bpf;
pub mod hint;
mod machine;
pub mod rules;
mod scheduler;
pub mod stats;

pub use scheduler::{Config, Ended, Scheduler};
