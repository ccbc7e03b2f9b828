//! scx_temponet: a sched_ext scheduler for work that has deadlines.
//!
//! One folder per room, dependencies pointing one way:
//! `policy` <- `sim`, `agent` <- `rtapp`, `train` <- `cli`; `report` knows data only.

pub mod agent;
pub mod cli;
pub mod policy;
pub mod report;
pub mod rtapp;
pub mod sim;
pub mod train;
