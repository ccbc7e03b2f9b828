//! How good the network is by now, on sets that training never sees: fixed,
//! few, one of every kind that the lines are judged on.

use super::env::policy;
use super::lines::{cells, Cell};
use crate::policy::network::{Native, Precision, Weights};
use crate::policy::{ShieldMode, Tokenizer};
use crate::sim::engine::{Record, Sim};
use crate::sim::metrics::Metrics;
use crate::sim::policies::{self, Decided, Policy};
use crate::sim::task::TaskSet;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// Apart from the seeds of training and of evaluation.
const VALIDATION_SEED: u64 = 0x7A11_0000;

pub struct Validation {
    cells: Vec<(Cell, Vec<TaskSet>)>,
    edf_drop: f64,
    mh: f64,
    /// Best classic of every kind, averaged.
    best: f64,
}

/// Mean compliance over all kinds of sets, in percent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Standing {
    pub shielded: f64,
    pub bare: f64,
    pub edf_drop: f64,
    pub mh: f64,
    /// Of the best classic for each kind.
    pub best: f64,
}

impl Standing {
    /// What the best round is chosen by: the shield hides most of the mistakes.
    pub fn score(&self) -> f64 {
        self.shielded + self.bare
    }
}

impl Validation {
    pub fn new(sets: usize) -> Validation {
        let chosen = |cell: &Cell| match cell.line {
            'B' | 'C' => [1.25, 1.3].contains(&cell.load.0),
            'D' => [1.0, 1.4, 1.8].contains(&cell.load.0),
            'E' => cell.load.0 == 1.1,
            _ => false,
        };
        Validation::on(cells().into_iter().filter(chosen), sets)
    }

    /// Runs the classics once.
    fn on(cells: impl Iterator<Item = Cell>, sets: usize) -> Validation {
        let cells: Vec<(Cell, Vec<TaskSet>)> = cells
            .map(|cell| {
                let set = |index| cell.set(VALIDATION_SEED, index);
                let sets = (0..sets as u64).map(set).collect();
                (cell, sets)
            })
            .collect();
        let mut validation = Validation {
            cells,
            edf_drop: 0.0,
            mh: 0.0,
            best: 0.0,
        };
        let classic = |name: &str| {
            let entry = policies::find(name).expect("a policy of ours");
            validation.by_cell(&|| (entry.make)())
        };
        let rivals = [
            "mh",
            "edf-drop",
            "rm",
            "srpt",
            "llf-drop",
            "plain-edf",
            "mh-llf",
        ];
        let by_rival: Vec<Vec<f64>> = rivals.iter().map(|name| classic(name)).collect();
        let best: Vec<f64> = (0..validation.cells.len())
            .map(|cell| by_rival.iter().map(|rival| rival[cell]).fold(0.0, f64::max))
            .collect();
        validation.mh = mean(&by_rival[0]);
        validation.edf_drop = mean(&by_rival[1]);
        validation.best = mean(&best);
        validation
    }

    pub fn standing(&self, weights: &Weights, tokenizer: &Tokenizer) -> Standing {
        let native = Native::new(weights, Precision::Float);
        let of = |shield| {
            let config = policy(tokenizer, shield);
            let make = || {
                let decided = Decided::for_machine(config.clone(), native.clone());
                Box::new(decided) as Box<dyn Policy>
            };
            mean(&self.by_cell(&make))
        };
        Standing {
            shielded: of(ShieldMode::On),
            bare: of(ShieldMode::Off),
            edf_drop: self.edf_drop,
            mh: self.mh,
            best: self.best,
        }
    }

    /// Mean compliance of every cell, in percent.
    fn by_cell(&self, make: &(dyn Fn() -> Box<dyn Policy> + Sync)) -> Vec<f64> {
        let runs: Vec<(usize, &TaskSet)> = self
            .cells
            .iter()
            .enumerate()
            .flat_map(|(cell, (_, sets))| sets.iter().map(move |set| (cell, set)))
            .collect();
        let met: Vec<f64> = runs
            .par_iter()
            .map(|&(cell, set)| {
                let options = self.cells[cell].0.options;
                let mut sim = Sim::new(set, set.cores, options, Record::default());
                sim.run(make().as_mut());
                Metrics::of(&sim.tally, set.cores, set.horizon_ns).compliance
            })
            .collect();
        let mut sums = vec![0.0; self.cells.len()];
        for (&(cell, _), met) in runs.iter().zip(met) {
            sums[cell] += 100.0 * met / self.cells[cell].1.len() as f64;
        }
        sums
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::network::Model;

    #[test]
    fn an_untrained_network_does_worse_than_the_best_classic() {
        let overloaded = |cell: &Cell| cell.line == 'B' && cell.load.0 == 1.5;
        let validation = Validation::on(cells().into_iter().filter(overloaded), 2);
        let (tokenizer, shape) = (Model::default_tokenizer(), Model::default_shape());
        let standing = validation.standing(&Weights::seeded(shape, 1), &tokenizer);
        assert!(standing.bare < standing.best - 5.0, "{standing:?}");
        assert!(standing.edf_drop <= standing.best && standing.mh <= standing.best);
        assert!(standing.shielded > standing.bare, "{standing:?}");
    }
}
