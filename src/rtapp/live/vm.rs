//! A guest that scripts/vm boots with this program in it.

use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{bail, Context, Result};

use super::Interrupted;
use crate::trust;

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

/// What scripts/vm runs and packs.
const SCRIPTS: [&str; 2] = ["scripts", "tests/vm"];

/// The checkout that this program was built in, else the one that we are in.
fn checkout() -> Result<PathBuf> {
    let program = std::env::current_exe().unwrap_or_default();
    let here = std::env::current_dir().unwrap_or_default();
    checkout_of(&program, &here)
}

fn checkout_of(program: &Path, here: &Path) -> Result<PathBuf> {
    let is_ours = |folder: &&Path| {
        folder.join("scripts/vm").is_file() && folder.join("tests/vm/guest").is_dir()
    };
    let mut folders = program.ancestors().chain(here.ancestors());
    let Some(folder) = folders.find(is_ours) else {
        bail!(
            "--vm needs a checkout of scx_temponet (it boots the guest with scripts/vm), and \
             neither the program nor this folder is in one"
        )
    };
    let is_own = program.starts_with(folder);
    let author = std::fs::metadata(program).ok().filter(|_| is_own);
    let author = author.map(|program| program.uid());
    for scripts in SCRIPTS {
        trust::unchangeable_tree(&folder.join(scripts), author).with_context(|| {
            format!(
                "the scripts of {} are not run, because another user could have changed them",
                folder.display()
            )
        })?;
    }
    Ok(folder.into())
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

    fn make_checkout(folder: &Path) {
        std::fs::create_dir_all(folder.join("scripts")).unwrap();
        std::fs::create_dir_all(folder.join("tests/vm/guest")).unwrap();
        std::fs::write(folder.join("scripts/vm"), "").unwrap();
    }

    #[test]
    fn the_programs_own_checkout_comes_before_the_one_that_we_are_in() {
        let (own, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        make_checkout(own.path());
        make_checkout(other.path());
        let program = own.path().join("target/release/scx_temponet");
        assert_eq!(checkout_of(&program, other.path()).unwrap(), own.path());
        let elsewhere = Path::new("/usr/bin/scx_temponet");
        assert_eq!(checkout_of(elsewhere, other.path()).unwrap(), other.path());
    }

    #[test]
    fn scripts_that_another_user_could_have_changed_are_not_run() {
        use std::os::unix::fs::PermissionsExt;
        let own = tempfile::tempdir().unwrap();
        make_checkout(own.path());
        let script = own.path().join("scripts/vm");
        let open = std::fs::Permissions::from_mode(0o777);
        std::fs::set_permissions(&script, open).unwrap();
        let said = format!("{:#}", checkout_of(&script, own.path()).unwrap_err());
        assert!(said.contains("another user could have changed"), "{said}");
        assert!(
            said.contains("scripts/vm can be written by others"),
            "{said}"
        );
    }

    #[test]
    fn a_name_that_the_script_would_misread_is_refused() {
        assert!(carried(Path::new("/tmp/a:b.json"), "/plan/x").is_err());
        assert_eq!(carried(Path::new("/a.json"), "/x").unwrap(), "/a.json:/x");
    }
}
