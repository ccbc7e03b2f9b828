//! What threads declare: their periods and `dl-*` as hints for our scheduler, as
//! parameters for SCHED_DEADLINE, and as priorities by rate.

use std::collections::HashMap;
use std::fs;

use anyhow::{Context, Result};

use super::schedulers::{Entrant, Kind};
use crate::hint::{Hint, HintClient};
use crate::rtapp::convert::Converted;
use crate::rtapp::workload::Workload;
use crate::rtapp::write::Class;
use crate::sim::arrivals::JobStream;
use crate::sim::task::{Arrival, Declaration, TaskSet};
use crate::sim::time::{Ns, US};

/// A declared runtime is a worst case; calibrated loops vary by a few per cent.
const HEADROOM: f64 = 1.06;
/// The highest priority given by rate; well below the kernel's own threads at 99.
const HIGHEST: u32 = 90;

/// What a thread of the workload declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Declared {
    pub runtime_ns: Ns,
    pub deadline_ns: Ns,
    pub period_ns: Ns,
    pub criticality: u32,
    /// Our scheduler is told; SCHED_FIFO by rate and SCHED_DEADLINE need to know anyway.
    pub is_told: bool,
}

impl Declared {
    pub fn hint(&self) -> Result<Hint> {
        let Declared {
            runtime_ns,
            deadline_ns,
            period_ns,
            criticality,
            is_told: _,
        } = *self;
        Ok(Hint::new(runtime_ns, deadline_ns, period_ns, criticality)?)
    }

    pub fn density(&self) -> f64 {
        self.runtime_ns as f64 / self.deadline_ns as f64
    }
}

/// By thread of the workload; `None` for one without a rhythm or a deadline.
pub fn declared(workload: &Workload, converted: &Converted) -> Vec<Option<Declared>> {
    let mut all = vec![None; workload.threads.len()];
    for (task, origin) in converted.origins.iter().enumerate() {
        if !origin.forked && all[origin.thread].is_none() {
            all[origin.thread] = of_task(workload, converted, task, origin.thread);
        }
    }
    all
}

fn of_task(
    workload: &Workload,
    converted: &Converted,
    task: usize,
    thread: usize,
) -> Option<Declared> {
    let set = &converted.set;
    let timed = converted.timer_after_deadline[task].is_some();
    let entry = &workload.threads[thread];
    let promised = (0..entry.phases.len()).any(|i| entry.declared_deadline_us(i).is_some());
    if !timed && !promised {
        return None;
    }
    let own = &set.tasks[task];
    let period_ns = match own.arrival {
        Arrival::Periodic => own.period_ns,
        _ => shortest_gap(set, task)?,
    };
    let deadline_ns = own.deadline_ns.min(period_ns);
    let runtime_ns = (own.told_ns() as f64 * HEADROOM).round() as Ns;
    Some(Declared {
        runtime_ns: runtime_ns.max(10 * US).min(deadline_ns),
        deadline_ns,
        period_ns,
        criticality: u32::from(own.criticality),
        is_told: own.declared != Declaration::Nothing,
    })
}

fn shortest_gap(set: &TaskSet, task: usize) -> Option<Ns> {
    let mut stream = JobStream::new(set, task);
    let jobs = std::iter::from_fn(|| stream.next_job(set, &set.tasks[task]));
    let releases: Vec<Ns> = jobs
        .map(|job| job.release)
        .take_while(|&release| release < set.horizon_ns)
        .collect();
    let gaps = releases.windows(2).map(|w| w[1] - w[0]);
    gaps.filter(|&gap| gap > 0).min()
}

/// The class of every thread under a scheduler.
pub fn classes(entrant: &Entrant, declared: &[Option<Declared>]) -> Vec<Class> {
    let mut periods: Vec<Ns> = declared.iter().flatten().map(|d| d.period_ns).collect();
    periods.sort_unstable();
    periods.dedup();
    let class = |declared: &Option<Declared>| match (&entrant.kind, declared) {
        (Kind::AsWritten, _) => Class::AsWritten,
        (Kind::FifoRm, Some(declared)) => {
            let rank = periods.partition_point(|&period| period < declared.period_ns);
            Class::Fifo {
                priority: HIGHEST.saturating_sub(rank as u32).max(1),
            }
        }
        (Kind::Deadline, Some(declared)) => Class::Deadline {
            runtime_us: declared.runtime_ns / US,
            deadline_us: declared.deadline_ns / US,
            period_us: declared.period_ns / US,
        },
        _ => Class::Fair,
    };
    declared.iter().map(class).collect()
}

