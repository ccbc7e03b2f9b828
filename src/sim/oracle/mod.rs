//! What a scheduler that knows the future could meet: the ceiling of every table.
//!
//! * One core: the exact maximum, by dynamic programming (`exact`), when jobs are
//!   aborted and never queue behind each other; otherwise the same number is a bound.
//! * Several cores: a linear program (`lp`, cargo feature of that name), whose
//!   optimum is proven to be at least the true maximum.

mod exact;
#[cfg(feature = "lp")]
mod lp;

use serde::Serialize;

use super::arrivals::JobStream;
use super::task::{Semantics, TaskSet};
use super::time::Ns;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum OracleKind {
    /// No scheduler can do better, and one could do this.
    Exact,
    /// No scheduler can do better.
    Bound,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Best {
    pub kind: OracleKind,
    /// On-time jobs; a bound need not be whole.
    pub met: f64,
    pub judged: usize,
}

impl Best {
    pub fn compliance(&self) -> f64 {
        if self.judged == 0 {
            1.0
        } else {
            self.met / self.judged as f64
        }
    }
}

/// A job that counts: its deadline lies inside the horizon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    pub task: usize,
    pub release: Ns,
    pub deadline: Ns,
    pub work: Ns,
}

/// Every judged job of a set, by release.
pub fn jobs(set: &TaskSet) -> Vec<Job> {
    let mut all = Vec::new();
    for (id, task) in set.tasks.iter().enumerate() {
        let mut stream = JobStream::new(set, id);
        while let Some(job) = stream.next_job(set, task) {
            if job.release >= set.horizon_ns {
                break;
            }
            if job.deadline <= set.horizon_ns {
                all.push(Job {
                    task: id,
                    release: job.release,
                    deadline: job.deadline,
                    work: job.execution,
                });
            }
        }
    }
    all.sort_by_key(|j| (j.release, j.deadline, j.task));
    all
}

/// The judged jobs that a scheduler that knows the future would do on one core where
/// late jobs are aborted, as many as can be; none where that takes too long or is
/// not known.
pub fn chosen(set: &TaskSet, semantics: Semantics, limit: usize) -> Option<Vec<Job>> {
    let jobs = jobs(set);
    let in_turn = set.modes.is_empty() && !jobs_overlap(&jobs);
    let exact = set.cores == 1 && semantics == Semantics::Abort && in_turn;
    exact.then(|| exact::maximum_set(&jobs, limit)).flatten()
}

/// More jobs than this in one busy stretch take the exact method too long.
pub const EXACT_LIMIT: usize = 600;

/// The ceiling of this set, if it can be computed in reasonable time here.
pub fn best(set: &TaskSet, semantics: Semantics) -> Option<Best> {
    let jobs = jobs(set);
    if set.cores == 1 {
        if let Some(met) = exact::maximum(&jobs, EXACT_LIMIT) {
            let in_turn = set.tasks.iter().all(|t| t.deadline_ns <= t.period_ns)
                && set.modes.is_empty()
                && !jobs_overlap(&jobs);
            let exact = semantics == Semantics::Abort && in_turn;
            // Where late jobs go on, dropping one costs its successors too: the
            // maximum is only a bound there, unless nothing need be dropped.
            let exact = exact || (met == jobs.len() && in_turn);
            return Some(Best {
                kind: if exact {
                    OracleKind::Exact
                } else {
                    OracleKind::Bound
                },
                met: met as f64,
                judged: jobs.len(),
            });
        }
    }
    bound(set, semantics, &jobs)
}

/// Two jobs of one task alive at once would have to run in order, which the
/// exact method does not know.
fn jobs_overlap(jobs: &[Job]) -> bool {
    let tasks = jobs.iter().map(|j| j.task).max().map_or(0, |t| t + 1);
    let mut until = vec![0; tasks];
    jobs.iter().any(|job| {
        let overlaps = job.release < until[job.task];
        until[job.task] = job.deadline;
        overlaps
    })
}

#[cfg(feature = "lp")]
fn bound(set: &TaskSet, semantics: Semantics, jobs: &[Job]) -> Option<Best> {
    lp::upper_bound(set, semantics, jobs).map(|met| Best {
        kind: OracleKind::Bound,
        met,
        judged: jobs.len(),
    })
}

#[cfg(not(feature = "lp"))]
fn bound(_set: &TaskSet, _semantics: Semantics, _jobs: &[Job]) -> Option<Best> {
    None
}
