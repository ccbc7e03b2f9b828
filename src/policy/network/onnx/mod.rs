//! The file a model lives in: ONNX, so that others can run it, with everything
//! we need to know of it inside.

mod graph;
mod read;
mod sparse;
#[cfg(test)]
mod tests;
mod wire;
mod write;

pub use read::read;
pub use write::write;

use super::model::ModelError;
use super::{ShapeError, WeightsError};
use thiserror::Error;
use wire::WireError;

/// Of the metadata; another one cannot be read.
const FORMAT: &str = "1";

/// What a row of the graph is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GraphKind {
    /// A distinct token, with a count.
    Multiset,
    /// A job, as in the paper; idle has a row per CPU.
    Dense,
    /// A job, in order of deadline behind one idle row, with the paper's sparse
    /// attention.
    Sparse,
}

impl GraphKind {
    pub fn name(self) -> &'static str {
        match self {
            GraphKind::Multiset => "multiset",
            GraphKind::Dense => "dense",
            GraphKind::Sparse => "sparse",
        }
    }
}

/// What stands in `metadata_props`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    Format,
    Graph,
    Name,
    /// JSON from here on: bins, sizes, how it was trained, how well it does.
    Tokenizer,
    Shape,
    Training,
    Compliance,
    /// Only where it was fitted.
    Distilled,
}

impl Key {
    const ALL: [Key; 8] = [
        Key::Format,
        Key::Graph,
        Key::Name,
        Key::Tokenizer,
        Key::Shape,
        Key::Training,
        Key::Compliance,
        Key::Distilled,
    ];

    fn name(self) -> &'static str {
        match self {
            Key::Format => "temponet.format",
            Key::Graph => "temponet.graph",
            Key::Name => "temponet.name",
            Key::Tokenizer => "temponet.tokenizer",
            Key::Shape => "temponet.shape",
            Key::Training => "temponet.training",
            Key::Compliance => "temponet.compliance",
            Key::Distilled => "temponet.distilled",
        }
    }
}

/// Why a file is not a model.
#[derive(Debug, Error)]
pub enum OnnxError {
    #[error("it is not an ONNX file: {0}")]
    Wire(#[from] WireError),
    #[error("it is not a TempoNet model: {0} is missing")]
    Missing(String),
    #[error("{0} stands in it twice")]
    Twice(String),
    #[error("its format is '{0}', and this program reads '{FORMAT}'")]
    Format(String),
    #[error("its metadata {0} is too long")]
    LongMetadata(&'static str),
    #[error("its metadata {key} {why}")]
    Metadata { key: &'static str, why: String },
    #[error("its tensor {name} {why}")]
    Tensor { name: String, why: String },
    #[error(transparent)]
    Shape(#[from] ShapeError),
    #[error(transparent)]
    Weights(#[from] WeightsError),
    #[error(transparent)]
    Model(#[from] ModelError),
}
