//! Least laxity first, and the same without hopeless jobs.
//!
//! Between jobs of equal laxity the textbook rule switches infinitely often, so
//! laxities are compared at events and once a millisecond, as SimSo does.

use super::{Best, Plan, Policy, View};
use crate::sim::task::Semantics;
use crate::sim::time::{Ns, MS};

const TICK: Ns = MS;

#[derive(Default)]
pub struct Llf {
    drop_hopeless: bool,
    best: Best<(bool, i64)>,
}

impl Llf {
    /// Jobs that can no longer make it only get what nobody else wants.
    pub fn dropping() -> Self {
        Self {
            drop_hopeless: true,
            ..Self::default()
        }
    }
}

impl Policy for Llf {
    fn decide(&mut self, view: &View, plan: &mut Plan) {
        let drop = self.drop_hopeless;
        self.best.run_least_strictly(view, plan, |job| {
            let hopeless = drop && job.is_hopeless(view.now);
            if hopeless && view.options.semantics == Semantics::Abort {
                return None;
            }
            Some((hopeless, job.latest_start()))
        });
        if view.jobs.len() > view.cores {
            plan.wake_at((view.now / TICK + 1) * TICK);
        }
    }
}
