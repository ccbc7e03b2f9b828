//! Any m of the ready jobs: the floor under every table.

use super::{Best, Plan, Policy, View};
use crate::sim::rng::{child_seed, Rng};
use crate::sim::task::TaskSet;

pub struct Random {
    rng: Rng,
    best: Best<u64>,
}

impl Default for Random {
    fn default() -> Self {
        Self {
            rng: Rng::new(0),
            best: Best::default(),
        }
    }
}

impl Policy for Random {
    fn start(&mut self, set: &TaskSet, _cores: usize) {
        self.rng = Rng::new(child_seed(set.seed, 0x52_41_4e_44));
    }

    fn decide(&mut self, view: &View, plan: &mut Plan) {
        let rng = &mut self.rng;
        self.best.run_least(view, plan, |_| rng.next_u64());
    }
}
