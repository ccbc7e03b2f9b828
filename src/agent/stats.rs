//! The figures: summed up from the BPF half, served through scx_stats, printed
//! by `--stats` and `--monitor`, and as text for Prometheus.

mod counters;
mod openmetrics;
mod print;
mod serve;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Instant;

use libbpf_rs::{MapCore, MapFlags};
use scx_stats_derive::{stat_doc, Stats};
use serde::{Deserialize, Serialize};

use self::counters::{add, counted_since, ran_ns};
pub use self::openmetrics::Dialect;
pub use self::serve::{explain, monitor, server_data, RECENT, SINCE_LOAD};
use super::agent_stats::{AgentMetrics, AgentTotals, CpuMetrics, EndangeredMetrics};
use super::bpf::types::{temponet_class_stats, temponet_cpu_stats};
use crate::intf;
use crate::intf::temponet_offender;
use crate::proc::printable_bytes;

/// Names of the classes and where the BPF half keeps their figures.
pub(super) const CLASSES: &[(&str, usize)] = &[
    ("declared", intf::temponet_tier_TN_DECLARED as usize),
    ("inferred", intf::temponet_tier_TN_INFERRED as usize),
    ("background", intf::temponet_tier_TN_BACKGROUND as usize),
    ("late", intf::temponet_tier_TN_LATE as usize),
];

/// Why ticks end slices, and where the BPF half counts that.
const RESCHEDS: &[(&str, usize)] = &[
    (
        "pending",
        intf::temponet_resched_TN_RESCHED_PENDING as usize,
    ),
    ("budget", intf::temponet_resched_TN_RESCHED_BUDGET as usize),
    ("urgent", intf::temponet_resched_TN_RESCHED_URGENT as usize),
    ("bound", intf::temponet_resched_TN_RESCHED_BOUND as usize),
    (
        "replenished",
        intf::temponet_resched_TN_RESCHED_REPLENISHED as usize,
    ),
    ("agent", intf::temponet_resched_TN_RESCHED_AGENT as usize),
    ("local", intf::temponet_resched_TN_RESCHED_LOCAL as usize),
    ("quota", intf::temponet_resched_TN_RESCHED_QUOTA as usize),
];

/// How many of the worst offenders are shown.
const OFFENDERS_SHOWN: usize = 8;

#[stat_doc]
#[derive(Clone, Debug, Default, Serialize, Deserialize, Stats)]
#[serde(default)]
#[stat(_om_prefix = "scx_temponet_class_", _om_label = "class")]
pub struct ClassMetrics {
    #[stat(desc = "jobs released")]
    pub released: u64,
    #[stat(desc = "jobs that ended by their deadline")]
    pub met: u64,
    #[stat(desc = "jobs that ended after their deadline")]
    pub missed: u64,
    #[stat(desc = "mean response time (us): end - release")]
    pub response_us: f64,
    #[stat(desc = "longest response time since load (us)")]
    pub response_max_us: f64,
    #[stat(desc = "mean lateness of missed jobs (us): end - deadline")]
    pub lateness_us: f64,
    #[stat(desc = "largest lateness since load (us)")]
    pub lateness_max_us: f64,
    #[stat(desc = "times a task of this class was put on a CPU")]
    pub runs: u64,
    #[stat(desc = "CPU time (ms)")]
    pub run_ms: f64,
    #[stat(desc = "CPU time asked for (ms): time on a CPU and in a queue")]
    pub asked_ms: f64,
    #[stat(desc = "mean wait in a queue (us)")]
    pub wait_us: f64,
    #[stat(desc = "longest wait in a queue since load (us)")]
    pub wait_max_us: f64,
}

#[stat_doc]
#[derive(Clone, Debug, Default, Serialize, Deserialize, Stats)]
#[serde(default)]
pub struct OffenderMetrics {
    #[stat(desc = "deadlines missed by the task")]
    pub missed: u64,
    #[stat(desc = "deadlines met by the task, as of its last miss")]
    pub met: u64,
    #[stat(desc = "its largest lateness (us)")]
    pub lateness_max_us: f64,
    #[stat(desc = "declared or inferred")]
    pub class: String,
}

