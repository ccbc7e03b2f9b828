//! A guest that scripts/vm boots with this program in it.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{bail, Context, Result};

use super::Interrupted;

/// A CPU beside those of the workload, for the guest's own work.
pub const FEWEST_CPUS: usize = 2;
/// Host seconds for a guest second, at worst, and for booting.
const SLOWNESS: u64 = 8;
const BOOT_S: u64 = 300;
const POLL: Duration = Duration::from_millis(100);

/// What is to be booted.
#[derive(Clone, Debug)]
pub struct Guest<'a> {
    pub kernel: &'a str,
    /// As `scripts/vm --mode` has it.
    pub mode: &'a str,
    pub cpus: usize,
    /// Guest time that the command needs.
    pub seconds: u64,
    /// Somebody runs a network: emulated fused multiply-add is slow enough to matter.
    pub infers: bool,
    /// Files of this machine, and where they are in the guest.
    pub files: Vec<(PathBuf, &'a str)>,
    /// Where the guest's /out comes back.
    pub out: Option<&'a Path>,
    pub command: Vec<String>,
}

impl Guest<'_> {
    /// Its command's output goes to `stdout`.
    pub fn start(&self, stdout: Stdio) -> Result<Child> {
        let limit = BOOT_S + SLOWNESS * self.seconds;
        let mut command = Command::new(checkout()?.join("scripts/vm"));
        command
            .args(["--mode", self.mode, "--kernel", self.kernel])
            .args(["--cpus", &self.cpus.max(FEWEST_CPUS).to_string()])
            .args(["--timeout", &limit.to_string()])
            .arg("--program")
            .arg(std::env::current_exe()?);
        if let Some(out) = self.out {
            command.arg("--out").arg(out);
        }
        if self.infers {
            command.arg("--no-fma");
        }
        for (host, guest) in &self.files {
            command.args(["--add", &carried(host, guest)?]);
        }
        command
            .arg("--")
            .args(&self.command)
            .stdin(Stdio::null())
            .stdout(stdout)
            .process_group(0)
            .spawn()
            .context("cannot start scripts/vm")
    }
}

/// Until the guest has ended, or somebody asks us to.
pub fn wait(guest: &mut Child, stop: &AtomicBool) -> Result<ExitStatus> {
    loop {
        if let Some(status) = guest.try_wait()? {
            return Ok(status);
        }
        if stop.load(Ordering::Relaxed) {
            end(guest)?;
            return Err(Interrupted.into());
        }
        std::thread::sleep(POLL);
    }
}

/// The script ends its guest.
pub fn end(guest: &mut Child) -> Result<()> {
    // SAFETY: our own child, not yet reaped.
    unsafe { libc::kill(guest.id() as i32, libc::SIGTERM) };
    guest.wait()?;
    Ok(())
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

/// scripts/vm takes HOST:GUEST.
fn carried(host: &Path, guest: &str) -> Result<String> {
    let host = std::path::absolute(host)?;
    let host = host
        .to_str()
        .filter(|host| !host.contains(':'))
        .with_context(|| format!("{}: this name cannot go to a guest", host.display()))?;
    Ok(format!("{host}:{guest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_the_script_would_misread_is_refused() {
        assert!(carried(Path::new("/tmp/a:b.json"), "/plan/x").is_err());
        assert_eq!(carried(Path::new("/a.json"), "/x").unwrap(), "/a.json:/x");
    }
}
