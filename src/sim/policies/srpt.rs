//! Shortest remaining processing time: the best mean response on one core, blind to deadlines.

use super::waiting::{Hopeless, Ordered, Tie};
use super::{Plan, Policy, View};
use crate::sim::task::TaskSet;

pub struct Srpt(Ordered);

impl Default for Srpt {
    fn default() -> Self {
        Self(Ordered::new(Hopeless::Keep, Tie::Stay))
    }
}

impl Policy for Srpt {
    fn start(&mut self, set: &TaskSet, _cores: usize) {
        self.0.start(set);
    }

    fn decide(&mut self, view: &View, plan: &mut Plan) {
        self.0.run_least(view, plan, |job| job.remaining);
    }
}
