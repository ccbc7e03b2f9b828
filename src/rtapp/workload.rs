//! What an rt-app file says, in its own terms. Times are microseconds, as there.

use std::path::{Path, PathBuf};

use thiserror::Error;

use super::note::{Fault, Note, Place};
use crate::report::file::read_whole;

#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    pub global: Global,
    pub threads: Vec<Thread>,
    /// Where the threads stand in the file; `None` for a file without any.
    pub tasks_at: Option<Place>,
    pub notes: Vec<Note>,
}

#[derive(Debug, Error)]
pub enum WorkloadError {
    #[error("cannot read {path}: {reason}")]
    Read { path: PathBuf, reason: String },
    #[error("{path}:{fault}")]
    Content { path: PathBuf, fault: Fault },
}

impl Workload {
    pub fn load(path: &Path) -> Result<Workload, WorkloadError> {
        let text = read_whole(path).map_err(|e| WorkloadError::Read {
            path: path.into(),
            reason: e.to_string(),
        })?;
        Workload::of(path, &text)
    }

    /// The text of a file; `path` is for messages.
    pub fn of(path: &Path, text: &[u8]) -> Result<Workload, WorkloadError> {
        Workload::parse(text).map_err(|fault| WorkloadError::Content {
            path: path.into(),
            fault,
        })
    }

