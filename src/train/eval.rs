//! The lines a model must hold, measured: every cell with its rivals on the
//! same sets, and a verdict per line.

use super::env::policy;
use super::lines::{cells, Cell, Entrant, EVALUATION_SEED};
use crate::policy::network::{Model, Native, Precision};
use crate::policy::{Edf, ShieldMode};
use crate::sim::compare::{Comparison, Outcome};
use crate::sim::policies::{Decided, Policy};
use crate::sim::stats::{paired, Paired};
use serde::Serialize;

/// Points of a hundred throughout.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    pub line: char,
    pub family: &'static str,
    pub load: (f64, f64),
    pub sets: usize,
    /// Under the shield, and without it.
    pub shielded: f64,
    pub half_interval: f64,
    pub least: f64,
    pub bare: f64,
    /// The shield with EDF in place of the network: what is left is the network's.
    pub shield_alone: f64,
    pub best_rival: String,
    pub rival: f64,
    /// Shielded less the best rival, set by set.
    pub against_best: f64,
    pub against_best_low: f64,
    pub against_best_high: f64,
    pub plain_edf: Option<f64>,
    pub edf_drop: Option<f64>,
    pub oracle: Option<f64>,
    pub response_ratio: Option<f64>,
    pub critical: Option<f64>,
    /// Best PITMD of a rival.
    pub rival_critical: Option<f64>,
}

#[derive(Clone, Debug, Serialize)]
pub struct LineVerdict {
    pub line: char,
    pub holds: bool,
    /// One sentence per promise.
    pub because: Vec<String>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Report {
    pub version: u32,
    pub model: String,
    pub sets: usize,
    pub seed: u64,
    pub rows: Vec<Row>,
    pub verdicts: Vec<LineVerdict>,
}

pub struct Suite<'a> {
    pub model: &'a Model,
    pub sets: usize,
    /// Such as "ABC".
    pub lines: &'a str,
}

/// How many contestants every cell has beside its rivals.
const ENTRANTS: usize = 3;

impl Suite<'_> {
    pub fn cells(&self) -> Vec<Cell> {
        let mut cells = cells();
        cells.retain(|cell| self.lines.contains(cell.line));
        cells
    }

    /// What [`Suite::run`] reports in all.
    pub fn work(&self) -> u64 {
        let cells = self.cells();
        cells.iter().map(|cell| self.work_of(cell)).sum()
    }

    fn work_of(&self, cell: &Cell) -> u64 {
        cell.work_of_a_run() * cell.runs(ENTRANTS, self.sets)
    }

    /// `tick` is called with the line and the work that is done, after every run.
    pub fn run(&self, tick: &(dyn Fn(char, u64) + Sync)) -> Report {
        let native = Native::new(self.model.weights(), Precision::Float);
        let config = |shield| policy(self.model.tokenizer(), shield);
        let make = |shield| {
            Box::new(Decided::for_machine(config(shield), native.clone())) as Box<dyn Policy>
        };
        let entrants: [Entrant; ENTRANTS] = [
            Entrant {
                name: "shielded".into(),
                make: &|| make(ShieldMode::On),
            },
            Entrant {
                name: "bare".into(),
                make: &|| make(ShieldMode::Off),
            },
            Entrant {
                name: "shield alone".into(),
                make: &|| Box::new(Decided::for_machine(config(ShieldMode::On), Edf)),
            },
        ];
        let rows: Vec<Row> = self
            .cells()
            .iter()
            .map(|cell| {
                let work = cell.work_of_a_run();
                let done = || tick(cell.line, work);
                let comparison = cell.run(&entrants, self.sets, EVALUATION_SEED, &done);
                row(cell, &comparison)
            })
            .collect();
        let verdicts = ('A'..='F')
            .filter_map(|line| {
                let rows: Vec<&Row> = rows.iter().filter(|row| row.line == line).collect();
                (!rows.is_empty()).then(|| verdict(line, &rows))
            })
            .collect();
        Report {
            version: 2,
            model: self.model.provenance().name.clone(),
            sets: self.sets,
            seed: EVALUATION_SEED,
            rows,
            verdicts,
        }
    }
}

