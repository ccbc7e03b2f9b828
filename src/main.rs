use std::process::ExitCode;

use clap::{Parser, Subcommand};
use scx_temponet::cli;

#[derive(Parser)]
#[command(version, about = "A sched_ext scheduler for work that has deadlines")]
struct Command {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    Sim(Box<cli::sim::SimArgs>),
}

fn main() -> ExitCode {
    let done = match Command::parse().what {
        What::Sim(args) => cli::sim::run(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}
