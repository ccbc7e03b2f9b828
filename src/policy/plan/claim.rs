//! What a task asks for, in time from now.

use super::super::cpumask::CpuMask;
use super::super::job::{Situation, Upcoming};
use super::{Term, HORIZON_NS};

/// Of what is declared this much is expected while nothing was seen at work.
const UNSEEN: f64 = 0.9;
/// And at most this much where others were seen: one job shows what it takes, and a task that
/// was given up has none to show.
const UNSEEN_AMONG_SEEN: f64 = 0.7;
/// What was seen of some tasks says little about the least of the others.
const UNSEEN_LEAST: f64 = 0.9;
/// A job's work may be so many deviations below its mean, and the mean of many jobs this
/// part of one.
const LEAST_HEAD: f64 = 2.0;
const LEAST_MEAN: f64 = 0.5;

/// Which work counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doubt {
    /// What is likely.
    Expected,
    /// The least that the work seen so far lets expect.
    Least,
}

#[derive(Debug, Clone, Copy, Default)]
struct Work {
    head: f64,
    job: f64,
}

/// The jobs of a task: the pending one, if there is one, is job 0.
#[derive(Debug, Clone, Copy)]
pub struct Claim {
    pending: bool,
    head_due: f64,
    /// When job 1 is due; it may be in the past where jobs queue behind the pending one.
    first_due: f64,
    pub period: f64,
    expected: Work,
    least: Work,
    pub lane: Option<u16>,
    pub criticality: u8,
    pub kept: bool,
    /// It has a CPU to itself.
    apart: bool,
}

pub fn collect(situation: &Situation<'_>, claims: &mut Vec<Claim>) {
    let ratios = Ratios::of(situation.upcoming);
    claims.clear();
    let all = situation.upcoming.iter();
    claims.extend(all.map(|task| Claim::new(task, situation, &ratios)));
    set_apart(claims, situation.cpus.count());
}

/// A task that can have a CPU to itself is in no other's way, however far behind: all, if they
/// are no more than the CPUs, or one that no other shares its CPU with.
fn set_apart(claims: &mut [Claim], cpus: usize) {
    let (mut asking, mut bound) = (0, 0);
    let (mut taken, mut shared) = (CpuMask::EMPTY, CpuMask::EMPTY);
    for claim in claims.iter().filter(|claim| claim.asks()) {
        asking += 1;
        if let Some(lane) = claim.lane {
            bound += 1;
            if taken.contains(lane) {
                shared.insert(lane);
            }
            taken.insert(lane);
        }
    }
    let all_apart = asking <= cpus && shared.is_empty();
    for claim in claims {
        let alone = |lane| bound == asking && !shared.contains(lane);
        claim.apart = all_apart || claim.lane.is_some_and(alone);
    }
}

/// Work seen per work declared.
struct Ratios {
    expected: f64,
    least: f64,
}

impl Ratios {
    fn of(tasks: &[Upcoming]) -> Ratios {
        let seen = tasks
            .iter()
            .filter(|task| !task.unseen && task.declared_ns > 0);
        let ratio = |task: &Upcoming| task.runtime_ns.max(0) as f64 / task.declared_ns as f64;
        let (mut sum, mut least, mut count) = (0.0, f64::MAX, 0);
        for ratio in seen.map(ratio) {
            sum += ratio;
            least = least.min(ratio);
            count += 1;
        }
        match count {
            0 => Ratios {
                expected: UNSEEN,
                least: 0.0,
            },
            count => Ratios {
                expected: (sum / f64::from(count)).min(UNSEEN_AMONG_SEEN),
                least: UNSEEN_LEAST * least,
            },
        }
    }
}

