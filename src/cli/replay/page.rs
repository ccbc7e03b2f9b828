//! The page of `replay`, from what came out.

use anyhow::{Context, Result};

use super::input::Input;
use super::live::Live;
use crate::report::html::{
    quantiles, Page, PageFigures, PageScheduler, PageTask, Stretch, StretchRun,
};
use crate::rtapp::outcome::{of_task, responses_ms, Figures, Outcome};
use crate::sim::engine::{Fate, JobRecord, Knowledge, Options};
use crate::sim::time::{to_ms, Ns, MS, SECOND};

pub(super) fn of(
    input: &Input,
    options: &Options,
    model: Option<&str>,
    live: Option<&Live>,
    outcomes: &[Outcome],
) -> Result<Vec<u8>> {
    let set = &input.converted.set;
    let tasks = set.tasks.iter().map(|task| PageTask {
        name: task.name.clone(),
        critical: task.criticality > 0,
    });
    let page = Page {
        title: input.title.clone(),
        facts: facts(input, options, model, live),
        notes: notes(input, live),
        tasks: tasks.collect(),
        schedulers: outcomes
            .iter()
            .map(|outcome| scheduler(outcome, set.horizon_ns))
            .collect(),
        stretch: worst(input, outcomes),
    };
    Ok(page.render().context("cannot write the page")?.into_bytes())
}

fn notes(input: &Input, live: Option<&Live>) -> Vec<String> {
    let mut notes = input.warnings();
    if let Some(live) = live {
        notes.extend(live.collected.notes.clone());
        let failed = live.failures().map(|(name, why)| format!("{name}: {why}"));
        notes.extend(failed);
    }
    notes
}

fn facts(
    input: &Input,
    options: &Options,
    model: Option<&str>,
    live: Option<&Live>,
) -> Vec<(String, String)> {
    let set = &input.converted.set;
    let simulated = live.is_none_or(|live| live.and_simulated);
    let mut facts = vec![
        ("Input", input.title.clone()),
        ("Tasks", set.tasks.len().to_string()),
        ("Cores", set.cores.to_string()),
        (
            "Time",
            format!("{} s", set.horizon_ns as f64 / SECOND as f64),
        ),
        (
            "CPUs asked for",
            format!("{:.3} on average", input.demand()),
        ),
        ("Late jobs", "go on and delay their successors".into()),
        (
            "Program",
            format!("scx_temponet {}", env!("CARGO_PKG_VERSION")),
        ),
    ];
    if let Some(live) = live {
        facts.push(("Kernel", live.where_it_ran()));
        facts.extend(live.loaded().map(|loaded| ("Scheduler", loaded)));
    }
    if simulated {
        let knows = match options.knowledge {
            Knowledge::Known => "what every job takes",
            Knowledge::Wcet => "the worst case of every task",
            Knowledge::History => "what past jobs took",
        };
        facts.push(("Simulator", "scx_temponet’s own".into()));
        facts.push(("Simulated policies know", knows.into()));
        facts.extend(model.map(|model| ("Model of temponet", model.to_owned())));
    }
    let costs = [
        ("Preemption only every", options.quantum_ns),
        ("Decisions late by", options.decision_latency_ns),
        ("Releases seen late by", options.staleness_ns),
        ("Cost of a context switch", options.context_switch_ns),
        ("Cost of a migration", options.migration_ns),
    ];
    let paid = costs.into_iter().filter(|cost| cost.1 > 0 && simulated);
    facts.extend(paid.map(|(name, cost)| (name, format!("{} ms", to_ms(cost)))));
    facts
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

fn scheduler(outcome: &Outcome, horizon: Ns) -> PageScheduler {
    let own = |id| of_task(&outcome.jobs, id);
    let tasks = outcome.tasks.iter().enumerate();
    PageScheduler {
        name: outcome.scheduler.clone(),
        source: match &outcome.loaded {
            Some(loaded) => format!("live, {loaded}"),
            None => outcome.source.name().into(),
        },
        total: figures(&outcome.total, &outcome.jobs, horizon),
        tasks: tasks
            .map(|(id, task)| figures(&task.figures, own(id), horizon))
            .collect(),
    }
}

fn figures(figures: &Figures, jobs: &[JobRecord], horizon: Ns) -> PageFigures {
    let sorted = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        quantiles(&values)
    };
    let metrics = &figures.metrics;
    PageFigures {
        jobs: metrics.jobs,
        met: metrics.met,
        unfinished: metrics.unfinished,
        pitmd: metrics.pitmd,
        art: figures.response_p50_ms.map(|_| metrics.response_ms),
        response: sorted(responses_ms(jobs, horizon)),
        lateness: sorted(
            jobs.iter()
                .map(|job| lateness(job, horizon) as f64 / MS as f64)
                .collect(),
        ),
        slack: figures
            .rtapp_slack
            .map(|slack| (slack.mean_ms, slack.min_ms)),
    }
}

