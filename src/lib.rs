//! scx_temponet: a sched_ext scheduler for work that has deadlines.
//!
//! One folder per room, dependencies pointing one way:
//! `policy` <- `sim` <- `record`, `train`; `policy`, `hint` <- `agent`; all of these <- `rtapp`
//! <- `compare` <- `cli`; `intf`, `proc`, `draft`, `trust`, `hint` and `report` know data only.

pub mod agent;
pub mod cli;
pub mod compare;
mod draft;
pub mod hint;
mod intf;
pub mod policy;
mod proc;
pub mod record;
pub mod report;
pub mod rtapp;
pub mod sim;
mod spelling;
pub mod train;
pub mod trust;
