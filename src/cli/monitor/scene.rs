//! What the view shows, as far as the figures tell. A scheduler of another
//! version may leave fields out or add some: whatever is absent, or is not what
//! it should be, is simply not there.

use serde_json::Value;

use super::text::clean;

#[derive(Debug, Default)]
pub struct Scene {
    /// Why there is nothing to show.
    pub trouble: Option<String>,
    pub agent: Agent,
    pub sources: Vec<(String, u64)>,
    pub classes: Vec<Class>,
    pub lanes: Vec<Lane>,
    /// The least slack first.
    pub endangered: Vec<Endangered>,
    /// What BPF counted beside, where it happened.
    pub events: Vec<(String, u64)>,
}

#[derive(Debug, Default)]
pub struct Agent {
    pub policy: Option<String>,
    pub backend: Option<String>,
    pub provider: Option<String>,
    pub device: Option<String>,
    pub model: Option<String>,
    /// Who decides now: agent, q-table, distilled or edf.
    pub level: Option<String>,
    pub decisions_per_s: Option<f64>,
    pub inference_us: Percentiles,
    pub age_us: Percentiles,
    pub latency_us: Percentiles,
    pub ages: Vec<Bucket>,
    pub cpu_share: Option<f64>,
    pub budget: Option<f64>,
    pub heartbeat_age_ms: Option<f64>,
    pub shield: Vec<(String, String)>,
    pub mitigation: Vec<(String, String)>,
    pub transitions: Vec<(String, u64)>,
    /// What went wrong, and was survived.
    pub faults: Vec<(String, u64)>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Percentiles {
    pub p50: Option<f64>,
    pub p99: Option<f64>,
}

/// Decisions that were up to this old when they were used.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bucket {
    pub le_us: f64,
    pub count: u64,
}

#[derive(Debug, Default)]
pub struct Class {
    pub name: String,
    pub met: Option<u64>,
    pub missed: Option<u64>,
    pub response_us: Option<f64>,
    pub wait_max_us: Option<f64>,
}

#[derive(Debug, Default)]
pub struct Lane {
    pub cpu: u64,
    /// None: idle, or nobody knows.
    pub task: Option<String>,
    pub class: Option<String>,
    pub urgency_us: Option<f64>,
}

#[derive(Debug, Default)]
pub struct Endangered {
    pub task: String,
    pub slack_us: Option<f64>,
    pub remaining_us: Option<f64>,
    pub deadline_us: Option<f64>,
    pub criticality: Option<u64>,
}

/// Who put a task on a CPU: field and what it is called on the screen.
const SOURCES: &[(&str, &str)] = &[
    ("decision", "agent"),
    ("q_table", "Q-table"),
    ("distilled", "distilled"),
    ("queue", "deadline order"),
    ("idle", "idle CPU"),
    ("bound", "bound"),
    ("kthread", "kthread"),
    ("agent_thread", "agent's own"),
];

/// Worth a line only where they occur.
const RARE: &[&str] = &["distilled", "bound", "kthread", "agent_thread"];

const EVENTS: &[&str] = &[
    "preemptions",
    "steals",
    "hopeless",
    "rollovers",
    "demotions",
    "hints_invalid",
];

const FAULTS: &[&str] = &[
    "ring_drops",
    "resyncs",
    "stale",
    "impossible",
    "duplicate",
    "page_faults",
    "allocations",
];

/// The order in which classes are shown; others follow.
const CLASSES: &[&str] = &["declared", "inferred", "background", "late"];

impl Scene {
    pub fn absent(reason: String) -> Self {
        Self {
            trouble: Some(clean(&reason, 200)),
            ..Self::default()
        }
    }

    pub fn from_json(figures: &Value) -> Self {
        let mut endangered: Vec<_> = items(figures, "endangered")
            .into_iter()
            .map(|(key, task)| Endangered {
                task: task_name(task).unwrap_or(key),
                slack_us: number(task, "slack_us"),
                remaining_us: number(task, "remaining_us"),
                deadline_us: number(task, "deadline_us"),
                criticality: count(task, "criticality"),
            })
            .collect();
        let slack = |task: &Endangered| task.slack_us.unwrap_or(f64::INFINITY);
        endangered.sort_by(|a, b| slack(a).total_cmp(&slack(b)));
        let mut lanes: Vec<_> = items(figures, "cpus")
            .into_iter()
            .filter_map(|(key, cpu)| {
                Some(Lane {
                    cpu: count(cpu, "cpu").or_else(|| key.parse().ok())?,
                    task: task_name(cpu).filter(|_| count(cpu, "pid") != Some(0)),
                    class: string(cpu, "tier"),
                    urgency_us: number(cpu, "urgency_us"),
                })
            })
            .collect();
        lanes.sort_by_key(|lane| lane.cpu);
        Self {
            trouble: (!figures.is_object()).then(|| "the scheduler sent no figures".into()),
            agent: Agent::from_json(&figures["agent"]),
            sources: SOURCES
                .iter()
                .filter_map(|&(key, label)| {
                    let times = count(figures, key)?;
                    (times > 0 || !RARE.contains(&key)).then(|| (label.into(), times))
                })
                .collect(),
            classes: classes(figures),
            lanes,
            endangered,
            events: happened(figures, EVENTS),
        }
    }

