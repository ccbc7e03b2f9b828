use ratatui::backend::TestBackend;
use ratatui::Terminal;
use serde_json::{json, Value};

use super::scene::{Bucket, Scene};
use super::text::{bar, clean, count, duration, percent, rate};
use super::view;

const SIZES: [(u16, u16); 3] = [(80, 24), (120, 40), (60, 20)];

fn drawn(scene: &Scene, width: u16, height: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| view::draw(frame, scene)).unwrap();
    let buffer = terminal.backend().buffer();
    (0..height)
        .map(|y| (0..width).map(|x| buffer[(x, y)].symbol()).collect())
        .collect()
}

fn screen(figures: &Value, width: u16, height: u16) -> String {
    drawn(&Scene::from_json(figures), width, height).join("\n")
}

fn assert_shows(screen: &str, words: &[&str]) {
    for word in words {
        assert!(screen.contains(word), "no '{word}' in\n{screen}");
    }
}

fn busy() -> Value {
    json!({
        "agent": {
            "policy": "temponet", "backend": "ort", "provider": "CPU", "device": "cpu",
            "model": "temponet-6d1f", "level": "agent", "decisions_per_s": 412.0,
            "inference_us": {"p50": 180.0, "p99": 950.0},
            "latency_us": {"p50": 240.0, "p99": 1300.0},
            "decision_age_us": {"p50": 700.0, "p99": 4200.0, "counts": [
                0, 0, 0, 0, 0, 0, 0, 0, 0, 300, 0, 0, 150, 2, 0, 0]},
            "cpu_share": 0.031, "budget": 0.05, "heartbeat_age_ms": 2.5,
            "ring_drops": 0, "resyncs": 1, "stale": 7, "impossible": 0, "duplicate": 0,
            "transitions": {"q_table": 3, "edf": 0},
            "shield": {"state": "on", "feasible": false},
            "mitigation": {"sparse": true, "reserve": false}
        },
        "decision": 600, "q_table": 200, "queue": 100, "idle": 100, "bound": 0, "kthread": 0,
        "preemptions": 12, "hopeless": 0,
        "classes": {
            "late": {"met": 0, "missed": 0, "wait_max_us": 1_500_000.0, "run_ms": 30.0},
            "declared": {"met": 75, "missed": 25, "response_us": 12_000.0,
                         "lateness_us": 3_000.0, "wait_max_us": 20_000.0, "run_ms": 900.0},
            "background": {"met": 0, "missed": 0, "wait_max_us": 2_000.0}
        },
        "cpus": [
            {"cpu": 1, "pid": 0, "comm": "swapper/1", "tier": "idle"},
            {"cpu": 0, "pid": 4711, "comm": "camera", "tier": "declared", "urgency_us": -2500.0}
        ],
        "endangered": [
            {"pid": 9, "comm": "calm", "slack_us": 30_000.0, "remaining_us": 1000.0, "deadline_us": 31_000.0},
            {"pid": 8, "comm": "doomed", "slack_us": -1500.0, "remaining_us": 2000.0,
             "deadline_us": 500.0, "criticality": 3}
        ]
    })
}

#[test]
fn a_wide_screen_shows_everything_that_is_reported() {
    let screen = screen(&busy(), 120, 40);
    assert_shows(
        &screen,
        &[
            "policy temponet",
            "decides agent",
            "heartbeat 2.5 ms",
            "runs on ort CPU cpu",
            "model temponet-6d1f",
            "412/s",
            "3.1 % of 5.0 %",
            "180 µs",
            "950 µs",
            "1.3 ms",
            "4.2 ms",
            "≤ 1.0 ms",
            "agent              600  60.0 %",
            "Q-table            200  20.0 %",
            "declared         75      25    75.0   12.0 ms   20.0 ms",
            "1.5 s",
            "camera[4711]",
            "-2.5 ms",
            "idle",
            "doomed[8]",
            "-1.5 ms",
            "!3 doomed[8]",
            "feasible no, state on",
            "reserve no, sparse yes",
            "resyncs 1, stale 7",
            "q_table 3",
            "preemptions 12",
        ],
    );
}

#[test]
fn an_ordinary_terminal_shows_deadlines_lanes_dangers_and_sources() {
    let screen = screen(&busy(), 80, 24);
    assert_shows(
        &screen,
        &[
            "75.0",
            "camera[4711]",
            "doomed[8]",
            "Q-table",
            "412/s",
            "4.2 ms",
            "feasible no",
            "q quits",
        ],
    );
}

#[test]
fn a_narrow_terminal_keeps_what_matters_most() {
    let screen = screen(&busy(), 60, 20);
    assert_shows(
        &screen,
        &[
            "policy temponet",
            "75.0",
            "camera[4711]",
            "412/s",
            "q quits",
        ],
    );
}

