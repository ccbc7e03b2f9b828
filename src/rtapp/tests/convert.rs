use super::tasks;
use crate::rtapp::convert::{convert, ConvertError, Converted, Wishes};
use crate::rtapp::outcome;
use crate::rtapp::Workload;
use crate::sim::compare::Contestant;
use crate::sim::engine::Options;
use crate::sim::policies;
use crate::sim::task::{Arrival, Semantics, Task};
use crate::sim::time::{MS, SECOND};

fn converted(text: &str) -> Converted {
    let wishes = Wishes {
        horizon: Some(SECOND),
        cores: None,
    };
    convert(&tasks(text), &wishes).expect("a task set")
}

fn only(text: &str) -> Task {
    let mut set = converted(text).set;
    assert_eq!(set.tasks.len(), 1);
    set.tasks.remove(0)
}

#[test]
fn a_steady_thread_becomes_a_periodic_task() {
    let timed = only(
        r#""t": {"delay": 5000, "run": 2000, "runtime": 1000, "timer": {"ref": "unique", "period": 10000}}"#,
    );
    let expected = Task {
        offset_ns: 5 * MS,
        ..Task::periodic("t", 10 * MS, 3 * MS)
    };
    assert_eq!(timed, expected);
    let sleeper = only(r#""t": {"run": 2000, "sleep": 8000}"#);
    assert_eq!(sleeper, Task::periodic("t", 10 * MS, 2 * MS));
}

#[test]
fn a_fair_thread_keeps_its_nice_level_and_a_real_time_priority_is_none() {
    let nice = |class: &str| {
        only(&format!(
            r#""t": {{"policy": "{class}", "priority": 7, "run": 2000, "sleep": 8000}}"#
        ))
        .nice
    };
    assert_eq!(nice("SCHED_OTHER"), 7);
    assert_eq!(nice("SCHED_FIFO"), 0);
    let said = converted(r#""t": {"priority": -5, "run": 2000, "sleep": 8000}"#);
    let note = said.notes.iter().map(|note| note.to_string());
    assert_eq!(note.filter(|note| note.contains("eevdf")).count(), 1);
}

#[test]
fn phases_become_recorded_jobs() {
    let task = only(
        r#""t": {"phases": {
            "light": {"loop": 2, "run": 1000, "timer": {"ref": "unique", "period": 10000}},
            "heavy": {"loop": 1, "run": 7000, "timer": {"ref": "unique", "period": 20000}}}}"#,
    );
    let Arrival::Trace(jobs) = &task.arrival else {
        panic!("a trace");
    };
    let first: Vec<_> = jobs[..4]
        .iter()
        .map(|j| {
            (
                j.release_ns / MS,
                j.execution_ns / MS,
                j.deadline_ns.unwrap() / MS,
            )
        })
        .collect();
    assert_eq!(first, [(0, 1, 10), (10, 1, 20), (20, 7, 40), (40, 1, 50)]);
    assert_eq!(task.wcet_ns, 7 * MS);
}

#[test]
fn declared_deadlines_come_before_timers() {
    let converted = converted(
        r#""t": {"run": 1000, "dl-runtime": 2000, "dl-deadline": 6000, "dl-period": 10000,
                 "policy": "SCHED_DEADLINE", "timer": {"ref": "unique", "period": 10000}}"#,
    );
    assert_eq!(converted.set.tasks[0].deadline_ns, 6 * MS);
    // rt-app's slack still counts to the timer.
    assert_eq!(converted.timer_after_deadline, [Some(4 * MS as i64)]);
}

#[test]
fn a_time_slice_is_no_deadline() {
    let text = |policy| {
        format!(
            r#""t": {{"run": 1000, "policy": "{policy}", "dl-runtime": 3000, "timer": {{"ref": "unique", "period": 10000}}}}"#
        )
    };
    assert_eq!(only(&text("SCHED_OTHER")).deadline_ns, 10 * MS);
    assert_eq!(only(&text("SCHED_DEADLINE")).deadline_ns, 3 * MS);
}

#[test]
fn instances_have_names_of_their_own() {
    let set = converted(
        r#""t": {"instance": 2, "run": 1000, "sleep": 1000}, "t": {"run": 1, "sleep": 9}"#,
    )
    .set;
    let names: Vec<_> = set.tasks.iter().map(|task| task.name.as_str()).collect();
    assert_eq!(names, ["t@2-0", "t@2-1", "t@2"]);
}

