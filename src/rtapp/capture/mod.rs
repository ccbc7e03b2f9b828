//! From what ran on a machine to a task set: `book` keeps every task's jobs in
//! bounded memory, `check` refuses what cannot be true, `shape` finds out what kind of
//! task each of them is.

mod book;
mod check;
mod shape;

pub use self::book::Book;
pub use self::check::{check, Counts, Witness};
pub use self::shape::{Recorded, Session};
