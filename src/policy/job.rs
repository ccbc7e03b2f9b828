//! What the policy is told: jobs, what is about to be released, and the CPUs
//! to decide for.

use super::cpumask::{CpuId, CpuMask};

/// Time a job can still wait and be on time (the paper's Eq. for s_i(t), also
/// known as laxity). Not the `slack` column of rt-app's logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Slack(pub i64);

impl Slack {
    /// A job with negative slack will be late whatever anybody does.
    pub fn is_hopeless(self) -> bool {
        self.0 < 0
    }
}

/// A runnable job, running or waiting. Its place in the slice is its name.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Job {
    /// Absolute, on the same clock as [`Situation::now_ns`].
    pub deadline_ns: i64,
    /// What it still needs, known or estimated. Zero or less says that the
    /// estimate is used up and the job is not done.
    pub remaining_ns: i64,
    /// How far off that may be: the standard deviation of the task's past
    /// jobs; 0 where the work is known.
    pub spread_ns: i64,
    /// 0 for ordinary work, more for work that matters more.
    pub criticality: u8,
    /// Where it ran last; moving it elsewhere costs the migration price.
    pub last_cpu: Option<CpuId>,
    pub allowed: CpuMask,
}

impl Job {
    #[inline]
    pub fn slack(&self, now_ns: i64) -> Slack {
        Slack(self.latest_start_ns().saturating_sub(now_ns))
    }

    /// The last moment to start it and be on time if nothing interrupts it.
    #[inline]
    pub fn latest_start_ns(&self) -> i64 {
        self.deadline_ns.saturating_sub(self.work_ns())
    }

    /// Remaining work as the tests of this room count it.
    #[inline]
    pub(super) fn work_ns(&self) -> i64 {
        self.remaining_ns.max(0)
    }

    /// How long it would hold a CPU if it got one for `hold_ns`: a completion
    /// is a decision point of its own. A job that has used up its estimate may
    /// hold the CPU to the end.
    #[inline]
    pub(super) fn occupancy_ns(&self, hold_ns: i64) -> i64 {
        match self.work_ns() {
            0 => hold_ns,
            work => work.min(hold_ns),
        }
    }
}

/// A task that will release jobs: what the shield has to keep room for.
/// Give one for every task whose parameters are known, those with a pending
/// job included (then this is its next job).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Upcoming {
    /// The earliest moment of the next release; one in the past means "any
    /// time from now".
    pub release_ns: i64,
    /// Relative deadline.
    pub deadline_ns: i64,
    /// Work per job, at most.
    pub runtime_ns: i64,
    /// Least time between two releases.
    pub period_ns: i64,
    /// Standard deviation of that work; 0 where `runtime_ns` is a bound.
    pub spread_ns: i64,
    /// As of its jobs.
    pub criticality: u8,
    pub allowed: CpuMask,
    /// Its job among the pending, if it has one.
    pub pending: Option<u32>,
    /// Few of its jobs were seen, if any: `runtime_ns` is what was declared.
    pub unseen: bool,
    /// Its pending job has taken longer than estimated, and may end at any moment.
    pub outlived: bool,
    /// What a job was declared to take at most; 0 where nothing was.
    pub declared_ns: i64,
    /// What the last decision said of it. Who asks keeps it, because who asks knows tasks
    /// by more than their place.
    pub standing: Standing,
}

/// What was decided for a task where late jobs go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// Its jobs are to be on time; if not, it gets what is left over.
    pub kept: bool,
    /// It is behind: the jobs due by then will be late, and their work is due then, too.
    /// In the past where nothing is behind.
    pub due_ns: i64,
}

impl Default for Standing {
    fn default() -> Standing {
        Standing {
            kept: true,
            due_ns: i64::MIN,
        }
    }
}

impl Upcoming {
    /// A task of no special importance that may run anywhere and has no pending
    /// job; `work` is relative deadline, runtime and period.
    pub fn new(release_ns: i64, work: (i64, i64, i64)) -> Upcoming {
        let (deadline_ns, runtime_ns, period_ns) = work;
        Upcoming {
            release_ns,
            deadline_ns,
            runtime_ns,
            period_ns,
            spread_ns: 0,
            criticality: 0,
            allowed: CpuMask::ALL,
            pending: None,
            unseen: false,
            outlived: false,
            declared_ns: runtime_ns,
            standing: Standing::default(),
        }
    }

    #[inline]
    pub(super) fn first_deadline_ns(&self, now_ns: i64) -> i64 {
        self.release_ns
            .max(now_ns)
            .saturating_add(self.deadline_ns.max(0))
    }

    #[inline]
    pub(super) fn utilisation(&self) -> f64 {
        self.runtime_ns.max(0) as f64 / self.period_ns.max(1) as f64
    }
}

/// Everything a decision depends on.
#[derive(Debug, Clone, Copy)]
pub struct Situation<'a> {
    /// When the decision takes effect (project it if it will arrive late).
    pub now_ns: i64,
    pub jobs: &'a [Job],
    /// May be empty; what that costs is said in [`super::shield`].
    pub upcoming: &'a [Upcoming],
    /// The CPUs to decide for; m of the paper is their number.
    pub cpus: CpuMask,
    /// Of each of them, the part that jobs with deadlines get while they want all of it.
    pub share: f64,
    /// How long this decision may stand before the next one. Releases and
    /// completions are decision points anyway. On several cores it should not
    /// exceed the smallest slack worth protecting: whoever has less must run.
    pub hold_ns: i64,
}
