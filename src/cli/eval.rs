//! `scx_temponet eval`: is a model worth shipping?

use std::path::PathBuf;

use anyhow::{ensure, Context, Result};
use clap::{Args, ValueEnum};

use super::{out, progress};
use crate::policy::network::Model;
use crate::report::table::Table;
use crate::train::eval::{Report, Suite};

/// Measure a model against the classics, on sets that training never saw.
///
/// Every figure is paired: all policies meet the same sets. The same model
/// gives the same figures, whatever the number of threads.
#[derive(Args, Clone, Debug)]
pub struct EvalArgs {
    /// What to measure.
    #[arg(long, value_enum, default_value = "lines")]
    pub suite: SuiteArg,
    /// The model (default: the one that comes with this program).
    #[arg(long, value_name = "MODEL.onnx")]
    pub model: Option<PathBuf>,
    /// Task sets per load.
    #[arg(short = 'k', long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(2..=100_000))]
    pub sets: u32,
    /// Only these lines, such as ABD.
    #[arg(long, default_value = "ABCDEF")]
    pub lines: String,
    /// Print everything as JSON.
    #[arg(long)]
    pub json: bool,
    /// Print all columns of the table, not only those that fit a narrow terminal.
    #[arg(long)]
    pub wide: bool,
    /// Threads (default: all cores).
    #[arg(short = 'j', long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SuiteArg {
    /// The lines A to F that a shipped model must hold.
    Lines,
}

pub fn run(args: &EvalArgs) -> Result<()> {
    ensure!(
        !args.lines.is_empty() && args.lines.chars().all(|line| ('A'..='F').contains(&line)),
        "lines are some of ABCDEF, not {:?}",
        args.lines
    );
    let model = Model::open(args.model.as_deref())?;
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(args.threads.map_or(0, usize::from))
        .build()
        .context("cannot start the worker threads")?;
    let suite = Suite {
        model: &model,
        sets: args.sets as usize,
        lines: &args.lines,
    };
    let bar = progress::work(suite.work());
    let report = pool.install(|| {
        suite.run(&|line, work| {
            bar.set_message(format!("line {line}"));
            bar.inc(work);
        })
    });
    bar.finish_and_clear();
    let text = match args.json {
        true => serde_json::to_string_pretty(&report)? + "\n",
        false => printed(&report, args.wide),
    };
    out::write(&text)
}

/// The columns, and whether they are shown where nobody asks for all.
const COLUMNS: [(&str, bool); 15] = [
    ("line", true),
    ("sets of", true),
    ("load", true),
    ("met %", true),
    ("±95 %", true),
    ("bare %", false),
    ("shield+plain-edf %", false),
    ("best classic", true),
    ("its met %", true),
    ("points", true),
    ("95 % low", false),
    ("95 % high", false),
    ("optimum %", false),
    ("PITMD %", false),
    ("best classic's", false),
];

fn printed(report: &Report, wide: bool) -> String {
    let shown = |(cell, (_, always)): (String, (&str, bool))| (wide || always).then_some(cell);
    let chosen = |cells: Vec<String>| cells.into_iter().zip(COLUMNS).filter_map(shown);
    let mut table = Table::new(chosen(COLUMNS.map(|(title, _)| title.to_owned()).into()));
    let some = |value: Option<f64>| value.map_or("-".into(), |v| format!("{v:.2}"));
    for row in &report.rows {
        let (low, high) = row.load;
        let load = match low == high {
            true => format!("{low}"),
            false => format!("{low}..{high}"),
        };
        table.row(chosen(vec![
            row.line.to_string(),
            row.family.into(),
            load,
            format!("{:.2}", row.shielded),
            format!("{:.2}", row.half_interval),
            format!("{:.2}", row.bare),
            format!("{:.2}", row.shield_alone),
            row.best_rival.clone(),
            format!("{:.2}", row.rival),
            format!("{:+.2}", row.against_best),
            format!("{:+.2}", row.against_best_low),
            format!("{:+.2}", row.against_best_high),
            some(row.oracle),
            some(row.critical),
            some(row.rival_critical),
        ]));
    }
    let mut text = format!(
        "{}: {} sets per load, seed {}\n\
         met: jobs on time, in per cent; load: CPUs asked for, per core; points: percentage \
         points above the best classic\n{table}",
        report.model, report.sets, report.seed
    );
    for verdict in &report.verdicts {
        let word = if verdict.holds { "holds" } else { "FAILS" };
        text += &format!("line {} {word}\n", verdict.line);
        for because in &verdict.because {
            text += &format!("  {because}\n");
        }
    }
    text
}
