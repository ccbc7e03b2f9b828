//! Online admission after Moore and Hodgson (1968): at every event keep the
//! largest set of ready jobs that can all be on time, then run it.
//!
//! Going through the jobs by deadline, whenever the work so far no longer fits,
//! the longest job is given up. Exact for one core and jobs that are all there;
//! on m cores the work is compared with m · (deadline − now).

use super::{Best, Plan, Policy, View};
use crate::sim::task::{Semantics, TaskSet};
use std::collections::BinaryHeap;

/// In which order the admitted run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Deadline,
    Laxity,
}

pub struct MooreHodgson {
    order: Order,
    /// Deadline, task and place in the view; in order, and nearly so at the next
    /// decision, which is when a stable sort costs next to nothing.
    by_deadline: Vec<(u64, u32, usize)>,
    /// Where each task's job stands in the view; `usize::MAX`: nowhere.
    places: Vec<usize>,
    longest: BinaryHeap<(u64, usize)>,
    admitted: Vec<bool>,
    best: Best<(bool, i64)>,
}

impl MooreHodgson {
    pub fn new(order: Order) -> Self {
        Self {
            order,
            by_deadline: Vec::new(),
            places: Vec::new(),
            longest: BinaryHeap::new(),
            admitted: Vec::new(),
            best: Best::default(),
        }
    }

    fn sort(&mut self, view: &View) {
        self.places.clear();
        self.places.resize(view.tasks.len(), usize::MAX);
        for (i, job) in view.jobs.iter().enumerate() {
            if !job.is_hopeless(view.now) {
                self.places[job.task as usize] = i;
            }
        }
        let places = &mut self.places;
        self.by_deadline.retain_mut(|entry| {
            let place = std::mem::replace(&mut places[entry.1 as usize], usize::MAX);
            if place != usize::MAX {
                *entry = (view.jobs[place].deadline, entry.1, place);
            }
            place != usize::MAX
        });
        for (i, job) in view.jobs.iter().enumerate() {
            if self.places[job.task as usize] == i {
                self.by_deadline.push((job.deadline, job.task, i));
            }
        }
        self.by_deadline.sort();
    }

    fn admit(&mut self, view: &View) {
        self.sort(view);
        self.admitted.clear();
        self.admitted.resize(view.jobs.len(), false);
        self.longest.clear();
        let mut work = 0;
        // The heap is only built once something does not fit.
        let mut tight = false;
        for (n, &(deadline, _, i)) in self.by_deadline.iter().enumerate() {
            let remaining = view.jobs[i].remaining;
            work += remaining;
            self.admitted[i] = true;
            if tight {
                self.longest.push((remaining, i));
            }
            if work <= view.cores as u64 * (deadline - view.now) {
                continue;
            }
            if !tight {
                tight = true;
                let so_far = &self.by_deadline[..=n];
                self.longest
                    .extend(so_far.iter().map(|e| (view.jobs[e.2].remaining, e.2)));
            }
            if let Some((dropped, j)) = self.longest.pop() {
                work -= dropped;
                self.admitted[j] = false;
            }
        }
    }
}

impl Policy for MooreHodgson {
    fn start(&mut self, _set: &TaskSet, _cores: usize) {
        self.by_deadline.clear();
    }

    fn decide(&mut self, view: &View, plan: &mut Plan) {
        self.admit(view);
        let (admitted, order) = (&self.admitted, self.order);
        self.best.run_least_indexed(view, plan, |i, job| {
            if !admitted[i]
                && view.options.semantics == Semantics::Abort
                && job.is_hopeless(view.now)
            {
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
