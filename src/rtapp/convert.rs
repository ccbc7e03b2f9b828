//! From a workload to a task set: every thread a task, with the releases it would
//! have on an idle machine.
//!
//! A job is due when the timer that ends it expires; where `dl-deadline` or
//! `dl-period` say otherwise, they decide; without either, when its thread wakes up
//! next. A job that is none of these is never judged.

use std::collections::HashMap;

use thiserror::Error;

use super::idle_machine::{self, Due, End, IdleJob, Life, Limits, TooLong};
use super::note::{About, Note, Notes};
use super::unmodelled;
use super::workload::{Thread, Workload};
use crate::sim::task::{Task, TaskSet, TraceJob};
use crate::sim::time::{Ns, SECOND, US};

/// What a workload does not say.
#[derive(Clone, Debug, Default)]
pub struct Wishes {
    /// Simulated time; the file's duration when absent.
    pub horizon: Option<Ns>,
    pub cores: Option<usize>,
}

/// A task set, and what else is known about its tasks.
#[derive(Clone, Debug)]
pub struct Converted {
    pub set: TaskSet,
    /// By task: how much later than its deadline a job's timer expires, where a
    /// timer ends all of them. rt-app's slack counts to the timer.
    pub timer_after_deadline: Vec<Option<i64>>,
    /// By task: whose it is; nothing for what comes from no workload.
    pub origins: Vec<Origin>,
    /// Everything that is not modelled, and what the file itself gave rise to.
    pub notes: Vec<Note>,
}

/// A task's place in its workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    pub thread: usize,
    pub instance: u32,
    pub forked: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ConvertError {
    #[error("there is no \"tasks\" section, so there is nothing to simulate")]
    NoTasks,
    #[error("none of its threads has work to simulate{}", because(.0))]
    NoWork(Option<Note>),
    #[error("{0}")]
    TooLong(#[from] TooLong),
}

fn because(note: &Option<Note>) -> String {
    note.as_ref()
        .map_or(String::new(), |note| format!(": {note}"))
}

/// For threads that never end, when nobody says how long.
const DEFAULT_HORIZON: Ns = 10 * SECOND;
/// How long threads that end by themselves may take for it.
const LONGEST_WAIT: Ns = 60 * SECOND;
/// A hundred days: sums stay far from overflow.
const LONGEST_HORIZON: Ns = 100 * 24 * 3600 * SECOND;

pub fn convert(workload: &Workload, wishes: &Wishes) -> Result<Converted, ConvertError> {
    if workload.tasks_at.is_none() {
        return Err(ConvertError::NoTasks);
    }
    let mut notes = Notes::default();
    let (horizon, lives) = live(workload, wishes, &mut notes)?;
    let cores = wishes
        .cores
        .or_else(|| Some(unmodelled::named_cpus(workload)?.len()))
        .unwrap_or(1);
    unmodelled::note_all(workload, cores, &mut notes);
    let mut names = Naming::of(workload);
    let mut tasks = Vec::new();
    let mut timer_after_deadline = Vec::new();
    let mut origins = Vec::new();
    for life in &lives {
        let thread = &workload.threads[life.thread];
        unmodelled::note_life(life, thread, horizon, &mut notes);
        if life.jobs.is_empty() {
            continue;
        }
        let (task, timer) = task(life, thread, names.next(life, thread), horizon);
        tasks.push(task);
        timer_after_deadline.push(timer);
        origins.push(Origin {
            thread: life.thread,
            instance: life.instance,
            forked: life.forked,
        });
    }
    unmodelled::note_crowding(&lives, horizon, cores, &mut notes);
    let mut all = workload.notes.clone();
    all.extend(notes.into_sorted());
    if tasks.is_empty() {
        return Err(ConvertError::NoWork(all.into_iter().next()));
    }
    let set = TaskSet {
        name: "rt-app workload".into(),
        cores,
        horizon_ns: horizon,
        seed: 0,
        modes: Vec::new(),
        tasks,
    };
    Ok(Converted {
        set,
        timer_after_deadline,
        origins,
        notes: all,
    })
}

/// For as long as somebody says, or until everything has ended.
fn live(
    workload: &Workload,
    wishes: &Wishes,
    notes: &mut Notes,
) -> Result<(Ns, Vec<Life>), TooLong> {
    let told = wishes.horizon.or_else(|| {
        let seconds = workload.global.duration_s?;
        Some(Ns::from(seconds) * SECOND)
    });
    if let Some(told) = told {
        let horizon = told.clamp(1, LONGEST_HORIZON);
        return Ok((
            horizon,
            idle_machine::run(workload, Limits::until(horizon))?,
        ));
    }
    if let Ok(lives) = idle_machine::run(workload, Limits::until(LONGEST_WAIT)) {
        if let Some(end) = end_of(&lives).filter(|&end| end <= LONGEST_WAIT) {
            return Ok((end, lives));
        }
    }
    let what = "the file does not say for how long it runs; 10 s are simulated";
    notes.add(None, About::default(), what);
    let lives = idle_machine::run(workload, Limits::until(DEFAULT_HORIZON))?;
    Ok((DEFAULT_HORIZON, lives))
}

/// When everything is over, if everything ends.
fn end_of(lives: &[Life]) -> Option<Ns> {
    let ended = lives.iter().all(|life| life.end == End::Finished);
    let last = |job: &IdleJob| match job.due {
        Due::Timer(due) | Due::NextWake(due) => due.max(job.release + job.work),
        Due::Never => job.release + job.work,
    };
    let end = lives.iter().flat_map(|life| &life.jobs).map(last).max()?;
    ended.then_some(end)
}

/// Names as rt-app has them where there are several: `name-0`, `name-1`.
struct Naming<'a> {
    copies: HashMap<&'a str, u32>,
}

