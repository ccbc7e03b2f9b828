//! A workload as a file for the real rt-app: what was read, with every key once and
//! with the scheduling class that a run wants.
//!
//! rt-app's parser keeps only the last of two keys of the same name, and versions
//! differ in how often a thread without phases runs; so events get names of their
//! own, and every thread has phases.

use std::collections::HashSet;

use serde_json::{json, Value};

use super::workload::*;

/// Longer names are not set, and nobody would find the thread.
const LONGEST_NAME: usize = 15;

/// The class a thread is to run in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// As the file says.
    AsWritten,
    /// One that a sched_ext scheduler sees; nice levels stay.
    Fair,
    Fifo {
        priority: u32,
    },
    Deadline {
        runtime_us: u64,
        deadline_us: u64,
        period_us: u64,
    },
}

/// What a run adds to the file.
#[derive(Clone, Debug)]
pub struct Orders<'a> {
    /// By thread.
    pub classes: Vec<Class>,
    /// Every thread sleeps so long before its first job.
    pub lead_us: u64,
    pub duration_s: u64,
    pub calibration_ns: u32,
    /// The file's own word does not count: rt-app may run as root.
    pub io_device: &'a str,
    pub log_dir: &'a str,
    pub log_megabytes: u32,
}

/// How the logs begin: `log-THREAD-NUMBER.log`.
pub const LOG_BASENAME: &str = "log";

/// Names for the threads that are unique where rt-app and the kernel look.
pub fn names(workload: &Workload) -> Vec<String> {
    let mut taken = HashSet::new();
    let threads = workload.threads.iter().enumerate();
    let name = |(i, thread): (usize, &Thread)| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "._-:+@".contains(c);
        let wanted: String = thread
            .name
            .chars()
            .map(|c| if plain(c) { c } else { '_' })
            .collect();
        let mut name = wanted.clone();
        // Forked threads are called name-forkN and the like: no prefix may clash.
        if name.is_empty() || name.len() > LONGEST_NAME || taken.contains(&name) {
            name = format!("{i}-{wanted}");
            name.truncate(LONGEST_NAME);
        }
        taken.insert(name.clone());
        name
    };
    threads.map(name).collect()
}

/// The file's text.
pub fn text(workload: &Workload, orders: &Orders) -> String {
    let global = &workload.global;
    let names = names(workload);
    let settings = object(vec![
        ("duration".into(), json!(orders.duration_s).to_string()),
        ("default_policy".into(), json!("SCHED_OTHER").to_string()),
        (
            "calibration".into(),
            json!(orders.calibration_ns).to_string(),
        ),
        ("lock_pages".into(), json!(global.lock_pages).to_string()),
        ("log_size".into(), json!(orders.log_megabytes).to_string()),
        ("logdir".into(), json!(orders.log_dir).to_string()),
        ("log_basename".into(), json!(LOG_BASENAME).to_string()),
        (
            "pi_enabled".into(),
            json!(global.priority_inheritance).to_string(),
        ),
        ("io_device".into(), json!(orders.io_device).to_string()),
        (
            "mem_buffer_size".into(),
            json!(global.mem_buffer_bytes).to_string(),
        ),
    ]);
    let threads = workload.threads.iter().enumerate();
    let tasks = threads.map(|(i, thread)| {
        let entry = thread_text(thread, orders.classes[i], orders.lead_us, workload, &names);
        (names[i].clone(), entry)
    });
    let tasks = object(tasks.collect());
    object(vec![("global".into(), settings), ("tasks".into(), tasks)]) + "\n"
}

/// Members in the order given: order is what rt-app runs events in.
fn object(members: Vec<(String, String)>) -> String {
    let members: Vec<String> = members
        .into_iter()
        .map(|(key, value)| format!("{}: {value}", Value::from(key)))
        .collect();
    format!("{{{}}}", members.join(",\n "))
}

fn thread_text(
    thread: &Thread,
    class: Class,
    lead_us: u64,
    workload: &Workload,
    names: &[String],
) -> String {
    let mut members = vec![
        ("instance".to_owned(), thread.instances.to_string()),
        ("delay".into(), (thread.delay_us + lead_us).to_string()),
        ("loop".into(), loops(thread.loops).to_string()),
    ];
    class_members(&thread.setting, class, &mut members);
    place_members(&thread.setting, &mut members);
    let phases = thread.phases.iter().enumerate().map(|(i, phase)| {
        let mut members = vec![("loop".to_owned(), loops(phase.loops).to_string())];
        if class == Class::AsWritten {
            class_members(&phase.setting, class, &mut members);
        }
        place_members(&phase.setting, &mut members);
        let mut keys: HashSet<String> = HashSet::new();
        for event in &phase.events {
            let mut key = event.key.clone();
            let mut number = 2;
            while !keys.insert(key.clone()) {
                key = format!("{}_{number}", event.key);
                number += 1;
            }
            let value = action(&event.action, workload, names);
            members.push((key, value.to_string()));
        }
        (format!("p{i}"), object(members))
    });
    members.push(("phases".into(), object(phases.collect())));
    object(members)
}

