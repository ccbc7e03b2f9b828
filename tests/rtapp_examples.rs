//! Every workload that ships with rt-app, and ours: read, simulated, or told why not;
//! and no damaged copy of one does any harm.

use std::path::{Path, PathBuf};

use scx_temponet::rtapp::convert::{convert, Wishes};
use scx_temponet::rtapp::idle_machine::{run, Limits};
use scx_temponet::rtapp::{log, outcome, Workload};
use scx_temponet::sim::compare::Contestant;
use scx_temponet::sim::engine::Options;
use scx_temponet::sim::policies;
use scx_temponet::sim::rng::Rng;
use scx_temponet::sim::task::Semantics;
use scx_temponet::sim::time::MS;

/// Where Debian's package puts rt-app's examples.
const SHIPPED: &str = "/usr/share/doc/rt-app/examples";

/// Ours, and rt-app's where they are. Where RTAPP_EXAMPLES says that they are there,
/// as scripts/test.sh does, they must be.
fn workloads() -> Vec<PathBuf> {
    let mut found = Vec::new();
    collect(Path::new("tests/rtapp"), &mut found);
    assert!(found.len() >= 3, "our own workloads are missing");
    let told = std::env::var_os("RTAPP_EXAMPLES");
    let shipped = PathBuf::from(told.clone().unwrap_or(SHIPPED.into()));
    let own = found.len();
    collect(&shipped, &mut found);
    if found.len() == own {
        let lack = format!(
            "no rt-app examples in {}: install Debian's rt-app",
            shipped.display()
        );
        assert!(told.is_none(), "{lack}");
        eprintln!("{lack}; only our own workloads are checked");
    }
    found
}

fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            collect(&path, found);
        } else if path.extension().is_some_and(|e| e == "json") {
            found.push(path);
        }
    }
}

#[test]
fn every_workload_is_read_and_simulated_or_says_why_not() {
    let contestants = ["plain-edf", "fcfs"].map(|name| Contestant {
        name: name.into(),
        make: &policies::find(name).unwrap().make,
    });
    for path in workloads() {
        let shown = path.display();
        let workload = Workload::load(&path).unwrap_or_else(|e| panic!("{e}"));
        let wishes = Wishes {
            horizon: Some(3000 * MS),
            cores: None,
        };
        let converted = match convert(&workload, &wishes) {
            Ok(converted) => converted,
            // Parts to be merged into a workload, half of them in a grammar of old.
            Err(why) => {
                assert!(
                    path.parent().is_some_and(|p| p.ends_with("merge")),
                    "{shown}: {why}"
                );
                continue;
            }
        };
        converted
            .set
            .check()
            .unwrap_or_else(|e| panic!("{shown}: {e}"));
        let placed = converted
            .notes
            .iter()
            .all(|n| n.thread.is_none() || !n.at.is_empty());
        assert!(placed, "{shown}: a note about a thread names no place");
        let options = Options::new(Semantics::Continue);
        let outcomes = outcome::simulate(&converted, &contestants, options, &|| {});
        let judged: Vec<u64> = outcomes.iter().map(|o| o.total.metrics.jobs).collect();
        assert_eq!(judged[0], judged[1], "{shown}: not the same jobs for all");
    }
}

#[test]
fn every_event_in_the_grammar_reaches_the_simulator() {
    let workload = Workload::load(Path::new("tests/rtapp/all-events.json")).unwrap();
    let converted = convert(&workload, &Wishes::default()).unwrap();
    let names: Vec<&str> = converted
        .set
        .tasks
        .iter()
        .map(|t| t.name.as_str())
        .collect();
    for expected in [
        "worker-0",
        "worker-1",
        "listener",
        "sleeper",
        "child-fork1",
        "server",
    ] {
        assert!(names.contains(&expected), "{expected} not in {names:?}");
    }
}

/// Changes, removes, doubles or inserts a few bytes.
fn damaged(text: &[u8], rng: &mut Rng) -> Vec<u8> {
    const LIKELY: &[u8] = b"{}[]:,\"'/*\\-0129aeinstru \n\xff\x00";
    let mut text = text.to_vec();
    for _ in 0..1 + rng.below(4) {
        let at = rng.below(text.len());
        let byte = LIKELY[rng.below(LIKELY.len())];
        match rng.below(5) {
            0 => text[at] = byte,
            1 => text.insert(at, byte),
            2 => drop(text.drain(at..(at + rng.below(20)).min(text.len()))),
            3 => {
                let end = (at + rng.below(60)).min(text.len());
                let piece = text[at..end].to_vec();
                text.splice(at..at, piece);
            }
            _ => text.truncate(at),
        }
        if text.is_empty() {
            text.push(byte);
        }
    }
    text
}

#[test]
fn no_damaged_workload_panics_or_runs_away() {
    let mut rng = Rng::new(7);
    let mut simulated = 0;
    for path in workloads() {
        let text = std::fs::read(&path).unwrap();
        for _ in 0..150 {
            let Ok(workload) = Workload::parse(&damaged(&text, &mut rng)) else {
                continue;
            };
            let limits = Limits {
                horizon: 20 * MS,
                steps: 200_000,
                jobs: 100_000,
                threads: 100,
            };
            simulated += usize::from(run(&workload, limits).is_ok());
        }
    }
    assert!(simulated > 100, "only {simulated} still meant something");
}

#[test]
fn no_damaged_log_panics() {
    let mut rng = Rng::new(9);
    for path in log::files(Path::new("tests/rtapp/logs")).unwrap() {
        let text = std::fs::read(&path).unwrap();
        for _ in 0..300 {
            if let Ok(rows) = log::read(&damaged(&text, &mut rng)) {
                let name = "damaged".to_owned();
                let logs = [log::Log { name, rows }];
                if let Ok(recording) = log::convert(&logs, log::RunTimes::Measured, 1) {
                    recording.converted.set.check().unwrap();
                }
            }
        }
    }
}
