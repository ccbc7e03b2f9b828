//! The totals since load as text that Prometheus reads, with its names and base units.
//!
//! The number of lines depends on the number of CPUs only: tasks are never told apart, but for
//! the few that missed most.

mod page;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::SystemTime;

use scx_stats::prelude::Meta;

pub use self::page::Dialect;
use self::page::{Kind, Page};
use super::{Metrics, Snapshot, CLASSES, RESCHEDS};
use crate::agent::agent_stats::{AgentMetrics, LEVELS};
use crate::agent::bpf::types::{temponet_class_stats, temponet_cpu_stats};
use crate::intf;

/// Classes whose tasks have jobs.
const WITH_JOBS: usize = 2;

/// Where dispatches come from, by the names of the other figures.
const SOURCES: &[(&str, u32)] = &[
    ("idle", intf::temponet_source_TN_SRC_IDLE),
    ("queue", intf::temponet_source_TN_SRC_QUEUE),
    ("bound", intf::temponet_source_TN_SRC_BOUND),
    ("kthread", intf::temponet_source_TN_SRC_KTHREAD),
    ("decision", intf::temponet_source_TN_SRC_AGENT),
    ("q_table", intf::temponet_source_TN_SRC_TABLE),
    ("distilled", intf::temponet_source_TN_SRC_DISTILLED),
    ("agent_thread", intf::temponet_source_TN_SRC_SELF),
];

impl Snapshot {
    pub(super) fn openmetrics(&self, dialect: Dialect, loaded_at: SystemTime) -> String {
        let mut page = Page::new(dialect);
        self.identity(&mut page, loaded_at);
        self.classes(&mut page);
        self.machine(&mut page);
        self.events(&mut page);
        self.agent(&mut page);
        self.offenders(&mut page);
        page.finish()
    }

    fn identity(&self, page: &mut Page, loaded_at: SystemTime) {
        let agent = &self.agent.now;
        page.family(Kind::Info, "build", "What is loaded.").labels(
            &[
                ("version", env!("CARGO_PKG_VERSION")),
                ("policy", &agent.policy),
                ("model", &agent.model),
                ("backend", &agent.backend),
            ],
            1.0,
        );
        let since = loaded_at.duration_since(SystemTime::UNIX_EPOCH);
        page.family(
            Kind::Gauge,
            "load_time_seconds",
            "When it was loaded, since 1970.",
        )
        .plain(since.map_or(0.0, |since| since.as_secs_f64()));
        let mut deciding = page.family(Kind::Gauge, "deciding", "1 for what decides now.");
        for (level, _) in LEVELS {
            deciding.label("level", level, f64::from(u8::from(level == agent.level)));
        }
    }

    fn classes(&self, page: &mut Page) {
        type Figure = fn(&temponet_class_stats) -> u64;
        let counts: [(usize, &str, &str, Figure); 4] = [
            (WITH_JOBS, "jobs_released", "Jobs released.", |c| c.released),
            (
                WITH_JOBS,
                "deadlines_met",
                "Jobs that ended by their deadline.",
                |c| c.met,
            ),
            (
                WITH_JOBS,
                "deadlines_missed",
                "Jobs that ended after their deadline.",
                |c| c.missed,
            ),
            (
                CLASSES.len(),
                "runs",
                "Times that a task was put on a CPU.",
                |c| c.runs,
            ),
        ];
        let times: [(Kind, usize, &str, &str, Figure); 7] = [
            (
                Kind::Counter,
                WITH_JOBS,
                "job_response_seconds",
                "Response times of all jobs that ended, from release to end.",
                |c| c.response_ns,
            ),
            (
                Kind::Counter,
                WITH_JOBS,
                "job_lateness_seconds",
                "How late missed jobs were, together.",
                |c| c.lateness_ns,
            ),
            (
                Kind::Gauge,
                WITH_JOBS,
                "job_response_longest_seconds",
                "Longest response time since load.",
                |c| c.response_max_ns,
            ),
            (
                Kind::Gauge,
                WITH_JOBS,
                "job_lateness_largest_seconds",
                "Largest lateness since load.",
                |c| c.lateness_max_ns,
            ),
            (
                Kind::Counter,
                CLASSES.len(),
                "run_seconds",
                "CPU time of the class.",
                |c| c.run_ns,
            ),
            (
                Kind::Counter,
                CLASSES.len(),
                "queue_wait_seconds",
                "Time that tasks waited in a queue.",
                |c| c.wait_ns,
            ),
            (
                Kind::Gauge,
                CLASSES.len(),
                "queue_wait_longest_seconds",
                "Longest wait in a queue since load.",
                |c| c.wait_max_ns,
            ),
        ];
        for (classes, name, help, figure) in counts {
            let mut family = page.family(Kind::Counter, name, help);
            for &(class, i) in &CLASSES[..classes] {
                family.label("class", class, figure(&self.totals.class[i]) as f64);
            }
        }
        for (kind, classes, name, help, figure) in times {
            let mut family = page.family(kind, name, help);
            for &(class, i) in &CLASSES[..classes] {
                family.label("class", class, seconds(figure(&self.totals.class[i])));
            }
        }
    }

