//! The agent's share of the figures.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;
use scx_stats_derive::{stat_doc, Stats};
use serde::{Deserialize, Serialize};

use super::bpf::types::{temponet_cpu_stats, temponet_cpu_view};
use super::gauges::{percentile_us, Gauges, Identity, BUCKETS};
use super::scheduler::Policy;
use super::stats::{task_name, us, CLASSES};
use crate::intf;
use crate::proc::printable_bytes;

#[stat_doc]
#[derive(Clone, Debug, Default, Serialize, Deserialize, Stats)]
#[serde(default)]
pub struct EndangeredMetrics {
    #[stat(desc = "time it can still wait and be on time (us)")]
    pub slack_us: f64,
    #[stat(desc = "work left, as estimated (us)")]
    pub remaining_us: f64,
    #[stat(desc = "time to its deadline (us)")]
    pub deadline_us: f64,
    #[stat(desc = "criticality")]
    pub criticality: u64,
    #[stat(desc = "1: it is to be on time, 0: given up because not all can be")]
    pub kept: u64,
}

#[stat_doc]
#[derive(Clone, Debug, Default, Serialize, Deserialize, Stats)]
#[serde(default)]
#[stat(_om_prefix = "scx_temponet_cpu_", _om_label = "cpu")]
pub struct CpuMetrics {
    #[stat(desc = "the task it runs, 0 for none", _om_skip)]
    pub pid: u64,
    #[stat(desc = "its name", _om_skip)]
    pub comm: String,
    #[stat(desc = "its class", _om_skip)]
    pub tier: String,
    #[stat(desc = "share of the time that tasks of this scheduler ran here")]
    pub busy: f64,
}

#[stat_doc]
#[derive(Clone, Debug, Default, Serialize, Deserialize, Stats)]
#[serde(default)]
pub struct Spread {
    #[stat(desc = "half are not above this (us, upper edge of a power of two)")]
    pub p50: u64,
    #[stat(desc = "99 of 100 are not above this")]
    pub p99: u64,
    #[stat(desc = "counts by power of two of a microsecond")]
    pub counts: Vec<u64>,
}

impl Spread {
    // Out of line: unrolled five times into its caller, rustc 1.95 (LLVM 22) lost the
    // register that holds the vector and wrote to 0xd0.
    #[inline(never)]
    fn of(now: &[u64; BUCKETS], then: &[u64; BUCKETS]) -> Spread {
        let counts: Vec<u64> = now
            .iter()
            .zip(then)
            .map(|(n, t)| n.saturating_sub(*t))
            .collect();
        Spread {
            p50: percentile_us(&counts, 0.5),
            p99: percentile_us(&counts, 0.99),
            counts,
        }
    }
}

#[stat_doc]
#[derive(Clone, Debug, Default, Serialize, Deserialize, Stats)]
#[serde(default)]
pub struct Flags {
    #[stat(desc = "1: all pending jobs can be on time")]
    pub feasible: u64,
    #[stat(desc = "1: overload, called off after a while without")]
    pub overload: u64,
    #[stat(desc = "1: many jobs are about to be due, so less attention and a reserve")]
    pub burst: u64,
}

