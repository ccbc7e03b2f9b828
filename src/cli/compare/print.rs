//! A comparison in the terminal, as Markdown and as JSON.

use std::fmt::Write as _;

use anyhow::{Context, Result};
use serde_json::json;

use crate::compare::summary::{Agreement, Below, Kind, Standing, Summary};
use crate::compare::verdict::Verdict;
use crate::compare::{Results, Subject};
use crate::report::table::{Table, UNKNOWN};

/// Of the sets on which the candidate is worst, so many are shown in the terminal.
const SHOWN: usize = 5;

pub struct Told<'a> {
    pub results: &'a Results<'a>,
    pub summary: &'a Summary,
    /// What repeats a set.
    pub command: &'a dyn Fn(&Subject) -> String,
}

impl Told<'_> {
    pub fn text(&self) -> String {
        self.written(&|table| table.to_string(), &|title| format!("{title}\n"))
    }

    pub fn markdown(&self) -> String {
        self.written(&Table::to_markdown, &|title| format!("### {title}\n"))
    }

    fn written(&self, table: &dyn Fn(&Table) -> String, title: &dyn Fn(&str) -> String) -> String {
        let mut text = String::new();
        let of = self.results.of;
        for machine in of.machines.iter().map(|machine| machine.name()) {
            for case in &of.cases {
                let here = |case_of: &str, on: &str| case_of == case.name && on == machine;
                let standings = self.summary.standings.iter();
                let standings: Vec<&Standing> = standings
                    .filter(|row| here(&row.case, &row.machine))
                    .collect();
                text += &title(&format!("{}: {machine}", case.name));
                text += &table(&standing_table(&standings));
                for row in standings.iter().filter(|row| row.failed > 0) {
                    let why = row.reason.as_deref().unwrap_or_default();
                    let _ = writeln!(
                        text,
                        "{} has no figures of {} runs: {why}",
                        row.scheduler, row.failed
                    );
                }
                for row in standings.iter().filter(|row| row.disturbed > 0) {
                    let _ = writeln!(
                        text,
                        "{}: {} sets ran longer than planned",
                        row.scheduler, row.disturbed
                    );
                }
                text.push('\n');
                let verdicts = self.summary.verdicts.iter();
                for verdict in verdicts.filter(|v| here(&v.case, &v.machine)) {
                    text += &said(verdict);
                }
                for below in self
                    .summary
                    .below
                    .iter()
                    .filter(|b| here(&b.case, &b.machine))
                {
                    text += &self.below(below, table);
                }
                let kinds = self.summary.kinds.iter();
                let kinds: Vec<&Kind> = kinds.filter(|k| here(&k.case, &k.machine)).collect();
                if !kinds.is_empty() {
                    text += &title(&format!(
                        "{} by kind, per cent on time: {machine}",
                        case.name
                    ));
                    text += &table(&kind_table(&kinds));
                    text.push('\n');
                }
            }
        }
        if !self.summary.agreements.is_empty() {
            text += &title("simulator less kernel, percentage points");
            text += &table(&agreement_table(&self.summary.agreements));
            text.push('\n');
        }
        text
    }

    fn below(&self, below: &Below, table: &dyn Fn(&Table) -> String) -> String {
        let candidate = &self.results.of.candidate;
        let mut text = format!(
            "{candidate} against {}: {:+.2} on average of {} sets, better on {}, worse on {}\n",
            below.against, below.mean, below.sets, below.better, below.worse
        );
        let mut rows = Table::new(["worst", candidate, &below.against, "best choice"]);
        for lost in below.worst.iter().take(SHOWN) {
            rows.row([
                lost.set.clone(),
                percent(Some(lost.candidate)),
                percent(Some(lost.other)),
                percent(lost.best),
            ]);
        }
        if !below.worst.is_empty() {
            let _ = writeln!(text, "{}", table(&rows));
            for lost in below.worst.iter().take(SHOWN) {
                let subject = &self.results.of.subjects[lost.subject];
                let again = (self.command)(subject);
                let _ = writeln!(text, "- {}: {}; `{again}`", lost.set, lost.about);
            }
        }
        text.push('\n');
        text
    }

    pub fn json(&self) -> Result<String> {
        let of = self.results.of;
        let sets = of.subjects.iter().enumerate().map(|(i, subject)| {
            let best = &self.results.best[i];
            json!({
                "case": subject.case,
                "seed": subject.seed,
                "about": subject.describe(),
                "knobs": subject.knobs,
                "tasks": subject.set.tasks.len(),
                "cores": subject.set.cores,
                "best": { "jobs": best.jobs, "met": best.met, "chosen": best.chosen },
                "command": (self.command)(subject),
            })
        });
        let runs = self.results.runs.iter().map(|run| {
            json!({
                "machine": of.machines[run.machine].name(),
                "set": run.subject,
                "scheduler": run.scheduler,
                "repeat": run.repeat,
                "measured": run.outcome.as_ref().ok(),
                "failed": run.outcome.as_ref().err(),
            })
        });
        let body = json!({
            "version": 1,
            "candidate": of.candidate,
            "sets": sets.collect::<Vec<_>>(),
            "runs": runs.collect::<Vec<_>>(),
            "summary": self.summary,
        });
        Ok(serde_json::to_string_pretty(&body).context("cannot write JSON")? + "\n")
    }
}

