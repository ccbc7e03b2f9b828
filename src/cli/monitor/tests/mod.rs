mod busy;
mod source;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::app::{App, Sort, Step};
use super::history::spark;
use super::source::Look;
use super::text::{bar, clean, count, duration, lasted, on_time, percent, rate, task_name};
use super::verdict::{verdict, Mood};
use super::view::share;
use crate::agent::stats::OffenderMetrics;
use busy::busy;

/// The sizes that the screen is made for.
const SIZES: [(u16, u16); 3] = [(70, 20), (100, 30), (200, 60)];

fn drawn(app: &App, width: u16, height: u16) -> Vec<String> {
    super::drawn(app, width, height).unwrap()
}

fn showing(look: Look) -> App {
    let mut app = App::default();
    app.take(Ok(look));
    app
}

fn screen(look: &Look, width: u16, height: u16) -> String {
    drawn(&showing(look.clone()), width, height).join("\n")
}

fn assert_shows(screen: &str, words: &[&str]) {
    for word in words {
        assert!(screen.contains(word), "no '{word}' in\n{screen}");
    }
}

#[test]
fn a_wide_screen_shows_everything_that_is_reported() {
    let screen = screen(&busy(), 200, 60);
    assert_shows(
        &screen,
        &[
            "temponet",
            "overload: the agent gave up 3 of 12 tasks",
            "temponet-6d1f on ort CPU",
            "loaded for 1 h 5 min",
            "figures of 2.0 s",
            "412/s",
            "100/s by the network",
            "3.1 %",
            "of 5.0 %",
            "180 µs",
            "950 µs",
            "1.3 ms",
            "4.2 ms",
            "≤ 1.0 ms",
            "not all can be on time, overload",
            "camera[4711]",
            "idle",
            "!3 doomed[8]",
            "-1.5 ms",
            "given up",
            "resyncs",
            "stale",
            "fell to q-table",
            "preemptions",
        ],
    );
    assert!(!screen.contains("fell to agent"), "{screen}");
    assert!(!screen.contains("more ↓"), "{screen}");
}

/// The one line that begins with these words.
fn line_of<'a>(screen: &'a str, begin: &str) -> Vec<&'a str> {
    let mut lines = screen.lines().filter(|line| line.starts_with(begin));
    let line = lines
        .next()
        .unwrap_or_else(|| panic!("no '{begin}'\n{screen}"));
    line.split_whitespace().collect()
}

#[test]
fn rates_and_totals_stand_apart() {
    let screen = screen(&busy(), 70, 60);
    // 150 met and 50 missed in 2 s, and 1950 times as many since load.
    let declared = line_of(&screen, "declared");
    assert_eq!(declared[1..5], ["75", "25", "12.0", "ms"], "{screen}");
    assert_eq!(declared[5..], ["292k", "97.5k", "75.0", "20.0", "ms"]);
    assert_eq!(line_of(&screen, "agent  ")[1..4], ["300", "60.0", "%"]);
    assert_eq!(line_of(&screen, "agent  ")[4], "1.2M");
    assert_eq!(line_of(&screen, "preemptions")[1..], ["6.0", "44.0k"]);
    assert_eq!(line_of(&screen, "fell to q-table")[3..], ["1.0", "9"]);
    // Late and background work has no jobs: no zeros that read as perfect.
    assert_eq!(line_of(&screen, "late")[1..5], ["-", "-", "-", "-"]);
}

#[test]
fn every_size_keeps_what_matters_most() {
    for (width, height) in SIZES {
        let screen = screen(&busy(), width, height);
        let lines: Vec<&str> = screen.lines().collect();
        assert!(lines
            .iter()
            .all(|line| line.chars().count() <= width.into()));
        assert_shows(
            &screen,
            &[
                "overload: the agent gave up 3 of 12 tasks",
                "75.0",
                "since load, 1 h 5 min",
                "missed/s",
                "CPU load",
                "planner[99]",
                "load 68 %, 2.7 of 4 CPUs",
                "q quit",
            ],
        );
        // The last columns are whole.
        let last = if width == 100 { "slack " } else { "due in" };
        assert_shows(&screen, &["max wait", last]);
        assert_shows(
            &screen,
            &["p pause", "s sort: misses", "/ filter", "? help"],
        );
    }
}

