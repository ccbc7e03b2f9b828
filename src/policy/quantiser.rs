//! From a time to the number of its bin: uniform, logarithmic or k-means edges.

use super::kmeans;
use serde::{Deserialize, Serialize};
use thiserror::Error;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scheme {
    Uniform,
    Log,
    Kmeans,
}

#[derive(Debug, Error, PartialEq, Eq)]
pub enum QuantiserError {
    #[error("{levels} levels asked for; between {least} and {most} are possible")]
    Levels {
        levels: usize,
        least: usize,
        most: usize,
    },
    #[error("bin edges must be positive and ascending; edge {index} ({edge_ns} ns) is not")]
    Edges { index: usize, edge_ns: i64 },
    #[error("uniform bins must be equally wide; the one ending at edge {index} is not")]
    NotUniform { index: usize },
    #[error("{distinct} different samples cannot fill {levels} bins")]
    TooFewSamples { distinct: usize, levels: usize },
}

/// Bins 0 to Q−1 between Q−1 edges: a value v falls into the bin whose number
/// is how many edges are ≤ v. For uniform edges Δ, 2Δ, … that is the paper's
/// clip(⌊v/Δ⌋, 0, Q−1).
///
/// Stored (in a model's metadata) with its edges written out, whatever the
/// scheme: the bins of a trained network must not depend on how somebody's
/// libm rounds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Stored", into = "Stored")]
pub struct Quantiser {
    scheme: Scheme,
    edges_ns: Vec<i64>,
}

impl Quantiser {
    pub fn uniform(width_ns: i64, levels: usize) -> Result<Quantiser, QuantiserError> {
        let edges = (1..levels as i64).map(|i| width_ns.saturating_mul(i));
        Quantiser::new(Scheme::Uniform, edges.collect())
    }

    /// Edges in geometric progression from `first_ns` to `last_ns`.
    pub fn log(first_ns: i64, last_ns: i64, levels: usize) -> Result<Quantiser, QuantiserError> {
        for (index, edge_ns, below) in [(0, first_ns, 0), (levels, last_ns, first_ns)] {
            if edge_ns <= below {
                return Err(QuantiserError::Edges { index, edge_ns });
            }
        }
        let steps = levels.saturating_sub(2).max(1) as f64;
        let ratio = (last_ns as f64 / first_ns as f64).powf(1.0 / steps);
        let mut edges: Vec<i64> = Vec::with_capacity(levels);
        for i in 1..levels {
            let exact = first_ns as f64 * ratio.powi(i as i32 - 1);
            // Short ranges with many levels: at least a nanosecond per bin.
            let least = edges.last().map_or(1, |&edge| edge.saturating_add(1));
            edges.push((exact.round() as i64).max(least));
        }
        Quantiser::new(Scheme::Log, edges)
    }

    /// Bins that follow the distribution of the samples. Negative samples are
    /// left out: negative slack has a bin of its own.
    pub fn kmeans(samples_ns: &[i64], levels: usize) -> Result<Quantiser, QuantiserError> {
        let timely: Vec<i64> = samples_ns.iter().copied().filter(|&s| s >= 0).collect();
        Quantiser::new(Scheme::Kmeans, kmeans::borders(&timely, levels)?)
    }

    fn new(scheme: Scheme, edges_ns: Vec<i64>) -> Result<Quantiser, QuantiserError> {
        let mut below = 0;
        for (index, &edge_ns) in edges_ns.iter().enumerate() {
            if edge_ns <= below {
                return Err(QuantiserError::Edges { index, edge_ns });
            }
            if scheme == Scheme::Uniform && edge_ns - below != edges_ns[0] {
                return Err(QuantiserError::NotUniform { index });
            }
            below = edge_ns;
        }
        Ok(Quantiser { scheme, edges_ns })
    }

    /// Q of the paper.
    pub fn levels(&self) -> usize {
        self.edges_ns.len() + 1
    }

    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    pub fn edges_ns(&self) -> &[i64] {
        &self.edges_ns
    }

    /// Bin of a value; anything below the first edge, negative or not, is in bin 0.
    #[inline]
    pub fn bin(&self, value_ns: i64) -> usize {
        match (self.scheme, self.edges_ns.first()) {
            (Scheme::Uniform, Some(&width)) => {
                ((value_ns.max(0) / width) as usize).min(self.edges_ns.len())
            }
            _ => self.edges_ns.partition_point(|&edge| edge <= value_ns),
        }
    }

    pub(super) fn require_levels(&self, least: usize, most: usize) -> Result<(), QuantiserError> {
        let levels = self.levels();
        if (least..=most).contains(&levels) {
            return Ok(());
        }
        Err(QuantiserError::Levels {
            levels,
            least,
            most,
        })
    }
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    scheme: Scheme,
    edges_ns: Vec<i64>,
}

impl TryFrom<Stored> for Quantiser {
    type Error = QuantiserError;

    fn try_from(stored: Stored) -> Result<Quantiser, QuantiserError> {
        Quantiser::new(stored.scheme, stored.edges_ns)
    }
}

impl From<Quantiser> for Stored {
    fn from(quantiser: Quantiser) -> Stored {
        Stored {
            scheme: quantiser.scheme,
            edges_ns: quantiser.edges_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uniform_bins_are_the_papers_clipped_floor() {
        let quantiser = Quantiser::uniform(1000, 8).unwrap();
        for (value, bin) in [
            (i64::MIN, 0),
            (-1, 0),
            (0, 0),
            (999, 0),
            (1000, 1),
            (6999, 6),
            (7000, 7),
            (i64::MAX, 7),
        ] {
            assert_eq!(quantiser.bin(value), bin, "{value}");
        }
    }

    #[test]
    fn log_bins_span_their_range() {
        let quantiser = Quantiser::log(50_000, 2_000_000_000, 64).unwrap();
        assert_eq!(quantiser.levels(), 64);
        assert_eq!(quantiser.edges_ns()[0], 50_000);
        assert_eq!(quantiser.edges_ns()[62], 2_000_000_000);
        assert_eq!(Quantiser::log(1, 20, 256).unwrap().levels(), 256);
    }

    #[test]
    fn a_stored_quantiser_comes_back_the_same() {
        let samples: Vec<i64> = (0..5000).map(|i| i * i).collect();
        for quantiser in [
            Quantiser::uniform(1000, 8).unwrap(),
            Quantiser::log(50_000, 2_000_000_000, 256).unwrap(),
            Quantiser::kmeans(&samples, 128).unwrap(),
        ] {
            let text = serde_json::to_string(&quantiser).unwrap();
            assert_eq!(
                serde_json::from_str::<Quantiser>(&text).unwrap(),
                quantiser,
                "{text}"
            );
        }
    }

    #[test]
    fn edges_that_make_no_sense_are_refused_with_the_reason() {
        let refuse = |text: &str| {
            serde_json::from_str::<Quantiser>(text)
                .unwrap_err()
                .to_string()
        };
        assert!(refuse(r#"{"scheme":"log","edges_ns":[5,5]}"#).contains("edge 1 (5 ns)"));
        assert!(refuse(r#"{"scheme":"uniform","edges_ns":[5,11]}"#).contains("equally wide"));
        assert!(refuse(r#"{"scheme":"log","edges_ns":[0]}"#).contains("positive"));
        assert!(Quantiser::uniform(0, 8).is_err());
        assert!(Quantiser::uniform(i64::MAX, 8).is_err());
        assert!(Quantiser::log(0, 10, 8).is_err());
        assert!(Quantiser::log(10, 10, 8).is_err());
    }
}
