//! TempoNet: a small Transformer over the multiset of tokens, one Q per token.
//!
//! ```text
//! x = idle, or slack[s] + work[w] + class[c] + doubt[u]      one row per distinct token
//! L times, post-norm:
//!   x = LayerNorm(x + softmax(q kᵀ/√(d/H) + ln count) v · wo + bo)
//!   x = LayerNorm(x + relu(x · w1 + b1) · w2 + b2)
//! Q = x · head + bias
//! ```
//!
//! A token that n jobs share stands once, with ln n added to the logit of its
//! key: exactly what n equal rows would have done. The idle token stands once
//! per CPU, which is how the network knows how many CPUs there are for so many
//! jobs.

mod agreement;
mod distilled;
mod init;
mod model;
mod native;
mod onnx;
mod ort;
mod ort_run;
#[cfg(test)]
mod reference;
mod scorer;
mod shape;
mod weights;

pub use agreement::top_m_agreement;
pub use distilled::{DistilledError, DistilledTable};
pub use model::{LoadError, Model, ModelError, Provenance};
pub use native::{Isa, Native, Precision};
pub use onnx::{GraphKind, OnnxError};
pub use ort::{Device, Ort, OrtError};
pub use scorer::NetworkScorer;
pub use shape::{Shape, ShapeError};
pub use weights::{Tensor, Weights, WeightsError};

/// Added to the variance in every LayerNorm.
pub const NORM_EPSILON: f32 = 1e-5;