    fn machine(&self, page: &mut Page) {
        let help = "Time that tasks of this scheduler ran on the CPU.";
        let mut family = page.family(Kind::Counter, "cpu_run_seconds", help);
        for &cpu in self.cpus.keys() {
            let ran_ns = self.ran_ns.get(cpu as usize).copied().unwrap_or(0);
            family.label("cpu", &cpu.to_string(), seconds(ran_ns));
        }
        let mut family = page.family(Kind::Counter, "dispatches", "Dispatches by source.");
        for &(source, i) in SOURCES {
            family.label("source", source, self.totals.dispatches[i as usize] as f64);
        }
        let help = "Slices that a tick ended, by reason.";
        let mut family = page.family(Kind::Counter, "slices_ended", help);
        for &(reason, i) in RESCHEDS {
            family.label("reason", reason, self.totals.resched[i] as f64);
        }
    }

    /// With the words of `--help-stats`.
    fn events(&self, page: &mut Page) {
        type Figure = fn(&temponet_cpu_stats) -> u64;
        let events: [(&str, &str, Figure); 11] = [
            ("preemptions", "preemptions", |t| t.preemptions),
            ("steals", "steals", |t| t.steals),
            ("hopeless_jobs", "hopeless", |t| t.hopeless),
            ("rollovers", "rollovers", |t| t.rollovers),
            ("demotions", "demotions", |t| t.demotions),
            ("invalid_hints", "hints_invalid", |t| t.hints_invalid),
            ("misplaced_tasks", "misplaced", |t| t.misplaced),
            ("mended_counts", "drifted", |t| t.drifted),
            ("quota_waits", "parked", |t| t.parked),
            ("lent_deadlines", "lent", |t| t.lent),
            ("frequency_requests", "perf_requests", |t| t.perf_requests),
        ];
        let meta = Metrics::meta();
        for (name, field, figure) in events {
            page.family(Kind::Counter, name, &description(&meta, field))
                .plain(figure(&self.totals) as f64);
        }
        page.family(
            Kind::Counter,
            "quota_wait_seconds",
            "How long tasks waited because their cgroup's cpu.max was used up.",
        )
        .plain(seconds(self.totals.parked_ns));
    }

