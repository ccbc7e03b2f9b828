//! Who gets how much of the CPU, and how soon, under one scheduler and another. The same
//! program plans the runs, plays each in the guest, and tells the verdicts on the host.
//! tests/vm/fair.sh runs it; its manual is there.
//!
//!     fair plan    the runs, a line each: case, variant, column, how the scheduler is started
//!     fair play    in the guest: one run, whose record it prints
//!     fair report  tables and verdicts of the records of a folder; status 1: one does not hold
mod calls;
mod cases;
mod due;
mod hint;
mod latency;
mod limits;
mod mutex;
mod plan;
mod record;
mod report;
mod rhythm;
mod scene;
mod stage;
mod verdict;
mod weights;
mod worker;

#[allow(dead_code)]
#[path = "../storm/rng.rs"]
mod rng;
#[allow(dead_code)]
#[path = "../storm/sets.rs"]
mod sets;
#[allow(dead_code)]
#[path = "../storm/sys.rs"]
mod sys;

use anyhow::Result;
use cases::Case;
use clap::{Parser, Subcommand};
use record::Record;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Parser)]
#[command(about = "Shares of the CPU under one scheduler and another")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Print the runs of these cases (default: all).
    Plan {
        #[arg(value_parser = plan::parse_wanted)]
        cases: Vec<plan::Wanted>,
        /// A number, or a range such as 1..5, both ends included.
        #[arg(long, value_parser = plan::parse_seeds, default_value = "1")]
        seed: plan::Seeds,
        #[arg(long, value_delimiter = ',', required = true)]
        against: Vec<String>,
        /// The folder for the rules of declared tasks.
        #[arg(long)]
        rules: PathBuf,
    },
    /// Print who runs in a case.
    Scene {
        #[arg(value_enum)]
        case: Case,
        variant: String,
    },
    /// Play one run.
    Play {
        #[arg(value_enum)]
        case: Case,
        variant: String,
        column: String,
        #[arg(long, default_value_t = 10)]
        seconds: u64,
    },
    /// Tell what the records of a folder say: PLAN is what `fair plan` printed.
    Report {
        plan: PathBuf,
        folder: PathBuf,
        /// All records and verdicts, as JSON.
        #[arg(long)]
        json: Option<PathBuf>,
    },
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Plan {
            cases,
            seed,
            against,
            rules,
        } => plan::print(&cases, &seed.0, &against, &rules),
        Command::Scene { case, variant } => {
            println!("{:#?}", case.scene(&variant));
            Ok(ExitCode::SUCCESS)
        }
        Command::Play {
            case,
            variant,
            column,
            seconds,
        } => play(case, &variant, &column, seconds),
        Command::Report { plan, folder, json } => report::tell(&plan, &folder, json.as_deref()),
    };
    done.unwrap_or_else(|error| {
        eprintln!("fair: {error:#}");
        ExitCode::from(2)
    })
}

fn play(case: Case, variant: &str, column: &str, seconds: u64) -> Result<ExitCode> {
    let scene = case.scene(variant);
    if case.has_rhythm() {
        rhythm::write_workload(case, variant, column, seconds)?;
    }
    let seen = stage::play(&scene, seconds, plan::is_ours(column))?;
    let mut record = Record::new(case, variant, column);
    record.add_seen(&scene, &seen);
    match case {
        Case::Weights => record.judge_shares(&scene, &seen),
        Case::Rhythm | Case::SmallDeclarations => {
            rhythm::add_jobs(&mut record, case, variant, column, seconds)?;
        }
        Case::Mutex => record.add_own_jobs(&seen),
        Case::CpuMax => record.add_limits(&scene, &seen),
        _ => record.set("hog %", seen.members[0] * 100.0),
    }
    println!("{}", serde_json::to_string(&record)?);
    Ok(ExitCode::SUCCESS)
}