fn loops(loops: Loops) -> i64 {
    match loops {
        Loops::Forever => -1,
        Loops::Times(times) => times.into(),
    }
}

fn class_members(setting: &Setting, class: Class, members: &mut Vec<(String, String)>) {
    let mut add = |key: &str, value: Option<Value>| {
        members.extend(value.map(|value| (key.to_owned(), value.to_string())));
    };
    let policy = setting.policy.as_ref().map(|policy| policy.value);
    let named = policy.map(|policy| json!(policy.name()));
    let priority = setting.priority.as_ref().map(|p| json!(p.value));
    let micros = |us: Option<u64>| us.map(|us| json!(us));
    match class {
        Class::AsWritten => {
            add("policy", named);
            add("priority", priority);
            add("dl-runtime", micros(setting.deadline.runtime_us));
            add("dl-period", micros(setting.deadline.period_us));
            add("dl-deadline", micros(setting.deadline.deadline_us));
        }
        // A priority of another class is no nice level.
        Class::Fair if policy.is_some_and(LinuxPolicy::is_above_sched_ext) => {
            add("policy", Some(json!("SCHED_OTHER")));
        }
        Class::Fair => {
            add("policy", named);
            add("priority", priority);
        }
        Class::Fifo { priority } => {
            add("policy", Some(json!("SCHED_FIFO")));
            add("priority", Some(json!(priority)));
        }
        Class::Deadline {
            runtime_us,
            deadline_us,
            period_us,
        } => {
            add("policy", Some(json!("SCHED_DEADLINE")));
            add("dl-runtime", micros(Some(runtime_us)));
            add("dl-deadline", micros(Some(deadline_us)));
            add("dl-period", micros(Some(period_us)));
        }
    }
}

fn place_members(setting: &Setting, members: &mut Vec<(String, String)>) {
    let mut add = |key: &str, value: Value| members.push((key.into(), value.to_string()));
    let value = |placed: &Option<Placed<i32>>| placed.as_ref().map(|placed| placed.value);
    if let Some(cpus) = &setting.cpus {
        add("cpus", json!(cpus.value));
    }
    if let Some(nodes) = &setting.memory_nodes {
        add("nodes_membind", json!(nodes.value));
    }
    if let Some(clamp) = value(&setting.util_min) {
        add("util_min", json!(clamp));
    }
    if let Some(clamp) = value(&setting.util_max) {
        add("util_max", json!(clamp));
    }
    if let Some(group) = &setting.taskgroup {
        add("taskgroup", json!(group.value));
    }
}

