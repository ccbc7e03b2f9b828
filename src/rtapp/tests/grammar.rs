use proptest::prelude::*;

use super::tasks;
use crate::rtapp::convert::{convert, Wishes};
use crate::rtapp::workload::*;
use crate::sim::time::MS;

fn parse(text: &str) -> Workload {
    Workload::parse(text.as_bytes()).expect("a workload")
}

fn fault(text: &str) -> String {
    Workload::parse(text.as_bytes()).unwrap_err().to_string()
}

fn actions(text: &str) -> Vec<Action> {
    let workload = tasks(&format!("\"t\": {{ {text} }}"));
    let events = workload.threads[0].phases[0].events.iter();
    events.map(|event| event.action.clone()).collect()
}

#[test]
fn events_are_told_by_how_their_key_begins() {
    let found = actions(
        r#""run0": 1, "runtime_b": 2, "run": 3, "sleepy": 4, "timer_a": {}, "memory": 5,
           "memrun1": {"type": "read", "size": 64, "count": 6}, "iorun": 7, "yield": "",
           "unlock9": "m", "lock": "m", "broadcast": "c", "signal": "c", "sem_post": "s",
           "sem_wait_x": "s", "barrier1": "b", "resume": "t", "fork": "t", "suspend""#,
    );
    let memrun = MemRun {
        kind: "read".into(),
        size: 64,
        count: 6,
    };
    let timer = Timer {
        reference: "unknown".into(),
        unique: false,
        period_us: 0,
        absolute: false,
    };
    assert_eq!(
        found,
        [
            Action::Run { us: 1 },
            Action::Runtime { us: 2 },
            Action::Run { us: 3 },
            Action::Sleep { us: 4 },
            Action::Timer(timer),
            Action::Mem { count: 5 },
            Action::MemRun(memrun),
            Action::IoRun { count: 7 },
            Action::Yield,
            Action::Unlock("m".into()),
            Action::Lock("m".into()),
            Action::Broadcast("c".into()),
            Action::Signal("c".into()),
            Action::SemPost("s".into()),
            Action::SemWait("s".into()),
            Action::Barrier("b".into()),
            Action::Resume("t".into()),
            Action::Fork("t".into()),
            Action::Suspend("t".into()),
        ]
    );
}

#[test]
fn timers_have_references_modes_and_a_period() {
    let found = actions(
        r#""timer": {"ref": "unique7", "period": 100, "mode": "absolute"},
           "timer1": {"ref": "tick", "period": 5, "mode": "relative"}, "timer2": 3"#,
    );
    let timer = |reference: &str, unique, period_us, absolute| {
        Action::Timer(Timer {
            reference: reference.into(),
            unique,
            period_us,
            absolute,
        })
    };
    assert_eq!(
        found,
        [
            timer("unique7", true, 100, true),
            timer("tick", false, 5, false),
            timer("unknown", false, 0, false),
        ]
    );
}

#[test]
fn a_timer_is_absolute_for_all_who_use_it() {
    let workload = tasks(
        r#""a": {"timer": {"ref": "tick", "mode": "absolute"}, "timer1": {"ref": "unique", "mode": "absolute"}},
           "b": {"timer": {"ref": "tick"}, "timer1": {"ref": "unique"}}"#,
    );
    let events = workload.threads[1].phases[0].events.iter();
    let absolute: Vec<bool> = events
        .map(|event| matches!(&event.action, Action::Timer(timer) if timer.absolute))
        .collect();
    assert_eq!(absolute, [true, false]);
}

