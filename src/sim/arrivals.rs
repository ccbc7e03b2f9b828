//! The jobs of a task, one after the other, from the task's own random stream.
//!
//! A stream never looks at the schedule, so every policy meets identical jobs.

use super::rng::{child_seed, Rng};
use super::task::{Arrival, Execution, Task, TaskSet};
use super::time::Ns;

/// One job as the world sends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobSpec {
    pub release: Ns,
    pub deadline: Ns,
    /// What it really takes; policies see it only where the options say so.
    pub execution: Ns,
}

#[derive(Clone, Debug)]
pub struct JobStream {
    rng: Rng,
    next_release: Ns,
    count: usize,
}

impl JobStream {
    pub fn new(set: &TaskSet, task: usize) -> Self {
        Self {
            rng: Rng::new(child_seed(set.seed, task as u64)),
            next_release: set.tasks[task].offset_ns,
            count: 0,
        }
    }

    pub fn next_job(&mut self, set: &TaskSet, task: &Task) -> Option<JobSpec> {
        if let Arrival::Trace(jobs) = &task.arrival {
            let job = jobs.get(self.count)?;
            self.count += 1;
            return Some(JobSpec {
                release: job.release_ns,
                deadline: job.deadline_ns.unwrap_or(job.release_ns + task.deadline_ns),
                execution: job.execution_ns.max(1),
            });
        }
        let release = self.next_release;
        self.count += 1;
        self.next_release = release.saturating_add(self.gap(set, task));
        Some(JobSpec {
            release,
            deadline: release + task.deadline_ns,
            execution: execution_time(&mut self.rng, task),
        })
    }

    fn gap(&mut self, set: &TaskSet, task: &Task) -> Ns {
        let gap = match &task.arrival {
            Arrival::Sporadic { mean_delay_ns } => {
                let delay = self.rng.exponential(*mean_delay_ns as f64);
                task.period_ns + delay.round() as Ns
            }
            Arrival::Bursty { burst, spacing_ns } => {
                if self.count.is_multiple_of(*burst as usize) {
                    let within = spacing_ns * Ns::from(burst - 1);
                    (task.period_ns * Ns::from(*burst)).saturating_sub(within)
                } else {
                    *spacing_ns
                }
            }
            Arrival::Periodic | Arrival::Trace(_) => task.period_ns,
        };
        if set.modes.is_empty() {
            return gap.max(1);
        }
        let rate = set.rate_at(self.next_release);
        ((gap as f64 / rate).round() as Ns).max(1)
    }
}

fn execution_time(rng: &mut Rng, task: &Task) -> Ns {
    let share = match task.execution {
        Execution::Wcet => return task.wcet_ns,
        Execution::Uniform { low, high } => rng.uniform(low, high),
        Execution::Overrun {
            low,
            probability,
            factor,
        } => {
            if rng.chance(probability) {
                rng.uniform(1.0, factor)
            } else {
                rng.uniform(low, 1.0)
            }
        }
        Execution::HeavyTail { low, alpha, cap } => rng.pareto(alpha, low).min(cap),
    };
    ((task.wcet_ns as f64 * share).round() as Ns).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::task::Mode;
    use crate::sim::time::{MS, SECOND};

    fn set_of(task: Task) -> TaskSet {
        TaskSet {
            name: "t".into(),
            cores: 1,
            horizon_ns: SECOND,
            seed: 3,
            modes: Vec::new(),
            tasks: vec![task],
        }
    }

    fn jobs(set: &TaskSet, n: usize) -> Vec<JobSpec> {
        let mut stream = JobStream::new(set, 0);
        (0..n)
            .map_while(|_| stream.next_job(set, &set.tasks[0]))
            .collect()
    }

    #[test]
    fn bursts_keep_the_rate_of_the_period() {
        let mut task = Task::periodic("b", 10 * MS, MS);
        task.arrival = Arrival::Bursty {
            burst: 4,
            spacing_ns: MS,
        };
        let jobs = jobs(&set_of(task), 9);
        let releases: Vec<u64> = jobs.iter().map(|j| j.release / MS).collect();
        assert_eq!(releases, [0, 1, 2, 3, 40, 41, 42, 43, 80]);
    }

    #[test]
    fn sporadic_gaps_are_never_shorter_than_the_period() {
        let mut task = Task::periodic("s", 10 * MS, MS);
        task.arrival = Arrival::Sporadic {
            mean_delay_ns: 5 * MS,
        };
        let jobs = jobs(&set_of(task), 200);
        assert!(jobs
            .windows(2)
            .all(|w| w[1].release - w[0].release >= 10 * MS));
    }

    #[test]
    fn a_mode_switch_changes_the_rate_of_arrival() {
        let mut set = set_of(Task::periodic("m", 10 * MS, MS));
        set.modes = vec![
            Mode {
                start_ns: 0,
                rate: 0.5,
            },
            Mode {
                start_ns: 100 * MS,
                rate: 2.0,
            },
        ];
        let releases: Vec<u64> = jobs(&set, 9).iter().map(|j| j.release / MS).collect();
        assert_eq!(releases, [0, 20, 40, 60, 80, 100, 105, 110, 115]);
    }

    #[test]
    fn overruns_exceed_the_worst_case_as_often_as_asked() {
        let mut task = Task::periodic("o", 10 * MS, MS);
        task.execution = Execution::Overrun {
            low: 0.5,
            probability: 0.2,
            factor: 3.0,
        };
        let jobs = jobs(&set_of(task), 10_000);
        let over = jobs.iter().filter(|j| j.execution > MS).count();
        assert!((1_800..2_200).contains(&over), "{over}");
        assert!(jobs.iter().all(|j| j.execution <= 3 * MS));
    }
}
