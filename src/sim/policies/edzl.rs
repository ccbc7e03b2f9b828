//! Earliest deadline until zero laxity (Lee 1994): EDF, but a job that must run
//! now or miss goes first. Dominates global EDF.
//!
//! A job that is hopeless already when its turn in its task comes (its
//! predecessor was late) has no moment of zero laxity and stays with EDF, as in SimSo.

use super::{Best, Plan, Policy, View};
use crate::sim::task::TaskSet;

#[derive(Default)]
pub struct Edzl {
    best: Best<(u64, u64)>,
    /// The job of each task that was seen last, and whether it had any laxity then.
    seen: Vec<(u32, bool)>,
    chosen: Vec<bool>,
}

impl Policy for Edzl {
    fn start(&mut self, set: &TaskSet, _cores: usize) {
        self.seen = vec![(u32::MAX, false); set.tasks.len()];
        self.chosen = vec![false; set.tasks.len()];
    }

    fn decide(&mut self, view: &View, plan: &mut Plan) {
        for job in view.jobs {
            let seen = &mut self.seen[job.task as usize];
            if seen.0 != job.index {
                *seen = (job.index, !job.is_hopeless(view.now));
            }
        }
        let seen = &self.seen;
        self.best.run_least_strictly(view, plan, |job| {
            let urgent = job.slack(view.now) <= 0 && seen[job.task as usize].1;
            let deadline = if urgent { 0 } else { job.deadline + 1 };
            // Among equals who runs stays, then the order of the queue.
            let queue = if urgent {
                job.queued
            } else {
                u64::from(job.task)
            };
            Some((deadline, u64::from(!job.is_running()) << 63 | queue))
        });
        // Those who wait from now on; some of them are running still.
        let chosen = &mut self.chosen;
        plan.entries()
            .iter()
            .for_each(|e| chosen[e.0 as usize] = true);
        let next = view
            .jobs
            .iter()
            .filter(|job| !chosen[job.task as usize])
            .map(|job| job.latest_start())
            .filter(|&at| at > view.now as i64)
            .min();
        plan.entries()
            .iter()
            .for_each(|e| chosen[e.0 as usize] = false);
        if let Some(at) = next {
            plan.wake_at(at as u64);
        }
    }
}
