//! Online admission after Moore and Hodgson (1968): at every event keep the
//! largest set of ready jobs that can all be on time, then run it.
//!
//! Going through the jobs by deadline, whenever the work so far no longer fits,
//! the longest job is given up. Exact for one core and jobs that are all there;
//! on m cores the work is compared with m · (deadline − now).

use super::{Best, Plan, Policy, View};
use crate::sim::task::Semantics;
use std::collections::BinaryHeap;

/// In which order the admitted run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Deadline,
    Laxity,
}

pub struct MooreHodgson {
    order: Order,
    by_deadline: Vec<(u64, u32, usize)>,
    longest: BinaryHeap<(u64, usize)>,
    admitted: Vec<bool>,
    best: Best<(bool, i64)>,
}

impl MooreHodgson {
    pub fn new(order: Order) -> Self {
        Self {
            order,
            by_deadline: Vec::new(),
            longest: BinaryHeap::new(),
            admitted: Vec::new(),
            best: Best::default(),
        }
    }

    fn admit(&mut self, view: &View) {
        self.by_deadline.clear();
        self.longest.clear();
        self.admitted.clear();
        self.admitted.resize(view.jobs.len(), false);
        for (i, job) in view.jobs.iter().enumerate() {
            if !job.is_hopeless(view.now) {
                self.by_deadline.push((job.deadline, job.task, i));
            }
        }
        self.by_deadline.sort_unstable();
        let mut work = 0;
        for &(deadline, _, i) in &self.by_deadline {
            let remaining = view.jobs[i].remaining;
            work += remaining;
            self.longest.push((remaining, i));
            self.admitted[i] = true;
            if work > view.cores as u64 * (deadline - view.now) {
                if let Some((dropped, j)) = self.longest.pop() {
                    work -= dropped;
                    self.admitted[j] = false;
                }
            }
        }
    }
}

impl Policy for MooreHodgson {
    fn decide(&mut self, view: &View, plan: &mut Plan) {
        self.admit(view);
        let (admitted, order) = (&self.admitted, self.order);
        self.best.run_least_indexed(view, plan, |i, job| {
            if !admitted[i] && view.semantics == Semantics::Abort && job.is_hopeless(view.now) {
                return None;
            }
            let rank = match order {
                Order::Deadline => job.deadline as i64,
                Order::Laxity => job.latest_start(),
            };
            Some((!admitted[i], rank))
        });
        if self.order == Order::Laxity && view.jobs.len() > view.cores {
            plan.wake_at((view.now / crate::sim::time::MS + 1) * crate::sim::time::MS);
        }
    }
}
