//! The lines a model worth shipping must hold, as cells: a workload at a load,
//! on a machine, with the rivals that meet the same sets.

use crate::sim::compare::{self, Comparison, Contestant};
use crate::sim::engine::{Knowledge, Options};
use crate::sim::policies::{self, Policy};
use crate::sim::task::{Execution, Semantics, Task, TaskSet};
use crate::sim::time::{Ns, SECOND};
use crate::sim::workload::{self, Params};

/// Seeds of the evaluation; training draws from others.
pub const EVALUATION_SEED: u64 = 0x0DD5_EED5;

#[derive(Clone, Debug)]
pub struct Cell {
    /// A to F.
    pub line: char,
    /// Cells that are averaged together have one family.
    pub family: &'static str,
    pub load: (f64, f64),
    pub workload: &'static str,
    pub tasks: Option<usize>,
    pub execution: Option<Execution>,
    /// Where the workload's own is too short to tell.
    pub horizon_ns: Option<Ns>,
    pub options: Options,
    pub with_oracle: bool,
    pub rivals: &'static [&'static str],
}

/// All that make sense on one core.
const ONE_CORE: &[&str] = &[
    "mh",
    "edf-drop",
    "plain-edf",
    "rm",
    "dm",
    "llf-drop",
    "srpt",
    "dover",
    "distilled",
];
/// And on several.
const MANY_CORES: &[&str] = &[
    "mh",
    "mh-llf",
    "llf-drop",
    "edf-drop",
    "plain-edf",
    "rm",
    "srpt",
    "edzl",
    "distilled",
];

const OVERLOADS: [f64; 5] = [1.1, 1.2, 1.3, 1.4, 1.5];
const HIDDEN_LOADS: [f64; 6] = [0.85, 1.0, 1.2, 1.4, 1.6, 1.8];

pub fn cells() -> Vec<Cell> {
    let cell = |line, family, workload, load: f64, semantics| Cell {
        line,
        family,
        load: (load, load),
        workload,
        tasks: None,
        execution: None,
        horizon_ns: None,
        options: Options::new(semantics),
        with_oracle: false,
        rivals: ONE_CORE,
    };
    let mut cells = vec![Cell {
        load: (0.6, 1.0),
        rivals: &["plain-edf", "srpt"],
        ..cell('A', "five tasks", "random5", 0.0, Semantics::Continue)
    }];
    for load in [1.1, 1.25, 1.5, 1.75, 2.0] {
        cells.push(Cell {
            with_oracle: true,
            rivals: &["mh", "edf-drop"],
            ..cell('B', "40/60/100", "standard", load, Semantics::Abort)
        });
    }
    for load in OVERLOADS {
        cells.push(Cell {
            with_oracle: true,
            // As long as the optimum can be computed exactly.
            horizon_ns: Some(2 * SECOND),
            rivals: &["mh", "edf-drop"],
            ..cell('B', "five tasks", "random5", load, Semantics::Abort)
        });
    }
    for (family, workload) in [("40/60/100", "standard"), ("five tasks", "random5")] {
        for load in [1.1, 1.2, 1.25, 1.3, 1.4, 1.5] {
            cells.push(cell('C', family, workload, load, Semantics::Continue));
        }
    }
    for (semantics, mild, harsh) in [
        (
            Semantics::Continue,
            "short, late go on",
            "overrun, late go on",
        ),
        (Semantics::Abort, "short, abort", "overrun, abort"),
    ] {
        for (family, execution) in [
            (
                mild,
                Execution::Uniform {
                    low: 0.5,
                    high: 1.0,
                },
            ),
            (
                harsh,
                Execution::Overrun {
                    low: 0.5,
                    probability: 0.2,
                    factor: 3.0,
                },
            ),
        ] {
            for load in HIDDEN_LOADS {
                let known = cell('D', family, "random5", load, semantics);
                cells.push(Cell {
                    execution: Some(execution.clone()),
                    options: Options {
                        knowledge: Knowledge::History,
                        ..known.options
                    },
                    ..known
                });
            }
        }
    }
    for (family, semantics) in [
        ("late go on", Semantics::Continue),
        ("abort", Semantics::Abort),
    ] {
        for load in [0.9, 1.0, 1.1, 1.25] {
            cells.push(Cell {
                rivals: &["mh", "llf-drop", "mh-llf"],
                ..cell('E', family, "heavy", load, semantics)
            });
        }
    }
    for (family, tasks) in [("100 tasks", 100), ("200 tasks", 200), ("600 tasks", 600)] {
        cells.push(Cell {
            load: (0.90, 1.15),
            tasks: Some(tasks),
            // In two seconds half of the long jobs are never judged, and whoever
            // puts these off looks best.
            horizon_ns: Some(8 * SECOND),
            rivals: MANY_CORES,
            ..cell('F', family, "large", 0.0, Semantics::Continue)
        });
    }
    cells.push(Cell {
        load: (1.25, 1.25),
        rivals: MANY_CORES,
        ..cell('F', "stress", "stress", 0.0, Semantics::Continue)
    });
    cells
}