#[test]
fn affinity_is_modelled_only_where_it_leaves_no_choice() {
    let note = "\"cpus\" is not modelled";
    let has_note = |c: &Converted| c.notes.iter().any(|n| n.what.starts_with(note));
    let one = converted(
        r#""a": {"cpus": [1], "run": 1, "sleep": 9}, "b": {"cpus": [1], "run": 1, "sleep": 9}"#,
    );
    assert_eq!((one.set.cores, has_note(&one)), (1, false));
    let two = converted(
        r#""a": {"cpus": [0], "run": 1, "sleep": 9}, "b": {"cpus": [1], "run": 1, "sleep": 9}"#,
    );
    assert_eq!((two.set.cores, has_note(&two)), (2, true));
    let some =
        converted(r#""a": {"cpus": [0], "run": 1, "sleep": 9}, "b": {"run": 1, "sleep": 9}"#);
    assert_eq!((some.set.cores, has_note(&some)), (1, true));
}

#[test]
fn everything_that_is_not_modelled_is_named_with_its_place() {
    let notes = converted(
        r#""t": {"policy": "SCHED_RR", "priority": 5, "taskgroup": "/g", "util_max": 9, "cpus": [3],
"phases": {"p": {"run": 1000, "sleep": 10, "mem": 4, "yield": "", "fork": "nobody",
"lock": "m", "unlock": "m", "nodes_membind": [1], "timer": {"ref": "r", "period": 5000}}}}"#,
    )
    .notes;
    let all: Vec<String> = notes.iter().map(|note| note.to_string()).collect();
    for expected in [
        "2:7: thread t: SCHED_RR threads never reach",
        "2:29: thread t: no policy here looks at priorities",
        "2:44: thread t: task groups",
        "2:63: thread t: clamps",
        "3:31: thread t, phase p: a sleep counts",
        "3:44: thread t, phase p: how long this takes",
        "3:54: thread t, phase p: \"yield\" does nothing",
        "3:67: thread t, phase p: there is no thread of this name",
        "4:1, 4:14: thread t, phase p: threads wait for each other",
        "4:29: thread t, phase p: memory nodes",
        "4:51: thread t, phase p: a relative timer",
    ] {
        assert!(
            all.iter().any(|note| note.starts_with(expected)),
            "{expected} not in {all:#?}"
        );
    }
}

#[test]
fn a_file_that_ends_by_itself_is_simulated_to_its_end() {
    let finite =
        tasks(r#""t": {"loop": 3, "run": 1000, "timer": {"ref": "unique", "period": 10000}}"#);
    let converted = convert(&finite, &Wishes::default()).unwrap();
    assert_eq!(converted.set.horizon_ns, 30 * MS);
    let endless = tasks(r#""t": {"run": 1000, "timer": {"ref": "unique", "period": 10000}}"#);
    let converted = convert(&endless, &Wishes::default()).unwrap();
    assert_eq!(converted.set.horizon_ns, 10 * SECOND);
}

#[test]
fn a_file_without_work_says_so() {
    let error = |text: &str| {
        let workload = Workload::parse(text.as_bytes()).unwrap();
        convert(&workload, &Wishes::default()).unwrap_err()
    };
    assert_eq!(error("{}"), ConvertError::NoTasks);
    let old = error(r#"{"tasks": {"t": {"exec": 5, "period": 9, "lock_order": ["m"]}}}"#);
    let message = old.to_string();
    assert!(
        message.starts_with("none of its threads has work to simulate: 1:12: thread t"),
        "{message}"
    );
}

#[test]
fn edf_meets_what_can_be_met_and_slack_is_rt_apps() {
    let timer = |us| format!(r#""timer": {{"ref": "unique", "period": {us}, "mode": "absolute"}}"#);
    let text = format!(
        r#""a": {{"run": 13000, {}}}, "b": {{"run": 20000, {}}}, "c": {{"run": 25000, {}}}"#,
        timer(40_000),
        timer(60_000),
        timer(100_000)
    );
    let converted = converted(&text);
    let edf = Contestant {
        name: "plain-edf".into(),
        make: &policies::find("plain-edf").unwrap().make,
    };
    let options = Options::new(Semantics::Continue);
    let outcomes = outcome::simulate(&converted, &[edf], options, &|| {});
    let total = &outcomes[0].total;
    assert_eq!(total.metrics.compliance, 1.0);
    let slack = total.rtapp_slack.unwrap();
    assert!(slack.min_ms >= 0.0 && slack.mean_ms > slack.min_ms);
    let jobs = &outcomes[0].jobs;
    let mean = jobs
        .iter()
        .map(|j| (j.deadline - j.finish.unwrap()) as f64 / MS as f64)
        .sum::<f64>();
    assert!((slack.mean_ms - mean / jobs.len() as f64).abs() < 1e-9);
}
