//! Rate monotonic (Liu and Layland 1973): the shortest period first.

use super::{decide_by_key, Key, Plan, Policy, View};

pub struct RateMonotonic;

impl Policy for RateMonotonic {
    fn key(&self) -> Option<Key> {
        Some(Key::Period)
    }

    fn decide(&mut self, view: &View, plan: &mut Plan) {
        decide_by_key(view, plan, Key::Period);
    }
}
