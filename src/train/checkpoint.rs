//! A run that can be gone on with: recipe, round, weights, optimiser, learning curve.
//!
//! One file, replaced in one move, so there is never half of one. The replay
//! is not in it: it is most of the memory and fills again within rounds.

use super::adam::Adam;
use super::config::Config;
use super::curve::Curve;
use super::trainer::Trainer;
use crate::draft;
use crate::policy::network::Weights;
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::path::Path;

const FILE: &str = "checkpoint.json";

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    version: u32,
    config: Config,
    round: u32,
    /// Bit patterns: a decimal would have to be trusted to come back the same.
    weights: Vec<u32>,
    slow: Vec<u32>,
    adam: Adam,
    /// Older checkpoints have none.
    #[serde(default)]
    curve: Curve,
}

pub fn save(trainer: &Trainer, curve: &Curve, dir: &Path) -> Result<()> {
    let bits = |weights: &Weights| weights.values().iter().map(|v| v.to_bits()).collect();
    let stored = Stored {
        version: 1,
        config: trainer.config.clone(),
        round: trainer.round,
        weights: bits(&trainer.learner.weights),
        slow: bits(&trainer.learner.slow),
        adam: trainer.learner.adam.clone(),
        curve: curve.clone(),
    };
    let path = dir.join(FILE);
    let write = || -> Result<()> {
        std::fs::create_dir_all(dir)?;
        Ok(draft::replace(&path, &serde_json::to_vec(&stored)?)?)
    };
    write().with_context(|| format!("cannot write {}", path.display()))
}

pub fn load(dir: &Path) -> Result<(Trainer, Curve)> {
    let path = dir.join(FILE);
    let read = || -> Result<(Trainer, Curve)> {
        let stored: Stored = serde_json::from_slice(&std::fs::read(&path)?)?;
        anyhow::ensure!(stored.version == 1, "it is of version {}", stored.version);
        let mut trainer = Trainer::new(stored.config).map_err(anyhow::Error::msg)?;
        let shape = *trainer.learner.weights.shape();
        let weights =
            |bits: Vec<u32>| Weights::new(shape, bits.into_iter().map(f32::from_bits).collect());
        trainer.learner.weights = weights(stored.weights)?;
        trainer.learner.slow = weights(stored.slow)?;
        anyhow::ensure!(
            stored.adam.fits(trainer.learner.weights.values().len()),
            "its optimiser belongs to another network"
        );
        trainer.learner.adam = stored.adam;
        trainer.round = stored.round;
        Ok((trainer, stored.curve))
    };
    read().with_context(|| format!("cannot go on from {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small() -> Config {
        Config {
            rounds: 4,
            machines: 4,
            episode_ms: 300.0,
            warm_rounds: 2,
            ..Config::default()
        }
    }

    #[test]
    fn a_run_goes_on_where_it_stopped() {
        let dir = tempfile::tempdir().unwrap();
        let mut trainer = Trainer::new(small()).unwrap();
        trainer.play_round();
        save(&trainer, &Curve::default(), dir.path()).unwrap();
        let (back, _) = load(dir.path()).unwrap();
        assert_eq!(back.round, 1);
        assert_eq!(back.config, trainer.config);
        assert_eq!(back.learner.weights, trainer.learner.weights);
        assert_eq!(back.learner.slow, trainer.learner.slow);
        assert_eq!(back.learner.adam, trainer.learner.adam);
    }

    #[test]
    fn a_broken_checkpoint_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let missing = format!("{:#}", load(dir.path()).err().unwrap());
        assert!(missing.contains("checkpoint.json"), "{missing}");
        std::fs::write(dir.path().join(FILE), "{}").unwrap();
        assert!(load(dir.path()).is_err());
    }
}
