//! `scx_temponet replay`: rt-app workloads and logs under several schedulers.

mod columns;
mod contest;
mod guest;
mod input;
mod live;
mod page;
mod print;
mod record;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use anyhow::{ensure, Context, Result};
use clap::{Args, ValueEnum};

use self::contest::Contest;
use self::input::Input;
use self::live::{Field, Live};
use super::out;
use super::progress;
use super::schedule::add_schedule;
use super::sim::{parse_duration, MachineArgs};
use crate::report::file::write_whole;
use crate::report::perfetto::Timeline;
use crate::rtapp::live::Interrupted;
use crate::rtapp::outcome::{self, Outcome};
use crate::rtapp::verdict::{self, ReplayVerdict};
use crate::sim::engine::Options;
use crate::sim::task::Semantics;
use crate::sim::time::Ns;

/// Replay an rt-app workload, its logs, or a recording, under several schedulers.
///
/// All schedulers meet the same jobs, and late jobs go on, as in rt-app. What the
/// file says and the simulator does not model is told with its line and column.
/// With --live the real rt-app runs, on this kernel; with --vm, in a guest.
#[derive(Args, Clone, Debug)]
pub struct ReplayArgs {
    /// A workload (.json), a task set or recording (.json, .toml), or logs of a run:
    /// files ending in .log, or folders of them. - reads a workload or a set from
    /// standard input.
    #[arg(required = true, value_name = "FILE|LOG…")]
    pub inputs: Vec<PathBuf>,
    /// In the simulator; so it is unless told otherwise.
    #[arg(long, conflicts_with_all = ["live", "vm", "record"])]
    pub sim: bool,
    /// Run the real rt-app on this machine, under one scheduler after the other.
    #[arg(long, conflicts_with_all = ["vm", "record"])]
    pub live: bool,
    /// The same in a guest with this kernel, a version or a bzImage (needs a checkout).
    #[arg(long, value_name = "KERNEL", num_args = 0..=1, default_missing_value = "6.18.15")]
    #[arg(conflicts_with = "record")]
    pub vm: Option<String>,
    /// The guest's clock: counting instructions, so that figures do not depend on the
    /// host, or running.
    #[arg(long, value_enum, default_value = "icount", requires = "vm")]
    pub vm_mode: VmMode,
    /// With --live or --vm: as-is, eevdf, fifo-rm, deadline, edf, plain-edf, temponet,
    /// distilled (also -nohints), and any installed scx_NAME (default: eevdf and edf).
    #[arg(long, value_delimiter = ',', value_name = "S,S,…")]
    pub against: Vec<String>,
    /// What one of rt-app's loops takes: measured first, or the file's figure, which
    /// was measured on some machine.
    #[arg(long, value_enum, default_value = "measured")]
    pub calibration: CalibrationArg,
    /// Let rt-app use the files and cgroups that the workload names (io_device, taskgroup). It
    /// runs with your rights: as root it may overwrite any file.
    #[arg(long, requires = "live")]
    pub trust_workload: bool,
    /// Record what runs on this machine for so long, such as 60s, into FILE, a task set that
    /// replay, sim and train take; a number alone is seconds. Ctrl-C ends it early and keeps
    /// what there is.
    #[arg(long, value_name = "TIME", value_parser = record::parse_seconds)]
    pub record: Option<Ns>,
    /// Simulated policies, separated by commas, as `sim --list` names them; edf is
    /// what this scheduler's edf does, as with --against, and plain-edf the textbook's
    /// (default: eevdf, edf, plain-edf, rm, fcfs and mh; beside a live run: none).
    #[arg(short, long, value_delimiter = ',', value_name = "P,P,…")]
    pub policy: Vec<String>,
    /// Another model than the shipped one for the policy temponet, the network under
    /// the shield.
    #[arg(long, value_name = "MODEL.onnx")]
    pub model: Option<PathBuf>,
    /// Number of cores (default: the CPUs named in the workload, if all threads are
    /// pinned; otherwise 1, or, live, all there are).
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
    /// Write the verdict and the tables as Markdown.
    #[arg(long, value_name = "FILE")]
    pub md: Option<PathBuf>,
    /// For CI: exit status 3 where a scheduler of the table has less than PERCENT of all
    /// judged jobs on time, or of the critical ones, or where no job is judged. Name those
    /// to be held to it with --policy or --against.
    #[arg(long, value_name = "PERCENT", value_parser = parse_percent, conflicts_with = "record")]
    pub fail_below: Option<f64>,
    /// Write the schedules for ui.perfetto.dev.
    #[arg(long, value_name = "FILE")]
    pub perfetto: Option<PathBuf>,
    /// Write the task set to a .toml or .json file, for `sim --workload`.
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,
    /// Write what a live run brought to a file, for the machine that hosts this one.
    #[arg(long, value_name = "FILE", hide = true, requires = "live")]
    pub collect: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum VmMode {
    Icount,
    Fast,
}

impl VmMode {
    fn name(self) -> &'static str {
        match self {
            VmMode::Icount => "icount",
            VmMode::Fast => "fast",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CalibrationArg {
    Measured,
    File,
}

/// Exit status of --fail-below; 1 is a scheduler that failed, 2 bad input.
const BELOW: u8 = 3;

fn parse_percent(text: &str) -> Result<f64, String> {
    let percent = text.trim_end_matches('%').trim().parse::<f64>();
    let percent = percent.map_err(|_| format!("{text:?} is no number"))?;
    match (0.0..=100.0).contains(&percent) {
        true => Ok(percent),
        false => Err("between 0 and 100 percent can be asked for".into()),
    }
}

/// Simulated when nobody says what.
const USUAL: [&str; 6] = ["eevdf", "edf", "plain-edf", "rm", "fcfs", "mh"];
/// The same for live runs.
const USUAL_LIVE: [&str; 2] = ["eevdf", "edf"];

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RunTimesArg {
    Measured,
    Configured,
}

/// Runs the command; an error is one sentence about the input.
pub fn run(args: &ReplayArgs) -> Result<ExitCode> {
    let stop = Arc::new(AtomicBool::new(false));
    if args.record.is_some() || args.live || args.vm.is_some() {
        let stop = stop.clone();
        ctrlc::set_handler(move || stop.store(true, Ordering::Relaxed))
            .context("cannot catch Ctrl-C")?;
    }
    if let Some(asked) = args.record {
        ensure!(
            args.inputs.len() == 1,
            "--record writes one file, and {} are named",
            args.inputs.len()
        );
        record::run(asked, &args.inputs[0], args.json, &stop)?;
        return Ok(ExitCode::SUCCESS);
    }
    match replay(args, &stop) {
        Err(why) if why.is::<Interrupted>() => {
            out::errln!("scx_temponet: {why}");
            Ok(ExitCode::from(super::INTERRUPTED))
        }
        done => done,
    }
}

fn replay(args: &ReplayArgs, stop: &AtomicBool) -> Result<ExitCode> {
    let wished = args.cores.map(usize::from);
    let field = Field::of(args);
    ensure!(
        args.against.is_empty() || field.is_some(),
        "--against is for --live and --vm; the simulator's policies are --policy"
    );
    let field = std::cell::RefCell::new(field);
    let cpus = std::cell::RefCell::new(Vec::new());
    let mut input = Input::read(args, &|workload| {
        let Some(field) = &mut *field.borrow_mut() else {
            return Ok(wished);
        };
        *cpus.borrow_mut() = field.cpus(workload, wished)?;
        Ok(Some(cpus.borrow().len()))
    })?;
    let field = field.into_inner();
    let names: Vec<String> = match (args.policy.is_empty(), &field) {
        (false, _) => args.policy.clone(),
        (true, Some(_)) => Vec::new(),
        (true, None) => USUAL.map(String::from).into(),
    };
    if let (true, Some(workload)) = (names.is_empty(), &input.workload) {
        // What only the simulator cannot do is no concern of a machine's.
        input.converted.notes = workload.notes.clone();
    }
    let input = input;
    let set = &input.converted.set;
    // For a live run the model is the loaded scheduler's.
    let model = args.model.as_deref().filter(|_| !names.is_empty());
    let contest = Contest::new(&names, model, set)?;
    let options = args.machine.options(Semantics::Continue);
    for warning in input.warnings() {
        out::errln!("warning: {warning}");
    }
    if let Some(path) = &args.save {
        set.save(path)?;
    }
    let live = match &field {
        None => None,
        Some(field) => Some(Live::run(args, field, &input, cpus.into_inner(), stop)?),
    };
    let failed = live.as_ref().map_or(0, |live| live.failures().count());
    let status = u8::from(failed > 0);
    if let (Some(live), Some(path)) = (&live, &args.collect) {
        live.save(path)?;
        return Ok(ExitCode::from(status));
    }
    let outcomes = outcomes(&input, &contest, options, live.as_ref());
    let failures: Vec<(&str, &str)> = live.iter().flat_map(Live::failures).collect();
    let verdict = verdict::judge(set, &outcomes, &failures);
    let told = Told {
        input: &input,
        model: contest.model.as_deref(),
        options,
        live: live.as_ref(),
        outcomes: &outcomes,
        verdict: &verdict,
    };
    told.report(args)?;
    let below = args
        .fail_below
        .is_some_and(|least| is_below(&verdict, least));
    Ok(ExitCode::from(match (status, below) {
        (0, true) => BELOW,
        _ => status,
    }))
}

/// What was recorded, what ran, and what was simulated, in this order.
fn outcomes(
    input: &Input,
    contest: &Contest,
    options: Options,
    live: Option<&Live>,
) -> Vec<Outcome> {
    let contestants = contest.contestants();
    let bar = progress::runs(contestants.len() as u64);
    let mut simulated = outcome::simulate(&input.converted, &contestants, options, &|| bar.inc(1));
    bar.finish_and_clear();
    let mut outcomes: Vec<Outcome> = input.recorded().into_iter().collect();
    if let Some(live) = live {
        for note in &live.collected.notes {
            out::errln!("warning: {note}");
        }
        outcomes.extend(live.outcomes(input));
    }
    for outcome in &mut simulated {
        outcome.means = contest::means(&outcome.scheduler);
        if live.is_some() {
            outcome.scheduler += " (sim)";
        }
    }
    outcomes.extend(simulated);
    outcomes
}

/// Says which schedulers have too few jobs on time.
fn is_below(verdict: &ReplayVerdict, least: f64) -> bool {
    let mut below = false;
    for scheduler in &verdict.schedulers {
        let name = &scheduler.scheduler;
        if scheduler.jobs == 0 {
            out::errln!("replay: {name} has no job to judge (--fail-below {least})");
            below = true;
        }
        let shares = [
            ("jobs", Some(scheduler.compliance)),
            ("critical jobs", scheduler.critical_compliance),
        ];
        for (what, share) in shares {
            let Some(percent) = share.map(|share| share * 100.0).filter(|&p| p < least) else {
                continue;
            };
            out::errln!(
                "replay: {name} has {percent:.3} % of its {what} on time (--fail-below {least})"
            );
            below = true;
        }
    }
    below || verdict.schedulers.is_empty()
}

/// Everything there is to tell.
struct Told<'a> {
    input: &'a Input,
    model: Option<&'a str>,
    options: Options,
    live: Option<&'a Live>,
    outcomes: &'a [Outcome],
    verdict: &'a ReplayVerdict,
}

impl Told<'_> {
    fn report(&self, args: &ReplayArgs) -> Result<()> {
        let Told {
            input,
            outcomes,
            verdict,
            ..
        } = *self;
        let facts = page::Facts::of(input, &self.options, self.model, self.live);
        if let Some(path) = &args.html {
            write_whole(path, &page::of(input, &facts, verdict, outcomes)?)?;
        }
        if let Some(path) = &args.md {
            let text = print::markdown(input, &facts, verdict, outcomes);
            write_whole(path, text.as_bytes())?;
        }
        if let Some(path) = &args.perfetto {
            write_whole(path, &timeline(input, self.live, outcomes))?;
        }
        let text = match args.json {
            true => self.json(args)?,
            false => print::text(input, self.live, verdict, outcomes),
        };
        out::write(&text)
    }

