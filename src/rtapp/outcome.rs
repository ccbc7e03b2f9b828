//! A task set under several schedulers, and what became of every thread's jobs.

use rayon::prelude::*;
use serde::Serialize;

use super::convert::Converted;
use crate::sim::compare::Contestant;
use crate::sim::engine::{JobRecord, Options, Record, Segment, Sim, Tally};
use crate::sim::metrics::Metrics;
use crate::sim::stats::percentile;
use crate::sim::task::TaskSet;
use crate::sim::time::to_ms;

/// Where the figures come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    Simulated,
    Recorded,
}

/// All jobs under one scheduler.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    pub scheduler: String,
    pub source: Source,
    #[serde(flatten)]
    pub total: Figures,
    pub tasks: Vec<TaskOutcome>,
    #[serde(skip)]
    pub jobs: Vec<JobRecord>,
    /// Who ran where; nothing for what was recorded.
    #[serde(skip)]
    pub segments: Vec<Segment>,
}

#[derive(Clone, Debug, Serialize)]
pub struct TaskOutcome {
    pub name: String,
    pub critical: bool,
    #[serde(flatten)]
    pub figures: Figures,
}

#[derive(Clone, Debug, Serialize)]
pub struct Figures {
    #[serde(flatten)]
    pub metrics: Metrics,
    pub response_p50_ms: Option<f64>,
    pub response_p99_ms: Option<f64>,
    pub response_max_ms: Option<f64>,
    /// rt-app's own: the timer's next expiry less the time the work was done.
    pub rtapp_slack: Option<Slack>,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub struct Slack {
    pub mean_ms: f64,
    pub min_ms: f64,
}

/// The same jobs under every policy, in the order given.
pub fn simulate(
    converted: &Converted,
    contestants: &[Contestant],
    options: Options,
    tick: &(dyn Fn() + Sync),
) -> Vec<Outcome> {
    let set = &converted.set;
    contestants
        .par_iter()
        .map(|contestant| {
            let record = Record {
                jobs: true,
                segments: true,
                events: false,
            };
            let mut sim = Sim::new(set, set.cores, options, record);
            sim.run((contestant.make)().as_mut());
            tick();
            let mut tally = std::mem::take(&mut sim.tally);
            let jobs = std::mem::take(&mut tally.records);
            let segments = std::mem::take(&mut tally.segments);
            let outcome = outcome(&contestant.name, Source::Simulated, converted, tally, jobs);
            Outcome {
                segments,
                ..outcome
            }
        })
        .collect()
}

/// What the logs themselves say.
pub fn recorded(converted: &Converted, fates: Vec<JobRecord>) -> Outcome {
    let tally = tally_of(&converted.set, fates.iter());
    outcome("recorded", Source::Recorded, converted, tally, fates)
}

fn outcome(
    scheduler: &str,
    source: Source,
    converted: &Converted,
    tally: Tally,
    mut jobs: Vec<JobRecord>,
) -> Outcome {
    let set = &converted.set;
    jobs.sort_by_key(|job| (job.task, job.index));
    let tasks = set
        .tasks
        .iter()
        .enumerate()
        .map(|(id, task)| {
            let own = of_task(&jobs, id);
            let tally = tally_of(set, own.iter());
            TaskOutcome {
                name: task.name.clone(),
                critical: task.criticality > 0,
                figures: figures(converted, &tally, own),
            }
        })
        .collect();
    Outcome {
        scheduler: scheduler.to_owned(),
        source,
        total: figures(converted, &tally, &jobs),
        tasks,
        jobs,
        segments: Vec::new(),
    }
}

/// A task's jobs, of jobs in order of their tasks.
pub fn of_task(jobs: &[JobRecord], task: usize) -> &[JobRecord] {
    let start = jobs.partition_point(|job| (job.task as usize) < task);
    let end = jobs.partition_point(|job| job.task as usize <= task);
    &jobs[start..end]
}

fn tally_of<'a>(set: &TaskSet, jobs: impl Iterator<Item = &'a JobRecord>) -> Tally {
    let mut tally = Tally::default();
    for job in jobs {
        let critical = set.tasks[job.task as usize].criticality > 0;
        tally.add(*job, critical, set.horizon_ns);
    }
    tally
}

fn figures(converted: &Converted, tally: &Tally, jobs: &[JobRecord]) -> Figures {
    let set = &converted.set;
    let mut responses = responses_ms(jobs);
    responses.sort_by(f64::total_cmp);
    let at = |share| (!responses.is_empty()).then(|| percentile(&responses, share));
    Figures {
        metrics: Metrics::of(tally, set.cores, set.horizon_ns),
        response_p50_ms: at(0.5),
        response_p99_ms: at(0.99),
        response_max_ms: at(1.0),
        rtapp_slack: slack(converted, jobs),
    }
}

/// Of the jobs that were finished.
pub fn responses_ms(jobs: &[JobRecord]) -> Vec<f64> {
    let response = |job: &JobRecord| Some(to_ms(job.finish? - job.release));
    jobs.iter().filter_map(response).collect()
}

fn slack(converted: &Converted, jobs: &[JobRecord]) -> Option<Slack> {
    let mut slacks = jobs.iter().filter_map(|job| {
        let later = converted.timer_after_deadline[job.task as usize]?;
        let timer = job.deadline as i64 + later;
        Some((timer - job.finish? as i64) as f64 / 1e6)
    });
    let first = slacks.next()?;
    let (mut count, mut sum, mut min) = (1.0, first, first);
    for slack in slacks {
        count += 1.0;
        sum += slack;
        min = slack.min(min);
    }
    Some(Slack {
        mean_ms: sum / count,
        min_ms: min,
    })
}