fn mean(outcome: &Outcome) -> f64 {
    outcome.compliance.map_or(f64::NAN, |s| 100.0 * s.mean)
}

fn row(cell: &Cell, comparison: &Comparison) -> Row {
    let [shielded, bare, alone, rivals @ ..] = &comparison.outcomes[..] else {
        unreachable!("three entrants and their rivals");
    };
    let best = rivals
        .iter()
        .max_by(|a, b| mean(a).total_cmp(&mean(b)))
        .expect("every cell has rivals");
    let of = |outcome: &Outcome| -> Vec<f64> {
        outcome.sets.iter().map(|m| 100.0 * m.compliance).collect()
    };
    let rival = |name: &str| rivals.iter().find(|r| r.policy == name);
    let critical = |outcome: &Outcome| outcome.pitmd.map(|s| 100.0 * s.mean);
    let response = |outcome: &Outcome| outcome.response_ms.map(|s| s.mean);
    let difference = paired(&of(shielded), &of(best)).unwrap_or(Paired {
        difference: f64::NAN,
        ci_low: f64::NAN,
        ci_high: f64::NAN,
        p_t: 1.0,
        p_wilcoxon: 1.0,
        better: 0,
        equal: 0,
        worse: 0,
    });
    let summary = shielded.compliance;
    Row {
        line: cell.line,
        family: cell.family,
        load: cell.load,
        sets: comparison.sets,
        shielded: mean(shielded),
        half_interval: summary.map_or(f64::NAN, |s| 50.0 * (s.ci_high - s.ci_low)),
        least: summary.map_or(f64::NAN, |s| 100.0 * s.min),
        bare: mean(bare),
        shield_alone: mean(alone),
        best_rival: best.policy.clone(),
        rival: mean(best),
        against_best: difference.difference,
        against_best_low: difference.ci_low,
        against_best_high: difference.ci_high,
        plain_edf: rival("plain-edf").map(mean),
        edf_drop: rival("edf-drop").map(mean),
        oracle: comparison
            .oracle
            .as_ref()
            .map(|o| 100.0 * o.compliance.mean),
        response_ratio: rival("plain-edf")
            .and_then(response)
            .zip(response(shielded))
            .map(|(edf, ours)| ours / edf),
        critical: critical(shielded),
        rival_critical: rivals.iter().filter_map(critical).reduce(f64::max),
    }
}

/// So many points below 100 are still all.
const ALL_BUT: f64 = 0.02;
/// The difference that rounding may make.
const NOTHING: f64 = 1e-9;

