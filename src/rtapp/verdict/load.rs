//! What the jobs ask for, and whether any scheduler could give it.
//!
//! "Impossible" is always proven: by a job that needs more time than it has, or by a
//! stretch of time in which more work is released and due than all CPUs can do.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use serde::Serialize;

use crate::sim::arrivals::JobStream;
use crate::sim::oracle::{self, Job};
use crate::sim::task::{Arrival, Execution, Task, TaskSet};
use crate::sim::time::{to_ms, Ns};

#[derive(Clone, Debug, Serialize)]
pub struct Load {
    pub cpus: usize,
    /// CPUs that the threads with deadlines ask for on average: run time by period.
    pub asked_cpus: f64,
    /// CPUs that the threads without deadlines would use.
    pub background_cpus: f64,
    pub feasible: Feasible,
    pub obstacle: Option<Obstacle>,
    /// No scheduler can have a greater share of the jobs on time.
    pub ceiling: f64,
    /// The fewest CPUs on which nothing proves it impossible; none where no number helps.
    pub cpus_needed: Option<usize>,
    /// By task: the CPUs it asks for; none for a thread without deadlines.
    #[serde(skip)]
    pub tasks: Vec<Option<f64>>,
}

/// Whether every deadline could be met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Feasible {
    Yes,
    No,
    Unknown,
}

/// Why no scheduler can meet every deadline.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Obstacle {
    /// More work is due than the CPUs can do in all of the time.
    Overload,
    /// A job needs more time than it has, and one thread can use one CPU only.
    TooLong {
        task: String,
        work_ms: f64,
        time_ms: f64,
    },
    /// More work is released and due between these times than the CPUs can do.
    Peak {
        from_ms: f64,
        to_ms: f64,
        work_ms: f64,
    },
}

impl Load {
    pub fn of(set: &TaskSet) -> Load {
        let jobs = oracle::jobs(set);
        let mut judged = vec![false; set.tasks.len()];
        jobs.iter().for_each(|job| judged[job.task] = true);
        let tasks: Vec<Option<f64>> = (0..set.tasks.len())
            .map(|id| judged[id].then(|| asked(set, id)))
            .collect();
        let background = (0..set.tasks.len()).filter(|&id| !judged[id]);
        let obstacle = obstacle(set, &jobs);
        let asked_cpus = tasks.iter().flatten().sum();
        Load {
            cpus: set.cores,
            asked_cpus,
            background_cpus: background.map(|id| released(set, id)).sum(),
            feasible: match obstacle {
                Some(_) => Feasible::No,
                None if set.cores == 1 || fluid(set, &tasks) => Feasible::Yes,
                None => Feasible::Unknown,
            },
            ceiling: ceiling(set, &jobs, obstacle.is_some()),
            cpus_needed: cpus_needed(set, &jobs),
            obstacle,
            tasks,
        }
    }

    /// It asks for more than there is, though the time is too short to prove it.
    pub fn cannot_last(&self) -> bool {
        self.obstacle.is_none() && self.asked_cpus > self.cpus as f64 * (1.0 + 1e-9)
    }
}

/// A task that is released every period and always takes the same.
pub fn is_steady(set: &TaskSet, task: &Task) -> bool {
    let same = task.arrival == Arrival::Periodic && task.execution == Execution::Wcet;
    same && set.modes.is_empty()
}

fn asked(set: &TaskSet, id: usize) -> f64 {
    let task = &set.tasks[id];
    match is_steady(set, task) {
        true => task.utilisation(),
        false => released(set, id),
    }
}

/// CPUs for what is released in the time, as far as it falls into the time.
fn released(set: &TaskSet, id: usize) -> f64 {
    work_of(set, id) as f64 / set.horizon_ns as f64
}

pub fn work_of(set: &TaskSet, id: usize) -> u128 {
    let mut stream = JobStream::new(set, id);
    let jobs = std::iter::from_fn(|| stream.next_job(set, &set.tasks[id]));
    jobs.take_while(|job| job.release < set.horizon_ns)
        .map(|job| u128::from(job.execution.min(set.horizon_ns - job.release)))
        .sum()
}

/// Steady tasks with deadlines at their periods fit wherever their sum does (Baruah and
/// others 1996, proportionate fairness).
fn fluid(set: &TaskSet, tasks: &[Option<f64>]) -> bool {
    let whole = |task: &Task| is_steady(set, task) && task.deadline_ns >= task.period_ns;
    let judged = set
        .tasks
        .iter()
        .zip(tasks)
        .filter(|(_, asks)| asks.is_some());
    let sum: f64 = tasks.iter().flatten().sum();
    sum <= set.cores as f64
        && judged.clone().all(|(task, _)| whole(task))
        && tasks.iter().flatten().all(|&asks| asks <= 1.0)
}

