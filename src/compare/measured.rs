//! What is kept of a run: figures of all jobs, of those after the first second, and of
//! every task.

use serde::{Deserialize, Serialize};

use crate::rtapp::outcome::{of_task, responses_ms};
use crate::sim::engine::{Fate, JobRecord};
use crate::sim::stats::percentile;
use crate::sim::task::TaskSet;
use crate::sim::time::{to_ms, Ns, SECOND};

/// Jobs released earlier meet the start of everything.
const SETTLED_FROM: Ns = SECOND;
/// rt-app needs a moment to end; beyond this its own clock was disturbed.
const USUAL_OVERTIME_S: f64 = 0.5;

/// Of jobs whose deadlines lie within the time. A job that never finished is missed, and
/// its response is what it had waited by the end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    pub jobs: u64,
    pub met: u64,
    pub unfinished: u64,
    pub critical_jobs: u64,
    pub critical_met: u64,
    pub response_ms: f64,
    pub response_p99_ms: f64,
    /// Of the late jobs alone; 0 without any.
    pub lateness_p95_ms: f64,
}

impl Figures {
    fn of(set: &TaskSet, jobs: &[JobRecord]) -> Figures {
        let mut figures = Figures::default();
        let mut lateness = Vec::new();
        for job in jobs {
            let met = job.fate == Fate::OnTime;
            let critical = set.tasks[job.task as usize].criticality > 0;
            figures.jobs += 1;
            figures.met += u64::from(met);
            figures.unfinished += u64::from(job.finish.is_none());
            figures.critical_jobs += u64::from(critical);
            figures.critical_met += u64::from(critical && met);
            let end = job.finish.unwrap_or(set.horizon_ns);
            lateness.extend((end > job.deadline).then(|| to_ms(end - job.deadline)));
        }
        let mut responses = responses_ms(jobs, set.horizon_ns);
        responses.sort_by(f64::total_cmp);
        lateness.sort_by(f64::total_cmp);
        if !responses.is_empty() {
            let mean = responses.iter().sum::<f64>() / responses.len() as f64;
            figures.response_ms = to_the_nanosecond(mean);
            figures.response_p99_ms = to_the_nanosecond(percentile(&responses, 0.99));
        }
        if !lateness.is_empty() {
            figures.lateness_p95_ms = to_the_nanosecond(percentile(&lateness, 0.95));
        }
        figures
    }

    /// Percent on time; nothing without jobs.
    pub fn compliance(&self) -> Option<f64> {
        percent(self.met, self.jobs)
    }

    /// The same of the critical jobs (PITMD).
    pub fn critical(&self) -> Option<f64> {
        percent(self.critical_met, self.critical_jobs)
    }
}

/// So few digits come back from a file as they were.
fn to_the_nanosecond(ms: f64) -> f64 {
    (ms * 1e6).round() / 1e6
}

fn percent(met: u64, of: u64) -> Option<f64> {
    (of > 0).then(|| 100.0 * met as f64 / of as f64)
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskFigures {
    pub jobs: u64,
    pub met: u64,
    pub unfinished: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    pub whole: Figures,
    /// Without the jobs of the first second.
    pub settled: Figures,
    /// In the order of the set.
    pub tasks: Vec<TaskFigures>,
    /// What a scheduler that was loaded called itself.
    #[serde(default)]
    pub loaded: String,
    /// How much longer it ran than it was to.
    #[serde(default)]
    pub overtime_s: f64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl Measured {
    pub fn of(set: &TaskSet, mut jobs: Vec<JobRecord>) -> Measured {
        jobs.sort_by_key(|job| (job.task, job.index));
        let settled = jobs.iter().filter(|job| job.release >= SETTLED_FROM);
        let settled: Vec<JobRecord> = settled.copied().collect();
        let task = |id| {
            let own = of_task(&jobs, id);
            TaskFigures {
                jobs: own.len() as u64,
                met: own.iter().filter(|job| job.fate == Fate::OnTime).count() as u64,
                unfinished: own.iter().filter(|job| job.finish.is_none()).count() as u64,
            }
        };
        Measured {
            whole: Figures::of(set, &jobs),
            settled: Figures::of(set, &settled),
            tasks: (0..set.tasks.len()).map(task).collect(),
            loaded: String::new(),
            overtime_s: 0.0,
            notes: Vec::new(),
        }
    }

    /// Why these figures are to be taken with care. Jobs that count are those of the
    /// planned time, whatever the overtime.
    pub fn disturbed(&self) -> Option<String> {
        (self.overtime_s > USUAL_OVERTIME_S).then(|| {
            format!(
                "rt-app ran {:.1} s longer than it was told to",
                self.overtime_s
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::task::Task;
    use crate::sim::time::MS;

    fn job(task: u32, release: Ns, finish: Option<Ns>) -> JobRecord {
        let deadline = release + 100 * MS;
        JobRecord {
            task,
            index: (release / MS) as u32,
            release,
            deadline,
            finish,
            fate: match finish {
                Some(finish) if finish <= deadline => Fate::OnTime,
                Some(_) => Fate::Late,
                None => Fate::Unfinished,
            },
        }
    }

    #[test]
    fn jobs_that_never_finish_are_missed_and_the_first_second_is_told_apart() {
        let mut important = Task::periodic("b", 100 * MS, MS);
        important.criticality = 1;
        let set = TaskSet {
            name: "t".into(),
            cores: 1,
            horizon_ns: 2 * SECOND,
            seed: 1,
            modes: Vec::new(),
            tasks: vec![Task::periodic("a", 100 * MS, MS), important],
        };
        let jobs = vec![
            job(1, 1500 * MS, None),
            job(0, 0, Some(150 * MS)),
            job(0, 1000 * MS, Some(1010 * MS)),
            job(1, 1000 * MS, Some(1020 * MS)),
        ];
        let measured = Measured::of(&set, jobs);
        assert_eq!((measured.whole.jobs, measured.whole.met), (4, 2));
        assert_eq!((measured.settled.jobs, measured.settled.met), (3, 2));
        assert_eq!(measured.whole.critical(), Some(50.0));
        assert_eq!(measured.whole.unfinished, 1);
        // 150, 10 and 20 ms, and half a second without an end.
        assert_eq!(measured.whole.response_ms, 170.0);
        let tasks: Vec<(u64, u64)> = measured.tasks.iter().map(|t| (t.jobs, t.met)).collect();
        assert_eq!(tasks, [(2, 1), (2, 1)]);
        assert_eq!(measured.disturbed(), None);
        let late = Measured {
            overtime_s: 2.0,
            ..measured
        };
        assert!(late.disturbed().unwrap().contains("2.0 s longer"));
    }
}
