//! A member of the population. It does what its kind does, and measures how long it was kept
//! from the CPU while it wanted it, and whether it runs where it may.
use crate::population::Kind;
use crate::shared::{Command, Moment, Shared, Slot};
use crate::sys;
use anyhow::{Context, Result};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;

const MS: u64 = 1_000_000;
/// How often it looks whether it is where it may be, and how long a piece of work is.
const LOOK_NS: u64 = MS;
const PIECE_NS: u64 = 10 * MS;

struct Worker {
    shared: &'static Shared,
    slot: &'static Slot,
}

pub fn run(file: &Path, slot: usize, kind: Kind, period_us: u64, work_us: u64) -> Result<()> {
    let shared = Shared::open(file)?;
    let worker = Worker {
        shared,
        slot: shared.slot(slot),
    };
    let (period, work) = (period_us * 1000, work_us * 1000);
    let mut partner = match kind {
        Kind::Pair => Some(worker.find_partner()?),
        _ => None,
    };
    let mut release = sys::now() + period;
    while shared.stop.load(Relaxed) == 0 {
        match worker.slot.take_command() {
            Some(Command::NapMs(ms)) => worker.sleep_until(sys::now() + ms * MS),
            Some(Command::Yield(count)) => (0..count).for_each(|_| sys::yield_cpu()),
            Some(Command::Exec) => return worker.become_new(),
            Some(Command::Exit) => break,
            None => {}
        }
        match kind {
            Kind::Hog => worker.burn(PIECE_NS),
            Kind::Napper | Kind::Fifo => {
                worker.burn(work);
                worker.sleep_until(sys::now() + period);
            }
            Kind::Periodic => {
                worker.sleep_until(release);
                worker.burn(work);
                let response = sys::now() - release;
                worker.slot.worst_response_ns.fetch_max(response, Relaxed);
                release += (response / period + 1) * period;
            }
            Kind::Forks => worker.fork_once(work)?,
            Kind::Pair => worker.pass_bytes(partner.as_mut().context("a partner")?)?,
        }
        worker.slot.progress.fetch_add(1, Relaxed);
    }
    Ok(())
}

impl Worker {
    fn moment(&self) -> Moment {
        self.shared.moment(self.slot)
    }

    /// A gap that began at the moment `before`, and in which it was taken off the CPU so many
    /// times. Each but the first time it had a turn that was over before it got on: an emulator,
    /// or a host with other work, may leave it nothing of a turn of 3 ms. So the gap is as many
    /// waits, the longest of which is at least the average.
    fn note(&self, gap: u64, taken_off: u64, before: Moment) {
        if before.is_judged() && self.moment() == before {
            let wait = gap / taken_off.max(1);
            self.slot.longest_wait_ns.fetch_max(wait, Relaxed);
            self.slot.longest_gap_ns.fetch_max(gap, Relaxed);
        }
    }

    /// Works for so long, by a clock that stands still while it does not run.
    fn burn(&self, work: u64) {
        let (mut worked, mut looked) = (0, 0);
        let mut taken_off = sys::times_taken_off();
        let mut before = self.moment();
        let mut last = sys::now();
        while worked < work {
            let now = sys::now();
            let gap = now - last;
            if gap > LOOK_NS {
                let so_far = sys::times_taken_off();
                self.note(gap, so_far - taken_off, before);
                taken_off = so_far;
            }
            // Where it was taken off the CPU the clock goes on by a little only.
            worked += gap.min(LOOK_NS);
            if worked >= looked {
                looked = worked + LOOK_NS;
                taken_off = sys::times_taken_off();
                self.look_where_it_is();
                if self.shared.stop.load(Relaxed) != 0 {
                    return;
                }
            }
            before = self.moment();
            last = now;
        }
    }

    /// The kernel itself says where it may run; who moves it makes the generation odd.
    fn look_where_it_is(&self) {
        let before = self.moment();
        let cpu = sys::current_cpu();
        let Some(allowed) = sys::allowed_cpus() else {
            return;
        };
        let here = sys::current_cpu();
        if !before.is_judged() || self.moment() != before {
            return;
        }
        self.slot.mask_checks.fetch_add(1, Relaxed);
        if !allowed.has(cpu) && !allowed.has(here) {
            self.slot.wrong_mask.store(allowed.0, Relaxed);
            self.slot.wrong_cpu.store(cpu as u64 + 1, Relaxed);
        }
    }

    fn sleep_until(&self, at: u64) {
        let before = self.moment();
        // It may be late for reasons of its own, such as having yielded a thousand times.
        let from = at.max(sys::now());
        let taken_off = sys::times_taken_off();
        sys::sleep_until(at);
        let gap = sys::now().saturating_sub(from);
        // And once when it began to sleep.
        self.note(gap, 1 + sys::times_taken_off() - taken_off, before);
        self.look_where_it_is();
    }

    fn become_new(&self) -> Result<()> {
        let mut args = std::env::args_os();
        let program = args.next().context("a name")?;
        Err(std::process::Command::new(program).args(args).exec().into())
    }

    fn fork_once(&self, work: u64) -> Result<()> {
        let child = sys::fork(|| self.burn(work))?;
        self.slot.partner.store(child as u64, Relaxed);
        sys::wait_for(child);
        self.slot.partner.store(0, Relaxed);
        Ok(())
    }

    /// A process that gives every byte back.
    fn find_partner(&self) -> Result<(std::io::PipeReader, std::io::PipeWriter)> {
        let (mut hears, tells) = std::io::pipe()?;
        let (listens, mut answers) = std::io::pipe()?;
        let not_its_own = [tells.as_raw_fd(), listens.as_raw_fd()];
        let partner = sys::fork(|| {
            // With a writer of its own it would never hear that the other is gone.
            not_its_own.into_iter().for_each(sys::close);
            let mut byte = [0];
            while hears.read_exact(&mut byte).is_ok() && answers.write_all(&byte).is_ok() {}
        })?;
        self.slot.partner.store(partner as u64, Relaxed);
        Ok((listens, tells))
    }

    fn pass_bytes(&self, pipes: &mut (std::io::PipeReader, std::io::PipeWriter)) -> Result<()> {
        let mut byte = [0];
        for _ in 0..100 {
            pipes.1.write_all(&byte)?;
            pipes.0.read_exact(&mut byte)?;
        }
        self.look_where_it_is();
        Ok(())
    }
}
