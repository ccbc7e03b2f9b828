//! Situations to decide on: moments of a simulated machine with more work than
//! it can do.

use crate::policy::{CpuMask, Job, Situation, Upcoming};
use crate::sim::engine::{Knowledge, Options, Plan, Record, Sim};
use crate::sim::policies::{EdfDrop, Policy};
use crate::sim::situation::Situations;
use crate::sim::task::{Execution, Semantics};
use crate::sim::time::{Ns, MS, SECOND};
use crate::sim::workload::{self, Params};

/// As in the paper's benchmark.
pub const CPUS: usize = 8;
/// What the jobs really need, of what the CPUs can do.
const LOAD: f64 = 1.1;
/// Jobs need between half of their worst case and all of it.
const LEAST_SHARE: f64 = 0.5;

pub struct Moment {
    pub now_ns: i64,
    pub jobs: Vec<Job>,
    pub upcoming: Vec<Upcoming>,
}

impl Moment {
    pub fn situation(&self) -> Situation<'_> {
        Situation {
            now_ns: self.now_ns,
            jobs: &self.jobs,
            upcoming: &self.upcoming,
            cpus: CpuMask::first(CPUS),
            share: 1.0,
            hold_ns: MS as i64,
        }
    }
}

/// So many moments with exactly `n` jobs each; fewer if the machine never has
/// that many.
pub fn moments(n: usize, count: usize, seed: u64) -> Vec<Moment> {
    let mut found = Vec::new();
    // Not every task has a job waiting: add tasks until enough have.
    for tasks_per_job in [2, 4, 8] {
        for set in 0..count as u64 {
            if found.len() < count {
                let tasks = (n * tasks_per_job).max(2 * CPUS);
                watch(n, tasks, count, (seed, set), &mut found);
            }
        }
    }
    found
}

/// Moments of one task set, far enough apart to differ.
fn watch(n: usize, tasks: usize, most: usize, seed: (u64, u64), found: &mut Vec<Moment>) {
    const APART: Ns = 20 * MS;
    const PER_SET: usize = 8;
    let load = LOAD / ((LEAST_SHARE + 1.0) / 2.0);
    let params = Params {
        cores: Some(CPUS),
        tasks: Some(tasks),
        load: Some((load, load)),
        horizon_ns: Some(SECOND),
        execution: Some(Execution::Uniform {
            low: LEAST_SHARE,
            high: 1.0,
        }),
    };
    let Some(workload) = workload::find("large") else {
        return;
    };
    let set = workload.generate(&params, seed.0, seed.1);
    let options = Options {
        knowledge: Knowledge::History,
        ..Options::new(Semantics::Abort)
    };
    let mut sim = Sim::new(&set, CPUS, options, Record::default());
    let (mut policy, mut plan) = (EdfDrop::default(), Plan::default());
    policy.start(&set, CPUS);
    let mut situations = Situations::new();
    situations.start(&set);
    // Every task has a past by then.
    let mut next = 300 * MS;
    let mut left = PER_SET.min(most - found.len());
    while left > 0 && sim.advance() {
        let view = sim.view();
        if view.now >= next && view.jobs.len() >= n {
            next = view.now + APART;
            left -= 1;
            let situation = situations.of(&view);
            found.push(Moment {
                now_ns: situation.now_ns,
                jobs: situation.jobs[..n].to_vec(),
                upcoming: situation.upcoming.to_vec(),
            });
        }
        plan.clear();
        policy.decide(&view, &mut plan);
        sim.submit(&plan);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_full_different_and_the_same_every_time() {
        let first = moments(64, 10, 1);
        assert_eq!(first.len(), 10);
        let again = moments(64, 10, 1);
        for (i, moment) in first.iter().enumerate() {
            assert_eq!(moment.jobs.len(), 64);
            assert_eq!(moment.jobs, again[i].jobs);
            assert!(first[..i].iter().all(|other| other.jobs != moment.jobs));
        }
    }
}
