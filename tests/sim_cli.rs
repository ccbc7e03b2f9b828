//! What `scx_temponet sim` promises at the command line.

use std::process::{Command, Output};

fn sim(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_scx_temponet"))
        .arg("sim")
        .args(args)
        .output()
        .expect("the binary runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn scratch(name: &str) -> String {
    let folder = std::env::temp_dir().join(format!("scx-sim-cli-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder.join(name).to_string_lossy().into_owned()
}

#[test]
fn the_same_seed_gives_the_same_bytes_whatever_the_number_of_threads() {
    let run = |threads, seed| {
        let out = sim(&[
            "-w",
            "large",
            "-n",
            "40",
            "-k",
            "12",
            "--horizon",
            "300ms",
            "--json",
            "-j",
            threads,
            "-s",
            seed,
        ]);
        assert!(out.status.success(), "{}", text(&out.stderr));
        out.stdout
    };
    let one = run("1", "5");
    assert!(one == run("4", "5"));
    assert!(one != run("1", "6"));
}

#[test]
fn every_result_names_its_semantics() {
    let out = text(&sim(&["-k", "2", "-p", "edf,rm"]).stdout);
    assert!(out.contains("late jobs are aborted") && out.contains("late jobs go on"));
    let csv = text(&sim(&["-k", "2", "-p", "edf", "--csv"]).stdout);
    assert!(csv.starts_with("policy,late jobs,met %"));
    assert!(csv.contains("edf,abort,") && csv.contains("edf,continue,"));
    let json: serde_json::Value =
        serde_json::from_slice(&sim(&["-k", "2", "-p", "edf,mh", "--json"]).stdout).unwrap();
    assert_eq!(json["comparisons"][0]["options"]["semantics"], "abort");
    assert_eq!(json["comparisons"][1]["options"]["semantics"], "continue");
    assert_eq!(
        json["comparisons"][0]["outcomes"][1]["against_first"]["equal"],
        2
    );
}

#[test]
fn bad_input_gets_one_sentence_and_status_2() {
    let bad = scratch("bad.toml");
    std::fs::write(
        &bad,
        "name = 'x'\ncores = 1\nhorizon_ns = 'long'\ntasks = []\n",
    )
    .unwrap();
    for (args, expected) in [
        (
            vec!["-w", "nonsense"],
            "there is no workload or file called \"nonsense\"",
        ),
        (
            vec!["-p", "edf,best"],
            "there is no policy called \"best\"; policies are",
        ),
        (vec!["-p", "temponett"], "(did you mean \"temponet\"?)"),
        (vec!["-p", "edf-kernel"], "edf-kernel is called edf"),
        (vec!["-w", "ramdom5"], "(did you mean \"random5\"?)"),
        (vec!["-w", bad.as_str()], "line 3: invalid type"),
        (
            vec!["-w", "/nowhere/set.toml"],
            "cannot read /nowhere/set.toml",
        ),
        (vec!["-u", "1.2..0.8"], "from the smaller to the larger"),
        (
            vec!["--horizon", "5"],
            "`5` has no unit: write 5us, 5ms or 5s",
        ),
        (vec!["--execution", "uniform:2:1"], "use wcet, uniform"),
        (vec!["--sets", "0"], "0 is not in 1..="),
        (vec!["-u", "-1"], "\"-1\" is not a load between 0 and 100"),
        (vec!["--seed", "-3"], "a seed is a whole number from 0 to"),
        (vec!["--seed", "1.5"], "a seed is a whole number from 0 to"),
    ] {
        let out = sim(&args);
        let message = text(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{args:?}: {message}");
        assert!(message.contains(expected), "{args:?}: {message}");
        assert!(!message.contains("panicked"), "{message}");
    }
}

#[test]
fn a_saved_set_replays_to_the_same_result() {
    for name in ["saved.toml", "saved.json"] {
        let file = scratch(name);
        let args = ["-w", "random5", "-k", "1", "-p", "edf,srpt", "--csv"];
        let generated = sim(&[&args[..], &["--save", &file]].concat());
        let replayed = sim(&["-w", &file, "-p", "edf,srpt", "--csv"]);
        assert!(replayed.status.success(), "{}", text(&replayed.stderr));
        assert_eq!(text(&generated.stdout), text(&replayed.stdout));
    }
}

#[test]
fn a_trace_holds_every_core_and_job_in_the_form_perfetto_opens() {
    let file = scratch("trace.json");
    let out = sim(&[
        "-w",
        "heavy",
        "-k",
        "1",
        "-p",
        "edf",
        "--horizon",
        "200ms",
        "--trace",
        &file,
    ]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    let json: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let events = json["traceEvents"].as_array().unwrap();
    let names = events.iter().filter(|e| e["name"] == "thread_name").count();
    assert_eq!(names, 9 + 12, "eight cores, missed deadlines, twelve tasks");
    let slices: Vec<_> = events.iter().filter(|e| e["ph"] == "X").collect();
    assert!(slices.len() > 20);
    assert!(slices
        .iter()
        .all(|s| s["ts"].is_number() && s["dur"].as_f64().unwrap() > 0.0));
}

#[test]
fn a_policy_named_twice_runs_once() {
    let args = ["-k", "2", "--json", "-p"];
    let run = |policies: &str| text(&sim(&[&args[..], &[policies]].concat()).stdout);
    assert!(run("edf,rm").contains("\"policy\": \"rm\""));
    assert_eq!(run("edf,rm,edf"), run("edf,rm"));
}

#[test]
fn the_table_fits_eighty_columns_unless_asked_to_be_wide() {
    let table =
        |more: &[&str]| text(&sim(&[&["-k", "2", "--semantics", "abort"], more].concat()).stdout);
    let (narrow, wide) = (table(&[]), table(&["--wide"]));
    let widest = |text: &str| text.lines().skip(1).map(|line| line.chars().count()).max();
    assert!(widest(&narrow) <= Some(80), "{narrow}");
    assert!(widest(&wide) > Some(120), "{wide}");
    assert!(wide.contains("busy %") && !narrow.contains("busy %"));
    // The textbook's EDF is the first, and is called what it is called everywhere.
    let first = narrow.lines().nth(2).unwrap();
    assert!(first.starts_with("plain-edf "), "{narrow}");
}
