//! What the figures come to: who stands where, where the candidate is below whom, how far
//! it is from the best choice, and how near the simulator is to the kernel.

use std::collections::BTreeMap;

use serde::Serialize;

use super::experiment::Results;
use super::verdict::{Both, Verdict};
use crate::sim::workload::tournament::Knobs;

/// Percentage points that count as a difference between two runs of the same set: start-up
/// alone moves some jobs.
const NOTICEABLE: f64 = 0.5;
/// Of sets that are told by name.
const WORST: usize = 10;

#[derive(Serialize)]
pub struct Summary {
    pub standings: Vec<Standing>,
    pub verdicts: Vec<Verdict>,
    pub below: Vec<Below>,
    pub kinds: Vec<Kind>,
    pub agreements: Vec<Agreement>,
}

/// A scheduler over all sets of a case. Shares in percent; every set counts the same.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Standing {
    pub case: String,
    pub machine: String,
    pub scheduler: String,
    /// That have figures.
    pub sets: usize,
    pub compliance: Option<f64>,
    /// Without the first second.
    pub settled: Option<f64>,
    pub least: Option<f64>,
    pub critical: Option<f64>,
    pub response_ms: Option<f64>,
    /// Percentage points below the best choice of tasks that was found.
    pub below_best: Option<f64>,
    pub failed: usize,
    pub reason: Option<String>,
    /// Sets with a run whose own clock was disturbed.
    pub disturbed: usize,
}

/// The candidate against another scheduler, on the sets that have both.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Below {
    pub case: String,
    pub machine: String,
    pub against: String,
    pub sets: usize,
    /// Mean of candidate less other.
    pub mean: f64,
    pub better: usize,
    pub worse: usize,
    /// Most points lost first.
    pub worst: Vec<Shortfall>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Shortfall {
    pub set: String,
    pub subject: usize,
    pub candidate: f64,
    pub other: f64,
    pub best: Option<f64>,
    pub about: String,
}

/// Sets alike in a property, with the mean of every scheduler.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Kind {
    pub case: String,
    pub machine: String,
    pub kind: String,
    pub sets: usize,
    pub compliance: Vec<(String, f64)>,
}

/// A scheduler in the simulator and on a kernel, on the same sets.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Agreement {
    pub case: String,
    pub machine: String,
    pub scheduler: String,
    pub sets: usize,
    /// Mean of simulated less measured.
    pub mean: f64,
    pub mean_distance: f64,
    pub within_3: usize,
    /// Farthest apart first: set, simulated, measured.
    pub worst: Vec<(String, f64, f64)>,
}

pub fn of(results: &Results) -> Summary {
    let mut summary = Summary {
        standings: Vec::new(),
        verdicts: Vec::new(),
        below: Vec::new(),
        kinds: Vec::new(),
        agreements: Vec::new(),
    };
    for machine in 0..results.of.machines.len() {
        for case in &results.of.cases {
            let part = Part::of(results, machine, &case.name);
            let names: Vec<&str> = case.schedulers.iter().map(|s| s.name.as_str()).collect();
            summary
                .standings
                .extend(names.iter().map(|name| part.standing(name)));
            summary.verdicts.extend(part.verdicts());
            let others = names.iter().filter(|name| **name != results.of.candidate);
            summary
                .below
                .extend(others.filter_map(|name| part.below(name)));
            summary.kinds.extend(part.kinds(&names));
            let simulated = results.of.machines.iter().position(|m| !m.is_kernel());
            if let (Some(simulated), true) = (simulated, results.of.machines[machine].is_kernel()) {
                let agreements = names
                    .iter()
                    .filter_map(|name| part.agreement(simulated, name));
                summary.agreements.extend(agreements);
            }
        }
    }
    summary
}

/// The sets of a case on a machine.
struct Part<'a> {
    results: &'a Results<'a>,
    machine: usize,
    name: String,
    case: &'a str,
    subjects: Vec<usize>,
}

