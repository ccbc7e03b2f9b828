//! Earliest deadline until zero laxity (Lee 1994): EDF, but a job that must run
//! now or miss goes first. Dominates global EDF.

use super::{Best, Plan, Policy, View};

#[derive(Default)]
pub struct Edzl {
    best: Best<(bool, u64, bool, u64)>,
}

impl Policy for Edzl {
    fn decide(&mut self, view: &View, plan: &mut Plan) {
        self.best.run_least_strictly(view, plan, |job| {
            let urgent = job.slack(view.now) <= 0;
            let deadline = if urgent { 0 } else { job.deadline };
            // Among equals who runs stays, then the order of the queue.
            let queue = if urgent {
                job.queued
            } else {
                u64::from(job.task)
            };
            Some((!urgent, deadline, !job.is_running(), queue))
        });
        // Those who wait from now on; some of them are running still.
        let next = view
            .jobs
            .iter()
            .filter(|job| plan.entries().iter().all(|e| e.0 != job.task))
            .map(|job| job.latest_start())
            .filter(|&at| at > view.now as i64)
            .min();
        if let Some(at) = next {
            plan.wake_at(at as u64);
        }
    }
}
