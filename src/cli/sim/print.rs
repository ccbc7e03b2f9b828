//! The tables of `sim`.

use crate::report::table::Table;
use crate::sim::compare::{Comparison, Outcome};
use crate::sim::oracle;
use crate::sim::stats::Summary;
use crate::sim::task::Semantics;

pub(super) fn printed(comparison: &Comparison, wide: bool) -> String {
    let c = comparison;
    let fate = match c.options.semantics {
        Semantics::Abort => "late jobs are aborted",
        Semantics::Continue => "late jobs go on",
    };
    format!(
        "{}: {} set{} of {} tasks on {} core{}, seed {}; {fate}\n{}",
        c.workload,
        c.sets,
        if c.sets == 1 { "" } else { "s" },
        c.tasks,
        c.cores,
        if c.cores == 1 { "" } else { "s" },
        c.seed,
        table_of(std::slice::from_ref(c), wide)
    )
}

/// The columns, and whether they are shown where nobody asks for all.
const COLUMNS: [(&str, bool); 18] = [
    ("policy", true),
    ("late jobs", false),
    ("met %", true),
    ("±95%", true),
    ("median", false),
    ("std", false),
    ("min", false),
    ("max", false),
    ("PITMD %", true),
    ("success %", false),
    ("ART ms", true),
    ("late p95", false),
    ("late p99", true),
    ("migr", false),
    ("preempt", false),
    ("busy %", false),
    ("vs first", true),
    ("p", true),
];

pub(super) fn table_of(comparisons: &[Comparison], wide: bool) -> Table {
    let shown = |(cell, (_, always)): (String, (&str, bool))| (wide || always).then_some(cell);
    let titles = COLUMNS.map(|(title, _)| title.to_owned());
    let chosen = |cells: Vec<String>| cells.into_iter().zip(COLUMNS).filter_map(shown);
    let mut table = Table::new(chosen(titles.into()));
    for c in comparisons {
        let late = c.options.semantics.name();
        for outcome in &c.outcomes {
            table.row(chosen(cells(outcome, late)));
        }
        if let Some(ceiling) = &c.oracle {
            let s = &ceiling.compliance;
            let name = match ceiling.kind {
                oracle::OracleKind::Exact => "oracle (exact)",
                oracle::OracleKind::Bound => "oracle (bound)",
            };
            let mut row = vec![name.to_owned(), late.to_owned()];
            row.extend(spread(Some(s)));
            table.row(chosen(row));
        }
    }
    table
}

/// Mean, half interval, median, std, min and max in percent.
fn spread(summary: Option<&Summary>) -> Vec<String> {
    let Some(s) = summary else {
        return vec!["-".into(); 6];
    };
    [
        s.mean,
        (s.ci_high - s.ci_low) / 2.0,
        s.median,
        s.std,
        s.min,
        s.max,
    ]
    .iter()
    .map(|v| format!("{:.2}", v * 100.0))
    .collect()
}

fn cells(outcome: &Outcome, late: &str) -> Vec<String> {
    let mean = |s: &Option<Summary>, scale: f64, digits: usize| {
        s.as_ref()
            .map_or("-".into(), |s| format!("{:.digits$}", s.mean * scale))
    };
    let mut row = vec![outcome.policy.clone(), late.to_owned()];
    row.extend(spread(outcome.compliance.as_ref()));
    row.extend([
        mean(&outcome.pitmd, 100.0, 2),
        format!("{:.1}", outcome.success_rate * 100.0),
        bounded(outcome, mean(&outcome.response_ms, 1.0, 2)),
        mean(&outcome.lateness_p95_ms, 1.0, 1),
        mean(&outcome.lateness_p99_ms, 1.0, 1),
        mean(&outcome.migrations, 1.0, 0),
        mean(&outcome.preemptions, 1.0, 0),
        mean(&outcome.utilisation, 100.0, 1),
    ]);
    match &outcome.against_first {
        Some(p) => row.extend([format!("{:+.2}", p.difference * 100.0), p_value(p.p_t)]),
        None => row.extend(["-".to_owned(), "-".to_owned()]),
    }
    row
}

/// With jobs that never finished the mean response is a lower bound.
fn bounded(outcome: &Outcome, response: String) -> String {
    match outcome.unfinished {
        Some(unfinished) if unfinished.max > 0.0 => format!("≥{response}"),
        _ => response,
    }
}

fn p_value(p: f64) -> String {
    if p < 0.001 {
        "<0.001".into()
    } else {
        format!("{p:.3}")
    }
}