#[test]
fn events_of_the_same_name_all_count_and_are_told() {
    let workload = tasks(r#""t": {"run": 1, "sleep": 2, "run": 3}"#);
    let phase = &workload.threads[0].phases[0];
    assert_eq!(phase.events.len(), 3);
    assert_eq!(workload.notes.len(), 1);
    assert!(workload.notes[0]
        .to_string()
        .starts_with("2:29: thread t: a key that was there"));
}

#[test]
fn phases_and_loops_mean_what_they_mean_to_rt_app() {
    let workload = tasks(
        r#""plain": {"run": 1},
           "thrice": {"run": 1, "loop": 3},
           "phased": {"loop": 2, "phases": {"a": {"loop": 4, "run": 1}, "b": {"run": 2}}},
           "endless": {"phases": {"a": {"loop": -1, "run": 1}}},
           "never": {"loop": 0, "phases": {"a": {"run": 1}}}"#,
    );
    let loops: Vec<_> = workload
        .threads
        .iter()
        .map(|t| {
            (
                t.loops,
                t.phases.iter().map(|p| p.loops).collect::<Vec<_>>(),
            )
        })
        .collect();
    use Loops::{Forever, Times};
    assert_eq!(loops[0], (Forever, vec![Times(1)]));
    assert_eq!(loops[1], (Times(1), vec![Times(3)]));
    assert_eq!(loops[2], (Times(2), vec![Times(4), Times(1)]));
    assert_eq!(loops[3], (Forever, vec![Forever]));
    assert_eq!(loops[4], (Times(0), vec![Times(1)]));
}

#[test]
fn a_thread_says_where_and_how_it_runs() {
    let workload = parse(
        r#"{"tasks": {"t": {"cpus": [0, 2], "policy": "SCHED_DEADLINE", "dl-runtime": 5,
            "dl-period": 20, "priority": -3, "delay": 7, "instance": 2, "taskgroup": "/a/b",
            "util_min": 10, "nodes_membind": [0], "run": 1}, "u": {"run": 1}},
            "global": {"default_policy": "SCHED_FIFO", "duration": 3, "calibration": 12,
            "log_size": "auto", "pi_enabled": true, "ftrace": "main,task"}}"#,
    );
    let thread = &workload.threads[0];
    let setting = &thread.setting;
    assert_eq!((thread.instances, thread.delay_us), (2, 7));
    assert_eq!(setting.cpus.as_ref().unwrap().value, [0, 2]);
    assert_eq!(
        setting.policy.as_ref().unwrap().value,
        LinuxPolicy::Deadline
    );
    assert_eq!(setting.deadline.runtime_us, Some(5));
    assert_eq!(setting.deadline.period_us, Some(20));
    assert_eq!(setting.deadline.deadline_us, None);
    assert_eq!(setting.priority.as_ref().unwrap().value, -3);
    assert_eq!(setting.taskgroup.as_ref().unwrap().value, "/a/b");
    let other = &workload.threads[1].setting;
    assert_eq!(other.policy.as_ref().unwrap().value, LinuxPolicy::Fifo);
    let global = &workload.global;
    assert_eq!(global.duration_s, Some(3));
    assert_eq!(global.calibration, Calibration::NsPerLoop(12));
    assert_eq!(global.log_size, LogSize::File);
    assert!(global.priority_inheritance && global.lock_pages);
    assert!(workload.notes.is_empty(), "{:?}", workload.notes);
}

#[test]
fn what_rt_app_does_not_read_is_told_with_its_place() {
    let workload = parse(
        "{\"tasks\": {\n \"t\": {\"exec\": 5, \"run\": 1, \"colour\": 2, \"loop\": 1, \"loop\": 2,\n \
         \"phases\": {\"p\": {\"sleep\": 3, \"nice\": 1}}}},\n \"extra\": {}} }",
    );
    let notes: Vec<String> = workload.notes.iter().map(|note| note.to_string()).collect();
    let expected = [
        "2:8: thread t: \"exec\" belongs to a grammar",
        "2:19: thread t: an event beside \"phases\"",
        "2:29: thread t: rt-app knows no \"colour\" here",
        "2:42: thread t: a later \"loop\" takes the place",
        "3:31: thread t, phase p: rt-app knows no \"nice\"",
        "4:2: rt-app knows no \"extra\" here",
        "4:15: what follows the workload's closing bracket",
    ];
    assert_eq!(notes.len(), expected.len(), "{notes:#?}");
    for (note, expected) in notes.iter().zip(expected) {
        assert!(
            note.starts_with(expected),
            "{note} should start with {expected}"
        );
    }
}

#[test]
fn what_makes_no_sense_is_refused_with_line_and_column() {
    for (text, expected) in [
        ("[]", "1:1: the workload must be an object, not a list"),
        (
            "{\"tasks\":\n {\"t\": {\"run\": \"x\"}}}",
            "2:16: run must be a whole number, not a string",
        ),
        (
            "{\"tasks\": {\"t\": {\"run\": -4}}}",
            "1:25: run must not be negative, and is -4",
        ),
        (
            "{\"tasks\": {\"t\": {\"run\": 1e3}}}",
            "1:25: run must be a whole number, not a number with",
        ),
        (
            "{\"tasks\": {\"t\": {\"run\": 99999999999}}}",
            "1:25: run is beyond the 32 bits",
        ),
        ("{\"tasks\": {\"t\": {\"run\"}}}", "1:18: run needs a value"),
        (
            "{\"tasks\": {\"t\": {\"run\": 1, \"policy\": \"FIFO\"}}}",
            "1:28: there is no policy \"FIFO\"",
        ),
        (
            "{\"tasks\": {\"t\": {\"run\": 1, \"cpus\": [\"a\"]}}}",
            "1:37: cpus lists numbers",
        ),
        (
            "{\"tasks\": {\"t\": {\"run\": 1, \"instance\": 5000}}}",
            "1:12: more than 4096 threads",
        ),
        (
            "{\"tasks\": {\"t\": {\"run\": 1, \"taskgroup\": \"a\"}}}",
            "1:28: a taskgroup starts with /",
        ),
        (
            "{\"tasks\": {\"t\": {\"run\": 1, \"taskgroup\": \"/a/../../b\"}}}",
            "1:28: a taskgroup has no ..",
        ),
        (
            "{\"tasks\": {\"t\": {\"memrun\": {\"type\": \"dig\"}}}}",
            "1:29: the type of memrun is",
        ),
        (
            "{\"global\": {\"calibration\": \"GPU0\"}}",
            "1:28: calibration is a number",
        ),
        (
            "{\"resources\": {\"a\": {\"type\": \"lamp\"}}}",
            "1:22: a resource is one of",
        ),
    ] {
        let message = fault(text);
        assert!(
            message.starts_with(expected),
            "{message} should start with {expected}"
        );
    }
}

