//! EDF that gives up on jobs that can no longer make it.
//!
//! This alone breaks EDF's domino effect. Where jobs are aborted a hopeless one is
//! not run at all; where they go on it gets what nobody else wants.

use super::{Best, Plan, Policy, View};
use crate::sim::task::Semantics;

#[derive(Default)]
pub struct EdfDrop {
    best: Best<(bool, u64)>,
}

impl Policy for EdfDrop {
    fn decide(&mut self, view: &View, plan: &mut Plan) {
        self.best.run_least(view, plan, |job| {
            let hopeless = job.is_hopeless(view.now);
            if hopeless && view.options.semantics == Semantics::Abort {
                return None;
            }
            Some((hopeless, job.deadline))
        });
    }
}
