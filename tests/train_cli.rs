//! `scx_temponet train` and `eval`, as a user runs them.

use std::path::Path;
use std::process::{Command, Output};

const TINY: &str = r#"
rounds = 3
machines = 4
passes = 1.0
warm_rounds = 1
episode_ms = 300.0
validate_every = 3
validation_sets = 1
[network]
width = 8
layers = 1
heads = 2
hidden = 8
[rollout]
tried = 3.0
base_rounds = 1
horizon_ms = 100.0
"#;

fn temponet(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_scx_temponet"))
        .args(args)
        .output()
        .expect("the program starts")
}

fn path(dir: &Path, name: &str) -> String {
    dir.join(name).display().to_string()
}

fn train(dir: &Path, out: &str, more: &[&str]) -> Output {
    let config = path(dir, "tiny.toml");
    std::fs::write(&config, TINY).unwrap();
    let out = path(dir, out);
    let mut args = vec!["train", "--config", &config, "--out", &out];
    args.extend(more);
    temponet(&args)
}

#[test]
fn the_same_seed_gives_the_same_model_whatever_the_threads() {
    let dir = tempfile::tempdir().unwrap();
    for (out, threads) in [("a.onnx", "1"), ("b.onnx", "3")] {
        let done = train(dir.path(), out, &["--threads", threads]);
        assert!(done.status.success(), "{done:?}");
    }
    let read = |name: &str| std::fs::read(dir.path().join(name)).unwrap();
    assert!(read("a.onnx") == read("b.onnx"));
    assert_eq!(read("a.csv"), read("b.csv"));
    let other = train(dir.path(), "c.onnx", &["--seed", "2"]);
    assert!(other.status.success());
    assert!(read("a.onnx") != read("c.onnx"));
}

#[test]
fn every_algorithm_trains_and_a_checkpoint_is_gone_on_with() {
    let dir = tempfile::tempdir().unwrap();
    let kept = path(dir.path(), "run");
    for algo in ["bc", "dqn"] {
        let done = train(
            dir.path(),
            "m.onnx",
            &["--algo", algo, "--checkpoint", &kept],
        );
        assert!(done.status.success(), "{algo}: {done:?}");
    }
    let out = path(dir.path(), "more.onnx");
    let args = ["train", "--resume", &kept, "--rounds", "4", "--out", &out];
    let done = temponet(&args);
    assert!(done.status.success(), "{done:?}");
    let curve = std::fs::read_to_string(dir.path().join("more.csv")).unwrap();
    let rows: Vec<&str> = curve.lines().skip(1).collect();
    assert_eq!(rows.len(), 2, "{curve}");
    assert!(rows[0].starts_with("3,dqn,"), "its past: {curve}");
    assert!(rows[1].starts_with("4,dqn,"), "{curve}");
}

#[test]
fn a_checkpoint_with_all_its_rounds_behind_it_is_not_gone_on_with() {
    let dir = tempfile::tempdir().unwrap();
    let kept = path(dir.path(), "run");
    let done = train(dir.path(), "m.onnx", &["--checkpoint", &kept]);
    assert!(done.status.success(), "{done:?}");
    let out = path(dir.path(), "more.onnx");
    for rounds in ["2", "3"] {
        let args = [
            "train", "--resume", &kept, "--rounds", rounds, "--out", &out,
        ];
        let refused = temponet(&args);
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(2), "{said}");
        let expected = format!("has 3 rounds behind it and {rounds} are asked for");
        assert!(said.contains(&expected), "{said}");
        assert!(!Path::new(&out).exists());
    }
}

