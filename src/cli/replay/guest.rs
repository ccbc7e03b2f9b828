//! `--vm`: the same live run in a guest that scripts/vm boots, for machines whose
//! own kernel has no sched_ext, and for figures that do not depend on the host.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{bail, ensure, Context, Result};

use super::input::Input;
use super::{CalibrationArg, ReplayArgs};
use crate::report::file::write_whole;
use crate::rtapp::live::{bound_to, Collected, Entrant, Interrupted, Scratch};
use crate::rtapp::Workload;
use crate::sim::time::SECOND;

/// A CPU beside those of the workload, for the guest's own work.
const FEWEST_CPUS: usize = 2;
/// Before and after a scheduler's run: loading, lead, tail, unloading.
const AROUND_A_RUN_S: u64 = 8;
/// Host seconds for a guest second, at worst, and for booting.
const SLOWNESS: u64 = 8;
const BOOT_S: u64 = 300;
const POLL: Duration = Duration::from_millis(100);

pub fn cpus_wanted(workload: &Workload, cores: Option<usize>) -> usize {
    let named = bound_to(workload).max().map_or(0, |cpu| cpu as usize + 1);
    FEWEST_CPUS.max(cores.unwrap_or(0)).max(named)
}

/// The checkout that this program was built in, or that we are in.
fn checkout() -> Result<PathBuf> {
    let is_ours = |folder: &&Path| {
        folder.join("scripts/vm").is_file() && folder.join("tests/vm/guest").is_dir()
    };
    let program = std::env::current_exe().unwrap_or_default();
    let here = std::env::current_dir().unwrap_or_default();
    let mut folders = here.ancestors().chain(program.ancestors());
    match folders.find(is_ours) {
        Some(folder) => Ok(folder.into()),
        None => bail!(
            "--vm needs a checkout of scx_temponet (it boots the guest with scripts/vm), and \
             neither this folder nor the program is in one"
        ),
    }
}

pub fn run(
    args: &ReplayArgs,
    entrants: &[Entrant],
    input: &Input,
    kernel: &str,
    cpus: usize,
    stop: &AtomicBool,
) -> Result<Collected> {
    let checkout = checkout()?;
    let scratch = Scratch::new()?;
    let out = scratch.path().join("out");
    // As it was read: what came through a pipe is in no file.
    let workload = scratch.path().join("workload.json");
    write_whole(&workload, &input.text)?;
    let horizon = input.converted.set.horizon_ns;
    let guest_seconds = (horizon / SECOND + AROUND_A_RUN_S) * entrants.len() as u64;
    let mut command = Command::new(checkout.join("scripts/vm"));
    command
        .args(["--mode", args.vm_mode.name(), "--kernel", kernel])
        .args(["--cpus", &cpus.to_string()])
        .args([
            "--timeout",
            &(BOOT_S + SLOWNESS * guest_seconds).to_string(),
        ])
        .arg("--program")
        .arg(std::env::current_exe()?)
        .arg("--out")
        .arg(&out)
        .args(["--add", &carried(&workload, "/plan/workload.json")?]);
    // Emulated fused multiply-add is slow enough to matter.
    if entrants.iter().any(Entrant::wants_model) {
        command.arg("--no-fma");
    }
    if let Some(model) = &args.model {
        command.args(["--add", &carried(model, "/plan/model.onnx")?]);
    }
    let names: Vec<&str> = entrants.iter().map(|e| e.name.as_str()).collect();
    command
        .args(["--", "scx_temponet", "replay", "/plan/workload.json"])
        .args(["--live", "--against", &names.join(",")])
        .args(["--horizon", &format!("{horizon}ns")])
        .args(["--collect", "/out/collected.json"]);
    if let Some(cores) = args.cores {
        command.args(["--cores", &cores.to_string()]);
    }
    if !args.critical.is_empty() {
        command.args(["--critical", &args.critical.join(",")]);
    }
    if args.calibration == CalibrationArg::File {
        command.args(["--calibration", "file"]);
    }
    if args.model.is_some() {
        command.args(["--model", "/plan/model.onnx"]);
    }
    boot(command, stop)?;
    let file = out.join("collected.json");
    let text = std::fs::read_to_string(&file).context("the guest brought no results back")?;
    Collected::from_json(&text, &input.converted)
}

/// scripts/vm takes HOST:GUEST.
fn carried(host: &Path, guest: &str) -> Result<String> {
    let host = std::path::absolute(host)?;
    let host = host
        .to_str()
        .filter(|host| !host.contains(':'))
        .with_context(|| format!("{}: this name cannot go to a guest", host.display()))?;
    Ok(format!("{host}:{guest}"))
}

fn boot(mut command: Command, stop: &AtomicBool) -> Result<()> {
    let mut guest = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .process_group(0)
        .spawn()
        .context("cannot start scripts/vm")?;
    loop {
        if let Some(status) = guest.try_wait()? {
            // The guest's own status 1: somebody failed, and the results say who.
            let known = matches!(status.code(), Some(0 | 1));
            ensure!(known, "the guest failed ({status})");
            return Ok(());
        }
        if stop.load(Ordering::Relaxed) {
            // SAFETY: our own child, not yet reaped; the script ends its guest.
            unsafe { libc::kill(guest.id() as i32, libc::SIGTERM) };
            guest.wait()?;
            return Err(Interrupted.into());
        }
        std::thread::sleep(POLL);
    }
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

    #[test]
    fn a_name_that_the_script_would_misread_is_refused() {
        assert!(carried(Path::new("/tmp/a:b.json"), "/plan/x").is_err());
        assert_eq!(carried(Path::new("/a.json"), "/x").unwrap(), "/a.json:/x");
    }
}
