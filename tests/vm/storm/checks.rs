//! What we promise, looked at all along. Where a check and the director may race, the check
//! gives way: a storm that cries wolf is of no use.
use crate::director::{Director, MS};
use crate::probes::{runs_of, state_of};
use crate::sys;
use std::sync::atomic::Ordering::SeqCst;

/// On top of the bound, for what is found by looking only now and then.
const SLACK_NS: u64 = 500 * MS;
/// Who sleeps for longer than this, in a population in which nobody does, is lost.
const LOST_NS: u64 = 30_000 * MS;
/// A turn may be lost to the host, but not one after another: within so many bounds a task that
/// wants to work gets on.
const BOUNDS_WITHOUT_PROGRESS: u64 = 3;
/// A declaration waits for the daemon, which may be stopped or gone, and for a CPU.
const ERRAND_NS: u64 = 240_000 * MS;

pub enum Violation {
    Complaint(String),
    Unloaded(String),
    /// Told to load again, and slow: until it is loaded all others run under the kernel's own
    /// scheduler.
    NotReloaded,
    /// Who waited, and for how long, where a member did.
    Waited(String, u64, Option<usize>),
    WrongCpu(usize, String),
    Lost(Vec<usize>),
    Ended(usize, String),
    Errand(u32),
}

impl Violation {
    /// A wait, or a slow load, may be the host's fault; the script that knows how much it took
    /// decides.
    pub fn status(&self) -> u8 {
        match self {
            Violation::Waited(..) => 3,
            Violation::NotReloaded => 4,
            _ => 1,
        }
    }
}

/// A process, and since when it has not run although it could have.
#[derive(Default)]
pub struct Watch {
    pid: i32,
    runs: (u64, u64),
    /// Nothing of it changed since then.
    still_since: u64,
    /// And it was runnable at every look.
    runnable_since: u64,
}

impl Watch {
    fn look(&mut self, pid: i32) -> Option<()> {
        let runs = runs_of(pid)?;
        let now = sys::now();
        if self.pid != pid || self.runs != runs {
            *self = Watch {
                pid,
                runs,
                still_since: now,
                runnable_since: now,
            };
        }
        if state_of(pid)? != 'R' {
            self.runnable_since = now;
        }
        Some(())
    }
}

impl Director {
    pub fn check(&mut self) -> Result<(), Violation> {
        self.check_kernel()?;
        if self.attached.is_overdue() {
            return Err(Violation::NotReloaded);
        }
        if let Some(complaint) = self.attached.complaint() {
            return Err(Violation::Unloaded(complaint));
        }
        self.check_figures()?;
        for at in 0..self.members.len() {
            self.check_member(at)?;
        }
        let now = sys::now();
        match self
            .errands
            .iter()
            .find(|(since, _)| now - since > ERRAND_NS)
        {
            Some((_, child)) => Err(Violation::Errand(child.id())),
            None => Ok(()),
        }
    }

    pub fn check_kernel(&mut self) -> Result<(), Violation> {
        match self.kernel_log.complaint() {
            Some(complaint) => Err(Violation::Complaint(complaint)),
            None => Ok(()),
        }
    }

    fn check_figures(&mut self) -> Result<(), Violation> {
        if !self.attached.is_settled() {
            return Ok(());
        }
        match self.stats.longest_wait() {
            Some((class, us)) => {
                self.note_wait(us * 1000, || format!("somebody of class {class}"), None)
            }
            None => Ok(()),
        }
    }

    fn check_member(&mut self, at: usize) -> Result<(), Violation> {
        let member = &self.members[at];
        let task = member.task;
        let slot = self.shared.slot(task);
        let wait = slot.longest_wait_ns.load(SeqCst);
        let gap = slot.longest_gap_ns.load(SeqCst);
        self.longest_gap_ns = self.longest_gap_ns.max(gap);
        self.note_wait(wait, || format!("task {task}, by its own clock"), Some(at))?;
        if gap > BOUNDS_WITHOUT_PROGRESS * self.bound_ns {
            let who = format!("task {task}, which had turns and made no progress,");
            return Err(Violation::Waited(who, gap, Some(at)));
        }
        let slot = self.shared.slot(task);
        if let cpu @ 1.. = slot.wrong_cpu.load(SeqCst) {
            let allowed = crate::sets::Cpus(slot.wrong_mask.load(SeqCst));
            let where_it_was = format!("ran on CPU {}, may use {allowed}", cpu - 1);
            return Err(Violation::WrongCpu(at, where_it_was));
        }
        let judged = self.attached.is_settled() && self.shared.moment(slot).is_judged();
        let partner = slot.partner.load(SeqCst) as i32;
        let member = &mut self.members[at];
        if let Some(child) = member.child.as_mut() {
            if let (Ok(Some(status)), false) = (child.try_wait(), member.respawn) {
                return Err(Violation::Ended(at, status.to_string()));
            }
        }
        if !judged {
            member.watches = Default::default();
            return Ok(());
        }
        let pids = [member.pid().unwrap_or(0), partner];
        for (watch, pid) in member.watches.iter_mut().zip(pids) {
            if pid <= 0 || watch.look(pid).is_none() {
                *watch = Watch::default();
            }
        }
        self.check_watches(at)
    }

    fn check_watches(&mut self, at: usize) -> Result<(), Violation> {
        let now = sys::now();
        let watches = &self.members[at].watches;
        let known = watches.iter().filter(|watch| watch.pid > 0);
        // The whole of it is still: neither the task nor its partner has run.
        let still = known.clone().map(|watch| now - watch.still_since).min();
        let longest = known
            .map(|watch| (now - watch.runnable_since.max(watch.still_since), watch.pid))
            .max();
        if let Some((wait, pid)) = longest {
            let name = || format!("process {pid} of task {}, runnable", self.members[at].task);
            let name = name();
            self.note_wait(wait.saturating_sub(SLACK_NS), || name, Some(at))?;
        }
        match still {
            Some(still) if still > LOST_NS => Err(Violation::Lost(vec![at])),
            _ => Ok(()),
        }
    }

    fn note_wait(
        &mut self,
        wait_ns: u64,
        who: impl FnOnce() -> String,
        member: Option<usize>,
    ) -> Result<(), Violation> {
        self.longest_wait_ns = self.longest_wait_ns.max(wait_ns);
        match wait_ns > self.bound_ns {
            true => Err(Violation::Waited(who(), wait_ns, member)),
            false => Ok(()),
        }
    }
}
