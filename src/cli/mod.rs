//! The command line: one file per subcommand, bare `scx_temponet` loads the
//! scheduler.

pub mod bench;
pub mod compare;
pub mod doctor;
pub mod eval;
pub mod explain;
pub mod hint;
mod load;
pub mod metrics;
pub mod monitor;
mod notify;
mod out;
mod progress;
pub mod replay;
pub mod rules;
mod schedule;
pub mod sim;
pub mod status;
mod time;
pub mod train;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

/// A sched_ext scheduler for work that has deadlines.
///
/// Without a subcommand the scheduler is loaded and stays until Ctrl-C.
#[derive(Debug, Parser)]
#[command(name = "scx_temponet", disable_version_flag = true)]
#[command(args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(flatten)]
    load: load::LoadArgs,

    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    Hint(hint::HintArgs),
    Rules(rules::RulesArgs),
    Doctor(doctor::DoctorArgs),
    Status(status::StatusArgs),
    Sim(Box<sim::SimArgs>),
    Bench(bench::BenchArgs),
    Train(train::TrainArgs),
    Eval(eval::EvalArgs),
    Explain(explain::ExplainArgs),
    Replay(Box<replay::ReplayArgs>),
    Compare(Box<compare::CompareArgs>),
    Monitor(monitor::MonitorArgs),
}

/// The definition of the command line, for who makes pages of it.
pub fn command() -> clap::Command {
    Cli::command()
}

/// After Ctrl-C, as shells have it.
const INTERRUPTED: u8 = 130;

pub fn run() -> ExitCode {
    let cli = Cli::parse();
    match cli.command {
        Some(Command::Hint(args)) => return hint::run(args),
        Some(Command::Rules(args)) => return rules::run(&args),
        Some(Command::Doctor(args)) => return doctor::run(args),
        Some(Command::Status(args)) => return exit(status::run(&args), 2),
        Some(Command::Sim(args)) => return exit(sim::run(&args).map(|()| ExitCode::SUCCESS), 2),
        Some(Command::Bench(args)) => {
            return exit(bench::run(&args).map(|()| ExitCode::SUCCESS), 2)
        }
        Some(Command::Train(args)) => return exit(train::run(&args), 2),
        Some(Command::Eval(args)) => return exit(eval::run(&args).map(|()| ExitCode::SUCCESS), 2),
        Some(Command::Explain(args)) => {
            return exit(explain::run(&args).map(|()| ExitCode::SUCCESS), 2)
        }
        Some(Command::Replay(args)) => return exit(replay::run(&args), 2),
        Some(Command::Compare(args)) => return exit(compare::run(&args), 2),
        Some(Command::Monitor(args)) => {
            return exit(monitor::run(&args).map(|()| ExitCode::SUCCESS), 2)
        }
        None => {}
    }
    exit(load::run(cli.load), 1)
}

/// One sentence for what went wrong.
fn exit(done: anyhow::Result<ExitCode>, failure: u8) -> ExitCode {
    done.unwrap_or_else(|error| {
        out::errln!("scx_temponet: {error:#}");
        ExitCode::from(failure)
    })
}
