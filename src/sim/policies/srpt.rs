//! Shortest remaining processing time: the best mean response on one core, blind to deadlines.

use super::{Best, Plan, Policy, View};

#[derive(Default)]
pub struct Srpt {
    best: Best<u64>,
}

impl Policy for Srpt {
    fn decide(&mut self, view: &View, plan: &mut Plan) {
        self.best.run_least(view, plan, |job| Some(job.remaining));
    }
}
