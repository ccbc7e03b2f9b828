//! What a task of a scene does, and what it notes of its own waits.
use crate::mutex;
use crate::scene::Work;
use crate::{calls, sys};

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A task's own page of figures, which the director reads.
#[derive(Default)]
pub struct Notes {
    /// The longest time it was kept from the CPU while it wanted it.
    pub longest_wait_ns: AtomicU64,
    /// Of tasks with deadlines: jobs that were to be done by now, and those done in time.
    pub jobs: AtomicU64,
    pub on_time: AtomicU64,
    /// Its declaration was refused.
    pub refused: AtomicU64,
}

impl Notes {
    pub fn note(&self, wait: u64) {
        self.longest_wait_ns.fetch_max(wait, Relaxed);
    }

    /// Uses so much CPU time.
    pub fn burn(&self, work: u64) {
        let until = calls::cpu_time() + work;
        let mut last = sys::now();
        while calls::cpu_time() < until {
            calls::spin(10_000);
            let now = sys::now();
            self.note(now - last);
            last = now;
        }
    }
}

/// Never returns. Where `declares` it tells the scheduler of its deadlines.
pub fn work(work: Work, notes: &'static Notes, declares: bool) -> ! {
    loop {
        match work {
            Work::Hog => hog(notes),
            Work::Mutex { inherits } => mutex::share(inherits, notes, declares),
            Work::Shell(line) => {
                let error = Command::new("sh").args(["-c", line]).exec();
                panic!("no shell: {error}");
            }
            Work::Nap { run_us, sleep_us } => {
                notes.burn(run_us * 1000);
                let end = sys::now() + sleep_us * 1000;
                sys::sleep_until(end);
                notes.note(sys::now().saturating_sub(end));
            }
            Work::Forks { run_us } => {
                // Where no process can be made there is nothing to measure.
                if let Ok(child) = sys::fork(|| notes.burn(run_us * 1000)) {
                    sys::wait_for(child);
                }
            }
        }
    }
}

/// Without a system call.
fn hog(notes: &Notes) -> ! {
    let mut last = sys::now();
    loop {
        calls::spin(10_000);
        let now = sys::now();
        notes.note(now - last);
        last = now;
    }
}
