//! Standard output and standard error. `println!` and `eprintln!` panic where they cannot
//! write, and a user never sees a panic.

use std::io::{self, Write};

use anyhow::{Context, Result};

/// A reader who has gone (`sim | head`) is no error worth a word; a full disk is.
pub fn write(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        done => done.context("cannot write to standard output"),
    }
}

/// As `println!`, in a function that returns a `Result`.
macro_rules! outln {
    ($($text:tt)*) => {
        $crate::cli::out::write(&format!("{}\n", format_args!($($text)*)))?
    };
}
pub(crate) use outln;

/// As `eprintln!`. Where it cannot write there is nobody left to tell.
macro_rules! errln {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($text)*);
    }};
}
pub(crate) use errln;