#[stat_doc]
#[derive(Clone, Debug, Default, Serialize, Deserialize, Stats)]
#[serde(default)]
#[stat(_om_prefix = "scx_temponet_agent_", _om_label = "policy")]
pub struct AgentMetrics {
    #[stat(desc = "temponet, distilled, edf or plain-edf", _om_skip)]
    pub policy: String,
    #[stat(desc = "what decides now: agent, q-table, distilled or edf", _om_skip)]
    pub level: String,
    #[stat(desc = "ort or native", _om_skip)]
    pub backend: String,
    #[stat(desc = "what the backend runs on", _om_skip)]
    pub provider: String,
    #[stat(desc = "the model", _om_skip)]
    pub model: String,
    #[stat(desc = "decisions")]
    pub decisions: u64,
    #[stat(desc = "decisions per second")]
    pub decisions_per_s: f64,
    #[stat(desc = "decisions that asked the network")]
    pub inferences: u64,
    #[stat(desc = "wake-ups of the agent's thread")]
    pub wakeups: u64,
    #[stat(desc = "time between decisions that the budget pays for (us)")]
    pub interval_us: f64,
    #[stat(desc = "CPU time of the agent's thread, as a share of one CPU")]
    pub cpu_share: f64,
    #[stat(desc = "what it may use")]
    pub budget: f64,
    #[stat(desc = "time of an inference", _om_skip)]
    pub inference_us: Spread,
    #[stat(desc = "time from a wake-up to the decision on the board", _om_skip)]
    pub latency_us: Spread,
    #[stat(desc = "age of decisions when they were followed", _om_skip)]
    pub decision_age_us: Spread,
    #[stat(desc = "records to the agent")]
    pub told: u64,
    #[stat(desc = "records lost because the ring was full")]
    pub ring_drops: u64,
    #[stat(desc = "times the agent was rung for")]
    pub rung: u64,
    #[stat(desc = "records that made no sense")]
    pub bad_records: u64,
    #[stat(desc = "times the mirror was put right by the kernel's truth")]
    pub resyncs: u64,
    #[stat(desc = "tasks that were found missing, wrong or gone then")]
    pub repaired: u64,
    #[stat(desc = "tasks with deadlines the mirror had no room for")]
    pub overflow: u64,
    #[stat(desc = "decisions not followed: too old, or overtaken by a release")]
    pub stale: u64,
    #[stat(desc = "decisions not followed: the task cannot run there")]
    pub impossible: u64,
    #[stat(desc = "decisions not followed: the task runs already")]
    pub duplicate: u64,
    #[stat(desc = "changes of what decides, by what decided then", _om_skip)]
    pub transitions: BTreeMap<String, u64>,
    #[stat(desc = "tasks with deadlines known")]
    pub tasks: u64,
    #[stat(desc = "of which given up because not all can be on time")]
    pub given_up: u64,
    #[stat(desc = "what the shield and the mitigations found", _om_skip)]
    pub shield: Flags,
    #[stat(desc = "allocations of the agent's thread since warm-up")]
    pub allocations: u64,
    #[stat(desc = "page faults of the agent's thread since warm-up")]
    pub page_faults: u64,
    #[stat(desc = "models taken over while running")]
    pub swaps: u64,
    #[stat(desc = "models refused")]
    pub swaps_refused: u64,
}

pub(super) const LEVELS: [(&str, u32); 4] = [
    ("agent", intf::temponet_level_TN_LEVEL_AGENT),
    ("q-table", intf::temponet_level_TN_LEVEL_TABLE),
    ("distilled", intf::temponet_level_TN_LEVEL_DISTILLED),
    ("edf", intf::temponet_level_TN_LEVEL_EDF),
];

/// Totals since load; what `--stats` shows is the difference of two of these.
#[derive(Clone, Default)]
pub struct AgentTotals {
    pub(super) now: AgentMetrics,
    pub(super) cpu_ns: u64,
    pub(super) latency: [u64; BUCKETS],
    pub(super) inference: [u64; BUCKETS],
}

impl AgentTotals {
    pub(super) fn take(
        policy: Policy,
        level: u32,
        budget: f64,
        gauges: Option<&Gauges>,
    ) -> AgentTotals {
        let level = LEVELS.iter().find(|(_, l)| *l == level);
        let mut totals = AgentTotals::default();
        totals.now.policy = policy.name();
        totals.now.level = level.map_or("?", |(name, _)| name).into();
        let Some(gauges) = gauges else {
            return totals;
        };
        let identity = gauges.identity.lock();
        let Identity {
            backend,
            provider,
            model,
        } = identity
            .map(|identity| identity.clone())
            .unwrap_or_default();
        let flag = |flag: &AtomicBool| u64::from(flag.load(Ordering::Relaxed));
        totals.now = AgentMetrics {
            backend,
            provider,
            model,
            budget,
            decisions: Gauges::get(&gauges.decisions),
            inferences: Gauges::get(&gauges.inferences),
            wakeups: Gauges::get(&gauges.wakeups),
            interval_us: us(Gauges::get(&gauges.interval_ns)),
            bad_records: Gauges::get(&gauges.bad_records),
            resyncs: Gauges::get(&gauges.resyncs),
            repaired: Gauges::get(&gauges.repaired),
            overflow: Gauges::get(&gauges.overflow),
            tasks: Gauges::get(&gauges.tasks),
            given_up: Gauges::get(&gauges.given_up),
            shield: Flags {
                feasible: flag(&gauges.feasible),
                overload: flag(&gauges.overloaded),
                burst: flag(&gauges.burst),
            },
            allocations: Gauges::get(&gauges.allocations),
            page_faults: Gauges::get(&gauges.page_faults),
            swaps: Gauges::get(&gauges.swaps),
            swaps_refused: Gauges::get(&gauges.swaps_refused),
            ..totals.now
        };
        totals.cpu_ns = Gauges::get(&gauges.cpu_ns);
        totals.latency = gauges.latency.read();
        totals.inference = gauges.inference.read();
        totals
    }

