//! What the privileges of the running scheduler cost: too few, and users cannot declare; too
//! many, and a fault of it could do more harm than it need. Where none runs, it is about
//! whoever asks.

use super::{Check, Host, CAP_BPF, CAP_PERFMON};
use procfs::process::Status;
use procfs::MountEntry;
use std::fs;
use std::path::Path;

const CAP_SYS_PTRACE: u32 = 19;
/// A thread that only the scheduler's process has, and not our other commands.
const THREAD: &str = "temponet-hint";

impl Host {
    /// Whether users other than root can declare deadlines, and what the unit leaves open.
    pub fn unit_checks(&self) -> Vec<Check> {
        let daemon = self.daemon();
        vec![self.declarations(daemon.as_ref()), confinement(daemon)]
    }

    /// The status of the running scheduler.
    fn daemon(&self) -> Option<Status> {
        let entries = fs::read_dir(self.path("/proc")).ok()?;
        let pids = entries.flatten().filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            name.parse::<u32>().ok()
        });
        let is_daemon = |pid: &u32| {
            let tasks = self.path(&format!("/proc/{pid}/task")).read_dir();
            tasks.is_ok_and(|mut tasks| {
                tasks.any(|task| task.is_ok_and(|task| is_called(&task.path(), THREAD)))
            })
        };
        let pid = pids.into_iter().find(is_daemon)?;
        self.parse(&format!("/proc/{pid}/status"))
    }

    fn declarations(&self, daemon: Option<&Status>) -> Check {
        let mounts: Vec<MountEntry> = self.parse("/proc/self/mounts").unwrap_or_default();
        let hides = |mount: &MountEntry| {
            let hidden = mount.fs_mntops.get("hidepid").cloned().flatten();
            mount.fs_file == "/proc" && hidden.is_some_and(|value| !matches!(&*value, "0" | "off"))
        };
        let caps = daemon.map(|status| status.capeff).or(self.capabilities());
        let sees_all = caps.is_some_and(|caps| caps >> CAP_SYS_PTRACE & 1 == 1);
        if !mounts.iter().any(hides) || sees_all {
            return Check::ok("hints", "ordinary users can declare deadlines");
        }
        Check::note(
            "hints",
            "/proc is mounted with hidepid, and without CAP_SYS_PTRACE the scheduler does not see \
             users' tasks: only root can declare deadlines",
            "add CAP_SYS_PTRACE to CapabilityBoundingSet= of the unit, or mount /proc without hidepid",
        )
    }
}

fn is_called(task: &Path, name: &str) -> bool {
    fs::read_to_string(task.join("comm")).is_ok_and(|comm| comm.trim_end() == name)
}

fn confinement(daemon: Option<Status>) -> Check {
    let Some(status) = daemon else {
        return Check::ok("unit", "no scheduler of ours runs");
    };
    let needed = 1 << CAP_BPF | 1 << CAP_PERFMON | 1 << CAP_SYS_PTRACE;
    let more = (status.capeff & !needed).count_ones();
    let filtered = status.seccomp == Some(2);
    if more == 0 && filtered {
        return Check::ok("unit", "it runs with no more rights than it needs");
    }
    let filter = if filtered {
        ""
    } else {
        ", and may make any system call"
    };
    Check::note(
        "unit",
        format!("it runs with {more} capabilities that it does not need{filter}"),
        "start it by packaging/scx_temponet.service, which takes them away",
    )
}
