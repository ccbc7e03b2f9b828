//! Tells a story in the guest: starts the population, makes the events happen when their
//! time has come, and lets `checks` look at everything four times a second. It is a
//! real-time task itself, so that no scheduler can keep it from its work.
use crate::acts::{Pending, Undo};
use crate::checks::{Violation, Watch};
use crate::population::{Class, Task};
use crate::probes::{Attached, KernelLog, Stats, RELOAD_NS};
use crate::sets::Cpus;
use crate::shared::Shared;
use crate::story::Story;
use crate::sys;
use anyhow::{ensure, Context, Result};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode};

pub const MS: u64 = 1_000_000;
pub const CGROUPS: &str = "/sys/fs/cgroup/storm";
const TICK_NS: u64 = 10 * MS;
const BETWEEN_CHECKS_NS: u64 = 250 * MS;
/// Below the sentinels that watch the host, above all who are real-time for a moment.
const PRIORITY: i32 = 90;
/// For those who are told to end, and for a scheduler that is to be loaded again. An
/// emulator on a busy host takes its time.
const PATIENCE_NS: u64 = 120_000 * MS;

/// A task of the story, and what is being done to it.
pub struct Member {
    pub task: usize,
    pub what: Task,
    pub child: Option<Child>,
    pub group: Option<usize>,
    /// So many reasons not to judge it.
    pub excuses: usize,
    pub limited: bool,
    pub respawn: bool,
    pub watches: [Watch; 2],
}

impl Member {
    pub fn pid(&self) -> Option<i32> {
        self.child.as_ref().map(|child| child.id() as i32)
    }
}

pub struct Director {
    pub story: Story,
    pub folder: PathBuf,
    pub bound_ns: u64,
    pub shared: &'static Shared,
    pub members: Vec<Member>,
    /// The quota of each group, as it is now.
    pub quotas: Vec<Option<u64>>,
    pub offline: Cpus,
    pub undo: Vec<(u64, Undo)>,
    pub pending: Vec<Pending>,
    /// Declarations that are being made by a process of their own.
    pub errands: Vec<(u64, Child)>,
    pub attached: Attached,
    pub kernel_log: KernelLog,
    pub stats: Stats,
    pub started_ns: u64,
    pub done: Vec<usize>,
    pub refused: usize,
    pub longest_wait_ns: u64,
    /// Without progress.
    pub longest_gap_ns: u64,
}

pub fn direct(story: Story, folder: PathBuf, bound_ms: u64) -> Result<ExitCode> {
    if let Some(wrong) = story.machine.seen_wrong() {
        anyhow::bail!("the guest is not the machine of the story: {wrong}");
    }
    sys::set_class(0, Class::Fifo, PRIORITY).context("cannot become real-time")?;
    let shared = Shared::create(&folder.join("shared"))?;
    let mut director = Director {
        quotas: story.people.groups.iter().map(|g| g.quota_us).collect(),
        bound_ns: bound_ms * MS,
        shared,
        members: Vec::new(),
        offline: Cpus(0),
        undo: Vec::new(),
        pending: Vec::new(),
        errands: Vec::new(),
        attached: Attached::new(&folder)?,
        kernel_log: KernelLog::open()?,
        stats: Stats::default(),
        started_ns: sys::now(),
        done: Vec::new(),
        refused: 0,
        longest_wait_ns: 0,
        longest_gap_ns: 0,
        folder,
        story,
    };
    director.make_groups();
    director.start_everybody()?;
    let end = director.tell();
    let end = end.and_then(|()| director.calm_down());
    director.leave_figures()?;
    match end {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(violation) => {
            director.report(&violation);
            Ok(ExitCode::from(violation.status()))
        }
    }
}

impl Director {
    fn start_everybody(&mut self) -> Result<()> {
        for task in self.story.tasks() {
            let what = self.story.people.tasks[task].clone();
            self.members.push(Member {
                task,
                group: what.group,
                what,
                child: None,
                excuses: 0,
                limited: false,
                respawn: false,
                watches: Default::default(),
            });
        }
        for at in 0..self.members.len() {
            self.start(at)?;
            if self.members[at].what.declared {
                let (work, period) = (
                    self.members[at].what.work_us,
                    self.members[at].what.period_us,
                );
                self.declare(at, 2 * work, period);
            }
        }
        self.note_limits();
        self.started_ns = sys::now();
        Ok(())
    }

