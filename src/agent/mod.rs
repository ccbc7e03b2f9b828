//! The control plane: loads the BPF half, tells it about the machine, answers
//! for its figures.

pub mod accel;
mod bpf;
pub mod btf;
pub mod hint;
pub mod kernel;
mod machine;
pub mod record;
pub mod rules;
mod scheduler;
pub mod stats;

pub use scheduler::{Config, Ended, Scheduler};
