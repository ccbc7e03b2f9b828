//! `replay --record`: what runs on this machine, as a task set.

use std::io::Write as _;
use std::mem::MaybeUninit;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{ensure, Context, Result};

use crate::cli::out;
use crate::cli::sim::parse_duration;
use crate::record::Recorder;
use crate::record::{check, Book, Counts, Recorded, Session, Witness};
use crate::rtapp::live::kernel;
use crate::sim::time::{Ns, SECOND};

/// The buffer holds tens of thousands of records: this is often enough.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Seconds, or a time with a unit.
pub fn parse_seconds(text: &str) -> Result<Ns, String> {
    let ns = match text.parse::<f64>() {
        Ok(seconds) => (seconds * 1e9).round() as Ns,
        Err(_) => parse_duration(text)?,
    };
    match (SECOND / 10..=24 * 3600 * SECOND).contains(&ns) {
        true => Ok(ns),
        false => Err("between 0.1 s and a day can be recorded".into()),
    }
}

/// Records for so long, or until told to stop, and writes the file.
pub fn run(asked: Ns, out: &Path, json: bool, stop: &AtomicBool) -> Result<()> {
    let ending = out.extension().and_then(|ending| ending.to_str());
    ensure!(
        matches!(ending, Some("json" | "toml")),
        "{}: the name must end in .json or .toml",
        out.display()
    );
    let folder = out.parent().filter(|f| !f.as_os_str().is_empty());
    ensure!(
        folder.is_none_or(Path::is_dir),
        "there is no directory for {}",
        out.display()
    );
    let scheduler = kernel::Loaded::now().name();
    let cores = kernel::online_cpus()?.len();
    let mut storage = MaybeUninit::uninit();
    let before = Counts::now();
    let mut recorder = Recorder::start(None, &mut storage)?;
    let begun = Counts::now();
    let start = recorder.start_ns;
    out::errln!(
        "recording for {:.1} s; Ctrl-C ends it and keeps what there is",
        asked as f64 / 1e9
    );
    let mut book = Book::new(start);
    while !stop.load(Ordering::Relaxed) {
        let passed = crate::record::now_ns() - start;
        if passed >= asked {
            break;
        }
        std::thread::sleep(LOOK_EVERY.min(Duration::from_nanos(asked - passed)));
        recorder.drain()?.iter().for_each(|record| book.add(record));
    }
    let ending = Counts::now();
    let (rest, end, lost) = recorder.finish()?;
    rest.iter().for_each(|record| book.add(record));
    let witness = Witness {
        before,
        begun,
        ending,
        after: Counts::now(),
    };
    let after = kernel::Loaded::now().name();
    let session = Session {
        kernel: kernel::release(),
        scheduler: match after == scheduler {
            true => scheduler,
            false => format!("{scheduler}, then {after}"),
        },
        // CPUs may come and go meanwhile.
        cores: cores.max(kernel::online_cpus()?.len()),
        asked,
        lasted: (end - start).max(1),
        lost,
    };
    let diaries = book.into_diaries();
    check(
        &diaries,
        session.cores,
        session.lasted,
        &witness,
        kernel::has_cpus_without_ticks(),
    )?;
    let recorded =
        Recorded::of(&diaries, &session).context("nothing ran on this machine in that time")?;
    recorded.set.check()?;
    recorded.set.save(out)?;
    let name = &recorded.set.name;
    let said = match json {
        true => figures(&recorded).to_string(),
        false => format!("{}: {name}", out.display()),
    };
    // A closed pipe is no error worth a word.
    let _ = writeln!(std::io::stdout(), "{said}");
    Ok(())
}

/// What was measured of every task, before it became part of a set.
fn figures(recorded: &Recorded) -> serde_json::Value {
    let horizon = recorded.set.horizon_ns;
    let tasks = recorded.set.tasks.iter().zip(&recorded.measured);
    let tasks = tasks.map(|(task, &run)| {
        serde_json::json!({ "name": task.name, "cpus_used": run as f64 / horizon as f64 })
    });
    serde_json::json!({
        "version": 1,
        "name": recorded.set.name,
        "cores": recorded.set.cores,
        "horizon_ms": crate::sim::time::to_ms(horizon),
        "tasks": tasks.collect::<Vec<_>>(),
    })
}
