//! What is replayed: a workload, or logs.

use std::path::{Path, PathBuf};

use anyhow::{bail, ensure, Context, Result};

use super::{ReplayArgs, RunTimesArg};
use crate::report::file::{called, read_whole};
use crate::rtapp::convert::{self, Converted, Wishes};
use crate::rtapp::log::{self, RunTimes};
use crate::rtapp::note::grouped;
use crate::rtapp::outcome::{self, Outcome};
use crate::rtapp::verdict::work_of;
use crate::rtapp::{Note, Workload};
use crate::sim::engine::JobRecord;
use crate::sim::task::TaskSet;

/// How many cores a workload runs on; nothing said: as the workload names.
pub type CoresOf<'a> = &'a dyn Fn(&Workload) -> Result<Option<usize>>;

pub struct Input {
    pub title: String,
    /// The workload, for the places in notes; logs have none.
    file: Option<PathBuf>,
    pub converted: Converted,
    pub workload: Option<Workload>,
    /// The workload as it was read.
    pub text: Vec<u8>,
    fates: Option<Vec<JobRecord>>,
}

impl Input {
    /// `cores` says how many a workload has where the command does not.
    pub fn read(args: &ReplayArgs, cores: CoresOf) -> Result<Input> {
        let is_log = |path: &Path| path.is_dir() || path.extension().is_some_and(|e| e == "log");
        let logs = args.inputs.iter().filter(|path| is_log(path)).count();
        let mut input = if logs == args.inputs.len() {
            Input::of_logs(args)?
        } else if logs == 0 && args.inputs.len() == 1 {
            let path = &args.inputs[0];
            // Once: a pipe cannot be read again.
            let text =
                read_whole(path).with_context(|| format!("cannot read {}", path.display()))?;
            let file = called(path);
            match is_task_set(path, &text) {
                true => Input::of_task_set(file, &text, args)?,
                false => Input::of_workload(file, text, args, cores)?,
            }
        } else {
            bail!("replay takes one workload, or logs, but not several workloads or both");
        };
        mark_critical(&mut input.converted.set, &args.critical)?;
        input.converted.set.check()?;
        Ok(input)
    }

    fn of_workload(path: &Path, text: Vec<u8>, args: &ReplayArgs, cores: CoresOf) -> Result<Input> {
        let workload = Workload::of(path, &text)?;
        let wishes = Wishes {
            horizon: args.horizon,
            cores: cores(&workload)?,
        };
        ensure!(args.horizon != Some(0), "--horizon must be above zero");
        let converted = convert::convert(&workload, &wishes)
            .with_context(|| format!("cannot simulate {}", path.display()))?;
        Ok(Input {
            title: name_of(path),
            file: Some(path.into()),
            converted,
            workload: Some(workload),
            text,
            fates: None,
        })
    }

    /// A saved set, or a recording.
    fn of_task_set(path: &Path, text: &[u8], args: &ReplayArgs) -> Result<Input> {
        let text =
            std::str::from_utf8(text).with_context(|| format!("cannot read {}", path.display()))?;
        let mut set = TaskSet::parse(path, text)?;
        set.cores = args.cores.map_or(set.cores, usize::from);
        if let Some(horizon) = args.horizon {
            ensure!(
                horizon > 0 && horizon <= set.horizon_ns,
                "--horizon must be above zero and at most the set's {} s",
                set.horizon_ns as f64 / 1e9
            );
            set.horizon_ns = horizon;
        }
        let about = Note {
            at: Vec::new(),
            thread: None,
            phase: None,
            what: set.name.clone(),
        };
        let tasks = set.tasks.len();
        Ok(Input {
            title: name_of(path),
            file: Some(path.into()),
            converted: Converted {
                set,
                timer_after_deadline: vec![None; tasks],
                origins: Vec::new(),
                notes: vec![about],
            },
            workload: None,
            text: Vec::new(),
            fates: None,
        })
    }

    fn of_logs(args: &ReplayArgs) -> Result<Input> {
        ensure!(
            args.horizon.is_none(),
            "--horizon is for workloads; logs are replayed as long as they are"
        );
        let mut files = Vec::new();
        for path in &args.inputs {
            files.extend(log::files(path)?);
        }
        let run_times = match args.run_times {
            RunTimesArg::Measured => RunTimes::Measured,
            RunTimesArg::Configured => RunTimes::Configured,
        };
        let cores = args.cores.map_or(1, usize::from);
        let recording = log::convert(&log::load(&files)?, run_times, cores)?;
        Ok(Input {
            title: match args.inputs.as_slice() {
                [one] => name_of(one),
                several => format!("{} logs", several.len()),
            },
            file: None,
            converted: recording.converted,
            workload: None,
            text: Vec::new(),
            fates: Some(recording.fates),
        })
    }

    /// What the logs say became of the jobs.
    pub fn recorded(&self) -> Option<Outcome> {
        let fates = self.fates.clone()?;
        Some(outcome::recorded(&self.converted, fates))
    }

    /// Everything there is to know about the file, each thing once, with its places.
    pub fn warnings(&self) -> Vec<String> {
        let file = self
            .file
            .as_ref()
            .map(|path| format!("{}: ", path.display()));
        let file = file.unwrap_or_default();
        grouped(&self.converted.notes)
            .into_iter()
            .map(|(what, places)| match places.is_empty() {
                true => format!("{file}{what}"),
                false => format!("{file}{what}\n    at {}", places.join("; ")),
            })
            .collect()
    }

    /// CPUs that the jobs ask for on average.
    pub fn demand(&self) -> f64 {
        let set = &self.converted.set;
        let work: u128 = (0..set.tasks.len()).map(|task| work_of(set, task)).sum();
        work as f64 / set.horizon_ns as f64
    }
}

/// The tasks of a set are a list, those of rt-app's files an object. TOML is always a set.
fn is_task_set(path: &Path, text: &[u8]) -> bool {
    let text = String::from_utf8_lossy(text);
    let ending = path.extension().and_then(|ending| ending.to_str());
    // A pipe has no ending.
    let is_toml = ending == Some("toml") || (ending.is_none() && text.contains("[[tasks]]"));
    is_toml
        || text.split("\"tasks\"").skip(1).any(|rest| {
            let value = rest.trim_start().strip_prefix(':');
            value.is_some_and(|value| value.trim_start().starts_with('['))
        })
}

fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    name.to_string_lossy().into_owned()
}

/// A name stands for a thread with all of its instances and forks.
fn mark_critical(set: &mut TaskSet, critical: &[String]) -> Result<()> {
    for name in critical {
        let mut found = false;
        for task in &mut set.tasks {
            let rest = task.name.strip_prefix(name.as_str());
            if rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '@'])) {
                task.criticality = 1;
                found = true;
            }
        }
        if !found {
            let names: Vec<&str> = set.tasks.iter().map(|task| task.name.as_str()).collect();
            bail!(
                "there is no thread {name:?} with work; threads are {}",
                names.join(", ")
            );
        }
    }
    Ok(())
}
