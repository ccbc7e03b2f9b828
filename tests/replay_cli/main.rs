//! What `scx_temponet replay` promises at the command line.

mod input;

use std::process::{Command, Output};

use scx_temponet::policy::network::{GraphKind, Model};
use serde_json::Value;

fn scx(command: &str, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_scx_temponet"))
        .arg(command)
        .args(args)
        .output()
        .expect("the binary runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn replay(args: &[&str]) -> String {
    let out = scx("replay", args);
    assert!(out.status.success(), "{}", text(&out.stderr));
    text(&out.stdout)
}

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&replay(&[args, &["--json"]].concat())).expect("JSON")
}

fn scratch(folder: &tempfile::TempDir, name: &str) -> String {
    folder.path().join(name).to_string_lossy().into_owned()
}

const ONE_CPU: &str = "tests/rtapp/one-cpu.json";
const OVERLOAD: &str = "tests/rtapp/overload.json";
const LOGS: &str = "tests/rtapp/logs";

#[test]
fn edf_meets_every_deadline_of_a_feasible_workload_and_the_table_says_so() {
    let out = scx("replay", &[ONE_CPU, "--sim", "--policy", "edf,fcfs"]);
    let table = text(&out.stdout);
    assert!(
        table.starts_with("one-cpu.json: 3 tasks on 1 core, 6 s, 0.91 CPUs asked for"),
        "{table}"
    );
    let edf = table.lines().find(|line| line.starts_with("edf")).unwrap();
    assert_eq!(edf.split_whitespace().nth(2), Some("100.00"));
    for name in ["compliance %", "ART ms", "rt-app slack ms"] {
        assert!(table.contains(name), "{name} not in {table}");
    }
    // Nobody is critical, so there is no such column.
    assert!(!table.contains("PITMD"), "{table}");
    // Absolute timers on the one CPU there is: nothing is left out.
    assert_eq!(text(&out.stderr), "");
}

