//! The verdict of `replay` on workloads whose answer is known beforehand.

use std::process::Command;

use serde_json::Value;

/// Name, work, period, and a deadline where it is not the period; milliseconds.
type Thread = (&'static str, u32, u32, Option<u32>);

/// A thread that never sleeps.
const HOG: Thread = ("hog", 0, 0, None);

fn workload(threads: &[Thread], seconds: u32) -> String {
    let thread = |&(name, work, period, deadline): &Thread| {
        if period == 0 {
            return format!(r#""{name}": {{"cpus": [0], "run": 100000}}"#);
        }
        let deadline = deadline.map_or(String::new(), |ms| {
            format!(r#""dl-deadline": {},"#, ms * 1000)
        });
        format!(
            r#""{name}": {{"cpus": [0], {deadline} "run": {},
                "timer": {{"ref": "unique", "period": {}, "mode": "absolute"}}}}"#,
            work * 1000,
            period * 1000
        )
    };
    let threads: Vec<String> = threads.iter().map(thread).collect();
    let tasks = threads.join(",\n");
    format!(r#"{{"global": {{"duration": {seconds}}}, "tasks": {{ {tasks} }}}}"#)
}

fn verdict(threads: &[Thread], seconds: u32, args: &[&str]) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("workload.json");
    std::fs::write(&path, workload(threads, seconds)).unwrap();
    let out = Command::new(env!("CARGO_BIN_EXE_scx_temponet"))
        .arg("replay")
        .arg(&path)
        .args(args)
        .arg("--json")
        .output()
        .unwrap();
    assert!(
        out.status.success(),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
    let report: Value = serde_json::from_slice(&out.stdout).unwrap();
    report["verdict"].clone()
}

fn says(verdict: &Value, part: &str, words: &str) {
    let said = match &verdict[part] {
        Value::Array(lines) => lines
            .iter()
            .map(|l| l.as_str().unwrap())
            .collect::<Vec<_>>()
            .join(" "),
        Value::String(line) => line.clone(),
        _ => String::new(),
    };
    assert!(said.contains(words), "{words:?} not in {part}: {said:?}");
}

fn standing<'a>(verdict: &'a Value, name: &str) -> &'a Value {
    let all = verdict["schedulers"].as_array().unwrap();
    all.iter().find(|s| s["scheduler"] == name).unwrap()
}

fn change<'a>(verdict: &'a Value, kind: &str) -> Option<&'a Value> {
    let all = verdict["changes"].as_array().unwrap();
    all.iter().find(|change| change["kind"] == kind)
}

/// 1.17 CPUs in all; the four shorter periods fill one CPU to the brim.
const FIVE: [Thread; 5] = [
    ("control", 3, 10, None),
    ("camera", 5, 20, None),
    ("radar", 10, 40, None),
    ("audio", 16, 80, None),
    ("planner", 17, 100, None),
];
const LIGHT: [Thread; 2] = [("fast", 2, 10, None), ("slow", 4, 20, None)];
/// Both cannot be done by their deadlines, whoever is first.
const URGENT: [Thread; 2] = [("short", 9, 10, None), ("long", 5, 100, Some(8))];

#[test]
fn where_all_are_on_time_all_win_and_the_kernel_is_enough() {
    let v = verdict(&LIGHT, 2, &["-p", "edf,rm,fcfs"]);
    assert_eq!(v["headline"], "All 3 schedulers meet every deadline.");
    assert_eq!(v["winners"].as_array().unwrap().len(), 3);
    assert_eq!(v["load"]["feasible"], "yes");
    says(&v, "why", "0.40 CPUs are asked of 1.");
    says(&v, "enough", "nothing need be loaded");
    assert_eq!(v["losses"].as_array().unwrap().len(), 0);
    assert_eq!(v["changes"].as_array().unwrap().len(), 0);
}

