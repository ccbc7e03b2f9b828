//! The network with gradients: forward and backward over a batch of contexts.
//!
//! Linear maps go over all rows of the batch at once, attention context by
//! context. What a pass leaves behind for its way back is the [`Tape`].

use super::batch::Batch;
use super::matrix::{add_left_transposed, add_product, add_right_transposed};
use crate::policy::network::{Shape, Tensor, Weights, NORM_EPSILON};
use crate::policy::{Token, Tokenizer};
use std::ops::Range;

/// Where the tensors of a layer lie.
#[derive(Clone, Debug)]
struct LayerPlan {
    query: Range<usize>,
    query_bias: Range<usize>,
    key: Range<usize>,
    value: Range<usize>,
    value_bias: Range<usize>,
    out: Range<usize>,
    out_bias: Range<usize>,
    norm1: NormPlan,
    up: Range<usize>,
    up_bias: Range<usize>,
    down: Range<usize>,
    down_bias: Range<usize>,
    norm2: NormPlan,
}

#[derive(Clone, Debug)]
struct NormPlan {
    gain: Range<usize>,
    bias: Range<usize>,
}

/// The layout of a network; the weights are handed in.
#[derive(Clone, Debug)]
pub struct Net {
    shape: Shape,
    /// Where the rows of the embeddings lie whose sum is a token, by its place in the
    /// vocabulary.
    rows_of: Vec<Vec<usize>>,
    layers: Vec<LayerPlan>,
    head: Range<usize>,
    head_bias: usize,
}

/// Activations of one pass, and room for the way back.
#[derive(Clone, Debug, Default)]
pub struct Tape {
    layers: Vec<LayerTape>,
    /// What leaves the last layer.
    x: Vec<f32>,
    q: Vec<f32>,
    dx: Vec<f32>,
    dy: Vec<f32>,
    dh: Vec<f32>,
    dqkv: [Vec<f32>; 3],
}

#[derive(Clone, Debug, Default)]
struct LayerTape {
    x: Vec<f32>,
    query: Vec<f32>,
    key: Vec<f32>,
    value: Vec<f32>,
    /// Softmax, by context, head, query and key.
    weights: Vec<f32>,
    mixed: Vec<f32>,
    norm1: NormTape,
    x1: Vec<f32>,
    hidden: Vec<f32>,
    norm2: NormTape,
}

#[derive(Clone, Debug, Default)]
struct NormTape {
    /// Normalised rows before gain and bias.
    unit: Vec<f32>,
    /// One over the deviation, by row.
    scale: Vec<f32>,
}

fn zeroed(buffer: &mut Vec<f32>, len: usize) -> &mut [f32] {
    buffer.clear();
    buffer.resize(len, 0.0);
    buffer
}

/// Fills every row with the bias.
fn biased<'a>(buffer: &'a mut Vec<f32>, rows: usize, bias: &[f32]) -> &'a mut [f32] {
    buffer.clear();
    for _ in 0..rows {
        buffer.extend_from_slice(bias);
    }
    buffer
}

fn add_rows(rows: &[f32], sum: &mut [f32]) {
    for row in rows.chunks_exact(sum.len()) {
        add(row, sum);
    }
}

fn add(x: &[f32], to: &mut [f32]) {
    for (to, x) in to.iter_mut().zip(x) {
        *to += x;
    }
}

