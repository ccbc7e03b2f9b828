//! SOCK_SEQPACKET Unix sockets, which std does not have: packets keep their
//! bounds, so a slow writer cannot hold a half-read request open.
//!
//! All unsafe socket calls of the hint service are here.

use std::ffi::OsStr;
use std::io;
use std::mem::{size_of, size_of_val, zeroed};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

/// Linux 6.5, older than any with sched_ext; not in the libc crate for every target.
const SO_PEERPIDFD: libc::c_int = 77;

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

fn socket(flags: libc::c_int) -> io::Result<OwnedFd> {
    // SAFETY: no pointers; the descriptor is new and ours.
    unsafe {
        let fd = check(libc::socket(
            libc::AF_UNIX,
            libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC | flags,
            0,
        ))?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

fn address(path: &Path) -> io::Result<libc::sockaddr_un> {
    // SAFETY: all zeros is a valid sockaddr_un.
    let mut addr: libc::sockaddr_un = unsafe { zeroed() };
    let bytes = OsStr::as_bytes(path.as_os_str());
    if bytes.is_empty() || bytes.len() >= addr.sun_path.len() || bytes.contains(&0) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("a socket's path has 1 to {} bytes", addr.sun_path.len() - 1),
        ));
    }
    addr.sun_family = libc::AF_UNIX as libc::sa_family_t;
    for (to, from) in addr.sun_path.iter_mut().zip(bytes) {
        *to = *from as libc::c_char;
    }
    Ok(addr)
}

pub fn listen(path: &Path, backlog: i32) -> io::Result<OwnedFd> {
    let addr = address(path)?;
    let fd = socket(libc::SOCK_NONBLOCK)?;
    // SAFETY: addr is a sockaddr_un of the length given.
    unsafe {
        check(libc::bind(
            fd.as_raw_fd(),
            (&raw const addr).cast(),
            size_of_val(&addr) as libc::socklen_t,
        ))?;
        check(libc::listen(fd.as_raw_fd(), backlog))?;
    }
    Ok(fd)
}

/// A blocking connection; no call on it takes longer than `patience`.
pub fn connect(path: &Path, patience: Duration) -> io::Result<OwnedFd> {
    let addr = address(path)?;
    let fd = socket(0)?;
    let time = libc::timeval {
        tv_sec: patience.as_secs() as libc::time_t,
        tv_usec: libc::suseconds_t::from(patience.subsec_micros()),
    };
    // SAFETY: time and addr live across the calls and have the lengths given.
    unsafe {
        // On a Unix socket the send timeout bounds connect() as well.
        for option in [libc::SO_SNDTIMEO, libc::SO_RCVTIMEO] {
            check(libc::setsockopt(
                fd.as_raw_fd(),
                libc::SOL_SOCKET,
                option,
                (&raw const time).cast(),
                size_of::<libc::timeval>() as libc::socklen_t,
            ))?;
        }
        check(libc::connect(
            fd.as_raw_fd(),
            (&raw const addr).cast(),
            size_of_val(&addr) as libc::socklen_t,
        ))?;
    }
    Ok(fd)
}

