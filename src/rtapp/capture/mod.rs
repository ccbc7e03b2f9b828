//! From what ran on a machine to a task set: `book` keeps every task's jobs in
//! bounded memory, `shape` finds out what kind of task each of them is.

mod book;
mod shape;

pub use self::book::Book;
pub use self::shape::{Recorded, Session};
