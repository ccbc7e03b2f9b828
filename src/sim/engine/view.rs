//! What a policy sees and what it answers.

use super::options::Options;
use crate::sim::task::Task;
use crate::sim::time::{Ns, NEVER};

pub type TaskId = u32;
pub type CoreId = u32;
pub const NO_CORE: CoreId = CoreId::MAX;

/// A released, unfinished job at the head of its task.
#[derive(Clone, Copy, Debug)]
pub struct ReadyJob {
    pub task: TaskId,
    /// Counts the jobs of this task from 0.
    pub index: u32,
    pub criticality: u8,
    /// Where it runs now, or `NO_CORE`.
    pub core: CoreId,
    /// Where it ran last, or `NO_CORE`.
    pub last_core: CoreId,
    pub release: Ns,
    pub deadline: Ns,
    /// Work left, as far as the policy may know it (`Knowledge`).
    pub remaining: Ns,
    pub executed: Ns,
    /// How far off that may be: see [`Estimate`].
    pub spread: Ns,
    /// When it joined the waiting jobs, as a sequence number: the order of a plain queue.
    pub queued: u64,
    /// Work really left.
    pub(super) work: Ns,
    /// Expected total, from which `remaining` is derived.
    pub(super) expected: Ns,
}

impl ReadyJob {
    /// Deadline less now less remaining work (the paper's s_i(t)); negative: hopeless.
    pub fn slack(&self, now: Ns) -> i64 {
        self.deadline as i64 - now as i64 - self.remaining as i64
    }

    /// The last moment at which it can start and still be on time; also the order of least laxity.
    pub fn latest_start(&self) -> i64 {
        self.deadline as i64 - self.remaining as i64
    }

    pub fn is_running(&self) -> bool {
        self.core != NO_CORE
    }

    pub fn is_hopeless(&self, now: Ns) -> bool {
        self.slack(now) < 0
    }
}

#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    pub now: Ns,
    pub cores: usize,
    pub options: &'a Options,
    /// In no particular order.
    pub jobs: &'a [ReadyJob],
    /// By task: where its job stands in `jobs`; any other number for nowhere.
    pub places: &'a [u32],
    /// The tasks whose jobs run, by core.
    pub running: &'a [TaskId],
    /// The tasks whose job came, went, started, stopped or stands in another place
    /// since the last decision, some of them more than once. Who waited then and is
    /// not named has not changed.
    pub touched: &'a [TaskId],
    pub tasks: &'a [Task],
    /// The next release (or deadline, where jobs are aborted) of any task. Periodic
    /// tasks make this public knowledge; only DP-Wrap uses it.
    pub next_boundary: Ns,
    /// By task: the earliest release of the job after the one at the head, as the
    /// declared parameters have it (the last release and a period), or its release
    /// where it queues behind that already; `NEVER` for bursts and traces, and for
    /// tasks that have ended.
    pub next_releases: &'a [Ns],
    /// By task: what a job will take, as far as the policy may know it.
    pub estimates: &'a [Estimate],
}

/// The work of a task's next job: the worst case, or the past where times are to be
/// learned from history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimate {
    pub runtime: Ns,
    /// Standard deviation of past jobs, 0 without a past.
    pub spread: Ns,
    /// It will be learned, and nothing was so far.
    pub unseen: bool,
}

impl View<'_> {
    pub fn task(&self, job: &ReadyJob) -> &Task {
        &self.tasks[job.task as usize]
    }

    /// The job at the head of a task, if it has one.
    pub fn job_of(&self, task: TaskId) -> Option<&ReadyJob> {
        self.jobs.get(self.places[task as usize] as usize)
    }

    /// The jobs that run.
    pub fn running_jobs(&self) -> impl Iterator<Item = &ReadyJob> {
        self.running.iter().filter_map(|&task| self.job_of(task))
    }
}

/// Whom to run from now on. At most one entry per core counts; a job that is not
/// named stops running.
#[derive(Clone, Debug)]
pub struct Plan {
    pub(super) run: Vec<(TaskId, CoreId)>,
    pub(super) wake: Ns,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            run: Vec::new(),
            wake: NEVER,
        }
    }
}

impl Plan {
    pub fn clear(&mut self) {
        self.run.clear();
        self.wake = NEVER;
    }

    /// Runs the task's job on whichever core costs the fewest migrations.
    pub fn run(&mut self, task: TaskId) {
        self.run.push((task, NO_CORE));
    }

    pub fn run_on(&mut self, task: TaskId, core: CoreId) {
        self.run.push((task, core));
    }

    pub fn len(&self) -> usize {
        self.run.len()
    }

    pub fn is_empty(&self) -> bool {
        self.run.is_empty()
    }

    pub fn entries(&self) -> &[(TaskId, CoreId)] {
        &self.run
    }

    /// Asks to be consulted again at this time even if nothing happens.
    pub fn wake_at(&mut self, time: Ns) {
        self.wake = self.wake.min(time);
    }

    pub fn wake(&self) -> Ns {
        self.wake
    }
}

/// Something a reward may count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    Completed {
        task: TaskId,
        time: Ns,
        release: Ns,
        deadline: Ns,
        execution: Ns,
    },
    /// The deadline passed with work left.
    Missed {
        task: TaskId,
        time: Ns,
    },
    Migrated {
        task: TaskId,
        time: Ns,
    },
}
