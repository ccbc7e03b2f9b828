//! Can the scheduler load here, and if not, what is missing?
//!
//! Every probe looks at files below a root it is given, so that the tests can
//! show it machines that do not exist. [`preflight`] asks before loading,
//! `doctor` prints them all.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use procfs::process::{LimitValue, Limits, Status};
use procfs::MountEntry;

use super::btf;
use crate::proc;

mod unit;

/// The oldest kernel we support: the first with sched_ext.
const OLDEST: (u32, u32) = (6, 12);

const CAP_IPC_LOCK: u32 = 14;
const CAP_SYS_ADMIN: u32 = 21;
const CAP_PERFMON: u32 = 38;
const CAP_BPF: u32 = 39;

/// How a check came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Finding {
    Ok,
    /// The scheduler loads, but something is less than it could be.
    Note,
    /// The scheduler cannot load.
    Fail,
}

/// One line of `doctor`.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Check {
    pub name: &'static str,
    pub verdict: Finding,
    pub detail: String,
    /// What to do about it.
    pub fix: Option<String>,
}

impl Check {
    pub fn ok(name: &'static str, detail: impl Into<String>) -> Self {
        Self {
            name,
            verdict: Finding::Ok,
            detail: detail.into(),
            fix: None,
        }
    }

    pub fn note(name: &'static str, detail: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            verdict: Finding::Note,
            fix: Some(fix.into()),
            ..Self::ok(name, detail)
        }
    }

    pub fn fail(name: &'static str, detail: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            verdict: Finding::Fail,
            ..Self::note(name, detail, fix)
        }
    }
}

