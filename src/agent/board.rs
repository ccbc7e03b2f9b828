//! The board: memory shared with the BPF half, where the agent writes what it
//! decided. No call into the kernel is needed to do so.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{fence, AtomicI16, AtomicU32, AtomicU64, Ordering};

use crate::intf;
use crate::policy::{CpuId, Tokenizer};

const SLACK_BINS: usize = intf::temponet_consts_TN_SLACK_BINS as usize;
const WORK_BINS: usize = intf::temponet_consts_TN_WORK_BINS as usize;
const CLASSES: usize = intf::temponet_consts_TN_CLASSES as usize;
const VERDICTS: usize = intf::temponet_consts_TN_VERDICTS as usize;
const MAX_CPUS: usize = intf::temponet_consts_TN_MAX_CPUS as usize;

/// What a task is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Keep,
    GiveUp,
}

/// The board as mapped here. All times are the BPF half's.
pub struct Board {
    at: NonNull<intf::temponet_board>,
    mapped: usize,
}

// SAFETY: the mapping belongs to this value alone on our side, and every access to
// it is atomic.
unsafe impl Send for Board {}

/// Where a field of the board is: for `word` and its like.
macro_rules! at {
    ($($field:tt)+) => {
        // SAFETY: they pass the address of a board that lives; nothing is read.
        |board: *mut intf::temponet_board| unsafe { &raw mut (*board).$($field)+ }
    };
}