/// A policy by name, beside the classics.
pub struct Entrant<'a> {
    pub name: String,
    pub make: &'a (dyn Fn() -> Box<dyn Policy> + Sync),
}

impl Cell {
    /// The task set of this number.
    pub fn set(&self, seed: u64, index: u64) -> TaskSet {
        let workload = workload::find(self.workload).expect("a workload of ours");
        let params = Params {
            load: Some(self.load),
            tasks: self.tasks,
            execution: self.execution.clone(),
            horizon_ns: self.horizon_ns,
            ..Params::default()
        };
        workload.generate(&params, seed, index)
    }

    /// How long a run takes, in units of its own: every job is weighed against those that wait.
    pub fn work_of_a_run(&self) -> u64 {
        let set = self.set(EVALUATION_SEED, 0);
        let jobs = |task: &Task| set.horizon_ns / task.period_ns.max(1) + 1;
        let jobs: u64 = set.tasks.iter().map(jobs).sum();
        jobs * set.tasks.len() as u64
    }

    /// How often `run` calls its tick.
    pub fn runs(&self, entrants: usize, sets: usize) -> u64 {
        let each = entrants + self.rivals.len() + usize::from(self.with_oracle);
        (sets * each) as u64
    }

    /// Entrants first, then the rivals, all on the same sets.
    pub fn run(
        &self,
        entrants: &[Entrant<'_>],
        sets: usize,
        seed: u64,
        tick: &(dyn Fn() + Sync),
    ) -> Comparison {
        let mut contestants: Vec<Contestant> = entrants
            .iter()
            .map(|entrant| Contestant {
                name: entrant.name.clone(),
                make: entrant.make,
            })
            .collect();
        contestants.extend(self.rivals.iter().map(|name| {
            let entry = policies::find(name).expect("a policy of ours");
            Contestant {
                name: entry.name.into(),
                make: &entry.make,
            }
        }));
        compare::run(&compare::ComparisonPlan {
            workload: self.workload.into(),
            seed,
            sets,
            set: &|index| self.set(seed, index as u64),
            contestants,
            options: self.options,
            with_oracle: self.with_oracle,
            tick,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn a_cell_ticks_as_often_as_it_says() {
        let cells = cells();
        let short = Some(SECOND / 5);
        for line in ['A', 'B'] {
            let cell = cells.iter().find(|cell| cell.line == line).unwrap();
            let cell = Cell {
                horizon_ns: short,
                ..cell.clone()
            };
            let ticks = AtomicU64::new(0);
            let tick = || {
                ticks.fetch_add(1, Ordering::Relaxed);
            };
            cell.run(&[], 3, 1, &tick);
            assert_eq!(ticks.into_inner(), cell.runs(0, 3), "line {line}");
            assert!(cell.work_of_a_run() > 0);
        }
    }
}
