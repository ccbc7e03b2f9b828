//! What `scx_temponet monitor` promises at the command line.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use scx_temponet::agent::stats::Metrics;
use serde_json::{json, Value};

fn monitor(socket: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_scx_temponet"))
        .args(["monitor", "--interval", "0.05", "--socket"])
        .arg(socket)
        .args(args)
        .env_remove("COLUMNS")
        .output()
        .expect("the binary runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn without_a_scheduler_it_ends_with_one_sentence_and_status_2() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("nobody");
    for args in [&["--json"][..], &["--once"], &["--once", "--json"]] {
        let out = monitor(&socket, args);
        let said = text(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(said.contains("no scheduler answers at"), "{said}");
        assert!(said.contains("--socket"), "{said}");
        assert!(out.stdout.is_empty());
    }
}

/// A scheduler that served 40 jobs in half a second, and 4000 since load.
fn serve_one_client(socket: &Path) -> std::thread::JoinHandle<()> {
    let figures = |interval_s: f64, met: u64| {
        let mut metrics = Metrics {
            interval_s,
            ..Metrics::default()
        };
        metrics.classes.entry("declared".into()).or_default().met = met;
        serde_json::to_value(metrics).unwrap()
    };
    let listener = UnixListener::bind(socket).unwrap();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        for request in BufReader::new(stream.try_clone().unwrap()).lines() {
            let since_load = request.unwrap().contains("since_load");
            let served = match since_load {
                true => figures(50.0, 4000),
                false => figures(0.5, 40),
            };
            let answer = json!({ "errno": 0, "args": { "resp": served } });
            writeln!(stream, "{answer}").unwrap();
        }
    })
}

#[test]
fn once_prints_rates_and_totals_without_a_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("stats");
    let serving = serve_one_client(&socket);
    let out = monitor(&socket, &["--once"]);
    serving.join().unwrap();
    let screen = text(&out.stdout);
    assert!(out.status.success(), "{}", text(&out.stderr));
    assert!(!screen.contains('\u{1b}'), "{screen}");
    let declared: Vec<&str> = screen
        .lines()
        .find(|line| line.starts_with("declared"))
        .unwrap_or_else(|| panic!("{screen}"))
        .split_whitespace()
        .collect();
    assert_eq!((declared[1], declared[2]), ("80", "0.0"), "{screen}");
    assert!(declared.contains(&"4000"), "{screen}");
    assert!(screen.contains("loaded for 50 s"), "{screen}");
    assert!(!screen.contains("q quit"), "{screen}");
}

/// The line of JSON that it prints.
fn once_as_json(args: &[&str]) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("stats");
    let serving = serve_one_client(&socket);
    let out = monitor(&socket, &[&["--once", "--json"], args].concat());
    serving.join().unwrap();
    let printed = text(&out.stdout);
    assert_eq!(printed.lines().count(), 1, "{printed}");
    serde_json::from_str(&printed).unwrap()
}

#[test]
fn once_as_json_is_one_line() {
    let figures = once_as_json(&[]);
    assert_eq!(figures["classes"]["declared"]["met"], 40);
    assert_eq!(figures["interval_s"], 0.5);
    let figures = once_as_json(&["--since-load"]);
    assert_eq!(figures["classes"]["declared"]["met"], 4000);
    assert_eq!(figures["interval_s"], 50.0);
}

#[test]
fn totals_are_for_json_only() {
    let folder = tempfile::tempdir().unwrap();
    let out = monitor(&folder.path().join("nobody"), &["--since-load"]);
    assert_eq!(out.status.code(), Some(2));
    assert!(
        text(&out.stderr).contains("--json"),
        "{}",
        text(&out.stderr)
    );
}

#[test]
fn log_lines_in_a_file_have_no_escape_sequences() {
    // It says that nobody serves figures where nobody does, and waits.
    if Path::new("/var/run/scx/root/stats").exists() {
        return;
    }
    let mut waiting = Command::new(env!("CARGO_BIN_EXE_scx_temponet"))
        .args(["--monitor", "1"])
        .env("TERM", "xterm-256color")
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stderr = waiting.stderr.take().unwrap();
    let mut said = Vec::new();
    let until = Instant::now() + Duration::from_secs(60);
    while !said.ends_with(b"\n") && Instant::now() < until {
        let mut byte = [0];
        match stderr.read(&mut byte) {
            Ok(1) => said.push(byte[0]),
            _ => break,
        }
    }
    waiting.kill().unwrap();
    waiting.wait().unwrap();
    let said = text(&said);
    assert!(said.starts_with("[INFO] "), "{said:?}");
    assert!(!said.contains('\u{1b}'), "{said:?}");
}

#[test]
fn every_figure_of_the_agent_is_explained() {
    let out = Command::new(env!("CARGO_BIN_EXE_scx_temponet"))
        .arg("--help-stats")
        .output()
        .unwrap();
    let help = text(&out.stdout);
    let served = serde_json::to_value(Metrics::default()).unwrap();
    for (part, fields) in [("agent", &served["agent"]), ("top", &served)] {
        for field in fields.as_object().unwrap().keys() {
            let explained = help.lines().any(|line| {
                let words: Vec<&str> = line.split_whitespace().collect();
                words.first() == Some(&field.as_str()) && words.contains(&":")
            });
            assert!(explained, "{part}.{field} in\n{help}");
        }
    }
}