    /// Without a model no agent runs.
    fn agent(&self, page: &mut Page) {
        let agent = &self.agent.now;
        let mut family = page.family(
            Kind::Counter,
            "level_changes",
            "Changes of what decides, by what decided then.",
        );
        for (level, i) in LEVELS {
            family.label("level", level, self.totals.transitions[i as usize] as f64);
        }
        if agent.model.is_empty() {
            return;
        }
        let meta = AgentMetrics::meta();
        let counters = [
            ("agent_decisions", "decisions", agent.decisions),
            ("agent_inferences", "inferences", agent.inferences),
            ("agent_wakeups", "wakeups", agent.wakeups),
            ("agent_records", "told", self.totals.told),
            ("agent_lost_records", "ring_drops", self.totals.untold),
            ("agent_bad_records", "bad_records", agent.bad_records),
            ("agent_rings", "rung", self.totals.rung),
            ("agent_resyncs", "resyncs", agent.resyncs),
            ("agent_repaired_tasks", "repaired", agent.repaired),
            ("agent_page_faults", "page_faults", agent.page_faults),
            ("agent_model_swaps", "swaps", agent.swaps),
            ("agent_models_refused", "swaps_refused", agent.swaps_refused),
        ];
        for (name, field, count) in counters {
            page.family(Kind::Counter, name, &description(&meta, field))
                .plain(count as f64);
        }
        page.family(
            Kind::Counter,
            "agent_cpu_seconds",
            "CPU time of the agent's thread.",
        )
        .plain(seconds(self.agent.cpu_ns));
        let mut family = page.family(
            Kind::Counter,
            "agent_unfollowed_decisions",
            "Decisions that were not followed, by reason.",
        );
        for (reason, count) in [
            ("stale", self.totals.stale),
            ("impossible", self.totals.impossible),
            ("duplicate", self.totals.duplicate),
        ] {
            family.label("reason", reason, count as f64);
        }
        let gauges = [
            (
                "agent_cpu_budget_ratio",
                "What the agent may use, as a share of one CPU.",
                agent.budget,
            ),
            (
                "agent_tasks",
                "Tasks with deadlines that it knows.",
                agent.tasks as f64,
            ),
            (
                "agent_given_up_tasks",
                "Of which given up because not all can be on time.",
                agent.given_up as f64,
            ),
            (
                "agent_overlooked_tasks",
                "Tasks with deadlines that it has no room for.",
                agent.overflow as f64,
            ),
            ("overload", "1 in overload.", agent.shield.overload as f64),
            (
                "feasible",
                "1 while all pending jobs can be on time.",
                agent.shield.feasible as f64,
            ),
        ];
        for (name, help, value) in gauges {
            page.family(Kind::Gauge, name, help).plain(value);
        }
        for (name, help, counts) in [
            (
                "agent_inference_seconds",
                "Time of an inference.",
                &self.agent.inference,
            ),
            (
                "agent_latency_seconds",
                "Time from a wake-up of the agent to its decision on the board.",
                &self.agent.latency,
            ),
            (
                "agent_decision_age_seconds",
                "Age of decisions when they were followed.",
                &self.totals.age,
            ),
        ] {
            page.family(Kind::Histogram, name, help).histogram(counts);
        }
    }

    /// Tasks of one name are one line, or each new process would be another for ever.
    fn offenders(&self, page: &mut Page) {
        let mut rows: BTreeMap<(&str, &str), u64> = BTreeMap::new();
        for (task, row) in &self.offenders {
            let name = task
                .rsplit_once('[')
                .map_or(task.as_str(), |(name, _)| name);
            *rows.entry((name, row.class.as_str())).or_default() += row.missed;
        }
        if rows.is_empty() {
            return;
        }
        let mut family = page.family(
            Kind::Gauge,
            "worst_tasks_missed_deadlines",
            "Deadlines missed since load by the few tasks that missed most, by their name.",
        );
        for ((task, class), missed) in rows {
            family.labels(&[("task", task), ("class", class)], missed as f64);
        }
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// What `--help-stats` says of a figure, as a sentence.
fn description(meta: &scx_stats::StatsMeta, field: &str) -> String {
    let field = meta.fields.get(field);
    let words = field.and_then(|field| field.attrs.desc.clone());
    let words = words.unwrap_or_default();
    let mut letters = words.chars();
    let first: String = letters
        .next()
        .into_iter()
        .flat_map(char::to_uppercase)
        .collect();
    format!("{first}{}.", letters.as_str())
}
