//! The control plane: loads the BPF half, tells it about the machine, mirrors
//! the tasks with deadlines, decides, answers for the figures.

pub mod accel;
pub mod agent_stats;
pub mod allocations;
mod board;
mod bpf;
pub mod brain;
pub mod btf;
pub mod control;
mod gauges;
mod handle;
mod intake;
pub mod kernel;
mod machine;
pub mod mirror;
pub mod misbehave;
mod online;
mod pace;
pub mod reload;
pub mod ring_record;
pub mod rules;
mod scheduler;
pub mod stats;
mod supply;
mod thread;

pub use scheduler::{Config, Ended, Faults, Policy, Scheduler, RELOAD};
