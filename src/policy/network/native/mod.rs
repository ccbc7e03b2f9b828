//! TempoNet in plain Rust: nothing to install, nothing allocated after the
//! first passes.
//!
//! ```text
//! tokens ──> embedding: x, q, k, v of the first layer, looked up
//!        └─> per layer: attend, out, add & norm, up, down, add & norm; q, k, v of the next
//!              └─> dot: one Q per token
//! ```

mod embedding;
mod isa;
mod kernels;
mod lanes;
#[cfg(test)]
mod tests;
#[cfg(target_arch = "x86_64")]
mod x86;

pub use isa::Isa;

use super::{Shape, Tensor, Weights};
use crate::policy::tokenizer::{Token, TokenSet};
use embedding::{Embedding, FirstRows};
use isa::Kernels;
use kernels::{Attention, Matrix, Norm, Rows, Scratch};
use lanes::{padded, Sixteen};

/// A network ready to run on this CPU, with its working memory.
#[derive(Debug, Clone)]
pub struct Native {
    shape: Shape,
    kernels: Kernels,
    embedding: Embedding,
    layers: Vec<Layer>,
    head: Vec<Sixteen>,
    head_bias: f32,
    // One row per token.
    x: Rows,
    q: Rows,
    k: Rows,
    v: Rows,
    mixed: Rows,
    hidden: Rows,
    scratch: Scratch,
    /// Logarithm of how often each token occurs.
    bias: Vec<f32>,
    out: Vec<f32>,
}

#[derive(Debug, Clone)]
struct Layer {
    /// None in the first layer, where they are looked up.
    projections: Option<[Matrix; 3]>,
    out: Matrix,
    norm1: Norm,
    up: Matrix,
    down: Matrix,
    norm2: Norm,
}

impl Native {
    /// With the best instructions that this CPU has.
    pub fn new(weights: &Weights) -> Native {
        Native::with_kernels(weights, Kernels::best())
    }

    /// None if this CPU does not have them.
    pub fn for_isa(weights: &Weights, isa: Isa) -> Option<Native> {
        Kernels::new(isa).map(|kernels| Native::with_kernels(weights, kernels))
    }

    fn with_kernels(weights: &Weights, kernels: Kernels) -> Native {
        let shape = *weights.shape();
        let query_scale = 1.0 / ((shape.width / shape.heads) as f32).sqrt();
        let rows = || Rows::new(shape.width);
        Native {
            shape,
            kernels,
            embedding: Embedding::new(weights, query_scale),
            layers: (0..shape.layers)
                .map(|layer| Layer::new(weights, layer, query_scale))
                .collect(),
            head: padded(weights.get(Tensor::Head)),
            head_bias: weights.get(Tensor::HeadBias)[0],
            x: rows(),
            q: rows(),
            k: rows(),
            v: rows(),
            mixed: rows(),
            hidden: Rows::new(shape.hidden),
            scratch: Scratch::default(),
            bias: Vec::new(),
            out: Vec::new(),
        }
    }

    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    pub fn isa(&self) -> Isa {
        self.kernels.isa()
    }

    /// One Q per distinct token, idle first.
    pub fn forward(&mut self, set: &TokenSet, cpus: usize) -> &[f32] {
        self.forward_rows(set.tokens(), set.counts(), cpus)
    }

    /// One Q per row, of which row i stands for `counts[i]` equal ones; idle
    /// stands for one per CPU, whatever its count.
    pub fn forward_rows(&mut self, tokens: &[Token], counts: &[u32], cpus: usize) -> &[f32] {
        assert_eq!(tokens.len(), counts.len());
        self.bias.clear();
        for (&token, &count) in tokens.iter().zip(counts) {
            let times = match token {
                Token::Idle => cpus.max(1) as f32,
                Token::Job { .. } => count as f32,
            };
            self.bias.push(times.ln());
        }
        let Native {
            x,
            q,
            k,
            v,
            mixed,
            hidden,
            ..
        } = self;
        self.embedding.look_up(tokens, FirstRows { x, q, k, v });
        let kernels = &self.kernels;
        for layer in &self.layers {
            if let Some(projections) = &layer.projections {
                for (w, to) in projections.iter().zip([&mut *q, &mut *k, &mut *v]) {
                    kernels.linear(x, w, to);
                }
            }
            let attention = Attention {
                q,
                k,
                v,
                bias: &self.bias,
                heads: self.shape.heads,
                width: self.shape.width / self.shape.heads,
            };
            kernels.attend(&attention, &mut self.scratch, mixed);
            kernels.linear(mixed, &layer.out, q);
            kernels.add_norm(x, q, &layer.norm1);
            kernels.linear_relu(x, &layer.up, hidden);
            kernels.linear(hidden, &layer.down, q);
            kernels.add_norm(x, q, &layer.norm2);
        }
        kernels.dot(x, &self.head, self.head_bias, &mut self.out);
        &self.out
    }
}

impl Layer {
    fn new(weights: &Weights, l: usize, query_scale: f32) -> Layer {
        use Tensor::*;
        let shape = *weights.shape();
        let matrix = |matrix, bias, scale| {
            let values = weights.get(matrix);
            Matrix::new(matrix.dims(&shape).0, values, bias, scale)
        };
        let get = |tensor| weights.get(tensor);
        let no_bias = vec![0.0; shape.width];
        let projections = (l > 0).then(|| {
            [
                matrix(Query(l), get(QueryBias(l)), query_scale),
                matrix(Key(l), &no_bias, 1.0),
                matrix(Value(l), get(ValueBias(l)), 1.0),
            ]
        });
        Layer {
            projections,
            out: matrix(Out(l), get(OutBias(l)), 1.0),
            norm1: Norm::new(get(Norm1(l)), get(Norm1Bias(l))),
            up: matrix(Up(l), get(UpBias(l)), 1.0),
            down: matrix(Down(l), get(DownBias(l)), 1.0),
            norm2: Norm::new(get(Norm2(l)), get(Norm2Bias(l))),
        }
    }
}
