//! The network with gradients against the one that runs, and against finite differences.

use super::{Net, Tape};
use crate::policy::network::{Model, Native, Precision, Shape, Tensor, Weights};
use crate::sim::rng::Rng;
use crate::train::batch::{Batch, Tokens};

fn contexts(shape: &Shape, rng: &mut Rng) -> Vec<Tokens> {
    let jobs = shape.slack * shape.work * shape.classes * shape.doubts;
    [1, 4, 9]
        .map(|n| {
            let mut indices: Vec<u32> = (1..n)
                .map(|_| (shape.loads + rng.below(jobs)) as u32)
                .collect();
            indices.sort_unstable();
            indices.dedup();
            indices.insert(0, rng.below(shape.loads) as u32);
            let counts = indices.iter().map(|_| 1 + rng.below(5) as u32).collect();
            Tokens { indices, counts }
        })
        .to_vec()
}

#[test]
fn the_trained_network_is_the_one_that_runs() {
    let tokenizer = Model::default_tokenizer().with_loads(5);
    let shape = Shape::new(&tokenizer, 32, 2, 2, 64).unwrap();
    let shape = shape.with_pairs(true);
    let mut weights = Weights::seeded(shape, 3);
    // Pairs start from nothing.
    let pairs = weights.get_mut(Tensor::Pair).iter_mut().enumerate();
    pairs.for_each(|(i, weight)| *weight = 0.3 * (i as f32).sin());
    let net = Net::new(shape, &tokenizer);
    let mut batch = Batch::default();
    let sets = contexts(&shape, &mut Rng::new(5));
    sets.iter().for_each(|set| batch.push(set));
    let mut tape = Tape::default();
    let q = net.forward(&weights, &batch, &mut tape);
    let mut native = Native::new(&weights, Precision::Float);
    for (set, rows) in sets.iter().zip(batch.contexts()) {
        let tokens: Vec<_> = set
            .indices
            .iter()
            .map(|&index| tokenizer.token_at(index as usize))
            .collect();
        let cpus = set.counts[0] as usize;
        let runs = native.forward_rows(&tokens, &set.counts, cpus);
        for (a, b) in q[rows].iter().zip(runs) {
            assert!((a - b).abs() < 1e-4, "{a} and {b}");
        }
    }
}

#[test]
fn gradients_are_those_of_finite_differences() {
    let tokenizer = Model::default_tokenizer().with_loads(5);
    let shape = Shape::new(&tokenizer, 8, 2, 2, 12).unwrap();
    let shape = shape.with_pairs(true);
    let mut rng = Rng::new(11);
    let mut weights = Weights::seeded(shape, 7);
    // Biases and gains that are not zero and one.
    for value in weights.values_mut() {
        *value += 0.2 * (rng.unit() as f32 - 0.5);
    }
    let net = Net::new(shape, &tokenizer);
    let mut batch = Batch::default();
    contexts(&shape, &mut rng)
        .iter()
        .for_each(|set| batch.push(set));
    let dq: Vec<f32> = (0..batch.rows()).map(|_| rng.unit() as f32 - 0.5).collect();
    let mut tape = Tape::default();
    let loss = |weights: &Weights, tape: &mut Tape| -> f64 {
        let q = net.forward(weights, &batch, tape);
        q.iter().zip(&dq).map(|(&q, &g)| f64::from(q * g)).sum()
    };
    loss(&weights, &mut tape);
    let mut grad = vec![0.0; weights.values().len()];
    net.backward(&weights, &batch, &mut tape, &dq, &mut grad);
    for tensor in Tensor::all(&shape) {
        let range = tensor.range(&shape);
        // The entry with the largest gradient: the others may round to nothing.
        let at = range
            .clone()
            .max_by(|&a, &b| grad[a].abs().total_cmp(&grad[b].abs()));
        for at in at.into_iter().chain([range.start]) {
            let step = 2e-3;
            let mut moved = weights.clone();
            moved.values_mut()[at] += step;
            let above = loss(&moved, &mut tape);
            moved.values_mut()[at] -= 2.0 * step;
            let below = loss(&moved, &mut tape);
            let numeric = (above - below) / f64::from(2.0 * step);
            let error = (numeric - f64::from(grad[at])).abs();
            assert!(
                error < 2e-3 + 0.02 * numeric.abs(),
                "{}: {numeric} and {}",
                tensor.name(),
                grad[at]
            );
        }
    }
}
