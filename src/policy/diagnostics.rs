//! What a policy looks at and what it does, as run-level figures: attention
//! alignment and entropy, agreement between policies, and the state-action
//! heat map.

use super::mapping::Assignment;
use super::tokenizer::{Token, TokenSet, Tokenizer};
use serde::Serialize;

/// |Top_k(attention) ∩ chosen| / min(k, |chosen|) at one step. The paper leaves
/// a step that chose nobody (or k = 0) undefined: `None`, not counted. Equal
/// weights rank by index; NaN ranks last.
pub fn alignment(attention: &[f32], chosen: &[usize], k: usize) -> Option<f64> {
    let most = k.min(chosen.len());
    if most == 0 {
        return None;
    }
    let weight = |i: usize| match attention[i] {
        w if w.is_nan() => f32::NEG_INFINITY,
        w => w,
    };
    // A chosen token is in the top k if fewer than k others come before it.
    let hits = chosen.iter().filter(|&&token| {
        token < attention.len()
            && (0..attention.len())
                .filter(|&other| {
                    weight(other) > weight(token) || weight(other) == weight(token) && other < token
                })
                .count()
                < k
    });
    Some(hits.count() as f64 / most as f64)
}

/// −Σ a·ln a over an attention row, in nats; entries that are not positive
/// numbers carry no mass.
pub fn entropy(attention: &[f32]) -> f64 {
    attention
        .iter()
        .map(|&a| f64::from(a))
        .filter(|&a| a > 0.0 && a.is_finite())
        .map(|a| -a * a.ln())
        .sum()
}

/// Mean of a per-step figure over a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct RunMean {
    sum: f64,
    steps: u64,
}

impl RunMean {
    /// Steps without a figure are passed over.
    pub fn add(&mut self, figure: impl Into<Option<f64>>) {
        if let Some(figure) = figure.into() {
            self.sum += figure;
            self.steps += 1;
        }
    }

    pub fn steps(&self) -> u64 {
        self.steps
    }

    pub fn mean(&self) -> Option<f64> {
        (self.steps > 0).then(|| self.sum / self.steps as f64)
    }
}

/// How often two policies do the same (Hamming agreement over actions). On m
/// cores an action is the set of jobs that run; which core they run on is the
/// mapping's affair, so a step counts |A ∩ B| / max(|A|, |B|), and two idle
/// steps agree.
pub fn agreement(a: &Assignment, b: &Assignment) -> f64 {
    let most = a.running().max(b.running());
    if most == 0 {
        return 1.0;
    }
    let same = a.iter().filter(|&(_, job)| b.cpu_of(job).is_some()).count();
    same as f64 / most as f64
}

/// How often a job in each (slack bin, work bin) was there, and was chosen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HeatMap {
    pub slack_bins: usize,
    pub work_bins: usize,
    /// Row by row: `counts[slack * work_bins + work]`.
    pub seen: Vec<u64>,
    pub chosen: Vec<u64>,
}

impl HeatMap {
    pub fn new(tokenizer: &Tokenizer) -> HeatMap {
        let (slack_bins, work_bins) = (tokenizer.slack_bins(), tokenizer.work().levels());
        HeatMap {
            slack_bins,
            work_bins,
            seen: vec![0; slack_bins * work_bins],
            chosen: vec![0; slack_bins * work_bins],
        }
    }

    pub fn add(&mut self, tokens: &TokenSet, assignment: &Assignment) {
        for (&token, &count) in tokens.tokens().iter().zip(tokens.counts()) {
            if let Some(cell) = self.cell(token) {
                self.seen[cell] += u64::from(count);
            }
        }
        for (_, job) in assignment.iter() {
            if let Some(cell) = self.cell(tokens.token_of_job(job)) {
                self.chosen[cell] += 1;
            }
        }
    }

    /// Probability of being chosen, where such a job was ever seen.
    pub fn probability(&self, slack: usize, work: usize) -> Option<f64> {
        let cell = slack * self.work_bins + work;
        let seen = *self.seen.get(cell)?;
        (seen > 0).then(|| self.chosen[cell] as f64 / seen as f64)
    }

    fn cell(&self, token: Token) -> Option<usize> {
        match token {
            Token::Idle { .. } => None,
            Token::Job { slack, work, .. } => Some(slack as usize * self.work_bins + work as usize),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alignment_counts_the_chosen_among_the_most_attended() {
        let attention = [0.1, 0.4, 0.2, 0.3];
        assert_eq!(alignment(&attention, &[1], 1), Some(1.0));
        assert_eq!(alignment(&attention, &[3], 1), Some(0.0));
        assert_eq!(alignment(&attention, &[1, 2], 2), Some(0.5));
        assert_eq!(alignment(&attention, &[1, 3, 2], 2), Some(1.0));
        assert_eq!(alignment(&attention, &[], 2), None);
        assert_eq!(alignment(&[f32::NAN, 0.5], &[1, 9], 1), Some(1.0));
    }

    #[test]
    fn entropy_is_zero_when_sure_and_ln_n_when_undecided() {
        assert_eq!(entropy(&[0.0, 1.0, 0.0]), 0.0);
        assert!((entropy(&[0.25; 4]) - 4f64.ln()).abs() < 1e-9);
        assert_eq!(entropy(&[f32::NAN, f32::INFINITY, -1.0]), 0.0);
    }

    #[test]
    fn a_run_without_figures_has_no_mean() {
        let mut mean = RunMean::default();
        mean.add(None);
        assert_eq!(mean.mean(), None);
        mean.add(0.5);
        mean.add(1.0);
        assert_eq!(mean.mean(), Some(0.75));
    }
}