fn verdict(line: char, rows: &[&Row]) -> LineVerdict {
    let mut because = Vec::new();
    let mut holds = true;
    let mut promise = |kept: bool, text: String| {
        holds &= kept;
        because.push(format!("{}: {text}", if kept { "holds" } else { "FAILS" }));
    };
    let least = |f: &dyn Fn(&Row) -> f64| rows.iter().map(|r| f(r)).fold(f64::INFINITY, f64::min);
    let average =
        |f: &dyn Fn(&Row) -> f64| rows.iter().map(|r| f(r)).sum::<f64>() / rows.len() as f64;
    let worst = least(&|r| r.against_best);
    let at_least_best = format!("against the best classic {worst:+.2} points at the worst load");
    match line {
        'A' => {
            let all = least(&|r| r.least);
            promise(
                all >= 100.0 - NOTHING,
                format!("{all:.2} % on the worst set"),
            );
            let ratio = -least(&|r| -r.response_ratio.unwrap_or(f64::INFINITY));
            promise(
                ratio <= 0.90,
                format!("mean response {ratio:.3} of plain-edf's"),
            );
            let bare = least(&|r| r.bare);
            promise(bare >= 99.0, format!("{bare:.2} % without the shield"));
        }
        'B' => {
            promise(worst >= -NOTHING, at_least_best);
            let gaps: Vec<f64> = rows
                .iter()
                .filter_map(|r| Some(r.oracle? - r.shielded))
                .collect();
            let gap = gaps.iter().sum::<f64>() / gaps.len().max(1) as f64;
            let text = format!(
                "{gap:.2} points below the optimum, over {} loads",
                gaps.len()
            );
            promise(!gaps.is_empty() && gap <= 0.4, text);
            let bare = least(&|r| r.bare - r.edf_drop.unwrap_or(f64::NAN));
            promise(
                bare >= -NOTHING,
                format!("without the shield {bare:+.2} points against edf-drop at the worst load"),
            );
        }
        'C' => {
            promise(worst >= -NOTHING, at_least_best);
            let above = |r: &Row| match r.plain_edf {
                Some(edf) if r.load.0 >= 1.25 => r.shielded - edf,
                _ => f64::INFINITY,
            };
            let above = least(&above);
            promise(
                above >= 40.0,
                format!("{above:.1} points above plain-edf from U = 1.25 on"),
            );
        }
        'D' => {
            let gain = average(&|r| r.against_best);
            promise(
                gain >= 0.5,
                format!("{gain:+.2} points against the best classic on average"),
            );
            promise(worst >= -0.3, at_least_best);
        }
        'E' => promise(worst >= -NOTHING, at_least_best),
        _ => {
            promise(worst >= -0.1, at_least_best);
            // No policy can be two points above 99.
            let ahead = |r: &Row| {
                let (ours, rival) = (r.critical?, r.rival_critical?);
                Some((ours - rival, ours >= rival + 2.0 || ours >= 100.0 - ALL_BUT))
            };
            let kept = rows.iter().all(|r| ahead(r).is_some_and(|(_, kept)| kept));
            let (low, high) = rows.iter().filter_map(|r| ahead(r)).fold(
                (f64::INFINITY, f64::NEG_INFINITY),
                |(low, high), (points, _)| (low.min(points), high.max(points)),
            );
            promise(
                kept,
                format!("critical tasks {low:+.2} to {high:+.2} points against the best classic; 2 or all of them is asked for"),
            );
        }
    }
    LineVerdict {
        line,
        holds,
        because,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(line: char, shielded: f64, rival: f64) -> Row {
        Row {
            line,
            family: "t",
            load: (1.3, 1.3),
            sets: 1,
            shielded,
            half_interval: 0.0,
            least: shielded,
            bare: shielded - 1.0,
            shield_alone: shielded,
            best_rival: "mh".into(),
            rival,
            against_best: shielded - rival,
            against_best_low: 0.0,
            against_best_high: 0.0,
            plain_edf: Some(10.0),
            edf_drop: Some(rival - 2.0),
            oracle: Some(rival + 0.3),
            response_ratio: Some(0.85),
            critical: Some(shielded),
            rival_critical: Some(rival),
        }
    }

    #[test]
    fn a_line_holds_only_if_every_promise_is_kept() {
        let holds = |line, rows: &[Row]| verdict(line, &rows.iter().collect::<Vec<_>>()).holds;
        assert!(holds('A', &[row('A', 100.0, 100.0)]));
        assert!(!holds('A', &[row('A', 99.99, 100.0)]));
        assert!(holds('B', &[row('B', 80.0, 80.0)]));
        assert!(!holds('B', &[row('B', 80.0, 80.2)]));
        assert!(holds('C', &[row('C', 80.0, 79.0)]));
        assert!(!holds('C', &[row('C', 49.0, 48.0)]));
        assert!(holds('D', &[row('D', 80.0, 78.0), row('D', 80.0, 80.2)]));
        assert!(!holds('D', &[row('D', 80.0, 78.0), row('D', 80.0, 80.4)]));
        assert!(!holds('D', &[row('D', 80.0, 79.8)]));
        assert!(!holds('E', &[row('E', 80.0, 78.0), row('E', 80.0, 80.1)]));
        assert!(holds('F', &[row('F', 82.0, 80.0)]));
        assert!(!holds('F', &[row('F', 81.0, 80.0)]));
    }
}
