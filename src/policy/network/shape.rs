//! How large a network is.

use crate::policy::tokenizer::{Tokenizer, DOUBT_LEVELS, LOAD_LEVELS, SLACK_LEVELS, WORK_LEVELS};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A model file that asks for more than this is not one of ours.
const MOST_WIDTH: usize = 512;
const MOST_LAYERS: usize = 8;
const MOST_CLASSES: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shape {
    /// d, the width of a row.
    pub width: usize,
    pub layers: usize,
    pub heads: usize,
    /// Width inside the feed-forward blocks.
    pub hidden: usize,
    /// Rows of the embeddings: slack bins (late included), work bins,
    /// criticality classes, levels of doubt, levels of load (one idle row each).
    pub slack: usize,
    pub work: usize,
    pub classes: usize,
    pub doubts: usize,
    #[serde(default = "one")]
    pub loads: usize,
    /// An embedding of slack and work together, on top of those of each.
    #[serde(default)]
    pub pairs: bool,
}

/// Files from before idle said anything of the load.
fn one() -> usize {
    1
}

#[derive(Debug, Error, PartialEq, Eq)]
#[error("{what} of the network is {is}, which is not within {least} to {most}")]
pub struct ShapeError {
    what: &'static str,
    is: usize,
    least: usize,
    most: usize,
}

impl Shape {
    pub fn new(
        tokenizer: &Tokenizer,
        width: usize,
        layers: usize,
        heads: usize,
        hidden: usize,
    ) -> Result<Shape, ShapeError> {
        let shape = Shape {
            width,
            layers,
            heads,
            hidden,
            slack: tokenizer.slack_bins(),
            work: tokenizer.work().levels(),
            classes: tokenizer.classes(),
            doubts: tokenizer.doubts(),
            loads: tokenizer.loads(),
            pairs: false,
        };
        shape.check()?;
        Ok(shape)
    }

    /// With an embedding of slack and work together. A pass costs no more: rows
    /// are looked up anyway.
    pub fn with_pairs(self, pairs: bool) -> Shape {
        Shape { pairs, ..self }
    }

    /// Whether this is a network at all, and one of bearable size.
    pub fn check(&self) -> Result<(), ShapeError> {
        let limits = [
            ("width", self.width, 4, MOST_WIDTH),
            ("number of layers", self.layers, 1, MOST_LAYERS),
            ("number of heads", self.heads, 1, self.width),
            ("hidden width", self.hidden, 1, 4 * MOST_WIDTH),
            (
                "number of slack bins",
                self.slack,
                1 + SLACK_LEVELS.0,
                1 + SLACK_LEVELS.1,
            ),
            (
                "number of work bins",
                self.work,
                WORK_LEVELS.0,
                WORK_LEVELS.1,
            ),
            ("number of classes", self.classes, 1, MOST_CLASSES),
            (
                "number of doubt levels",
                self.doubts,
                DOUBT_LEVELS.0,
                DOUBT_LEVELS.1,
            ),
            (
                "number of load levels",
                self.loads,
                LOAD_LEVELS.0,
                LOAD_LEVELS.1,
            ),
        ];
        for (what, is, least, most) in limits {
            if is < least || is > most {
                return Err(ShapeError {
                    what,
                    is,
                    least,
                    most,
                });
            }
        }
        let rest = self.width % self.heads;
        if rest != 0 {
            let (what, is) = ("remainder of width by heads", rest);
            return Err(ShapeError {
                what,
                is,
                least: 0,
                most: 0,
            });
        }
        Ok(())
    }

    pub fn fits(&self, tokenizer: &Tokenizer) -> bool {
        (self.slack, self.work) == (tokenizer.slack_bins(), tokenizer.work().levels())
            && (self.classes, self.doubts) == (tokenizer.classes(), tokenizer.doubts())
            && self.loads == tokenizer.loads()
    }

    /// Floating-point operations of one pass over so many distinct tokens,
    /// two per multiply-add.
    pub fn flops(&self, tokens: usize) -> usize {
        let (d, f) = (self.width, self.hidden);
        let per_token = 4 * d * d + 2 * d * f + 2 * tokens * d;
        2 * tokens * (self.layers * per_token + d)
    }
}
