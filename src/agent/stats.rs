//! The figures: summed up from the BPF half, served through scx_stats, printed
//! by `--stats` and `--monitor`.

mod print;

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use libbpf_rs::{MapCore, MapFlags};
use scx_stats::prelude::*;
use scx_stats_derive::{stat_doc, Stats};
use serde::{Deserialize, Serialize};

use super::agent_stats::{AgentMetrics, AgentTotals, CpuMetrics, EndangeredMetrics, Flags, Spread};
use super::bpf::types::{temponet_class_stats, temponet_cpu_stats};
use crate::intf;
use crate::intf::temponet_offender;

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
#[stat(top)]
pub struct Metrics {
    #[stat(desc = "seconds that the counters are of")]
    pub interval_s: f64,
    #[stat(
        desc = "per class: declared, inferred, background (no jobs), late (run time and waits only)"
    )]
    pub classes: BTreeMap<String, ClassMetrics>,
    #[stat(desc = "tasks with the most missed deadlines since load, by name[tid]")]
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
    #[stat(desc = "slices that a tick ended, by reason")]
    pub resched: BTreeMap<String, u64>,
    #[stat(desc = "the agent: who decides, how fast, and how well it is heard")]
    pub agent: AgentMetrics,
    #[stat(desc = "declared jobs with the least slack, by name[tid]")]
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
        let (now, then) = (&self.totals, &earlier.totals);
        let source = |i: u32| now.dispatches[i as usize] - then.dispatches[i as usize];
        let interval_s = self.at.duration_since(earlier.at).as_secs_f64().max(1e-6);
        Metrics {
            interval_s,
            classes: CLASSES
                .iter()
                .map(|&(name, i)| (name.to_string(), class(&now.class[i], &then.class[i])))
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
            preemptions: now.preemptions - then.preemptions,
            steals: now.steals - then.steals,
            hopeless: now.hopeless - then.hopeless,
            rollovers: now.rollovers - then.rollovers,
            demotions: now.demotions - then.demotions,
            hints_invalid: now.hints_invalid - then.hints_invalid,
            misplaced: now.misplaced - then.misplaced,
            drifted: now.drifted - then.drifted,
            parked: now.parked - then.parked,
            parked_ms: us(now.parked_ns - then.parked_ns) / 1000.0,
            lent: now.lent - then.lent,
            perf_requests: now.perf_requests - then.perf_requests,
            resched: RESCHEDS
                .iter()
                .map(|&(name, i)| (name.to_string(), now.resched[i] - then.resched[i]))
                .collect(),
            agent: self.agent.since(&earlier.agent, now, then, interval_s),
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
    let len = comm.iter().position(|&c| c == 0).unwrap_or(comm.len());
    format!("{}[{tid}]", String::from_utf8_lossy(&comm[..len]))
}

fn ran_ns(cpu: &temponet_cpu_stats) -> u64 {
    cpu.class.iter().map(|class| class.run_ns).sum()
}

/// All of them are counts, and add up; of the longest times the longest counts.
fn add(total: &mut temponet_cpu_stats, cpu: &temponet_cpu_stats) {
    let longest = total.class.map(|class| longest_of(&class));
    for (sum, more) in words(total).iter_mut().zip(words(&mut cpu.clone())) {
        *sum += *more;
    }
    for ((sum, class), before) in total.class.iter_mut().zip(&cpu.class).zip(longest) {
        let [response, lateness, wait] = longest_of(class);
        sum.response_max_ns = before[0].max(response);
        sum.lateness_max_ns = before[1].max(lateness);
        sum.wait_max_ns = before[2].max(wait);
    }
}

fn longest_of(class: &temponet_class_stats) -> [u64; 3] {
    [
        class.response_max_ns,
        class.lateness_max_ns,
        class.wait_max_ns,
    ]
}

