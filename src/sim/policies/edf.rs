//! Earliest deadline first (Liu and Layland 1973): optimal on one core up to U = 1.

use super::{decide_by_key, Key, Plan, Policy, View};

pub struct Edf;

impl Policy for Edf {
    fn key(&self) -> Option<Key> {
        Some(Key::Deadline)
    }

    fn decide(&mut self, view: &View, plan: &mut Plan) {
        decide_by_key(view, plan, Key::Deadline);
    }
}
