//! What one run amounts to, counted as it happens.

use serde::Serialize;

use super::view::{CoreId, TaskId};
use crate::sim::time::Ns;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fate {
    OnTime,
    Late,
    Aborted,
    /// Still not done when the run ended, its deadline past.
    Unfinished,
}

/// The fate of one judged job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct JobRecord {
    pub task: TaskId,
    pub index: u32,
    pub release: Ns,
    pub deadline: Ns,
    pub finish: Option<Ns>,
    pub fate: Fate,
}

/// A stretch of one job on one core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    pub core: CoreId,
    pub task: TaskId,
    pub index: u32,
    pub start: Ns,
    pub end: Ns,
}

/// Jobs are judged when their deadline lies inside the horizon; the rest are
/// simulated but not counted, so no policy gains by what nobody saw.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    pub judged: u64,
    pub met: u64,
    pub critical_judged: u64,
    pub critical_met: u64,
    pub completed: u64,
    /// Judged jobs that were aborted, or not done when the run ended.
    pub unfinished: u64,
    /// Of those, jobs that would have gone on: they count in `response_sum` with the time
    /// that they had waited by then, or whoever starves its tasks would respond best.
    pub waiting: u64,
    pub response_sum: u128,
    /// Finish less deadline of judged jobs; for a job that was aborted or never
    /// finished, the end of its life less its deadline (a lower bound).
    pub lateness: Vec<i64>,
    pub migrations: u64,
    pub preemptions: u64,
    pub busy: u128,
    /// Releases, completions and aborts: the unit of simulation speed.
    pub job_events: u64,
    pub decisions: u64,
    /// Decisions that arrived for a job that was gone.
    pub stale: u64,
    pub records: Vec<JobRecord>,
    pub segments: Vec<Segment>,
    /// By task, where segments are kept; they add up to the totals above.
    pub moves: Vec<Moves>,
}

/// How often a task's jobs were interrupted, and went on elsewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moves {
    pub preemptions: u64,
    pub migrations: u64,
}

impl Tally {
    /// Of this task, from its first move on.
    pub fn moves_of(&mut self, task: usize) -> &mut Moves {
        if self.moves.len() <= task {
            self.moves.resize(task + 1, Moves::default());
        }
        &mut self.moves[task]
    }

    /// Counts a job whose fate is known: one of a selection, or one that was measured.
    pub fn add(&mut self, job: JobRecord, critical: bool, horizon: Ns) {
        if let Some(finish) = job.finish {
            self.completed += 1;
            self.response_sum += u128::from(finish - job.release);
        }
        self.judge(job, critical, job.finish.unwrap_or(horizon), false);
    }

    pub(super) fn judge(&mut self, job: JobRecord, critical: bool, end: Ns, keep: bool) {
        let met = job.fate == Fate::OnTime;
        self.judged += 1;
        self.met += u64::from(met);
        if critical {
            self.critical_judged += 1;
            self.critical_met += u64::from(met);
        }
        if job.finish.is_none() {
            self.unfinished += 1;
        }
        if job.fate == Fate::Unfinished {
            self.waiting += 1;
            self.response_sum += u128::from(end.saturating_sub(job.release));
        }
        self.lateness.push(end as i64 - job.deadline as i64);
        if keep {
            self.records.push(job);
        }
    }
}