#[test]
fn tasks_are_sorted_and_filtered_by_keys() {
    let mut app = showing(busy());
    let order = |app: &App| -> Vec<String> {
        let screen = drawn(app, 70, 80).join("\n");
        let (_, tasks) = screen.split_once("tasks by ").unwrap();
        let (tasks, _) = tasks.split_once("CPUs: load").unwrap();
        let names = tasks.lines().skip(2).filter(|line| line.contains('['));
        names
            .map(|line| line.trim_start_matches("!3 "))
            .filter_map(|line| line.split('[').next())
            .map(str::to_owned)
            .collect()
    };
    assert_eq!(order(&app), ["planner", "camera", "calm", "doomed"]);
    for (sort, expected) in [
        (Sort::Lateness, ["camera", "planner", "calm", "doomed"]),
        (Sort::Slack, ["planner", "doomed", "calm", "camera"]),
        (Sort::Name, ["calm", "camera", "doomed", "planner"]),
    ] {
        press(&mut app, "s");
        assert_eq!(app.sort, sort);
        assert_eq!(order(&app), expected, "{sort:?}");
    }
    press(&mut app, "/CAM");
    assert!(drawn(&app, 70, 20).join("\n").contains("filter: CAM"));
    app.press(KeyEvent::from(KeyCode::Enter));
    assert_eq!(order(&app), ["camera"]);
    // While typing, keys are letters: this q does not quit.
    press(&mut app, "/qq");
    app.press(KeyEvent::from(KeyCode::Enter));
    assert_shows(
        &drawn(&app, 70, 20).join("\n"),
        &["the filter hides all 4 tasks", "only \"CAMqq\""],
    );
    assert_eq!(app.press(KeyEvent::from(KeyCode::Esc)), Step::Stay);
    assert_eq!(order(&app).len(), 4);
    assert_eq!(app.press(KeyEvent::from(KeyCode::Esc)), Step::Quit);
}

#[test]
fn who_missed_declared_deadlines_stands_first_and_every_task_has_its_number() {
    let mut look = busy();
    let guessed = OffenderMetrics {
        missed: 9000,
        class: "inferred".into(),
        ..OffenderMetrics::default()
    };
    look.recent
        .offenders
        .insert("a-long-name-ok[4321987]".into(), guessed);
    let screen = screen(&look, 100, 60);
    let at = |text: &str| {
        screen
            .find(text)
            .unwrap_or_else(|| panic!("no {text}\n{screen}"))
    };
    assert!(at("planner[99]") < at("camera[4711]"));
    assert!(at("camera[4711]") < at("…[4321987]"));
}

fn press(app: &mut App, keys: &str) {
    for key in keys.chars() {
        assert_eq!(app.press(KeyEvent::from(KeyCode::Char(key))), Step::Stay);
    }
}

#[test]
fn pause_help_and_quit_have_their_keys() {
    let mut app = showing(busy());
    press(&mut app, "p");
    assert!(app.is_paused);
    assert_shows(&drawn(&app, 70, 20).join("\n"), &["PAUSED", "p go on"]);
    press(&mut app, " ");
    assert!(!app.is_paused);
    press(&mut app, "?");
    for (width, height) in SIZES {
        let help = drawn(&app, width, height).join("\n");
        assert_shows(&help, &["Ctrl-C", "sort tasks", "not all can be on time"]);
    }
    assert_eq!(app.press(KeyEvent::from(KeyCode::Esc)), Step::Stay);
    assert!(!app.is_helping);
    assert_eq!(app.press(KeyEvent::from(KeyCode::Char('q'))), Step::Quit);
    let control = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert_eq!(app.press(control), Step::Quit);
}

#[test]
fn history_has_a_bar_per_look_and_gaps_where_nobody_answered() {
    let mut app = App::default();
    for missed in [0, 0, 1, 100] {
        let mut look = busy();
        for class in look.recent.classes.values_mut() {
            class.missed = 0;
        }
        look.recent.classes.get_mut("declared").unwrap().missed = missed;
        app.take(Ok(look));
    }
    app.take(Err("gone".into()));
    app.take(Ok(busy()));
    let screen = drawn(&app, 100, 30).join("\n");
    // A single miss is seen; 25 a second now, 50 at the peak.
    assert_shows(&screen, &["▁▁▂█ ▄      25      ≤50"]);
}

#[test]
fn bars_tell_none_from_little() {
    let bars = |values: &[f64]| spark(&values.iter().map(|&v| Some(v)).collect::<Vec<_>>(), 100.0);
    assert_eq!(bars(&[0.0, 0.1, 50.0, 100.0, 900.0]), "▁▂▄██");
    assert_eq!(spark(&[None, Some(0.0)], 0.0), " ▁");
}

#[test]
fn who_decides_is_said_as_it_is() {
    let mut metrics = busy().recent;
    assert_eq!(verdict(&metrics).1, Mood::Poor);
    let decisions = std::mem::take(&mut metrics.agent.decisions);
    assert_eq!(
        verdict(&metrics).0,
        "overload: the agent gave up 3 of 12 tasks"
    );
    metrics.agent.decisions = decisions;
    metrics.agent.given_up = 0;
    assert_eq!(verdict(&metrics), ("the agent decides".into(), Mood::Good));
    metrics.agent.decisions = 0;
    assert_eq!(
        verdict(&metrics).0,
        "agent idle: deadlines alone settle what runs"
    );
    metrics.agent.told = 0;
    assert_eq!(verdict(&metrics).0, "agent idle: nothing competes");
    metrics.classes.get_mut("declared").unwrap().runs = 0;
    assert_eq!(verdict(&metrics).0, "agent idle: no declared task ran");
    for (level, said) in [
        ("q-table", "the agent is late: its last table decides"),
        (
            "distilled",
            "the agent is silent: the distilled rule decides",
        ),
        (
            "edf",
            "the agent is silent: earliest deadline first decides",
        ),
    ] {
        metrics.agent.level = level.into();
        assert_eq!(verdict(&metrics), (said.into(), Mood::Poor));
    }
    // Under `edf` and `distilled` there never was an agent.
    metrics.agent.backend.clear();
    assert_eq!(
        verdict(&metrics),
        (
            "earliest deadline first decides; no agent runs".into(),
            Mood::Calm
        )
    );
    assert_shows(
        &screen(
            &Look {
                recent: metrics,
                total: None,
            },
            100,
            40,
        ),
        &["no agent runs under this policy", "since load: not served"],
    );
}

