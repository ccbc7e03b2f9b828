//! `scx_temponet sim`: compare policies on identical task sets.

mod machine;
mod parse;
mod print;

use std::collections::HashSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{bail, Context, Result};
use clap::{Args, ValueEnum};

pub use self::machine::MachineArgs;
pub(super) use self::parse::parse_seed;
use self::parse::{parse_execution, parse_range};
use self::print::{printed, table_of};
use super::schedule::add_schedule;
pub(super) use super::time::parse_time as parse_duration;
use super::{out, progress};
use crate::report::file::{write_whole, STDIN};
use crate::report::perfetto::Timeline;
use crate::sim::compare::{self, Comparison, Contestant};
use crate::sim::engine::{Fate, Record, Sim};
use crate::sim::policies::{self, Entry, POLICIES};
use crate::sim::task::{Execution, Semantics, TaskSet};
use crate::sim::time::Ns;
use crate::sim::workload::{self, Params, WORKLOADS};
use crate::spelling::did_you_mean;

/// Compare scheduling policies on simulated task sets.
///
/// Every policy meets the same jobs; the same seed gives the same figures bit for
/// bit, whatever the number of threads. `sim --list` names workloads and policies.
#[derive(Args, Clone, Debug)]
pub struct SimArgs {
    /// A workload by name, or a task set in a .toml or .json file; - reads standard input.
    #[arg(
        short,
        long,
        default_value = "random5",
        value_name = "W|FILE",
        allow_hyphen_values = true
    )]
    pub workload: String,
    /// Policies, separated by commas; the first is what the others are compared
    /// with. Default: all that make sense on this many cores.
    #[arg(short, long, value_delimiter = ',', value_name = "P,P,…")]
    pub policy: Vec<String>,
    /// What happens to a job at its deadline.
    #[arg(long, value_enum, default_value = "both")]
    pub semantics: SemanticsArg,
    /// Number of cores (default: the workload's).
    #[arg(short = 'm', long, value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub cores: Option<u16>,
    /// Load per core, a number or a range to draw from: 0.9 or 0.6..1.0.
    #[arg(short, long, value_parser = parse_range, value_name = "U|LO..HI", allow_hyphen_values = true)]
    pub util: Option<(f64, f64)>,
    /// Number of tasks (default: the workload's).
    #[arg(short = 'n', long, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub tasks: Option<u32>,
    /// Number of task sets (default: 200; 1 for a file).
    #[arg(short = 'k', long, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub sets: Option<u32>,
    /// Where everything random starts.
    #[arg(short, long, default_value_t = 1, value_parser = parse_seed, allow_hyphen_values = true)]
    pub seed: u64,
    /// Simulated time per set, such as 500ms or 10s.
    #[arg(long, value_parser = parse_duration, value_name = "TIME")]
    pub horizon: Option<Ns>,
    /// Execution times of all tasks: wcet, uniform:LOW:HIGH,
    /// overrun:LOW:PROBABILITY:FACTOR or pareto:LOW:ALPHA:CAP, in shares of C.
    #[arg(long, value_parser = parse_execution, value_name = "MODEL")]
    pub execution: Option<Execution>,
    #[command(flatten)]
    pub machine: MachineArgs,
    /// Add what a clairvoyant could have met, where it can be computed.
    #[arg(long)]
    pub oracle: bool,
    /// Print everything as JSON.
    #[arg(long, conflicts_with = "csv")]
    pub json: bool,
    /// Print the table as CSV, with all columns.
    #[arg(long)]
    pub csv: bool,
    /// Print all columns of the table, not only those that fit a narrow terminal.
    #[arg(long)]
    pub wide: bool,
    /// Write the schedule of the first set under the first policy for ui.perfetto.dev.
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Write the first task set to a .toml or .json file.
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,
    /// Write the fate of every job of the first set under the first policy as CSV.
    #[arg(long, value_name = "FILE")]
    pub jobs: Option<PathBuf>,
    /// Say on standard error how long that one run took by itself.
    #[arg(long)]
    pub timing: bool,
    /// Threads (default: all cores).
    #[arg(short = 'j', long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// List workloads and policies.
    #[arg(long)]
    pub list: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SemanticsArg {
    Abort,
    Continue,
    Both,
}