#[test]
fn where_one_order_meets_everything_that_one_wins() {
    // A full CPU: the earliest deadline meets all (Liu and Layland), fixed priorities do not.
    let full = [("a", 5, 10, None), ("b", 7, 14, None)];
    let v = verdict(&full, 7, &["-p", "rm,plain-edf"]);
    assert_eq!(
        v["headline"],
        "plain-edf meets every deadline; rm does not."
    );
    assert_eq!(v["load"]["feasible"], "yes");
    assert_eq!(standing(&v, "rm")["late"][0]["name"], "b");
    assert_eq!(standing(&v, "rm")["kept"], 1);
    says(&v, "losses", "rm ");
    assert_eq!(v["enough"], Value::Null);
}

#[test]
fn more_than_there_is_cannot_be_served_and_the_verdict_says_who_is_kept() {
    let v = verdict(&FIVE, 8, &["-p", "plain-edf,rm"]);
    assert_eq!(v["winners"], serde_json::json!(["rm"]));
    assert_eq!(v["load"]["feasible"], "no");
    assert_eq!(v["load"]["obstacle"]["kind"], "overload");
    says(
        &v,
        "why",
        "1.17 CPUs are asked of 1: no scheduler can serve all",
    );
    says(
        &v,
        "losses",
        "rm loses planner (none of 80); it keeps the other 4",
    );
    says(&v, "losses", "on jobs that come too late");
    assert_eq!(change(&v, "cores").unwrap()["at_least"], 2);
    // The others leave planner nothing, so another one has to ask for less: 0.13 CPUs
    // are left for 3 ms of control.
    let period = change(&v, "period").unwrap();
    assert_eq!(
        (&period["thread"], &period["to_ms"]),
        (&"control".into(), &24.0.into())
    );
    // The ceiling is no lower than what was reached, and below all.
    let ceiling = v["load"]["ceiling"].as_f64().unwrap();
    let reached = standing(&v, "rm")["compliance"].as_f64().unwrap();
    assert!(ceiling < 1.0 && reached <= ceiling, "{reached} {ceiling}");
}

#[test]
fn the_proposed_change_of_a_period_really_helps() {
    let mut mended = FIVE;
    mended[0].2 = 24;
    let v = verdict(&mended, 8, &["-p", "plain-edf"]);
    assert_eq!(
        standing(&v, "plain-edf")["met"],
        standing(&v, "plain-edf")["jobs"]
    );
}

#[test]
fn the_proposed_number_of_cores_really_helps() {
    let v = verdict(&FIVE, 8, &["--cores", "2", "-p", "plain-edf,rm"]);
    assert_eq!(v["headline"], "Both schedulers meet every deadline.");
    says(&v, "why", "1.17 CPUs are asked of 2.");
    assert_eq!(v["changes"].as_array().unwrap().len(), 0);
}

#[test]
fn schedulers_that_do_the_same_are_level_even_when_both_miss() {
    // One thread: there is no order to choose.
    let v = verdict(&[("late", 12, 10, None)], 2, &["-p", "rm,fcfs"]);
    assert_eq!(v["winners"], serde_json::json!(["rm", "fcfs"]));
    says(&v, "headline", "Both schedulers are level");
    says(
        &v,
        "why",
        "a job of late needs 12 ms of CPU time within 10 ms",
    );
    assert_eq!(change(&v, "shorten").unwrap()["thread"], "late");
    assert!(change(&v, "cores").is_none());
    assert_eq!(v["load"]["cpus_needed"], Value::Null);
}

#[test]
fn a_starved_thread_is_named_even_under_the_winner() {
    let double = [("fast", 20, 20, None), ("slow", 100, 100, None)];
    let v = verdict(&double, 2, &["-p", "fcfs,rm"]);
    assert_eq!(v["winners"], serde_json::json!(["rm"]));
    let slow = &standing(&v, "rm")["late"][0];
    assert_eq!(
        (&slow["name"], &slow["met"], &slow["lost"]),
        (&"slow".into(), &0.into(), &true.into())
    );
    assert_eq!(slow["unfinished"], slow["jobs"]);
    says(
        &v,
        "losses",
        "rm loses slow (none of 20); it keeps the other one; 20 jobs are never finished",
    );
}

