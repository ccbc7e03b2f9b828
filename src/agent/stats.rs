//! The figures: summed up from the BPF half, served through scx_stats, printed
//! by `--stats` and `--monitor`.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use libbpf_rs::{MapCore, MapFlags};
use scx_stats::prelude::*;
use scx_stats_derive::{stat_doc, Stats};
use serde::{Deserialize, Serialize};

use super::bpf::intf;
use super::bpf::intf::temponet_offender;
use super::bpf::types::{temponet_class_stats, temponet_cpu_stats};
use super::gauges::{percentile_us, Gauges, BUCKETS};
use super::scheduler::Policy;

/// Names of the classes and where the BPF half keeps their figures.
const CLASSES: &[(&str, usize)] = &[
    ("declared", intf::temponet_tier_TN_DECLARED as usize),
    ("inferred", intf::temponet_tier_TN_INFERRED as usize),
    ("background", intf::temponet_tier_TN_BACKGROUND as usize),
    ("late", intf::temponet_tier_TN_LATE as usize),
];

/// How many of the worst offenders are shown.
const OFFENDERS_SHOWN: usize = 8;

#[stat_doc]
#[derive(Clone, Debug, Default, Serialize, Deserialize, Stats)]
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
    #[stat(desc = "mean wait in a queue (us)")]
    pub wait_us: f64,
    #[stat(desc = "longest wait in a queue since load (us)")]
    pub wait_max_us: f64,
}

#[stat_doc]
#[derive(Clone, Debug, Default, Serialize, Deserialize, Stats)]
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
#[stat(top)]
pub struct Metrics {
    #[stat(
        desc = "per class: declared, inferred, background (no jobs), late (run time and waits only)"
    )]
    pub classes: BTreeMap<String, ClassMetrics>,
    #[stat(desc = "tasks with the most missed deadlines, by name[tid]")]
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
    pub by_agent: u64,
    #[stat(desc = "dispatches of the best by the agent's Q-table")]
    pub by_table: u64,
    #[stat(desc = "dispatches of the best by the distilled rule")]
    pub by_distilled: u64,
    #[stat(desc = "dispatches of the agent's own threads")]
    pub agent_self: u64,
    #[stat(desc = "running tasks pushed aside for a more urgent job")]
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
    #[stat(desc = "the agent: who decides, how fast, and how well it is heard")]
    pub agent: AgentMetrics,
    #[stat(desc = "declared jobs with the least slack, by name[tid]")]
    pub endangered: BTreeMap<String, EndangeredMetrics>,
}

#[stat_doc]
#[derive(Clone, Debug, Default, Serialize, Deserialize, Stats)]
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
pub struct AgentMetrics {
    #[stat(desc = "temponet, distilled or edf")]
    pub policy: String,
    #[stat(desc = "who has the say now: agent, q-table, distilled or edf")]
    pub level: String,
    #[stat(desc = "ort or native")]
    pub backend: String,
    #[stat(desc = "what the backend runs on")]
    pub provider: String,
    #[stat(desc = "the model")]
    pub model: String,
    #[stat(desc = "decisions")]
    pub decisions: u64,
    #[stat(desc = "decisions that asked the network")]
    pub inferences: u64,
    #[stat(desc = "wake-ups of the agent's thread")]
    pub wakeups: u64,
    #[stat(desc = "time between decisions that the budget pays for (us)")]
    pub interval_us: f64,
    #[stat(desc = "CPU time of the agent's thread (us)")]
    pub cpu_us: f64,
    #[stat(desc = "median time of an inference (us, upper edge of its power of two)")]
    pub inference_p50_us: u64,
    #[stat(desc = "99th percentile of it")]
    pub inference_p99_us: u64,
    #[stat(desc = "median time from wake-up to decision (us)")]
    pub latency_p50_us: u64,
    #[stat(desc = "99th percentile of it")]
    pub latency_p99_us: u64,
    #[stat(desc = "median age of a decision when it was followed (us)")]
    pub age_p50_us: u64,
    #[stat(desc = "99th percentile of it")]
    pub age_p99_us: u64,
    #[stat(desc = "ages of followed decisions: counts by power of two of a microsecond")]
    pub age_histogram: Vec<u64>,
    #[stat(desc = "latencies: counts by power of two of a microsecond")]
    pub latency_histogram: Vec<u64>,
    #[stat(desc = "records to the agent")]
    pub told: u64,
    #[stat(desc = "records lost because the ring was full")]
    pub untold: u64,
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
    #[stat(desc = "changes to level agent")]
    pub to_agent: u64,
    #[stat(desc = "changes to level q-table: the agent was late")]
    pub to_table: u64,
    #[stat(desc = "changes to level distilled: the agent was silent")]
    pub to_distilled: u64,
    #[stat(desc = "changes to level edf: the agent was taken for gone")]
    pub to_edf: u64,
    #[stat(desc = "tasks with deadlines known")]
    pub tasks: u64,
    #[stat(desc = "of which given up because not all can be on time")]
    pub given_up: u64,
    #[stat(desc = "1: all pending jobs can be on time")]
    pub feasible: u64,
    #[stat(desc = "1: overload, called off after a while without")]
    pub overloaded: u64,
    #[stat(desc = "1: burst, less attention and a reserve for long slack")]
    pub burst: u64,
    #[stat(desc = "allocations of the agent's thread since warm-up")]
    pub allocations: u64,
    #[stat(desc = "page faults of the agent's thread since warm-up")]
    pub page_faults: u64,
    #[stat(desc = "models taken over while running")]
    pub swaps: u64,
    #[stat(desc = "models refused")]
    pub swaps_refused: u64,
}

