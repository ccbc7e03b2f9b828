//! A task set under several schedulers, and what became of every thread's jobs.

use rayon::prelude::*;
use serde::Serialize;

use super::convert::Converted;
use crate::sim::compare::Contestant;
use crate::sim::engine::{JobRecord, Options, Record, Segment, Sim, Tally};
use crate::sim::metrics::Metrics;
use crate::sim::stats::percentile;
use crate::sim::task::TaskSet;
use crate::sim::time::{to_ms, Ns};

/// Where the figures come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    Simulated,
    Recorded,
    /// The real rt-app on a real kernel.
    Live,
}

impl Source {
    pub fn name(self) -> &'static str {
        match self {
            Source::Simulated => "simulated",
            Source::Recorded => "recorded",
            Source::Live => "live",
        }
    }
}

/// What it takes to have a scheduler, from the least to the most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Needs {
    /// The kernel's own.
    Kernel,
    /// A sched_ext scheduler without a network.
    Scheduler,
    /// This program with its network.
    Network,
    /// It cannot be loaded: it exists in the simulator, or was recorded.
    Nowhere,
}

/// How one would get this scheduler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Means {
    pub needs: Needs,
    /// In words, as part of a sentence.
    pub how: String,
    /// Deadlines are declared to it.
    pub declares: bool,
}

impl Means {
    pub fn new(needs: Needs, how: impl Into<String>) -> Means {
        Means {
            needs,
            how: how.into(),
            declares: false,
        }
    }
}

/// All jobs under one scheduler.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    pub scheduler: String,
    pub source: Source,
    /// What a scheduler that was loaded called itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loaded: Option<String>,
    #[serde(skip)]
    pub means: Means,
    #[serde(flatten)]
    pub total: Figures,
    pub tasks: Vec<TaskOutcome>,
    #[serde(skip)]
    pub jobs: Vec<JobRecord>,
    /// Which task ran where; nothing for what was recorded.
    #[serde(skip)]
    pub segments: Vec<Segment>,
}

#[derive(Clone, Debug, Serialize)]
pub struct TaskOutcome {
    pub name: String,
    pub critical: bool,
    /// CPUs it used on average; known where it is known which task ran when.
    pub cpus_used: Option<f64>,
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
            let name = &contestant.name;
            outcome(name, Source::Simulated, converted, tally, jobs, segments)
        })
        .collect()
}

/// What the logs themselves say.
pub fn recorded(converted: &Converted, fates: Vec<JobRecord>) -> Outcome {
    let tally = tally_of(&converted.set, fates.iter());
    let (source, unknown) = (Source::Recorded, Vec::new());
    outcome("recorded", source, converted, tally, fates, unknown)
}

/// A run on a machine: what the logs say, and which task ran where.
pub fn live(
    scheduler: &str,
    loaded: &str,
    converted: &Converted,
    jobs: Vec<JobRecord>,
    segments: Vec<Segment>,
) -> Outcome {
    let mut tally = tally_of(&converted.set, jobs.iter());
    count_moves(&mut tally, &segments);
    let outcome = outcome(scheduler, Source::Live, converted, tally, jobs, segments);
    Outcome {
        loaded: Some(loaded.to_owned()),
        ..outcome
    }
}

/// Stretches come in order of tasks and time. A job that has another stretch after
/// one was interrupted.
fn count_moves(tally: &mut Tally, segments: &[Segment]) {
    for s in segments {
        tally.busy += u128::from(s.end - s.start);
    }
    for pair in segments.windows(2).filter(|w| w[0].task == w[1].task) {
        let moves = tally.moves_of(pair[0].task as usize);
        moves.preemptions += u64::from(pair[0].index == pair[1].index);
        moves.migrations += u64::from(pair[0].core != pair[1].core);
    }
    tally.preemptions = tally.moves.iter().map(|moves| moves.preemptions).sum();
    tally.migrations = tally.moves.iter().map(|moves| moves.migrations).sum();
}

fn outcome(
    scheduler: &str,
    source: Source,
    converted: &Converted,
    tally: Tally,
    mut jobs: Vec<JobRecord>,
    segments: Vec<Segment>,
) -> Outcome {
    let set = &converted.set;
    jobs.sort_by_key(|job| (job.task, job.index));
    let mut used = vec![0; set.tasks.len()];
    for s in &segments {
        used[s.task as usize] += s.end.min(set.horizon_ns).saturating_sub(s.start);
    }
    let moves = &tally.moves;
    let known = !segments.is_empty();
    let share = |used: u64| used as f64 / set.horizon_ns as f64;
    let tasks = set
        .tasks
        .iter()
        .enumerate()
        .map(|(id, task)| {
            let own = of_task(&jobs, id);
            let moves = moves.get(id).copied().unwrap_or_default();
            let tally = Tally {
                busy: used[id].into(),
                preemptions: moves.preemptions,
                migrations: moves.migrations,
                ..tally_of(set, own.iter())
            };
            TaskOutcome {
                name: task.name.clone(),
                critical: task.criticality > 0,
                cpus_used: known.then(|| share(used[id])),
                figures: figures(converted, &tally, own, known),
            }
        })
        .collect();
    Outcome {
        scheduler: scheduler.to_owned(),
        source,
        loaded: None,
        means: Means::new(Needs::Nowhere, source.name()),
        total: figures(converted, &tally, &jobs, known),
        tasks,
        jobs,
        segments,
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

/// `known`: which task ran where, and so how busy the cores were and how often jobs moved.
fn figures(converted: &Converted, tally: &Tally, jobs: &[JobRecord], known: bool) -> Figures {
    let set = &converted.set;
    let metrics = Metrics::of(tally, set.cores, set.horizon_ns);
    let mut responses = responses_ms(jobs, set.horizon_ns);
    responses.sort_by(f64::total_cmp);
    let at = |share| (!responses.is_empty()).then(|| percentile(&responses, share));
    Figures {
        metrics: Metrics {
            utilisation: metrics.utilisation.filter(|_| known),
            preemptions: metrics.preemptions.filter(|_| known),
            migrations: metrics.migrations.filter(|_| known),
            ..metrics
        },
        response_p50_ms: at(0.5),
        response_p99_ms: at(0.99),
        response_max_ms: at(1.0),
        rtapp_slack: slack(converted, jobs),
    }
}

/// A job that never finished counts with the time it had waited by the end.
pub fn responses_ms(jobs: &[JobRecord], horizon: Ns) -> Vec<f64> {
    let end = |job: &JobRecord| job.finish.unwrap_or(horizon.max(job.release));
    jobs.iter()
        .map(|job| to_ms(end(job) - job.release))
        .collect()
}

fn slack(converted: &Converted, jobs: &[JobRecord]) -> Option<Slack> {
    let mut slacks = jobs.iter().filter_map(|job| {
        let later = converted.timer_after_deadline[job.task as usize]?;
        let timer = job.deadline as i64 + later;
        // A job that never finished has at most what was left at the end.
        let end = job.finish.unwrap_or(converted.set.horizon_ns);
        Some((timer - end as i64) as f64 / 1e6)
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
