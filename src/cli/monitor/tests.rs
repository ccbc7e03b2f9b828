use ratatui::backend::TestBackend;
use ratatui::Terminal;
use serde_json::{json, Value};

use super::scene::{Bucket, Scene};
use super::text::{bar, clean, count, duration, percent, rate};
use super::view;
use crate::agent::agent_stats::{AgentMetrics, CpuMetrics, EndangeredMetrics, Flags, Spread};
use crate::agent::stats::{ClassMetrics, Metrics};

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

/// What a scheduler would serve: of its own type, so that no figure is shown here that
/// is never sent.
fn busy() -> Metrics {
    let spread = |p50, p99, counts: &[u64]| Spread {
        p50,
        p99,
        counts: counts.to_vec(),
    };
    let class = |met, missed, response_us, wait_max_us| ClassMetrics {
        met,
        missed,
        response_us,
        wait_max_us,
        ..Default::default()
    };
    let runs = |pid, comm: &str, tier: &str| CpuMetrics {
        pid,
        comm: comm.into(),
        tier: tier.into(),
    };
    let danger = |slack_us, remaining_us, criticality| EndangeredMetrics {
        slack_us,
        remaining_us,
        deadline_us: slack_us + remaining_us,
        criticality,
        kept: 1,
    };
    let ages = [0, 0, 0, 0, 0, 0, 0, 0, 0, 300, 0, 0, 150, 2, 0, 0];
    Metrics {
        agent: AgentMetrics {
            policy: "temponet".into(),
            level: "agent".into(),
            backend: "ort".into(),
            provider: "CPU".into(),
            model: "temponet-6d1f".into(),
            decisions: 412,
            decisions_per_s: 412.0,
            cpu_share: 0.031,
            budget: 0.05,
            inference_us: spread(180, 950, &[1]),
            latency_us: spread(240, 1300, &[1]),
            decision_age_us: spread(700, 4200, &ages),
            resyncs: 1,
            stale: 7,
            transitions: [("q-table".into(), 3), ("edf".into(), 0)].into(),
            shield: Flags {
                feasible: 0,
                overload: 1,
                burst: 0,
            },
            ..Default::default()
        },
        decision: 600,
        q_table: 200,
        queue: 100,
        idle: 100,
        preemptions: 12,
        classes: [
            ("late".into(), class(0, 0, 0.0, 1_500_000.0)),
            ("declared".into(), class(75, 25, 12_000.0, 20_000.0)),
            ("background".into(), class(0, 0, 0.0, 2_000.0)),
        ]
        .into(),
        cpus: [
            (1, runs(0, "swapper/1", "idle")),
            (0, runs(4711, "camera", "declared")),
        ]
        .into(),
        endangered: [
            ("calm[9]".into(), danger(30_000.0, 1000.0, 0)),
            ("doomed[8]".into(), danger(-1500.0, 2000.0, 3)),
        ]
        .into(),
        ..Default::default()
    }
}

fn served(metrics: &Metrics) -> Value {
    serde_json::to_value(metrics).unwrap()
}

#[test]
fn a_wide_screen_shows_everything_that_is_reported() {
    let screen = screen(&served(&busy()), 120, 40);
    assert_shows(
        &screen,
        &[
            "policy temponet",
            "decides agent",
            "runs on ort CPU",
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
            "idle",
            "doomed[8]",
            "-1.5 ms",
            "!3 doomed[8]",
            "feasible no, overload yes, burst no",
            "resyncs 1, stale 7",
            "q-table 3",
            "preemptions 12",
        ],
    );
}

#[test]
fn an_ordinary_terminal_shows_deadlines_lanes_dangers_and_sources() {
    let screen = screen(&served(&busy()), 80, 24);
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
    let screen = screen(&served(&busy()), 60, 20);
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
    let scene = Scene::from_json(&served(&busy()));
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
fn an_agent_that_decides_nothing_is_said_to_be_idle() {
    let mut metrics = busy();
    metrics.agent.decisions = 0;
    metrics.agent.decisions_per_s = 0.0;
    let idle = screen(&served(&metrics), 120, 40);
    assert_shows(&idle, &["agent idle: nothing competes"]);
    assert!(!idle.contains("decides agent"), "{idle}");
    // Whoever else has the say is named, decisions or not.
    metrics.agent.level = "edf".into();
    assert_shows(&screen(&served(&metrics), 120, 40), &["decides edf"]);
}

#[test]
fn a_scheduler_of_another_version_may_leave_figures_out_and_add_some() {
    let scene = Scene::from_json(&json!({
        "cpus": {"3": {"pid": 5, "comm": "a"}},
        "news": {"of": "tomorrow"},
    }));
    assert_eq!(scene.trouble, None);
    assert_eq!(
        (scene.lanes[0].cpu, scene.lanes[0].task.as_deref()),
        (3, Some("a[5]"))
    );
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
fn hostile_names_and_numbers_move_no_cursor() {
    let mut hostile = busy();
    hostile.agent.decisions_per_s = -1e300;
    hostile.agent.cpu_share = 1e300;
    hostile.agent.latency_us.p50 = u64::MAX;
    hostile.agent.decision_age_us.counts = vec![u64::MAX; 500];
    hostile.agent.model = "evil\u{1b}[2J\nmodel".into();
    let class = hostile.classes.get_mut("declared").unwrap();
    (class.met, class.missed) = (u64::MAX, u64::MAX);
    (hostile.queue, hostile.idle) = (u64::MAX, u64::MAX);
    hostile.cpus.get_mut(&0).unwrap().comm = "x".repeat(500);
    let doomed = hostile.endangered.remove("doomed[8]").unwrap();
    hostile.endangered.insert("\u{7f}\u{9b}31m".into(), doomed);
    for (width, height) in SIZES
        .into_iter()
        .chain([(1, 1), (3, 2), (20, 5), (400, 200)])
    {
        let lines = drawn(&Scene::of(&hostile), width, height);
        assert!(!lines.concat().contains(|c: char| c.is_control()));
    }
    let screen = screen(&served(&hostile), 120, 40);
    assert_shows(&screen, &["evil?[2J?model", "xxx[4711]"]);
}

#[test]
fn what_cannot_be_read_is_said_to_be() {
    for wrong in [json!([1, 2]), json!("text"), json!(3.5), json!(true)] {
        assert_shows(&screen(&wrong, 80, 24), &["the scheduler sent no figures"]);
    }
    let mut garbage = served(&busy());
    garbage["agent"]["inference_us"] = json!("fast\u{1b}[2J");
    let lines = drawn(&Scene::from_json(&garbage), 120, 40);
    assert!(!lines.concat().contains(|c: char| c.is_control()));
    assert_shows(&lines.join("\n"), &["cannot read", "own version"]);
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
