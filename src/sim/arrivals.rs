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
        let lasts = |release: Ns| task.end_ns.is_none_or(|end| release < end);
        if let Arrival::Trace(jobs) = &task.arrival {
            let job = jobs.get(self.count).filter(|job| lasts(job.release_ns))?;
            self.count += 1;
            return Some(JobSpec {
                release: job.release_ns,
                deadline: job.deadline_ns.unwrap_or(job.release_ns + task.deadline_ns),
                execution: job.execution_ns.max(1),
            });
        }
        let release = Some(self.next_release).filter(|&release| lasts(release))?;
        self.count += 1;
        // The gap first: the order of draws is part of what a seed means.
        self.next_release = release.saturating_add(self.gap(set, task));
        Some(JobSpec {
            release,
            deadline: release + task.deadline_ns,
            execution: self.execution_time(set, task, release),
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

    /// Of the job that has just been counted.
    fn execution_time(&mut self, set: &TaskSet, task: &Task, release: Ns) -> Ns {
        let rng = &mut self.rng;
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
            Execution::OneIn { jobs, share } => match self.count.is_multiple_of(jobs as usize) {
                true => 1.0,
                false => share,
            },
            Execution::Drift { from, to } => {
                let end = task.end_ns.unwrap_or(set.horizon_ns).min(set.horizon_ns);
                let span = end.saturating_sub(task.offset_ns).max(1);
                let age = (release - task.offset_ns).min(span);
                from + (to - from) * (age as f64 / span as f64)
            }
        };
        ((task.wcet_ns as f64 * share).round() as Ns).max(1)
    }
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
    fn times_drift_over_the_life_of_a_task_that_then_releases_no_more() {
        let mut task = Task::periodic("d", 100 * MS, 10 * MS);
        task.offset_ns = 100 * MS;
        task.end_ns = Some(500 * MS);
        task.execution = Execution::Drift { from: 1.0, to: 0.2 };
        let times: Vec<u64> = jobs(&set_of(task), 9)
            .iter()
            .map(|j| j.execution / MS)
            .collect();
        assert_eq!(times, [10, 8, 6, 4]);
    }

    #[test]
    fn one_job_in_three_is_long() {
        let mut task = Task::periodic("k", 10 * MS, 10 * MS);
        task.execution = Execution::OneIn {
            jobs: 3,
            share: 0.5,
        };
        let times: Vec<u64> = jobs(&set_of(task), 6)
            .iter()
            .map(|j| j.execution / MS)
            .collect();
        assert_eq!(times, [5, 5, 10, 5, 5, 10]);
    }

    #[test]
    fn jobs_take_on_average_what_their_distribution_promises() {
        let models = [
            Execution::Uniform {
                low: 0.2,
                high: 0.9,
            },
            Execution::Overrun {
                low: 0.5,
                probability: 0.2,
                factor: 3.0,
            },
            Execution::HeavyTail {
                low: 0.2,
                alpha: 1.5,
                cap: 1.0,
            },
            Execution::HeavyTail {
                low: 0.1,
                alpha: 1.0,
                cap: 2.0,
            },
            Execution::OneIn {
                jobs: 7,
                share: 0.3,
            },
            Execution::Drift { from: 0.4, to: 1.0 },
        ];
        for execution in models {
            let mut task = Task::periodic("m", MS, 100_000);
            task.execution = execution.clone();
            let set = TaskSet {
                horizon_ns: 40 * SECOND,
                ..set_of(task)
            };
            let jobs = jobs(&set, 40_000);
            let mean = jobs.iter().map(|j| j.execution as f64).sum::<f64>() / 40_000.0 / 1e5;
            let told = execution.mean_share();
            assert!(
                (mean - told).abs() < 0.01 * told,
                "{execution:?}: {mean}, not {told}"
            );
        }
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
