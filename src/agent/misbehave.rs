//! An agent that goes wrong on purpose: the BPF half has to live with it.

use super::board::{Board, Cell, Verdict};
use crate::policy::CpuMask;

/// How an agent can go wrong, for the tests that let it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Misbehaviour {
    #[default]
    None,
    /// Random decisions, verdicts, tables and times
    Garbage,
    /// Wakes up and says nothing but that it will be alive in an hour
    Silence,
    /// Does not read the ring for seconds at a time
    Deaf,
}

/// Random decisions, verdicts, tables and times, the same ones in every run.
pub(super) struct Garbage {
    chance: u64,
}

impl Default for Garbage {
    fn default() -> Garbage {
        Garbage {
            chance: 0x9E37_79B9_7F4A_7C15,
        }
    }
}

impl Garbage {
    fn draw(&mut self) -> u64 {
        self.chance ^= self.chance << 13;
        self.chance ^= self.chance >> 7;
        self.chance ^= self.chance << 17;
        self.chance
    }

    /// A moment up to `2^(63 - shift)` nanoseconds away, in the past or to come.
    fn moment(&mut self, now: i64, shift: u32) -> i64 {
        now.wrapping_add(self.draw() as i64 >> shift)
    }

    pub fn publish(&mut self, board: &Board, cpus: CpuMask, now: i64) {
        for cpu in cpus.iter() {
            let pid = (self.draw() % 2000) as u32;
            let (made, expires) = (self.draw() as i64, self.moment(now, 36));
            board.decide(cpu, pid, self.draw(), made, expires);
        }
        for _ in 0..64 {
            let pid = (self.draw() % 2000) as u32;
            let verdict = match self.draw() % 2 {
                0 => Verdict::Keep,
                _ => Verdict::GiveUp,
            };
            let due = self.moment(now, 36);
            board.judge(pid, verdict, due, self.moment(now, 33));
            let cell = Cell {
                class: self.draw() as usize % 2,
                slack: self.draw() as usize % 64,
                work: self.draw() as usize % 32,
            };
            board.value(cell, self.draw() as i16);
        }
        for write in [Board::free_until, Board::table_until] {
            write(board, self.moment(now, 34));
        }
        board.ring_after(self.draw() as i64);
        // Alive most of the time, or nobody would listen to it.
        let wild = self.draw() as i64;
        board.heartbeat(if wild % 4 == 0 { wild } else { now });
    }
}