impl<'a> Naming<'a> {
    fn of(workload: &'a Workload) -> Self {
        let mut copies = HashMap::new();
        for thread in &workload.threads {
            *copies.entry(thread.name.as_str()).or_insert(0) += 1;
        }
        Self { copies }
    }

    fn next(&mut self, life: &Life, thread: &Thread) -> String {
        let mut name = thread.name.clone();
        if self.copies[thread.name.as_str()] > 1 {
            name += &format!("@{}", thread.at.line);
        }
        if life.forked {
            name += &format!("-fork{}", life.instance);
        } else if thread.instances > 1 {
            name += &format!("-{}", life.instance);
        }
        name
    }
}

fn task(life: &Life, thread: &Thread, name: String, horizon: Ns) -> (Task, Option<i64>) {
    // Whatever is never due must not come before what is.
    let far = 2 * horizon + life.jobs.iter().map(|job| job.work).max().unwrap_or(0);
    let (mut release, mut deadline) = (0, 0);
    let jobs: Vec<TraceJob> = life
        .jobs
        .iter()
        .map(|job| {
            release = job.release.max(release);
            let due = match (thread.declared_deadline_us(job.phase), job.due) {
                (_, Due::Never) if life.end == End::Hog => far,
                (Some(relative_us), _) => release + relative_us * US,
                (None, Due::Timer(due) | Due::NextWake(due)) => due,
                (None, Due::Never) => far,
            };
            // Due before it starts: a sleep that outlasts the timer behind it.
            deadline = due.max(release + 1).max(deadline);
            TraceJob {
                release_ns: release,
                execution_ns: job.work,
                deadline_ns: Some(deadline),
            }
        })
        .collect();
    let timer = timer_offset(&life.jobs, &jobs, horizon);
    let going = life.end == End::Going;
    let task = match rhythm(&jobs, horizon).filter(|_| going) {
        Some(task) => Task { name, ..task },
        None => Task::traced(name, jobs, horizon),
    };
    let nice = thread.nice();
    (Task { nice, ..task }, timer)
}

fn timer_offset(idle: &[IdleJob], jobs: &[TraceJob], horizon: Ns) -> Option<i64> {
    let mut offsets = idle.iter().zip(jobs).filter_map(|(idle, job)| {
        let deadline = job.deadline_ns.filter(|&deadline| deadline <= horizon)?;
        Some(match idle.due {
            Due::Timer(due) => Some(due as i64 - deadline as i64),
            Due::NextWake(_) | Due::Never => None,
        })
    });
    let first = offsets.next()??;
    offsets.all(|offset| offset == Some(first)).then_some(first)
}

/// The periodic task that these jobs are, when they are one: policies may know when
/// such a task is released next, which a trace does not tell them. The last job may
/// be cut short by the end of the time.
fn rhythm(jobs: &[TraceJob], horizon: Ns) -> Option<Task> {
    let (first, second) = (jobs.first()?, jobs.get(1)?);
    let relative = |job: &TraceJob| job.deadline_ns.map(|deadline| deadline - job.release_ns);
    let period = second.release_ns - first.release_ns;
    let (work, deadline) = (first.execution_ns, relative(first)?);
    let whole = &jobs[..jobs.len() - 1];
    let last = jobs.last()?;
    let steady = period > 0
        && jobs
            .windows(2)
            .all(|w| w[1].release_ns - w[0].release_ns == period)
        && whole
            .iter()
            .all(|j| j.execution_ns == work && relative(j) == Some(deadline))
        && last.execution_ns <= work
        && last.release_ns + period >= horizon;
    steady.then(|| Task {
        deadline_ns: deadline,
        offset_ns: first.release_ns,
        ..Task::periodic("", period, work)
    })
}
