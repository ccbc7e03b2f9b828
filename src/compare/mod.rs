//! The experiment engine: schedulers on task sets, in the simulator and on kernels.
//!
//! `case` reads what is to be compared and makes `subject`s of it; `experiment` looks up
//! in the `store` what was measured before and has the rest run by `simulated` or by
//! `guest`s, which `worker` serves from within; `summary`, `verdict` and `best` say what
//! the figures come to.

pub mod best;
pub mod case;
pub mod experiment;
pub mod guest;
pub mod measured;
pub mod scheduler;
pub mod simulated;
pub mod store;
pub mod subject;
pub mod summary;
pub mod verdict;
pub mod wire;
pub mod worker;

pub use case::CaseFile;
pub use experiment::{Experiment, Machine, Progress, Results, Run};
pub use measured::{Figures, Measured};
pub use scheduler::Scheduler;
pub use subject::Subject;
