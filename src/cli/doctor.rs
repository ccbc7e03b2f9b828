//! `scx_temponet doctor`: what is missing here, and what to do about it.
//!
//! Exit status: 0 when the scheduler can load, 1 when it cannot.

use super::out;
use crate::agent::accel::{check_cuda, check_onnxruntime, OrtSearch};
use crate::agent::kernel::{Check, Finding, Host};
use clap::Args;
use serde_json::json;
use std::path::Path;
use std::process::ExitCode;

/// Check what the scheduler needs on this machine, one line each
///
/// `ok` is fine, `note` could be better, `FAIL` keeps the scheduler from
/// loading; behind the arrow stands what to do.
#[derive(Args, Debug, Clone, Default)]
pub struct DoctorArgs {
    /// As JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: DoctorArgs) -> ExitCode {
    let mut checks = Host::here().checks();
    checks.extend(Host::here().unit_checks());
    checks.push(check_onnxruntime(&OrtSearch::here()));
    checks.push(check_cuda(Path::new("/")));
    let can_load = checks.iter().all(|check| check.verdict != Finding::Fail);
    let text = if args.json {
        format!("{}\n", json!({ "can_load": can_load, "checks": checks }))
    } else {
        checks.iter().map(|check| line(check) + "\n").collect()
    };
    if let Err(error) = out::write(&text) {
        out::errln!("scx_temponet doctor: {error:#}");
        return ExitCode::FAILURE;
    }
    if can_load {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn line(check: &Check) -> String {
    let verdict = match check.verdict {
        Finding::Ok => "ok",
        Finding::Note => "note",
        Finding::Fail => "FAIL",
    };
    let fix = match &check.fix {
        Some(fix) => format!(" -> {fix}"),
        None => String::new(),
    };
    format!("{verdict:<5} {:<12} {}{fix}", check.name, check.detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_check_is_one_line_with_what_to_do() {
        assert_eq!(
            line(&Check::fail("bpffs", "not mounted", "mount it")),
            "FAIL  bpffs        not mounted -> mount it"
        );
        assert_eq!(
            line(&Check::ok("kernel", "6.18")),
            "ok    kernel       6.18"
        );
    }
}