/// Totals since load, in the units of the BPF half. What `--stats` shows is the
/// difference of two of these.
#[derive(Clone, Default)]
pub struct Snapshot {
    totals: temponet_cpu_stats,
    offenders: BTreeMap<String, OffenderMetrics>,
    agent: AgentMetrics,
    latency: [u64; BUCKETS],
    inference: [u64; BUCKETS],
    endangered: BTreeMap<String, EndangeredMetrics>,
}

impl Snapshot {
    pub(super) fn take(
        cpus: &[temponet_cpu_stats],
        offenders: &impl MapCore,
        policy: Policy,
        level: u32,
        gauges: Option<&Arc<Gauges>>,
    ) -> Self {
        let mut totals = temponet_cpu_stats::default();
        for cpu in cpus {
            add(&mut totals, cpu);
        }
        let gauges = gauges.map(Arc::as_ref);
        Self {
            agent: AgentMetrics {
                level: level_name(level).into(),
                ..agent(&totals, policy, gauges)
            },
            latency: gauges.map(|g| g.latency.read()).unwrap_or_default(),
            inference: gauges.map(|g| g.inference.read()).unwrap_or_default(),
            endangered: gauges.map(endangered).unwrap_or_default(),
            totals,
            offenders: worst_offenders(offenders),
        }
    }

    /// The figures of the time between `earlier` and this.
    fn since(&self, earlier: &Self) -> Metrics {
        let (now, then) = (&self.totals, &earlier.totals);
        let source = |i: u32| now.dispatches[i as usize] - then.dispatches[i as usize];
        Metrics {
            classes: CLASSES
                .iter()
                .map(|&(name, i)| (name.to_string(), class(&now.class[i], &then.class[i])))
                .collect(),
            offenders: self.offenders.clone(),
            idle: source(intf::temponet_source_TN_SRC_IDLE),
            queue: source(intf::temponet_source_TN_SRC_QUEUE),
            bound: source(intf::temponet_source_TN_SRC_BOUND),
            kthread: source(intf::temponet_source_TN_SRC_KTHREAD),
            by_agent: source(intf::temponet_source_TN_SRC_AGENT),
            by_table: source(intf::temponet_source_TN_SRC_TABLE),
            by_distilled: source(intf::temponet_source_TN_SRC_DISTILLED),
            agent_self: source(intf::temponet_source_TN_SRC_SELF),
            preemptions: now.preemptions - then.preemptions,
            steals: now.steals - then.steals,
            hopeless: now.hopeless - then.hopeless,
            rollovers: now.rollovers - then.rollovers,
            demotions: now.demotions - then.demotions,
            hints_invalid: now.hints_invalid - then.hints_invalid,
            agent: self.agent_since(earlier),
            endangered: self.endangered.clone(),
        }
    }

