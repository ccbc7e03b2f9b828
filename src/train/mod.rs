//! TempoNet learns here, offline, in the simulator.
//!
//! ```text
//! env: a machine from the curriculum ──> driver: the Decider at its wheel
//!   rollout | dqn | bc: what was seen, as samples ──> learner: net, adam
//!     trainer: the loop ──> validate: against the classics ──> a model file
//! ```
//!
//! The network is small enough that its passes are written by hand (`net`);
//! the only dependency is a matrix product.

pub mod adam;
pub mod base;
pub mod batch;
pub mod bc;
pub mod checkpoint;
pub mod config;
pub mod curve;
pub mod distil;
pub mod dqn;
pub mod env;
pub mod eval;
pub mod learner;
pub mod lines;
mod matrix;
pub mod net;
mod recorded;
pub mod replay;
pub mod rollout;
pub mod trainer;
pub mod validate;
