//! The task a request names: held by pidfd, so that its id cannot come to mean
//! another task between the question whose it is and the answer.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use procfs::process::Status;
use thiserror::Error;

use super::cpus::CpuSet;
use crate::proc;

/// `PIDFD_THREAD` (Linux 6.9): the pidfd is this thread, not its process.
const PIDFD_THREAD: libc::c_uint = libc::O_EXCL as libc::c_uint;

#[derive(Debug, Error)]
pub enum TaskError {
    #[error("no task has id {0}")]
    Gone(i32),
    #[error("task {0} cannot be looked up: {1}")]
    Io(i32, io::Error),
    #[error("task {tid} belongs to user {owner}, and user {peer} may declare deadlines for their own tasks only")]
    NotYours { tid: i32, owner: u32, peer: u32 },
    #[error("task {tid} runs with the rights of another user (set-uid), so only root may declare deadlines for it")]
    SetUid { tid: i32 },
}

impl TaskError {
    pub fn errno(&self) -> i32 {
        match self {
            Self::Gone(_) => libc::ESRCH,
            Self::Io(_, e) => e.raw_os_error().unwrap_or(libc::EIO),
            Self::NotYours { .. } | Self::SetUid { .. } => libc::EPERM,
        }
    }
}

#[derive(Debug)]
pub struct Task {
    pidfd: OwnedFd,
    pub tid: i32,
    pub tgid: i32,
    /// Real, effective, saved and file-system user id.
    uids: [u32; 4],
    /// The CPUs that it may use.
    pub cpus: CpuSet,
}

impl Task {
    /// Everything read from /proc is about the task the pidfd holds: the pidfd
    /// comes first, and as long as its task lives the id is not reused, which
    /// is checked last.
    pub fn open(tid: i32) -> Result<Self, TaskError> {
        let pidfd = pidfd_open(tid).map_err(|e| gone_or_io(tid, e))?;
        let status = read_status(tid).map_err(|e| gone_or_io(tid, e))?;
        let status: Option<Status> = proc::parse(&status);
        let cpus = CpuSet::of_task(tid).map_err(|e| gone_or_io(tid, e))?;
        if has_exited(pidfd.as_fd()) {
            return Err(TaskError::Gone(tid));
        }
        let status = status.ok_or_else(|| {
            TaskError::Io(
                tid,
                io::Error::new(io::ErrorKind::InvalidData, "its /proc status is not one"),
            )
        })?;
        Ok(Self {
            pidfd,
            tid,
            tgid: status.tgid,
            uids: [status.ruid, status.euid, status.suid, status.fuid],
            cpus,
        })
    }

    pub fn pidfd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    pub fn into_pidfd(self) -> OwnedFd {
        self.pidfd
    }

    /// All four ids must be the peer's: a set-uid program is not its caller's
    /// to shape, not even while it has its privileges put aside.
    pub fn check_owner(&self, peer: u32) -> Result<(), TaskError> {
        if peer == 0 || self.uids == [peer; 4] {
            return Ok(());
        }
        if self.uids[0] == peer {
            return Err(TaskError::SetUid { tid: self.tid });
        }
        Err(TaskError::NotYours {
            tid: self.tid,
            owner: self.uids[0],
            peer,
        })
    }
}

fn gone_or_io(tid: i32, error: io::Error) -> TaskError {
    match error.raw_os_error() {
        Some(libc::ESRCH) | Some(libc::ENOENT) => TaskError::Gone(tid),
        _ => TaskError::Io(tid, error),
    }
}

fn pidfd_open(tid: i32) -> io::Result<OwnedFd> {
    // SAFETY: no pointers; a non-negative result is a new descriptor of ours.
    unsafe {
        let fd = libc::syscall(libc::SYS_pidfd_open, tid, PIDFD_THREAD);
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(OwnedFd::from_raw_fd(fd as i32))
    }
}

/// A pidfd becomes readable when its task exits.
pub fn has_exited(pidfd: BorrowedFd<'_>) -> bool {
    let mut poll = libc::pollfd {
        fd: pidfd.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: one pollfd, as said; no waiting.
    let ready = unsafe { libc::poll(&mut poll, 1, 0) };
    ready != 0
}

fn read_status(tid: i32) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // A status is about 1.5 KiB. /proc finds threads by their own id too. The kernel escapes
    // line breaks in the name, so a program cannot forge a `Uid:` line by calling itself one.
    File::open(format!("/proc/{tid}/status"))?
        .take(16 * 1024)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_found_by_its_thread_id() {
        // SAFETY: gettid has no arguments.
        let tid = unsafe { libc::gettid() };
        let task = Task::open(tid).unwrap();
        assert_eq!(task.tgid, std::process::id() as i32);
        task.check_owner(0).unwrap();
        // SAFETY: getuid has no arguments.
        task.check_owner(unsafe { libc::getuid() }).unwrap();
    }

    #[test]
    fn a_dead_child_is_gone_even_before_it_is_reaped() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = child.id() as i32;
        std::thread::sleep(std::time::Duration::from_millis(100));
        assert!(matches!(Task::open(pid), Err(TaskError::Gone(p)) if p == pid));
        child.wait().unwrap();
        assert_eq!(Task::open(pid).unwrap_err().errno(), libc::ESRCH);
    }

    #[test]
    fn other_peoples_tasks_and_set_uid_programs_are_not_touched() {
        // SAFETY: gettid has no arguments.
        let mut task = Task::open(unsafe { libc::gettid() }).unwrap();
        task.uids = [1000; 4];
        task.check_owner(1000).unwrap();
        task.check_owner(0).unwrap();
        assert!(matches!(
            task.check_owner(1001),
            Err(TaskError::NotYours { owner: 1000, .. })
        ));
        for uids in [[1000, 0, 0, 0], [1000, 1000, 0, 1000]] {
            task.uids = uids;
            assert!(matches!(
                task.check_owner(1000),
                Err(TaskError::SetUid { .. })
            ));
        }
        // The other half of set-uid: a root shell that runs as the user for now.
        task.uids = [0, 1000, 0, 1000];
        assert_eq!(task.check_owner(1000).unwrap_err().errno(), libc::EPERM);
    }

    #[test]
    fn a_name_that_is_no_text_or_looks_like_a_line_of_ids_hides_no_owner() {
        // SAFETY: gettid has no arguments.
        let tid = unsafe { libc::gettid() };
        for name in [
            &b"\xff\xfe\0"[..],
            b"Uid:\t7 7 7 7\0",
            b"x\nUid:\t7\0",
            b"\0",
        ] {
            // SAFETY: a string that ends in a zero byte and outlives the call.
            unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
            let task = Task::open(tid).unwrap();
            // SAFETY: getuid has no arguments.
            assert_eq!(task.uids, [unsafe { libc::getuid() }; 4], "{name:?}");
        }
    }

    #[test]
    fn a_status_that_is_cut_off_is_none() {
        // SAFETY: gettid has no arguments.
        let whole = read_status(unsafe { libc::gettid() }).unwrap();
        assert!(proc::parse::<Status>(&whole).is_some());
        let ids = whole.windows(4).position(|part| part == b"Uid:").unwrap();
        for length in [0, 20, ids, ids + 6] {
            assert!(
                proc::parse::<Status>(&whole[..length]).is_none(),
                "{length}"
            );
        }
    }
}