/// The threads of a process in the order they were started, by name.
pub fn threads_of(pid: u32) -> Result<Vec<(u32, String)>> {
    let folder = format!("/proc/{pid}/task");
    let mut threads = Vec::new();
    for entry in fs::read_dir(&folder).with_context(|| format!("cannot read {folder}"))? {
        let entry = entry?;
        let name = entry.file_name();
        let Some(tid) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        // One that has just ended is none of ours any more.
        if let Ok(comm) = fs::read_to_string(entry.path().join("comm")) {
            threads.push((tid, comm.trim_end().to_owned()));
        }
    }
    threads.sort_unstable();
    Ok(threads)
}

/// Declares for every thread of that name.
pub fn declare(
    threads: &[(u32, String)],
    names: &[String],
    declared: &[Option<Declared>],
) -> Result<()> {
    let by_name: HashMap<&str, &Declared> = names
        .iter()
        .zip(declared)
        .filter_map(|(name, declared)| Some((name.as_str(), declared.as_ref()?)))
        .filter(|(_, declared)| declared.is_told)
        .collect();
    if by_name.is_empty() {
        return Ok(());
    }
    let client = HintClient::connect()?;
    for (tid, comm) in threads {
        if let Some(declared) = by_name.get(comm.as_str()) {
            let hint = declared
                .hint()
                .with_context(|| format!("thread {comm} cannot declare what it does"))?;
            client
                .set(*tid as i32, &hint)
                .with_context(|| format!("the declaration of thread {comm} was refused"))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rtapp::convert::{convert, Wishes};

    fn declared_in(text: &str) -> Vec<Option<Declared>> {
        let workload = Workload::parse(text.as_bytes()).unwrap();
        let converted = convert(&workload, &Wishes::default()).unwrap();
        declared(&workload, &converted)
    }

    const TEXT: &str = r#"{"global": {"duration": 2}, "tasks": {
        "slow": {"run": 10000, "timer": {"ref": "unique", "period": 100000}},
        "fast": {"run": 1000, "timer": {"ref": "unique", "period": 10000}},
        "tight": {"policy": "SCHED_DEADLINE", "dl-runtime": 2000, "dl-deadline": 5000,
            "dl-period": 20000, "run": 1000, "timer": {"ref": "unique", "period": 20000}},
        "chat": {"run": 1000, "sleep": 7000}}}"#;

    #[test]
    fn periods_and_deadline_parameters_become_declarations() {
        let all = declared_in(TEXT);
        let fast = all[1].unwrap();
        assert_eq!(
            (fast.period_ns, fast.deadline_ns),
            (10_000 * US, 10_000 * US)
        );
        assert_eq!(fast.runtime_ns, 1060 * US);
        let tight = all[2].unwrap();
        assert_eq!(
            (tight.period_ns, tight.deadline_ns),
            (20_000 * US, 5_000 * US)
        );
        assert_eq!(all[3], None);
        assert!(all.iter().flatten().all(|d| d.hint().is_ok()));
    }

    #[test]
    fn priorities_go_by_rate_and_who_declares_nothing_stays_fair() {
        let all = declared_in(TEXT);
        let classes = |name| classes(&Entrant::parse(name).unwrap(), &all);
        let priority = |class: &Class| match class {
            Class::Fifo { priority } => *priority,
            other => panic!("{other:?}"),
        };
        let by_rate = classes("fifo-rm");
        assert!(priority(&by_rate[1]) > priority(&by_rate[2]));
        assert!(priority(&by_rate[2]) > priority(&by_rate[0]));
        assert_eq!(by_rate[3], Class::Fair);
        let expected = Class::Deadline {
            runtime_us: 1060,
            deadline_us: 5000,
            period_us: 20_000,
        };
        assert_eq!(classes("deadline")[2], expected);
        assert_eq!(classes("scx_bpfland"), [Class::Fair; 4]);
        assert_eq!(classes("as-is"), [Class::AsWritten; 4]);
    }
}
