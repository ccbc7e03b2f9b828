//! Who looks at whom, for those who want to see it.

use super::embedding::FirstRows;
use super::Native;
use crate::policy::tokenizer::{Token, TokenSet};

impl Native {
    /// Attention of the first layer, the mean over its heads: row i says how
    /// much of what token i sees is each of the others, their counts included.
    pub fn first_attention(&mut self, set: &TokenSet, cpus: usize) -> Vec<Vec<f32>> {
        let Native { x, q, k, v, .. } = self;
        self.embedding
            .look_up(set.tokens(), FirstRows { x, q, k, v });
        let (n, heads) = (set.distinct(), self.shape.heads);
        let width = self.shape.width / heads;
        let count = |key: usize| match set.tokens()[key] {
            Token::Idle { .. } => cpus.max(1) as f32,
            Token::Job { .. } => set.counts()[key] as f32,
        };
        let mut mean = vec![vec![0.0; n]; n];
        for head in 0..heads {
            let part = head * width..(head + 1) * width;
            for (query, row) in mean.iter_mut().enumerate() {
                let queries = &q.numbers(query)[part.clone()];
                let logits: Vec<f32> = (0..n)
                    .map(|key| {
                        let keys = &k.numbers(key)[part.clone()];
                        let dot: f32 = queries.iter().zip(keys).map(|(q, k)| q * k).sum();
                        dot + count(key).ln()
                    })
                    .collect();
                let most = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                let total: f32 = logits.iter().map(|logit| (logit - most).exp()).sum();
                for (share, logit) in row.iter_mut().zip(&logits) {
                    *share += (logit - most).exp() / total / heads as f32;
                }
            }
        }
        mean
    }
}