fn action(action: &Action, workload: &Workload, names: &[String]) -> Value {
    match action {
        Action::Run { us } | Action::Runtime { us } | Action::Sleep { us } => json!(us),
        Action::Mem { count } | Action::IoRun { count } => json!(count),
        Action::Timer(timer) => json!({
            "ref": timer.reference,
            "period": timer.period_us,
            "mode": if timer.absolute { "absolute" } else { "relative" },
        }),
        Action::Wait { on, mutex } | Action::Sync { on, mutex } => {
            json!({ "ref": on, "mutex": mutex })
        }
        Action::Lock(name)
        | Action::Unlock(name)
        | Action::Signal(name)
        | Action::Broadcast(name)
        | Action::Barrier(name)
        | Action::SemPost(name)
        | Action::SemWait(name)
        | Action::Suspend(name)
        | Action::Resume(name) => json!(name),
        Action::Yield => json!(""),
        Action::Fork(name) => {
            let thread = workload.threads.iter().position(|t| t.name == *name);
            json!(thread.map_or(name, |i| &names[i]))
        }
        Action::MemRun(run) => json!({ "type": run.kind, "size": run.size, "count": run.count }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn orders(classes: Vec<Class>) -> Orders<'static> {
        Orders {
            classes,
            lead_us: 2_000_000,
            duration_s: 5,
            calibration_ns: 188,
            io_device: "/dev/null",
            log_dir: "/tmp/logs",
            log_megabytes: 2,
        }
    }

    fn rewritten(text: &str, classes: Vec<Class>) -> (Workload, serde_json::Value) {
        let workload = Workload::parse(text.as_bytes()).unwrap();
        let text = super::text(&workload, &orders(classes));
        // What was written is JSON of the strict kind, with every key once.
        let strict: serde_json::Value = serde_json::from_str(&text).expect("strict JSON");
        (Workload::parse(text.as_bytes()).unwrap(), strict)
    }

    #[test]
    fn events_of_the_same_name_all_reach_rt_app_in_their_order() {
        let text = r#"{"tasks": {"a": {"loop": -1, "run": 1, "sleep": 2, "run": 3, "run0": 4,
            "timer": {"ref": "unique", "period": 10, "mode": "absolute"}}}}"#;
        let (again, strict) = rewritten(text, vec![Class::Fair]);
        let once = Workload::parse(text.as_bytes()).unwrap();
        let actions = |w: &Workload| -> Vec<Action> {
            let events = &w.threads[0].phases[0].events;
            events.iter().map(|event| event.action.clone()).collect()
        };
        assert_eq!(actions(&again), actions(&once));
        assert!(again.notes.is_empty(), "{:?}", again.notes);
        assert_eq!(strict["tasks"]["a"]["phases"]["p0"]["run_2"], 3);
        assert_eq!(strict["tasks"]["a"]["delay"], 2_000_000);
    }

    #[test]
    fn threads_above_sched_ext_are_brought_down_and_others_keep_their_nice_level() {
        let text = r#"{"tasks": {
            "rt": {"policy": "SCHED_FIFO", "priority": 50, "run": 1, "sleep": 1},
            "dl": {"policy": "SCHED_DEADLINE", "dl-runtime": 1, "dl-period": 9, "run": 1, "sleep": 1},
            "nice": {"priority": -5, "run": 1, "sleep": 1}}}"#;
        let (again, strict) = rewritten(text, vec![Class::Fair; 3]);
        for thread in &again.threads {
            let policy = thread.setting.policy.as_ref().unwrap().value;
            assert!(!policy.is_above_sched_ext(), "{}", thread.name);
        }
        assert!(strict["tasks"]["rt"]["priority"].is_null());
        assert!(strict["tasks"]["dl"]["dl-runtime"].is_null());
        assert_eq!(strict["tasks"]["nice"]["priority"], -5);
        let (as_is, _) = rewritten(text, vec![Class::AsWritten; 3]);
        let once = Workload::parse(text.as_bytes()).unwrap();
        assert_eq!(
            as_is.threads[1].setting.deadline,
            once.threads[1].setting.deadline
        );
    }

    #[test]
    fn names_that_the_kernel_would_cut_or_confuse_are_replaced() {
        let text = r#"{"tasks": {
            "a thread with a long name 1": {"run": 1, "sleep": 1},
            "a thread with a long name 2": {"run": 1, "fork": "a thread with a long name 1"},
            "a/b": {"run": 1, "sleep": 1}, "plain": {"run": 1, "sleep": 1}}}"#;
        let workload = Workload::parse(text.as_bytes()).unwrap();
        let names = names(&workload);
        assert_eq!(names.iter().collect::<HashSet<_>>().len(), 4);
        assert!(names.iter().all(|name| name.len() <= LONGEST_NAME));
        assert_eq!((names[2].as_str(), names[3].as_str()), ("a_b", "plain"));
        let written = super::text(&workload, &orders(vec![Class::Fair; 4]));
        let strict: serde_json::Value = serde_json::from_str(&written).unwrap();
        let forked = &strict["tasks"][&names[1]]["phases"]["p0"]["fork"];
        assert_eq!(forked, names[0].as_str());
    }

    #[test]
    fn every_event_of_the_grammar_survives() {
        let text = std::fs::read("tests/rtapp/all-events.json").unwrap();
        let once = Workload::parse(&text).unwrap();
        let classes = vec![Class::AsWritten; once.threads.len()];
        let again = Workload::parse(super::text(&once, &orders(classes)).as_bytes()).unwrap();
        let actions = |w: &Workload| -> Vec<Vec<Action>> {
            let phases = w.threads.iter().flat_map(|thread| &thread.phases);
            phases
                .map(|phase| phase.events.iter().map(|e| e.action.clone()).collect())
                .collect()
        };
        assert_eq!(actions(&again), actions(&once));
    }
}