#[test]
fn the_kernels_own_scheduler_is_shown_unless_told_otherwise() {
    let report = json(&[ONE_CPU]);
    let names: Vec<&str> = (report["schedulers"].as_array().unwrap().iter())
        .map(|scheduler| scheduler["scheduler"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["eevdf", "edf", "plain-edf", "rm", "fcfs", "mh"]);
    let table = text(&scx("sim", &["-k", "1", "--horizon", "200ms"]).stdout);
    assert_eq!(
        table
            .lines()
            .filter(|line| line.starts_with("eevdf "))
            .count(),
        2
    );
}

#[test]
fn all_policies_meet_the_same_jobs_in_the_order_given() {
    let report = json(&[OVERLOAD, "-p", "rm,edf,mh", "--critical", "motor"]);
    let schedulers = report["schedulers"].as_array().unwrap();
    let names: Vec<_> = schedulers
        .iter()
        .map(|s| s["scheduler"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["rm", "edf", "mh"]);
    for scheduler in schedulers {
        assert_eq!(scheduler["jobs"], schedulers[0]["jobs"]);
        assert_eq!(scheduler["tasks"].as_array().unwrap().len(), 6);
        assert_eq!(scheduler["pitmd"], scheduler["tasks"][0]["compliance"]);
        assert_eq!(scheduler["tasks"][1]["pitmd"], Value::Null);
    }
    assert!(schedulers[2]["compliance"].as_f64() > schedulers[1]["compliance"].as_f64());
}

#[test]
fn a_model_takes_part_as_temponet() {
    let folder = tempfile::tempdir().unwrap();
    let path = scratch(&folder, "model.onnx");
    let model = Model::untrained(Model::default_tokenizer(), Model::default_shape(), 1).unwrap();
    std::fs::write(&path, model.to_onnx(GraphKind::Multiset)).unwrap();
    for (policies, place) in [("edf", 1), ("temponet,edf", 0)] {
        let report = json(&[ONE_CPU, "-p", policies, "--model", &path, "--horizon", "1s"]);
        let schedulers = report["schedulers"].as_array().unwrap();
        assert_eq!(schedulers.len(), 2);
        assert_eq!(schedulers[place]["scheduler"], "temponet");
        // Whatever the network says: the shield loses nothing that EDF meets.
        assert_eq!(schedulers[place]["compliance"], 1.0);
    }
}

#[test]
fn what_is_not_modelled_is_a_warning_with_its_place() {
    let out = scx("replay", &["tests/rtapp/all-events.json"]);
    assert!(out.status.success());
    let warnings = text(&out.stderr);
    for expected in [
        "all-events.json: how long this takes only a machine can tell",
        "at 10:6, 10:20, 11:6 thread worker, phase compute",
        "at 9:37 thread worker, phase compute",
    ] {
        assert!(warnings.contains(expected), "{expected} not in {warnings}");
    }
    let notes = json(&["tests/rtapp/all-events.json"])["notes"].clone();
    assert!(notes
        .as_array()
        .unwrap()
        .iter()
        .all(|n| n["thread"].is_null() || n["at"][0]["line"].is_u64()));
}

/// A name is the same policy in `replay` and `sim`.
#[test]
fn a_saved_set_gives_sim_the_same_figures() {
    for name in ["edf", "plain-edf", "rm"] {
        let folder = tempfile::tempdir().unwrap();
        let saved = scratch(&folder, "set.toml");
        let report = json(&[OVERLOAD, "-p", name, "--save", &saved]);
        let out = scx(
            "sim",
            &[
                "-w",
                &saved,
                "-p",
                name,
                "--semantics",
                "continue",
                "--json",
            ],
        );
        assert!(out.status.success(), "{}", text(&out.stderr));
        let sim: Value = serde_json::from_slice(&out.stdout).unwrap();
        let set = &sim["comparisons"][0]["outcomes"][0]["sets"][0];
        for figure in [
            "jobs",
            "met",
            "compliance",
            "response_ms",
            "lateness_p99_ms",
            "preemptions",
        ] {
            assert_eq!(set[figure], report["schedulers"][0][figure], "{figure}");
        }
    }
}

#[test]
fn logs_are_replayed_beside_what_was_recorded() {
    let report = json(&[LOGS, "-p", "edf,rm", "--run-times", "configured"]);
    let schedulers = report["schedulers"].as_array().unwrap();
    assert_eq!(schedulers[0]["scheduler"], "recorded");
    assert_eq!(schedulers[0]["source"], "recorded");
    assert_eq!(schedulers[0]["jobs"], 90);
    assert_eq!(schedulers[1]["source"], "simulated");
    let names: Vec<_> = schedulers[0]["tasks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|t| t["name"].clone())
        .collect();
    assert_eq!(names, ["fast-0", "nap-2", "slow-1"]);
    let one = json(&["tests/rtapp/logs/rt-app-fast-0.log"]);
    assert_eq!(one["schedulers"][0]["tasks"][0]["name"], "fast-0");
}

#[test]
fn the_page_is_one_file_that_asks_for_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = scratch(&folder, "report.html");
    replay(&[OVERLOAD, "--html", &path, "--critical", "motor"]);
    let page = std::fs::read_to_string(&path).unwrap();
    assert!(page.contains("default-src 'none'"));
    let links = [
        "src=",
        "@import",
        "url(",
        "fetch(",
        "XMLHttpRequest",
        "import(",
    ];
    for link in links {
        assert!(!page.contains(link), "{link} in the page");
    }
    let data = page.split("type=\"application/json\">").nth(1).unwrap();
    let data: Value = serde_json::from_str(data.split("</script>").next().unwrap()).unwrap();
    assert_eq!(data["runs"].as_array().unwrap().len(), 6);
    assert_eq!(data["tasks"]["rows"][0][0], "motor !");
    let stretch = &data["stretch"];
    assert!(stretch["why"]
        .as_str()
        .unwrap()
        .starts_with("Most deadlines were missed here"));
    assert_eq!(stretch["runs"].as_array().unwrap().len(), 6);
    assert!(!stretch["runs"][0]["segments"]
        .as_array()
        .unwrap()
        .is_empty());
}

#[test]
fn the_timeline_has_cores_misses_and_tasks_of_every_policy() {
    let folder = tempfile::tempdir().unwrap();
    let path = scratch(&folder, "trace.json");
    replay(&[OVERLOAD, "-p", "edf,rm", "--perfetto", &path]);
    let trace: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let names = |kind: &str, pid: u64| -> Vec<&str> {
        let of_kind = events
            .iter()
            .filter(|e| e["name"] == kind && e["pid"] == pid);
        of_kind
            .map(|e| e["args"]["name"].as_str().unwrap())
            .collect()
    };
    assert_eq!(names("process_name", 1), ["overload.json under edf"]);
    assert_eq!(names("process_name", 2), ["overload.json under rm"]);
    let tracks = names("thread_name", 2);
    assert_eq!(tracks[..3], ["core 0", "deadlines missed", "motor"]);
    assert!(events
        .iter()
        .any(|e| e["ph"] == "i" && e["name"] == "missed"));
}

#[test]
fn a_saved_set_is_replayed_like_the_workload_it_came_from() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["set.toml", "set.json"] {
        let saved = scratch(&folder, name);
        let first = json(&[OVERLOAD, "-p", "edf", "--save", &saved]);
        let again = json(&[&saved, "-p", "edf"]);
        let (first, again) = (&first["schedulers"][0], &again["schedulers"][0]);
        for figure in ["jobs", "met", "response_ms", "utilisation"] {
            assert_eq!(first[figure], again[figure], "{figure}");
        }
        // What the simulator's tasks used adds up to what its cores were busy.
        let used = |scheduler: &Value| -> f64 {
            let tasks = scheduler["tasks"].as_array().unwrap();
            tasks.iter().map(|t| t["cpus_used"].as_f64().unwrap()).sum()
        };
        let busy = again["utilisation"].as_f64().unwrap();
        assert!((used(again) - busy).abs() < 1e-6, "{} {busy}", used(again));
    }
}

#[test]
fn what_cannot_run_live_is_refused_before_anything_starts() {
    let refused = |args: &[&str], why: &str| {
        let out = scx("replay", args);
        assert_eq!(out.status.code(), Some(2), "{args:?}");
        let said = text(&out.stderr);
        assert!(said.contains(why), "{args:?}: {said}");
    };
    refused(
        &[ONE_CPU, "--live", "--against", "eevdf,nobody"],
        "no scheduler \"nobody\"",
    );
    refused(&[ONE_CPU, "--against", "eevdf"], "--against is for --live");
    refused(&[LOGS, "--live"], "only a workload can run live");
    refused(&[ONE_CPU, "--live", "--cores", "4096"], "CPUs are online");
    refused(&[ONE_CPU, "--live", "--vm"], "cannot be used with");
    refused(&[ONE_CPU, "--record", "0"], "between 0.1 s and a day");
    refused(&["out.txt", "--record", "1"], "must end in .json or .toml");
    refused(&["/nowhere/out.json", "--record", "1"], "no directory");
}

#[test]
fn a_live_run_opens_no_file_that_the_workload_names() {
    let folder = tempfile::tempdir().unwrap();
    let victim = folder.path().join("victim");
    std::fs::write(&victim, "precious").unwrap();
    let workload = scratch(&folder, "evil.json");
    let text = serde_json::json!({
        "global": { "duration": 1, "calibration": 20, "io_device": victim },
        "tasks": { "t": { "loop": 1, "iorun": 4096, "run": 10 } },
    });
    std::fs::write(&workload, text.to_string()).unwrap();
    let out = scx("replay", &[&workload, "--live", "--against", "eevdf"]);
    assert_eq!(out.status.code(), Some(2));
    let said = text_of_last_line(&out.stderr);
    assert!(
        said.contains("io_device names") && said.contains("--trust-workload"),
        "{said}"
    );
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious");
}

fn text_of_last_line(bytes: &[u8]) -> String {
    text(bytes).lines().last().unwrap_or_default().to_owned()
}

#[test]
fn a_guest_needs_a_checkout() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("scx_temponet");
    // Copied by another process: a test that forks while this one holds the file open for
    // writing would keep it from being executed.
    let copied = Command::new("cp")
        .arg(env!("CARGO_BIN_EXE_scx_temponet"))
        .arg(&program)
        .status();
    assert!(copied.unwrap().success());
    let workload = std::path::absolute(ONE_CPU).unwrap();
    let out = Command::new(&program)
        .current_dir(folder.path())
        .args(["replay", "--vm", "--against", "eevdf", "--"])
        .arg(workload)
        .output()
        .unwrap();
    assert_eq!(out.status.code(), Some(2));
    let said = text(&out.stderr);
    assert!(said.contains("--vm needs a checkout"), "{said}");
}

