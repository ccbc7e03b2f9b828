//! `scx_temponet replay`: rt-app workloads and logs under several schedulers.

mod contest;
mod input;
mod page;
mod print;

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};

use self::contest::Contest;
use self::input::Input;
use super::out;
use super::schedule::add_schedule;
use super::sim::{parse_duration, progress, MachineArgs};
use crate::report::file::write_whole;
use crate::report::perfetto::Timeline;
use crate::rtapp::outcome::{self, Outcome};
use crate::sim::task::Semantics;
use crate::sim::time::Ns;

/// Replay an rt-app workload, or what rt-app logged, under several schedulers.
///
/// All schedulers meet the same jobs, and late jobs go on, as in rt-app. What the
/// file says and the simulator does not model is told with its line and column.
#[derive(Args, Clone, Debug)]
pub struct ReplayArgs {
    /// A workload (.json), or logs of a run: files ending in .log, or folders of them.
    #[arg(required = true, value_name = "WORKLOAD.json|LOG…")]
    pub inputs: Vec<PathBuf>,
    /// In the simulator; so it is unless told otherwise.
    #[arg(long)]
    pub sim: bool,
    /// Policies, separated by commas, as `sim --list` names them.
    #[arg(short, long, value_delimiter = ',', value_name = "P,P,…")]
    #[arg(default_values = ["edf", "rm", "fcfs", "mh"])]
    pub policy: Vec<String>,
    /// Another model than the shipped one for the policy temponet, the network under
    /// the shield.
    #[arg(long, value_name = "MODEL.onnx")]
    pub model: Option<PathBuf>,
    /// Number of cores (default: the CPUs named in the workload, if all threads are
    /// pinned; otherwise 1).
    #[arg(short = 'm', long, value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub cores: Option<u16>,
    /// Simulated time (default: the workload's duration; 10s where it has none).
    #[arg(long, value_parser = parse_duration, value_name = "TIME")]
    pub horizon: Option<Ns>,
    /// Threads that are mission-critical: PITMD is the share of their jobs that met
    /// their deadlines.
    #[arg(long, value_delimiter = ',', value_name = "THREAD,…")]
    pub critical: Vec<String>,
    /// What a job from a log takes: what was measured (preemption counts), or what
    /// rt-app was told to run.
    #[arg(long, value_enum, default_value = "measured")]
    pub run_times: RunTimesArg,
    #[command(flatten)]
    pub machine: MachineArgs,
    /// Print everything as JSON.
    #[arg(long)]
    pub json: bool,
    /// Write a page with tables, distributions and the worst stretch; one file, for
    /// any browser.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write the schedules for ui.perfetto.dev.
    #[arg(long, value_name = "FILE")]
    pub perfetto: Option<PathBuf>,
    /// Write the task set to a .toml or .json file, for `sim --workload`.
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RunTimesArg {
    Measured,
    Configured,
}

/// Runs the command; an error is one sentence about the input.
pub fn run(args: &ReplayArgs) -> Result<()> {
    let input = Input::read(args)?;
    let set = &input.converted.set;
    let contest = Contest::new(&args.policy, args.model.as_deref(), set)?;
    let contestants = contest.contestants();
    let options = args.machine.options(Semantics::Continue);
    for warning in input.warnings() {
        eprintln!("warning: {warning}");
    }
    if let Some(path) = &args.save {
        set.save(path)?;
    }
    let bar = progress(contestants.len() as u64);
    let simulated = outcome::simulate(&input.converted, &contestants, options, &|| bar.inc(1));
    bar.finish_and_clear();
    let mut outcomes: Vec<Outcome> = input.recorded().into_iter().collect();
    outcomes.extend(simulated);
    if let Some(path) = &args.html {
        write_whole(
            path,
            &page::of(&input, &options, contest.model.as_deref(), &outcomes)?,
        )?;
    }
    if let Some(path) = &args.perfetto {
        write_whole(path, &timeline(&input, &outcomes))?;
    }
    let text = if args.json {
        let body = serde_json::json!({
            "version": 1,
            "input": args.inputs,
            "cores": set.cores,
            "horizon_ms": crate::sim::time::to_ms(set.horizon_ns),
            "utilisation": input.demand(),
            "options": options,
            "model": contest.model,
            "notes": input.converted.notes,
            "schedulers": outcomes,
        });
        serde_json::to_string_pretty(&body).context("cannot write JSON")? + "\n"
    } else {
        print::text(&input, &outcomes)
    };
    out::write(&text)
}

/// Every simulated schedule as a process of its own.
fn timeline(input: &Input, outcomes: &[Outcome]) -> Vec<u8> {
    let mut timeline = Timeline::default();
    for outcome in outcomes.iter().filter(|o| !o.segments.is_empty()) {
        let title = format!("{} under {}", input.title, outcome.scheduler);
        let set = &input.converted.set;
        add_schedule(&mut timeline, &title, set, &outcome.jobs, &outcome.segments);
    }
    timeline.finish()
}
