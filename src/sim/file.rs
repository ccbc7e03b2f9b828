//! Task sets as files: save, edit, replay. TOML or JSON, told apart by the name.

use std::path::{Path, PathBuf};

use thiserror::Error;

use super::task::{Arrival, Declaration, Execution, Task, TaskSet};
use super::time::Ns;
use crate::draft;
use crate::report::file::{called, read_whole};
use crate::spelling::nearest;

#[derive(Debug, Error)]
pub enum FileError {
    #[error("cannot read {path}: {reason}")]
    Read { path: PathBuf, reason: String },
    #[error("cannot write {path}: {reason}")]
    Write { path: PathBuf, reason: String },
    #[error("{path}, line {line}: {reason}")]
    Syntax {
        path: PathBuf,
        line: usize,
        reason: String,
    },
    #[error("{path}: the name must end in .toml or .json")]
    Format { path: PathBuf },
}

/// Longer than anybody simulates, short enough that no sum overflows.
const LONGEST: Ns = 1 << 60;

impl TaskSet {
    pub fn load(path: &Path) -> Result<TaskSet, FileError> {
        let failed = |reason: String| FileError::Read {
            path: path.into(),
            reason,
        };
        let bytes = read_whole(path).map_err(|e| failed(e.to_string()))?;
        let text = String::from_utf8(bytes).map_err(|e| failed(e.to_string()))?;
        TaskSet::parse(called(path), &text)
    }

    /// Checks the text of a file; `path` says the format, and is for messages.
    pub fn parse(path: &Path, text: &str) -> Result<TaskSet, FileError> {
        let syntax = |line, reason| FileError::Syntax {
            path: path.into(),
            line,
            reason,
        };
        let set: TaskSet = match extension(path).or_else(|| nameless(path, text)) {
            Some("json") => {
                serde_json::from_str(text).map_err(|e| syntax(e.line(), meant(&e.to_string())))?
            }
            Some("toml") => toml::from_str(text).map_err(|e| {
                let line = e.span().map_or(1, |s| line_of(text, s.start));
                syntax(line, meant(e.message()))
            })?,
            _ => return Err(FileError::Format { path: path.into() }),
        };
        set.check().map_err(|wrong| {
            let line = wrong.task.map_or(1, |i| line_of_task(text, i));
            syntax(line, wrong.to_string())
        })?;
        Ok(set)
    }

    /// Writes the whole file or nothing.
    pub fn save(&self, path: &Path) -> Result<(), FileError> {
        let failed = |reason: String| FileError::Write {
            path: path.into(),
            reason,
        };
        let text = match extension(path) {
            Some("json") => {
                serde_json::to_string_pretty(self).map_err(|e| failed(e.to_string()))? + "\n"
            }
            Some("toml") => toml::to_string_pretty(self).map_err(|e| failed(e.to_string()))?,
            _ => return Err(FileError::Format { path: path.into() }),
        };
        draft::replace(path, text.as_bytes()).map_err(|e| failed(e.to_string()))
    }

    /// What a parser cannot see: values that make no sense.
    pub fn check(&self) -> Result<(), Wrong> {
        let set = |reason: &str| Wrong {
            task: None,
            name: String::new(),
            reason: reason.to_owned(),
        };
        if self.cores == 0 || self.cores > 4096 {
            return Err(set("cores must be between 1 and 4096"));
        }
        if self.horizon_ns == 0 || self.horizon_ns > LONGEST {
            return Err(set("horizon_ns must be above zero and below 36 years"));
        }
        if self.tasks.is_empty() {
            return Err(set("there are no tasks"));
        }
        if self.modes.iter().any(|m| !(m.rate > 0.0 && m.rate < 1e6)) {
            return Err(set("the rate of a mode must be above zero"));
        }
        if self
            .modes
            .windows(2)
            .any(|w| w[0].start_ns >= w[1].start_ns)
        {
            return Err(set("modes must be in order of their start"));
        }
        for (i, task) in self.tasks.iter().enumerate() {
            if let Some(reason) = wrong_with(task) {
                return Err(Wrong {
                    task: Some(i),
                    name: task.name.clone(),
                    reason: reason.to_owned(),
                });
            }
        }
        Ok(())
    }
}

/// A value that makes no sense, and whose it is.
#[derive(Debug)]
pub struct Wrong {
    task: Option<usize>,
    name: String,
    reason: String,
}

impl std::fmt::Display for Wrong {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self.task {
            Some(i) => write!(f, "task {} ({:?}): {}", i + 1, self.name, self.reason),
            None => write!(f, "{}", self.reason),
        }
    }
}

impl std::error::Error for Wrong {}

