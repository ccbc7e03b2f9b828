//! From rows to jobs.
//!
//! A row is one turn of a phase. With a timer in it, the timer's expiry is what the
//! job was due at: rt-app's `slack` is that less the time the work was done, and a
//! release is that less the configured period, whether the timer's grid is absolute
//! or has moved. Without a timer a job is released when its row starts and due when
//! it ends.

use super::{Log, LogError, Row};
use crate::rtapp::convert::Converted;
use crate::rtapp::note::{About, Notes};
use crate::sim::engine::{Fate, JobRecord, TaskId};
use crate::sim::task::{Task, TaskSet, TraceJob};
use crate::sim::time::{Ns, US};

/// What a replayed job takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunTimes {
    /// The `run` column.
    Measured,
    /// The `c_duration` column: the work that was asked for.
    Configured,
}

/// A recording: jobs to replay, and what became of them when they were recorded.
#[derive(Clone, Debug)]
pub struct Recording {
    pub converted: Converted,
    pub fates: Vec<JobRecord>,
}

/// One row in absolute microseconds.
pub(in crate::rtapp) struct Job {
    pub release: u64,
    pub due: u64,
    pub finish: u64,
    pub work: u64,
    pub timed: bool,
}

impl Row {
    pub(in crate::rtapp) fn job(&self, run_times: RunTimes) -> Job {
        let work = match run_times {
            RunTimes::Measured => self.run,
            RunTimes::Configured => self.c_duration,
        };
        if self.c_period == 0 {
            return Job {
                release: self.start,
                due: self.end.max(self.start + 1),
                finish: (self.start + self.run).min(self.end),
                work,
                timed: false,
            };
        }
        // After an overrun there was no sleep: the row ends when the work did.
        let due = match self.slack {
            0.. => self.end.saturating_sub(self.wu_lat),
            late => self.end.saturating_sub(late.unsigned_abs()),
        };
        Job {
            // A shared timer's period is only a part of the thread's.
            release: due.saturating_sub(self.c_period).min(self.start),
            due,
            finish: due.saturating_add_signed(-self.slack),
            work,
            timed: true,
        }
    }
}

pub fn convert(logs: &[Log], run_times: RunTimes, cores: usize) -> Result<Recording, LogError> {
    let mut notes = Notes::default();
    let mut threads: Vec<(&str, Vec<Job>)> = Vec::new();
    for log in logs {
        let about = About {
            thread: Some(&log.name),
            phase: None,
        };
        let mut jobs: Vec<Job> = log.rows.iter().map(|row| row.job(run_times)).collect();
        let rows = jobs.len();
        jobs.retain(|job| job.work > 0);
        if jobs.len() < rows {
            let what = format!("{} of {rows} rows have no work in them", rows - jobs.len());
            notes.add(None, about, what);
        }
        if jobs.iter().any(|job| !job.timed) {
            let what = "rows without a timer: released when they start, due when they end";
            notes.add(None, about, what);
        }
        if !jobs.is_empty() {
            jobs.sort_by_key(|job| job.release);
            threads.push((&log.name, jobs));
        }
    }
    let all = || threads.iter().flat_map(|(_, jobs)| jobs);
    let origin = all().map(|job| job.release).min().ok_or(LogError::NoWork)?;
    let end = all()
        .map(|job| job.due.max(job.finish))
        .max()
        .unwrap_or(origin);
    let ns = |us: u64| us.saturating_sub(origin) * US;
    let horizon = ns(end).max(1);
    for log in logs {
        note_silence(log, end, &mut notes);
    }
    note_preemption(logs, run_times, &mut notes);
    let mut fates = Vec::new();
    let mut tasks = Vec::new();
    let mut timer_after_deadline = Vec::new();
    for (id, (name, jobs)) in threads.iter().enumerate() {
        timer_after_deadline.push(jobs.iter().all(|job| job.timed).then_some(0));
        let (mut last, mut trace) = (0, Vec::with_capacity(jobs.len()));
        for (index, job) in jobs.iter().enumerate() {
            // Clocks are read microseconds apart; deadlines must not go back.
            let (release, finish) = (ns(job.release), ns(job.finish));
            last = ns(job.due).max(release + 1).max(last);
            trace.push(TraceJob {
                release_ns: release,
                execution_ns: job.work * US,
                deadline_ns: Some(last),
            });
            fates.push(fate(id, index, release, last, finish));
        }
        tasks.push(Task::traced((*name).to_owned(), trace, horizon));
    }
    let set = TaskSet {
        name: "rt-app log".into(),
        cores,
        horizon_ns: horizon,
        seed: 0,
        modes: Vec::new(),
        tasks,
    };
    let converted = Converted {
        set,
        timer_after_deadline,
        origins: Vec::new(),
        notes: notes.into_sorted(),
    };
    Ok(Recording { converted, fates })
}

fn fate(task: usize, index: usize, release: Ns, deadline: Ns, finish: Ns) -> JobRecord {
    JobRecord {
        task: task as TaskId,
        index: index as u32,
        release,
        deadline,
        finish: Some(finish.max(release)),
        fate: match finish <= deadline {
            true => Fate::OnTime,
            false => Fate::Late,
        },
    }
}

/// A row is written when its work is done: a thread that starved wrote none.
fn note_silence(log: &Log, end: u64, notes: &mut Notes) {
    let Some(last) = log.rows.last().filter(|row| row.c_period > 0) else {
        return;
    };
    let missing = end.saturating_sub(last.end) / last.c_period;
    if missing > 2 {
        let about = About {
            thread: Some(&log.name),
            phase: None,
        };
        let what = format!(
            "its log ends {missing} periods before the others: it had ended, or it starved, and \
             then fewer of its jobs are judged than were released"
        );
        notes.add(None, about, what);
    }
}

/// `run` is wall-clock time: a preempted job seems to need more than it did.
fn note_preemption(logs: &[Log], run_times: RunTimes, notes: &mut Notes) {
    let sum = |of: fn(&Row) -> u64| -> u64 { logs.iter().flat_map(|log| &log.rows).map(of).sum() };
    let (run, asked) = (sum(|row| row.run), sum(|row| row.c_duration));
    if run_times == RunTimes::Measured && asked > 0 && run > asked + asked / 20 {
        let more = (run as f64 / asked as f64 - 1.0) * 100.0;
        let what = format!(
            "measured run times are {more:.0} % above the configured ones: they count the time \
             that threads were preempted, or the CPU was slower than calibrated (--run-times \
             configured takes the others)"
        );
        notes.add(None, About::default(), what);
    }
}
