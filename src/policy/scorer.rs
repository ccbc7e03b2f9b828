//! Who should run, as a number per job: the network's place in a decision,
//! and the rules that need no network.

use super::job::{Job, Situation};
use super::mitigation::SparsePlan;
use super::tokenizer::{TokenSet, Tokenizer};
use serde::{Deserialize, Serialize};

/// What a scorer may look at.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    pub situation: &'a Situation<'a>,
    pub tokenizer: &'a Tokenizer,
    pub tokens: &'a TokenSet,
    /// Block size and budget for sparse attention, already scaled down in a burst.
    pub sparsity: SparsePlan,
}

/// Writes one score per action, as the paper's q(t): `scores[0]` is idle,
/// `scores[1 + i]` is job i. Higher is better. NaN is "no opinion" and ranks
/// below every number; jobs that score the same go in deadline order. A scorer
/// that fails therefore leaves NaN everywhere, and plain EDF follows.
pub trait Scorer {
    fn score(&mut self, context: &Context<'_>, scores: &mut [f32]);
}

impl<S: Scorer + ?Sized> Scorer for Box<S> {
    fn score(&mut self, context: &Context<'_>, scores: &mut [f32]) {
        (**self).score(context, scores);
    }
}

/// Earliest deadline first: no opinion on anybody, so the deadline order decides.
#[derive(Debug, Clone, Copy, Default)]
pub struct Edf;

impl Scorer for Edf {
    fn score(&mut self, _: &Context<'_>, scores: &mut [f32]) {
        scores.fill(0.0);
    }
}

/// Shortest remaining work first: the best mean response on one core, blind to
/// deadlines. Under the shield it shows how much response time there is to win.
#[derive(Debug, Clone, Copy, Default)]
pub struct Srpt;

impl Scorer for Srpt {
    fn score(&mut self, context: &Context<'_>, scores: &mut [f32]) {
        scores[0] = f32::NEG_INFINITY;
        for (score, job) in scores[1..].iter_mut().zip(context.situation.jobs) {
            *score = -(job.remaining_ns as f32);
        }
    }
}

/// Remaining work, slack and doubt on one scale, the least first and the hopeless
/// last. Slack counted fully is EDF, not at all SRPT, many times least laxity.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Blend {
    pub slack: f32,
    /// Weight of the spread of the remaining work: whoever may take longer waits.
    pub doubt: f32,
}

impl Blend {
    pub fn urgency(&self, job: &Job, now_ns: i64) -> f32 {
        let slack = job.slack(now_ns);
        let doubt = self.doubt * job.spread_ns as f32;
        let time = job.remaining_ns as f32 + self.slack * slack.0 as f32 + doubt;
        if slack.is_hopeless() {
            -(time + HOPELESS)
        } else {
            -time
        }
    }
}

/// An hour: more than any wait worth comparing.
const HOPELESS: f32 = 3.6e12;

impl Scorer for Blend {
    fn score(&mut self, context: &Context<'_>, scores: &mut [f32]) {
        let Situation { now_ns, jobs, .. } = *context.situation;
        scores[0] = f32::NEG_INFINITY;
        for (score, job) in scores[1..].iter_mut().zip(jobs) {
            *score = self.urgency(job, now_ns);
        }
    }
}

/// The one-line rule the paper distils from its network:
/// α/(s̃+1) + β/(c+1), with s̃ the slack level and c the remaining work in
/// units of `work_unit_ns` (the paper's ticks). Idle scores 0 and so never wins.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DistilledRule {
    pub alpha: f32,
    pub beta: f32,
    pub work_unit_ns: i64,
}

impl Default for DistilledRule {
    /// The paper's weights; its tick is not given, 1 ms suits its 10 to 100 ms tasks.
    fn default() -> DistilledRule {
        DistilledRule {
            alpha: 0.73,
            beta: 0.27,
            work_unit_ns: 1_000_000,
        }
    }
}

impl DistilledRule {
    pub fn priority(&self, slack_level: usize, remaining_ns: i64) -> f32 {
        let work = remaining_ns.max(0) as f32 / self.work_unit_ns.max(1) as f32;
        self.alpha / (slack_level as f32 + 1.0) + self.beta / (work + 1.0)
    }
}

impl Scorer for DistilledRule {
    fn score(&mut self, context: &Context<'_>, scores: &mut [f32]) {
        scores[0] = 0.0;
        for (i, job) in context.situation.jobs.iter().enumerate() {
            let level = context.tokens.token_of_job(i).slack_level();
            scores[1 + i] = self.priority(level.unwrap_or(0), job.remaining_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::CpuMask;

    #[test]
    fn a_blend_goes_from_srpt_over_edf_to_least_laxity_the_hopeless_last() {
        let job = |deadline_ns, remaining_ns| Job {
            deadline_ns,
            remaining_ns,
            spread_ns: 0,
            criticality: 0,
            last_cpu: None,
            allowed: CpuMask::ALL,
        };
        // Shortest, due first, least slack, hopeless.
        let jobs = [job(90, 1), job(40, 20), job(60, 50), job(5, 6)];
        let order = |slack| {
            let blend = Blend { slack, doubt: 0.0 };
            let mut order = [0, 1, 2, 3];
            order.sort_by(|&a, &b| {
                let urgency = |i: usize| blend.urgency(&jobs[i], 0);
                urgency(b).total_cmp(&urgency(a))
            });
            order
        };
        assert_eq!(order(0.0), [0, 1, 2, 3]);
        assert_eq!(order(1.0), [1, 2, 0, 3]);
        assert_eq!(order(100.0), [2, 1, 0, 3]);
        let doubtful = Job {
            spread_ns: 30,
            ..jobs[1]
        };
        let blend = Blend {
            slack: 1.0,
            doubt: 1.0,
        };
        assert!(blend.urgency(&doubtful, 0) < blend.urgency(&jobs[2], 0));
    }

    #[test]
    fn the_distilled_rule_prefers_less_slack_and_less_work() {
        let rule = DistilledRule::default();
        assert!(rule.priority(0, 5_000_000) > rule.priority(1, 5_000_000));
        assert!(rule.priority(3, 1_000_000) > rule.priority(3, 2_000_000));
        assert!((rule.priority(0, 0) - 1.0).abs() < 1e-6);
    }
}
