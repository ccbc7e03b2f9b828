//! How the events of a story are done to a running system. What the kernel refuses (a CPU
//! set that leaves nothing) is counted and forgotten: the story goes on.
use crate::director::{Director, MS};
use crate::events::What;
use crate::population::Class;
use crate::probes::state_of;
use crate::sets::Cpus;
use crate::shared::Command as Order;
use crate::sys;
use std::io;
use std::process::{Child, Command, Stdio};

/// How long a task has to fall asleep before it is moved nevertheless.
const FALL_ASLEEP_NS: u64 = 3000 * MS;
const QUOTA_PERIOD_US: u64 = 100_000;

/// What must be taken back when its time is over.
pub enum Undo {
    Continue(usize),
    Class(usize, Class),
    Online(Cpus),
    ContinueDaemon,
}

/// A task that is to be moved as soon as it sleeps.
pub struct Pending {
    at: usize,
    cpus: Cpus,
    until: u64,
}

impl Director {
    pub fn perform(&mut self, event: usize) {
        let what = self.story.events[event].what;
        // It may be between two lives.
        let at = what
            .task()
            .and_then(|task| self.members.iter().position(|m| m.task == task));
        let done = match at {
            Some(at) => self.perform_on(at, what),
            None => self.perform_on_all(what),
        };
        self.done.push(event);
        self.refused += usize::from(done.is_err());
    }

    fn perform_on(&mut self, at: usize, what: What) -> io::Result<()> {
        let Some(pid) = self.members[at].pid() else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let slot = self.shared.slot(self.members[at].task);
        match what {
            What::Affinity { cpus, .. } => {
                return self.excused(at, |_| sys::set_affinity(pid, cpus));
            }
            What::MoveAsleep { cpus, nap_ms, .. } => {
                slot.order(Order::NapMs(nap_ms));
                let until = sys::now() + FALL_ASLEEP_NS;
                self.pending.push(Pending { at, cpus, until });
            }
            What::Regroup { group, .. } => {
                let procs = self.group_file(group, "cgroup.procs");
                let moved = self.excused(at, |_| std::fs::write(procs, pid.to_string()));
                if moved.is_ok() {
                    self.members[at].group = group;
                    self.note_limits();
                }
                return moved;
            }
            What::Nice { nice, .. } => return sys::set_nice(pid, nice),
            What::Class { class, .. } => {
                self.members[at].what.class = class;
                return self.excused(at, |_| sys::set_class(pid, class, 0));
            }
            What::BrieflyFifo { for_ms, .. } => {
                self.excuse(at);
                let back = self.members[at].what.class;
                self.undo
                    .push((sys::now() + for_ms * MS, Undo::Class(at, back)));
                return sys::set_class(pid, Class::Fifo, 1);
            }
            What::Stop { for_ms, .. } => {
                self.excuse(at);
                self.undo
                    .push((sys::now() + for_ms * MS, Undo::Continue(at)));
                return sys::signal(pid, libc::SIGSTOP);
            }
            What::Declare {
                runtime_us,
                period_us,
                ..
            } => self.declare(at, runtime_us, period_us),
            What::Clear { .. } => self.errand(&["hint", "--clear", "--pid", &pid.to_string()]),
            What::Yields { count, .. } => slot.order(Order::Yield(count)),
            What::Exec { .. } => slot.order(Order::Exec),
            What::Respawn { .. } => {
                self.members[at].respawn = true;
                slot.order(Order::Exit);
            }
            _ => {}
        }
        Ok(())
    }