/// Pieces that workloads are made of, in any order.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("{".to_owned()),
        Just("}".to_owned()),
        Just("[".to_owned()),
        Just("]".to_owned()),
        Just(":".to_owned()),
        Just(",".to_owned()),
        Just("/*".to_owned()),
        Just("*/".to_owned()),
        Just("//\n".to_owned()),
        Just("\\".to_owned()),
        "\"(tasks|global|t|phases|p|run|sleep|timer|loop|instance|delay|lock|suspend|resume|fork|cpus|ref|period|mode)\"",
        "-?[0-9]{1,12}",
        "(true|false|null|NaN)",
        "\\PC",
    ];
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

/// A thread of arbitrary events, which parses.
fn events() -> impl Strategy<Value = String> {
    let name = "[ab]";
    let event = prop_oneof![
        (0..50_000u32).prop_map(|us| format!("\"run\": {us}")),
        (0..50_000u32).prop_map(|us| format!("\"sleep\": {us}")),
        (0..20_000u32, name, any::<bool>()).prop_map(|(us, name, absolute)| {
            let mode = if absolute { "absolute" } else { "relative" };
            format!("\"timer\": {{\"ref\": \"{name}\", \"period\": {us}, \"mode\": \"{mode}\"}}")
        }),
        (
            "(lock|unlock|signal|broad|barrier|sem_post|sem_wait|resume|suspend|fork)",
            name
        )
            .prop_map(|(event, name)| format!("\"{event}\": \"{name}\"")),
        ("(wait|sync)", name, name).prop_map(|(event, on, m)| format!(
            "\"{event}\": {{\"ref\": \"{on}\", \"mutex\": \"{m}\"}}"
        )),
        (-2..4i32).prop_map(|loops| format!("\"loop\": {loops}")),
        Just("\"yield\"".to_owned()),
    ];
    prop::collection::vec(event, 1..8).prop_map(|events| events.join(", "))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = Workload::parse(&bytes);
    }

    #[test]
    fn no_heap_of_pieces_makes_it_panic(text in pieces()) {
        let _ = Workload::parse(text.as_bytes());
    }

    #[test]
    fn whatever_parses_converts_to_a_sound_set_or_says_why_not(a in events(), b in events(), instances in 0..3u32) {
        let workload = tasks(&format!("\"a\": {{ {a}, \"instance\": {instances} }}, \"b\": {{ {b} }}"));
        let wishes = Wishes { horizon: Some(50 * MS), cores: None };
        if let Ok(converted) = convert(&workload, &wishes) {
            prop_assert!(converted.set.check().is_ok(), "{:?}", converted.set.check());
        }
    }
}

#[test]
fn a_misspelt_key_is_refused_with_its_place_and_what_was_meant() {
    for (text, slip, right) in [
        (
            r#""run": 5, "timr": {"ref": "a", "period": 20}"#,
            "timr",
            "timer",
        ),
        (
            r#""run": 5, "timer": {"ref": "a", "perod": 20}"#,
            "perod",
            "period",
        ),
        (r#""run": 5, "lop": 3"#, "lop", "loop"),
        (
            r#""phases": {"p": {"run": 5, "slep": 10}}"#,
            "slep",
            "sleep",
        ),
    ] {
        let text = format!(r#"{{"tasks": {{"t": {{ {text} }} }} }}"#);
        let column = text.find(&format!("{slip:?}")).unwrap() + 1;
        let expected =
            format!("1:{column}: rt-app knows no {slip:?} here; did you mean {right:?}?");
        let said = fault(&text);
        assert!(said.starts_with(&expected), "{said}");
    }
    let said = fault(r#"{"global": {"duraton": 3}, "tasks": {"t": {"run": 5}}}"#);
    assert!(said.contains("did you mean \"duration\"?"), "{said}");
}
