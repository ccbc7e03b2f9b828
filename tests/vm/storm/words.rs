//! Events in words, for whoever reads a story or a report.
use crate::events::What;
use std::fmt;

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match *self {
            What::Affinity { task, cpus } => write!(f, "task {task} may use CPUs {cpus}"),
            What::MoveAsleep { task, cpus, nap_ms } => {
                write!(
                    f,
                    "task {task} sleeps for {nap_ms} ms and may use CPUs {cpus} meanwhile"
                )
            }
            What::Cpuset { group, cpus } => write!(f, "group {group} may use CPUs {cpus}"),
            What::Regroup {
                task,
                group: Some(group),
            } => write!(f, "task {task} to group {group}"),
            What::Regroup { task, group: None } => write!(f, "task {task} to the root group"),
            What::Weight { group, weight } => write!(f, "group {group} has weight {weight}"),
            What::Limit {
                group,
                quota_us: Some(quota),
            } => {
                write!(f, "group {group} may use {quota} us in 100 ms")
            }
            What::Limit {
                group,
                quota_us: None,
            } => write!(f, "group {group} has no limit"),
            What::Nice { task, nice } => write!(f, "task {task} is nice {nice}"),
            What::Class { task, class } => write!(f, "task {task} is of class {class:?}"),
            What::BrieflyFifo { task, for_ms } => {
                write!(f, "task {task} is real-time for {for_ms} ms")
            }
            What::Stop { task, for_ms } => write!(f, "task {task} is stopped for {for_ms} ms"),
            What::Declare {
                task,
                runtime_us,
                period_us,
            } => {
                write!(
                    f,
                    "task {task} is declared, {runtime_us} us of {period_us} us"
                )
            }
            What::Clear { task } => write!(f, "task {task} is no longer declared"),
            What::Yields { task, count } => write!(f, "task {task} yields {count} times"),
            What::Exec { task } => write!(f, "task {task} executes a new image"),
            What::Respawn { task } => write!(f, "task {task} ends and is started again"),
            What::Offline { cpus, for_ms } => {
                write!(f, "CPUs {cpus} go offline for {for_ms} ms")
            }
            What::DaemonStop { for_ms } => write!(f, "the daemon is stopped for {for_ms} ms"),
            What::DaemonKill => write!(f, "the daemon is killed and started again"),
        }
    }
}