fn percent(share: Option<f64>) -> String {
    share.map_or(UNKNOWN.into(), |share| format!("{share:.1}"))
}

fn standing_table(rows: &[&Standing]) -> Table {
    let mut table = Table::new([
        "scheduler",
        "sets",
        "on time %",
        "settled",
        "least",
        "critical",
        "response ms",
        "below best",
    ]);
    for row in rows {
        let two = |figure: Option<f64>| figure.map_or(UNKNOWN.into(), |f| format!("{f:.2}"));
        table.row([
            row.scheduler.clone(),
            row.sets.to_string(),
            two(row.compliance),
            two(row.settled),
            percent(row.least),
            two(row.critical),
            percent(row.response_ms),
            two(row.below_best),
        ]);
    }
    table.without_unknown()
}

fn said(verdict: &Verdict) -> String {
    let word = match verdict.holds {
        Some(true) => "holds",
        Some(false) => "DOES NOT HOLD",
        None => "has no figures",
    };
    let mut text = format!(
        "must hold: {}: {word} ({:.2} and {:.2} over {} sets)\n",
        verdict.condition, verdict.left, verdict.right, verdict.sets
    );
    if !verdict.against.is_empty() {
        let _ = writeln!(text, "  not on {}", verdict.against.join(", "));
    }
    text
}

fn kind_table(kinds: &[&Kind]) -> Table {
    let names = kinds[0].compliance.iter().map(|(name, _)| name.as_str());
    let mut table = Table::new(["kind", "sets"].into_iter().chain(names));
    for kind in kinds {
        let figures = kind
            .compliance
            .iter()
            .map(|(_, share)| percent(Some(*share)));
        table.row(
            [kind.kind.clone(), kind.sets.to_string()]
                .into_iter()
                .chain(figures),
        );
    }
    table
}

fn agreement_table(agreements: &[Agreement]) -> Table {
    let mut table = Table::new([
        "case",
        "scheduler",
        "sets",
        "mean",
        "distance",
        "within 3",
        "farthest",
        "simulated",
        "kernel",
    ]);
    for row in agreements {
        let (set, simulated, kernel) = row.worst.first().cloned().unwrap_or_default();
        table.row([
            row.case.clone(),
            row.scheduler.clone(),
            row.sets.to_string(),
            format!("{:+.2}", row.mean),
            format!("{:.2}", row.mean_distance),
            row.within_3.to_string(),
            set,
            percent(Some(simulated)),
            percent(Some(kernel)),
        ]);
    }
    table
}
