//! A case file: refused with the line, or cases whose subjects can be drawn and make sense.

use scx_temponet::compare::case::{CaseError, CaseFile};
use std::path::Path;

/// A set of more tasks is drawn for longer than a fuzzer waits for it.
const MOST_DIGITS: usize = 4;

/// Whether it names no file, and no large number.
fn is_small(text: &str) -> bool {
    let numbers = text.split(|c: char| !c.is_ascii_digit());
    !text.contains('/') && numbers.map(str::len).max() <= Some(MOST_DIGITS)
}

pub fn check(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    if text.contains('/') {
        return;
    }
    match CaseFile::parse(Path::new("/nowhere/cases.toml"), text) {
        Ok(file) => {
            assert!((1..=1000).contains(&file.repeats));
            for (i, case) in file.cases.iter().enumerate() {
                assert!(file.cases[..i].iter().all(|other| other.name != case.name));
                assert!(case.schedulers.iter().any(|s| s.name == file.candidate));
                if !is_small(text) {
                    continue;
                }
                for subject in case.subjects(Some(&(7..=7))) {
                    let fits = subject.set.check();
                    assert!(fits.is_ok(), "{}: {}", case.name, fits.unwrap_err());
                }
            }
        }
        Err(CaseError::Content { line, .. }) => {
            assert!(line >= 1 && line <= text.bytes().filter(|b| *b == b'\n').count() + 1);
        }
        Err(error) => panic!("nothing was read: {error}"),
    }
}
