//! `scx_temponet compare` as a user meets it, in the simulator.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const CASES: &str = r#"
schedulers = ["eevdf", "fifo-rm", "edf"]
candidate = "edf"
seeds = "1..6"

[[case]]
name = "drawn"
horizon = "1s"
tournament = { cores = 1, hogs = 0, load = [0.7, 1.4] }

[[case]]
name = "named"
set = "set.toml"
must = ["edf >= 99.9", "edf.response <= 50"]
"#;

const SET: &str = r#"
name = "three"
cores = 1
horizon_ns = 1_000_000_000
[[tasks]]
name = "a"
period_ns = 10_000_000
wcet_ns = 4_000_000
deadline_ns = 10_000_000
[[tasks]]
name = "b"
period_ns = 25_000_000
wcet_ns = 9_000_000
deadline_ns = 25_000_000
"#;

fn compare(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_scx_temponet"))
        .arg("compare")
        .args(arguments)
        .current_dir(folder)
        .env("XDG_CACHE_HOME", folder.join("cache"))
        .output()
        .unwrap()
}

fn prepared(cases: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("cases.toml"), cases).unwrap();
    fs::write(folder.path().join("set.toml"), SET).unwrap();
    folder
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn every_case_has_a_table_and_what_must_hold_is_judged() {
    let folder = prepared(CASES);
    let output = compare(folder.path(), &["cases.toml"]);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    for part in [
        "drawn: simulator",
        "named: simulator",
        "must hold: edf >= 99.9: holds",
        "edf against fifo-rm",
        "drawn by kind",
    ] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    let broken = CASES.replace("edf.response <= 50", "edf.response <= 0.5");
    let folder = prepared(&broken);
    let output = compare(folder.path(), &["cases.toml", "--case", "named"]);
    assert_eq!(output.status.code(), Some(3));
    let text = stdout(&output);
    assert!(
        text.contains("DOES NOT HOLD") && !text.contains("drawn"),
        "{text}"
    );
}

#[test]
fn the_same_command_says_the_same_and_measures_nothing_twice() {
    let folder = prepared(CASES);
    let first = compare(folder.path(), &["cases.toml", "--json"]);
    let kept = || {
        let folders = fs::read_dir(folder.path().join("cache/scx_temponet/compare")).unwrap();
        let files = folders.flat_map(|f| fs::read_dir(f.unwrap().path()).unwrap());
        files
            .map(|f| f.unwrap().metadata().unwrap().modified().unwrap())
            .collect::<Vec<_>>()
    };
    // Six drawn sets and the named one, under three schedulers.
    let before = kept();
    assert_eq!(before.len(), 21);
    let again = compare(folder.path(), &["cases.toml", "--json"]);
    assert!(
        stdout(&first) == stdout(&again),
        "kept results differ from fresh ones"
    );
    assert!(before == kept(), "something was written again");
    let json: serde_json::Value = serde_json::from_str(&stdout(&first)).unwrap();
    assert_eq!(json["runs"].as_array().unwrap().len(), 21);
    assert_eq!(json["sets"][0]["seed"], 1);
    assert_eq!(json["candidate"], "edf");
}

#[test]
fn a_set_that_was_drawn_can_be_saved_and_simulated() {
    let folder = prepared(CASES);
    let arguments = [
        "cases.toml",
        "--case",
        "drawn",
        "--seeds",
        "4",
        "--save",
        "sets",
    ];
    let output = compare(folder.path(), &arguments);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let set = folder.path().join("sets/drawn-4.toml");
    let sim = Command::new(env!("CARGO_BIN_EXE_scx_temponet"))
        .args(["sim", "--policy", "plain-edf", "--workload"])
        .arg(&set)
        .output()
        .unwrap();
    assert_eq!(sim.status.code(), Some(0), "{sim:?}");
}

#[test]
fn every_dot_of_the_page_leads_to_the_figures_of_its_set() {
    let folder = prepared(CASES);
    let output = compare(folder.path(), &["cases.toml", "--html", "page.html"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let page = fs::read_to_string(folder.path().join("page.html")).unwrap();
    for set in 0..7 {
        assert!(page.contains(&format!("id=\"set-{set}\"")), "{set}");
        assert!(page.contains(&format!("href=\"#set-{set}\"")), "{set}");
    }
    assert!(!page.contains("<script") && !page.contains("http://"));
}

#[test]
fn bad_input_is_a_sentence_with_the_place_and_status_2() {
    for (from, to, arguments, what) in [
        (
            "\"edf\"]",
            "\"edff\"]",
            vec![],
            "cases.toml, line 2: there is no scheduler \"edff\"",
        ),
        ("1..6", "6..1", vec![], "line 4: \"6..1\" is no range"),
        (
            "cores = 1",
            "cors = 1",
            vec![],
            "line 9: unknown field `cors`",
        ),
        ("set.toml", "gone.toml", vec![], "line 13: cannot read"),
        (
            "edf >= 99.9",
            "edf > 99.9",
            vec![],
            "line 14: \"edf > 99.9\" has neither",
        ),
        (
            "",
            "",
            vec!["--case", "other"],
            "no case \"other\"; its cases are drawn, named",
        ),
        (
            "",
            "",
            vec!["--against", "nobody"],
            "there is no scheduler \"nobody\"",
        ),
        ("", "", vec!["--no-sim"], "nothing to run on"),
    ] {
        let folder = prepared(&CASES.replacen(from, to, 1));
        let output = compare(folder.path(), &[&["cases.toml"], &arguments[..]].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(what), "{what} in\n{said}");
        assert!(!said.contains("panicked"), "{said}");
    }
}