#[test]
fn room_goes_to_what_stands_first() {
    // Least and most lines; a title each.
    assert_eq!(share(&[(2, 4), (1, 9)], 20), [5, 10]);
    assert_eq!(share(&[(2, 4), (1, 9)], 8), [5, 3]);
    assert_eq!(share(&[(2, 4), (1, 9), (1, 1)], 6), [4, 2, 0]);
    assert_eq!(share(&[(2, 4)], 2), [0]);
}

#[test]
fn a_list_that_does_not_fit_says_so() {
    let mut look = busy();
    let cpu = look.recent.cpus[&0].clone();
    look.recent.cpus = (0..64).map(|n| (n, cpu.clone())).collect();
    assert_shows(&screen(&look, 100, 30), &["of 64 CPUs", "57 more ↓"]);
}

#[test]
fn nothing_reported_is_drawn_as_nothing() {
    for (width, height) in SIZES {
        let screen = screen(&Look::default(), width, height);
        assert_shows(
            &screen,
            &[
                "no figures",
                "not reported",
                "the scheduler does not say what decides",
            ],
        );
    }
}

#[test]
fn a_scheduler_that_is_gone_is_said_to_be() {
    for (width, height) in SIZES {
        let mut app = showing(busy());
        app.take(Err("no scheduler answers at /x: No such file".into()));
        assert_shows(
            &drawn(&app, width, height).join("\n"),
            &["no scheduler answers", "Trying again"],
        );
    }
}

#[test]
fn hostile_names_and_numbers_move_no_cursor() {
    let mut look = busy();
    let hostile = &mut look.recent;
    hostile.interval_s = 1e-300;
    hostile.agent.decisions_per_s = -1e300;
    hostile.agent.cpu_share = 1e300;
    hostile.agent.latency_us.p50 = u64::MAX;
    hostile.agent.decision_age_us.counts = vec![u64::MAX; 500];
    hostile.agent.model = "evil\u{1b}[2J\nmodel".into();
    let class = hostile.classes.get_mut("declared").unwrap();
    (class.met, class.missed) = (u64::MAX, u64::MAX);
    (hostile.queue, hostile.idle) = (u64::MAX, u64::MAX);
    hostile.cpus.get_mut(&0).unwrap().comm = "x".repeat(500);
    hostile.cpus.get_mut(&0).unwrap().busy = f64::MAX;
    let doomed = hostile.endangered.remove("doomed[8]").unwrap();
    hostile.endangered.insert("\u{7f}\u{9b}31m".into(), doomed);
    for (width, height) in SIZES
        .into_iter()
        .chain([(1, 1), (3, 2), (20, 5), (400, 200)])
    {
        let mut app = showing(look.clone());
        app.take(Ok(look.clone()));
        app.is_helping = width == 20;
        let lines = drawn(&app, width, height);
        assert!(!lines.concat().contains(|c: char| c.is_control()));
    }
    let screen = screen(&look, 200, 60);
    assert_shows(&screen, &["evil?[2J?model", "xxx"]);
}

#[test]
fn numbers_fit_their_columns() {
    assert_eq!(task_name("rcu_preempt[15]", 14), "rcu_preem…[15]");
    assert_eq!(task_name("rcu_preempt[15]", 15), "rcu_preempt[15]");
    assert_eq!(task_name("x[1234567890]", 6), "…[1234");
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
    assert_eq!(on_time(0, 0), "-");
    assert_eq!(on_time(99_999, 1), "99.9", "one miss is no 100 %");
    assert_eq!(on_time(5, 0), "100.0");
    assert_eq!(lasted(59.9), "59 s");
    assert_eq!(lasted(192.0), "3 min 12 s");
    assert_eq!(lasted(90_000.0), "1 d 1 h");
}

/// To look at: `cargo test --lib monitor::tests::show -- --ignored --nocapture`.
#[test]
#[ignore = "prints the screens"]
fn show() {
    for (width, height) in SIZES {
        let mut app = App::default();
        for n in 0..150u64 {
            let mut look = busy();
            look.recent.classes.get_mut("declared").unwrap().missed = n * n % 37;
            look.recent.agent.decisions_per_s = 300.0 + (n * 7 % 90) as f64;
            look.recent.cpus.get_mut(&1).unwrap().busy = (n % 20) as f64 / 20.0;
            app.take(Ok(look));
        }
        println!(
            "{}\n{}",
            drawn(&app, width, height).join("\n"),
            "=".repeat(width.into())
        );
        app.is_helping = true;
        println!(
            "{}\n{}",
            drawn(&app, width, height).join("\n"),
            "=".repeat(width.into())
        );
    }
}
