//! rt-app's own logs: what a run was like, as jobs that can be replayed.
//!
//! A row is one turn of a phase. With a timer in it, the timer's expiry is what the
//! job was due at: rt-app's `slack` is that less the time the work was done, and a
//! release is that less the configured period, whether the timer's grid is absolute
//! or has moved. Without a timer a job is released when its row starts and due when
//! it ends.

use std::path::{Path, PathBuf};

use thiserror::Error;

use super::convert::{traced, Converted};
use super::note::{About, Fault, Notes, Place};
use crate::sim::engine::{Fate, JobRecord, TaskId};
use crate::sim::task::{TaskSet, TraceJob};
use crate::sim::time::{Ns, US};

/// Rows in all files together; an hour of a thousand jobs a second.
const MOST_ROWS: usize = 4_000_000;
const COLUMNS: [&str; 11] = [
    "idx",
    "perf",
    "run",
    "period",
    "start",
    "end",
    "rel_st",
    "slack",
    "c_duration",
    "c_period",
    "wu_lat",
];

/// What is used of a row; microseconds, as there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Wall-clock time of the `run` events: preemption counts.
    pub run: u64,
    pub start: u64,
    pub end: u64,
    /// Expiry of the timer less the time the work was done; negative: overrun.
    pub slack: i64,
    pub c_duration: u64,
    pub c_period: u64,
    /// From the timer's expiry to being awake; 0 after an overrun.
    pub wu_lat: u64,
}

#[derive(Clone, Debug)]
pub struct Log {
    pub name: String,
    pub rows: Vec<Row>,
}

#[derive(Debug, Error)]
pub enum LogError {
    #[error("cannot read {path}: {reason}")]
    Read { path: PathBuf, reason: String },
    #[error("{path}:{fault}")]
    Content { path: PathBuf, fault: Fault },
    #[error("there is no file ending in .log in {0}")]
    EmptyFolder(PathBuf),
    #[error("the logs have more than {MOST_ROWS} rows")]
    TooLong,
    #[error("the logs have no row with work in it; with \"log_size\": \"file\" rt-app 1.0 writes headings only")]
    NoWork,
}

/// What a replayed job takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunTimes {
    /// The `run` column.
    Measured,
    /// The `c_duration` column: the work that was asked for.
    Configured,
}

/// Files ending in `.log` of a folder, in order of their names; a file is itself.
pub fn files(path: &Path) -> Result<Vec<PathBuf>, LogError> {
    if !path.is_dir() {
        return Ok(vec![path.into()]);
    }
    let failed = |e: std::io::Error| LogError::Read {
        path: path.into(),
        reason: e.to_string(),
    };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path).map_err(failed)? {
        let file = entry.map_err(failed)?.path();
        if file.extension().is_some_and(|end| end == "log") {
            files.push(file);
        }
    }
    files.sort();
    match files.is_empty() {
        true => Err(LogError::EmptyFolder(path.into())),
        false => Ok(files),
    }
}

pub fn load(paths: &[PathBuf]) -> Result<Vec<Log>, LogError> {
    let mut logs = Vec::new();
    let mut rows = 0;
    for (path, name) in paths.iter().zip(names(paths)) {
        let text = std::fs::read(path).map_err(|e| LogError::Read {
            path: path.clone(),
            reason: e.to_string(),
        })?;
        let log = Log {
            name,
            rows: read(&text).map_err(|fault| LogError::Content {
                path: path.clone(),
                fault,
            })?,
        };
        rows += log.rows.len();
        if rows > MOST_ROWS {
            return Err(LogError::TooLong);
        }
        logs.push(log);
    }
    Ok(logs)
}

/// The files' names without their ending and what all of them begin with.
fn names(paths: &[PathBuf]) -> Vec<String> {
    let stems: Vec<String> = paths
        .iter()
        .map(|path| {
            path.file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    let common = match stems.as_slice() {
        [one] => one
            .strip_prefix("rt-app-")
            .map_or(0, |rest| one.len() - rest.len()),
        several => several.iter().fold(several[0].len(), |length, stem| {
            let same = stem.bytes().zip(several[0].bytes()).take(length);
            same.take_while(|(a, b)| a == b).count()
        }),
    };
    // Whole words only: rt-app joins base name, thread and number with dashes.
    let cut = stems[0][..stems[0].floor_char_boundary(common)]
        .rfind('-')
        .map_or(0, |at| at + 1);
    stems.iter().map(|stem| stem[cut..].to_owned()).collect()
}

pub fn read(text: &[u8]) -> Result<Vec<Row>, Fault> {
    let mut columns: Vec<usize> = (0..COLUMNS.len()).collect();
    let mut rows = Vec::new();
    for (i, line) in text.split(|&byte| byte == b'\n').enumerate() {
        let line_number = i as u32 + 1;
        let line = String::from_utf8_lossy(line);
        if let Some(head) = line.trim_start().strip_prefix('#') {
            // Other remarks, such as the thread's policy, begin the same way.
            if head.trim_start().starts_with("idx") {
                columns = columns_of(head, line_number)?;
            }
        } else if !line.trim().is_empty() {
            rows.push(row(&line, &columns, line_number)?);
        }
    }
    Ok(rows)
}

/// Where each known column stands, by the heading.
fn columns_of(head: &str, line: u32) -> Result<Vec<usize>, Fault> {
    let words: Vec<&str> = head.split_whitespace().collect();
    COLUMNS
        .iter()
        .map(|name| {
            words.iter().position(|word| word == name).ok_or_else(|| {
                let what = format!("this is no heading of an rt-app log: no column {name:?}");
                Fault::new(Place { line, column: 1 }, what)
            })
        })
        .collect()
}

fn row(line: &str, columns: &[usize], number: u32) -> Result<Row, Fault> {
    let cells: Vec<&str> = line.split_ascii_whitespace().collect();
    let figure = |name: &str| -> Result<i64, Fault> {
        let known = COLUMNS.iter().position(|column| *column == name);
        let cell = known.and_then(|i| cells.get(columns[i]).copied());
        // Beyond these no sum of times can be trusted.
        let figure = cell.and_then(|cell| cell.parse().ok());
        figure
            .filter(|figure: &i64| figure.abs() < 1 << 50)
            .ok_or_else(|| {
                let column = cell.map_or(line.len(), |cell| {
                    cell.as_ptr() as usize - line.as_ptr() as usize
                });
                let at = Place {
                    line: number,
                    column: column as u32 + 1,
                };
                Fault::new(at, format!("the column {name} must hold a whole number"))
            })
    };
    let count = |name| Ok(figure(name)?.max(0) as u64);
    Ok(Row {
        run: count("run")?,
        start: count("start")?,
        end: count("end")?,
        slack: figure("slack")?,
        c_duration: count("c_duration")?,
        c_period: count("c_period")?,
        // Where threads share a timer, rt-app 1.0 may take the later time from the
        // earlier one and print what is left of it without a sign.
        wu_lat: match count("wu_lat") {
            Ok(late) => late,
            Err(_) if cells.len() >= COLUMNS.len() => 0,
            Err(fault) => return Err(fault),
        },
    })
}

/// A recording: jobs to replay, and what became of them when they were recorded.
#[derive(Clone, Debug)]
pub struct Recording {
    pub converted: Converted,
    pub fates: Vec<JobRecord>,
}

/// One row in absolute microseconds.
struct Job {
    release: u64,
    due: u64,
    finish: u64,
    work: u64,
    timed: bool,
}

impl Row {
    fn job(&self, run_times: RunTimes) -> Job {
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
        tasks.push(traced((*name).to_owned(), trace, horizon));
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
