//! The memory that director and workers share: a file that all of them map. Workers leave
//! what they measured; the director says what it is doing to whom.
//!
//! A generation is even while its task may be judged. The director makes it odd before it
//! does something that excuses a wait (stops the task, changes where it may run, unloads the
//! scheduler), and even, but another number, afterwards. A worker counts what it measured
//! only if both generations, its own and everybody's, were the same even numbers before
//! and after.
use anyhow::{ensure, Result};
use std::fs::OpenOptions;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

pub const SLOTS: usize = 64;

#[repr(C, align(128))]
#[derive(Default)]
pub struct Slot {
    generation: AtomicU64,
    /// One of the commands below, with its number in the upper bits; 0 for none.
    command: AtomicU64,
    pub progress: AtomicU64,
    pub longest_wait_ns: AtomicU64,
    /// The longest time without progress. It may hold several waits, with lost turns between.
    pub longest_gap_ns: AtomicU64,
    pub worst_response_ns: AtomicU64,
    /// CPU + 1 where it ran without being allowed to, and what was allowed.
    pub wrong_cpu: AtomicU64,
    pub wrong_mask: AtomicU64,
    pub mask_checks: AtomicU64,
    /// The process that works for it; 0 for none.
    pub partner: AtomicU64,
}

#[repr(C, align(128))]
pub struct Shared {
    generation: AtomicU64,
    pub stop: AtomicU64,
    slots: [Slot; SLOTS],
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Command {
    NapMs(u64),
    Yield(u64),
    Exec,
    Exit,
}

impl Command {
    fn pack(self) -> u64 {
        match self {
            Command::NapMs(ms) => 1 | ms << 8,
            Command::Yield(count) => 2 | count << 8,
            Command::Exec => 3,
            Command::Exit => 4,
        }
    }

    fn unpack(word: u64) -> Option<Command> {
        Some(match word & 0xff {
            1 => Command::NapMs(word >> 8),
            2 => Command::Yield(word >> 8),
            3 => Command::Exec,
            4 => Command::Exit,
            _ => return None,
        })
    }
}

impl Slot {
    pub fn order(&self, command: Command) {
        self.command.store(command.pack(), SeqCst);
    }

    pub fn take_command(&self) -> Option<Command> {
        Command::unpack(self.command.swap(0, SeqCst))
    }
}

/// What was true of both generations at a moment.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Moment(u64, u64);

impl Moment {
    pub fn is_judged(self) -> bool {
        self.0.is_multiple_of(2) && self.1.is_multiple_of(2)
    }
}

impl Shared {
    pub fn create(path: &Path) -> Result<&'static Shared> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(path)?;
        file.set_len(size_of::<Shared>() as u64)?;
        Self::open(path)
    }

    pub fn open(path: &Path) -> Result<&'static Shared> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        let size = size_of::<Shared>();
        ensure!(
            file.metadata()?.len() == size as u64,
            "{} is of another storm",
            path.display()
        );
        // SAFETY: a new mapping, which is never given back; all zeros is a valid Shared,
        // and whoever shares it changes it by atomic stores only.
        unsafe {
            let at = libc::mmap(
                std::ptr::null_mut(),
                size,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_POPULATE,
                file.as_raw_fd(),
                0,
            );
            ensure!(at != libc::MAP_FAILED, std::io::Error::last_os_error());
            Ok(&*at.cast::<Shared>())
        }
    }

    pub fn slot(&self, at: usize) -> &Slot {
        &self.slots[at]
    }

    pub fn moment(&self, slot: &Slot) -> Moment {
        Moment(self.generation.load(SeqCst), slot.generation.load(SeqCst))
    }

    /// Nobody is judged any more, or everybody again.
    pub fn judge_all(&self, judged: bool) {
        set_parity(&self.generation, judged);
    }

    pub fn judge(&self, at: usize, judged: bool) {
        set_parity(&self.slots[at].generation, judged);
    }
}

/// Only the director stores generations, so there is no race between load and store.
fn set_parity(generation: &AtomicU64, even: bool) {
    let now = generation.load(SeqCst);
    let next = now + 1;
    let next = if next.is_multiple_of(2) == even {
        next
    } else {
        next + 1
    };
    generation.store(next, SeqCst);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_seen_even_if_it_is_over() {
        let generation = AtomicU64::new(4);
        set_parity(&generation, false);
        assert_eq!(generation.load(SeqCst), 5);
        set_parity(&generation, true);
        assert_eq!(generation.load(SeqCst), 6);
        set_parity(&generation, true);
        assert_eq!(generation.load(SeqCst), 8);
    }

    #[test]
    fn a_command_arrives_as_it_was_given_and_once() {
        let slot = Slot::default();
        slot.order(Command::Yield(12_345));
        assert_eq!(slot.take_command(), Some(Command::Yield(12_345)));
        assert_eq!(slot.take_command(), None);
    }
}
