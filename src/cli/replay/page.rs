//! The page of `replay`, from what came out.

use anyhow::{Context, Result};

use super::columns::{self, Sheet};
use super::input::Input;
use super::live::Live;
use crate::report::html::{quantiles, Page, PageCurves, PageRun, PageTable, Stretch, StretchRun};
use crate::rtapp::outcome::{of_task, responses_ms, Outcome};
use crate::rtapp::verdict::ReplayVerdict;
use crate::sim::engine::{Fate, JobRecord, Knowledge, Options};
use crate::sim::time::{to_ms, Ns, MS, SECOND};

/// What was run, and what there is to say about it.
pub(super) struct Facts {
    pub facts: Vec<(String, String)>,
    pub notes: Vec<String>,
}

impl Facts {
    pub fn of(input: &Input, options: &Options, model: Option<&str>, live: Option<&Live>) -> Facts {
        let mut notes = input.warnings();
        notes.extend(
            live.into_iter()
                .flat_map(|live| live.collected.notes.clone()),
        );
        Facts {
            facts: facts(input, options, model, live),
            notes,
        }
    }
}

pub(super) fn of(
    input: &Input,
    facts: &Facts,
    verdict: &ReplayVerdict,
    outcomes: &[Outcome],
) -> Result<Vec<u8>> {
    let set = &input.converted.set;
    let name = |i: usize| outcomes[i].scheduler.clone();
    let best = |i: &usize| verdict.is_contest() && verdict.schedulers[*i].best;
    let critical = |name: &str, critical: bool| match critical {
        true => format!("{name} !"),
        false => name.to_owned(),
    };
    let page = Page {
        title: input.title.clone(),
        headline: verdict.headline.clone(),
        verdict: verdict
            .parts()
            .into_iter()
            .map(|(title, lines)| (title.into(), lines.into_iter().map(String::from).collect()))
            .collect(),
        facts: facts.facts.clone(),
        notes: facts.notes.clone(),
        schedulers: sheet(columns::schedulers(outcomes, &name)),
        best: (0..outcomes.len()).filter(best).collect(),
        tasks: sheet(columns::tasks(verdict, outcomes, &critical)),
        names: set.tasks.iter().map(|task| task.name.clone()).collect(),
        runs: outcomes
            .iter()
            .map(|outcome| run(outcome, set.horizon_ns))
            .collect(),
        stretch: worst(input, verdict, outcomes),
    };
    Ok(page.render().context("cannot write the page")?.into_bytes())
}

fn sheet(sheet: Sheet) -> PageTable {
    PageTable {
        table: sheet.table,
        shares: sheet.shares,
    }
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

fn run(outcome: &Outcome, horizon: Ns) -> PageRun {
    let own = |id| of_task(&outcome.jobs, id);
    let tasks = 0..outcome.tasks.len();
    PageRun {
        name: outcome.scheduler.clone(),
        all: curves(&outcome.jobs, horizon),
        tasks: tasks.map(|id| curves(own(id), horizon)).collect(),
    }
}

fn curves(jobs: &[JobRecord], horizon: Ns) -> PageCurves {
    let sorted = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        quantiles(&values)
    };
    PageCurves {
        response: sorted(responses_ms(jobs, horizon)),
        lateness: sorted(
            jobs.iter()
                .map(|job| lateness(job, horizon) as f64 / MS as f64)
                .collect(),
        ),
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
fn worst(input: &Input, verdict: &ReplayVerdict, outcomes: &[Outcome]) -> Option<Stretch> {
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
        shown: shown(verdict, &simulated, scheduler),
    })
}

/// Which runs are shown side by side at first: a winner's, and the one that it is about.
fn shown(verdict: &ReplayVerdict, runs: &[&Outcome], about: &str) -> Vec<usize> {
    let place = |name: &str| runs.iter().position(|run| run.scheduler == name);
    let about = place(about);
    let winner = verdict.winners.iter().filter_map(|name| place(name));
    let mut winner = winner.filter(|&other| Some(other) != about);
    winner.next().into_iter().chain(about).collect()
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