#[test]
fn jobs_that_never_finish_are_counted_and_mark_the_times_as_bounds() {
    // Twice what the core can do: under rate-monotonic order the slow one never ends.
    let folder = tempfile::tempdir().unwrap();
    let path = scratch(&folder, "starved.json");
    let thread = |run: u32, period: u32| {
        format!(
            r#"{{"loop": -1, "runtime": {run}, "cpus": [0],
                "timer": {{"ref": "unique", "period": {period}, "mode": "absolute"}}}}"#
        )
    };
    let workload = format!(
        r#"{{"global": {{"duration": 2}}, "tasks": {{"fast": {}, "slow": {}}}}}"#,
        thread(20_000, 20_000),
        thread(100_000, 100_000)
    );
    std::fs::write(&path, workload).unwrap();
    let report = json(&[&path, "-p", "rm,fcfs"]);
    let (starving, fair) = (&report["schedulers"][0], &report["schedulers"][1]);
    let slow = &starving["tasks"][1];
    assert_eq!(slow["name"], "slow");
    assert_eq!(slow["unfinished"], slow["jobs"]);
    // Twenty jobs, the first of which waits for all of the two seconds.
    assert_eq!(slow["response_max_ms"], 2000.0);
    assert!(slow["response_ms"].as_f64() > fair["tasks"][1]["response_ms"].as_f64());
    assert!(slow["rtapp_slack"]["min_ms"].as_f64() < Some(0.0));
    let table = replay(&[&path, "-p", "rm"]);
    assert!(table.contains("unfinished"), "{table}");
    let mut rows = table.lines().filter(|line| line.starts_with("rm "));
    let row = rows.next_back().unwrap();
    assert!(row.contains('≥') && row.contains('≤'), "{row}");
}

