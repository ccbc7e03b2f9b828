//! TempoNet in plain Rust: nothing to install, nothing allocated after the
//! first passes.
//!
//! ```text
//! tokens ──> embedding: x, q, k, v of the first layer, looked up
//!        └─> per layer: attend, out, add & norm, up, down, add & norm; q, k, v of the next
//!              └─> dot: one Q per token
//! ```

#[cfg(target_arch = "x86_64")]
mod amx;
mod attention;
mod bf16;
mod embedding;
mod int8;
mod isa;
mod kernels;
mod lanes;
mod sparse;
#[cfg(test)]
mod tests;
#[cfg(target_arch = "x86_64")]
mod x86;

pub use isa::Isa;

use super::{Shape, Tensor, Weights};
use crate::policy::mitigation::SparsePlan;
use crate::policy::tokenizer::{Token, TokenSet};
use bf16::{Bf16Matrix, Bf16Rows};
use embedding::{Embedding, FirstRows};
use int8::{Int8Matrix, Int8Rows};
use isa::Kernels;
use kernels::{Attention, Matrix, Norm, Rows, Scratch};
use lanes::{padded, Sixteen};

/// What the weights of the linear maps are kept in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Precision {
    Float,
    /// Eight bits; look-ups, attention and norms stay in floats.
    Int8,
    /// Sixteen bits with the range of floats, for CPUs with AMX; the rest as above.
    Bf16,
}

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
    narrow: Narrow,
    scratch: Scratch,
    /// Logarithm of how often each token occurs.
    bias: Vec<f32>,
    out: Vec<f32>,
}

#[derive(Debug, Clone)]
struct Layer {
    /// None in the first layer, where they are looked up.
    projections: Option<[Linear; 3]>,
    out: Linear,
    norm1: Norm,
    up: Linear,
    down: Linear,
    norm2: Norm,
}

/// Rows on their way into a linear map of fewer bits.
#[derive(Debug, Clone, Default)]
struct Narrow {
    int8: Int8Rows,
    bf16: Bf16Rows,
}

#[derive(Debug, Clone)]
enum Linear {
    Float(Matrix),
    Int8(Int8Matrix),
    Bf16(Bf16Matrix),
}

impl Linear {
    fn new(
        precision: Precision,
        inputs: usize,
        values: &[f32],
        bias: &[f32],
        scale: f32,
    ) -> Linear {
        match precision {
            Precision::Float => Linear::Float(Matrix::new(inputs, values, bias, scale)),
            Precision::Int8 => Linear::Int8(Int8Matrix::new(inputs, values, bias, scale)),
            Precision::Bf16 => Linear::Bf16(Bf16Matrix::new(inputs, values, bias, scale)),
        }
    }

    fn apply(&self, kernels: &Kernels, x: &Rows, narrow: &mut Narrow, out: &mut Rows) {
        match self {
            Linear::Float(w) => kernels.linear(x, w, out),
            Linear::Int8(w) => kernels.int8(x, w, &mut narrow.int8, out),
            Linear::Bf16(w) => kernels.bf16(x, w, &mut narrow.bf16, out, false),
        }
    }

    fn apply_relu(&self, kernels: &Kernels, x: &Rows, narrow: &mut Narrow, out: &mut Rows) {
        match self {
            Linear::Float(w) => kernels.linear_relu(x, w, out),
            Linear::Int8(w) => kernels.int8_relu(x, w, &mut narrow.int8, out),
            Linear::Bf16(w) => kernels.bf16(x, w, &mut narrow.bf16, out, true),
        }
    }
}

impl Native {
    /// With the best instructions that this CPU has.
    pub fn new(weights: &Weights, precision: Precision) -> Native {
        Native::with_kernels(weights, precision, Kernels::best())
    }

    /// None if this CPU does not have them.
    pub fn for_isa(weights: &Weights, precision: Precision, isa: Isa) -> Option<Native> {
        Kernels::new(isa).map(|kernels| Native::with_kernels(weights, precision, kernels))
    }

    fn with_kernels(weights: &Weights, precision: Precision, kernels: Kernels) -> Native {
        let shape = *weights.shape();
        let query_scale = 1.0 / ((shape.width / shape.heads) as f32).sqrt();
        let rows = || Rows::new(shape.width);
        Native {
            shape,
            kernels,
            embedding: Embedding::new(weights, query_scale),
            layers: (0..shape.layers)
                .map(|layer| Layer::new(weights, precision, layer, query_scale))
                .collect(),
            head: padded(weights.get(Tensor::Head)),
            head_bias: weights.get(Tensor::HeadBias)[0],
            x: rows(),
            q: rows(),
            k: rows(),
            v: rows(),
            mixed: rows(),
            hidden: Rows::new(shape.hidden),
            narrow: Narrow::default(),
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
                Token::Idle { .. } => cpus.max(1) as f32,
                Token::Job { .. } => count as f32,
            };
            self.bias.push(times.ln());
        }
        self.pass(tokens, None)
    }

    /// One Q per row with the paper's sparse attention: idle first, then the
    /// jobs in order of their deadlines, one row each.
    pub fn forward_sparse(&mut self, tokens: &[Token], cpus: usize, plan: &SparsePlan) -> &[f32] {
        self.bias.clear();
        self.bias.resize(tokens.len(), 0.0);
        if let Some(idle) = self.bias.first_mut() {
            *idle = (cpus.max(1) as f32).ln();
        }
        self.pass(tokens, Some(plan))
    }

    fn pass(&mut self, tokens: &[Token], sparse: Option<&SparsePlan>) -> &[f32] {
        let Native {
            x,
            q,
            k,
            v,
            mixed,
            hidden,
            narrow,
            ..
        } = self;
        self.embedding.look_up(tokens, FirstRows { x, q, k, v });
        let kernels = &self.kernels;
        for layer in &self.layers {
            if let Some(projections) = &layer.projections {
                for (w, to) in projections.iter().zip([&mut *q, &mut *k, &mut *v]) {
                    w.apply(kernels, x, narrow, to);
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
            match sparse {
                None => kernels.attend(&attention, &mut self.scratch, mixed),
                Some(plan) => kernels.attend_sparse(&attention, plan, &mut self.scratch, mixed),
            }
            layer.out.apply(kernels, mixed, narrow, q);
            kernels.add_norm(x, q, &layer.norm1);
            layer.up.apply_relu(kernels, x, narrow, hidden);
            layer.down.apply(kernels, hidden, narrow, q);
            kernels.add_norm(x, q, &layer.norm2);
        }
        kernels.dot(x, &self.head, self.head_bias, &mut self.out);
        &self.out
    }
}

impl Layer {
    fn new(weights: &Weights, precision: Precision, l: usize, query_scale: f32) -> Layer {
        use Tensor::*;
        let shape = *weights.shape();
        let matrix = |matrix, bias, scale| {
            let values = weights.get(matrix);
            Linear::new(precision, matrix.dims(&shape).0, values, bias, scale)
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