pub fn accept(listener: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    // SAFETY: the address is not asked for; the descriptor is new and ours.
    unsafe {
        let fd = check(libc::accept4(
            listener.as_raw_fd(),
            std::ptr::null_mut(),
            std::ptr::null_mut(),
            libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK,
        ))?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// Length of the packet, which may be more than fitted; 0 when the peer is gone.
pub fn recv(fd: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        // SAFETY: the kernel writes at most the buffer's length.
        let got = unsafe {
            libc::recv(
                fd.as_raw_fd(),
                buffer.as_mut_ptr().cast(),
                buffer.len(),
                libc::MSG_TRUNC,
            )
        };
        if got >= 0 {
            return Ok(got as usize);
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

pub fn send(fd: BorrowedFd<'_>, packet: &[u8]) -> io::Result<()> {
    loop {
        // SAFETY: the kernel reads the packet's length.
        let sent = unsafe {
            libc::send(
                fd.as_raw_fd(),
                packet.as_ptr().cast(),
                packet.len(),
                libc::MSG_NOSIGNAL,
            )
        };
        if sent >= 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// User and process id of who connected, as the kernel recorded them then.
pub fn credentials(fd: BorrowedFd<'_>) -> io::Result<(u32, i32)> {
    // SAFETY: all zeros is a valid ucred; the kernel writes at most its length.
    let cred = unsafe {
        let mut cred: libc::ucred = zeroed();
        sockopt(fd, libc::SO_PEERCRED, &mut cred)?;
        cred
    };
    Ok((cred.uid, cred.pid))
}

/// Who connected, and what says whether they are still there.
pub struct Peer {
    pub uid: u32,
    pub pid: i32,
    pub pidfd: OwnedFd,
}

impl Peer {
    /// An error where the peer is gone: its id may mean another process by now.
    pub fn of(fd: BorrowedFd<'_>, uid: u32, pid: i32) -> io::Result<Peer> {
        let mut raw: libc::c_int = -1;
        // SAFETY: the kernel writes at most an int, a descriptor that is new and ours.
        let pidfd = unsafe {
            sockopt(fd, SO_PEERPIDFD, &mut raw)?;
            OwnedFd::from_raw_fd(raw)
        };
        Ok(Peer { uid, pid, pidfd })
    }
}

/// # Safety
/// Whatever the kernel writes for this option is a valid `T`.
unsafe fn sockopt<T>(fd: BorrowedFd<'_>, option: libc::c_int, value: &mut T) -> io::Result<()> {
    let mut len = size_of::<T>() as libc::socklen_t;
    check(libc::getsockopt(
        fd.as_raw_fd(),
        libc::SOL_SOCKET,
        option,
        (value as *mut T).cast(),
        &mut len,
    ))?;
    Ok(())
}

/// An epoll instance whose events carry one number each.
pub struct Epoll(OwnedFd);

impl Epoll {
    pub fn new() -> io::Result<Self> {
        // SAFETY: no pointers; the descriptor is new and ours.
        unsafe {
            let fd = check(libc::epoll_create1(libc::EPOLL_CLOEXEC))?;
            Ok(Self(OwnedFd::from_raw_fd(fd)))
        }
    }

    pub fn add(&self, fd: BorrowedFd<'_>, token: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, fd, libc::EPOLLIN, token)
    }

    /// Hears only about hang-ups until [`resume`](Self::resume).
    pub fn pause(&self, fd: BorrowedFd<'_>, token: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, fd, 0, token)
    }

    pub fn resume(&self, fd: BorrowedFd<'_>, token: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, fd, libc::EPOLLIN, token)
    }

    fn control(&self, op: i32, fd: BorrowedFd<'_>, events: i32, token: u64) -> io::Result<()> {
        let mut event = libc::epoll_event {
            events: events as u32,
            u64: token,
        };
        // SAFETY: event lives across the call.
        check(unsafe { libc::epoll_ctl(self.0.as_raw_fd(), op, fd.as_raw_fd(), &mut event) })?;
        Ok(())
    }

    /// Tokens that are ready, and whether there is something to read there.
    pub fn wait(&self, timeout: Option<Duration>) -> io::Result<Vec<(u64, bool)>> {
        let mut events: [libc::epoll_event; 64] = [libc::epoll_event { events: 0, u64: 0 }; 64];
        // Rounded up, or the last millisecond before a deadline would be spun.
        let timeout_ms = timeout.map_or(-1, |t| {
            i32::try_from(t.as_micros().div_ceil(1000)).unwrap_or(i32::MAX)
        });
        // SAFETY: the kernel writes at most 64 events.
        let ready = unsafe {
            libc::epoll_wait(
                self.0.as_raw_fd(),
                events.as_mut_ptr(),
                events.len() as i32,
                timeout_ms,
            )
        };
        if ready < 0 {
            let error = io::Error::last_os_error();
            return match error.kind() {
                io::ErrorKind::Interrupted => Ok(Vec::new()),
                _ => Err(error),
            };
        }
        Ok(events[..ready as usize]
            .iter()
            .map(|e| (e.u64, e.events & libc::EPOLLIN as u32 != 0))
            .collect())
    }
}

/// The doorbell that ends the server's thread.
pub fn eventfd() -> io::Result<OwnedFd> {
    // SAFETY: no pointers; the descriptor is new and ours.
    unsafe {
        let fd = check(libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK))?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

pub fn ring(fd: &OwnedFd) {
    let one = 1u64.to_ne_bytes();
    // SAFETY: eight bytes, as an eventfd wants. It fails only when already rung.
    unsafe {
        libc::write(fd.as_fd().as_raw_fd(), one.as_ptr().cast(), one.len());
    }
}
