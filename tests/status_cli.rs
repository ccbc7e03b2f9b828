//! What `scx_temponet status` promises at the command line.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Output};

use scx_temponet::agent::stats::Metrics;
use serde_json::{json, Value};

/// A machine on which this sched_ext scheduler is loaded; none: the kernel's own.
fn machine(root: &Path, scheduler: Option<&str>) {
    let folder = root.join("sys/kernel/sched_ext");
    fs::create_dir_all(folder.join("root")).unwrap();
    let state = if scheduler.is_some() {
        "enabled"
    } else {
        "disabled"
    };
    fs::write(folder.join("state"), format!("{state}\n")).unwrap();
    fs::write(folder.join("switch_all"), "1\n").unwrap();
    if let Some(name) = scheduler {
        fs::write(folder.join("root/ops"), format!("{name}\n")).unwrap();
    }
}

fn status(root: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_scx_temponet"))
        .args(["status", "--for", "50ms", "--root"])
        .arg(root)
        .arg("--socket")
        .arg(root.join("stats"))
        .args(args)
        .output()
        .expect("the binary runs")
}

/// A scheduler that met 40 of its declared deadlines lately and missed so many, and met 4000
/// since load.
fn serve_one_client(socket: &Path, missed: u64) -> std::thread::JoinHandle<()> {
    let figures = move |interval_s: f64, met: u64| {
        let mut metrics = Metrics {
            interval_s,
            ..Metrics::default()
        };
        let declared = metrics.classes.entry("declared".into()).or_default();
        (declared.met, declared.missed) = (met, missed);
        metrics.agent.policy = "edf".into();
        metrics.agent.level = "edf".into();
        serde_json::to_value(metrics).unwrap()
    };
    let listener = UnixListener::bind(socket).unwrap();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        for request in BufReader::new(stream.try_clone().unwrap()).lines() {
            let served = match request.unwrap().contains("since_load") {
                true => figures(50.0, 4000),
                false => figures(0.05, 40),
            };
            let answer = json!({ "errno": 0, "args": { "resp": served } });
            writeln!(stream, "{answer}").unwrap();
        }
    })
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_scheduler_that_does_well_is_five_lines_and_status_0() {
    let root = tempfile::tempdir().unwrap();
    machine(root.path(), Some("temponet_0.2.0_x86_64"));
    let serving = serve_one_client(&root.path().join("stats"), 0);
    let out = status(root.path(), &[]);
    serving.join().unwrap();
    let said = text(&out.stdout);
    assert_eq!(out.status.code(), Some(0), "{said}{}", text(&out.stderr));
    assert_eq!(said.lines().count(), 5, "{said}");
    for words in [
        "scx_temponet 0.2.0, policy edf, all tasks",
        ", for 50 s",
        "earliest deadline first decides; no agent runs",
        "4000 of 4000 met (100.0 %)",
    ] {
        assert!(said.contains(words), "no \"{words}\" in\n{said}");
    }
}

#[test]
fn deadlines_that_are_missed_now_are_status_1() {
    let root = tempfile::tempdir().unwrap();
    machine(root.path(), Some("temponet_0.2.0_x86_64"));
    let serving = serve_one_client(&root.path().join("stats"), 2);
    let out = status(root.path(), &["--json"]);
    serving.join().unwrap();
    assert_eq!(out.status.code(), Some(1), "{}", text(&out.stderr));
    let report: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(report["state"], "trouble");
    assert_eq!(report["declared"], json!({ "met": 4000, "missed": 2 }));
    assert_eq!(report["policy"], "edf");
    assert!(report["look_at"].as_str().unwrap().contains("monitor"));
}

#[test]
fn without_our_scheduler_it_says_whose_runs_and_ends_with_status_3() {
    for (scheduler, words) in [
        (None, "the kernel's own scheduler"),
        (
            Some("bpfland_1.1.4"),
            "another sched_ext scheduler, bpfland_1.1.4",
        ),
    ] {
        let root = tempfile::tempdir().unwrap();
        machine(root.path(), scheduler);
        let out = status(root.path(), &[]);
        let said = text(&out.stdout);
        assert_eq!(out.status.code(), Some(3), "{said}");
        assert_eq!(said.lines().count(), 5, "{said}");
        assert!(said.contains(words), "no \"{words}\" in\n{said}");
    }
    let bare = tempfile::tempdir().unwrap();
    let out = status(bare.path(), &["--json"]);
    assert_eq!(out.status.code(), Some(3));
    let report: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(report["state"], "not loaded");
    assert!(report["look_at"].as_str().unwrap().contains("doctor"));
}

#[test]
fn ours_without_an_answer_is_status_2() {
    let root = tempfile::tempdir().unwrap();
    machine(root.path(), Some("temponet_0.2.0_x86_64"));
    let out = status(root.path(), &[]);
    let said = text(&out.stdout);
    assert_eq!(out.status.code(), Some(2), "{said}");
    assert!(said.contains("no scheduler answers at"), "{said}");
}
