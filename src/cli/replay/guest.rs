//! `--vm`: the same live run in a guest that scripts/vm boots, for machines whose
//! own kernel has no sched_ext, and for figures that do not depend on the host.

use std::process::Stdio;
use std::sync::atomic::AtomicBool;

use anyhow::{ensure, Context, Result};

use super::input::Input;
use super::{CalibrationArg, ReplayArgs};
use crate::report::file::write_whole;
use crate::rtapp::live::vm::{self, Guest, FEWEST_CPUS};
use crate::rtapp::live::{bound_to, Collected, Entrant, Scratch};
use crate::rtapp::Workload;
use crate::sim::time::SECOND;

/// Before and after a scheduler's run: loading, lead, tail, unloading.
const AROUND_A_RUN_S: u64 = 8;

pub fn cpus_wanted(workload: &Workload, cores: Option<usize>) -> usize {
    let named = bound_to(workload).max().map_or(0, |cpu| cpu as usize + 1);
    FEWEST_CPUS.max(cores.unwrap_or(0)).max(named)
}

pub fn run(
    args: &ReplayArgs,
    entrants: &[Entrant],
    input: &Input,
    kernel: &str,
    cpus: usize,
    stop: &AtomicBool,
) -> Result<Collected> {
    let scratch = Scratch::new()?;
    let out = scratch.path().join("out");
    // As it was read: what came through a pipe is in no file.
    let workload = scratch.path().join("workload.json");
    write_whole(&workload, &input.text)?;
    let horizon = input.converted.set.horizon_ns;
    let mut files = vec![(workload, "/plan/workload.json")];
    files.extend(args.model.clone().map(|model| (model, "/plan/model.onnx")));
    let guest = Guest {
        kernel,
        mode: args.vm_mode.name(),
        cpus,
        seconds: (horizon / SECOND + AROUND_A_RUN_S) * entrants.len() as u64,
        infers: entrants.iter().any(Entrant::wants_model),
        files,
        out: Some(&out),
        command: command(args, entrants, horizon),
    };
    let status = vm::wait(&mut guest.start(Stdio::null())?, stop)?;
    // The guest's own status 1: somebody failed, and the results say who.
    let known = matches!(status.code(), Some(0 | 1));
    ensure!(known, "the guest failed ({status})");
    let file = out.join("collected.json");
    let text = std::fs::read_to_string(&file).context("the guest brought no results back")?;
    Collected::from_json(&text, &input.converted)
}

fn command(args: &ReplayArgs, entrants: &[Entrant], horizon: u64) -> Vec<String> {
    let names: Vec<&str> = entrants.iter().map(|e| e.name.as_str()).collect();
    // What a workload could overwrite in a guest is gone with it.
    let mut words: Vec<String> = [
        "scx_temponet",
        "replay",
        "/plan/workload.json",
        "--live",
        "--trust-workload",
    ]
    .map(String::from)
    .into();
    let mut add = |option: &str, value: String| words.extend([option.to_owned(), value]);
    add("--against", names.join(","));
    add("--horizon", format!("{horizon}ns"));
    add("--collect", "/out/collected.json".into());
    if let Some(cores) = args.cores {
        add("--cores", cores.to_string());
    }
    if !args.critical.is_empty() {
        add("--critical", args.critical.join(","));
    }
    if args.calibration == CalibrationArg::File {
        add("--calibration", "file".into());
    }
    if args.model.is_some() {
        add("--model", "/plan/model.onnx".into());
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_has_every_cpu_that_a_workload_names() {
        let parse = |text: &str| Workload::parse(text.as_bytes()).unwrap();
        let free = parse(r#"{"tasks": {"a": {"run": 1, "sleep": 1}}}"#);
        let pinned = parse(r#"{"tasks": {"a": {"cpus": [3], "run": 1, "sleep": 1}}}"#);
        assert_eq!(cpus_wanted(&free, None), 2);
        assert_eq!(cpus_wanted(&free, Some(4)), 4);
        assert_eq!(cpus_wanted(&pinned, Some(1)), 4);
    }
}