#[stat_doc]
#[derive(Clone, Debug, Default, Serialize, Deserialize, Stats)]
#[serde(default)]
#[stat(top, _om_prefix = "scx_temponet_")]
pub struct Metrics {
    #[stat(desc = "seconds that the counters are of")]
    pub interval_s: f64,
    #[stat(
        desc = "per class: declared, inferred, background (no jobs), late (run time and waits only)"
    )]
    pub classes: BTreeMap<String, ClassMetrics>,
    #[stat(
        desc = "tasks with the most missed deadlines since load, those with declared ones first, by name[tid]",
        _om_skip
    )]
    pub offenders: BTreeMap<String, OffenderMetrics>,
    #[stat(desc = "dispatches straight onto an idle CPU")]
    pub idle: u64,
    #[stat(desc = "dispatches from the head of the most urgent queue")]
    pub queue: u64,
    #[stat(desc = "dispatches of a lower queue that had waited its bound")]
    pub bound: u64,
    #[stat(desc = "dispatches of per-CPU kernel threads")]
    pub kthread: u64,
    #[stat(desc = "dispatches by a decision of the agent for this CPU")]
    pub decision: u64,
    #[stat(desc = "dispatches of the best by the agent's Q-table")]
    pub q_table: u64,
    #[stat(desc = "dispatches of the best by the distilled rule")]
    pub distilled: u64,
    #[stat(desc = "dispatches of the agent's own threads")]
    pub agent_thread: u64,
    #[stat(desc = "running tasks preempted for a more urgent job")]
    pub preemptions: u64,
    #[stat(desc = "tasks taken over from another cache domain")]
    pub steals: u64,
    #[stat(desc = "jobs moved to the late queue")]
    pub hopeless: u64,
    #[stat(desc = "jobs that ended because their budget was used up")]
    pub rollovers: u64,
    #[stat(desc = "inferred jobs that outran their estimate and went to background")]
    pub demotions: u64,
    #[stat(desc = "hints in the map that made no sense and were ignored")]
    pub hints_invalid: u64,
    #[stat(desc = "tasks found waiting where no CPU of theirs looked, and moved")]
    pub misplaced: u64,
    #[stat(desc = "counts of waiting tasks that were wrong, and mended")]
    pub drifted: u64,
    #[stat(desc = "times that a task waited because its cgroup's cpu.max was used up")]
    pub parked: u64,
    #[stat(desc = "how long such tasks waited, together (ms)")]
    pub parked_ms: f64,
    #[stat(desc = "deadlines lent to the holder of a lock")]
    pub lent: u64,
    #[stat(desc = "changes of a CPU's clock frequency asked for")]
    pub perf_requests: u64,
    #[stat(desc = "slices that a tick ended, by reason", _om_skip)]
    pub resched: BTreeMap<String, u64>,
    #[stat(desc = "the agent: what decides, how fast, and what of it arrives")]
    pub agent: AgentMetrics,
    #[stat(desc = "declared jobs with the least slack, by name[tid]", _om_skip)]
    pub endangered: BTreeMap<String, EndangeredMetrics>,
    #[stat(desc = "what every CPU runs, by its number")]
    pub cpus: BTreeMap<u32, CpuMetrics>,
}

/// Totals since load, in the units of the BPF half. What `--stats` shows is the
/// difference of two of these.
#[derive(Clone)]
pub struct Snapshot {
    at: Instant,
    totals: temponet_cpu_stats,
    /// CPU time of tasks, by CPU.
    ran_ns: Vec<u64>,
    offenders: BTreeMap<String, OffenderMetrics>,
    agent: AgentTotals,
    endangered: BTreeMap<String, EndangeredMetrics>,
    cpus: BTreeMap<u32, CpuMetrics>,
}

impl Snapshot {
    /// Before anything ran.
    pub fn empty(at: Instant) -> Self {
        Self {
            at,
            totals: temponet_cpu_stats::default(),
            ran_ns: Vec::new(),
            offenders: BTreeMap::new(),
            agent: AgentTotals::default(),
            endangered: BTreeMap::new(),
            cpus: BTreeMap::new(),
        }
    }

    pub(super) fn take(
        cpus: &[temponet_cpu_stats],
        views: BTreeMap<u32, CpuMetrics>,
        offenders: &impl MapCore,
        agent: AgentTotals,
        endangered: BTreeMap<String, EndangeredMetrics>,
    ) -> Self {
        let mut totals = temponet_cpu_stats::default();
        for cpu in cpus {
            add(&mut totals, cpu);
        }
        Self {
            at: Instant::now(),
            totals,
            ran_ns: cpus.iter().map(ran_ns).collect(),
            offenders: worst_offenders(offenders),
            agent,
            endangered,
            cpus: views,
        }
    }

