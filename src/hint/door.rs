//! The two sockets: one for everybody, and one that root alone can connect to. However
//! many wait at the first, the second is free.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use super::root_socket;
use super::seqpacket::{self, Epoll};
use super::socket_file::{ServerError, SocketFile};
use super::throttle::Bucket;

pub const EVERYBODY: u64 = 1;
pub const ROOT: u64 = 2;

/// Connections taken per second at the socket for everybody, and at once. The queue is
/// served in its order, whoever fills it, so it has to be served fast: most of a flood
/// is hung up on at once. The rate bounds what that costs.
const ACCEPT_RATE: f64 = 8192.0;
const ACCEPT_BURST: f64 = 2048.0;
const BACKLOG: i32 = 1024;
const EVERYBODYS_MODE: u32 = 0o666;
const ROOTS_MODE: u32 = 0o600;
/// When descriptors have run out.
const OUT_OF_DESCRIPTORS: Duration = Duration::from_millis(100);

pub struct Door {
    everybody: SocketFile,
    root: SocketFile,
    accepts: Bucket,
    /// The socket for everybody rests until then.
    paused_until: Option<Instant>,
    /// Given up for a moment when descriptors run out, so that a waiting
    /// connection can be taken and closed instead of waking us for ever.
    spare: Option<File>,
}

impl Door {
    pub fn open(path: &Path, epoll: &Epoll) -> Result<Door, ServerError> {
        let everybody = SocketFile::bind(path, BACKLOG, EVERYBODYS_MODE)?;
        let root = SocketFile::bind(&root_socket(path), BACKLOG, ROOTS_MODE)?;
        epoll.add(everybody.listener(), EVERYBODY)?;
        epoll.add(root.listener(), ROOT)?;
        Ok(Door {
            everybody,
            root,
            accepts: Bucket::new(ACCEPT_RATE, ACCEPT_BURST),
            paused_until: None,
            spare: File::open("/dev/null").ok(),
        })
    }

    /// The next connection that waits at this socket.
    pub fn next(&mut self, socket: u64, now: Instant, epoll: &Epoll) -> Option<OwnedFd> {
        if socket == EVERYBODY {
            if let Err(wait) = self.accepts.take(now) {
                self.pause(now + wait, epoll);
                return None;
            }
        }
        let listener = match socket {
            ROOT => self.root.listener(),
            _ => self.everybody.listener(),
        };
        loop {
            let error = match seqpacket::accept(listener) {
                Ok(fd) => return Some(fd),
                Err(error) => error,
            };
            match error.raw_os_error() {
                Some(libc::ECONNABORTED | libc::EINTR) => {}
                Some(libc::EAGAIN) => return None,
                _ => break,
            }
        }
        self.spare = None;
        let is_turned_away = seqpacket::accept(listener).is_ok();
        self.spare = File::open("/dev/null").ok();
        if !is_turned_away {
            self.pause(now + OUT_OF_DESCRIPTORS, epoll);
        }
        None
    }

    pub fn paused_until(&self) -> Option<Instant> {
        self.paused_until
    }

    /// Opens again what rested for long enough.
    pub fn sweep(&mut self, now: Instant, epoll: &Epoll) {
        if self.paused_until.is_some_and(|at| at <= now) {
            self.paused_until = None;
            let _ = epoll.resume(self.everybody.listener(), EVERYBODY);
        }
    }

    fn pause(&mut self, until: Instant, epoll: &Epoll) {
        self.paused_until = Some(until);
        let _ = epoll.pause(self.everybody.listener(), EVERYBODY);
    }
}
