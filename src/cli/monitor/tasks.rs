//! The panel of tasks that missed deadlines or are about to.

use std::collections::BTreeMap;

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;

use crate::agent::agent_stats::EndangeredMetrics;
use crate::agent::stats::OffenderMetrics;

use super::app::{App, Sort};
use super::panels::{dim, panel};
use super::source::Look;
use super::text::{count, duration, on_time, task_name};
use super::view::Panel;

/// A task with less slack than this may be late because of one other job.
const TIGHT_US: f64 = 5_000.0;

/// A task that missed deadlines, or has little slack, or both.
#[derive(Default)]
struct TaskRow<'a> {
    missed: Option<&'a OffenderMetrics>,
    now: Option<&'a EndangeredMetrics>,
}

pub fn tasks(app: &App, look: &Look, width: u16) -> Panel {
    let mut rows: BTreeMap<&str, TaskRow> = BTreeMap::new();
    for (name, offender) in &look.recent.offenders {
        rows.entry(name).or_default().missed = Some(offender);
    }
    for (name, endangered) in &look.recent.endangered {
        rows.entry(name).or_default().now = Some(endangered);
    }
    let all = rows.len();
    let mut rows: Vec<(&str, TaskRow)> = rows
        .into_iter()
        .filter(|(name, _)| app.shows(name))
        .collect();
    sort(&mut rows, app.sort);
    let columns = Columns::in_width(width);
    let mut lines = vec![dim(columns.titles())];
    lines.extend(rows.iter().map(|(task, row)| columns.line(task, row)));
    if rows.is_empty() {
        lines = vec![dim(match all {
            0 => "no task missed a deadline, none is in danger".to_owned(),
            1 => "the filter hides the only task".to_owned(),
            n => format!("the filter hides all {n} tasks"),
        })];
    }
    let title = format!("tasks by {}: since load | now", app.sort.name());
    panel(title, lines, 3)
}

/// What is unknown stands last. A missed estimate broke no promise, so declared tasks stand
/// before others where misses count.
fn sort(rows: &mut [(&str, TaskRow)], by: Sort) {
    let misses = |row: &TaskRow| {
        let declared = |missed: &OffenderMetrics| missed.class == "declared";
        row.missed
            .map_or((false, 0), |missed| (declared(missed), missed.missed))
    };
    let lateness = |row: &TaskRow| row.missed.map_or(-1.0, |missed| missed.lateness_max_us);
    let slack = |row: &TaskRow| row.now.map_or(f64::INFINITY, |now| now.slack_us);
    match by {
        Sort::Misses => rows.sort_by_key(|(_, row)| std::cmp::Reverse(misses(row))),
        Sort::Lateness => rows.sort_by(|(_, a), (_, b)| lateness(b).total_cmp(&lateness(a))),
        Sort::Slack => rows.sort_by(|(_, a), (_, b)| slack(a).total_cmp(&slack(b))),
        Sort::Name => rows.sort_by_key(|(name, _)| name.to_lowercase()),
    }
}

struct Columns {
    name: usize,
    /// With the work left and the time to the deadline.
    all: bool,
}

impl Columns {
    fn in_width(width: u16) -> Self {
        let all = width >= 64;
        let figures = if all { 50 } else { 34 };
        Self {
            name: usize::from(width).saturating_sub(figures).clamp(14, 28),
            all,
        }
    }

    fn titles(&self) -> String {
        let name = self.name;
        let mut text = format!(
            "{:<name$}{:>7}{:>7}{:>9}  {:>9}",
            "task", "missed", "%", "latest", "slack"
        );
        if self.all {
            text += &format!("{:>8}{:>8}", "left", "due in");
        }
        text
    }

    fn line(&self, task: &str, row: &TaskRow) -> Line<'static> {
        let name = self.name;
        let critical = match row.now.map_or(0, |now| now.criticality) {
            0 => String::new(),
            level => format!("!{} ", count(level)),
        };
        let mut text = format!(
            "{:<name$}",
            task_name(&format!("{critical}{task}"), name - 1)
        );
        text += &match row.missed {
            None => format!("{:>7}{:>7}{:>9}", "-", "-", "-"),
            Some(m) => format!(
                "{:>7}{:>7}{:>9}",
                count(m.missed),
                on_time(m.met, m.missed),
                duration(Some(m.lateness_max_us))
            ),
        };
        let slack = match row.now {
            Some(now) if now.kept == 0 => "given up".to_owned(),
            now => duration(now.map(|now| now.slack_us)),
        };
        text += &format!("  {slack:>9}");
        if self.all {
            text += &format!(
                "{:>8}{:>8}",
                duration(row.now.map(|now| now.remaining_us)),
                duration(row.now.map(|now| now.deadline_us))
            );
        }
        let style = row
            .now
            .map_or(Style::new(), |now| slack_style(now.slack_us));
        Line::styled(text, style)
    }
}

fn slack_style(us: f64) -> Style {
    if us < 0.0 {
        Style::new().fg(Color::Red).add_modifier(Modifier::BOLD)
    } else if us < TIGHT_US {
        Style::new().fg(Color::Yellow)
    } else {
        Style::new()
    }
}
