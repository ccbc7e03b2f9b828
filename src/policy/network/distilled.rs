//! The network as a table: one whole number per slack bin and work bin, for
//! those who have no time to ask it (the kernel, for a job that woke up a
//! microsecond ago).

use crate::policy::scorer::{Context, Scorer};
use crate::policy::tokenizer::{Token, Tokenizer};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Scores by the bins of the model's own tokenizer, the highest first to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DistilledTable {
    slack_bins: usize,
    work_bins: usize,
    /// How it was fitted: on so many decisions, drawn from this seed.
    contexts: usize,
    seed: u64,
    /// Row by row: `scores[slack * work_bins + work]`, slack as tokens count it.
    scores: Vec<i16>,
}

#[derive(Debug, Error, PartialEq, Eq)]
#[error("the distilled table has {given} scores and the bins need {needed}")]
pub struct DistilledError {
    needed: usize,
    given: usize,
}

impl DistilledTable {
    /// `scores` row by row; spread over all that sixteen bits can tell apart.
    pub fn new(
        tokenizer: &Tokenizer,
        scores: &[f32],
        contexts: usize,
        seed: u64,
    ) -> Result<DistilledTable, DistilledError> {
        let low = scores.iter().copied().fold(f32::INFINITY, f32::min);
        let high = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let most = f32::from(i16::MAX);
        let step = if high > low {
            2.0 * most / (high - low)
        } else {
            0.0
        };
        let table = DistilledTable {
            slack_bins: tokenizer.slack_bins(),
            work_bins: tokenizer.work().levels(),
            contexts,
            seed,
            scores: scores
                .iter()
                .map(|score| ((score - low) * step - most).round() as i16)
                .collect(),
        };
        table.check(tokenizer)?;
        Ok(table)
    }

    /// Whether it has a score for each pair of bins, and no more.
    pub fn check(&self, tokenizer: &Tokenizer) -> Result<(), DistilledError> {
        let (slack, work) = (tokenizer.slack_bins(), tokenizer.work().levels());
        let needed = slack * work;
        let fits = (self.slack_bins, self.work_bins) == (slack, work);
        if !fits || self.scores.len() != needed {
            let given = self.scores.len();
            return Err(DistilledError { needed, given });
        }
        Ok(())
    }

    /// Bins of slack, the one for late jobs first.
    pub fn slack_bins(&self) -> usize {
        self.slack_bins
    }

    pub fn work_bins(&self) -> usize {
        self.work_bins
    }

    pub fn contexts(&self) -> usize {
        self.contexts
    }

    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// All scores, row by row.
    pub fn scores(&self) -> &[i16] {
        &self.scores
    }

    /// Of a job; none for idle or where there is no such bin.
    pub fn score(&self, token: Token) -> Option<i16> {
        let Token::Job { slack, work, .. } = token else {
            return None;
        };
        let place = usize::from(slack) * self.work_bins + usize::from(work);
        self.scores.get(place).copied()
    }
}

impl Scorer for DistilledTable {
    fn score(&mut self, context: &Context<'_>, scores: &mut [f32]) {
        scores[0] = f32::NEG_INFINITY;
        for (job, score) in scores[1..].iter_mut().enumerate() {
            let found = DistilledTable::score(self, context.tokens.token_of_job(job));
            *score = found.map_or(f32::NAN, f32::from);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_keep_their_order_and_fill_sixteen_bits() {
        let tokenizer = Tokenizer::default();
        let cells = tokenizer.slack_bins() * tokenizer.work().levels();
        let scores: Vec<f32> = (0..cells).map(|i| ((i * 7) % cells) as f32 - 3.0).collect();
        let table = DistilledTable::new(&tokenizer, &scores, 5, 1).unwrap();
        for pair in 1..cells {
            let was = scores[pair].total_cmp(&scores[pair - 1]);
            assert_eq!(table.scores()[pair].cmp(&table.scores()[pair - 1]), was);
        }
        assert_eq!(table.scores().iter().max(), Some(&i16::MAX));
        let token = Token::Job {
            slack: 2,
            work: 3,
            class: 0,
            doubt: 1,
        };
        let works = tokenizer.work().levels();
        assert_eq!(table.score(token), Some(table.scores()[2 * works + 3]));
        assert_eq!(table.score(Token::Idle { load: 0 }), None);
        DistilledTable::new(&tokenizer, &scores[1..], 5, 1).expect_err("one is missing");
    }
}