/// Of a job that was never finished: as late as the end of the time shows.
fn lateness(job: &JobRecord, horizon: Ns) -> i64 {
    job.finish.unwrap_or(horizon) as i64 - job.deadline as i64
}

/// Segments of one scheduler that a page can carry and a browser draw smoothly.
const MOST_SEGMENTS: usize = 4000;

/// Where most deadlines were missed, under whichever scheduler; where none was, the
/// closest call. The same stretch is shown for all.
fn worst(input: &Input, outcomes: &[Outcome]) -> Option<Stretch> {
    let set = &input.converted.set;
    let simulated: Vec<&Outcome> = outcomes.iter().filter(|o| !o.segments.is_empty()).collect();
    let longest = set.tasks.iter().map(|task| task.period_ns).max()?;
    let span = (4 * longest).clamp(20 * MS, 2 * SECOND).min(set.horizon_ns);
    let (outcome, anchor, misses) = simulated
        .iter()
        .filter_map(|outcome| {
            let (anchor, misses) = densest(&outcome.jobs, span)?;
            Some((outcome, anchor, misses))
        })
        // The first scheduler wins a tie.
        .rev()
        .max_by_key(|found| found.2)
        .or_else(|| {
            let job = |outcome: &&Outcome| {
                let jobs = outcome.jobs.iter();
                jobs.map(|job| (lateness(job, set.horizon_ns), job.deadline))
                    .max()
            };
            let calls = simulated.iter().filter_map(|o| Some((o, job(o)?)));
            let (outcome, (_, deadline)) = calls.max_by_key(|call| call.1 .0)?;
            Some((outcome, deadline, 0))
        })?;
    // A third of it leads up to the trouble.
    let start = anchor.saturating_sub(span / 3).min(set.horizon_ns - span);
    let end = start + span;
    let when = format!("{:.1} to {:.1} ms", to_ms(start), to_ms(end));
    let scheduler = &outcome.scheduler;
    let why = if misses == 0 {
        format!("No deadline was missed; the closest call was under {scheduler} ({when}).")
    } else {
        let here = |job: &&JobRecord| (start..=end).contains(&job.deadline);
        let missed = outcome.jobs.iter().filter(|job| job.fate != Fate::OnTime);
        let count = missed.filter(here).count();
        format!("Most deadlines were missed here: {count} under {scheduler} ({when}).")
    };
    Some(Stretch {
        why,
        start: to_ms(start),
        end: to_ms(end),
        cores: set.cores,
        runs: simulated
            .iter()
            .map(|outcome| stretch_run(outcome, start, end))
            .collect(),
        first: simulated
            .iter()
            .position(|other| other.scheduler == *scheduler)
            .unwrap_or(0),
    })
}

/// The first miss of the window of this length with most misses, and how many.
fn densest(jobs: &[JobRecord], span: Ns) -> Option<(Ns, usize)> {
    let missed = jobs.iter().filter(|job| job.fate != Fate::OnTime);
    let mut deadlines: Vec<Ns> = missed.map(|job| job.deadline).collect();
    deadlines.sort_unstable();
    // Two thirds of the stretch lie behind its anchor.
    let behind = span - span / 3;
    let mut last = 0;
    let counts = deadlines.iter().enumerate().map(|(first, &deadline)| {
        while last < deadlines.len() && deadlines[last] <= deadline + behind {
            last += 1;
        }
        (deadline, last - first)
    });
    // The earliest of equals.
    counts.reduce(|best, next| if next.1 > best.1 { next } else { best })
}

fn stretch_run(outcome: &Outcome, start: Ns, end: Ns) -> StretchRun {
    let inside = |from: Ns, to: Ns| from < end && to > start;
    let mut segments: Vec<_> = outcome
        .segments
        .iter()
        .filter(|s| inside(s.start, s.end))
        .map(|s| (s.core, s.task, s.index, to_ms(s.start), to_ms(s.end)))
        .collect();
    segments.sort_by(|a, b| a.3.total_cmp(&b.3));
    let mut jobs: Vec<_> = outcome
        .jobs
        .iter()
        .filter(|job| inside(job.release, job.deadline.max(job.finish.unwrap_or(0))))
        .map(|job| {
            let met = job.fate == Fate::OnTime;
            let finish = job.finish.map(to_ms);
            (
                job.task,
                job.index,
                to_ms(job.release),
                to_ms(job.deadline),
                finish,
                met,
            )
        })
        .collect();
    jobs.sort_by(|a, b| a.2.total_cmp(&b.2));
    let cut = segments.len() > MOST_SEGMENTS || jobs.len() > MOST_SEGMENTS;
    segments.truncate(MOST_SEGMENTS);
    jobs.truncate(MOST_SEGMENTS);
    StretchRun {
        scheduler: outcome.scheduler.clone(),
        segments,
        jobs,
        cut,
    }
}