#[test]
fn ctrl_c_saves_ends_with_130_and_says_how_to_go_on() {
    use std::io::{BufRead as _, BufReader, Read as _};
    use std::process::Stdio;
    let dir = tempfile::tempdir().unwrap();
    let (config, kept) = (path(dir.path(), "long.toml"), path(dir.path(), "run"));
    let recipe = TINY.replace("rounds = 3\n", "rounds = 1000000\n");
    let recipe = recipe.replace("validate_every = 3", "validate_every = 1");
    std::fs::write(&config, recipe).unwrap();
    let out = path(dir.path(), "m.onnx");
    let mut child = Command::new(env!("CARGO_BIN_EXE_scx_temponet"))
        .args(["train", "--config", &config, "--out", &out])
        .args(["--checkpoint", &kept])
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut first = String::new();
    said.read_line(&mut first).unwrap();
    assert!(first.starts_with("round 1 "), "{first}");
    let pid = i32::try_from(child.id()).unwrap();
    // SAFETY: a signal to a child that has not been waited for.
    unsafe { libc::kill(pid, libc::SIGINT) };
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{rest}");
    assert!(
        rest.contains("of 1000000; `scx_temponet train --resume"),
        "{rest}"
    );
    let before = std::fs::read_to_string(dir.path().join("m.csv")).unwrap();
    let rounds = before.lines().count();
    let args = ["train", "--resume", &kept, "--out", &out, "--rounds"];
    let resumed = temponet(&[&args[..], &[rounds.to_string().as_str()]].concat());
    assert!(resumed.status.success(), "{resumed:?}");
    let after = std::fs::read_to_string(dir.path().join("m.csv")).unwrap();
    assert!(after.starts_with(&before), "{before}\n{after}");
    assert!(after.len() > before.len());
}

#[test]
fn bad_recipes_fail_before_the_first_step() {
    let dir = tempfile::tempdir().unwrap();
    let config = path(dir.path(), "bad.toml");
    let out = path(dir.path(), "m.onnx");
    for (text, reason) in [
        ("rounds = 0", "rounds is 0"),
        ("rounds = \"many\"", "no training recipe"),
        ("[rollout]\nfade = 3", "no training recipe"),
    ] {
        std::fs::write(&config, text).unwrap();
        let failed = temponet(&["train", "--config", &config, "--out", &out]);
        let said = String::from_utf8_lossy(&failed.stderr).into_owned();
        assert_eq!(failed.status.code(), Some(2), "{said}");
        assert!(said.contains(reason), "{said}");
        assert!(!Path::new(&out).exists());
    }
}

#[test]
fn a_model_is_judged_line_by_line() {
    let dir = tempfile::tempdir().unwrap();
    assert!(train(dir.path(), "m.onnx", &[]).status.success());
    let model = path(dir.path(), "m.onnx");
    let args = [
        "eval", "--model", &model, "--sets", "2", "--lines", "A", "--json",
    ];
    let done = temponet(&args);
    assert!(done.status.success(), "{done:?}");
    let report: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(
        report["rows"][0]["shielded"], 100.0,
        "the shield keeps its promise"
    );
    assert_eq!(report["verdicts"][0]["line"], "A");
    let wrong = temponet(&["eval", "--model", &model, "--lines", "Z"]);
    assert_eq!(wrong.status.code(), Some(2));
}

#[test]
fn a_recording_is_trained_on() {
    let dir = tempfile::tempdir().unwrap();
    let recording = path(dir.path(), "recording.json");
    let saved = temponet(&["replay", "tests/rtapp/overload.json", "--save", &recording]);
    assert!(saved.status.success(), "{saved:?}");
    let done = train(dir.path(), "own.onnx", &["--workload", &recording]);
    assert!(done.status.success(), "{done:?}");
    let done = train(dir.path(), "usual.onnx", &[]);
    assert!(done.status.success(), "{done:?}");
    let read = |name: &str| std::fs::read(dir.path().join(name)).unwrap();
    assert!(
        read("own.onnx") != read("usual.onnx"),
        "it made no difference"
    );
    let missing = train(dir.path(), "no.onnx", &["--workload", "/nowhere.json"]);
    assert_eq!(missing.status.code(), Some(2));
}
