//! Tables of a folder's records, figures side by side, and the verdicts.
use crate::plan::Run;
use crate::record::Record;
use crate::verdict::{self, Verdict};
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

/// The runs of one variant of one case, by column in the order of the plan.
pub struct Group {
    pub case: String,
    pub variant: String,
    /// A record, or why there is none.
    pub runs: Vec<(String, Result<Record, String>)>,
}

impl Group {
    pub fn of(&self, column: &str) -> Option<&Record> {
        let run = self.runs.iter().find(|(name, _)| name == column)?;
        run.1.as_ref().ok()
    }

    pub fn figure(&self, column: &str, figure: &str) -> Option<f64> {
        self.of(column)?.figures.get(figure).copied()
    }
}

pub fn tell(plan: &Path, folder: &Path, json: Option<&Path>) -> Result<ExitCode> {
    let groups = read(plan, folder)?;
    groups.iter().for_each(print_table);
    let verdicts: Vec<Verdict> = verdict::all(&groups);
    for verdict in &verdicts {
        println!("{verdict}");
    }
    if let Some(file) = json {
        let runs = groups.iter().flat_map(|group| &group.runs);
        let records: Vec<&Record> = runs.filter_map(|(_, run)| run.as_ref().ok()).collect();
        let whole = serde_json::json!({ "records": records, "verdicts": verdicts });
        fs::write(file, serde_json::to_string_pretty(&whole)?)
            .context("cannot write the JSON file")?;
    }
    Ok(ExitCode::from(u8::from(verdicts.iter().any(|v| !v.holds))))
}

fn read(plan: &Path, folder: &Path) -> Result<Vec<Group>> {
    let text = fs::read_to_string(plan).with_context(|| format!("no plan {}", plan.display()))?;
    let mut groups: Vec<Group> = Vec::new();
    for run in text.lines().filter_map(Run::parse) {
        let found = read_run(&run, folder);
        let known = groups
            .iter_mut()
            .find(|group| group.case == run.case && group.variant == run.variant);
        match known {
            Some(group) => group.runs.push((run.column, found)),
            None => groups.push(Group {
                case: run.case,
                variant: run.variant,
                runs: vec![(run.column, found)],
            }),
        }
    }
    Ok(groups)
}

fn read_run(run: &Run, folder: &Path) -> Result<Record, String> {
    if let Ok(reason) = fs::read_to_string(folder.join(run.file("failed"))) {
        return Err(reason.trim().to_string());
    }
    let text = fs::read_to_string(folder.join(run.file("json")))
        .map_err(|_| "the guest never came to it")?;
    serde_json::from_str(&text).map_err(|error| error.to_string())
}

/// Figures in rows, schedulers in columns.
fn print_table(group: &Group) {
    let width = group
        .runs
        .iter()
        .map(|(name, _)| name.len() + 2)
        .max()
        .unwrap_or(0)
        .max(12);
    print!("{:<24}", format!("{} {}", group.case, group.variant));
    for (name, _) in &group.runs {
        print!("{name:>width$}");
    }
    println!();
    let mut figures: BTreeMap<&str, ()> = BTreeMap::new();
    for (_, run) in &group.runs {
        figures.extend(
            run.iter()
                .flat_map(|record| record.figures.keys().map(|name| (name.as_str(), ()))),
        );
    }
    for figure in figures.keys() {
        print!("  {figure:<22}");
        for (name, _) in &group.runs {
            match group.figure(name, figure) {
                Some(value) => print!("{:>width$}", round(value)),
                None => print!("{:>width$}", "-"),
            }
        }
        println!();
    }
    for (name, run) in &group.runs {
        match run {
            Err(reason) => println!("  {name} failed: {}", reason.replace('\n', "\n    ")),
            Ok(record) => {
                for (what, words) in &record.words {
                    println!("  {name}, {what}: {words}");
                }
            }
        }
    }
    println!();
}

fn round(value: f64) -> String {
    match value {
        _ if value == value.trunc() => format!("{value}"),
        _ if value.abs() < 100.0 => format!("{value:.2}"),
        _ => format!("{value:.0}"),
    }
}