#[test]
fn jobs_that_never_finish_are_missed_and_what_took_their_time_is_said() {
    // First come, first served: the thread that never sleeps keeps the core.
    let v = verdict(&[HOG, ("beat", 2, 10, None)], 2, &["-p", "fcfs,edf"]);
    assert_eq!(v["headline"], "edf meets every deadline; fcfs does not.");
    let fcfs = standing(&v, "fcfs");
    assert_eq!(
        (&fcfs["met"], &fcfs["unfinished"]),
        (&0.into(), &fcfs["jobs"])
    );
    says(
        &v,
        "losses",
        "it gives 1.00 CPUs to threads without deadlines",
    );
    says(&v, "why", "0.20 CPUs are asked of 1.");
    says(
        &v,
        "why",
        "Threads without deadlines would use 1.00 CPUs more",
    );
}

#[test]
fn one_scheduler_has_nobody_to_win_against() {
    let v = verdict(&LIGHT, 2, &["-p", "edf"]);
    says(&v, "headline", "edf meets every deadline: all ");
    assert_eq!(v["enough"], Value::Null);
    let v = verdict(&FIVE, 8, &["-p", "rm"]);
    says(&v, "headline", "rm has 94.9 % of the jobs on time; ");
    says(&v, "headline", "80 of 1580 are missed");
}

#[test]
fn where_nothing_is_due_nobody_wins() {
    let v = verdict(&[HOG], 2, &["-p", "edf,fcfs"]);
    says(&v, "headline", "there is nothing to judge");
    assert_eq!(v["winners"].as_array().unwrap().len(), 0);
    assert_eq!(v["why"].as_array().unwrap().len(), 0);
}

#[test]
fn work_that_comes_at_once_is_impossible_at_any_load() {
    let v = verdict(&URGENT, 2, &["-p", "rm,dm"]);
    assert_eq!(v["load"]["obstacle"]["kind"], "peak");
    says(
        &v,
        "why",
        "0.95 CPUs are asked of 1, but the work comes at once",
    );
    assert_eq!(change(&v, "cores").unwrap()["at_least"], 2);
    assert!(change(&v, "critical").is_some());
    // Rate order meets ten of eleven jobs, deadline order seven.
    assert_eq!(v["winners"], serde_json::json!(["rm"]));
    says(&v, "losses", "rm loses long (none of 20)");
}

#[test]
fn critical_threads_count_before_all_others() {
    let v = verdict(&URGENT, 2, &["-p", "rm,dm", "--critical", "long"]);
    assert_eq!(v["winners"], serde_json::json!(["dm"]));
    assert_eq!(standing(&v, "dm")["critical_compliance"], 1.0);
    says(
        &v,
        "headline",
        "dm wins with 63.6 % of the jobs on time (critical ones: 100 %)",
    );
    says(&v, "losses", "rm loses long (none of 20, critical)");
    assert!(change(&v, "critical").is_none());
}

#[test]
fn the_network_is_not_recommended_where_edf_does_as_well() {
    // The network under its shield loses nothing that the earliest deadline meets.
    let full = [("a", 5, 10, None), ("b", 6, 14, None)];
    let v = verdict(&full, 7, &["-p", "temponet,edf,rm"]);
    says(
        &v,
        "headline",
        "temponet and edf meet every deadline; rm does not.",
    );
    says(
        &v,
        "enough",
        "`scx_temponet --policy edf` is enough, and no network is needed",
    );
}

#[test]
fn a_winner_that_cannot_be_loaded_is_not_recommended() {
    let v = verdict(&FIVE, 8, &["-p", "mh,plain-edf"]);
    assert_eq!(v["winners"], serde_json::json!(["mh"]));
    says(
        &v,
        "enough",
        "mh is not for loading; of those that are, plain-edf comes nearest",
    );
}