impl Board {
    /// Maps the array that holds it.
    pub fn map(array: &impl AsFd) -> io::Result<Board> {
        let len = std::mem::size_of::<intf::temponet_board>();
        // SAFETY: a fresh mapping of a file of at least this length (the kernel
        // checks that), owned by the value made here.
        let start = unsafe {
            libc::mmap(
                ptr::null_mut(),
                len,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                array.as_fd().as_raw_fd(),
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let at = NonNull::new(start.cast()).ok_or(io::ErrorKind::AddrNotAvailable)?;
        Ok(Board { at, mapped: len })
    }

    #[cfg(test)]
    fn in_memory() -> Board {
        // SAFETY: zeroes are a valid value of this struct of integers.
        let zeroed: intf::temponet_board = unsafe { std::mem::zeroed() };
        let at = NonNull::from(Box::leak(Box::new(zeroed)));
        Board { at, mapped: 0 }
    }

    #[cfg(test)]
    fn copy(&self) -> intf::temponet_board {
        // SAFETY: the board lives, and nobody else writes to it in a test.
        unsafe { self.at.read_volatile() }
    }

    fn word(&self, field: impl FnOnce(*mut intf::temponet_board) -> *mut u64) -> &AtomicU64 {
        // SAFETY: `field` points into the mapping, which lives as long as `self`; the
        // fields are aligned as the struct says, and only accessed atomically.
        unsafe { AtomicU64::from_ptr(field(self.at.as_ptr())) }
    }

    fn half(&self, field: impl FnOnce(*mut intf::temponet_board) -> *mut u32) -> &AtomicU32 {
        // SAFETY: as for `word`.
        unsafe { AtomicU32::from_ptr(field(self.at.as_ptr())) }
    }

    pub fn heartbeat(&self, now_ns: i64) {
        self.word(at!(heartbeat_at))
            .store(now_ns as u64, Ordering::Release);
    }

    /// The agent is not to be rung for before this.
    pub fn ring_after(&self, at_ns: i64) {
        self.word(at!(ring_after))
            .store(at_ns as u64, Ordering::Relaxed);
    }

    /// Until then any order of the waiting jobs costs no deadline; 0 for "it might".
    pub fn free_until(&self, at_ns: i64) {
        self.word(at!(free_until))
            .store(at_ns as u64, Ordering::Relaxed);
    }

    pub fn table_until(&self, at_ns: i64) {
        self.word(at!(table_until))
            .store(at_ns as u64, Ordering::Relaxed);
    }

    /// Records that the BPF half could not deliver, since it was loaded.
    pub fn untold(&self) -> u64 {
        self.word(at!(untold)).load(Ordering::Relaxed)
    }

    /// For how long declared jobs wanted this CPU since the load, and for how much of that
    /// it ran one.
    pub fn supply(&self, cpu: CpuId) -> (u64, u64) {
        let cpu = usize::from(cpu).min(MAX_CPUS - 1);
        let wanted = self.word(at!(supply[cpu].wanted_ns));
        let ran = self.word(at!(supply[cpu].ran_ns));
        (wanted.load(Ordering::Relaxed), ran.load(Ordering::Relaxed))
    }

    pub fn decide(&self, cpu: CpuId, pid: u32, job: u64, made_ns: i64, expires_ns: i64) {
        let cpu = usize::from(cpu);
        if cpu >= MAX_CPUS {
            return;
        }
        let expiry = self.word(at!(decisions[cpu].expires_at));
        // Whoever reads in between finds nothing rather than half of two decisions.
        expiry.store(0, Ordering::Relaxed);
        fence(Ordering::Release);
        self.word(at!(decisions[cpu].task))
            .store(u64::from(pid) << 32 | job & 0xffff_ffff, Ordering::Relaxed);
        self.word(at!(decisions[cpu].made_at))
            .store(made_ns as u64, Ordering::Relaxed);
        expiry.store(expires_ns as u64, Ordering::Release);
    }

    /// No decision for this CPU.
    pub fn withdraw(&self, cpu: CpuId) {
        let cpu = usize::from(cpu);
        if cpu < MAX_CPUS {
            self.word(at!(decisions[cpu].expires_at))
                .store(0, Ordering::Release);
        }
    }

    /// Two tasks may share a place; the later word stands, and the other task is then
    /// judged by the BPF half's own rule. `due_ns`: a kept task is behind, and due then.
    pub fn judge(&self, pid: u32, verdict: Verdict, due_ns: i64, expires_ns: i64) {
        let said = match verdict {
            Verdict::Keep => intf::temponet_verdict_TN_VERDICT_KEEP,
            Verdict::GiveUp => intf::temponet_verdict_TN_VERDICT_GIVE_UP,
        };
        let expiry = expires_ns as u64 >> 20 & ((1 << 30) - 1);
        let place = pid as usize % VERDICTS;
        // A due date that goes with another word is only an odd order for a moment.
        self.word(at!(judgements[place].due_at))
            .store(due_ns.max(0) as u64, Ordering::Relaxed);
        self.word(at!(judgements[place].word)).store(
            u64::from(pid) << 32 | expiry << 2 | u64::from(said),
            Ordering::Relaxed,
        );
    }

    /// Which bin is which. `false` where the BPF half has no room for so many.
    pub fn bins(&self, tokenizer: &Tokenizer) -> bool {
        let (slack, work) = (tokenizer.slack().edges_ns(), tokenizer.work().edges_ns());
        if slack.len() + 2 > SLACK_BINS || work.len() + 1 > WORK_BINS {
            return false;
        }
        let slack_count = self.half(at!(nr_slack_edges));
        let work_count = self.half(at!(nr_work_edges));
        slack_count.store(0, Ordering::Release);
        work_count.store(0, Ordering::Release);
        for (i, &edge) in slack.iter().enumerate() {
            self.word(at!(slack_edges[i]))
                .store(edge as u64, Ordering::Relaxed);
        }
        for (i, &edge) in work.iter().enumerate() {
            self.word(at!(work_edges[i]))
                .store(edge as u64, Ordering::Relaxed);
        }
        slack_count.store(slack.len() as u32, Ordering::Release);
        work_count.store(work.len() as u32, Ordering::Release);
        true
    }

    /// One entry of the Q-table.
    pub fn value(&self, cell: Cell, value: i16) {
        self.cell(cell, at!(table)).store(value, Ordering::Relaxed);
    }

    /// One entry of the distilled rule's table.
    pub fn distilled_value(&self, cell: Cell, value: i16) {
        self.cell(cell, at!(distilled))
            .store(value, Ordering::Relaxed);
    }

    pub fn has_distilled(&self, has: bool) {
        self.half(at!(has_distilled))
            .store(has.into(), Ordering::Release);
    }

    fn cell(
        &self,
        cell: Cell,
        table: impl FnOnce(*mut intf::temponet_board) -> *mut intf::temponet_table,
    ) -> &AtomicI16 {
        let class = cell.class.min(CLASSES - 1);
        let slack = cell.slack.min(SLACK_BINS - 1);
        let work = cell.work.min(WORK_BINS - 1);
        let at = (class * SLACK_BINS + slack) * WORK_BINS + work;
        // SAFETY: as for `word`; the index is within the table.
        unsafe { AtomicI16::from_ptr(&raw mut (*table(self.at.as_ptr())).q[at]) }
    }
}

/// A token's place in a table; doubt has none there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cell {
    pub class: usize,
    pub slack: usize,
    pub work: usize,
}

impl Drop for Board {
    fn drop(&mut self) {
        if self.mapped > 0 {
            // SAFETY: what `map` mapped, and nothing borrows from it any more.
            unsafe { libc::munmap(self.at.as_ptr().cast(), self.mapped) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::network::Model;

    #[test]
    fn what_is_written_stands_where_the_bpf_half_looks() {
        let board = Board::in_memory();
        board.decide(3, 77, 1 << 40 | 5, 1000, 2000);
        board.judge(4096 + 9, Verdict::GiveUp, -1, 7 << 20);
        board.judge(10, Verdict::Keep, 5 << 20, 7 << 20);
        let cell = Cell {
            class: 1,
            slack: 2,
            work: 3,
        };
        board.value(cell, -7);
        let raw = board.copy();
        assert_eq!(raw.decisions[3].task, 77 << 32 | 5);
        assert_eq!(raw.decisions[3].expires_at, 2000);
        assert_eq!(raw.judgements[9].word, (4096 + 9) << 32 | 7 << 2 | 2);
        assert_eq!(raw.judgements[9].due_at, 0);
        assert_eq!(raw.judgements[10].word, 10 << 32 | 7 << 2 | 1);
        assert_eq!(raw.judgements[10].due_at, 5 << 20);
        assert_eq!(raw.table.q[(SLACK_BINS + 2) * WORK_BINS + 3], -7);
        board.withdraw(3);
        assert_eq!(board.copy().decisions[3].expires_at, 0);
        board.decide(60_000, 1, 1, 1, 1);
        board.withdraw(60_000);
    }

    #[test]
    fn the_shipped_models_bins_fit() {
        let board = Board::in_memory();
        assert!(board.bins(Model::shipped().tokenizer()));
        assert_eq!(
            board.copy().nr_slack_edges as usize,
            Model::shipped().tokenizer().slack().edges_ns().len()
        );
    }
}