    /// Counters as differences; what was true only then, as it is now.
    fn agent_since(&self, earlier: &Self) -> AgentMetrics {
        let counts = |now: &[u64; BUCKETS], then: &[u64; BUCKETS]| -> Vec<u64> {
            now.iter().zip(then).map(|(n, t)| n - t).collect()
        };
        let age = counts(&self.totals.age, &earlier.totals.age);
        let latency = counts(&self.latency, &earlier.latency);
        let inference = counts(&self.inference, &earlier.inference);
        let (now, then) = (&self.agent, &earlier.agent);
        AgentMetrics {
            decisions: now.decisions - then.decisions,
            inferences: now.inferences - then.inferences,
            wakeups: now.wakeups - then.wakeups,
            cpu_us: now.cpu_us - then.cpu_us,
            inference_p50_us: percentile_us(&inference, 0.5),
            inference_p99_us: percentile_us(&inference, 0.99),
            latency_p50_us: percentile_us(&latency, 0.5),
            latency_p99_us: percentile_us(&latency, 0.99),
            age_p50_us: percentile_us(&age, 0.5),
            age_p99_us: percentile_us(&age, 0.99),
            age_histogram: age,
            latency_histogram: latency,
            told: now.told - then.told,
            untold: now.untold - then.untold,
            rung: now.rung - then.rung,
            bad_records: now.bad_records - then.bad_records,
            resyncs: now.resyncs - then.resyncs,
            repaired: now.repaired - then.repaired,
            stale: now.stale - then.stale,
            impossible: now.impossible - then.impossible,
            duplicate: now.duplicate - then.duplicate,
            to_agent: now.to_agent - then.to_agent,
            to_table: now.to_table - then.to_table,
            to_distilled: now.to_distilled - then.to_distilled,
            to_edf: now.to_edf - then.to_edf,
            ..now.clone()
        }
    }
}

fn level_name(level: u32) -> &'static str {
    match level {
        intf::temponet_level_TN_LEVEL_AGENT => "agent",
        intf::temponet_level_TN_LEVEL_TABLE => "q-table",
        intf::temponet_level_TN_LEVEL_DISTILLED => "distilled",
        _ => "edf",
    }
}

/// Totals since load.
fn agent(totals: &temponet_cpu_stats, policy: Policy, gauges: Option<&Gauges>) -> AgentMetrics {
    let to = |level: u32| totals.transitions[level as usize];
    let mut agent = AgentMetrics {
        policy: format!("{policy:?}").to_lowercase(),
        told: totals.told,
        untold: totals.untold,
        rung: totals.rung,
        stale: totals.stale,
        impossible: totals.impossible,
        duplicate: totals.duplicate,
        to_agent: to(intf::temponet_level_TN_LEVEL_AGENT),
        to_table: to(intf::temponet_level_TN_LEVEL_TABLE),
        to_distilled: to(intf::temponet_level_TN_LEVEL_DISTILLED),
        to_edf: to(intf::temponet_level_TN_LEVEL_EDF),
        ..AgentMetrics::default()
    };
    let Some(gauges) = gauges else {
        return agent;
    };
    if let Ok(identity) = gauges.identity.lock() {
        agent.backend.clone_from(&identity.backend);
        agent.provider.clone_from(&identity.provider);
        agent.model.clone_from(&identity.model);
    }
    let flag = |flag: &AtomicBool| u64::from(flag.load(Ordering::Relaxed));
    agent.decisions = Gauges::get(&gauges.decisions);
    agent.inferences = Gauges::get(&gauges.inferences);
    agent.wakeups = Gauges::get(&gauges.wakeups);
    agent.interval_us = us(Gauges::get(&gauges.interval_ns));
    agent.cpu_us = us(Gauges::get(&gauges.cpu_ns));
    agent.bad_records = Gauges::get(&gauges.bad_records);
    agent.resyncs = Gauges::get(&gauges.resyncs);
    agent.repaired = Gauges::get(&gauges.repaired);
    agent.overflow = Gauges::get(&gauges.overflow);
    agent.tasks = Gauges::get(&gauges.tasks);
    agent.given_up = Gauges::get(&gauges.given_up);
    agent.feasible = flag(&gauges.feasible);
    agent.overloaded = flag(&gauges.overloaded);
    agent.burst = flag(&gauges.burst);
    agent.allocations = Gauges::get(&gauges.allocations);
    agent.page_faults = Gauges::get(&gauges.page_faults);
    agent.swaps = Gauges::get(&gauges.swaps);
    agent.swaps_refused = Gauges::get(&gauges.swaps_refused);
    agent
}

