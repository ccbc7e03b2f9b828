//! The tables of `replay`.

use super::input::Input;
use super::live::Live;
use crate::report::table::Table;
use crate::rtapp::outcome::{Figures, Outcome, Slack};
use crate::sim::time::SECOND;

pub(super) fn text(input: &Input, live: Option<&Live>, outcomes: &[Outcome]) -> String {
    let set = &input.converted.set;
    let live = live.map_or(String::new(), |live| {
        let mut lines = format!("live on {}\n", live.where_it_ran());
        for loaded in live.loaded() {
            lines += &format!("  {loaded}\n");
        }
        for (name, why) in live.failures() {
            lines += &format!("  {name} failed: {why}\n");
        }
        lines
    });
    format!(
        "{}: {} on {}, {} s, {:.2} CPUs asked for; late jobs go on\n{live}{}\n{}",
        input.title,
        counted(set.tasks.len(), "task"),
        counted(set.cores, "core"),
        set.horizon_ns as f64 / SECOND as f64,
        input.demand(),
        schedulers(outcomes),
        tasks(outcomes),
    )
}

fn counted(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// One row per scheduler, over all tasks.
fn schedulers(outcomes: &[Outcome]) -> Table {
    let mut table = Table::new([
        "scheduler",
        "jobs",
        "compliance %",
        "PITMD %",
        "unfinished",
        "ART ms",
        "response p99",
        "late p95 ms",
        "late p99",
        "late max",
        "rt-app slack ms",
        "min",
        "preempt",
        "migr",
        "busy %",
    ]);
    for outcome in outcomes {
        let figures = &outcome.total;
        let m = &figures.metrics;
        let simulated = |text: String| match outcome.segments.is_empty() {
            true => "-".to_owned(),
            false => text,
        };
        let late = |ms: f64| {
            if m.jobs == 0 {
                "-".into()
            } else {
                format!("{ms:.2}")
            }
        };
        table.row([
            outcome.scheduler.clone(),
            m.jobs.to_string(),
            compliance(figures),
            m.pitmd
                .map_or("-".into(), |share| format!("{:.2}", share * 100.0)),
            m.unfinished.to_string(),
            response(figures, Some(m.response_ms)),
            response(figures, figures.response_p99_ms),
            late(m.lateness_p95_ms),
            late(m.lateness_p99_ms),
            late(m.lateness_max_ms),
            slack(figures, |slack| slack.mean_ms),
            slack(figures, |slack| slack.min_ms),
            simulated(m.preemptions.to_string()),
            simulated(m.migrations.to_string()),
            m.utilisation
                .map_or("-".into(), |share| format!("{:.1}", share * 100.0)),
        ]);
    }
    table
}

/// One row per task: its compliance and mean response under every scheduler.
fn tasks(outcomes: &[Outcome]) -> Table {
    let mut head = vec!["task".to_owned(), "jobs".to_owned()];
    for outcome in outcomes {
        head.push(format!("{} %", outcome.scheduler));
        head.push("ART ms".to_owned());
        head.push("slack".to_owned());
    }
    let mut table = Table::new(head);
    let Some(first) = outcomes.first() else {
        return table;
    };
    for (i, task) in first.tasks.iter().enumerate() {
        let mark = if task.critical { "!" } else { "" };
        let mut row = vec![
            format!("{}{mark}", task.name),
            task.figures.metrics.jobs.to_string(),
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
    table
}

fn compliance(figures: &Figures) -> String {
    let m = &figures.metrics;
    match m.jobs {
        0 => "-".into(),
        _ => format!("{:.2}", m.compliance * 100.0),
    }
}

/// With jobs that never finished it is a lower bound.
fn response(figures: &Figures, figure: Option<f64>) -> String {
    bound("≥", figures, figure)
}

/// With jobs that never finished it is an upper bound.
fn slack(figures: &Figures, of: fn(Slack) -> f64) -> String {
    bound("≤", figures, figures.rtapp_slack.map(of))
}

fn bound(mark: &str, figures: &Figures, figure: Option<f64>) -> String {
    match (figures.metrics.unfinished, figure) {
        (1.., Some(_)) => format!("{mark}{}", ms(figure)),
        _ => ms(figure),
    }
}

fn ms(figure: Option<f64>) -> String {
    figure.map_or("-".into(), |ms| format!("{ms:.2}"))
}