impl<'a> Part<'a> {
    fn of(results: &'a Results<'a>, machine: usize, case: &'a str) -> Part<'a> {
        let subjects = results.of.subjects.iter().enumerate();
        let subjects = subjects.filter(|(_, subject)| subject.case == case);
        Part {
            results,
            machine,
            name: results.of.machines[machine].name(),
            case,
            subjects: subjects.map(|(i, _)| i).collect(),
        }
    }

    fn compliance(&self, subject: usize, scheduler: &str) -> Option<f64> {
        self.results.compliance(self.machine, subject, scheduler)
    }

    fn standing(&self, scheduler: &str) -> Standing {
        let cells: Vec<_> = self
            .subjects
            .iter()
            .filter_map(|&i| Some((i, self.results.cell(self.machine, i, scheduler)?)))
            .collect();
        let measured: Vec<_> = cells.iter().filter(|(_, cell)| cell.repeats > 0).collect();
        let compliance: Vec<f64> = measured
            .iter()
            .filter_map(|(_, c)| c.whole.compliance())
            .collect();
        let below = measured.iter().filter_map(|(i, cell)| {
            Some(self.results.best[*i].compliance()? - cell.whole.compliance()?)
        });
        let failures: Vec<&String> = cells
            .iter()
            .filter_map(|(_, c)| c.failed.as_ref())
            .collect();
        Standing {
            case: self.case.into(),
            machine: self.name.clone(),
            scheduler: scheduler.into(),
            sets: measured.len(),
            compliance: mean(compliance.iter().copied()),
            settled: mean(measured.iter().filter_map(|(_, c)| c.settled.compliance())),
            least: compliance.iter().copied().min_by(f64::total_cmp),
            critical: mean(measured.iter().filter_map(|(_, c)| c.whole.critical())),
            response_ms: mean(measured.iter().map(|(_, c)| c.whole.response_ms)),
            below_best: mean(below),
            failed: failures.len(),
            reason: failures.first().map(|why| (*why).clone()),
            disturbed: measured
                .iter()
                .filter(|(_, c)| c.disturbed.is_some())
                .count(),
        }
    }

    fn verdicts(&self) -> Vec<Verdict> {
        let case = self
            .results
            .of
            .cases
            .iter()
            .find(|case| case.name == self.case);
        let sets: Vec<String> = self.subjects.iter().map(|&i| self.label(i)).collect();
        let figures = |set: usize, scheduler: &str| {
            let cell = self
                .results
                .cell(self.machine, self.subjects[set], scheduler)?;
            (cell.repeats > 0).then_some(Both {
                whole: &cell.whole,
                settled: &cell.settled,
            })
        };
        let must = case.into_iter().flat_map(|case| &case.must);
        must.map(|condition| condition.judge(self.case, &self.name, &sets, &figures))
            .collect()
    }

    fn label(&self, subject: usize) -> String {
        self.results.of.subjects[subject].label()
    }

    fn below(&self, other: &str) -> Option<Below> {
        let candidate = self.results.of.candidate.as_str();
        let pairs: Vec<(usize, f64, f64)> = self
            .subjects
            .iter()
            .filter_map(|&i| {
                Some((
                    i,
                    self.compliance(i, candidate)?,
                    self.compliance(i, other)?,
                ))
            })
            .collect();
        let mut lost: Vec<&(usize, f64, f64)> = pairs
            .iter()
            .filter(|(_, own, other)| other - own > NOTICEABLE)
            .collect();
        lost.sort_by(|a, b| (b.2 - b.1).total_cmp(&(a.2 - a.1)));
        let shortfall = |&&(subject, own, other): &&(usize, f64, f64)| Shortfall {
            set: self.label(subject),
            subject,
            candidate: own,
            other,
            best: self.results.best[subject].compliance(),
            about: self.results.of.subjects[subject].describe(),
        };
        Some(Below {
            case: self.case.into(),
            machine: self.name.clone(),
            against: other.into(),
            sets: pairs.len(),
            mean: mean(pairs.iter().map(|(_, own, other)| own - other))?,
            better: pairs
                .iter()
                .filter(|(_, own, other)| own - other > NOTICEABLE)
                .count(),
            worse: lost.len(),
            worst: lost.iter().take(WORST).map(shortfall).collect(),
        })
    }

    /// Only of sets that were drawn, and of properties in which they differ.
    fn kinds(&self, names: &[&str]) -> Vec<Kind> {
        let mut by_kind: BTreeMap<(usize, String), Vec<usize>> = BTreeMap::new();
        for &i in &self.subjects {
            let knobs = self.results.of.subjects[i].knobs.iter();
            for (property, kind) in knobs.flat_map(kinds_of).enumerate() {
                by_kind.entry((property, kind)).or_default().push(i);
            }
        }
        let differs = |property: usize| by_kind.keys().filter(|(p, _)| *p == property).count() > 1;
        let told = by_kind
            .iter()
            .filter(|((property, _), _)| differs(*property));
        told.map(|((_, kind), subjects)| {
            let of = |name: &&str| {
                let figures = subjects.iter().filter_map(|&i| self.compliance(i, name));
                Some(((*name).to_owned(), mean(figures)?))
            };
            Kind {
                case: self.case.into(),
                machine: self.name.clone(),
                kind: kind.clone(),
                sets: subjects.len(),
                compliance: names.iter().filter_map(of).collect(),
            }
        })
        .collect()
    }

    fn agreement(&self, simulated: usize, scheduler: &str) -> Option<Agreement> {
        let mut pairs: Vec<(usize, f64, f64)> = self
            .subjects
            .iter()
            .filter_map(|&i| {
                let sim = self.results.compliance(simulated, i, scheduler)?;
                Some((i, sim, self.compliance(i, scheduler)?))
            })
            .collect();
        let apart = |pair: &(usize, f64, f64)| (pair.1 - pair.2).abs();
        pairs.sort_by(|a, b| apart(b).total_cmp(&apart(a)));
        let told = |&(i, sim, real): &(usize, f64, f64)| (self.label(i), sim, real);
        Some(Agreement {
            case: self.case.into(),
            machine: self.name.clone(),
            scheduler: scheduler.into(),
            sets: pairs.len(),
            mean: mean(pairs.iter().map(|(_, sim, real)| sim - real))?,
            mean_distance: mean(pairs.iter().map(apart))?,
            within_3: pairs.iter().filter(|pair| apart(pair) <= 3.0).count(),
            worst: pairs.iter().take(WORST).map(told).collect(),
        })
    }
}

/// The properties of a set in a fixed order, each in words.
fn kinds_of(knobs: &Knobs) -> Vec<String> {
    let load = match knobs.load {
        load if load < 0.9 => "load below 0.9",
        load if load < 1.1 => "load 0.9 to 1.1",
        load if load < 1.5 => "load 1.1 to 1.5",
        _ => "load above 1.5",
    };
    let tasks = match knobs.tasks {
        0..=8 => "up to 8 tasks",
        9..=24 => "9 to 24 tasks",
        _ => "25 tasks and more",
    };
    let hogs = match knobs.hogs {
        0 => "no hogs",
        _ => "hogs",
    };
    vec![
        format!("{} CPUs", knobs.cores),
        load.into(),
        tasks.into(),
        knobs.periods.to_string(),
        knobs.times.to_string(),
        knobs.deadlines.to_string(),
        knobs.start.to_string(),
        hogs.into(),
        knobs.change.to_string(),
        knobs.declared.to_string(),
    ]
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (mut count, mut sum) = (0, 0.0);
    for value in values {
        count += 1;
        sum += value;
    }
    (count > 0).then(|| sum / f64::from(count))
}