fn endangered(gauges: &Gauges) -> BTreeMap<String, EndangeredMetrics> {
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

fn task_name(comm: &[u8], tid: u32) -> String {
    let len = comm.iter().position(|&c| c == 0).unwrap_or(comm.len());
    format!("{}[{tid}]", String::from_utf8_lossy(&comm[..len]))
}

fn add(total: &mut temponet_cpu_stats, cpu: &temponet_cpu_stats) {
    for (t, c) in total.class.iter_mut().zip(&cpu.class) {
        t.released += c.released;
        t.met += c.met;
        t.missed += c.missed;
        t.response_ns += c.response_ns;
        t.response_max_ns = t.response_max_ns.max(c.response_max_ns);
        t.lateness_ns += c.lateness_ns;
        t.lateness_max_ns = t.lateness_max_ns.max(c.lateness_max_ns);
        t.runs += c.runs;
        t.run_ns += c.run_ns;
        t.wait_ns += c.wait_ns;
        t.wait_max_ns = t.wait_max_ns.max(c.wait_max_ns);
    }
    for (t, c) in total.dispatches.iter_mut().zip(&cpu.dispatches) {
        *t += c;
    }
    total.preemptions += cpu.preemptions;
    total.steals += cpu.steals;
    total.hopeless += cpu.hopeless;
    total.rollovers += cpu.rollovers;
    total.demotions += cpu.demotions;
    total.hints_invalid += cpu.hints_invalid;
    total.told += cpu.told;
    total.untold += cpu.untold;
    total.rung += cpu.rung;
    total.stale += cpu.stale;
    total.impossible += cpu.impossible;
    total.duplicate += cpu.duplicate;
    for (t, c) in total.transitions.iter_mut().zip(&cpu.transitions) {
        *t += c;
    }
    for (t, c) in total.age.iter_mut().zip(&cpu.age) {
        *t += c;
    }
}

fn class(now: &temponet_class_stats, then: &temponet_class_stats) -> ClassMetrics {
    let mean_us = |sum: u64, n: u64| if n == 0 { 0.0 } else { us(sum) / n as f64 };
    let met = now.met - then.met;
    let missed = now.missed - then.missed;
    let runs = now.runs - then.runs;
    ClassMetrics {
        released: now.released - then.released,
        met,
        missed,
        response_us: mean_us(now.response_ns - then.response_ns, met + missed),
        response_max_us: us(now.response_max_ns),
        lateness_us: mean_us(now.lateness_ns - then.lateness_ns, missed),
        lateness_max_us: us(now.lateness_max_ns),
        runs,
        run_ms: us(now.run_ns - then.run_ns) / 1000.0,
        wait_us: mean_us(now.wait_ns - then.wait_ns, runs),
        wait_max_us: us(now.wait_max_ns),
    }
}

fn us(ns: u64) -> f64 {
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
    rows.sort_by_key(|(_, row)| std::cmp::Reverse(row.missed));
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

impl Metrics {
    fn print(&self, out: &mut impl Write) -> Result<()> {
        writeln!(
            out,
            "dispatch: idle {} queue {} bound {} kthread {} agent {} table {} distilled {} | preempted {} stolen {} | hopeless {} rolled over {} demoted {}",
            self.idle, self.queue, self.bound, self.kthread, self.by_agent, self.by_table, self.by_distilled, self.preemptions, self.steals,
            self.hopeless, self.rollovers, self.demotions,
        )?;
        writeln!(
            out,
            "{:<11}{:>9}{:>8}{:>13}{:>13}{:>13}{:>11}{:>11}{:>12}",
            "class",
            "met",
            "missed",
            "response ms",
            "lateness ms",
            "run ms",
            "runs",
            "wait ms",
            "max wait ms"
        )?;
        for (name, _) in CLASSES {
            let Some(c) = self.classes.get(*name) else {
                continue;
            };
            let jobs = |n: u64| {
                if has_jobs(name) {
                    n.to_string()
                } else {
                    "-".into()
                }
            };
            let ms = |us: f64| {
                if has_jobs(name) {
                    format!("{:.3}", us / 1000.0)
                } else {
                    "-".into()
                }
            };
            writeln!(
                out,
                "{:<11}{:>9}{:>8}{:>13}{:>13}{:>13.1}{:>11}{:>11.3}{:>12.1}",
                name,
                jobs(c.met),
                jobs(c.missed),
                ms(c.response_us),
                ms(c.lateness_us),
                c.run_ms,
                c.runs,
                c.wait_us / 1000.0,
                c.wait_max_us / 1000.0,
            )?;
        }
        if !self.offenders.is_empty() {
            let mut rows: Vec<_> = self.offenders.iter().collect();
            rows.sort_by_key(|(_, row)| std::cmp::Reverse(row.missed));
            let rows: Vec<String> = rows
                .iter()
                .map(|(name, row)| {
                    format!(
                        "{name} {}/{} missed, worst by {:.1} ms",
                        row.missed,
                        row.missed + row.met,
                        row.lateness_max_us / 1000.0
                    )
                })
                .collect();
            writeln!(out, "most misses since load: {}", rows.join("; "))?;
        }
        self.agent.print(out)?;
        writeln!(out)?;
        Ok(())
    }
}

impl AgentMetrics {
    fn print(&self, out: &mut impl Write) -> Result<()> {
        if self.model.is_empty() {
            return Ok(());
        }
        writeln!(
            out,
            "agent: {} of {} ({}: {}) | {} decisions, {} inferences, {:.1} ms CPU, every {:.1} ms | inference p50 {} p99 {} us, latency p50 {} p99 {} us, age p50 {} p99 {} us",
            self.policy, self.model, self.backend, self.provider, self.decisions, self.inferences,
            self.cpu_us / 1000.0, self.interval_us / 1000.0, self.inference_p50_us,
            self.inference_p99_us, self.latency_p50_us, self.latency_p99_us, self.age_p50_us,
            self.age_p99_us,
        )?;
        writeln!(
            out,
            "agent: {} tasks, {} given up{}{} | told {} lost {} rung {}, resyncs {} repaired {} | stale {} impossible {} duplicate {} | to agent {} q-table {} distilled {} edf {} | faults {} allocations {} | swapped {} refused {}",
            self.tasks, self.given_up,
            if self.overloaded > 0 { ", overload" } else { "" },
            if self.burst > 0 { ", burst" } else { "" },
            self.told, self.untold, self.rung, self.resyncs, self.repaired, self.stale,
            self.impossible, self.duplicate, self.to_agent, self.to_table, self.to_distilled,
            self.to_edf, self.page_faults, self.allocations, self.swaps, self.swaps_refused,
        )?;
        Ok(())
    }
}

fn has_jobs(class: &str) -> bool {
    class == "declared" || class == "inferred"
}

pub fn server_data() -> StatsServerData<(), Snapshot> {
    let open: Box<dyn StatsOpener<(), Snapshot>> = Box::new(move |(requests, answers)| {
        requests.send(())?;
        let mut before = answers.recv()?;
        let read: Box<dyn StatsReader<(), Snapshot>> =
            Box::new(move |_args, (requests, answers)| {
                requests.send(())?;
                let now = answers.recv()?;
                let metrics = now.since(&before);
                before = now;
                metrics.to_json()
            });
        Ok(read)
    });
    StatsServerData::new()
        .add_meta(Metrics::meta())
        .add_meta(ClassMetrics::meta())
        .add_meta(OffenderMetrics::meta())
        .add_meta(AgentMetrics::meta())
        .add_meta(EndangeredMetrics::meta())
        .add_ops("top", StatsOps { open, close: None })
}

/// Prints the figures of a running scheduler until `shutdown`.
pub fn monitor(interval: Duration, shutdown: Arc<AtomicBool>) -> Result<()> {
    scx_utils::monitor_stats::<Metrics>(
        &[],
        interval,
        || shutdown.load(Ordering::Relaxed),
        |metrics| metrics.print(&mut std::io::stdout()),
    )
}