#[test]
fn how_busy_a_task_kept_the_cores_is_known_or_absent_and_never_a_false_zero() {
    let report = json(&[OVERLOAD, "-p", "edf"]);
    let scheduler = &report["schedulers"][0];
    let busy = |figures: &Value| figures["utilisation"].as_f64().unwrap();
    let tasks = scheduler["tasks"].as_array().unwrap();
    assert!(tasks.iter().all(|task| busy(task) > 0.0), "{tasks:?}");
    let sum: f64 = tasks.iter().map(busy).sum();
    assert!((sum - busy(scheduler)).abs() < 1e-6, "{sum}");
    // Logs do not tell who ran when.
    let report = json(&[LOGS]);
    let recorded = &report["schedulers"][0];
    assert_eq!(recorded["source"], "recorded");
    assert_eq!(recorded["utilisation"], Value::Null);
    assert_eq!(recorded["tasks"][0]["utilisation"], Value::Null);
}

#[test]
fn what_moved_is_known_per_task_and_adds_up_or_is_left_out() {
    let report = json(&[OVERLOAD, "-p", "edf,rm", "--cores", "2"]);
    for scheduler in report["schedulers"].as_array().unwrap() {
        let tasks = scheduler["tasks"].as_array().unwrap();
        for figure in ["preemptions", "migrations"] {
            let sum: u64 = tasks.iter().map(|t| t[figure].as_u64().unwrap()).sum();
            assert_eq!(scheduler[figure], sum, "{figure}");
            assert!(sum > 0, "{figure}: nothing was tried");
        }
    }
    let recorded = json(&[LOGS])["schedulers"][0].clone();
    for figures in [&recorded, &recorded["tasks"][0]] {
        assert!(figures["jobs"].as_u64() > Some(0));
        assert_eq!(figures.get("preemptions"), None);
        assert_eq!(figures.get("migrations"), None);
    }
}

#[test]
fn a_policy_named_twice_runs_once() {
    let report = json(&[ONE_CPU, "-p", "edf,rm,edf"]);
    let schedulers = report["schedulers"].as_array().unwrap();
    let names: Vec<_> = schedulers.iter().map(|s| &s["scheduler"]).collect();
    assert_eq!(names, ["edf", "rm"]);
}