    /// As the story describes it, whatever became of its predecessor.
    pub fn start(&mut self, at: usize) -> Result<()> {
        let file = self.folder.join("shared");
        let procs = self.group_file(self.members[at].group, "cgroup.procs");
        let member = &mut self.members[at];
        // An order that came after the last process had ended was for that one.
        self.shared.slot(member.task).take_command();
        let what = member.what.clone();
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("worker").arg(file);
        command.args([
            member.task.to_string(),
            format!("{:?}", what.kind).to_lowercase(),
            what.period_us.to_string(),
            what.work_us.to_string(),
        ]);
        if what.background {
            command.arg("--background");
        }
        // SAFETY: the director has one thread, so its child may do all that it may.
        unsafe {
            command.pre_exec(move || {
                sys::die_with_parent();
                sys::set_class(0, what.class, 1)?;
                sys::set_nice(0, what.nice)?;
                // A cpuset may have the last word, and refuse.
                let _ = sys::set_affinity(0, what.cpus);
                std::fs::write(&procs, "0")
            });
        }
        member.child = Some(command.spawn().context("cannot start a worker")?);
        member.watches = Default::default();
        Ok(())
    }

    fn tell(&mut self) -> Result<(), Violation> {
        let mut events = self.story.events_left().into_iter().peekable();
        let end = self.story.seconds * 1000;
        let mut check_at = 0;
        while self.clock_ms() < end {
            while let Some(event) =
                events.next_if(|&e| self.story.events[e].at_ms <= self.clock_ms())
            {
                self.perform(event);
            }
            self.look_after();
            if sys::now() >= check_at {
                self.check()?;
                check_at = sys::now() + BETWEEN_CHECKS_NS;
            }
            sys::sleep_until(sys::now() + TICK_NS);
        }
        Ok(())
    }

    /// Everything is undone, the scheduler is back, and everybody ends when told.
    fn calm_down(&mut self) -> Result<(), Violation> {
        self.pending.clear();
        self.undo_all();
        let until = sys::now() + RELOAD_NS;
        while !self.attached.is_settled() || !self.errands.is_empty() {
            self.look_after();
            self.check()?;
            if sys::now() > until {
                return Err(Violation::NotReloaded);
            }
            sys::sleep_until(sys::now() + BETWEEN_CHECKS_NS);
        }
        self.check()?;
        self.shared
            .stop
            .store(1, std::sync::atomic::Ordering::SeqCst);
        let until = sys::now() + PATIENCE_NS;
        loop {
            let left = self.reap_ended();
            if left.is_empty() {
                return Ok(());
            }
            if sys::now() > until {
                return Err(Violation::Lost(left));
            }
            self.check_kernel()?;
            sys::sleep_until(sys::now() + TICK_NS);
        }
    }

    fn reap_ended(&mut self) -> Vec<usize> {
        let mut left = Vec::new();
        for (at, member) in self.members.iter_mut().enumerate() {
            match member.child.as_mut().map(Child::try_wait) {
                Some(Ok(None)) => left.push(at),
                _ => member.child = None,
            }
        }
        left
    }

    pub fn clock_ms(&self) -> u64 {
        (sys::now() - self.started_ns) / MS
    }

    pub fn group_file(&self, group: Option<usize>, file: &str) -> PathBuf {
        match group {
            Some(group) => format!("{CGROUPS}/{}/{file}", self.story.people.groups[group].path),
            None => format!("/sys/fs/cgroup/{file}"),
        }
        .into()
    }

    /// A kernel without a controller refuses what it is for; the story goes on without.
    fn make_groups(&mut self) {
        let enable = |folder: &str| {
            for controller in ["cpu", "cpuset"] {
                let _ = std::fs::write(
                    format!("{folder}/cgroup.subtree_control"),
                    format!("+{controller}"),
                );
            }
        };
        enable("/sys/fs/cgroup");
        let _ = std::fs::create_dir_all(CGROUPS);
        enable(CGROUPS);
        for at in 0..self.story.people.groups.len() {
            let group = self.story.people.groups[at].clone();
            let folder = format!("{CGROUPS}/{}", group.path);
            let _ = std::fs::create_dir_all(&folder);
            if !group.leaf {
                enable(&folder);
            }
            let _ = self.set_weight(at, group.weight);
            if let Some(cpus) = group.cpus {
                let _ = self.set_cpuset(at, cpus);
            }
            let _ = self.set_quota(at, group.quota_us);
        }
    }

    fn leave_figures(&self) -> Result<()> {
        ensure!(self.folder.is_dir(), "no folder for the figures");
        let checks: u64 = (0..self.story.people.tasks.len())
            .map(|slot| {
                self.shared
                    .slot(slot)
                    .mask_checks
                    .load(std::sync::atomic::Ordering::SeqCst)
            })
            .sum();
        let text = format!(
            "machine={}\npopulation={}\nevents_done={}\nevents_refused={}\nstorm_longest_wait_ms={}\nstorm_longest_gap_ms={}\nplaces_checked={checks}\nloads={}\n",
            self.story.machine,
            self.story.people.summary(|task| self.story.has_task(task)),
            self.done.len(),
            self.refused,
            self.longest_wait_ns / MS,
            self.longest_gap_ns / MS,
            self.attached.loads(),
        );
        Ok(std::fs::write(self.folder.join("figures"), text)?)
    }
}