fn obstacle(set: &TaskSet, jobs: &[Job]) -> Option<Obstacle> {
    if let Some(job) = jobs.iter().find(|job| is_too_long(job)) {
        return Some(Obstacle::TooLong {
            task: set.tasks[job.task].name.clone(),
            work_ms: to_ms(job.work),
            time_ms: to_ms(job.deadline - job.release),
        });
    }
    let work: u128 = jobs.iter().map(|job| u128::from(job.work)).sum();
    if work > set.cores as u128 * u128::from(set.horizon_ns) {
        return Some(Obstacle::Overload);
    }
    let missed = first_miss(jobs, set.cores)?;
    Some(peak(jobs, set.cores, missed))
}

fn is_too_long(job: &Job) -> bool {
    job.work > job.deadline - job.release
}

/// The first deadline that earliest deadline first misses on one CPU as fast as all of
/// them together. Such a CPU can do whatever they can, and there EDF is optimal: what is
/// missed here is missed by every scheduler.
fn first_miss(jobs: &[Job], cpus: usize) -> Option<Ns> {
    // Time is counted in work that can be done, so that nothing is divided.
    let speed = cpus as u128;
    let mut ready: BinaryHeap<Reverse<(Ns, u64)>> = BinaryHeap::new();
    let mut coming = jobs.iter().peekable();
    let mut now = 0u128;
    loop {
        if ready.is_empty() {
            now = now.max(u128::from(coming.peek()?.release) * speed);
        }
        while let Some(job) = coming.next_if(|job| u128::from(job.release) * speed <= now) {
            ready.push(Reverse((job.deadline, job.work)));
        }
        let Reverse((deadline, work)) = ready.pop()?;
        let next = coming.peek().map(|job| u128::from(job.release) * speed);
        let until = next.map_or(u128::MAX, |next| next - now);
        if u128::from(work) > until {
            ready.push(Reverse((deadline, work - until as u64)));
            now += until;
            continue;
        }
        now += u128::from(work);
        if now > u128::from(deadline) * speed {
            return Some(deadline);
        }
    }
}

/// The shortest stretch up to a missed deadline that holds too much work.
fn peak(jobs: &[Job], cpus: usize, to: Ns) -> Obstacle {
    let mut inside: Vec<&Job> = jobs.iter().filter(|job| job.deadline <= to).collect();
    inside.sort_by_key(|job| Reverse(job.release));
    let mut work = 0u128;
    let mut from = 0;
    for (i, job) in inside.iter().enumerate() {
        work += u128::from(job.work);
        from = job.release;
        let more = inside.get(i + 1).is_some_and(|next| next.release == from);
        if !more && work > cpus as u128 * u128::from(to - from) {
            break;
        }
    }
    Obstacle::Peak {
        from_ms: to_ms(from),
        to_ms: to_ms(to),
        work_ms: work as f64 / 1e6,
    }
}

/// The share of the jobs that fit when the shortest are taken.
fn ceiling(set: &TaskSet, jobs: &[Job], impossible: bool) -> f64 {
    if jobs.is_empty() {
        return 1.0;
    }
    let mut works: Vec<Ns> = jobs
        .iter()
        .filter(|job| !is_too_long(job))
        .map(|job| job.work)
        .collect();
    works.sort_unstable();
    let mut room = set.cores as u128 * u128::from(set.horizon_ns);
    let fitting = works.iter().take_while(|&&work| {
        let fits = u128::from(work) <= room;
        room = room.saturating_sub(u128::from(work));
        fits
    });
    let most = jobs.len() - usize::from(impossible);
    fitting.count().min(most) as f64 / jobs.len() as f64
}

fn cpus_needed(set: &TaskSet, jobs: &[Job]) -> Option<usize> {
    if jobs.iter().any(is_too_long) {
        return None;
    }
    // With a CPU for every task all is served, unless jobs of one task overlap.
    let (mut low, mut high) = (1, set.tasks.len().max(1));
    if first_miss(jobs, high).is_some() {
        return None;
    }
    while low < high {
        let middle = (low + high) / 2;
        match first_miss(jobs, middle) {
            Some(_) => low = middle + 1,
            None => high = middle,
        }
    }
    Some(low)
}