/// Runs the command; an error is one sentence about the input.
pub fn run(args: &SimArgs) -> Result<()> {
    if args.list {
        return out::write(&list());
    }
    let source = Source::from(args)?;
    let first = source.set(0);
    let entries = chosen(&args.policy, &first)?;
    if let Some(path) = &args.save {
        first.save(path)?;
    }
    if args.trace.is_some() || args.jobs.is_some() || args.timing {
        write_single_run(args, &first, entries[0])?;
    }
    let comparisons = compare_all(args, &source, &entries)?;
    let text = if args.json {
        let body = serde_json::json!({ "version": 1, "comparisons": comparisons });
        serde_json::to_string_pretty(&body)? + "\n"
    } else if args.csv {
        table_of(&comparisons, true).to_csv()
    } else {
        comparisons
            .iter()
            .map(|comparison| printed(comparison, args.wide))
            .collect::<Vec<_>>()
            .join("\n")
    };
    out::write(&text)
}

/// Where the task sets come from.
enum Source {
    File(Box<TaskSet>),
    Generated {
        workload: &'static workload::Workload,
        params: Params,
        seed: u64,
    },
}

impl Source {
    fn from(args: &SimArgs) -> Result<Source> {
        let known = workload::find(&args.workload);
        let path = Path::new(&args.workload);
        if let Some(workload) = known {
            return Ok(Source::Generated {
                workload,
                params: Params {
                    cores: args.cores.map(usize::from),
                    tasks: args.tasks.map(|n| n as usize),
                    load: args.util,
                    horizon_ns: args.horizon,
                    execution: args.execution.clone(),
                },
                seed: args.seed,
            });
        }
        if path.extension().is_none() && path.as_os_str() != STDIN && !path.exists() {
            let names: Vec<&str> = WORKLOADS.iter().map(|w| w.name).collect();
            bail!(
                "there is no workload or file called {:?}{}; workloads are {}",
                args.workload,
                did_you_mean(&args.workload, &names),
                names.join(", ")
            );
        }
        if args.util.is_some() || args.tasks.is_some() {
            bail!("--util and --tasks shape generated workloads; edit the file instead");
        }
        let mut set = TaskSet::load(path)?;
        if let Some(cores) = args.cores {
            set.cores = usize::from(cores);
        }
        if let Some(horizon) = args.horizon {
            set.horizon_ns = horizon;
        }
        if let Some(execution) = &args.execution {
            for task in &mut set.tasks {
                task.execution = execution.clone();
            }
        }
        Ok(Source::File(Box::new(set)))
    }

    /// The set of this number. A file is one set; more of them differ in the
    /// seed of its random parts.
    fn set(&self, index: usize) -> TaskSet {
        match self {
            Source::File(set) => TaskSet {
                seed: set.seed.wrapping_add(index as u64),
                ..(**set).clone()
            },
            Source::Generated {
                workload,
                params,
                seed,
            } => workload.generate(params, *seed, index as u64),
        }
    }

    fn count(&self, args: &SimArgs) -> usize {
        let default = match self {
            Source::File(_) => 1,
            Source::Generated { .. } => 200,
        };
        args.sets.map_or(default, |n| n as usize)
    }
}

/// DP-Wrap preempts once per task between any two events of anybody: beyond this
/// many tasks it takes minutes, so it must be asked for.
const DP_WRAP_TASKS: usize = 100;

