//! Rules that cost next to nothing and go on where a rollout has no network yet.

use crate::policy::{Context, Edf, Scorer, Srpt};
use serde::{Deserialize, Serialize};

/// Who goes on after the choice that is tried, before the network can: rules
/// that cost next to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Base {
    Edf,
    Srpt,
    /// Least product of work left and time to the deadline.
    Product,
    /// One of them for every machine.
    Any,
}

impl Base {
    pub fn scorer(self, seed: u64) -> Box<dyn Scorer> {
        match self {
            Base::Edf => Box::new(Edf),
            Base::Srpt => Box::new(Srpt),
            Base::Product => Box::new(Product),
            Base::Any => [Base::Edf, Base::Srpt, Base::Product][(seed % 3) as usize].scorer(seed),
        }
    }
}

struct Product;

impl Scorer for Product {
    fn score(&mut self, context: &Context<'_>, scores: &mut [f32]) {
        let now_ns = context.situation.now_ns;
        scores[0] = f32::NEG_INFINITY;
        for (score, job) in scores[1..].iter_mut().zip(context.situation.jobs) {
            let time = (job.deadline_ns - now_ns).max(1) as f32;
            *score = -time.ln() - (job.remaining_ns.max(1) as f32).ln();
        }
    }
}
