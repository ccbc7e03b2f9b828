//! The paper's one-line summary of its network: priority = α/(s̃+1) + β/(c+1),
//! s̃ the slack bin and c the remaining work in milliseconds.

use super::{Best, Plan, Policy, View};
use crate::sim::time::{Ns, MS};

/// Anything that scores a job from its slack and its remaining work; more is sooner.
pub trait Score {
    fn score(&self, slack_ns: i64, remaining_ns: Ns) -> f64;
}

/// α = 0.73 and β = 0.27 are the paper's; it does not print its bins, so these
/// are 64 of 2 ms.
#[derive(Clone, Copy, Debug)]
pub struct DistilledRule {
    pub alpha: f64,
    pub beta: f64,
    pub bin_ns: Ns,
    pub bins: u32,
}

impl Default for DistilledRule {
    fn default() -> Self {
        Self {
            alpha: 0.73,
            beta: 0.27,
            bin_ns: 2 * MS,
            bins: 64,
        }
    }
}

impl Score for DistilledRule {
    fn score(&self, slack_ns: i64, remaining_ns: Ns) -> f64 {
        let bin = (slack_ns.max(0) as u64 / self.bin_ns).min(u64::from(self.bins) - 1);
        let work = remaining_ns as f64 / MS as f64;
        self.alpha / (bin as f64 + 1.0) + self.beta / (work + 1.0)
    }
}

#[derive(Default)]
pub struct Distilled<S = DistilledRule> {
    rule: S,
    best: Best<u64>,
}

impl<S: Score> Distilled<S> {
    pub fn new(rule: S) -> Self {
        Self {
            rule,
            best: Best::default(),
        }
    }
}

impl<S: Score> Policy for Distilled<S> {
    fn decide(&mut self, view: &View, plan: &mut Plan) {
        let rule = &self.rule;
        self.best.run_least(view, plan, |job| {
            let score = rule.score(job.slack(view.now), job.remaining);
            // Scores are positive, so their bits order as they do; the largest first.
            Some(u64::MAX - score.max(0.0).to_bits())
        });
    }
}
