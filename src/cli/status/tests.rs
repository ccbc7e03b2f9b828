use std::path::Path;
use std::time::{Duration, SystemTime};

use super::report::{Kernel, Report, Standing};
use crate::agent::agent_stats::AgentMetrics;
use crate::agent::stats::{ClassMetrics, Metrics, OffenderMetrics};
use crate::cli::monitor::source::Look;

fn ours() -> Kernel {
    Kernel::Loaded {
        name: format!(
            "temponet_{}_x86_64_unknown_linux_gnu",
            env!("CARGO_PKG_VERSION")
        ),
        takes_all: true,
    }
}

/// A scheduler that was loaded an hour ago, whose agent decides.
fn healthy() -> Look {
    let class = |met, missed| ClassMetrics {
        met,
        missed,
        runs: met + missed,
        ..ClassMetrics::default()
    };
    let agent = AgentMetrics {
        policy: "temponet".into(),
        level: "agent".into(),
        backend: "native".into(),
        model: "temponet".into(),
        decisions: 7,
        told: 9,
        tasks: 4,
        ..AgentMetrics::default()
    };
    let recent = Metrics {
        interval_s: 1.0,
        classes: [("declared".into(), class(40, 0))].into(),
        agent: agent.clone(),
        ..Metrics::default()
    };
    let total = Metrics {
        interval_s: 3600.0,
        classes: [
            ("declared".into(), class(4000, 0)),
            ("inferred".into(), class(99, 1)),
        ]
        .into(),
        agent,
        ..Metrics::default()
    };
    Look {
        recent,
        total: Some(total),
    }
}

fn report(look: &Look) -> Report {
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
    Report::of(&ours(), look, now)
}

fn offender(missed: u64) -> OffenderMetrics {
    OffenderMetrics {
        missed,
        met: 10,
        class: "declared".into(),
        ..OffenderMetrics::default()
    }
}

#[test]
fn five_lines_say_what_runs_since_when_what_decides_and_what_was_met() {
    let report = report(&healthy());
    let text = report.lines();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 5, "{text}");
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(
        lines[0],
        format!("runs       scx_temponet {version}, policy temponet, all tasks")
    );
    assert!(lines[1].ends_with(", for 1 h 0 min"), "{text}");
    assert_eq!(
        lines[2],
        "decides    the agent decides (model temponet, native)"
    );
    assert_eq!(
        lines[3],
        "deadlines  declared: 4000 of 4000 met (100.0 %); estimated: 99 of 100 met (99.0 %)"
    );
    assert_eq!(lines[4], "look at    nothing is wrong");
    assert_eq!(report.standing, Standing::Well);
    let json = report.json();
    assert_eq!(json["state"], "well");
    assert_eq!(json["declared"]["met"], 4000);
    assert_eq!(json["loaded_at"], 1_799_996_400.0);
    assert!(json["look_at"].is_null());
}

#[test]
fn each_trouble_names_the_command_that_shows_more() {
    let shows = |look: Look, words: &str| {
        let report = report(&look);
        assert_eq!(report.standing, Standing::Trouble, "{}", report.lines());
        assert!(report.lines().contains(words), "{}", report.lines());
        assert_eq!(report.json()["state"], "trouble");
    };
    let mut silent = healthy();
    silent.recent.agent.level = "distilled".into();
    shows(silent, "journalctl -u scx_temponet");
    let mut overload = healthy();
    overload.recent.agent.given_up = 2;
    shows(overload, "which 2 of 4 tasks are given up");
    let mut late = healthy();
    late.recent
        .classes
        .entry("declared".into())
        .or_default()
        .missed = 3;
    shows(late.clone(), "3 declared deadlines were missed just now");
    late.recent.offenders = [
        ("audio[17]".into(), offender(3)),
        ("video[18]".into(), offender(2)),
    ]
    .into();
    shows(late, "scx_temponet hint --suggest 17");
    let mut map = healthy();
    map.recent.hints_invalid = 1;
    shows(map, "pinned map");
}

#[test]
fn misses_that_are_over_are_told_and_are_no_trouble() {
    let mut look = healthy();
    look.recent.offenders = [("audio[17]".into(), offender(3))].into();
    if let Some(total) = &mut look.total {
        total.classes.entry("declared".into()).or_default().missed = 3;
    }
    let report = report(&look);
    assert_eq!(report.standing, Standing::Well);
    assert!(report.lines().contains("4000 of 4003 met (99.9 %)"));
    assert!(report.lines().contains("missed by audio[17]"));
}

#[test]
fn an_older_version_that_still_runs_is_named() {
    let older = Kernel::Loaded {
        name: "temponet_0.0.9_x86_64_unknown_linux_gnu".into(),
        takes_all: false,
    };
    let report = Report::of(&older, &healthy(), SystemTime::now());
    let text = report.lines();
    assert!(text.starts_with(
        "runs       scx_temponet 0.0.9, policy temponet, tasks of policy SCHED_EXT only"
    ));
    assert!(text.contains("systemctl restart scx_temponet"), "{text}");
    assert_eq!(report.standing, Standing::Well);
}

#[test]
fn names_of_tasks_and_schedulers_move_no_cursor() {
    let mut look = healthy();
    look.recent.offenders = [("a\u{1b}[2J[17]".into(), offender(3))].into();
    look.recent
        .classes
        .entry("declared".into())
        .or_default()
        .missed = 1;
    look.recent.agent.model = "m\u{7}".into();
    let other = Kernel::Loaded {
        name: "evil\u{1b}[2J".into(),
        takes_all: true,
    };
    let without = Report::without_figures(&other, "gone".into(), Path::new("/nowhere"));
    for text in [report(&look).lines(), without.lines()] {
        assert!(
            !text.contains(|c: char| c.is_control() && c != '\n'),
            "{text:?}"
        );
    }
    assert_eq!(without.standing, Standing::NotLoaded);
}
