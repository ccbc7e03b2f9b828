//! The command line: one file per subcommand, bare `scx_temponet` loads the
//! scheduler.

pub mod doctor;
pub mod hint;
mod load;

use std::process::ExitCode;

use clap::Parser;

/// A sched_ext scheduler for work that has deadlines.
///
/// Without a subcommand the scheduler is loaded and stays until Ctrl-C.
#[derive(Debug, Parser)]
#[command(name = "scx_temponet", disable_version_flag = true)]
#[command(args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(flatten)]
    load: load::LoadArgs,
}

pub fn run() -> ExitCode {
    let cli = Cli::parse();
    match load::run(cli.load) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("scx_temponet: {error:#}");
            ExitCode::FAILURE
        }
    }
}