    /// Counters as differences; what was true at a moment, as it is now. The other
    /// two are what the BPF half counted by now and by then.
    /// `counted` is what the BPF half counted meanwhile.
    pub(super) fn since(
        &self,
        earlier: &AgentTotals,
        counted: &temponet_cpu_stats,
        seconds: f64,
    ) -> AgentMetrics {
        let (now, then) = (&self.now, &earlier.now);
        let decisions = now.decisions - then.decisions;
        let to =
            |(name, level): (&str, u32)| (name.to_string(), counted.transitions[level as usize]);
        AgentMetrics {
            decisions,
            decisions_per_s: decisions as f64 / seconds,
            inferences: now.inferences - then.inferences,
            wakeups: now.wakeups - then.wakeups,
            cpu_share: (self.cpu_ns - earlier.cpu_ns) as f64 / 1e9 / seconds,
            inference_us: Spread::of(&self.inference, &earlier.inference),
            latency_us: Spread::of(&self.latency, &earlier.latency),
            decision_age_us: Spread::of(&counted.age, &[0; BUCKETS]),
            told: counted.told,
            ring_drops: counted.untold,
            rung: counted.rung,
            bad_records: now.bad_records - then.bad_records,
            resyncs: now.resyncs - then.resyncs,
            repaired: now.repaired - then.repaired,
            stale: counted.stale,
            impossible: counted.impossible,
            duplicate: counted.duplicate,
            transitions: LEVELS.into_iter().map(to).collect(),
            ..now.clone()
        }
    }
}

impl AgentMetrics {
    pub(super) fn print(&self, out: &mut impl Write) -> Result<()> {
        if self.model.is_empty() {
            return Ok(());
        }
        let spread = |spread: &Spread| format!("{} p99 {}", spread.p50, spread.p99);
        writeln!(
            out,
            "{} by {} ({}: {}) | {} decisions, {} inferences, {:.2} % of a CPU | us: inference {}, latency {}, age {}",
            self.level, self.model, self.backend, self.provider, self.decisions, self.inferences,
            self.cpu_share * 100.0, spread(&self.inference_us), spread(&self.latency_us),
            spread(&self.decision_age_us),
        )?;
        let transitions: Vec<String> = self
            .transitions
            .iter()
            .filter(|(_, &count)| count > 0)
            .map(|(name, count)| format!(" to {name} {count}"))
            .collect();
        writeln!(
            out,
            "{} tasks, {} given up{}{} | told {} lost {} rung {} resyncs {} repaired {} | stale {} impossible {} duplicate {} | faults {} allocations {} | swapped {} refused {} |{}",
            self.tasks, self.given_up,
            if self.shield.overload > 0 { ", overload" } else { "" },
            if self.shield.burst > 0 { ", burst" } else { "" },
            self.told, self.ring_drops, self.rung, self.resyncs, self.repaired, self.stale,
            self.impossible, self.duplicate, self.page_faults, self.allocations, self.swaps,
            self.swaps_refused, transitions.concat(),
        )?;
        Ok(())
    }
}

pub(super) fn endangered(gauges: &Gauges) -> BTreeMap<String, EndangeredMetrics> {
    let Ok(list) = gauges.endangered.lock() else {
        return BTreeMap::new();
    };
    let signed_us = |ns: i64| ns as f64 / 1000.0;
    let row = |job: &super::gauges::Endangered| {
        let metrics = EndangeredMetrics {
            slack_us: signed_us(job.slack_ns),
            remaining_us: signed_us(job.remaining_ns),
            deadline_us: signed_us(job.deadline_in_ns),
            criticality: job.criticality.into(),
            kept: job.kept.into(),
        };
        (task_name(&job.comm, job.pid), metrics)
    };
    list.iter().map(row).collect()
}

/// What every CPU runs; those of `cpus` only.
pub(super) fn views(
    views: &[temponet_cpu_view],
    cpus: impl Iterator<Item = u32>,
) -> BTreeMap<u32, CpuMetrics> {
    let view = |cpu: u32| {
        let view = views.get(cpu as usize)?;
        let class = CLASSES.iter().find(|(_, i)| *i == view.tier as usize);
        let comm = view.comm.map(|c| c as u8);
        let metrics = CpuMetrics {
            pid: view.pid.into(),
            comm: printable_bytes(&comm),
            tier: class.map_or("?", |(name, _)| name).to_string(),
            busy: 0.0,
        };
        Some((cpu, metrics))
    };
    cpus.filter_map(view).collect()
}