    fn perform_on_all(&mut self, what: What) -> io::Result<()> {
        match what {
            What::Cpuset { group, cpus } => {
                // Whoever is in it, or in a group below it, is moved by the kernel.
                self.everybody_excused(|director| director.set_cpuset(group, cpus))
            }
            What::Weight { group, weight } => self.set_weight(group, weight),
            What::Limit { group, quota_us } => {
                self.quotas[group] = quota_us;
                // Before it is set and before it is lifted: a limit is an excuse.
                self.note_limits();
                self.set_quota(group, quota_us)
            }
            What::Offline { cpus, for_ms } => {
                self.no_more_fifo();
                self.attached.expect_reload();
                self.shared.judge_all(false);
                let went = Cpus(cpus.0 & !self.offline.0);
                self.undo
                    .push((sys::now() + for_ms * MS, Undo::Online(went)));
                self.offline.0 |= went.0;
                went.iter().try_for_each(|cpu| switch_cpu(cpu, false))
            }
            What::DaemonStop { for_ms } => {
                self.undo
                    .push((sys::now() + for_ms * MS, Undo::ContinueDaemon));
                sys::signal(self.attached.daemon(), libc::SIGSTOP)
            }
            What::DaemonKill => {
                self.shared.judge_all(false);
                self.attached.order_restart()
            }
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// What goes on between events: times that are over, tasks that fell asleep, processes
    /// that ended.
    pub fn look_after(&mut self) {
        let now = sys::now();
        let (due, later) = std::mem::take(&mut self.undo)
            .into_iter()
            .partition(|&(at, _)| at <= now);
        self.undo = later;
        due.into_iter().for_each(|(_, undo)| self.take_back(undo));
        for Pending { at, cpus, until } in std::mem::take(&mut self.pending) {
            let Some(pid) = self.members[at].pid() else {
                continue;
            };
            if state_of(pid) == Some('S') || now > until {
                let moved = self.excused(at, |_| sys::set_affinity(pid, cpus));
                self.refused += usize::from(moved.is_err());
            } else {
                self.pending.push(Pending { at, cpus, until });
            }
        }
        for at in 0..self.members.len() {
            let ended = |child: &mut Child| !matches!(child.try_wait(), Ok(None));
            if self.members[at].respawn && self.members[at].child.as_mut().is_some_and(ended) {
                self.members[at].respawn = false;
                let _ = self.start(at);
            }
        }
        self.errands
            .retain_mut(|(_, child)| matches!(child.try_wait(), Ok(None)));
        if self.attached.settle() {
            self.shared.judge_all(true);
            if self.attached.is_new() {
                self.declare_again();
            }
        }
    }

    pub fn undo_all(&mut self) {
        for (_, undo) in std::mem::take(&mut self.undo) {
            self.take_back(undo);
        }
    }

    fn take_back(&mut self, undo: Undo) {
        let pid_of = |director: &Director, at: usize| director.members[at].pid().unwrap_or(0);
        match undo {
            Undo::Continue(at) => {
                let pid = pid_of(self, at);
                if pid > 0 {
                    let _ = sys::signal(pid, libc::SIGCONT);
                }
                self.unexcuse(at);
            }
            Undo::Class(at, class) => {
                let pid = pid_of(self, at);
                if pid > 0 {
                    let _ = sys::set_class(pid, class, 0);
                }
                self.unexcuse(at);
            }
            Undo::Online(cpus) => {
                self.no_more_fifo();
                self.attached.expect_reload();
                self.shared.judge_all(false);
                self.offline.0 &= !cpus.0;
                for cpu in cpus.iter() {
                    let _ = switch_cpu(cpu, true);
                }
            }
            Undo::ContinueDaemon => {
                let _ = sys::signal(self.attached.daemon(), libc::SIGCONT);
            }
        }
    }

    /// To switch a CPU off or on takes a moment, in which the director cannot end what is
    /// real-time for a moment only.
    fn no_more_fifo(&mut self) {
        let (fifo, other) = std::mem::take(&mut self.undo)
            .into_iter()
            .partition(|(_, undo)| matches!(undo, Undo::Class(..)));
        self.undo = other;
        fifo.into_iter().for_each(|(_, undo)| self.take_back(undo));
    }

    pub fn declare(&mut self, at: usize, runtime_us: u64, period_us: u64) {
        let Some(pid) = self.members[at].pid() else {
            return;
        };
        let [runtime, period] = [runtime_us, period_us].map(|us| format!("{us}us"));
        self.errand(&[
            "hint",
            "--runtime",
            &runtime,
            "--deadline",
            &period,
            "--period",
            &period,
            "--pid",
            &pid.to_string(),
        ]);
    }

    /// A new daemon knows nothing of what the old one was told.
    fn declare_again(&mut self) {
        for at in 0..self.members.len() {
            let what = self.members[at].what.clone();
            if what.declared {
                self.declare(at, 2 * what.work_us, what.period_us);
            }
        }
    }

    /// By a process of its own, since the daemon may be stopped, or gone. Whether it takes a
    /// declaration is its own affair.
    fn errand(&mut self, args: &[&str]) {
        let child = Command::new("scx_temponet")
            .args(args)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        if let Ok(child) = child {
            self.errands.push((sys::now(), child));
        }
    }

    pub fn set_weight(&self, group: usize, weight: u64) -> io::Result<()> {
        std::fs::write(
            self.group_file(Some(group), "cpu.weight"),
            weight.to_string(),
        )
    }

    pub fn set_cpuset(&self, group: usize, cpus: Cpus) -> io::Result<()> {
        std::fs::write(
            self.group_file(Some(group), "cpuset.cpus"),
            cpus.to_string(),
        )
    }

    pub fn set_quota(&self, group: usize, quota_us: Option<u64>) -> io::Result<()> {
        let quota = quota_us.map_or("max".into(), |us| us.to_string());
        std::fs::write(
            self.group_file(Some(group), "cpu.max"),
            format!("{quota} {QUOTA_PERIOD_US}"),
        )
    }
}

fn switch_cpu(cpu: usize, online: bool) -> io::Result<()> {
    std::fs::write(
        format!("/sys/devices/system/cpu/cpu{cpu}/online"),
        if online { "1" } else { "0" },
    )
}