impl Claim {
    fn new(task: &Upcoming, situation: &Situation<'_>, ratios: &Ratios) -> Claim {
        let now = situation.now_ns;
        let ahead = |at: i64| at.saturating_sub(now) as f64;
        let mean = task.runtime_ns.max(0) as f64;
        let spread = task.spread_ns.max(0) as f64;
        let job = task.pending.map(|at| &situation.jobs[at as usize]);
        let release = match job {
            Some(_) => task.release_ns,
            None => task.release_ns.max(now),
        };
        let left = job.map_or(0.0, |job| job.work_ns() as f64);
        let (head, least_head) = match task.outlived {
            // It goes on for about as long as jobs vary.
            true => (spread, 0.0),
            false => (left, left - LEAST_HEAD * spread),
        };
        let (expected, least) = match task.unseen {
            true => (
                Work {
                    head: head * ratios.expected,
                    job: mean * ratios.expected,
                },
                Work {
                    head: least_head.max(0.0) * ratios.least,
                    job: mean * ratios.least,
                },
            ),
            false => (
                Work { head, job: mean },
                Work {
                    head: least_head.max(0.0),
                    job: (mean - LEAST_MEAN * spread).max(0.0),
                },
            ),
        };
        let cpus = &situation.cpus;
        let lane = match cpus.count() {
            0 | 1 => None,
            _ => task.allowed.and(cpus).single(),
        };
        Claim {
            pending: job.is_some(),
            head_due: job.map_or(0.0, |job| ahead(job.deadline_ns)),
            first_due: ahead(release.saturating_add(task.deadline_ns)),
            period: task.period_ns.max(1) as f64,
            expected,
            least: if task.allowed.intersects(cpus) {
                least
            } else {
                Work::default()
            },
            lane,
            criticality: task.criticality,
            kept: task.standing.kept,
            apart: false,
        }
    }

    fn work(&self, doubt: Doubt) -> &Work {
        match doubt {
            Doubt::Expected => &self.expected,
            Doubt::Least => &self.least,
        }
    }

    /// Does it want anything that another could have?
    pub fn asks(&self) -> bool {
        !self.apart && (self.expected.job > 0.0 || self.expected.head > 0.0)
    }

    pub fn load(&self, doubt: Doubt) -> f64 {
        self.work(doubt).job / self.period
    }

    pub fn cost(&self) -> f64 {
        self.expected.job
    }

    pub fn first_dates(&self) -> [f64; 2] {
        match self.pending {
            true => [self.head_due, self.first_due],
            false => [self.first_due, self.first_due + self.period],
        }
    }

    /// When job `job` is due.
    fn due(&self, job: u32) -> f64 {
        match job {
            0 if self.pending => self.head_due,
            0 => self.first_due,
            job => self.first_due + f64::from(job - 1) * self.period,
        }
    }

    /// The soonest job that it could have on time if nobody else ran.
    pub fn alone(&self, doubt: Doubt) -> Term {
        let work = self.work(doubt);
        if !self.pending || work.head <= self.head_due {
            return Term::OnTime;
        }
        // From which job on: head + n·job ≤ first_due + (n − 1)·period.
        let gain = self.period - work.job;
        let missing = work.head + work.job - self.first_due;
        let more = match gain > 0.0 {
            true => (missing / gain).ceil().max(0.0),
            false => 0.0,
        };
        Term::From(1 + more.min(1e6) as u32)
    }

    /// The last job that a loan may end with.
    pub fn last(&self) -> u32 {
        let jobs = ((HORIZON_NS - self.first_due) / self.period).floor();
        1 + jobs.clamp(0.0, 1e6) as u32
    }

    /// Work due by `at`, if the jobs before `from` are a loan.
    #[inline]
    pub fn due_by(&self, at: f64, from: u32, work: (f64, f64)) -> f64 {
        let (head, job) = work;
        let behind = f64::from(from);
        let loan = if at >= self.due(from) && (self.pending || from > 0) {
            head + behind * job
        } else {
            0.0
        };
        let further = ((at - self.first_due) / self.period).floor() + 1.0 - behind;
        loan + further.max(0.0) * job
    }

    pub fn works(&self, doubt: Doubt) -> (f64, f64) {
        let work = self.work(doubt);
        (work.head, work.job)
    }

    /// Jobs on time within the horizon. A critical one counts for more than all others.
    pub fn promise(&self, term: Term) -> f64 {
        let from = match term {
            Term::GivenUp => return 0.0,
            Term::OnTime => 0,
            Term::From(job) => job,
        };
        let jobs = ((HORIZON_NS - self.due(from)) / self.period).max(0.0) + 1.0;
        jobs * (1.0 + f64::from(self.criticality) * 1e6)
    }

    /// By when the loan is repaid; in the past where there is none.
    pub fn due_ns(&self, term: Term, now_ns: i64) -> i64 {
        match term {
            Term::From(job) => now_ns.saturating_add(self.due(job) as i64),
            Term::OnTime | Term::GivenUp => i64::MIN,
        }
    }
}
