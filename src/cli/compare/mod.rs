//! `scx_temponet compare`: schedulers on task sets, simulated and on kernels.

mod page;
mod print;

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{ensure, Context, Result};
use clap::{Args, ValueEnum};
use indicatif::ProgressBar;

use super::{out, progress};
use crate::compare::case::parse_seeds;
use crate::compare::guest::GuestMachine;
use crate::compare::store::Store;
use crate::compare::summary::{self, Summary};
use crate::compare::{worker, CaseFile, Experiment, Machine, Progress, Results, Scheduler};
use crate::report::file::write_whole;
use crate::rtapp::live::Interrupted;

/// Compare schedulers on many task sets: in the simulator, in guests, or here.
///
/// A case file says which sets (named, or drawn from seeds), which schedulers, and what
/// must hold. Results are kept in the cache folder by what they are of, so nothing is
/// measured twice, and after Ctrl-C the same command goes on where it was.
#[derive(Args, Clone, Debug)]
pub struct CompareArgs {
    /// What is compared, as TOML; - reads standard input.
    #[arg(required_unless_present = "carry_out", value_name = "CASES.toml")]
    pub cases: Option<PathBuf>,
    /// Only these cases of the file.
    #[arg(long, value_delimiter = ',', value_name = "NAME,…")]
    pub case: Vec<String>,
    /// Seeds of sets that are drawn, the last included (default: the file's).
    #[arg(long, value_parser = parse_seeds, value_name = "A..B")]
    pub seeds: Option<RangeInclusive<u64>>,
    /// Schedulers instead of the file's, separated by commas: what `replay --against`
    /// takes, with flags for those that are programs, and policies of `sim --list`.
    #[arg(long, value_delimiter = ',', value_name = "S,S,…")]
    pub against: Vec<String>,
    /// On a kernel in a guest, too: a version or a bzImage (needs a checkout).
    #[arg(long, value_name = "KERNEL", num_args = 0..=1, default_missing_value = "6.18.15")]
    pub vm: Option<String>,
    /// The guest's clock: counting instructions, so that figures do not depend on the
    /// host, or running.
    #[arg(long, value_enum, default_value = "icount", requires = "vm")]
    pub vm_mode: VmMode,
    /// Guests side by side.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=64))]
    pub guests: u8,
    /// On this machine's kernel, too, by the real rt-app.
    #[arg(long, conflicts_with = "vm")]
    pub live: bool,
    /// Not in the simulator.
    #[arg(long)]
    pub no_sim: bool,
    /// So many runs of each set on a kernel (default: the file's, or one).
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeats: Option<u32>,
    /// Print everything as JSON.
    #[arg(long)]
    pub json: bool,
    /// Write a page with a dot for every set; one file, for any browser.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write the tables as Markdown.
    #[arg(long, value_name = "FILE")]
    pub md: Option<PathBuf>,
    /// Write every set to a task-set file of this folder, for `sim --workload`.
    #[arg(long, value_name = "FOLDER")]
    pub save: Option<PathBuf>,
    /// Carry out a batch in a guest.
    #[arg(long, hide = true, value_name = "FILE")]
    pub carry_out: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum VmMode {
    Icount,
    Fast,
}

/// Exit status where something that must hold does not; 1 is a run that failed.
const BROKEN: u8 = 3;
/// How often it is said how far everything is where there is no terminal.
const SPOKEN: Duration = Duration::from_secs(60);

pub fn run(args: &CompareArgs) -> Result<ExitCode> {
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = stop.clone();
    ctrlc::set_handler(move || stopped.store(true, Ordering::Relaxed))
        .context("cannot catch Ctrl-C")?;
    if let Some(batch) = &args.carry_out {
        let batch = worker::read(batch)?;
        worker::carry_out(&batch, true, &stop, &|line| out::write(&line.to_text()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let path = args.cases.as_deref().context("name a case file")?;
    let experiment = experiment(args, path)?;
    if let Some(folder) = &args.save {
        save(&experiment, folder)?;
    }
    let pace = Pace::new();
    let done = experiment.run(&Store::open()?, &stop, &|progress| pace.tell(progress));
    pace.finish();
    let results = match done {
        Err(why) if why.is::<Interrupted>() => {
            out::errln!("scx_temponet: interrupted; the same command goes on from here");
            return Ok(ExitCode::from(super::INTERRUPTED));
        }
        done => done?,
    };
    report(args, path, &results)
}

fn experiment(args: &CompareArgs, path: &Path) -> Result<Experiment> {
    let mut file = CaseFile::load(path)?;
    if !args.against.is_empty() {
        let schedulers = args.against.iter().map(|name| Scheduler::parse(name));
        file.replace_schedulers(schedulers.collect::<Result<_>>()?);
    }
    file.repeats = args.repeats.unwrap_or(file.repeats);
    let mut machines = Vec::new();
    if !args.no_sim {
        machines.push(Machine::Simulator(file.simulator));
    }
    if let Some(kernel) = &args.vm {
        machines.push(Machine::Guest(GuestMachine {
            kernel: kernel.clone(),
            mode: match args.vm_mode {
                VmMode::Icount => "icount".into(),
                VmMode::Fast => "fast".into(),
            },
            guests: args.guests.into(),
        }));
    }
    if args.live {
        machines.push(Machine::Here);
    }
    ensure!(
        !machines.is_empty(),
        "nothing to run on: --no-sim wants --vm or --live"
    );
    Experiment::new(file, args.seeds.as_ref(), &args.case, machines)
}

fn save(experiment: &Experiment, folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder)
        .with_context(|| format!("cannot create {}", folder.display()))?;
    for subject in &experiment.subjects {
        let name = subject.label().replace(' ', "-");
        subject.set.save(&folder.join(format!("{name}.toml")))?;
    }
    Ok(())
}

fn report(args: &CompareArgs, path: &Path, results: &Results) -> Result<ExitCode> {
    let summary = summary::of(results);
    let told = print::Told {
        results,
        summary: &summary,
        command: &|set| command_for(args, path, set),
    };
    if let Some(file) = &args.md {
        write_whole(file, told.markdown().as_bytes())?;
    }
    if let Some(file) = &args.html {
        write_whole(file, page::of(&told).as_bytes())?;
    }
    out::write(&match args.json {
        true => told.json()?,
        false => told.text(),
    })?;
    Ok(ExitCode::from(status(results, &summary)))
}

/// What repeats the runs of one set.
fn command_for(args: &CompareArgs, path: &Path, subject: &crate::compare::Subject) -> String {
    let mut words = format!(
        "scx_temponet compare {} --case {}",
        path.display(),
        subject.case
    );
    if let Some(seed) = subject.seed {
        words += &format!(" --seeds {seed}");
    }
    if let Some(kernel) = &args.vm {
        words += &format!(" --vm {kernel}");
        if args.vm_mode == VmMode::Fast {
            words += " --vm-mode fast";
        }
    }
    if args.live {
        words += " --live";
    }
    if !args.against.is_empty() {
        words += &format!(" --against '{}'", args.against.join(","));
    }
    words
}

fn status(results: &Results, summary: &Summary) -> u8 {
    let kernel = |run: &&crate::compare::Run| results.of.machines[run.machine].is_kernel();
    let failed = results
        .runs
        .iter()
        .filter(kernel)
        .any(|run| run.outcome.is_err());
    let broken = summary
        .verdicts
        .iter()
        .any(|verdict| verdict.holds == Some(false));
    match (failed, broken) {
        (_, true) => BROKEN,
        (true, false) => 1,
        (false, false) => 0,
    }
}

/// A bar on a terminal, a line now and then elsewhere.
struct Pace {
    bar: ProgressBar,
    /// When it began, when it last spoke.
    spoken: Mutex<(Instant, Instant)>,
}

impl Pace {
    fn new() -> Pace {
        Pace {
            bar: progress::runs(0),
            spoken: Mutex::new((Instant::now(), Instant::now())),
        }
    }

    fn tell(&self, now: Progress) {
        self.bar.set_length((now.all - now.kept) as u64);
        self.bar.set_position((now.done - now.kept) as u64);
        let mut spoken = self.spoken.lock().expect("nobody panics with it");
        if !self.bar.is_hidden() || spoken.1.elapsed() < SPOKEN || now.done == now.all {
            return;
        }
        spoken.1 = Instant::now();
        let fresh = (now.done - now.kept).max(1) as f64;
        let left = spoken.0.elapsed().as_secs_f64() / fresh * (now.all - now.done) as f64;
        out::errln!(
            "compare: {} of {} runs, about {:.0} min left",
            now.done,
            now.all,
            (left / 60.0).ceil()
        );
    }

    fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
