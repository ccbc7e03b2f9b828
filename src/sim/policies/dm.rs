//! Deadline monotonic (Leung and Whitehead 1982): the shortest relative deadline first.

use super::{decide_by_key, Key, Plan, Policy, View};

pub struct DeadlineMonotonic;

impl Policy for DeadlineMonotonic {
    fn key(&self) -> Option<Key> {
        Some(Key::RelativeDeadline)
    }

    fn decide(&mut self, view: &View, plan: &mut Plan) {
        decide_by_key(view, plan, Key::RelativeDeadline);
    }
}
