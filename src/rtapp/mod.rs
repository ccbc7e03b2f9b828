//! rt-app: its workloads read as they are really written, its logs, and both
//! turned into task sets for the simulator.
//!
//! `json` -> `workload` (what the file says) -> `idle_machine` (when jobs would be
//! released if nobody had to wait) -> `convert` (a task set); `log` comes from what
//! rt-app measured instead; `outcome` runs the set under schedulers, and `verdict` says
//! what that comes to.

pub mod convert;
mod event;
mod fields;
pub mod idle_machine;
pub mod json;
pub mod live;
pub mod log;
pub mod note;
pub mod of_set;
pub mod outcome;
mod read;
mod setting;
mod spelling;
mod unmodelled;
pub mod verdict;
pub mod workload;
mod write;

pub use note::{Note, Place};
pub use workload::Workload;

#[cfg(test)]
mod tests;
