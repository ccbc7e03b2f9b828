//! The storm: a random machine, a random population and a random stream of events, all from
//! one seed, under our scheduler, with our promises checked all along. It looks for the
//! next fault that gets us ejected. tests/vm/storm.sh runs it; its manual is there.
//!
//!     storm plan    the story of a seed, or what of it a script needs
//!     storm direct  in the guest: tells the story, and stops at the first broken promise
//!     storm worker  a member of the population; the director starts them
//!     storm shrink  on the host: looks for a smaller story that a command still fails with
mod acts;
mod checks;
mod director;
mod events;
mod excuses;
mod machine;
mod population;
mod probes;
mod report;
mod rng;
mod sets;
mod shared;
mod shrink;
mod story;
mod sys;
mod words;
mod worker;

use anyhow::Result;
use clap::{Args, Parser, Subcommand, ValueEnum};
use population::Kind;
use std::path::PathBuf;
use std::process::ExitCode;
use story::Story;

#[derive(Parser)]
#[command(about = "A storm of random events under the scheduler, from a seed")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Args)]
struct Which {
    #[arg(long)]
    seed: u64,
    /// Length of the story.
    #[arg(long, default_value_t = 20)]
    seconds: u64,
    /// Only these tasks of the story, such as 0-5,9.
    #[arg(long)]
    tasks: Option<String>,
    /// Only these of its events.
    #[arg(long)]
    events: Option<String>,
}

impl Which {
    fn story(&self) -> Result<Story> {
        Story::generate(self.seed, self.seconds).keep(self.tasks.as_deref(), self.events.as_deref())
    }
}

#[derive(Clone, Copy, ValueEnum)]
enum Part {
    Story,
    VmOptions,
    Machine,
    Population,
}

#[derive(Subcommand)]
enum Command {
    /// Print the story, or a part of it.
    Plan {
        #[command(flatten)]
        which: Which,
        #[arg(long, value_enum, default_value = "story")]
        part: Part,
    },
    /// Tell the story in the guest. Status 1: a promise was broken; 3: somebody waited too
    /// long, which a busy host may explain.
    Direct {
        #[command(flatten)]
        which: Which,
        /// Where the workers' memory, the scheduler's pid (`daemon`) and the orders to start
        /// it again (`orders`) are, and where the figures go.
        #[arg(long)]
        folder: PathBuf,
        /// The longest that anybody may wait.
        #[arg(long)]
        bound_ms: u64,
    },
    #[command(hide = true)]
    Worker {
        file: PathBuf,
        slot: usize,
        #[arg(value_enum)]
        kind: Kind,
        period_us: u64,
        work_us: u64,
        /// Take the name that a rule sends to the background.
        #[arg(long)]
        background: bool,
    },
    /// Print the smallest story that the command still fails with (status 1), by leaving out
    /// ever more: it is run with `--tasks LIST --events LIST` added.
    Shrink {
        #[command(flatten)]
        which: Which,
        /// At most so many runs.
        #[arg(long, default_value_t = 30)]
        runs: usize,
        #[arg(last = true, required = true)]
        command: Vec<String>,
    },
}

fn main() -> ExitCode {
    let told = match Cli::parse().command {
        Command::Plan { which, part } => which.story().map(|story| print_part(&story, part)),
        Command::Direct {
            which,
            folder,
            bound_ms,
        } => which
            .story()
            .and_then(|story| director::direct(story, folder, bound_ms)),
        Command::Worker {
            file,
            slot,
            kind,
            period_us,
            work_us,
            background,
        } => {
            if background {
                sys::set_name(c"storm-back");
            }
            worker::run(&file, slot, kind, period_us, work_us).map(|()| ExitCode::SUCCESS)
        }
        Command::Shrink {
            which,
            runs,
            command,
        } => which
            .story()
            .and_then(|story| shrink::shrink(&story, runs, &command)),
    };
    told.unwrap_or_else(|error| {
        eprintln!("storm: {error:#}");
        ExitCode::from(2)
    })
}

fn print_part(story: &Story, part: Part) -> ExitCode {
    match part {
        Part::Story => print!("{}", story.describe()),
        Part::VmOptions => println!("{}", story.machine.vm_options()),
        Part::Machine => println!("{}", story.machine),
        Part::Population => println!("{}", story.people.summary(|task| story.has_task(task))),
    }
    ExitCode::SUCCESS
}
