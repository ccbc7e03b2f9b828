//! The paper's two answers to bursts: less attention, and a reserve for jobs
//! with long slack.

use super::tokenizer::{Token, TokenSet, Tokenizer};
use serde::{Deserialize, Serialize};

/// p > τ_p starts a burst; it ends when p falls below `leave`. The paper
/// reverts at τ_p itself and then recommends hysteresis; this is it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BurstConfig {
    pub enter: f32,
    pub leave: f32,
}

impl Default for BurstConfig {
    fn default() -> BurstConfig {
        BurstConfig {
            enter: 0.30,
            leave: 0.25,
        }
    }
}

#[derive(Debug, Clone, Default)]
pub struct BurstMonitor {
    config: BurstConfig,
    burst: bool,
}

impl BurstMonitor {
    pub fn new(config: BurstConfig) -> BurstMonitor {
        BurstMonitor {
            config,
            burst: false,
        }
    }

    pub fn is_burst(&self) -> bool {
        self.burst
    }

    /// Takes note of the share p of jobs whose slack is below the resolution Δ.
    pub fn observe(&mut self, p: f32) -> bool {
        self.burst = if self.burst {
            p >= self.config.leave
        } else {
            p > self.config.enter
        };
        self.burst
    }
}

/// The paper's p: share of jobs with s < Δ, late ones included; 0 without jobs.
/// Those are the two lowest slack bins, so the multiset knows.
pub(super) fn share_below_resolution(tokens: &TokenSet) -> f32 {
    let counted = tokens.tokens().iter().zip(tokens.counts());
    let below: u32 = counted
        .filter(|(token, _)| token.slack_level() == Some(0))
        .map(|(_, &count)| count)
        .sum();
    below as f32 / tokens.slots().len().max(1) as f32
}

/// Sizes for block Top-k attention over N tasks: block B = ⌈√N⌉, k scores kept
/// per block, M = ⌈ln N⌉ chunks of C = ⌈N/M⌉ tasks in deadline order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SparsePlan {
    pub block: usize,
    pub keep: usize,
    pub chunks: usize,
    pub chunk: usize,
}

impl SparsePlan {
    const ALPHA_NOMINAL: f64 = 0.10;
    const ALPHA_BURST: f64 = 0.05;

    /// The paper gives k = max(1, ⌊0.1·B⌋) up to N = 100, ⌊log2 B⌋+1 beyond,
    /// and ⌊0.05·B⌋ in a burst. The last is 0 for N ≤ 361, which would keep
    /// nothing at all: at least one score always stays.
    pub fn for_tasks(n: usize, burst: bool) -> SparsePlan {
        let n = n.max(1);
        let block = (n as f64).sqrt().ceil() as usize;
        let share = |alpha: f64| ((alpha * block as f64) as usize).max(1);
        let keep = if burst {
            share(Self::ALPHA_BURST)
        } else if n <= 100 {
            share(Self::ALPHA_NOMINAL)
        } else {
            block.ilog2() as usize + 1
        };
        let chunks = ((n as f64).ln().ceil() as usize).max(1);
        SparsePlan {
            block,
            keep,
            chunks,
            chunk: n.div_ceil(chunks),
        }
    }
}

/// In a burst, jobs in the highest slack bin get a bonus so that short jobs
/// do not crowd them out for ever. The paper adds its "small positive bias" in
/// the encoder; here it is a share of the spread of the scores, so that it
/// means the same for every scorer and needs no retraining.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LongSlackReserve {
    pub share_of_spread: f32,
}

impl Default for LongSlackReserve {
    fn default() -> LongSlackReserve {
        LongSlackReserve {
            share_of_spread: 0.05,
        }
    }
}

impl LongSlackReserve {
    pub(super) fn apply(&self, tokenizer: &Tokenizer, tokens: &TokenSet, scores: &mut [f32]) {
        let finite = || scores[1..].iter().copied().filter(|s| s.is_finite());
        let spread = finite().fold(f32::MIN, f32::max) - finite().fold(f32::MAX, f32::min);
        let bonus = self.share_of_spread * spread;
        if !bonus.is_finite() || bonus <= 0.0 {
            return;
        }
        let reserved = tokenizer.slack_bins() - 1;
        for (job, score) in scores[1..].iter_mut().enumerate() {
            if let Token::Job { slack, .. } = tokens.token_of_job(job) {
                if slack as usize == reserved {
                    *score += bonus;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_starts_above_the_threshold_and_does_not_flicker_around_it() {
        let mut monitor = BurstMonitor::default();
        let seen: Vec<bool> = [0.30, 0.31, 0.29, 0.26, 0.25, 0.24, 0.29, 0.31]
            .map(|p| monitor.observe(p))
            .to_vec();
        assert_eq!(seen, [false, true, true, true, true, false, false, true]);
    }

    #[test]
    fn the_sparse_plan_is_the_papers_and_keeps_at_least_one_score() {
        let plan = SparsePlan::for_tasks(600, false);
        assert_eq!(
            (plan.block, plan.keep, plan.chunks, plan.chunk),
            (25, 5, 7, 86)
        );
        assert_eq!(SparsePlan::for_tasks(600, true).keep, 1);
        for n in 0..2000 {
            let (calm, burst) = (
                SparsePlan::for_tasks(n, false),
                SparsePlan::for_tasks(n, true),
            );
            assert!(1 <= burst.keep && burst.keep <= calm.keep && calm.keep <= calm.block);
            assert!(calm.chunks * calm.chunk >= n);
        }
    }
}