    pub fn parse(text: &[u8]) -> Result<Workload, Fault> {
        super::read::workload(text)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Global {
    /// `None`: until every thread has ended.
    pub duration_s: Option<u32>,
    pub default_policy: LinuxPolicy,
    pub calibration: Calibration,
    pub log_dir: String,
    pub log_basename: String,
    pub log_size: LogSize,
    pub lock_pages: bool,
    pub priority_inheritance: bool,
    pub gnuplot: bool,
    pub cumulative_slack: bool,
    /// What `iorun` writes to; `None`: /dev/null.
    pub io_device: Option<Placed<String>>,
    pub mem_buffer_bytes: u64,
}

impl Default for Global {
    fn default() -> Self {
        Self {
            duration_s: None,
            default_policy: LinuxPolicy::Other,
            calibration: Calibration::OnCpu(0),
            log_dir: "./".into(),
            log_basename: "rt-app".into(),
            log_size: LogSize::File,
            lock_pages: true,
            priority_inheritance: false,
            gnuplot: false,
            cumulative_slack: false,
            io_device: None,
            mem_buffer_bytes: 4 << 20,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Calibration {
    /// Measured there before the start.
    OnCpu(u32),
    NsPerLoop(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogSize {
    Disabled,
    File,
    Megabytes(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinuxPolicy {
    Other,
    Batch,
    Idle,
    Fifo,
    Rr,
    Deadline,
}

impl LinuxPolicy {
    pub const ALL: [LinuxPolicy; 6] = [
        LinuxPolicy::Other,
        LinuxPolicy::Batch,
        LinuxPolicy::Idle,
        LinuxPolicy::Fifo,
        LinuxPolicy::Rr,
        LinuxPolicy::Deadline,
    ];

    pub fn name(self) -> &'static str {
        match self {
            LinuxPolicy::Other => "SCHED_OTHER",
            LinuxPolicy::Batch => "SCHED_BATCH",
            LinuxPolicy::Idle => "SCHED_IDLE",
            LinuxPolicy::Fifo => "SCHED_FIFO",
            LinuxPolicy::Rr => "SCHED_RR",
            LinuxPolicy::Deadline => "SCHED_DEADLINE",
        }
    }

    /// Threads of these classes run before every sched_ext scheduler.
    pub fn is_above_sched_ext(self) -> bool {
        matches!(
            self,
            LinuxPolicy::Fifo | LinuxPolicy::Rr | LinuxPolicy::Deadline
        )
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loops {
    Forever,
    Times(u32),
}

/// An entry of `tasks`: a thread, or several alike.
#[derive(Clone, Debug, PartialEq)]
pub struct Thread {
    pub name: String,
    pub at: Place,
    /// Started at once; 0 for one that is only forked.
    pub instances: u32,
    pub delay_us: u64,
    pub loops: Loops,
    /// One without a name where the thread has no `phases`.
    pub phases: Vec<Phase>,
    pub setting: Setting,
}

impl Thread {
    /// Relative, from `dl-deadline`, or `dl-period` where only that is given. A lone
    /// `dl-runtime` is a deadline for SCHED_DEADLINE only; elsewhere it is a time slice.
    pub fn declared_deadline_us(&self, phase: usize) -> Option<u64> {
        let policy_of = |setting: &Setting| setting.policy.as_ref().map(|policy| policy.value);
        let own = &self.phases[phase].setting;
        let outer = policy_of(&self.setting);
        own.deadline
            .relative_us(policy_of(own).or(outer))
            .or_else(|| self.setting.deadline.relative_us(outer))
    }

    /// What it starts with: the priority of a thread in one of the kernel's fair classes.
    pub fn nice(&self) -> i8 {
        let policy = self.setting.policy.as_ref();
        let is_fair = policy.is_none_or(|policy| !policy.value.is_above_sched_ext());
        let priority = self.setting.priority.as_ref().filter(|_| is_fair);
        priority.map_or(0, |priority| priority.value.clamp(-20, 19) as i8)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Phase {
    pub name: Option<String>,
    pub at: Place,
    pub loops: Loops,
    pub events: Vec<Event>,
    pub setting: Setting,
}

/// Where and how to run, for a thread or from a phase on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Setting {
    pub cpus: Option<Placed<Vec<u32>>>,
    pub memory_nodes: Option<Placed<Vec<u32>>>,
    /// The thread's own or the file's default; in a phase, only what it says itself.
    pub policy: Option<Placed<LinuxPolicy>>,
    pub priority: Option<Placed<i32>>,
    pub util_min: Option<Placed<i32>>,
    pub util_max: Option<Placed<i32>>,
    pub taskgroup: Option<Placed<String>>,
    pub deadline: DeadlineParameters,
}

/// `dl-runtime`, `dl-period` and `dl-deadline`; rt-app takes one that is missing
/// from the one before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeadlineParameters {
    pub runtime_us: Option<u64>,
    pub period_us: Option<u64>,
    pub deadline_us: Option<u64>,
}

impl DeadlineParameters {
    fn relative_us(&self, policy: Option<LinuxPolicy>) -> Option<u64> {
        let slice = self
            .runtime_us
            .filter(|_| policy == Some(LinuxPolicy::Deadline));
        self.deadline_us.or(self.period_us).or(slice)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Placed<T> {
    pub at: Place,
    pub value: T,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    pub at: Place,
    /// As written: `run0`, `timer_a`.
    pub key: String,
    pub action: Action,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Calibrated loops: so much CPU time.
    Run {
        us: u64,
    },
    /// Wall-clock time, however much of it is spent waiting for the CPU.
    Runtime {
        us: u64,
    },
    Sleep {
        us: u64,
    },
    Timer(Timer),
    Lock(String),
    Unlock(String),
    Wait {
        on: String,
        mutex: String,
    },
    Signal(String),
    Broadcast(String),
    /// Signal, then wait.
    Sync {
        on: String,
        mutex: String,
    },
    Barrier(String),
    SemPost(String),
    SemWait(String),
    /// The name is the thread's own unless the event says otherwise.
    Suspend(String),
    Resume(String),
    Yield,
    Fork(String),
    Mem {
        count: u64,
    },
    IoRun {
        count: u64,
    },
    MemRun(MemRun),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timer {
    pub reference: String,
    /// One per thread (a reference that starts with "unique"), not one for all.
    pub unique: bool,
    pub period_us: u64,
    /// The grid stays after a miss; a relative timer starts anew.
    pub absolute: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemRun {
    pub kind: String,
    pub size: u64,
    pub count: u64,
}
