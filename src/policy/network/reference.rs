//! The network as a textbook writes it, in double precision, for the tests.

use super::{Tensor, Weights, NORM_EPSILON};
use crate::policy::mitigation::SparsePlan;
use crate::policy::tokenizer::Token;

type Matrix = Vec<Vec<f64>>;

pub struct Reference<'a>(&'a Weights);

impl<'a> Reference<'a> {
    pub fn new(weights: &'a Weights) -> Reference<'a> {
        Reference(weights)
    }

    /// Q of idle and of every job, one row per job and one idle row per CPU.
    pub fn dense(&self, jobs: &[Token], cpus: usize) -> Vec<f32> {
        let mut rows = vec![Token::Idle { load: 0 }; cpus];
        rows.extend_from_slice(jobs);
        let counts = vec![1.0; rows.len()];
        self.pass(&rows, &counts, None).split_off(cpus - 1)
    }

    /// The same with ln(count) on the keys.
    pub fn counted(&self, tokens: &[Token], counts: &[u32], cpus: usize) -> Vec<f32> {
        let times = |(&token, &count): (&Token, &u32)| match token {
            Token::Idle { .. } => cpus as f64,
            Token::Job { .. } => count as f64,
        };
        let counts: Vec<f64> = tokens.iter().zip(counts).map(times).collect();
        self.pass(tokens, &counts, None)
    }

    /// Idle, then jobs in order of deadline, each attending as the plan says.
    pub fn sparse(&self, tokens: &[Token], cpus: usize, plan: &SparsePlan) -> Vec<f32> {
        let mut counts = vec![1.0; tokens.len()];
        counts[0] = cpus as f64;
        self.pass(tokens, &counts, Some(plan))
    }

    fn tensor(&self, tensor: Tensor) -> Matrix {
        let (_, columns) = tensor.dims(self.0.shape());
        let row = |row: &[f32]| row.iter().map(|&value| value as f64).collect();
        self.0.get(tensor).chunks(columns).map(row).collect()
    }

    fn pass(&self, tokens: &[Token], counts: &[f64], plan: Option<&SparsePlan>) -> Vec<f32> {
        use Tensor::*;
        let shape = self.0.shape();
        let embed = |tensor, row: usize| self.tensor(tensor).swap_remove(row);
        let mut x: Matrix = tokens
            .iter()
            .map(|&token| match token {
                Token::Idle { load } => embed(Idle, load.into()),
                Token::Job {
                    slack,
                    work,
                    class,
                    doubt,
                } => {
                    let parts = [
                        embed(Slack, slack.into()),
                        embed(Work, work.into()),
                        embed(Class, class.into()),
                        embed(Doubt, doubt.into()),
                    ];
                    let pair = shape
                        .pairs
                        .then(|| embed(Pair, usize::from(slack) * shape.work + usize::from(work)));
                    (0..shape.width)
                        .map(|i| parts.iter().chain(&pair).map(|part| part[i]).sum())
                        .collect()
                }
            })
            .collect();
        for l in 0..shape.layers {
            let linear = |x: &Matrix, matrix, bias: Option<Tensor>| {
                let matrix = self.tensor(matrix);
                let bias = bias.map(|bias| self.tensor(bias).remove(0));
                times(x, &matrix, bias.as_deref())
            };
            let q = linear(&x, Query(l), Some(QueryBias(l)));
            let k = linear(&x, Key(l), None);
            let v = linear(&x, Value(l), Some(ValueBias(l)));
            let mixed = attention(&q, &k, &v, counts, shape.heads, plan);
            let out = linear(&mixed, Out(l), Some(OutBias(l)));
            let norm = |x: &Matrix, y: &Matrix, gain, bias| {
                let (gain, bias) = (self.tensor(gain).remove(0), self.tensor(bias).remove(0));
                add_norm(x, y, &gain, &bias)
            };
            x = norm(&x, &out, Norm1(l), Norm1Bias(l));
            let mut hidden = linear(&x, Up(l), Some(UpBias(l)));
            hidden.iter_mut().flatten().for_each(|h| *h = h.max(0.0));
            let down = linear(&hidden, Down(l), Some(DownBias(l)));
            x = norm(&x, &down, Norm2(l), Norm2Bias(l));
        }
        let bias = self.tensor(HeadBias).remove(0);
        let q = times(&x, &self.tensor(Head), Some(&bias));
        q.into_iter().map(|row| row[0] as f32).collect()
    }
}

fn times(x: &Matrix, w: &Matrix, bias: Option<&[f64]>) -> Matrix {
    let column = |row: &[f64], c: usize| -> f64 {
        let sum: f64 = row.iter().zip(w).map(|(x, w)| x * w[c]).sum();
        sum + bias.map_or(0.0, |bias| bias[c])
    };
    let all = |row: &Vec<f64>| (0..w[0].len()).map(|c| column(row, c)).collect();
    x.iter().map(all).collect()
}

fn attention(
    q: &Matrix,
    k: &Matrix,
    v: &Matrix,
    counts: &[f64],
    heads: usize,
    plan: Option<&SparsePlan>,
) -> Matrix {
    let width = q[0].len() / heads;
    let mut out = vec![vec![0.0; q[0].len()]; q.len()];
    for head in 0..heads {
        let part = head * width..(head + 1) * width;
        for (row, query) in q.iter().enumerate() {
            let logit = |key: &Vec<f64>| -> f64 {
                let products = query[part.clone()].iter().zip(&key[part.clone()]);
                products.map(|(q, k)| q * k).sum::<f64>() / (width as f64).sqrt()
            };
            let weigh = |(key, count): (&Vec<f64>, &f64)| count * logit(key).exp();
            let mut weights: Vec<f64> = k.iter().zip(counts).map(weigh).collect();
            if let Some(plan) = plan {
                drop_small(&mut weights, row, plan);
            }
            let total: f64 = weights.iter().sum();
            for c in part.clone() {
                let mixed = weights.iter().zip(v).map(|(weight, v)| weight * v[c]);
                out[row][c] = mixed.sum::<f64>() / total;
            }
        }
    }
    out
}

/// Row 0 sees all and is seen by all; the others see their own chunk, and of
/// each block of the other chunks the `keep` largest.
fn drop_small(weights: &mut [f64], row: usize, plan: &SparsePlan) {
    if row == 0 {
        return;
    }
    for (chunk, part) in weights[1..].chunks_mut(plan.chunk).enumerate() {
        if chunk == (row - 1) / plan.chunk {
            continue;
        }
        for block in part.chunks_mut(plan.block) {
            let mut ranked = block.to_vec();
            ranked.sort_by(|a, b| b.total_cmp(a));
            let least = ranked[plan.keep.min(ranked.len()) - 1];
            block
                .iter_mut()
                .filter(|w| **w < least)
                .for_each(|w| *w = 0.0);
        }
    }
}

fn add_norm(x: &Matrix, y: &Matrix, gain: &[f64], bias: &[f64]) -> Matrix {
    let row = |(x, y): (&Vec<f64>, &Vec<f64>)| {
        let sum: Vec<f64> = x.iter().zip(y).map(|(x, y)| x + y).collect();
        let width = sum.len() as f64;
        let mean = sum.iter().sum::<f64>() / width;
        let variance = sum.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / width;
        let deviation = (variance + NORM_EPSILON as f64).sqrt();
        let normal = sum.iter().map(|v| (v - mean) / deviation);
        normal
            .zip(gain.iter().zip(bias))
            .map(|(v, (gain, bias))| v * gain + bias)
            .collect()
    };
    x.iter().zip(y).map(row).collect()
}
