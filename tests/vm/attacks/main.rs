//! Users who mean ill, beside one who is honest and one who only computes. The same program
//! lists the attacks, plays each in the guest, and tells on the host what came of them.
//! tests/vm/adversary.sh runs it; its manual is there.
//!
//!     attacks list    the attacks, a line each
//!     attacks play    in the guest: one attack, whose record it prints; status 1: it succeeds
//!     attacks report  a table of the records of a folder; status 1: an attack succeeds
//!     attacks burn    uses the CPU, for attacks that end in another program
//!     attacks again   the same, and executes itself again and again
mod act;
mod asking;
mod attack;
mod camp;
mod flood;
mod honest;
mod record;
mod report;
mod stage;

#[allow(dead_code)]
#[path = "../fair/calls.rs"]
mod calls;
#[path = "../helpers/hint_socket.rs"]
mod hint_socket;
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
use attack::Attack;
use clap::{Parser, Subcommand, ValueEnum};
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Parser)]
#[command(about = "Users who mean ill")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Print these attacks (default: all).
    List {
        attacks: Vec<Attack>,
        /// Only those of the short form.
        #[arg(long)]
        short: bool,
    },
    /// Play one attack on the scheduler that is loaded.
    Play {
        attack: Attack,
        #[arg(long, default_value_t = 6)]
        seconds: u64,
        /// The process of the scheduler.
        #[arg(long)]
        daemon: i32,
        /// Where the record goes, as JSON.
        #[arg(long)]
        json: Option<PathBuf>,
    },
    /// Tell what the records of a folder say.
    Report {
        folder: PathBuf,
        attacks: Vec<Attack>,
    },
    Burn,
    Again,
}

fn main() -> ExitCode {
    run(Cli::parse().command).unwrap_or_else(|error| {
        eprintln!("attacks: {error:#}");
        ExitCode::from(2)
    })
}

fn run(command: Command) -> Result<ExitCode> {
    match command {
        Command::List { attacks, short } => {
            let wanted = Attack::value_variants().iter();
            let wanted = wanted.filter(|attack| attacks.is_empty() || attacks.contains(attack));
            for attack in wanted.filter(|attack| !short || attack.is_short()) {
                println!("{}", attack.name());
            }
        }
        Command::Play {
            attack,
            seconds,
            daemon,
            json,
        } => {
            let record = stage::play(attack, seconds, daemon)?;
            if let Some(file) = json {
                std::fs::write(file, serde_json::to_string(&record)?)?;
            }
            print!("{record}");
            return Ok(ExitCode::from(u8::from(!record.holds())));
        }
        Command::Report { folder, attacks } => return report::tell(&folder, &attacks),
        Command::Burn => act::burn_for_ever(),
        Command::Again => act::execute_again(),
    }
    Ok(ExitCode::SUCCESS)
}
