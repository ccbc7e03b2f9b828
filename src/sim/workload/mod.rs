//! Seeded generators for the workloads of the paper.
//!
//! The paper describes them in a sentence each; what it leaves open (periods,
//! split of the load, lengths of bursts) is decided here, said in each file and
//! repeated in docs/measurements/yardstick.md.

mod industrial;
mod large;
mod mode_switch;
mod pareto;
mod random;
mod srpt;
mod standard;
mod stress;
pub mod tournament;

use super::rng::{child_seed, Rng};
use super::task::{Execution, Task, TaskSet};
use super::time::{Ns, MS};

/// What a user may change; `None` leaves the workload's own value.
#[derive(Clone, Debug, Default)]
pub struct Params {
    pub cores: Option<usize>,
    pub tasks: Option<usize>,
    /// Load per core, drawn uniformly from this range for every set.
    pub load: Option<(f64, f64)>,
    pub horizon_ns: Option<Ns>,
    /// Replaces the execution times of every task.
    pub execution: Option<Execution>,
}

pub struct Workload {
    pub name: &'static str,
    pub about: &'static str,
    pub cores: usize,
    /// 0: drawn for every set.
    pub tasks: usize,
    pub load: (f64, f64),
    pub horizon_ns: Ns,
    /// Takes what the user chose and a random stream of its own.
    draw: fn(&Shape, &mut Rng) -> TaskSet,
}

/// The values one set is drawn with.
#[derive(Clone, Copy, Debug)]
struct Shape {
    cores: usize,
    tasks: usize,
    /// Per core.
    load: f64,
    horizon_ns: Ns,
}

impl Shape {
    fn total_load(&self) -> f64 {
        self.load * self.cores as f64
    }

    fn set(&self, name: &str, tasks: Vec<Task>) -> TaskSet {
        TaskSet {
            name: name.into(),
            cores: self.cores,
            horizon_ns: self.horizon_ns,
            seed: 0,
            modes: Vec::new(),
            tasks,
        }
    }
}

pub const WORKLOADS: &[&Workload] = &[
    &standard::STANDARD,
    &random::RANDOM5,
    &srpt::SRPT,
    &pareto::PARETO,
    &large::LARGE,
    &large::HEAVY,
    &mode_switch::MODE_SWITCH,
    &industrial::INDUSTRIAL,
    &stress::STRESS,
    &tournament::TOURNAMENT,
];

pub fn find(name: &str) -> Option<&'static Workload> {
    WORKLOADS.iter().find(|w| w.name == name).copied()
}

impl Workload {
    /// The `index`-th task set of this seed.
    pub fn generate(&self, params: &Params, seed: u64, index: u64) -> TaskSet {
        let set_seed = child_seed(seed, index);
        let mut rng = Rng::new(set_seed);
        let (low, high) = params.load.unwrap_or(self.load);
        let shape = Shape {
            cores: params.cores.unwrap_or(self.cores),
            tasks: params.tasks.unwrap_or(self.tasks),
            load: rng.uniform(low, high),
            horizon_ns: params.horizon_ns.unwrap_or(self.horizon_ns),
        };
        let mut set = (self.draw)(&shape, &mut rng);
        set.seed = set_seed;
        set.name = format!("{}-{index}", self.name);
        if let Some(execution) = &params.execution {
            for task in &mut set.tasks {
                task.execution = execution.clone();
            }
        }
        set
    }
}

/// UUniFast (Bini and Buttazzo 2005), drawn again until no task exceeds one core.
fn uunifast(rng: &mut Rng, tasks: usize, total: f64) -> Vec<f64> {
    // Above this share of what is possible, rejection would take for ever.
    if total > 0.95 * tasks as f64 {
        return vec![(total / tasks as f64).min(1.0); tasks];
    }
    for _ in 0..10_000 {
        let mut left = total;
        let mut shares = Vec::with_capacity(tasks);
        for i in 1..tasks {
            let next = left * rng.unit().powf(1.0 / (tasks - i) as f64);
            shares.push(left - next);
            left = next;
        }
        shares.push(left);
        if shares.iter().all(|&u| u <= 1.0) {
            return shares;
        }
    }
    vec![total / tasks as f64; tasks]
}

/// Periodic tasks that share a load (UUniFast), each drawn in turn: its period,
/// then what `finish` adds.
fn split(
    rng: &mut Rng,
    count: usize,
    load: f64,
    period: impl Fn(&mut Rng) -> Ns,
    finish: impl Fn(&mut Task, &mut Rng),
) -> Vec<Task> {
    let shares = uunifast(rng, count, load).into_iter().enumerate();
    shares
        .map(|(i, share)| {
            let period = period(rng);
            let mut task = Task::periodic(format!("T{}", i + 1), period, work(period, share));
            finish(&mut task, rng);
            task
        })
        .collect()
}

/// Log-uniform in 20 to 200 ms, whole milliseconds.
fn usual_period(rng: &mut Rng) -> Ns {
    rng.log_uniform(20.0, 200.0).round() as Ns * MS
}

/// The first release anywhere in the first period; one in ten mission-critical.
fn scatter(task: &mut Task, rng: &mut Rng) {
    task.offset_ns = rng.below(task.period_ns as usize) as Ns;
    task.criticality = u8::from(rng.chance(0.1));
}

/// C for this share of a period, never zero.
fn work(period_ns: Ns, share: f64) -> Ns {
    ((period_ns as f64 * share).round() as Ns).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_to_the_load_and_fit_a_core() {
        let mut rng = Rng::new(11);
        for (n, total) in [
            (3, 1.1),
            (5, 0.8),
            (12, 8.0),
            (600, 10.0),
            (3, 2.0),
            (3, 2.9),
        ] {
            let shares = uunifast(&mut rng, n, total);
            assert!((shares.iter().sum::<f64>() - total).abs() < 1e-9);
            assert!(shares.iter().all(|&u| (0.0..=1.0).contains(&u)));
        }
    }

    #[test]
    fn every_workload_has_the_load_it_promises_and_is_reproducible() {
        for workload in WORKLOADS {
            let params = Params::default();
            let set = workload.generate(&params, 1, 0);
            assert_eq!(set, workload.generate(&params, 1, 0), "{}", workload.name);
            assert_ne!(set, workload.generate(&params, 1, 1), "{}", workload.name);
            assert!(set.tasks.len() >= workload.tasks, "{}", workload.name);
            let total = match workload.name {
                // Of what really runs, before and after the change half-way.
                "tournament" => set.load_at(0).max(set.load_at(set.horizon_ns - 1)),
                _ => set.utilisation(),
            };
            let load = total / set.cores as f64;
            let (low, high) = workload.load;
            assert!(
                load > low - 0.02 && load < high + 0.02,
                "{}: {load} not in {low}..{high}",
                workload.name
            );
            set.check().expect(workload.name);
        }
    }
}
