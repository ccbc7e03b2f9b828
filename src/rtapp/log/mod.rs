//! rt-app's own logs: what a run was like, as jobs that can be replayed.
//!
//! This file reads rows; `recording` makes jobs of them.

mod recording;

use std::path::{Path, PathBuf};

use thiserror::Error;

pub use self::recording::{convert, Recording, RunTimes};
use super::note::{Fault, Place};

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
