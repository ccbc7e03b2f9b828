//! The weights that learn, their optimiser, and the slow copy that acts.

use super::adam::Adam;
use super::batch::{Batch, Tokens};
use super::net::{Net, Tape};
use crate::policy::network::{Shape, Weights};
use crate::policy::Tokenizer;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OptimiserConfig {
    pub rate: f32,
    /// The rate falls linearly to this share of itself over the run.
    pub last_rate: f32,
    /// Norm to which gradients are held.
    pub clip: f32,
    /// Contexts per step.
    pub batch: usize,
    /// Polyak: how much of the slow copy is replaced per step.
    pub follow: f32,
}

impl Default for OptimiserConfig {
    fn default() -> OptimiserConfig {
        OptimiserConfig {
            rate: 1e-3,
            last_rate: 0.05,
            clip: 1.0,
            batch: 256,
            follow: 0.005,
        }
    }
}

impl OptimiserConfig {
    pub fn check(&self) -> Result<(), String> {
        if !(self.rate > 0.0 && self.rate < 1.0) {
            return Err(format!("rate is {}; it must be within 0 and 1", self.rate));
        }
        let follows = self.follow > 0.0 && self.follow <= 1.0;
        if !follows || !(0.0..=1.0).contains(&self.last_rate) {
            return Err("last_rate and follow must be within 0 and 1".into());
        }
        if self.clip.is_nan() || self.clip <= 0.0 {
            return Err(format!("clip is {}; it must be above 0", self.clip));
        }
        if self.batch == 0 {
            return Err("batch is 0; a step needs a context".into());
        }
        Ok(())
    }
}

/// Contexts of one thread's share. Fixed, so that the sums, and with them the
/// weights, do not depend on the number of threads.
const CHUNK: usize = 32;

pub struct Learner {
    net: Net,
    pub weights: Weights,
    /// Polyak average of the weights: the target of temporal differences, the
    /// policy of rollouts, and the model that is saved.
    pub slow: Weights,
    pub adam: Adam,
    pub config: OptimiserConfig,
}

impl Learner {
    pub fn new(shape: Shape, tokenizer: &Tokenizer, seed: u64, config: OptimiserConfig) -> Learner {
        let weights = Weights::seeded(shape, seed);
        Learner {
            net: Net::new(shape, tokenizer),
            adam: Adam::new(weights.values().len()),
            slow: weights.clone(),
            weights,
            config,
        }
    }

    /// Q of every token of every context, under the weights given.
    pub fn q(&self, weights: &Weights, contexts: &[&Tokens]) -> Vec<Vec<f32>> {
        contexts
            .par_chunks(CHUNK)
            .flat_map_iter(|chunk| {
                let mut batch = Batch::default();
                chunk.iter().for_each(|tokens| batch.push(tokens));
                let mut tape = Tape::default();
                let q = self.net.forward(weights, &batch, &mut tape);
                let split: Vec<Vec<f32>> = batch.contexts().map(|rows| q[rows].to_vec()).collect();
                split
            })
            .collect()
    }

    /// One step of descent. `loss` gives the loss of a context, by its number,
    /// from the Q of its tokens, and writes the gradient. The mean loss.
    pub fn step(
        &mut self,
        contexts: &[&Tokens],
        rate: f32,
        loss: impl Fn(usize, &[f32], &mut [f32]) -> f32 + Sync,
    ) -> f32 {
        let (net, weights) = (&self.net, &self.weights);
        let parts: Vec<(f32, Vec<f32>)> = contexts
            .par_chunks(CHUNK)
            .enumerate()
            .map(|(chunk, tokens)| {
                let mut batch = Batch::default();
                tokens.iter().for_each(|tokens| batch.push(tokens));
                let mut tape = Tape::default();
                let q = net.forward(weights, &batch, &mut tape);
                let mut dq = vec![0.0; q.len()];
                let mut sum = 0.0;
                for (i, rows) in batch.contexts().enumerate() {
                    sum += loss(chunk * CHUNK + i, &q[rows.clone()], &mut dq[rows]);
                }
                let mut grad = vec![0.0; weights.values().len()];
                net.backward(weights, &batch, &mut tape, &dq, &mut grad);
                (sum, grad)
            })
            .collect();
        let share = 1.0 / contexts.len().max(1) as f32;
        let mut grad = vec![0.0; self.weights.values().len()];
        let mut sum = 0.0;
        for (loss, part) in &parts {
            sum += loss;
            for (grad, part) in grad.iter_mut().zip(part) {
                *grad += share * part;
            }
        }
        let config = &self.config;
        self.adam
            .step(self.weights.values_mut(), &mut grad, rate, config.clip);
        let slow = self.slow.values_mut().iter_mut();
        for (slow, &fast) in slow.zip(self.weights.values()) {
            *slow += config.follow * (fast - *slow);
        }
        sum * share
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::network::Model;

    fn small() -> Shape {
        Shape::new(&Model::default_tokenizer(), 16, 1, 2, 16).unwrap()
    }

    fn contexts() -> Vec<Tokens> {
        (0..66u32)
            .map(|i| Tokens {
                indices: vec![0, 1 + i % 7, 20 + i % 11],
                counts: vec![1, 1 + i % 3, 1],
            })
            .collect()
    }

    fn fitted(threads: usize, steps: usize) -> (Learner, f32) {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        let config = OptimiserConfig {
            follow: 0.1,
            ..OptimiserConfig::default()
        };
        let mut learner = Learner::new(small(), &Model::default_tokenizer(), 1, config);
        let contexts = contexts();
        let tokens: Vec<&Tokens> = contexts.iter().collect();
        // Slot 1 is worth its count, slot 2 is worth nothing.
        let loss = |i: usize, q: &[f32], dq: &mut [f32]| {
            let wanted = [tokens[i].counts[1] as f32, 0.0];
            (0..2)
                .map(|slot| {
                    let error = q[1 + slot] - wanted[slot];
                    dq[1 + slot] = 2.0 * error;
                    error * error
                })
                .sum()
        };
        let mut last = 0.0;
        pool.install(|| {
            for _ in 0..steps {
                last = learner.step(&tokens, 3e-3, loss);
            }
        });
        (learner, last)
    }

    #[test]
    fn the_weights_do_not_depend_on_the_number_of_threads() {
        assert_eq!(fitted(1, 3).0.weights, fitted(3, 3).0.weights);
    }

    #[test]
    fn a_value_that_depends_on_the_count_is_learned_and_the_slow_copy_follows() {
        let (learner, loss) = fitted(2, 300);
        assert!(loss < 0.02, "{loss}");
        let contexts = contexts();
        let tokens: Vec<&Tokens> = contexts.iter().take(3).collect();
        for (q, tokens) in learner.q(&learner.slow, &tokens).iter().zip(&tokens) {
            assert!((q[1] - tokens.counts[1] as f32).abs() < 0.4, "{q:?}");
        }
    }
}
