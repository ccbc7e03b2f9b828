//! The lines that must hold, for each scheduler of ours.
use crate::plan::is_ours;
use crate::record::{FLOOR, TOLERANCE};
use crate::report::Group;
use serde::Serialize;
use std::fmt;

/// Of shares beside another scheduler's: points.
const POINTS: f64 = 10.0;
const REFERENCE: &str = "eevdf";
/// Of a limit by cpu.max: points.
const LIMIT_POINTS: f64 = 3.0;
const LONGEST_WAIT_MS: f64 = 4000.0;

#[derive(Serialize)]
pub struct Verdict {
    pub case: String,
    pub variant: String,
    pub column: String,
    pub holds: bool,
    /// What must hold, with the figures.
    pub claim: String,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let word = if self.holds {
            "holds         "
        } else {
            "does not hold "
        };
        let (case, variant, column) = (&self.case, &self.variant, &self.column);
        write!(f, "{word} {case} {variant}, {column}: {}", self.claim)
    }
}

pub fn all(groups: &[Group]) -> Vec<Verdict> {
    groups.iter().flat_map(of_group).collect()
}

fn of_group(group: &Group) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for (column, run) in &group.runs {
        if !is_ours(column) {
            continue;
        }
        let mut say = |holds, claim| {
            verdicts.push(Verdict {
                case: group.case.clone(),
                variant: group.variant.clone(),
                column: column.clone(),
                holds,
                claim,
            });
        };
        if run.is_err() {
            say(false, "the run failed".to_string());
            continue;
        }
        match group.case.as_str() {
            "rhythm" => of_rhythm(group, column, &mut say),
            "small-declarations" => of_small(group, column, &mut say),
            "mutex" => of_mutex(group, column, &mut say),
            "cpu-max" => of_limits(group, column, &mut say),
            "weights" => of_weights(group, column, &mut say),
            _ => beside_reference(group, column, &mut say),
        }
    }
    verdicts
}

fn beside_reference(group: &Group, column: &str, say: &mut impl FnMut(bool, String)) {
    let figures = |figure| {
        Some((
            group.figure(column, figure)?,
            group.figure(REFERENCE, figure)?,
        ))
    };
    if let Some((share, reference)) = figures("hog %") {
        say(
            (share - reference).abs() <= POINTS,
            format!("the hog has {share:.1} %, within {POINTS} points of {REFERENCE}'s {reference:.1} %"),
        );
    }
    if let Some((p99, reference)) = figures("latency p99 µs") {
        say(
            p99 <= reference,
            format!("wake-up latency is {p99:.0} µs at the 99th percentile, at most {REFERENCE}'s {reference:.0} µs"),
        );
    }
}

fn of_weights(group: &Group, column: &str, say: &mut impl FnMut(bool, String)) {
    let outside = group.figure(column, "outside").unwrap_or(f64::NAN);
    let tasks = group.figure(column, "tasks").unwrap_or(f64::NAN);
    say(
        outside == 0.0,
        format!(
            "{} of {tasks} tasks are within {} % of what is due, or {} % of the CPU",
            tasks - outside,
            TOLERANCE * 100.0,
            FLOOR * 100.0
        ),
    );
}

/// Nobody but the throttled waits for long, and who is limited has what its limit leaves it.
fn of_limits(group: &Group, column: &str, say: &mut impl FnMut(bool, String)) {
    let Some(record) = group.of(column) else {
        return;
    };
    for (name, &share) in &record.figures {
        let Some(limited) = name.strip_suffix(" %").filter(|name| name.starts_with('g')) else {
            continue;
        };
        let due = group
            .figure(column, &format!("{limited} due"))
            .unwrap_or(f64::NAN);
        say(
            (share - due).abs() <= LIMIT_POINTS,
            format!("{limited} has {share:.1} %, {due:.0} ± {LIMIT_POINTS} points"),
        );
    }
    let wait = group.figure(column, "free wait ms").unwrap_or(f64::NAN);
    say(
        wait <= LONGEST_WAIT_MS,
        format!(
            "nobody without a limit waited for more than {wait:.0} ms, at most {LONGEST_WAIT_MS}"
        ),
    );
}

const ON_TIME: &str = "on time %";

/// Undeclared tasks keep their rhythm where the same tasks, declared, are on time.
fn of_rhythm(group: &Group, column: &str, say: &mut impl FnMut(bool, String)) {
    if column.contains('+') {
        return;
    }
    let declared = group.figure(&format!("{column}+declared"), ON_TIME);
    let (share, declared) = (
        group.figure(column, ON_TIME).unwrap_or(f64::NAN),
        declared.unwrap_or(f64::NAN),
    );
    let asked = declared >= 99.0;
    let unless = if asked { "" } else { ", which is not asked" };
    say(
        !asked || share >= 95.0,
        format!("{share:.1} % on time undeclared, at least 95 where declared reaches 99 (it has {declared:.1}){unless}"),
    );
}

/// Half a point is a job or two.
const NOISE: f64 = 0.5;

fn of_small(group: &Group, column: &str, say: &mut impl FnMut(bool, String)) {
    let Some((plain, _)) = column.split_once('+') else {
        return;
    };
    let share = group.figure(column, ON_TIME).unwrap_or(f64::NAN);
    let undeclared = group.figure(plain, ON_TIME).unwrap_or(f64::NAN);
    say(
        share >= undeclared - NOISE,
        format!(
            "{share:.1} % on time, at least the {undeclared:.1} % of the same tasks undeclared"
        ),
    );
    if let Some(fifo) = group.figure("fifo-rm", ON_TIME) {
        say(
            share >= fifo - 5.0,
            format!(
                "{share:.1} % on time, within 5 points of the {fifo:.1} % of SCHED_FIFO by rate"
            ),
        );
    }
}

fn of_mutex(group: &Group, column: &str, say: &mut impl FnMut(bool, String)) {
    let share = group.figure(column, ON_TIME).unwrap_or(f64::NAN);
    let wanted = if group.variant == "inherits" {
        99.0
    } else {
        95.0
    };
    say(
        share >= wanted,
        format!("{share:.1} % of the declared jobs on time, at least {wanted}"),
    );
}
