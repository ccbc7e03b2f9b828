//! Progress is for people: on a terminal, with what is left; nowhere else.

use std::fs::File;
use std::io::Read;
use std::os::fd::{FromRawFd, OwnedFd};
use std::process::{Command, Stdio};

/// Both ends of a terminal of a hundred columns.
fn terminal() -> (File, OwnedFd) {
    let (mut ours, mut theirs) = (0, 0);
    let size = libc::winsize {
        ws_row: 30,
        ws_col: 100,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    // SAFETY: places for two descriptors and a size to read; the other two may be null.
    unsafe {
        let name = std::ptr::null_mut();
        let done = libc::openpty(&mut ours, &mut theirs, name, std::ptr::null(), &size);
        assert_eq!(done, 0);
        (File::from_raw_fd(ours), OwnedFd::from_raw_fd(theirs))
    }
}

fn program(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_scx_temponet"));
    command
        .args(args)
        .env("TERM", "xterm")
        .stdout(Stdio::null());
    command
}

fn said_on_a_terminal(args: &[&str]) -> String {
    let (mut ours, theirs) = terminal();
    let mut command = program(args);
    command.stderr(theirs);
    let mut child = command.spawn().unwrap();
    // Its copy of the other end would keep the reader waiting.
    drop(command);
    let mut said = Vec::new();
    // The end of a terminal reads as an error.
    let _ = ours.read_to_end(&mut said);
    assert!(child.wait().unwrap().success());
    String::from_utf8_lossy(&said).into_owned()
}

const BENCH: [&str; 7] = [
    "bench",
    "--n",
    "16,40",
    "--seconds",
    "300ms",
    "--backend",
    "native",
];
const EVAL: [&str; 5] = ["eval", "--lines", "A", "-k", "40"];

#[test]
fn bench_says_what_it_measures_and_how_long_it_takes() {
    let said = said_on_a_terminal(&BENCH);
    for words in ["16 jobs", "40 jobs, native encoder", "measurements", "left"] {
        assert!(said.contains(words), "no '{words}' in {said:?}");
    }
}

#[test]
fn eval_says_which_line_it_is_at_and_how_long_it_takes() {
    let said = said_on_a_terminal(&EVAL);
    for words in ["line A", " %, ", "left"] {
        assert!(said.contains(words), "no '{words}' in {said:?}");
    }
}

#[test]
fn elsewhere_nothing_is_drawn() {
    for args in [&BENCH[..], &EVAL[..]] {
        let out = program(args).stderr(Stdio::piped()).output().unwrap();
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(out.status.success(), "{said}");
        assert!(
            !said.contains("left") && !said.contains('\u{1b}'),
            "{said:?}"
        );
    }
}
