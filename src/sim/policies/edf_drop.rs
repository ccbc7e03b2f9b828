//! EDF that gives up on jobs that can no longer make it: this alone breaks EDF's
//! domino effect.

use super::waiting::{Hopeless, Ordered, Tie};
use super::{Plan, Policy, View};
use crate::sim::task::TaskSet;

pub struct EdfDrop(Ordered);

impl Default for EdfDrop {
    fn default() -> Self {
        Self(Ordered::new(Hopeless::Drop, Tie::Stay))
    }
}

impl Policy for EdfDrop {
    fn start(&mut self, set: &TaskSet, _cores: usize) {
        self.0.start(set);
    }

    fn decide(&mut self, view: &View, plan: &mut Plan) {
        self.0.run_least(view, plan, |job| job.deadline);
    }
}
