//! First come, first served: the order of release, never preempted.

use super::{decide_by_key, Key, Plan, Policy, View};

pub struct Fcfs;

impl Policy for Fcfs {
    fn key(&self) -> Option<Key> {
        Some(Key::Release)
    }

    fn decide(&mut self, view: &View, plan: &mut Plan) {
        decide_by_key(view, plan, Key::Release);
    }
}
