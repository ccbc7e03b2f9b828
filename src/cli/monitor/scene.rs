//! What the view shows, from the very type that the scheduler serves: a figure that is
//! not sent cannot be shown. A scheduler of another version may leave fields out or add
//! some: what is absent has its default.

use serde_json::Value;

use crate::agent::agent_stats::{AgentMetrics, Spread};
use crate::agent::stats::{ClassMetrics, Metrics};

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
    pub model: Option<String>,
    /// Who has the say now: agent, q-table, distilled or edf.
    pub level: Option<String>,
    /// The agent has the say and made no decision: at most one task per CPU wants to run.
    pub idle: bool,
    pub decisions_per_s: Option<f64>,
    pub inference_us: Percentiles,
    pub age_us: Percentiles,
    pub latency_us: Percentiles,
    pub ages: Vec<Bucket>,
    pub cpu_share: Option<f64>,
    pub budget: Option<f64>,
    pub shield: Vec<(String, String)>,
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
    pub cpu: u32,
    /// None: idle, or nobody knows.
    pub task: Option<String>,
    pub class: Option<String>,
}

#[derive(Debug, Default)]
pub struct Endangered {
    pub task: String,
    pub slack_us: f64,
    pub remaining_us: f64,
    pub deadline_us: f64,
    pub criticality: u64,
}

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
        if !figures.is_object() {
            return Self::absent("the scheduler sent no figures".into());
        }
        match serde_json::from_value::<Metrics>(figures.clone()) {
            Ok(metrics) => Self::of(&metrics),
            Err(error) => Self::absent(format!(
                "use the monitor of the scheduler's own version: this program cannot read its \
                 figures ({error})"
            )),
        }
    }

    pub fn of(metrics: &Metrics) -> Self {
        let mut endangered: Vec<_> = metrics
            .endangered
            .iter()
            .map(|(name, task)| Endangered {
                task: clean(name, 24),
                slack_us: task.slack_us,
                remaining_us: task.remaining_us,
                deadline_us: task.deadline_us,
                criticality: task.criticality,
            })
            .collect();
        endangered.sort_by(|a, b| a.slack_us.total_cmp(&b.slack_us));
        // A pid of 0 is the idle task.
        let lanes = metrics.cpus.iter().map(|(&cpu, runs)| Lane {
            cpu,
            task: (runs.pid != 0).then(|| format!("{}[{}]", clean(&runs.comm, 16), runs.pid)),
            class: named(&runs.tier),
        });
        // What each is called on the screen, and whether it is worth a line where it
        // does not occur.
        let sources = [
            ("agent", metrics.decision, true),
            ("Q-table", metrics.q_table, true),
            ("distilled", metrics.distilled, false),
            ("deadline order", metrics.queue, true),
            ("idle CPU", metrics.idle, true),
            ("bound", metrics.bound, false),
            ("kthread", metrics.kthread, false),
            ("agent's own", metrics.agent_thread, false),
        ];
        let sources = sources
            .into_iter()
            .filter(|&(_, times, always)| always || times > 0);
        Self {
            trouble: None,
            agent: Agent::of(&metrics.agent),
            sources: sources
                .map(|(name, times, _)| (name.into(), times))
                .collect(),
            classes: classes(metrics),
            lanes: lanes.collect(),
            endangered,
            events: counted([
                ("preemptions", metrics.preemptions),
                ("steals", metrics.steals),
                ("hopeless", metrics.hopeless),
                ("rollovers", metrics.rollovers),
                ("demotions", metrics.demotions),
                ("hints invalid", metrics.hints_invalid),
            ]),
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
    fn of(agent: &AgentMetrics) -> Self {
        let said = Self {
            policy: named(&agent.policy),
            level: named(&agent.level),
            ..Self::default()
        };
        // Under `edf` there is no agent, and its zeros would read as figures.
        if agent.backend.is_empty() {
            return said;
        }
        let yes = |flag: u64| if flag > 0 { "yes" } else { "no" }.to_owned();
        Self {
            backend: named(&agent.backend),
            provider: named(&agent.provider),
            model: named(&agent.model),
            idle: agent.level == "agent" && agent.decisions == 0,
            decisions_per_s: Some(agent.decisions_per_s),
            inference_us: percentiles(&agent.inference_us),
            age_us: percentiles(&agent.decision_age_us),
            latency_us: percentiles(&agent.latency_us),
            ages: buckets(&agent.decision_age_us),
            cpu_share: Some(agent.cpu_share),
            budget: Some(agent.budget),
            shield: vec![
                ("feasible".into(), yes(agent.shield.feasible)),
                ("overload".into(), yes(agent.shield.overload)),
                ("burst".into(), yes(agent.shield.burst)),
            ],
            transitions: agent
                .transitions
                .iter()
                .filter(|(_, &times)| times > 0)
                .map(|(name, &times)| (clean(name, 24), times))
                .collect(),
            faults: counted([
                ("ring drops", agent.ring_drops),
                ("resyncs", agent.resyncs),
                ("stale", agent.stale),
                ("impossible", agent.impossible),
                ("duplicate", agent.duplicate),
                ("page faults", agent.page_faults),
                ("allocations", agent.allocations),
            ]),
            ..said
        }
    }
}

fn named(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| clean(text, 40))
}

fn counted<const N: usize>(counts: [(&str, u64); N]) -> Vec<(String, u64)> {
    counts
        .into_iter()
        .map(|(name, times)| (name.to_owned(), times))
        .collect()
}

/// Nothing where nothing was measured.
fn percentiles(spread: &Spread) -> Percentiles {
    if spread.counts.iter().all(|&count| count == 0) {
        return Percentiles::default();
    }
    Percentiles {
        p50: Some(spread.p50 as f64),
        p99: Some(spread.p99 as f64),
    }
}

/// Counts by power of two; runs of empty ones at the ends are left out.
fn buckets(spread: &Spread) -> Vec<Bucket> {
    let counts = &spread.counts[..spread.counts.len().min(64)];
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

fn classes(metrics: &Metrics) -> Vec<Class> {
    let of = |(name, class): (&String, &ClassMetrics)| {
        // Only these have jobs; the others' zeros would read as perfect.
        let jobs = name != "background" && name != "late";
        Class {
            name: clean(name, 24),
            met: jobs.then_some(class.met),
            missed: jobs.then_some(class.missed),
            response_us: jobs.then_some(class.response_us),
            wait_max_us: Some(class.wait_max_us),
        }
    };
    let mut classes: Vec<_> = metrics.classes.iter().map(of).collect();
    let place = |class: &Class| CLASSES.iter().position(|name| *name == class.name);
    classes.sort_by_key(|class| place(class).unwrap_or(CLASSES.len()));
    classes
}
