//! Earliest deadline until zero laxity (Lee 1994): EDF, but a job that must run
//! now or miss goes first. Dominates global EDF.
//!
//! A job that is hopeless already when its turn in its task comes (its
//! predecessor was late) has no moment of zero laxity and stays with EDF, as in SimSo.

use super::waiting::{ordered, Watch};
use super::{Best, Plan, Policy, View};
use crate::sim::engine::{MinTree, ReadyJob, TaskId};
use crate::sim::task::TaskSet;
use crate::sim::time::{Ns, NEVER};

pub struct Edzl {
    watch: Watch,
    /// By task, of the waiting ones: deadlines, the order of the queue of the
    /// urgent ones, and when the others come to zero laxity.
    deadlines: MinTree,
    urgent: MinTree,
    latest_starts: MinTree,
    /// The job of each task that was seen last, and whether it had any laxity then.
    seen: Vec<(u32, bool)>,
    best: Best<(Ns, u64)>,
}

impl Default for Edzl {
    fn default() -> Self {
        Self {
            watch: Watch::default(),
            deadlines: MinTree::new(0),
            urgent: MinTree::new(0),
            latest_starts: MinTree::new(0),
            seen: Vec::new(),
            best: Best::default(),
        }
    }
}

/// Among equals a running job stays, then the order of the queue.
const WAITS: u64 = 1 << 63;

impl Edzl {
    fn is_urgent(&self, job: &ReadyJob, now: Ns) -> bool {
        job.slack(now) <= 0 && self.seen[job.task as usize].1
    }

    fn follow(&mut self, view: &View) {
        let Self {
            watch,
            deadlines,
            urgent,
            latest_starts,
            seen,
            ..
        } = self;
        watch.each(view, |task, job| {
            let task = task as usize;
            if let Some(job) = job.filter(|job| seen[task].0 != job.index) {
                seen[task] = (job.index, !job.is_hopeless(view.now));
            }
            let job = job.filter(|job| !job.is_running());
            let latest_start = job.map(|job| ordered(job.latest_start()));
            deadlines.set(task, job.map_or(NEVER, |job| job.deadline));
            urgent.set(task, NEVER);
            latest_starts.set(task, latest_start.unwrap_or(NEVER));
        });
        while latest_starts.min() <= ordered(view.now as i64) {
            let task = latest_starts.argmin();
            latest_starts.set(task, NEVER);
            if let Some(job) = view.job_of(task as TaskId).filter(|_| seen[task].1) {
                deadlines.set(task, NEVER);
                urgent.set(task, job.queued);
            }
        }
    }
}

impl Policy for Edzl {
    fn start(&mut self, set: &TaskSet, _cores: usize) {
        let tree = || MinTree::new(set.tasks.len());
        *self = Self {
            deadlines: tree(),
            urgent: tree(),
            latest_starts: tree(),
            seen: vec![(u32::MAX, false); set.tasks.len()],
            ..Self::default()
        };
    }

    fn decide(&mut self, view: &View, plan: &mut Plan) {
        self.follow(view);
        self.best.clear();
        for job in view.running_jobs() {
            let rank = if self.is_urgent(job, view.now) {
                (0, job.queued)
            } else {
                (job.deadline + 1, job.task.into())
            };
            self.best.offer(view.cores, (rank, false, job.task));
        }
        let watch = &mut self.watch;
        self.best
            .offer_waiting(view, &mut self.urgent, watch, |queued, task| {
                ((0, WAITS | queued), false, task)
            });
        self.best
            .offer_waiting(view, &mut self.deadlines, watch, |deadline, task| {
                ((deadline + 1, WAITS | u64::from(task)), false, task)
            });
        self.best.run(plan);

        // Those that wait from now on; some of them are running still.
        for &task in self.watch.taken() {
            self.latest_starts.set(task as usize, NEVER);
        }
        let stays = |job: &&ReadyJob| plan.entries().iter().any(|e| e.0 == job.task);
        let next = view
            .running_jobs()
            .filter(|job| !stays(job))
            .map(|job| ordered(job.latest_start()))
            .filter(|&at| at > ordered(view.now as i64))
            .fold(self.latest_starts.min(), Ns::min);
        if next != NEVER {
            plan.wake_at(next ^ ordered(0));
        }
    }
}