pub(super) fn chosen(names: &[String], set: &TaskSet) -> Result<Vec<&'static Entry>> {
    if names.is_empty() {
        // EDF first: it is what everybody is compared with.
        let mut entries: Vec<&Entry> = POLICIES
            .iter()
            .filter(|e| {
                if set.cores == 1 {
                    e.one_core
                } else {
                    e.many_cores
                }
            })
            .filter(|e| e.name != "dp-wrap" || set.tasks.len() <= DP_WRAP_TASKS)
            .collect();
        entries.sort_by_key(|e| e.name != "plain-edf");
        return Ok(entries);
    }
    distinct(names)
        .into_iter()
        .map(|name| policies::find(name).with_context(|| policies::unknown(name)))
        .collect()
}

/// Each name once, where it stands first.
pub(super) fn distinct(names: &[String]) -> Vec<&String> {
    let mut seen = HashSet::new();
    names.iter().filter(|name| seen.insert(*name)).collect()
}

fn semantics(args: &SimArgs) -> Vec<Semantics> {
    match args.semantics {
        SemanticsArg::Abort => vec![Semantics::Abort],
        SemanticsArg::Continue => vec![Semantics::Continue],
        SemanticsArg::Both => Semantics::BOTH.to_vec(),
    }
}

fn compare_all(args: &SimArgs, source: &Source, entries: &[&Entry]) -> Result<Vec<Comparison>> {
    let sets = source.count(args);
    let modes = semantics(args);
    let runs = sets * modes.len() * (entries.len() + usize::from(args.oracle));
    let bar = progress::runs(runs as u64);
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(args.threads.map_or(0, usize::from))
        .build()
        .context("cannot start the worker threads")?;
    let comparisons = modes
        .into_iter()
        .map(|semantics| {
            let plan = compare::ComparisonPlan {
                workload: args.workload.clone(),
                seed: args.seed,
                sets,
                set: &|index| source.set(index),
                contestants: entries
                    .iter()
                    .map(|entry| Contestant {
                        name: entry.name.to_owned(),
                        make: &entry.make,
                    })
                    .collect(),
                options: args.machine.options(semantics),
                with_oracle: args.oracle,
                tick: &|| bar.inc(1),
            };
            pool.install(|| compare::run(&plan))
        })
        .collect();
    bar.finish_and_clear();
    Ok(comparisons)
}

fn write_single_run(args: &SimArgs, set: &TaskSet, entry: &Entry) -> Result<()> {
    let record = Record {
        jobs: true,
        segments: true,
        events: false,
    };
    let options = args.machine.options(semantics(args)[0]);
    let mut sim = Sim::new(set, set.cores, options, record);
    let start = Instant::now();
    sim.run((entry.make)().as_mut());
    if args.timing {
        let took = start.elapsed();
        out::errln!("{} job-events in {took:?}", sim.tally.job_events);
    }
    if let Some(path) = &args.trace {
        let title = format!(
            "{} under {}, late jobs: {}",
            set.name,
            entry.name,
            options.semantics.name()
        );
        let mut timeline = Timeline::default();
        let (jobs, segments) = (&sim.tally.records, &sim.tally.segments);
        add_schedule(&mut timeline, &title, set, jobs, segments);
        write_whole(path, &timeline.finish())?;
    }
    if let Some(path) = &args.jobs {
        let mut records = sim.tally.records.clone();
        records.sort_by_key(|r| (r.task, r.index));
        let mut text = String::from("task,index,release_ns,deadline_ns,finish_ns,met\n");
        for r in records {
            let finish = r.finish.map_or(String::new(), |t| t.to_string());
            let met = u8::from(r.fate == Fate::OnTime);
            let name = &set.tasks[r.task as usize].name;
            let _ = writeln!(
                text,
                "{name},{},{},{},{finish},{met}",
                r.index, r.release, r.deadline
            );
        }
        write_whole(path, text.as_bytes())?;
    }
    Ok(())
}

fn list() -> String {
    let mut text = String::from("workloads\n");
    for w in WORKLOADS {
        let _ = writeln!(text, "  {:<12} {}", w.name, w.about);
    }
    text.push_str("policies\n");
    for p in POLICIES {
        let _ = writeln!(text, "  {:<12} {}", p.name, p.about);
    }
    text
}
