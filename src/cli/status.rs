//! `scx_temponet status`: five lines about the scheduler that is loaded.

mod report;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use clap::Args;

use self::report::{Kernel, Report};
use super::monitor::source::Source;
use super::out;

/// Say in five lines how the loaded scheduler does
///
/// What runs, since when, what decides, how many deadlines were met, and what to look at if
/// something is wrong. `doctor` is for before loading, this for afterwards. It needs root, as
/// `monitor` does.
///
/// Exit status: 0 it runs and nothing is wrong, 1 it runs and the last line says what to look at,
/// 2 it cannot be told, 3 scx_temponet is not loaded.
#[derive(Debug, Args)]
pub struct StatusArgs {
    /// For how long to watch, such as 500ms; a number alone is seconds
    #[arg(long = "for", value_name = "TIME", default_value = "1s", value_parser = super::load::interval)]
    watch: Duration,

    /// As JSON
    #[arg(long)]
    json: bool,

    /// Where the scheduler serves its figures
    #[arg(long, value_name = "PATH", default_value = super::monitor::SOCKET)]
    socket: PathBuf,

    /// For tests: the machine's files are below this folder
    #[arg(long, value_name = "DIR", default_value = "/", hide = true)]
    root: PathBuf,
}

pub fn run(args: &StatusArgs) -> anyhow::Result<ExitCode> {
    let report = look(args);
    let text = match args.json {
        true => format!("{}\n", report.json()),
        false => report.lines(),
    };
    out::write(&text)?;
    Ok(ExitCode::from(report.standing.exit_status()))
}

fn look(args: &StatusArgs) -> Report {
    let kernel = kernel(&args.root);
    let mut source = Source::new(&args.socket);
    // What a scheduler serves first is of no time at all.
    let first = source.look();
    if first.is_err() {
        return Report::without_figures(&kernel, first.err().unwrap_or_default(), &args.socket);
    }
    std::thread::sleep(args.watch);
    match source.look() {
        Ok(look) => Report::of(&kernel, &look, SystemTime::now()),
        Err(reason) => Report::without_figures(&kernel, reason, &args.socket),
    }
}

/// What the kernel says of sched_ext.
fn kernel(root: &Path) -> Kernel {
    let read = |name: &str| -> Option<String> {
        let path = root.join("sys/kernel/sched_ext").join(name);
        let text = std::fs::read_to_string(path).ok()?;
        Some(text.trim_end().to_owned())
    };
    match read("state") {
        None => Kernel::WithoutSchedExt,
        Some(state) if state == "disabled" => Kernel::NothingLoaded,
        Some(_) => Kernel::Loaded {
            name: read("root/ops").unwrap_or_default(),
            takes_all: read("switch_all").is_none_or(|all| all != "0"),
        },
    }
}