/// Why the scheduler cannot be loaded, in one sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason(Check);

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.detail)?;
        match &self.0.fix {
            Some(fix) => write!(f, ": {fix}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Reason {}

/// Refuses what would fail with a worse message later.
pub fn preflight() -> Result<(), Reason> {
    Host::here().preflight()
}

/// The machine that this runs on, seen through its /proc, /sys and /boot.
pub struct Host {
    root: PathBuf,
}

impl Host {
    pub fn here() -> Self {
        Self::at(Path::new("/"))
    }

    pub fn at(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
        }
    }

    /// In the order in which one stands in the way of the next.
    pub fn checks(&self) -> Vec<Check> {
        vec![
            self.version(),
            self.sched_ext(),
            self.privileges(),
            self.other_scheduler(),
            self.btf(),
            self.config(),
            self.tracer(),
            self.bpffs(),
            self.lockdown(),
            self.memlock(),
        ]
    }

    pub fn preflight(&self) -> Result<(), Reason> {
        self.checks()
            .into_iter()
            .find(|check| check.verdict == Finding::Fail)
            .map_or(Ok(()), |check| Err(Reason(check)))
    }

    fn path(&self, absolute: &str) -> PathBuf {
        self.root.join(absolute.trim_start_matches('/'))
    }

    fn read(&self, absolute: &str) -> Option<String> {
        let bytes = fs::read(self.path(absolute)).ok()?;
        Some(String::from_utf8_lossy(&bytes).trim_end().to_owned())
    }

    fn parse<T: procfs::FromRead>(&self, absolute: &str) -> Option<T> {
        proc::parse(&fs::read(self.path(absolute)).ok()?)
    }

    fn release(&self) -> String {
        self.read("/proc/sys/kernel/osrelease").unwrap_or_default()
    }

    fn version(&self) -> Check {
        let release = self.release();
        let fix = "boot Linux 6.12 or newer";
        match major_minor(&release) {
            Some(version) if version >= OLDEST => Check::ok("kernel", release),
            Some(_) => Check::fail(
                "kernel",
                format!("Linux {release} is older than 6.12, the first with sched_ext"),
                fix,
            ),
            None => Check::fail("kernel", "the kernel's version cannot be read", fix),
        }
    }

    fn sched_ext(&self) -> Check {
        if self.path("/sys/kernel/sched_ext").is_dir() {
            return Check::ok("sched_ext", "CONFIG_SCHED_CLASS_EXT is on");
        }
        if !self.path("/sys/kernel").is_dir() {
            return Check::fail(
                "sched_ext",
                "/sys is not mounted",
                "mount -t sysfs sysfs /sys",
            );
        }
        Check::fail(
            "sched_ext",
            "this kernel was built without CONFIG_SCHED_CLASS_EXT",
            "boot one that has it (in Debian: trixie-backports, 6.16 or newer), or let scripts/run.sh \
             boot one in a virtual machine",
        )
    }

    fn privileges(&self) -> Check {
        let Some(caps) = self.capabilities() else {
            return Check::fail(
                "privileges",
                "/proc/self/status cannot be read",
                "mount -t proc proc /proc",
            );
        };
        let has = |cap: u32| caps >> cap & 1 == 1;
        if has(CAP_SYS_ADMIN) || (has(CAP_BPF) && has(CAP_PERFMON)) {
            return Check::ok("privileges", "may load BPF schedulers");
        }
        Check::fail(
            "privileges",
            "loading a scheduler needs CAP_BPF and CAP_PERFMON, or CAP_SYS_ADMIN",
            "run it as root",
        )
    }

    fn capabilities(&self) -> Option<u64> {
        let status: Status = self.parse("/proc/self/status")?;
        Some(status.capeff)
    }

    fn other_scheduler(&self) -> Check {
        let state = self.read("/sys/kernel/sched_ext/state");
        match state.as_deref() {
            None | Some("disabled") => Check::ok("scheduler", "no other one is loaded"),
            Some(state) => {
                let name = self
                    .read("/sys/kernel/sched_ext/root/ops")
                    .unwrap_or_else(|| "unknown".into());
                // As a service the next one comes back by itself.
                let fix = if name.starts_with("temponet") {
                    "it is scx_temponet itself; end that one first"
                } else {
                    "end it first, with its service (systemctl stop scx or scx_loader) if it has one"
                };
                Check::fail(
                    "scheduler",
                    format!("the sched_ext scheduler `{name}` is {state}"),
                    fix,
                )
            }
        }
    }

    fn btf(&self) -> Check {
        let path = "/sys/kernel/btf/vmlinux";
        let Ok(bytes) = fs::read(self.path(path)) else {
            return Check::fail(
                "btf",
                format!("{path} cannot be read"),
                "boot a kernel with CONFIG_DEBUG_INFO_BTF",
            );
        };
        match btf::scx_kfuncs(&bytes) {
            Ok(kfuncs) if kfuncs.count == 0 => Check::fail(
                "btf",
                "the kernel's BTF has no sched_ext functions",
                "boot a kernel with CONFIG_SCHED_CLASS_EXT and CONFIG_DEBUG_INFO_BTF",
            ),
            Ok(kfuncs) if kfuncs.malformed.is_empty() => {
                Check::ok("btf", format!("{} sched_ext functions", kfuncs.count))
            }
            Ok(kfuncs) => Check::fail(
                "btf",
                format!(
                    "this kernel's BTF describes {} of {} sched_ext functions wrongly ({}), because \
                     it was built with pahole older than 1.26, and no sched_ext scheduler loads on it",
                    kfuncs.malformed.len(),
                    kfuncs.count,
                    some_of(&kfuncs.malformed)
                ),
                "boot another build of it, or another version",
            ),
            // Newer than us, most likely: the loader will say what it thinks.
            Err(e) => Check::note(
                "btf",
                format!("the kernel's BTF cannot be checked: {e}"),
                "nothing to do if the scheduler loads",
            ),
        }
    }

    /// libbpf looks for CONFIG_HZ in these two places, in this order.
    fn config(&self) -> Check {
        let boot = format!("/boot/config-{}", self.release());
        for path in [boot.as_str(), "/proc/config.gz"] {
            if fs::File::open(self.path(path)).is_ok() {
                return Check::ok("config", path);
            }
        }
        Check::fail(
            "config",
            format!("the kernel's configuration is neither {boot} nor /proc/config.gz"),
            "install it there (modprobe configs, or copy /lib/modules/VERSION/config)",
        )
    }

    fn tracer(&self) -> Check {
        if self.path("/proc/sys/kernel/ftrace_enabled").exists() {
            return Check::ok("tracer", "CONFIG_FUNCTION_TRACER is on");
        }
        Check::fail(
            "tracer",
            "this kernel was built without CONFIG_FUNCTION_TRACER, which sched_ext schedulers need",
            "boot one that has it",
        )
    }

    fn bpffs(&self) -> Check {
        let mounts: Vec<MountEntry> = self.parse("/proc/self/mounts").unwrap_or_default();
        let is_bpffs =
            |mount: &MountEntry| mount.fs_file == "/sys/fs/bpf" && mount.fs_vfstype == "bpf";
        if mounts.iter().any(is_bpffs) {
            return Check::ok("bpffs", "mounted on /sys/fs/bpf");
        }
        Check::fail(
            "bpffs",
            "no BPF file system on /sys/fs/bpf, where the map of declared deadlines is pinned",
            "mount -t bpf bpf /sys/fs/bpf",
        )
    }

    fn lockdown(&self) -> Check {
        let state = self.read("/sys/kernel/security/lockdown");
        if state.is_some_and(|s| s.contains("[confidentiality]")) {
            return Check::fail(
                "lockdown",
                "the kernel is locked down in confidentiality mode, which forbids BPF to read it",
                "boot with lockdown=integrity or without",
            );
        }
        Check::ok("lockdown", "does not stand in the way")
    }

    fn memlock(&self) -> Check {
        let limits: Option<Limits> = self.parse("/proc/self/limits");
        let soft = limits.map(|limits| limits.max_locked_memory.soft_limit);
        let exempt = self
            .capabilities()
            .is_some_and(|caps| caps >> CAP_IPC_LOCK & 1 == 1);
        if exempt || matches!(soft, Some(LimitValue::Unlimited)) {
            return Check::ok("memlock", "the agent can lock its memory");
        }
        let soft = match soft {
            Some(LimitValue::Value(bytes)) => bytes.to_string(),
            _ => "an unknown number of".into(),
        };
        Check::note(
            "memlock",
            format!(
                "only {soft} bytes can be locked, so the agent may be paged out under pressure"
            ),
            "run it as root, or with ulimit -l unlimited",
        )
    }
}

fn major_minor(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

fn some_of(names: &[String]) -> String {
    match names {
        [a, b, _, ..] => format!("{a}, {b}, …"),
        names => names.join(", "),
    }
}

#[cfg(test)]
mod tests;
