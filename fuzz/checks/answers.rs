//! What comes back from a guest: lines of a comparison, and the results of a replay. The first
//! byte chooses. What is accepted says the same when it is said again, and fits the workload.

use scx_temponet::compare::wire::Line;
use scx_temponet::rtapp::convert::{convert, Converted, Wishes};
use scx_temponet::rtapp::live::Collected;
use scx_temponet::rtapp::Workload;
use std::sync::OnceLock;

fn workload() -> &'static Converted {
    static CONVERTED: OnceLock<Converted> = OnceLock::new();
    CONVERTED.get_or_init(|| {
        let text = br#"{"global": {"duration": 1}, "tasks": {"a": {"run": 1000,
            "timer": {"ref": "unique", "period": 100000}}}}"#;
        let workload = Workload::parse(text).expect("a workload");
        convert(&workload, &Wishes::default()).expect("it can be converted")
    })
}

pub fn check(bytes: &[u8]) {
    let Some((choice, text)) = bytes.split_first() else {
        return;
    };
    let Ok(text) = std::str::from_utf8(text) else {
        return;
    };
    if choice & 1 == 0 {
        for line in text.lines().filter_map(Line::parse) {
            assert_eq!(Line::parse(&line.to_text()), Some(line));
        }
        return;
    }
    let set = &workload().set;
    let Ok(collected) = Collected::from_json(text, workload()) else {
        return;
    };
    for run in &collected.runs {
        for job in run.jobs() {
            assert!((job.task as usize) < set.tasks.len() && job.deadline <= set.horizon_ns);
        }
        for segment in run.segments() {
            assert!(segment.start <= segment.end && segment.end <= set.horizon_ns);
        }
    }
    let again = collected.to_json().expect("it came from JSON");
    Collected::from_json(&again, workload()).expect("it was accepted before");
}