fn wrong_with(task: &Task) -> Option<&'static str> {
    let times = [task.period_ns, task.wcet_ns, task.deadline_ns];
    if times.contains(&0) {
        return Some("period_ns, wcet_ns and deadline_ns must be above zero");
    }
    if times.iter().any(|&t| t > LONGEST) || task.offset_ns > LONGEST {
        return Some("a time is longer than 36 years");
    }
    if let Declaration::Runtime(runtime) = task.declared {
        if runtime == 0 || runtime > LONGEST {
            return Some("the declared runtime must be above zero and below 36 years");
        }
    }
    if task.end_ns.is_some_and(|end| end > LONGEST) {
        return Some("end_ns is later than 36 years");
    }
    if !(-20..=19).contains(&task.nice) {
        return Some("nice must be within -20 and 19");
    }
    match &task.arrival {
        Arrival::Bursty { burst, spacing_ns } => {
            if *burst == 0 {
                return Some("a burst has at least one job");
            }
            if *spacing_ns > task.period_ns {
                return Some("spacing_ns of a burst must not exceed the period");
            }
        }
        Arrival::Trace(jobs) => {
            if jobs.windows(2).any(|w| w[1].release_ns < w[0].release_ns) {
                return Some("trace jobs must be in order of release");
            }
            let deadline = |j: &super::task::TraceJob| {
                j.deadline_ns
                    .unwrap_or(j.release_ns.saturating_add(task.deadline_ns))
            };
            if jobs.windows(2).any(|w| deadline(&w[1]) < deadline(&w[0])) {
                return Some("deadlines of trace jobs must not go back in time");
            }
            if jobs
                .iter()
                .any(|j| deadline(j) <= j.release_ns || deadline(j) > LONGEST)
            {
                return Some("a trace job's deadline must come after its release");
            }
        }
        Arrival::Sporadic { mean_delay_ns } if *mean_delay_ns > LONGEST => {
            return Some("mean_delay_ns is longer than 36 years");
        }
        Arrival::Periodic | Arrival::Sporadic { .. } => {}
    }
    let share = |x: f64| x > 0.0 && x <= 1000.0;
    let sane = match task.execution {
        Execution::Wcet => true,
        Execution::Uniform { low, high } => share(low) && share(high) && low <= high,
        Execution::Overrun {
            low,
            probability,
            factor,
        } => {
            share(low)
                && low <= 1.0
                && (0.0..=1.0).contains(&probability)
                && (1.0..=1000.0).contains(&factor)
        }
        Execution::HeavyTail { low, alpha, cap } => {
            share(low) && share(alpha) && share(cap) && low <= cap
        }
        Execution::OneIn { jobs, share: short } => jobs > 0 && share(short),
        Execution::Drift { from, to } => share(from) && share(to),
    };
    (!sane).then_some("the execution shares must be positive, in order and at most 1000")
}

/// Adds which field somebody meant to "unknown field `wcet`, expected one of `name`, …".
fn meant(message: &str) -> String {
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    let meant = match quoted.split_first() {
        Some((unknown, known)) if message.starts_with("unknown field") => {
            // Units are easily left out.
            let with_unit = format!("{unknown}_ns");
            nearest(&[unknown, &with_unit], known)
        }
        _ => None,
    };
    match meant {
        Some(meant) => format!("{message}; did you mean `{meant}`?"),
        None => message.to_owned(),
    }
}

/// Standard input and `<(command)` have no ending: JSON begins with a bracket, TOML never.
fn nameless(path: &Path, text: &str) -> Option<&'static str> {
    path.extension()
        .is_none()
        .then(|| match text.trim_start().starts_with('{') {
            true => "json",
            false => "toml",
        })
}

fn extension(path: &Path) -> Option<&str> {
    path.extension().and_then(|e| e.to_str())
}

fn line_of(text: &str, offset: usize) -> usize {
    text.as_bytes()[..offset.min(text.len())]
        .iter()
        .filter(|&&b| b == b'\n')
        .count()
        + 1
}

/// Where the i-th task starts: every task has exactly one period.
fn line_of_task(text: &str, index: usize) -> usize {
    text.lines()
        .enumerate()
        .filter(|(_, line)| line.contains("period_ns"))
        .nth(index)
        .map_or(1, |(i, _)| i + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::workload::{Params, WORKLOADS};

    fn scratch(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("taskset-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        folder.join(name)
    }

    #[test]
    fn every_workload_survives_saving_and_loading() {
        for workload in WORKLOADS {
            let set = workload.generate(&Params::default(), 3, 1);
            for name in ["set.toml", "set.json"] {
                let path = scratch(&format!("{}-{name}", workload.name));
                set.save(&path).unwrap();
                assert_eq!(TaskSet::load(&path).unwrap(), set, "{}", workload.name);
            }
        }
    }

    #[test]
    fn a_bad_file_is_refused_with_its_line_and_the_reason() {
        let good = "name = 'x'\ncores = 1\nhorizon_ns = 1000\n[[tasks]]\nname = 'a'\nperiod_ns = 10\nwcet_ns = 1\ndeadline_ns = 10\n";
        let cases = [
            (
                good.replace("wcet_ns = 1\n", "wcet_ns = 0\n"),
                "line 6: task 1 (\"a\"): period_ns, wcet_ns and deadline_ns must be above zero",
            ),
            (
                good.replace("wcet_ns = 1\n", "wcet_ns = 'one'\n"),
                "line 7: invalid type",
            ),
            (
                good.replace("wcet_ns", "wcet"),
                "line 7: unknown field `wcet`",
            ),
            (good.replace("wcet_ns", "wcet"), "did you mean `wcet_ns`?"),
            (
                good.replace("horizon_ns", "horizn_ns"),
                "did you mean `horizon_ns`?",
            ),
            (
                good.replace("cores = 1", "cores = 0"),
                "cores must be between",
            ),
            (good.replace("cores = 1", "cores = "), "line 2"),
        ];
        for (i, (text, expected)) in cases.iter().enumerate() {
            let path = scratch(&format!("bad{i}.toml"));
            std::fs::write(&path, text).unwrap();
            let message = TaskSet::load(&path).unwrap_err().to_string();
            assert!(
                message.contains(expected),
                "{message} should contain {expected}"
            );
        }
    }
}
