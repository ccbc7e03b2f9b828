//! What `replay` reads: files, pipes and mistakes.

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use super::{json, replay, scratch, scx, text, LOGS, ONE_CPU, OVERLOAD};

/// With something on standard input.
fn fed(command: &str, args: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_scx_temponet"))
        .arg(command)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    child.stdin.take().unwrap().write_all(input).unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn bad_input_is_one_sentence_and_status_2() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, content: &str| {
        let path = scratch(&folder, name);
        std::fs::write(&path, content).unwrap();
        path
    };
    let broken = file(
        "broken.json",
        "{\n  \"tasks\": {\n    \"t\": { \"run\" 5 }\n}}",
    );
    let empty = file("empty.json", "{}");
    let old = file("old.json", r#"{"tasks": {"t": {"exec": 5, "period": 10}}}"#);
    let bad_log = file("bad.log", "0 1 two 3\n");
    let no_work = file(
        "no-work.log",
        "#idx perf run period start end rel_st slack c_duration c_period wu_lat\n",
    );
    let long = file(
        "long.json",
        r#"{"tasks": {"t": {"run": 1, "sleep": 1}}, "global": {"duration": 2000000}}"#,
    );
    let folder_path = folder.path().join("nothing");
    std::fs::create_dir(&folder_path).unwrap();
    let nothing = folder_path.to_string_lossy().into_owned();
    for (args, expected) in [
        (
            vec![broken.as_str()],
            "broken.json:3:18: a comma or } is missing: there is '5'",
        ),
        (vec![&empty], "there is no \"tasks\" section"),
        (
            vec![&old],
            "none of its threads has work to simulate: 1:12: thread t: there are no events",
        ),
        (vec![&bad_log], "bad.log:1:5: the column run"),
        (vec![&no_work], "no row with work"),
        (vec![&long], "more than 4000000 jobs in that time"),
        (vec![&nothing], "there is no file ending in .log"),
        (vec!["/no/such/file.json"], "cannot read /no/such/file.json"),
        (vec![ONE_CPU, OVERLOAD], "one workload, or logs"),
        (vec![ONE_CPU, LOGS], "one workload, or logs"),
        (
            vec![ONE_CPU, "-p", "magic"],
            "there is no policy called \"magic\"",
        ),
        (
            vec![ONE_CPU, "-p", "temponet", "--model", "/none.onnx"],
            "cannot read the model",
        ),
        (vec![ONE_CPU, "--critical", "x"], "there is no thread \"x\""),
        (
            vec![ONE_CPU, "--horizon", "0"],
            "--horizon must be above zero",
        ),
        (vec![LOGS, "--horizon", "1s"], "--horizon is for workloads"),
        (
            vec![ONE_CPU, "--html", "/no/such/folder/x.html"],
            "cannot write /no/such/folder/x.html",
        ),
    ] {
        let out = scx("replay", &args);
        let message = text(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{args:?}: {message}");
        assert!(message.contains(expected), "{expected} not in {message}");
        let errors = message
            .lines()
            .filter(|line| line.starts_with("scx_temponet: "))
            .count();
        assert_eq!(errors, 1, "{message}");
    }
}

#[test]
fn standard_input_and_process_substitution_are_read_like_files() {
    let folder = tempfile::tempdir().unwrap();
    let (toml, json_set) = (scratch(&folder, "set.toml"), scratch(&folder, "set.json"));
    for saved in [&toml, &json_set] {
        replay(&[OVERLOAD, "-p", "edf", "--save", saved]);
    }
    let figures = |out: &[u8]| -> Value {
        let report: Value = serde_json::from_slice(out).expect("JSON");
        report["schedulers"].clone()
    };
    for path in [OVERLOAD, &toml, &json_set] {
        let expected = json(&[path, "-p", "edf"])["schedulers"].clone();
        let bytes = std::fs::read(path).unwrap();
        let out = fed("replay", &["-", "-p", "edf", "--json"], &bytes);
        assert!(out.status.success(), "{path}: {}", text(&out.stderr));
        assert_eq!(figures(&out.stdout), expected, "{path}");
        let command = format!(
            "{} replay <(cat {path}) -p edf --json",
            env!("CARGO_BIN_EXE_scx_temponet")
        );
        let out = Command::new("bash")
            .args(["-c", &command])
            .output()
            .unwrap();
        assert!(out.status.success(), "{path}: {}", text(&out.stderr));
        assert_eq!(figures(&out.stdout), expected, "{path}");
    }
    for path in [&toml, &json_set] {
        let bytes = std::fs::read(path).unwrap();
        let piped = fed("sim", &["-w", "-", "-p", "edf", "--csv"], &bytes);
        assert!(piped.status.success(), "{path}: {}", text(&piped.stderr));
        let file = scx("sim", &["-w", path, "-p", "edf", "--csv"]);
        assert_eq!(text(&piped.stdout), text(&file.stdout), "{path}");
    }
    let out = fed("replay", &["-"], b"{ \"tasks\": ");
    assert_eq!(out.status.code(), Some(2));
}

#[test]
fn a_misspelt_key_ends_with_status_2_and_says_what_was_meant() {
    let folder = tempfile::tempdir().unwrap();
    let path = scratch(&folder, "slip.json");
    let slip = std::fs::read_to_string(ONE_CPU)
        .unwrap()
        .replacen("\"timer\"", "\"timr\"", 1);
    std::fs::write(&path, slip).unwrap();
    let out = scx("replay", &[&path]);
    let said = text(&out.stderr);
    assert_eq!(out.status.code(), Some(2), "{said}");
    assert!(said.contains(&format!("{path}:")), "{said}");
    assert!(said.contains("did you mean \"timer\"?"), "{said}");
    assert_eq!(text(&out.stdout), "");
}

#[test]
fn a_misspelt_key_of_a_task_set_is_known_too() {
    let folder = tempfile::tempdir().unwrap();
    let set = scratch(&folder, "set.json");
    replay(&[ONE_CPU, "-p", "edf", "--save", &set]);
    let whole = std::fs::read_to_string(&set).unwrap();
    for (right, slip) in [
        ("horizon_ns", "horizn_ns"),
        ("cores", "core"),
        ("wcet_ns", "wcet"),
    ] {
        let path = scratch(&folder, "slip.json");
        std::fs::write(&path, whole.replacen(right, slip, 1)).unwrap();
        let out = scx("replay", &[&path]);
        let said = text(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{said}");
        assert!(said.contains(&format!("did you mean `{right}`?")), "{said}");
    }
}