    fn json(&self, args: &ReplayArgs) -> Result<String> {
        let set = &self.input.converted.set;
        let body = serde_json::json!({
            "version": 1,
            "input": args.inputs,
            "cores": set.cores,
            "horizon_ms": crate::sim::time::to_ms(set.horizon_ns),
            "utilisation": self.input.demand(),
            "options": self.options,
            "model": self.model,
            "live": self.live.map(Live::to_json),
            "notes": self.input.converted.notes,
            "verdict": self.verdict,
            "schedulers": self.outcomes,
        });
        Ok(serde_json::to_string_pretty(&body).context("cannot write JSON")? + "\n")
    }
}

/// Every schedule as a process of its own.
fn timeline(input: &Input, live: Option<&Live>, outcomes: &[Outcome]) -> Vec<u8> {
    let mut timeline = Timeline::default();
    for outcome in outcomes.iter().filter(|o| !o.segments.is_empty()) {
        let mut title = format!("{} under {}", input.title, outcome.scheduler);
        if let (Some(live), Some(loaded)) = (live, &outcome.loaded) {
            title += &format!(" ({loaded}) on Linux {}", live.collected.machine.kernel);
        }
        let set = &input.converted.set;
        add_schedule(&mut timeline, &title, set, &outcome.jobs, &outcome.segments);
    }
    timeline.finish()
}
