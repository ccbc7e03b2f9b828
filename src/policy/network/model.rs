//! A network with everything that belongs to it: what its tokens mean, and
//! where it comes from.

use super::distilled::{DistilledError, DistilledTable};
use super::onnx::{self, GraphKind, OnnxError};
use super::{Shape, Weights};
use crate::draft;
use crate::policy::quantiser::Quantiser;
use crate::policy::tokenizer::Tokenizer;
use serde_json::Value;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Room for the largest [`Shape`] there may be.
const MOST_BYTES: u64 = 128 << 20;

/// Where a model comes from and how good it is.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Provenance {
    pub name: String,
    /// Configuration, seed and length of the training; null for none.
    pub training: Value,
    /// Measured deadline compliance; null for not measured.
    pub compliance: Value,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    tokenizer: Tokenizer,
    weights: Weights,
    provenance: Provenance,
    distilled: Option<DistilledTable>,
}

#[derive(Debug, Error, PartialEq, Eq)]
pub enum ModelError {
    #[error("the network has not one embedding for each bin of its tokenizer")]
    Tokenizer,
    #[error(transparent)]
    Distilled(#[from] DistilledError),
}

#[derive(Debug, Error)]
pub enum LoadError {
    #[error("cannot read the model {}: {error}", .path.display())]
    Io { path: PathBuf, error: io::Error },
    #[error("cannot use the model {}: it is larger than {} MiB", .path.display(), MOST_BYTES >> 20)]
    TooLarge { path: PathBuf },
    #[error("cannot use the model {}: {error}", .path.display())]
    Onnx { path: PathBuf, error: OnnxError },
}

impl Model {
    pub fn new(
        tokenizer: Tokenizer,
        weights: Weights,
        provenance: Provenance,
    ) -> Result<Model, ModelError> {
        if !weights.shape().fits(&tokenizer) {
            return Err(ModelError::Tokenizer);
        }
        Ok(Model {
            tokenizer,
            weights,
            provenance,
            distilled: None,
        })
    }

    /// 48 slack bins from 0.2 ms to 1 s, 16 work bins from 0.2 to 100 ms, two
    /// classes, four levels of doubt. Coarser ones (32 and 8) lose 1.6 points without
    /// the shield in overload.
    pub fn default_tokenizer() -> Tokenizer {
        let slack = Quantiser::log(200_000, 1_000_000_000, 48).expect("ascending edges");
        let work = Quantiser::log(200_000, 100_000_000, 16).expect("ascending edges");
        Tokenizer::new(slack, work, 2, 4).expect("levels within limits")
    }

    /// Small enough to run beside a scheduler: below 2 MFLOP for 32 tokens.
    pub fn default_shape() -> Shape {
        Shape::new(&Model::default_tokenizer(), 32, 1, 2, 64).expect("sizes within limits")
    }

    /// The paper's encoder, over this tokenizer: d = 128, L = 2, H = 4.
    pub fn paper_shape(tokenizer: &Tokenizer) -> Shape {
        Shape::new(tokenizer, 128, 2, 4, 512).expect("sizes within limits")
    }

    /// The model that comes with this program (see models/README.md).
    pub fn shipped() -> Model {
        Model::from_onnx(include_bytes!("../../../models/temponet.onnx"))
            .expect("the tests read it")
    }

    /// The model in this file, or the shipped one.
    pub fn open(path: Option<&Path>) -> Result<Model, LoadError> {
        path.map_or_else(|| Ok(Model::shipped()), Model::load)
    }

    /// Random weights: for measuring speed, not for scheduling.
    pub fn untrained(tokenizer: Tokenizer, shape: Shape, seed: u64) -> Result<Model, ModelError> {
        let provenance = Provenance {
            name: format!("untrained, seed {seed}"),
            ..Provenance::default()
        };
        Model::new(tokenizer, Weights::seeded(shape, seed), provenance)
    }

    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    pub fn shape(&self) -> &Shape {
        self.weights.shape()
    }

    pub fn weights(&self) -> &Weights {
        &self.weights
    }

    pub fn provenance(&self) -> &Provenance {
        &self.provenance
    }

    /// What is left of it as a table, if that was ever fitted.
    pub fn distilled(&self) -> Option<&DistilledTable> {
        self.distilled.as_ref()
    }

    pub fn with_distilled(self, table: DistilledTable) -> Result<Model, ModelError> {
        table.check(&self.tokenizer)?;
        Ok(Model {
            distilled: Some(table),
            ..self
        })
    }

    pub fn is_trained(&self) -> bool {
        !self.provenance.training.is_null()
    }

    pub fn to_onnx(&self, kind: GraphKind) -> Vec<u8> {
        onnx::write(self, kind)
    }

    pub fn from_onnx(file: &[u8]) -> Result<Model, OnnxError> {
        onnx::read(file)
    }

    /// Writes the multiset graph; there is never half a file under this name.
    pub fn save(&self, path: &Path) -> io::Result<()> {
        draft::replace(path, &self.to_onnx(GraphKind::Multiset))
    }

    pub fn load(path: &Path) -> Result<Model, LoadError> {
        let mut bytes = Vec::new();
        File::open(path)
            .and_then(|file| file.take(MOST_BYTES + 1).read_to_end(&mut bytes))
            .map_err(|error| LoadError::Io {
                path: path.into(),
                error,
            })?;
        if bytes.len() as u64 > MOST_BYTES {
            return Err(LoadError::TooLarge { path: path.into() });
        }
        Model::from_onnx(&bytes).map_err(|error| LoadError::Onnx {
            path: path.into(),
            error,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_network_is_trained_and_small_enough_to_run_beside_a_scheduler() {
        assert!(Model::shipped().is_trained());
        assert!(Model::shipped().distilled().is_some());
        assert!(Model::shipped().shape().flops(32) <= 2_000_000);
        assert!(Model::default_shape().fits(&Model::default_tokenizer()));
    }
}
