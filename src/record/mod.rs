//! What runs on this machine, under any scheduler, as a task set.
//!
//! The `recorder` watches what runs, through `bpf/record.bpf.c`; `book` keeps every task's jobs
//! in bounded memory, `check` refuses what cannot be true, `shape` finds out what kind of task
//! each of them is, and `rhythm` which declaration would fit it.

mod book;
mod check;
mod recorder;
pub mod rhythm;
mod shape;

pub use self::book::Book;
pub use self::check::{check, Counts, Witness};
pub use self::recorder::{now_ns, Lost, RecordKind, Recorder, TaskRecord};
pub use self::shape::{Recorded, Session};
