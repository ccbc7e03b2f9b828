//! Plays a scene in the guest, and measures what each task had of the CPU.
use crate::latency::{self, Latency};
use crate::scene::Scene;
use crate::sys::{self, Class};
use crate::worker::{self, Notes};
use crate::{calls, hint};
use anyhow::{bail, Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

const SECOND: u64 = 1_000_000_000;
/// Before the window begins.
const WARM_UP: u64 = SECOND;
/// The director sleeps but for a few moments, and those must not have to wait.
const PRIORITY: i32 = 40;
const ROOT: &str = "/sys/fs/cgroup";

/// What was seen in the window.
pub struct Seen {
    /// Shares of one CPU, by member and by group.
    pub members: Vec<f64>,
    pub groups: Vec<f64>,
    /// The longest wait of each member since it began, ms.
    pub waits_ms: Vec<f64>,
    pub latency: Option<Latency>,
    /// What our scheduler said of declarations that it did not accept.
    pub refusals: Vec<String>,
    /// Of all tasks that count them: jobs, and those done in time.
    pub jobs: (u64, u64),
}

/// The scene's cgroups and all that run in them, which go when this does.
struct Stage {
    root: PathBuf,
    groups: Vec<PathBuf>,
}

impl Stage {
    fn set_up(scene: &Scene) -> Result<Stage> {
        let stage = Stage {
            root: Path::new(ROOT).join("fair"),
            groups: (0..scene.groups.len())
                .map(|at| Path::new(ROOT).join("fair").join(scene.path(at)))
                .collect(),
        };
        write(&Path::new(ROOT).join("cgroup.subtree_control"), "+cpu")?;
        make(&stage.root)?;
        write(&stage.root.join("cgroup.subtree_control"), "+cpu")?;
        for (folder, group) in stage.groups.iter().zip(&scene.groups) {
            if let Some(parent) = group.parent {
                write(&stage.groups[parent].join("cgroup.subtree_control"), "+cpu")?;
            }
            make(folder)?;
            write(&folder.join("cpu.weight"), &group.weight.to_string())?;
            if let Some(quota) = group.quota_us {
                write(&folder.join("cpu.max"), &format!("{quota} 100000"))?;
            }
        }
        Ok(stage)
    }

    /// Of each group, ns.
    fn usage(&self) -> Result<Vec<u64>> {
        self.groups
            .iter()
            .map(|folder| {
                let text = fs::read_to_string(folder.join("cpu.stat"))?;
                let usage = text
                    .lines()
                    .find_map(|line| line.strip_prefix("usage_usec "));
                Ok(usage.context("no usage in cpu.stat")?.parse::<u64>()? * 1000)
            })
            .collect()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // What cannot be removed is in the way of the next scene, which then says so.
        let _ = write(&self.root.join("cgroup.kill"), "1");
        while wait_for_any() {}
        for folder in self.groups.iter().rev().chain([&self.root]) {
            for _ in 0..100 {
                if fs::remove_dir(folder).is_ok() {
                    break;
                }
                sys::sleep_until(sys::now() + SECOND / 50);
            }
        }
    }
}

fn wait_for_any() -> bool {
    // SAFETY: a plain call; the status is not asked for.
    unsafe { libc::waitpid(-1, std::ptr::null_mut(), 0) > 0 }
}

pub fn write(file: &Path, text: &str) -> Result<()> {
    fs::write(file, text).with_context(|| format!("cannot write {text} to {}", file.display()))
}

fn make(folder: &Path) -> Result<()> {
    fs::create_dir(folder).with_context(|| format!("cannot make {}", folder.display()))
}

/// CPU time that a task has had, ns. A task that runs is behind by a tick at most.
fn cpu_time_of(pid: i32) -> Result<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/schedstat")).context("a task is gone")?;
    let first = text.split(' ').next().context("an empty schedstat")?;
    Ok(first.parse()?)
}

/// Plays it for a second and then for so many more, which count. Tasks are declared where
/// `declares` says that the scheduler knows what that is.
pub fn play(scene: &Scene, seconds: u64, declares: bool) -> Result<Seen> {
    sys::set_class(0, Class::Fifo, PRIORITY).context("cannot become real-time")?;
    let stage = Stage::set_up(scene)?;
    let notes: &[Notes] = calls::shared(scene.members.len())?;
    let begun = sys::now();
    let mut pids = Vec::new();
    let mut refusals = Vec::new();
    for (member, notes) in scene.members.iter().zip(notes) {
        let pid = sys::fork(|| {
            if let Some(uid) = member.uid {
                calls::become_user(uid).expect("root may become anybody");
            }
            worker::work(member.work, notes, declares)
        })?;
        // It does not run before the director sleeps.
        write(
            &stage.groups[member.group].join("cgroup.procs"),
            &pid.to_string(),
        )?;
        sys::set_nice(pid, member.nice)?;
        if member.class != Class::Other {
            sys::set_class(pid, member.class, 0)?;
        }
        if let Some((runtime_us, period_us)) = member.hint_us.filter(|_| declares) {
            refusals.extend(hint::declare(pid, runtime_us, period_us)?);
        }
        pids.push(pid);
    }
    let listener = scene
        .interactive
        .map(|group| latency::start(&stage.groups[group], seconds + 1))
        .transpose()?;
    let measure = || -> Result<_> {
        let members: Vec<u64> = pids
            .iter()
            .map(|&pid| cpu_time_of(pid))
            .collect::<Result<_>>()?;
        Ok((sys::now(), members, stage.usage()?))
    };
    sys::sleep_until(begun + WARM_UP);
    let (from, members_before, groups_before) = measure()?;
    sys::sleep_until(from + seconds * SECOND);
    let (to, members_after, groups_after) = measure()?;
    let count = |of: fn(&Notes) -> &AtomicU64| notes.iter().map(|n| of(n).load(Relaxed)).sum();
    let jobs = (count(|notes| &notes.jobs), count(|notes| &notes.on_time));
    let shares = |before: &[u64], after: &[u64]| -> Vec<f64> {
        let used = before
            .iter()
            .zip(after)
            .map(|(before, after)| after - before);
        used.map(|ns| ns as f64 / (to - from) as f64).collect()
    };
    let latency = listener.map(latency::Listener::hear).transpose()?;
    for (at, &pid) in pids.iter().enumerate() {
        let ended = calls::ended(pid, scene.awaited == Some(at));
        let name = &scene.members[at].name;
        match (ended, scene.awaited == Some(at)) {
            (None, _) | (Some(0), true) => {}
            (Some(status), _) => bail!("{name} ended with status {status}"),
        }
    }
    if notes.iter().any(|notes| notes.refused.load(Relaxed) > 0) {
        refusals.push("refused".into());
    }
    Ok(Seen {
        members: shares(&members_before, &members_after),
        groups: shares(&groups_before, &groups_after),
        waits_ms: notes
            .iter()
            .map(|notes| notes.longest_wait_ns.load(Relaxed) as f64 / 1e6)
            .collect(),
        latency,
        refusals,
        jobs,
    })
}
