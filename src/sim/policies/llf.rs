//! Least laxity first, and the same without hopeless jobs.
//!
//! Between jobs of equal laxity the textbook rule switches infinitely often, so
//! laxities are compared at events and once a millisecond, as SimSo does.

use super::waiting::{ordered, Hopeless, Ordered, Tie};
use super::{Plan, Policy, View};
use crate::sim::task::TaskSet;
use crate::sim::time::{Ns, MS};

const TICK: Ns = MS;

pub struct Llf(Ordered);

impl Llf {
    pub fn new(hopeless: Hopeless) -> Self {
        Self(Ordered::new(hopeless, Tie::Task))
    }
}

impl Policy for Llf {
    fn start(&mut self, set: &TaskSet, _cores: usize) {
        self.0.start(set);
    }

    fn decide(&mut self, view: &View, plan: &mut Plan) {
        self.0
            .run_least(view, plan, |job| ordered(job.latest_start()));
        if view.jobs.len() > view.cores {
            plan.wake_at((view.now / TICK + 1) * TICK);
        }
    }
}
