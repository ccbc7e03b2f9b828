//! Standard output and standard error. `println!` and `eprintln!` panic where they cannot
//! write, and a user never sees a panic.

use std::borrow::Cow;
use std::io::{self, Write};

use anyhow::{Context, Result};

use crate::proc;

/// Without what a terminal would obey: names of threads and files are other people's.
/// Nothing of ours has such characters but the ends of lines.
pub fn harmless(text: &str) -> Cow<'_, str> {
    let obeys = |c: char| !matches!(c, '\n' | '\t') && proc::is_obeyed(c);
    match text.contains(obeys) {
        true => text.replace(obeys, "?").into(),
        false => text.into(),
    }
}

/// A reader who has gone (`sim | head`) is no error worth a word; a full disk is.
pub fn write(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    match out
        .write_all(harmless(text).as_bytes())
        .and_then(|()| out.flush())
    {
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
        let text = format!($($text)*);
        let _ = writeln!(std::io::stderr(), "{}", $crate::cli::out::harmless(&text));
    }};
}
pub(crate) use errln;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_is_given_no_orders() {
        assert_eq!(harmless("a\tb\n"), "a\tb\n");
        assert_eq!(
            harmless("ev\x1b]0;il\x07 \u{9b}31m \u{202e}b\r"),
            "ev?]0;il? ?31m ?b?"
        );
    }
}
