use proptest::prelude::*;

use crate::rtapp::log::{convert, read, Log, Recording, RunTimes};
use crate::rtapp::outcome;
use crate::sim::engine::Fate;
use crate::sim::task::Arrival;
use crate::sim::time::{MS, US};

const HEAD: &str = "#idx perf run period start end rel_st slack c_duration c_period wu_lat\n";

fn recording(rows: &str, run_times: RunTimes) -> Recording {
    let rows =
        read(format!("# Policy : SCHED_OTHER priority : 0\n{HEAD}{rows}").as_bytes()).unwrap();
    let name = "t".to_owned();
    convert(&[Log { name, rows }], run_times, 1).unwrap()
}

/// Release, work and deadline in microseconds.
fn jobs(recording: &Recording) -> Vec<(u64, u64, u64)> {
    let Arrival::Trace(jobs) = &recording.converted.set.tasks[0].arrival else {
        panic!("a trace");
    };
    jobs.iter()
        .map(|j| {
            (
                j.release_ns / US,
                j.execution_ns / US,
                j.deadline_ns.unwrap() / US,
            )
        })
        .collect()
}

/// Three jobs of a 10 ms timer that keeps its grid; the second takes 14 ms.
const ABSOLUTE: &str = "
0 1 3000 10050 1000000 1010050 0 7000 3000 10000 50
0 1 13900 14000 1010050 1024050 0 -4050 3000 10000 0
0 1 3000 5960 1024050 1030010 0 2950 3000 10000 10
";

#[test]
fn releases_are_the_timers_grid_and_run_times_those_measured() {
    let recording = recording(ABSOLUTE, RunTimes::Measured);
    assert_eq!(
        jobs(&recording),
        [
            (0, 3000, 10_000),
            (10_000, 13_900, 20_000),
            (20_000, 3000, 30_000)
        ]
    );
    let fates: Vec<_> = recording
        .fates
        .iter()
        .map(|f| (f.fate, f.finish.unwrap() / US))
        .collect();
    assert_eq!(
        fates,
        [
            (Fate::OnTime, 3000),
            (Fate::Late, 24_050),
            (Fate::OnTime, 27_050)
        ]
    );
}

#[test]
fn what_was_recorded_is_judged_like_what_is_simulated() {
    let recording = recording(ABSOLUTE, RunTimes::Configured);
    assert!(jobs(&recording).iter().all(|job| job.1 == 3000));
    let outcome = outcome::recorded(&recording.converted, recording.fates);
    assert_eq!(
        (outcome.total.metrics.met, outcome.total.metrics.jobs),
        (2, 3)
    );
    let slack = outcome.total.rtapp_slack.unwrap();
    assert!((slack.min_ms - -4.05).abs() < 1e-9);
    assert!((slack.mean_ms - (7.0 - 4.05 + 2.95) / 3.0).abs() < 1e-9);
}

#[test]
fn a_relative_timers_grid_moves_with_the_overrun() {
    let rows = "
0 1 14000 14000 1000000 1014000 0 -4000 3000 10000 0
0 1 3000 10000 1014000 1024000 0 7000 3000 10000 0
";
    let recording = recording(rows, RunTimes::Measured);
    assert_eq!(
        jobs(&recording),
        [(0, 14_000, 10_000), (14_000, 3000, 24_000)]
    );
}

#[test]
fn rows_without_a_timer_are_due_when_they_end_and_that_is_told() {
    let recording = recording(
        "2 1 3000 12000 500 12500 0 0 3000 0 0\n",
        RunTimes::Measured,
    );
    assert_eq!(jobs(&recording), [(0, 3000, 12_000)]);
    assert_eq!(recording.converted.timer_after_deadline, [None]);
    assert!(recording.converted.notes[0]
        .to_string()
        .contains("rows without a timer"));
    assert_eq!(recording.converted.set.horizon_ns, 12 * MS);
}

#[test]
fn preemption_in_the_run_times_is_told() {
    let recording = recording(ABSOLUTE, RunTimes::Measured);
    let notes = &recording.converted.notes;
    assert!(
        notes
            .iter()
            .any(|note| note.what.contains("121 % above the configured")),
        "{notes:?}"
    );
}

#[test]
fn threads_that_share_a_timer_have_rows_of_their_own_kind() {
    let rows = "
2 1 100 9900 1000100 1010000 0 9800 100 10000 18446744073709541
2 1 100 20000 1010000 1030000 0 19900 100 10000 18446744073709541
";
    let recording = recording(rows, RunTimes::Measured);
    assert_eq!(jobs(&recording), [(0, 100, 10_000), (10_000, 100, 30_000)]);
}

#[test]
fn a_log_that_falls_silent_is_told() {
    let row = |start: u64| {
        format!(
            "0 1 1000 10000 {start} {} 0 9000 1000 10000 0\n",
            start + 10_000
        )
    };
    let log = |name: &str, jobs: u64| Log {
        name: name.into(),
        rows: read(
            (0..jobs)
                .map(|i| row(i * 10_000))
                .collect::<String>()
                .as_bytes(),
        )
        .unwrap(),
    };
    let logs = [log("steady", 9), log("silent", 4)];
    let recording = convert(&logs, RunTimes::Measured, 1).unwrap();
    let notes: Vec<String> = recording
        .converted
        .notes
        .iter()
        .map(|note| note.to_string())
        .collect();
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(
        notes[0].starts_with("thread silent: its log ends 5 periods before"),
        "{notes:?}"
    );
}

#[test]
fn columns_are_found_by_their_heading() {
    let swapped = "#idx perf run period end start rel_st slack c_duration c_period wu_lat\n0 1 2 3 9 8 0 0 1 1 0\n";
    let rows = read(swapped.as_bytes()).unwrap();
    assert_eq!((rows[0].start, rows[0].end), (8, 9));
}

#[test]
fn a_bad_log_is_refused_with_line_and_column() {
    let message = |text: &str| read(text.as_bytes()).unwrap_err().to_string();
    assert_eq!(
        message("0 1 2\n"),
        "1:6: the column start must hold a whole number"
    );
    let bad = format!("{HEAD}\n0 1 x 3 4 5 6 7 8 9 0\n");
    assert_eq!(
        message(&bad),
        "3:5: the column run must hold a whole number"
    );
    assert!(message("#idx perf\n").contains("no column \"run\""));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_log_makes_it_panic(text in "([#idx ]|[0-9]{1,16}|-|\n|[a-z]|\\PC){0,200}") {
        let _ = read(text.as_bytes());
    }

    #[test]
    fn whatever_the_figures_the_set_is_sound(rows in prop::collection::vec(prop::array::uniform8(-5i64..100_000), 1..30)) {
        let lines: Vec<String> = rows
            .iter()
            .map(|r| format!("0 1 {} 0 {} {} 0 {} {} {} {}", r[0], r[1], r[2], r[3] * 3 - 100_000, r[4], r[5].max(0) % 3 * r[6], r[7]))
            .collect();
        let rows = read(lines.join("\n").as_bytes()).unwrap();
        if let Ok(recording) = convert(&[Log { name: "t".into(), rows }], RunTimes::Measured, 1) {
            prop_assert!(recording.converted.set.check().is_ok(), "{:?}", recording.converted.set.check());
            outcome::recorded(&recording.converted, recording.fates);
        }
    }
}
