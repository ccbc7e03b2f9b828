//! What the server asks of the machine and the process that it runs in.

use std::fs::read_link;
use std::io;
use std::os::fd::AsFd;

use procfs::process::Status;

use super::protocol::Reply;
use super::seqpacket::Peer;
use super::task::has_exited;
use crate::proc;

/// Task ids and user ids mean the same to the peer and to us only in the same namespaces.
///
/// What is read here every process may read of every other, so it takes no capability: how
/// many ids the peer has (one for each pid namespace from ours down), and how its user ids
/// are mapped. That the namespaces themselves are the same is asked too, where we may.
pub(super) fn same_namespaces(peer: &Peer) -> Result<(), Reply> {
    if is_alike("self", &peer.pid.to_string()) && !has_exited(peer.pidfd.as_fd()) {
        return Ok(());
    }
    Err(Reply::refused(
        libc::EPERM,
        "deadlines can be declared from the daemon's own pid and user namespace only, not from inside a container",
    ))
}

fn is_alike(us: &str, peer: &str) -> bool {
    let user_ids = |who: &str| {
        let map = std::fs::read_to_string(format!("/proc/{who}/uid_map"))?;
        Ok(map.split_whitespace().map(str::to_owned).collect())
    };
    let namespace = |who: &str| read_link(format!("/proc/{who}/ns/user"));
    has_one_id(us)
        && has_one_id(peer)
        && is_same::<Vec<String>>(user_ids(us), user_ids(peer), false)
        && is_same(namespace(us), namespace(peer), true)
}

/// Whether the process is in the pid namespace that /proc is of. Kernels without such
/// namespaces have one for all.
fn has_one_id(who: &str) -> bool {
    let status = std::fs::read(format!("/proc/{who}/status"));
    let status: Option<Status> = status.ok().and_then(|bytes| proc::parse(&bytes));
    status.is_some_and(|status| status.nspid.is_none_or(|ids| ids.len() == 1))
}

/// `unless_forbidden`: what we may not read says nothing.
fn is_same<T: PartialEq>(
    ours: io::Result<T>,
    theirs: io::Result<T>,
    unless_forbidden: bool,
) -> bool {
    match (ours, theirs) {
        (Ok(ours), Ok(theirs)) => ours == theirs,
        // A kernel built without namespaces of this kind has one for all.
        (Err(e), _) => e.kind() == io::ErrorKind::NotFound,
        (Ok(_), Err(e)) => unless_forbidden && e.kind() == io::ErrorKind::PermissionDenied,
    }
}

/// The soft limit is often 1024 for the sake of select(); the hard one is not.
pub(super) fn raise_descriptor_limit() -> u64 {
    const ENOUGH: u64 = 16 * 1024;
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: limit lives across both calls.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) != 0 {
            return 1024;
        }
        let wanted = libc::rlimit {
            rlim_cur: limit.rlim_max.min(ENOUGH).max(limit.rlim_cur),
            ..limit
        };
        if libc::setrlimit(libc::RLIMIT_NOFILE, &wanted) == 0 {
            limit = wanted;
        }
    }
    limit.rlim_cur
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    /// A process in new namespaces of these kinds, by unshare(1).
    struct Contained(std::process::Child);

    impl Contained {
        fn new(options: &[&str]) -> Option<Contained> {
            let mut unshare = Command::new("unshare");
            let unshare = unshare.args(options).args(["sleep", "60"]);
            // It complains when what it runs is killed.
            let child = unshare.stderr(Stdio::null()).spawn().ok()?;
            let contained = Contained(child);
            // It is `sleep` once the namespaces are made.
            for _ in 0..500 {
                if contained.pid().is_some() {
                    return Some(contained);
                }
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
            None
        }

        /// Of `sleep`, which is a child with --fork.
        fn pid(&self) -> Option<String> {
            let own = self.0.id().to_string();
            let children = std::fs::read_to_string(format!("/proc/{own}/task/{own}/children"));
            let ids = format!("{own} {}", children.unwrap_or_default());
            let is_sleep = |pid: &&str| {
                std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|c| c == "sleep\n")
            };
            ids.split_whitespace().find(is_sleep).map(str::to_owned)
        }
    }

    impl Drop for Contained {
        fn drop(&mut self) {
            if let Some(pid) = self.pid() {
                let _ = Command::new("kill").args(["-9", &pid]).status();
            }
            let _ = self.0.wait();
        }
    }

    #[test]
    fn who_is_in_other_namespaces_is_told_apart_without_any_capability() {
        assert!(is_alike("self", &std::process::id().to_string()));
        for options in [
            &["--user"][..],
            &["--user", "--map-root-user"],
            &["--pid", "--fork"],
        ] {
            let Some(contained) = Contained::new(options) else {
                eprintln!("skipped {options:?}: unshare is not allowed here");
                continue;
            };
            let pid = contained.pid().unwrap();
            assert_eq!(has_one_id(&pid), !options.contains(&"--pid"), "{options:?}");
            assert!(!is_alike("self", &pid), "{options:?}");
        }
        assert!(!is_alike("self", "0"), "a peer that we do not see");
    }

    #[test]
    fn what_may_not_be_read_is_the_same_only_where_other_things_were() {
        let forbidden = || Err(io::Error::from(io::ErrorKind::PermissionDenied));
        let gone = || Err(io::Error::from(io::ErrorKind::NotFound));
        assert!(is_same(Ok(1), forbidden(), true));
        assert!(!is_same(Ok(1), forbidden(), false));
        assert!(!is_same(Ok(1), gone(), true));
        assert!(!is_same(Ok(1), Ok(2), true));
        assert!(is_same(gone(), Ok(2), false));
    }
}