fn add_scaled(x: &[f32], factor: f32, to: &mut [f32]) {
    for (to, x) in to.iter_mut().zip(x) {
        *to += factor * x;
    }
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

impl NormTape {
    /// Replaces the rows of `x` by their LayerNorm.
    fn forward(&mut self, x: &mut [f32], gain: &[f32], bias: &[f32]) {
        let width = gain.len();
        self.unit.clear();
        self.scale.clear();
        for row in x.chunks_exact_mut(width) {
            let mean = row.iter().sum::<f32>() / width as f32;
            let variance = row.iter().map(|v| (v - mean) * (v - mean)).sum::<f32>() / width as f32;
            let scale = 1.0 / (variance + NORM_EPSILON).sqrt();
            self.scale.push(scale);
            for (i, v) in row.iter_mut().enumerate() {
                let unit = (*v - mean) * scale;
                self.unit.push(unit);
                *v = unit * gain[i] + bias[i];
            }
        }
    }

    /// Replaces the gradient of the output by that of the input.
    fn backward(&self, d: &mut [f32], gain: &[f32], d_gain: &mut [f32], d_bias: &mut [f32]) {
        let width = gain.len();
        let rows = d.chunks_exact_mut(width).zip(self.unit.chunks_exact(width));
        for ((d, unit), &scale) in rows.zip(&self.scale) {
            let (mut sum, mut along) = (0.0, 0.0);
            for i in 0..width {
                d_gain[i] += d[i] * unit[i];
                d_bias[i] += d[i];
                d[i] *= gain[i];
                sum += d[i];
                along += d[i] * unit[i];
            }
            let (mean, along) = (sum / width as f32, along / width as f32);
            for (d, unit) in d.iter_mut().zip(unit) {
                *d = scale * (*d - mean - unit * along);
            }
        }
    }
}

/// A token of a new kind has to say here which rows it is made of.
fn rows_of(token: Token, shape: &Shape) -> Vec<usize> {
    let row = |tensor: Tensor, number: usize| tensor.range(shape).start + number * shape.width;
    match token {
        Token::Idle { load } => vec![row(Tensor::Idle, load.into())],
        Token::Job {
            slack,
            work,
            class,
            doubt,
        } => {
            let (slack, work) = (usize::from(slack), usize::from(work));
            let mut rows = vec![
                row(Tensor::Slack, slack),
                row(Tensor::Work, work),
                row(Tensor::Class, class.into()),
                row(Tensor::Doubt, doubt.into()),
            ];
            rows.extend(
                shape
                    .pairs
                    .then(|| row(Tensor::Pair, slack * shape.work + work)),
            );
            rows
        }
    }
}

impl Net {
    pub fn new(shape: Shape, tokenizer: &Tokenizer) -> Net {
        use Tensor::*;
        assert!(shape.fits(tokenizer), "a network of other tokens");
        let at = |tensor: Tensor| tensor.range(&shape);
        let layers = (0..shape.layers)
            .map(|l| LayerPlan {
                query: at(Query(l)),
                query_bias: at(QueryBias(l)),
                key: at(Key(l)),
                value: at(Value(l)),
                value_bias: at(ValueBias(l)),
                out: at(Out(l)),
                out_bias: at(OutBias(l)),
                norm1: NormPlan {
                    gain: at(Norm1(l)),
                    bias: at(Norm1Bias(l)),
                },
                up: at(Up(l)),
                up_bias: at(UpBias(l)),
                down: at(Down(l)),
                down_bias: at(DownBias(l)),
                norm2: NormPlan {
                    gain: at(Norm2(l)),
                    bias: at(Norm2Bias(l)),
                },
            })
            .collect();
        Net {
            rows_of: (0..tokenizer.vocabulary())
                .map(|index| rows_of(tokenizer.token_at(index), &shape))
                .collect(),
            layers,
            head: at(Head),
            head_bias: at(HeadBias).start,
            shape,
        }
    }

    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Q of every row of the batch.
    pub fn forward<'t>(&self, weights: &Weights, batch: &Batch, tape: &'t mut Tape) -> &'t [f32] {
        let w = weights.values();
        let (d, rows) = (self.shape.width, batch.rows());
        self.embed(w, batch, zeroed(&mut tape.x, rows * d));
        tape.layers
            .resize_with(self.layers.len(), LayerTape::default);
        for (plan, layer) in self.layers.iter().zip(&mut tape.layers) {
            self.layer_forward(w, plan, batch, layer, &mut tape.x);
        }
        let head = &w[self.head.clone()];
        let bias = w[self.head_bias];
        tape.q.clear();
        tape.q
            .extend(tape.x.chunks_exact(d).map(|row| bias + dot(row, head)));
        &tape.q
    }

    fn embed(&self, w: &[f32], batch: &Batch, x: &mut [f32]) {
        let d = self.shape.width;
        for (row, &index) in x.chunks_exact_mut(d).zip(&batch.indices) {
            for &start in &self.rows_of[index as usize] {
                add(&w[start..][..d], row);
            }
        }
    }

    fn layer_forward(
        &self,
        w: &[f32],
        plan: &LayerPlan,
        batch: &Batch,
        tape: &mut LayerTape,
        x: &mut Vec<f32>,
    ) {
        let (d, f) = (self.shape.width, self.shape.hidden);
        let rows = batch.rows();
        let at = |range: &Range<usize>| &w[range.clone()];
        std::mem::swap(&mut tape.x, x);
        let query = biased(&mut tape.query, rows, at(&plan.query_bias));
        add_product(&tape.x, at(&plan.query), query, d, d);
        let key = zeroed(&mut tape.key, rows * d);
        add_product(&tape.x, at(&plan.key), key, d, d);
        let value = biased(&mut tape.value, rows, at(&plan.value_bias));
        add_product(&tape.x, at(&plan.value), value, d, d);
        self.attend(batch, tape);

        let x1 = biased(&mut tape.x1, rows, at(&plan.out_bias));
        add_product(&tape.mixed, at(&plan.out), x1, d, d);
        add(&tape.x, x1);
        tape.norm1
            .forward(x1, at(&plan.norm1.gain), at(&plan.norm1.bias));

        let hidden = biased(&mut tape.hidden, rows, at(&plan.up_bias));
        add_product(&tape.x1, at(&plan.up), hidden, d, f);
        for h in hidden.iter_mut() {
            *h = h.max(0.0);
        }
        let y = biased(x, rows, at(&plan.down_bias));
        add_product(&tape.hidden, at(&plan.down), y, f, d);
        add(&tape.x1, y);
        tape.norm2
            .forward(y, at(&plan.norm2.gain), at(&plan.norm2.bias));
    }

    fn attend(&self, batch: &Batch, tape: &mut LayerTape) {
        let (d, heads) = (self.shape.width, self.shape.heads);
        let per_head = d / heads;
        let scale = 1.0 / (per_head as f32).sqrt();
        let LayerTape {
            query,
            key,
            value,
            weights,
            mixed,
            ..
        } = tape;
        weights.clear();
        let mixed = zeroed(mixed, batch.rows() * d);
        for context in batch.contexts() {
            for head in 0..heads {
                let part = |row: usize| row * d + head * per_head..row * d + (head + 1) * per_head;
                for i in context.clone() {
                    let first = weights.len();
                    let q = &query[part(i)];
                    let logits = context
                        .clone()
                        .map(|j| scale * dot(q, &key[part(j)]) + batch.ln_counts[j]);
                    weights.extend(logits);
                    let row = &mut weights[first..];
                    softmax(row);
                    for (j, &weight) in context.clone().zip(row.iter()) {
                        add_scaled(&value[part(j)], weight, &mut mixed[part(i)]);
                    }
                }
            }
        }
    }

    /// Adds the gradient of Σ dq·Q to `grad`, for the last forward pass.
    pub fn backward(
        &self,
        weights: &Weights,
        batch: &Batch,
        tape: &mut Tape,
        dq: &[f32],
        grad: &mut [f32],
    ) {
        let w = weights.values();
        let d = self.shape.width;
        let mut dx = std::mem::take(&mut tape.dx);
        zeroed(&mut dx, batch.rows() * d);
        for ((row, dx), &dq) in tape.x.chunks_exact(d).zip(dx.chunks_exact_mut(d)).zip(dq) {
            add_scaled(row, dq, &mut grad[self.head.clone()]);
            add_scaled(&w[self.head.clone()], dq, dx);
            grad[self.head_bias] += dq;
        }
        for (at, plan) in self.layers.iter().enumerate().rev() {
            self.layer_backward(w, plan, batch, at, tape, &mut dx, grad);
        }
        for (dx, &index) in dx.chunks_exact(d).zip(&batch.indices) {
            for &start in &self.rows_of[index as usize] {
                add(dx, &mut grad[start..][..d]);
            }
        }
        tape.dx = dx;
    }

    /// Replaces the gradient of what leaves a layer by that of what enters it.
    #[allow(clippy::too_many_arguments)]
    fn layer_backward(
        &self,
        w: &[f32],
        plan: &LayerPlan,
        batch: &Batch,
        at_layer: usize,
        tape: &mut Tape,
        dx: &mut [f32],
        grad: &mut [f32],
    ) {
        let (d, f) = (self.shape.width, self.shape.hidden);
        let rows = batch.rows();
        let at = |range: &Range<usize>| &w[range.clone()];
        let Tape {
            layers,
            dy,
            dh,
            dqkv,
            ..
        } = tape;
        let layer = &layers[at_layer];
        norm_backward(&layer.norm2, dx, w, &plan.norm2, grad);
        add_rows(dx, &mut grad[plan.down_bias.clone()]);
        add_left_transposed(&layer.hidden, dx, &mut grad[plan.down.clone()], f, d);
        let dh = zeroed(dh, rows * f);
        add_right_transposed(dx, at(&plan.down), dh, f, d);
        for (dh, &h) in dh.iter_mut().zip(&layer.hidden) {
            *dh = if h > 0.0 { *dh } else { 0.0 };
        }
        add_rows(dh, &mut grad[plan.up_bias.clone()]);
        add_left_transposed(&layer.x1, dh, &mut grad[plan.up.clone()], d, f);
        add_right_transposed(dh, at(&plan.up), dx, d, f);

        norm_backward(&layer.norm1, dx, w, &plan.norm1, grad);
        add_rows(dx, &mut grad[plan.out_bias.clone()]);
        add_left_transposed(&layer.mixed, dx, &mut grad[plan.out.clone()], d, d);
        let d_mixed = zeroed(dy, rows * d);
        add_right_transposed(dx, at(&plan.out), d_mixed, d, d);
        for part in dqkv.iter_mut() {
            zeroed(part, rows * d);
        }
        self.attend_backward(batch, layer, d_mixed, dqkv);
        let [dq, dk, dv] = dqkv;
        add_rows(dq, &mut grad[plan.query_bias.clone()]);
        add_rows(dv, &mut grad[plan.value_bias.clone()]);
        for (d_part, range) in [(dq, &plan.query), (dk, &plan.key), (dv, &plan.value)] {
            add_left_transposed(&layer.x, d_part, &mut grad[range.clone()], d, d);
            add_right_transposed(d_part, at(range), dx, d, d);
        }
    }

    fn attend_backward(
        &self,
        batch: &Batch,
        tape: &LayerTape,
        d_mixed: &[f32],
        dqkv: &mut [Vec<f32>; 3],
    ) {
        let (d, heads) = (self.shape.width, self.shape.heads);
        let per_head = d / heads;
        let scale = 1.0 / (per_head as f32).sqrt();
        let [dq, dk, dv] = dqkv;
        let mut first = 0;
        let mut d_weights = Vec::new();
        for context in batch.contexts() {
            let keys = context.len();
            for head in 0..heads {
                let part = |row: usize| row * d + head * per_head..row * d + (head + 1) * per_head;
                for i in context.clone() {
                    let weights = &tape.weights[first..first + keys];
                    first += keys;
                    let dm = &d_mixed[part(i)];
                    d_weights.clear();
                    d_weights.extend(context.clone().map(|j| dot(dm, &tape.value[part(j)])));
                    let along = dot(&d_weights, weights);
                    for (n, j) in context.clone().enumerate() {
                        add_scaled(dm, weights[n], &mut dv[part(j)]);
                        let d_logit = scale * weights[n] * (d_weights[n] - along);
                        add_scaled(&tape.key[part(j)], d_logit, &mut dq[part(i)]);
                        add_scaled(&tape.query[part(i)], d_logit, &mut dk[part(j)]);
                    }
                }
            }
        }
    }
}

fn norm_backward(tape: &NormTape, d: &mut [f32], w: &[f32], plan: &NormPlan, grad: &mut [f32]) {
    let width = plan.gain.len();
    // Gain and bias lie side by side.
    debug_assert_eq!(plan.gain.end, plan.bias.start);
    let (d_gain, d_bias) = grad[plan.gain.start..plan.bias.end].split_at_mut(width);
    tape.backward(d, &w[plan.gain.clone()], d_gain, d_bias);
}

fn softmax(logits: &mut [f32]) {
    let most = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut sum = 0.0;
    for logit in logits.iter_mut() {
        *logit = (*logit - most).exp();
        sum += *logit;
    }
    for logit in logits.iter_mut() {
        *logit /= sum;
    }
}

#[cfg(test)]
mod tests;