/// The counters as what they are, so that a new one cannot be forgotten.
fn words(stats: &mut temponet_cpu_stats) -> &mut [u64] {
    const WORDS: usize = std::mem::size_of::<temponet_cpu_stats>() / 8;
    const _: () = assert!(std::mem::size_of::<temponet_cpu_stats>() == WORDS * 8);
    const _: () = assert!(std::mem::align_of::<temponet_cpu_stats>() == 8);
    // SAFETY: the struct holds nothing but `u64` (bpf/intf.h), so it is as many of them, with
    // the same alignment, and borrowed for as long as the slice.
    unsafe { std::slice::from_raw_parts_mut(std::ptr::from_mut(stats).cast(), WORDS) }
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
        asked_ms: us(now.run_ns - then.run_ns + now.wait_ns - then.wait_ns) / 1000.0,
        wait_us: mean_us(now.wait_ns - then.wait_ns, runs),
        wait_max_us: us(now.wait_max_ns),
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

/// The target that serves the figures since load; without one, those since the last look.
pub const SINCE_LOAD: &str = "since_load";

/// To be called when the scheduler is loaded: totals count from here.
pub fn server_data() -> StatsServerData<(), Snapshot> {
    let nothing = Snapshot::empty(Instant::now());
    let since_load: Box<dyn StatsReaderSend<(), Snapshot>> =
        Box::new(move |_args, (requests, answers)| {
            requests.send(())?;
            answers.recv()?.since(&nothing).to_json()
        });
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
        .add_meta(CpuMetrics::meta())
        .add_meta(Spread::meta())
        .add_meta(Flags::meta())
        .add_ops("top", StatsOps { open, close: None })
        .add_stats(SINCE_LOAD, since_load)
}

/// What every figure means. scx_stats finds the parts that stand in a dictionary by itself.
pub fn explain(out: &mut impl Write) -> Result<()> {
    let data = server_data();
    data.describe_meta(out, None)?;
    for part in ["AgentMetrics", "Spread", "Flags"] {
        writeln!(out)?;
        data.describe_meta(out, Some(&[part]))?;
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_struct_that_is_served_is_explained() {
        let mut text = Vec::new();
        explain(&mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        for part in [
            "Metrics",
            "ClassMetrics",
            "OffenderMetrics",
            "AgentMetrics",
            "EndangeredMetrics",
            "CpuMetrics",
            "Spread",
            "Flags",
        ] {
            let heads = text.lines().filter(|line| {
                line.strip_prefix('[')
                    .is_some_and(|l| l.trim_end_matches(']').trim_end() == part)
            });
            assert_eq!(heads.count(), 1, "{part} in\n{text}");
        }
        assert!(text.contains("decisions not followed: too old"), "{text}");
    }

    #[test]
    fn a_cpu_s_load_is_its_own_and_of_the_interval() {
        let begin = Instant::now();
        let at = |seconds: u64, ran_ns: &[u64]| Snapshot {
            at: begin + Duration::from_secs(seconds),
            ran_ns: ran_ns.to_vec(),
            cpus: [(0, CpuMetrics::default()), (1, CpuMetrics::default())].into(),
            ..Snapshot::empty(begin)
        };
        const S: u64 = 1_000_000_000;
        let (earlier, later) = (at(1, &[S, 0]), at(3, &[2 * S, 3 * S]));
        let metrics = later.since(&earlier);
        assert_eq!(metrics.interval_s, 2.0);
        assert_eq!((metrics.cpus[&0].busy, metrics.cpus[&1].busy), (0.5, 1.0));
        let total = later.since(&Snapshot::empty(begin));
        assert_eq!(total.interval_s, 3.0);
        assert!((total.cpus[&0].busy - 2.0 / 3.0).abs() < 1e-9);
    }

    #[test]
    fn counters_of_cpus_add_up_and_the_longest_times_do_not() {
        let mut one = temponet_cpu_stats::default();
        words(&mut one).fill(3);
        let mut other = temponet_cpu_stats::default();
        words(&mut other).fill(4);
        add(&mut one, &other);
        for class in &one.class {
            assert_eq!(longest_of(class), [4; 3]);
            assert_eq!((class.released, class.wait_ns), (7, 7));
        }
        assert_eq!(one.age, [7; intf::temponet_consts_TN_AGE_BUCKETS as usize]);
        let (sum, maxima) = (words(&mut one), 3 * CLASSES.len() as u64);
        assert_eq!(
            sum.iter().sum::<u64>(),
            7 * (sum.len() as u64 - maxima) + 4 * maxima
        );
    }
}