    /// The figures of the time between `earlier` and this.
    fn since(&self, earlier: &Self) -> Metrics {
        let counted = counted_since(&self.totals, &earlier.totals);
        // Every counter has its name here: of a new one the compiler asks where it is shown.
        let temponet_cpu_stats {
            class: classes,
            dispatches,
            preemptions,
            steals,
            hopeless,
            rollovers,
            demotions,
            hints_invalid,
            misplaced,
            parked,
            parked_ns,
            lent,
            perf_requests,
            drifted,
            resched,
            // The agent's.
            told: _,
            untold: _,
            rung: _,
            stale: _,
            impossible: _,
            duplicate: _,
            transitions: _,
            age: _,
        } = &counted;
        let source = |i: u32| dispatches[i as usize];
        let interval_s = self.at.duration_since(earlier.at).as_secs_f64().max(1e-6);
        Metrics {
            interval_s,
            classes: CLASSES
                .iter()
                .map(|&(name, i)| (name.to_string(), class(&classes[i])))
                .collect(),
            offenders: self.offenders.clone(),
            idle: source(intf::temponet_source_TN_SRC_IDLE),
            queue: source(intf::temponet_source_TN_SRC_QUEUE),
            bound: source(intf::temponet_source_TN_SRC_BOUND),
            kthread: source(intf::temponet_source_TN_SRC_KTHREAD),
            decision: source(intf::temponet_source_TN_SRC_AGENT),
            q_table: source(intf::temponet_source_TN_SRC_TABLE),
            distilled: source(intf::temponet_source_TN_SRC_DISTILLED),
            agent_thread: source(intf::temponet_source_TN_SRC_SELF),
            preemptions: *preemptions,
            steals: *steals,
            hopeless: *hopeless,
            rollovers: *rollovers,
            demotions: *demotions,
            hints_invalid: *hints_invalid,
            misplaced: *misplaced,
            drifted: *drifted,
            parked: *parked,
            parked_ms: us(*parked_ns) / 1000.0,
            lent: *lent,
            perf_requests: *perf_requests,
            resched: RESCHEDS
                .iter()
                .map(|&(name, i)| (name.to_string(), resched[i]))
                .collect(),
            agent: self.agent.since(&earlier.agent, &counted, interval_s),
            endangered: self.endangered.clone(),
            cpus: self.loaded_cpus(earlier, interval_s),
        }
    }

    /// A stretch counts when it ends or at a tick, so an interval may have a little of the one
    /// before it.
    fn loaded_cpus(&self, earlier: &Self, interval_s: f64) -> BTreeMap<u32, CpuMetrics> {
        let ran = |of: &Self, cpu: u32| of.ran_ns.get(cpu as usize).copied().unwrap_or(0);
        let mut cpus = self.cpus.clone();
        for (&cpu, metrics) in &mut cpus {
            let ran_ns = ran(self, cpu).saturating_sub(ran(earlier, cpu));
            metrics.busy = (ran_ns as f64 / 1e9 / interval_s).min(1.0);
        }
        cpus
    }
}

pub(super) fn task_name(comm: &[u8], tid: u32) -> String {
    format!("{}[{tid}]", printable_bytes(comm))
}

fn class(counted: &temponet_class_stats) -> ClassMetrics {
    let mean_us = |sum: u64, n: u64| if n == 0 { 0.0 } else { us(sum) / n as f64 };
    // As above: a new one is asked for.
    let &temponet_class_stats {
        released,
        met,
        missed,
        response_ns,
        response_max_ns,
        lateness_ns,
        lateness_max_ns,
        runs,
        run_ns,
        wait_ns,
        wait_max_ns,
    } = counted;
    ClassMetrics {
        released,
        met,
        missed,
        response_us: mean_us(response_ns, met + missed),
        response_max_us: us(response_max_ns),
        lateness_us: mean_us(lateness_ns, missed),
        lateness_max_us: us(lateness_max_ns),
        runs,
        run_ms: us(run_ns) / 1000.0,
        asked_ms: us(run_ns + wait_ns) / 1000.0,
        wait_us: mean_us(wait_ns, runs),
        wait_max_us: us(wait_max_ns),
    }
}

pub(super) fn us(ns: u64) -> f64 {
    ns as f64 / 1000.0
}

/// A task may exit between two look-ups: what cannot be read is left out.
fn worst_offenders(map: &impl MapCore) -> BTreeMap<String, OffenderMetrics> {
    let mut rows: Vec<(u32, temponet_offender)> = map
        .keys()
        .filter_map(|key| {
            let tid = u32::from_ne_bytes(key.as_slice().try_into().ok()?);
            let row = map.lookup(&key, MapFlags::ANY).ok()??;
            Some((tid, read_offender(&row)?))
        })
        .collect();
    // A missed estimate broke no promise.
    let declared = intf::temponet_tier_TN_DECLARED;
    rows.sort_by_key(|(_, row)| (row.tier != declared, std::cmp::Reverse(row.missed)));
    rows.truncate(OFFENDERS_SHOWN);
    rows.into_iter()
        .map(|(tid, row)| {
            let name = task_name(&row.comm.map(|c| c as u8), tid);
            let class = CLASSES
                .iter()
                .find(|(_, i)| *i == row.tier as usize)
                .map_or("?", |(name, _)| name);
            let metrics = OffenderMetrics {
                missed: row.missed,
                met: row.met,
                lateness_max_us: us(row.lateness_max_ns),
                class: class.to_string(),
            };
            (name, metrics)
        })
        .collect()
}

fn read_offender(bytes: &[u8]) -> Option<temponet_offender> {
    if bytes.len() != std::mem::size_of::<temponet_offender>() {
        return None;
    }
    // SAFETY: the length was checked, and any bytes are a valid value of this
    // struct of integers; read_unaligned needs no alignment.
    Some(unsafe { std::ptr::read_unaligned(bytes.as_ptr().cast()) })
}
