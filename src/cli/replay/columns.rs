//! The columns of `replay`: the same in the terminal, the page and Markdown.

use crate::report::table::{Table, UNKNOWN};
use crate::rtapp::outcome::{Figures, Outcome, Slack};
use crate::rtapp::verdict::ReplayVerdict;

/// A table and what stands out in it.
pub(super) struct Sheet {
    pub table: Table,
    /// Columns that are shares of jobs.
    pub shares: Vec<usize>,
}

impl Sheet {
    fn of(table: Table, is_share: impl Fn(&str) -> bool) -> Sheet {
        let table = table.without_unknown();
        let columns = table.head().iter().enumerate();
        let shares = columns.filter(|(_, head)| is_share(head)).map(|(i, _)| i);
        Sheet {
            shares: shares.collect(),
            table,
        }
    }
}

const COMPLIANCE: &str = "compliance %";
const PITMD: &str = "PITMD %";

/// One row per scheduler, over all tasks; `name` says how the best are marked.
pub(super) fn schedulers(outcomes: &[Outcome], name: &dyn Fn(usize) -> String) -> Sheet {
    let mut table = Table::new([
        "scheduler",
        "jobs",
        COMPLIANCE,
        PITMD,
        "unfinished",
        "ART ms",
        "response p99",
        "late p95 ms",
        "late p99",
        "late max",
        "rt-app slack ms",
        "slack min",
        "preempt",
        "migr",
        "busy %",
    ]);
    for (i, outcome) in outcomes.iter().enumerate() {
        let figures = &outcome.total;
        let m = &figures.metrics;
        let late = |ms: f64| figure((m.jobs > 0).then_some(ms));
        let count = |n: Option<u64>| n.map_or(UNKNOWN.into(), |n| n.to_string());
        table.row([
            name(i),
            m.jobs.to_string(),
            compliance(figures),
            figure(m.pitmd.map(|share| share * 100.0)),
            m.unfinished.to_string(),
            response(figures, Some(m.response_ms)),
            response(figures, figures.response_p99_ms),
            late(m.lateness_p95_ms),
            late(m.lateness_p99_ms),
            late(m.lateness_max_ms),
            slack(figures, |slack| slack.mean_ms),
            slack(figures, |slack| slack.min_ms),
            count(m.preemptions),
            count(m.migrations),
            m.utilisation
                .map_or(UNKNOWN.into(), |share| format!("{:.1}", share * 100.0)),
        ]);
    }
    Sheet::of(table, |head| head == COMPLIANCE || head == PITMD)
}

/// One row per task: what it asks for, and how it fares under every scheduler.
pub(super) fn tasks(
    verdict: &ReplayVerdict,
    outcomes: &[Outcome],
    name: &dyn Fn(&str, bool) -> String,
) -> Sheet {
    let mut head = vec![
        "task".to_owned(),
        "jobs".to_owned(),
        "CPUs asked".to_owned(),
    ];
    for outcome in outcomes {
        head.push(format!("{} %", outcome.scheduler));
        head.push("ART ms".to_owned());
        head.push("slack".to_owned());
    }
    let mut table = Table::new(head);
    let tasks = outcomes.first().map_or(&[][..], |first| &first.tasks);
    for (i, task) in tasks.iter().enumerate() {
        let mut row = vec![
            name(&task.name, task.critical),
            task.figures.metrics.jobs.to_string(),
            figure(verdict.load.tasks[i]),
        ];
        for outcome in outcomes {
            let figures = &outcome.tasks[i].figures;
            row.push(compliance(figures));
            let art = figures.response_p50_ms.map(|_| figures.metrics.response_ms);
            row.push(response(figures, art));
            row.push(slack(figures, |slack| slack.mean_ms));
        }
        table.row(row);
    }
    Sheet::of(table, |head| head.ends_with(" %"))
}

fn compliance(figures: &Figures) -> String {
    let m = &figures.metrics;
    figure((m.jobs > 0).then_some(m.compliance * 100.0))
}

/// With jobs that never finished it is a lower bound.
fn response(figures: &Figures, figure: Option<f64>) -> String {
    bound("≥", figures, figure)
}

/// With jobs that never finished it is an upper bound.
fn slack(figures: &Figures, of: fn(Slack) -> f64) -> String {
    bound("≤", figures, figures.rtapp_slack.map(of))
}

fn bound(mark: &str, figures: &Figures, value: Option<f64>) -> String {
    match (figures.metrics.unfinished, value) {
        (1.., Some(_)) => format!("{mark}{}", figure(value)),
        _ => figure(value),
    }
}

fn figure(value: Option<f64>) -> String {
    value.map_or(UNKNOWN.into(), |value| format!("{value:.2}"))
}
