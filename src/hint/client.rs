//! The Rust side of `include/temponet_hint.h`: declare deadlines from a program.
//!
//! ```no_run
//! use scx_temponet::hint::{Hint, HintClient};
//!
//! let ms = 1_000_000;
//! let hint = Hint::new(2 * ms, 5 * ms, 10 * ms, 0)?;
//! HintClient::connect()?.set(HintClient::this_thread(), &hint)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use super::protocol::{Ask, ProtocolError, Reply, Request, REPLY_BYTES};
use super::{default_socket, root_socket, seqpacket, Hint};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use thiserror::Error;

/// The daemon answers within a millisecond unless the machine is on its knees.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long a daemon that is still loading the scheduler is waited for.
const LOADING: Duration = Duration::from_secs(5);
const RETRY: Duration = Duration::from_millis(50);

#[derive(Debug, Error)]
pub enum ClientError {
    #[error("scx_temponet is not running: nobody listens on {}", .0.display())]
    NoDaemon(PathBuf),
    #[error("{} cannot be reached: {source}", .path.display())]
    Connect { path: PathBuf, source: io::Error },
    #[error("the daemon did not answer: {0}")]
    NoAnswer(io::Error),
    #[error("the daemon's answer makes no sense: {0}")]
    Protocol(#[from] ProtocolError),
    #[error("{reason}")]
    Refused { errno: i32, reason: String },
}

impl ClientError {
    /// The daemon's errno, when it answered and the answer was no.
    pub fn refused_with(&self) -> Option<i32> {
        match self {
            Self::Refused { errno, .. } => Some(*errno),
            _ => None,
        }
    }
}

/// A connection; the daemon closes it after a few silent seconds, so make one
/// when there is something to declare.
#[derive(Debug)]
pub struct HintClient(OwnedFd);

impl HintClient {
    pub fn connect() -> Result<Self, ClientError> {
        Self::connect_to(default_socket())
    }

    /// Root has a socket beside this one, at which nobody else waits.
    pub fn connect_to(path: &Path) -> Result<Self, ClientError> {
        // SAFETY: geteuid has no arguments.
        if unsafe { libc::geteuid() } == 0 {
            if let Ok(fd) = seqpacket::connect(&root_socket(path), PATIENCE) {
                return Ok(Self(fd));
            }
        }
        seqpacket::connect(path, PATIENCE)
            .map(Self)
            .map_err(|source| match source.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
                    ClientError::NoDaemon(path.to_owned())
                }
                _ => ClientError::Connect {
                    path: path.to_owned(),
                    source,
                },
            })
    }

    pub fn this_thread() -> i32 {
        // SAFETY: gettid has no arguments and cannot fail.
        unsafe { libc::gettid() }
    }

    pub fn set(&self, tid: i32, hint: &Hint) -> Result<(), ClientError> {
        self.ask(tid, Ask::Set(*hint)).map(drop)
    }

    /// Clearing a task that has declared nothing is not an error.
    pub fn clear(&self, tid: i32) -> Result<(), ClientError> {
        self.ask(tid, Ask::Clear).map(drop)
    }

    /// None when the task has declared nothing.
    pub fn get(&self, tid: i32) -> Result<Option<Hint>, ClientError> {
        match self.ask(tid, Ask::Get) {
            Ok(reply) => Ok(reply.hint),
            Err(e) if e.refused_with() == Some(libc::ENODATA) => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Patient while the scheduler is being loaded: the socket is there first.
    fn ask(&self, tid: i32, ask: Ask) -> Result<Reply, ClientError> {
        let start = Instant::now();
        let mut answer = self.ask_once(tid, ask);
        while start.elapsed() < LOADING
            && matches!(&answer, Err(e) if e.refused_with() == Some(libc::EAGAIN))
        {
            std::thread::sleep(RETRY);
            match self.ask_once(tid, ask) {
                // The daemon has hung up: what it said before that stands.
                Err(ClientError::NoAnswer(_)) => break,
                again => answer = again,
            }
        }
        answer
    }

    fn ask_once(&self, tid: i32, ask: Ask) -> Result<Reply, ClientError> {
        // A daemon that turns the connection away says why and hangs up, maybe
        // before our request is out: whatever send says, read the answer. A
        // reset is reported once before what was queued ahead of it.
        let sent = seqpacket::send(self.0.as_fd(), &Request { tid, ask }.encode());
        let mut packet = [0; REPLY_BYTES];
        let mut got = seqpacket::recv(self.0.as_fd(), &mut packet);
        if matches!(&got, Err(e) if e.kind() == io::ErrorKind::ConnectionReset) {
            got = seqpacket::recv(self.0.as_fd(), &mut packet);
        }
        let got = match (got, sent) {
            (Ok(0), Err(e)) | (Err(_), Err(e)) | (Err(e), Ok(())) => {
                return Err(ClientError::NoAnswer(e))
            }
            (Ok(0), Ok(())) => {
                return Err(ClientError::NoAnswer(io::Error::from(
                    io::ErrorKind::UnexpectedEof,
                )))
            }
            (Ok(got), _) => got.min(packet.len()),
        };
        let reply = Reply::decode(&packet[..got])?;
        if reply.status != 0 {
            return Err(ClientError::Refused {
                errno: reply.status,
                reason: reply.reason,
            });
        }
        Ok(reply)
    }
}