/// The period with which a steady task would fit beside the others, if one helps: a
/// little longer than it must be, as people would write it.
pub fn fitting_period(set: &TaskSet, load: &Load, id: usize) -> Option<Ns> {
    let task = &set.tasks[id];
    let room = room_for(load, id)?;
    if !is_steady(set, task) {
        return None;
    }
    let period = rounded_up((task.wcet_ns as f64 / room.min(1.0)).ceil() as Ns);
    let mut other = set.clone();
    other.tasks[id].period_ns = period;
    if task.deadline_ns == task.period_ns {
        other.tasks[id].deadline_ns = period;
    }
    (obstacle(&other, &oracle::jobs(&other)).is_none()).then_some(period)
}

/// CPUs that the others leave to this task.
pub fn room_for(load: &Load, id: usize) -> Option<f64> {
    let others = load.asked_cpus - load.tasks[id]?;
    let room = load.cpus as f64 - others;
    (room > 0.005).then_some(room)
}

/// Two digits that count, the second one up: 15.4 ms becomes 16 ms.
fn rounded_up(ns: Ns) -> Ns {
    let step = 10u64.pow(ns.max(1).ilog10().saturating_sub(1));
    ns.div_ceil(step) * step
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::time::MS;

    fn set(cores: usize, tasks: &[(u64, u64, u64)]) -> TaskSet {
        let task = |&(period, deadline, work): &(u64, u64, u64)| Task {
            deadline_ns: deadline * MS,
            ..Task::periodic(format!("p{period}"), period * MS, work * MS)
        };
        TaskSet {
            name: "test".into(),
            cores,
            horizon_ns: 1200 * MS,
            seed: 0,
            modes: Vec::new(),
            tasks: tasks.iter().map(task).collect(),
        }
    }

    #[test]
    fn a_full_cpu_is_possible_and_a_little_more_is_not() {
        let full = Load::of(&set(1, &[(10, 10, 5), (20, 20, 10)]));
        assert_eq!((full.feasible, full.ceiling), (Feasible::Yes, 1.0));
        let more = Load::of(&set(1, &[(10, 10, 5), (20, 20, 11)]));
        assert_eq!(more.obstacle, Some(Obstacle::Overload));
        assert_eq!(more.cpus_needed, Some(2));
        // 120 short jobs take half of the time; 54 of the 60 long ones fit beside them.
        assert!(
            (more.ceiling - 174.0 / 180.0).abs() < 1e-9,
            "{}",
            more.ceiling
        );
    }

    #[test]
    fn deadlines_before_the_period_can_be_impossible_at_little_load() {
        let load = Load::of(&set(1, &[(100, 8, 5), (100, 9, 5)]));
        assert!(load.asked_cpus < 0.11);
        let Some(Obstacle::Peak {
            from_ms,
            to_ms,
            work_ms,
        }) = load.obstacle
        else {
            panic!("{load:?}");
        };
        assert_eq!((from_ms, to_ms, work_ms), (0.0, 9.0, 10.0));
        assert_eq!(load.cpus_needed, Some(2));
    }

    #[test]
    fn no_number_of_cpus_helps_a_thread_that_needs_more_than_its_period() {
        let load = Load::of(&set(8, &[(10, 10, 12), (20, 20, 1)]));
        assert!(matches!(load.obstacle, Some(Obstacle::TooLong { .. })));
        assert_eq!((load.feasible, load.cpus_needed), (Feasible::No, None));
        assert!(
            (load.ceiling - 60.0 / 180.0).abs() < 0.01,
            "{}",
            load.ceiling
        );
    }

    #[test]
    fn several_cpus_are_full_when_the_sum_says_so() {
        let three = [(10, 10, 6), (10, 10, 6), (10, 10, 6)];
        assert_eq!(Load::of(&set(2, &three)).feasible, Feasible::Yes);
        let four = [three.as_slice(), &[(10, 10, 6)]].concat();
        let load = Load::of(&set(2, &four));
        assert_eq!((load.feasible, load.cpus_needed), (Feasible::No, Some(3)));
        let early = [(10, 6, 5), (10, 6, 5), (10, 9, 3)];
        assert_eq!(Load::of(&set(2, &early)).feasible, Feasible::Unknown);
    }

    #[test]
    fn the_proposed_period_fits() {
        let set = set(1, &[(10, 10, 5), (20, 20, 14)]);
        let load = Load::of(&set);
        assert_eq!(fitting_period(&set, &load, 1), Some(28 * MS));
        assert_eq!(fitting_period(&set, &load, 0), Some(17 * MS));
    }

    #[test]
    fn a_time_too_short_to_prove_it_is_said_apart() {
        // Deadlines behind the period hide the first 200 ms of debt.
        let load = Load::of(&set(1, &[(10, 10, 5), (400, 600, 205)]));
        assert_eq!(load.feasible, Feasible::Yes);
        assert!(load.asked_cpus > 1.0 && load.cannot_last());
    }
}
