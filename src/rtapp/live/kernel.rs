//! What the kernel says of itself and of the scheduler that is loaded.

use std::fs;
use std::path::Path;

use anyhow::{bail, Context, Result};

/// Where the kernel tells about sched_ext.
const SCHED_EXT: &str = "/sys/kernel/sched_ext";

/// The kernel's version.
pub fn release() -> String {
    read(Path::new("/proc/sys/kernel/osrelease")).unwrap_or_else(|| "unknown".into())
}

/// Whether some CPU runs without ticks while one task has it for itself.
pub fn has_cpus_without_ticks() -> bool {
    let cpus = read(Path::new("/sys/devices/system/cpu/nohz_full"));
    cpus.is_some_and(|cpus| !cpus.is_empty() && cpus != "(null)")
}

fn read(path: &Path) -> Option<String> {
    let text = fs::read(path).ok()?;
    Some(String::from_utf8_lossy(&text).trim().to_owned())
}

/// Which sched_ext scheduler is loaded, as one moment shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loaded {
    /// "disabled" where there is none; `None` without sched_ext.
    pub state: Option<String>,
    /// What the scheduler calls itself.
    pub ops: Option<String>,
    /// Counts how often one was loaded.
    pub enable_seq: Option<String>,
}

impl Loaded {
    pub fn now() -> Loaded {
        Loaded::at(Path::new(SCHED_EXT))
    }

    fn at(folder: &Path) -> Loaded {
        let state = read(&folder.join("state"));
        let on = state.as_deref().is_some_and(|state| state != "disabled");
        Loaded {
            ops: read(&folder.join("root/ops")).filter(|_| on),
            enable_seq: read(&folder.join("enable_seq")),
            state,
        }
    }

    pub fn is_enabled(&self) -> bool {
        self.state.as_deref() == Some("enabled")
    }

    /// No sched_ext scheduler, or a kernel that knows none.
    pub fn is_none(&self) -> bool {
        matches!(self.state.as_deref(), None | Some("disabled"))
    }

    /// For people: the loaded scheduler, or the kernel's own.
    pub fn name(&self) -> String {
        match (&self.ops, self.is_none()) {
            (Some(ops), false) => ops.clone(),
            (None, false) => "an unknown sched_ext scheduler".into(),
            (_, true) => "the kernel's own scheduler".into(),
        }
    }

    /// One sentence about what changed since `before`, if anything did.
    pub fn changed_since(&self, before: &Loaded) -> Option<String> {
        if self == before {
            return None;
        }
        Some(if self.enable_seq != before.enable_seq {
            format!(
                "a scheduler was loaded meanwhile ({}, before: {})",
                self.name(),
                before.name()
            )
        } else if before.is_enabled() && !self.is_enabled() {
            let state = self.state.as_deref().unwrap_or("gone");
            format!("{} did not stay loaded: {state}", before.name())
        } else {
            format!(
                "the scheduler is now {}, not {}",
                self.name(),
                before.name()
            )
        })
    }
}

/// The CPUs that are online, in order.
pub fn online_cpus() -> Result<Vec<u32>> {
    let path = "/sys/devices/system/cpu/online";
    let text = read(Path::new(path)).with_context(|| format!("cannot read {path}"))?;
    cpu_list(&text).with_context(|| format!("{path} makes no sense"))
}

/// "0-3,5" as the kernel writes it.
fn cpu_list(text: &str) -> Result<Vec<u32>> {
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse()?, last.parse()?);
        if last < first || last - first > 1 << 16 {
            bail!("{part:?} is no range of CPUs");
        }
        cpus.extend(first..=last);
    }
    Ok(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(state: &str, ops: Option<&str>, seq: &str) -> Loaded {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("state"), state).unwrap();
        fs::write(folder.path().join("enable_seq"), seq).unwrap();
        if let Some(ops) = ops {
            fs::create_dir(folder.path().join("root")).unwrap();
            fs::write(folder.path().join("root/ops"), ops).unwrap();
        }
        Loaded::at(folder.path())
    }

    #[test]
    fn a_scheduler_that_goes_or_comes_back_is_noticed() {
        let before = machine("enabled\n", Some("temponet\n"), "3\n");
        assert_eq!(before.name(), "temponet");
        assert_eq!(before.changed_since(&before), None);
        let gone = machine("disabled\n", None, "3\n");
        let why = gone.changed_since(&before).unwrap();
        assert!(why.contains("temponet did not stay loaded"), "{why}");
        // Thrown out and loaded again, it looks the same but for the count.
        let back = machine("enabled\n", Some("temponet\n"), "4\n");
        let why = back.changed_since(&before).unwrap();
        assert!(why.contains("was loaded meanwhile"), "{why}");
        let other = machine("enabled\n", Some("bpfland\n"), "3\n");
        assert!(other.changed_since(&before).is_some());
    }

    #[test]
    fn a_kernel_without_sched_ext_has_its_own_scheduler() {
        let folder = tempfile::tempdir().unwrap();
        let loaded = Loaded::at(folder.path());
        assert!(loaded.is_none() && !loaded.is_enabled());
        assert_eq!(loaded.name(), "the kernel's own scheduler");
    }

    #[test]
    fn cpu_lists_are_read_as_the_kernel_writes_them() {
        assert_eq!(cpu_list("0-2,5").unwrap(), [0, 1, 2, 5]);
        assert_eq!(cpu_list("0").unwrap(), [0]);
        assert!(cpu_list("2-0").is_err() && cpu_list("").is_err());
        assert!(cpu_list("0-4294967295").is_err());
    }
}