    /// All dispatches of the interval.
    pub fn dispatches(&self) -> u64 {
        self.sources
            .iter()
            .fold(0, |sum, (_, n)| sum.saturating_add(*n))
    }
}

impl Agent {
    fn from_json(agent: &Value) -> Self {
        Self {
            policy: string(agent, "policy"),
            backend: string(agent, "backend"),
            provider: string(agent, "provider"),
            device: string(agent, "device"),
            model: string(agent, "model"),
            level: string(agent, "level"),
            decisions_per_s: number(agent, "decisions_per_s"),
            inference_us: percentiles(&agent["inference_us"]),
            age_us: percentiles(&agent["decision_age_us"]),
            latency_us: percentiles(&agent["latency_us"]),
            ages: buckets(&agent["decision_age_us"]),
            cpu_share: number(agent, "cpu_share"),
            budget: number(agent, "budget"),
            heartbeat_age_ms: number(agent, "heartbeat_age_ms"),
            shield: states(&agent["shield"]),
            mitigation: states(&agent["mitigation"]),
            transitions: items(agent, "transitions")
                .into_iter()
                .filter_map(|(name, times)| Some((name, times.as_u64()?)))
                .filter(|(_, times)| *times > 0)
                .collect(),
            faults: happened(agent, FAULTS),
        }
    }
}

fn number(of: &Value, key: &str) -> Option<f64> {
    of[key].as_f64().filter(|n| n.is_finite())
}

fn count(of: &Value, key: &str) -> Option<u64> {
    of[key].as_u64()
}

/// Also of what is a number: a model may be called 7.
fn string(of: &Value, key: &str) -> Option<String> {
    state(&of[key]).filter(|text| !text.is_empty())
}

fn state(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(clean(text, 40)),
        Value::Bool(true) => Some("yes".into()),
        Value::Bool(false) => Some("no".into()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// What is below `key`, be it a list or a table; a list's keys are its places.
fn items<'a>(of: &'a Value, key: &str) -> Vec<(String, &'a Value)> {
    match &of[key] {
        Value::Array(list) => list
            .iter()
            .enumerate()
            .map(|(i, item)| (i.to_string(), item))
            .collect(),
        Value::Object(table) => table
            .iter()
            .map(|(name, item)| (clean(name, 24), item))
            .collect(),
        _ => Vec::new(),
    }
}

/// name[pid], as far as it is known.
fn task_name(task: &Value) -> Option<String> {
    let name = string(task, "comm");
    match (name, count(task, "pid")) {
        (Some(name), Some(pid)) => Some(format!("{}[{pid}]", clean(&name, 16))),
        (Some(name), None) => Some(clean(&name, 16)),
        (None, Some(pid)) => Some(format!("[{pid}]")),
        (None, None) => None,
    }
}

fn percentiles(of: &Value) -> Percentiles {
    Percentiles {
        p50: number(of, "p50"),
        p99: number(of, "p99"),
    }
}

/// Counts by power of two; runs of empty ones at the ends are left out.
fn buckets(of: &Value) -> Vec<Bucket> {
    let counts: Vec<u64> = items(of, "counts")
        .into_iter()
        .map_while(|(_, count)| count.as_u64())
        .take(64)
        .collect();
    let bucket = |(i, &count): (usize, &u64)| Bucket {
        le_us: (2.0f64).powi(i as i32 + 1),
        count,
    };
    let first = counts.iter().position(|&count| count > 0);
    let last = counts.iter().rposition(|&count| count > 0);
    let Some((first, last)) = first.zip(last) else {
        return Vec::new();
    };
    let all: Vec<Bucket> = counts.iter().enumerate().map(bucket).collect();
    all[first..=last].to_vec()
}

/// A state may be one word, or a table of them.
fn states(of: &Value) -> Vec<(String, String)> {
    match of {
        Value::Object(table) => table
            .iter()
            .filter_map(|(name, value)| Some((clean(name, 16), state(value)?)))
            .collect(),
        other => state(other)
            .into_iter()
            .map(|text| (String::new(), text))
            .collect(),
    }
}

fn happened(of: &Value, keys: &[&str]) -> Vec<(String, u64)> {
    keys.iter()
        .filter_map(|&key| Some((key.replace('_', " "), count(of, key)?)))
        .collect()
}

fn classes(figures: &Value) -> Vec<Class> {
    let mut classes: Vec<_> = items(figures, "classes")
        .into_iter()
        .filter(|(_, class)| class.is_object())
        .map(|(name, class)| {
            // Only these have jobs; the others' zeros would read as perfect.
            let jobs = name != "background" && name != "late";
            Class {
                met: count(class, "met").filter(|_| jobs),
                missed: count(class, "missed").filter(|_| jobs),
                response_us: number(class, "response_us").filter(|_| jobs),
                wait_max_us: number(class, "wait_max_us"),
                name,
            }
        })
        .collect();
    let place = |class: &Class| CLASSES.iter().position(|name| *name == class.name);
    classes.sort_by_key(|class| place(class).unwrap_or(CLASSES.len()));
    classes
}
