//! What the server asks of the machine and the process that it runs in.

use std::fs::read_link;
use std::io;
use std::os::fd::AsFd;

use super::protocol::Reply;
use super::seqpacket::Peer;
use super::task::has_exited;

/// Task ids and user ids mean the same to the peer and to us only in the same
/// namespaces. It is also what keeps a user from multiplying: the subordinate
/// ids one may take on in a user namespace each count as a user here.
pub(super) fn same_namespaces(peer: &Peer) -> Result<(), Reply> {
    let ours = |name: &str| read_link(format!("/proc/self/ns/{name}"));
    let theirs = |name: &str| read_link(format!("/proc/{}/ns/{name}", peer.pid));
    let same = ["pid", "user"]
        .iter()
        .all(|name| match (ours(name), theirs(name)) {
            (Ok(ours), Ok(theirs)) => ours == theirs,
            // A kernel built without namespaces of this kind has one for all.
            (Err(e), _) => e.kind() == io::ErrorKind::NotFound,
            (Ok(_), Err(_)) => false,
        });
    if same && !has_exited(peer.pidfd.as_fd()) {
        return Ok(());
    }
    Err(Reply::refused(
        libc::EPERM,
        "deadlines can be declared from the daemon's own pid and user namespace only, not from inside a container",
    ))
}

pub(super) fn online_cpus() -> usize {
    // SAFETY: sysconf has no pointers.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) }).unwrap_or(1)
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
