//! Everything a live run changes on the machine, each with its way back: dropping it
//! puts things as they were, whichever way the run ends.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::draft;

const POLL: Duration = Duration::from_millis(20);

/// A folder of our own, removed with everything in it.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new() -> Result<Scratch> {
        let path = std::env::temp_dir().join(draft::unused_name());
        fs::DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .with_context(|| format!("cannot create {}", path.display()))?;
        Ok(Scratch(path))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A kernel setting, set back to what it was.
pub struct Sysctl {
    path: PathBuf,
    before: String,
}

impl Sysctl {
    pub fn set(path: &Path, value: &str) -> Result<Sysctl> {
        let read = || fs::read_to_string(path);
        let before = read().with_context(|| format!("cannot read {}", path.display()))?;
        fs::write(path, value).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Sysctl {
            path: path.into(),
            before,
        })
    }
}

impl Drop for Sysctl {
    fn drop(&mut self) {
        if let Err(e) = fs::write(&self.path, &self.before) {
            let path = self.path.display();
            let _ = writeln!(io::stderr(), "warning: {path} could not be set back: {e}");
        }
    }
}

/// A program that does not outlive us: asked to end, and made to if it does not.
pub struct Program {
    child: Child,
    name: String,
    said: PathBuf,
    patience: Duration,
}

/// What is to be started.
pub struct Launch<'a> {
    pub words: &'a [OsString],
    /// Where its output goes.
    pub said: PathBuf,
    /// What it is sent when we are gone.
    pub at_our_death: i32,
    /// CPUs it may use; none given: all that we may.
    pub cpus: &'a [u32],
    /// How long it may take to end when asked.
    pub patience: Duration,
}

impl Program {
    pub fn start(launch: Launch) -> Result<Program> {
        let name = Path::new(&launch.words[0]).file_name().unwrap_or_default();
        let name = name.to_string_lossy().into_owned();
        let output = File::create(&launch.said)
            .with_context(|| format!("cannot create {}", launch.said.display()))?;
        let mut command = Command::new(&launch.words[0]);
        command
            .args(&launch.words[1..])
            .stdin(Stdio::null())
            .stderr(output.try_clone()?)
            .stdout(output)
            // Ctrl-C reaches us, and we decide who ends when.
            .process_group(0);
        let cpus = cpu_set(launch.cpus);
        let signal = launch.at_our_death;
        let parent = std::process::id();
        // SAFETY: between fork and exec only system calls, no memory is touched.
        unsafe {
            command.pre_exec(move || {
                if libc::prctl(libc::PR_SET_PDEATHSIG, signal) != 0 {
                    return Err(io::Error::last_os_error());
                }
                // We may have died before that took effect.
                if libc::getppid() as u32 != parent {
                    libc::raise(libc::SIGKILL);
                }
                // A shell that starts us in the background has it ignored.
                libc::signal(libc::SIGINT, libc::SIG_DFL);
                if let Some(cpus) = &cpus {
                    if libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), cpus) != 0 {
                        return Err(io::Error::last_os_error());
                    }
                }
                Ok(())
            });
        }
        let child = command
            .spawn()
            .with_context(|| format!("cannot start {name}"))?;
        Ok(Program {
            child,
            name,
            said: launch.said,
            patience: launch.patience,
        })
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn ended(&mut self) -> Result<Option<ExitStatus>> {
        let name = &self.name;
        self.child
            .try_wait()
            .with_context(|| format!("cannot watch {name}"))
    }

    /// The last that it said, in one line.
    pub fn last_words(&self) -> String {
        let text = fs::read(&self.said).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .collect();
        let last = &lines[lines.len().saturating_sub(3)..];
        last.join("; ")
    }

    fn signal(&self, signal: i32) {
        // SAFETY: a group of our own making; the child is not reaped before this.
        unsafe { libc::kill(-(self.child.id() as i32), signal) };
    }

    /// Asks it to end; false: it had to be killed.
    pub fn end(&mut self) -> bool {
        if !matches!(self.child.try_wait(), Ok(None)) {
            return true;
        }
        self.signal(libc::SIGINT);
        let until = Instant::now() + self.patience;
        while Instant::now() < until {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return true;
            }
            std::thread::sleep(POLL);
        }
        self.signal(libc::SIGKILL);
        let _ = self.child.wait();
        false
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.end();
    }
}

fn cpu_set(cpus: &[u32]) -> Option<libc::cpu_set_t> {
    if cpus.is_empty() {
        return None;
    }
    // SAFETY: an array of bits, all zero is the empty set; CPU_SET checks its bound.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        for &cpu in cpus {
            libc::CPU_SET(cpu as usize, &mut set);
        }
        Some(set)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch<'a>(words: &'a [OsString], folder: &Path, patience: Duration) -> Launch<'a> {
        Launch {
            words,
            said: folder.join("said"),
            at_our_death: libc::SIGKILL,
            cpus: &[],
            patience,
        }
    }

    #[test]
    fn a_folder_and_a_setting_are_as_before_once_dropped() {
        let scratch = Scratch::new().unwrap();
        let path = scratch.path().to_owned();
        fs::write(path.join("setting"), "950000\n").unwrap();
        let setting = path.join("setting");
        let sysctl = Sysctl::set(&setting, "-1").unwrap();
        assert_eq!(fs::read_to_string(&setting).unwrap(), "-1");
        drop(sysctl);
        assert_eq!(fs::read_to_string(&setting).unwrap(), "950000\n");
        drop(scratch);
        assert!(!path.exists());
    }

    #[test]
    fn a_program_is_gone_once_dropped_even_if_it_does_not_listen() {
        let scratch = Scratch::new().unwrap();
        let script = "trap '' INT; echo ready; while :; do sleep 0.05; done";
        let words: Vec<OsString> = ["sh", "-c", script].map(OsString::from).into();
        let short = Duration::from_millis(100);
        let mut program = Program::start(launch(&words, scratch.path(), short)).unwrap();
        while program.last_words() != "ready" {
            assert!(program.ended().unwrap().is_none());
            std::thread::sleep(POLL);
        }
        let pid = program.pid();
        assert!(!program.end());
        drop(program);
        assert!(!Path::new(&format!("/proc/{pid}")).exists());
    }

    #[test]
    fn a_program_that_listens_ends_by_itself() {
        let scratch = Scratch::new().unwrap();
        let words: Vec<OsString> = ["sleep", "60"].map(OsString::from).into();
        let long = Duration::from_secs(30);
        let mut program = Program::start(launch(&words, scratch.path(), long)).unwrap();
        assert!(program.end());
    }
}
