//! Those who do no harm: a user whose declared tasks judge themselves, and a user who computes,
//! and asks for a declaration now and then.
use crate::act::Grid;
use crate::{act, asking, sys};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

const US: u64 = 1_000;
const MS: u64 = 1_000_000;

/// What one of them notes of itself, for the director to read.
#[derive(Default)]
pub struct Notes {
    pub granted: AtomicU64,
    pub on_time: AtomicU64,
    pub asked: AtomicU64,
    pub answered: AtomicU64,
    pub slowest_ns: AtomicU64,
}

/// Of the honest user's tasks: what they declare, and what they use of it.
#[derive(Clone, Copy)]
pub struct Rhythm {
    pub runtime_ns: u64,
    pub period_ns: u64,
    used_ns: u64,
}

/// For each CPU. With what a user may declare, they leave room for another one to do so.
pub const RHYTHMS: [Rhythm; 2] = [
    Rhythm {
        runtime_ns: 3 * MS,
        period_ns: 20 * MS,
        used_ns: 2_500 * US,
    },
    Rhythm {
        runtime_ns: 8 * MS,
        period_ns: 50 * MS,
        used_ns: 6_500 * US,
    },
];

/// A job is on time if it ends before the next one begins.
pub fn keep_time(rhythm: Rhythm, notes: &Notes) -> ! {
    if asking::declare(rhythm.runtime_ns, rhythm.period_ns) == Some(0) {
        notes.granted.store(1, Relaxed);
    }
    let mut grid = Grid::new(rhythm.period_ns);
    loop {
        let deadline = grid.wait() + rhythm.period_ns;
        act::burn(rhythm.used_ns);
        if sys::now() <= deadline {
            notes.on_time.fetch_add(1, Relaxed);
        }
    }
}

/// How long this user waits for an answer is told, not judged.
pub fn ask_now_and_then(notes: &Notes) -> ! {
    let mut grid = Grid::new(500 * MS);
    loop {
        grid.wait();
        let began = sys::now();
        notes.asked.fetch_add(1, Relaxed);
        if asking::declare(MS, 100 * MS) == Some(0) {
            notes.answered.fetch_add(1, Relaxed);
            notes.slowest_ns.fetch_max(sys::now() - began, Relaxed);
        }
        let _ = asking::clear();
    }
}
