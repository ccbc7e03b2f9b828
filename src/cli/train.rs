//! `scx_temponet train`: make a model, offline, in the simulator.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{bail, ensure, Context, Result};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};

use super::out;
use crate::sim::task::TaskSet;
use crate::train::checkpoint;
use crate::train::config::{Algo, Config};
use crate::train::curve::Curve;
use crate::train::trainer::Trainer;
use crate::train::validate::{Standing, Validation};

/// Train a model in the simulator.
///
/// The same recipe and seed give the same model, bit for bit, whatever the
/// number of threads. Ctrl-C stops after the round, saves, and ends with status 130.
#[derive(Args, Clone, Debug)]
pub struct TrainArgs {
    /// A recipe (TOML); what it leaves out has its default. See models/temponet.toml.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// How to learn (default: the recipe's).
    #[arg(long, value_enum)]
    pub algo: Option<Algo>,
    /// Where everything random starts (default: the recipe's).
    #[arg(long, value_parser = super::sim::parse_seed, allow_hyphen_values = true)]
    pub seed: Option<u64>,
    /// Rounds to train (default: the recipe's).
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: Option<u32>,
    /// Where the best model goes. The learning curve is written beside it (.csv, .svg).
    #[arg(long, value_name = "MODEL.onnx")]
    pub out: PathBuf,
    /// Keep a checkpoint in this directory.
    #[arg(long, value_name = "DIR")]
    pub checkpoint: Option<PathBuf>,
    /// Go on from the checkpoint in this directory, with the recipe it was made
    /// with. The replay fills again, so the model is not bit for bit that of an
    /// uninterrupted run.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["config", "algo", "seed"])]
    pub resume: Option<PathBuf>,
    /// Draw half of the machines from this task set, such as `replay --record` writes;
    /// may be given several times.
    #[arg(long, value_name = "SET.json")]
    pub workload: Vec<PathBuf>,
    /// Threads (default: all cores).
    #[arg(short = 'j', long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
}

pub fn run(args: &TrainArgs) -> Result<ExitCode> {
    let (mut trainer, curve) = match &args.resume {
        Some(dir) => checkpoint::load(dir)?,
        None => {
            let trainer = Trainer::new(recipe(args)?).map_err(anyhow::Error::msg)?;
            (trainer, Curve::default())
        }
    };
    if let Some(rounds) = args.rounds {
        trainer.config.rounds = rounds;
    }
    if let Some(dir) = &args.resume {
        ensure!(
            !trainer.is_done(),
            "the checkpoint in {} has {} rounds behind it and {} are asked for, so nothing is left \
             to train; ask for more with --rounds",
            dir.display(),
            trainer.round,
            trainer.config.rounds
        );
    }
    for path in &args.workload {
        trainer.recordings.push(TaskSet::load(path)?);
    }
    ensure!(
        args.out
            .parent()
            .is_none_or(|dir| dir == Path::new("") || dir.is_dir()),
        "there is no directory for {}",
        args.out.display()
    );
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(args.threads.map_or(0, usize::from))
        .build()
        .context("cannot start the worker threads")?;
    let stop = Arc::new(AtomicBool::new(false));
    let handler = stop.clone();
    ctrlc::set_handler(move || handler.store(true, Ordering::Relaxed))
        .context("cannot watch for Ctrl-C")?;
    pool.install(|| train(args, &mut trainer, curve, &stop))
}

fn recipe(args: &TrainArgs) -> Result<Config> {
    let mut config = match &args.config {
        Some(path) => Config::load(path)?,
        None => Config::default(),
    };
    config.algo = args.algo.unwrap_or(config.algo);
    config.seed = args.seed.unwrap_or(config.seed);
    config.rounds = args.rounds.unwrap_or(config.rounds);
    if let Err(error) = config.check() {
        match &args.config {
            Some(path) => bail!("{}: {error}", path.display()),
            None => bail!(error),
        }
    }
    Ok(config)
}

fn train(
    args: &TrainArgs,
    trainer: &mut Trainer,
    mut curve: Curve,
    stop: &AtomicBool,
) -> Result<ExitCode> {
    let dir = args.resume.as_deref().or(args.checkpoint.as_deref());
    let config = trainer.config.clone();
    let bar = progress(config.rounds, trainer.round);
    let validation = Validation::new(config.validation_sets);
    // What was best before counts only where its model is.
    let mut best: Option<Standing> = curve.best().filter(|_| args.out.exists());
    let mut waited = 0;
    let mut stopped = stop.load(Ordering::Relaxed);
    while !trainer.is_done() && !stopped {
        let round = trainer.play_round();
        bar.set_position(round.number.into());
        stopped = stop.load(Ordering::Relaxed);
        let is_last = trainer.is_done() || stopped;
        if !is_last && !round.number.is_multiple_of(config.validate_every) {
            continue;
        }
        let standing = trainer.standing(&validation);
        curve.push(&round, &standing);
        say(&bar, &curve);
        curve.save(&args.out)?;
        if best
            .as_ref()
            .is_none_or(|best| standing.score() > best.score())
        {
            best = Some(standing);
            waited = 0;
            let model = trainer.model(Some(&standing)).map_err(anyhow::Error::msg)?;
            model
                .save(&args.out)
                .with_context(|| format!("cannot write {}", args.out.display()))?;
        } else {
            waited += 1;
        }
        if let Some(dir) = dir {
            checkpoint::save(trainer, &curve, dir)?;
        }
        if config.patience > 0 && waited >= config.patience {
            break;
        }
    }
    bar.finish_and_clear();
    if let Some(best) = best {
        out::errln!(
            "{}: {:.2} % of deadlines met on the validation sets (best classics {:.2}, Moore-Hodgson {:.2}, EDF-drop {:.2})",
            args.out.display(),
            best.shielded,
            best.best,
            best.mh,
            best.edf_drop,
        );
    }
    if !stopped || trainer.is_done() {
        return Ok(ExitCode::SUCCESS);
    }
    out::errln!("scx_temponet: {}", farewell(args, trainer, dir));
    Ok(ExitCode::from(super::INTERRUPTED))
}

/// How to go on after Ctrl-C.
fn farewell(args: &TrainArgs, trainer: &Trainer, dir: Option<&Path>) -> String {
    let (round, rounds, out) = (trainer.round, trainer.config.rounds, args.out.display());
    match dir {
        Some(dir) => format!(
            "stopped after round {round} of {rounds}; `scx_temponet train --resume {} --rounds \
             {rounds} --out {out}` goes on from there",
            dir.display()
        ),
        None => format!(
            "stopped after round {round} of {rounds}; {out} has the best model so far, and only a \
             run with --checkpoint DIR can be gone on with"
        ),
    }
}

fn progress(rounds: u32, at: u32) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(rounds.into()).with_position(at.into());
    if let Ok(style) =
        ProgressStyle::with_template("{wide_bar} {pos}/{len} rounds, {eta} left\n{msg}")
    {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(500));
    bar
}

/// The last line of the curve, where it will be seen.
fn say(bar: &ProgressBar, curve: &Curve) {
    match bar.is_hidden() {
        false => bar.set_message(curve.last()),
        true => out::errln!("{}", curve.last()),
    }
}