#[test]
fn the_least_slack_stands_first_and_lanes_stand_in_order() {
    let scene = Scene::from_json(&busy());
    assert_eq!(scene.endangered[0].task, "doomed[8]");
    assert_eq!(scene.lanes[0].cpu, 0);
    assert_eq!(scene.lanes[1].task, None, "pid 0 is the idle task");
    assert_eq!(scene.classes[0].name, "declared");
    assert_eq!(
        scene.classes[2].met, None,
        "late jobs are not counted there"
    );
    assert_eq!(
        scene.agent.ages.last(),
        Some(&Bucket {
            le_us: 16384.0,
            count: 2
        })
    );
}

#[test]
fn lists_may_be_tables_too() {
    let scene = Scene::from_json(&json!({
        "cpus": {"3": {"pid": 5, "comm": "a"}},
        "endangered": {"b[7]": {"slack_us": 1.0}},
        "agent": {"shield": "off"}
    }));
    assert_eq!(
        (scene.lanes[0].cpu, scene.lanes[0].task.as_deref()),
        (3, Some("a[5]"))
    );
    assert_eq!(scene.endangered[0].task, "b[7]");
    assert_eq!(scene.agent.shield, [(String::new(), "off".to_string())]);
}

#[test]
fn what_today_s_scheduler_serves_is_shown() {
    let metrics = serde_json::to_value(crate::agent::stats::Metrics {
        queue: 30,
        idle: 10,
        classes: [("declared".to_string(), Default::default())].into(),
        ..Default::default()
    })
    .unwrap();
    let screen = screen(&metrics, 80, 24);
    assert_shows(
        &screen,
        &["deadline order", "75.0 %", "idle CPU", "25.0 %", "declared"],
    );
}

#[test]
fn nothing_reported_is_drawn_as_nothing() {
    for (width, height) in SIZES {
        let screen = screen(&json!({}), width, height);
        assert_shows(&screen, &["no figures", "not reported", "no agent decides"]);
    }
}

#[test]
fn a_scheduler_that_is_gone_is_said_to_be() {
    for (width, height) in SIZES {
        let scene = Scene::absent("no scheduler answers at /x: No such file".into());
        assert_shows(
            &drawn(&scene, width, height).join("\n"),
            &["no scheduler answers", "Trying again"],
        );
    }
    assert_shows(
        &screen(&json!(null), 80, 24),
        &["the scheduler sent no figures"],
    );
}

#[test]
fn garbage_is_left_out_and_moves_no_cursor() {
    let mut garbage = busy();
    garbage["agent"]["inference_us"] = json!("fast");
    garbage["agent"]["decisions_per_s"] = json!(-1e300);
    garbage["agent"]["cpu_share"] = json!(1e300);
    garbage["agent"]["latency_us"] = json!({"p50": 1e300, "p99": -1e300});
    garbage["agent"]["decision_age_us"]["counts"] = json!([3, u64::MAX, -1, "x"]);
    garbage["agent"]["model"] = json!("evil\u{1b}[2J\nmodel");
    garbage["classes"] = json!({"declared": 7, "inferred": {"met": u64::MAX, "missed": u64::MAX}});
    garbage["queue"] = json!(u64::MAX);
    garbage["idle"] = json!(u64::MAX);
    garbage["cpus"] = json!([null, {"cpu": -1}, {"cpu": 2, "pid": 1, "comm": "x".repeat(500)}]);
    garbage["endangered"] = json!([[], {"slack_us": "soon", "comm": "\u{7f}\u{9b}31m"}]);
    for (width, height) in SIZES
        .into_iter()
        .chain([(1, 1), (3, 2), (20, 5), (400, 200)])
    {
        let lines = drawn(&Scene::from_json(&garbage), width, height);
        assert!(!lines.concat().contains(|c: char| c.is_control()));
    }
    assert_shows(&screen(&garbage, 120, 40), &["evil?[2J?model", "xxx[1]"]);
    for wrong in [json!([1, 2]), json!("text"), json!(3.5), json!(true)] {
        assert_shows(&screen(&wrong, 80, 24), &["the scheduler sent no figures"]);
    }
}

#[test]
fn numbers_fit_their_columns() {
    assert_eq!(duration(None), "-");
    assert_eq!(duration(Some(12.4)), "12 µs");
    assert_eq!(duration(Some(999.7)), "1.0 ms");
    assert_eq!(duration(Some(-2500.0)), "-2.5 ms");
    assert_eq!(duration(Some(150_000.0)), "150 ms");
    assert_eq!(duration(Some(2_000_000.0)), "2.0 s");
    assert_eq!(duration(Some(f64::MAX)), "> 2 h");
    assert_eq!(count(9_999), "9999");
    assert_eq!(count(10_000), "10.0k");
    assert_eq!(count(999_960), "1.0M");
    assert_eq!(count(u64::MAX), "18.4E");
    assert_eq!(rate(0.25), "0.2");
    assert_eq!(rate(f64::MAX), "18.4E");
    assert_eq!(percent(f64::MAX), "? %");
    assert_eq!(bar(0.5, 4), "██··");
    assert_eq!(bar(f64::MAX, 2), "██");
    assert_eq!(clean("a\u{1b}b", 2), "a?");
}
