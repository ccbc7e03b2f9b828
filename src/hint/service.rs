//! What happens on the hint sockets: one thread, asleep in epoll until somebody connects, a
//! declared task exits or the daemon ends. With no connection open it has no timer, so an
//! idle machine stays idle.
//!
//! It has none of the agent's scheduling privileges: it is a task like any other. What strangers
//! can make it do is bounded all the same: connections at a time and per second, requests per
//! second, the time that a silent connection is kept, and the length of a packet. A flood delays
//! its sender's declarations most, other users' a little, root's and the scheduler not.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use log::{debug, error};

use super::accounts::Accounts;
use super::cpus::CpuSet;
use super::door::{Door, EVERYBODY, ROOT};
use super::host::same_namespaces;
use super::protocol::{Ask, ProtocolError, Reply, Request, REQUEST_BYTES};
use super::registry::{Bounds, Declaration, Registry};
use super::seqpacket::{self, Epoll, Peer};
use super::server::{lock, Sink, State};
use super::store::HintStore;
use super::task::{has_exited, Task};
use super::throttle::Buckets;

/// Of all users but root, and of each. Root has its own.
const CONNECTIONS_USERS: usize = 112;
const CONNECTIONS_USER: usize = 16;
const CONNECTIONS_ROOT: usize = 64;
/// A connection that says nothing for so long is closed. The C header and the
/// command line connect, ask and leave within milliseconds.
const SILENCE_MAX: Duration = Duration::from_secs(5);
/// Connections taken from a socket before others have their turn.
const ACCEPTS_A_TURN: usize = 64;
/// Requests per second and user, and at once. A request costs some 20 us of the daemon's
/// time, so one user can claim about a hundredth of one CPU.
const REQUEST_RATE: f64 = 500.0;
const REQUEST_BURST: f64 = 512.0;
/// The same for connections: who makes more is hung up on without a word.
const CONNECT_RATE: f64 = 256.0;
const CONNECT_BURST: f64 = 256.0;

pub const STOP: u64 = 0;
const FIRST_ID: u64 = 3;

struct Connection {
    fd: OwnedFd,
    uid: u32,
    /// Who is charged: the user, or who owns this subordinate id.
    account: u32,
    heard_at: Instant,
    paused_until: Option<Instant>,
}

pub struct Service {
    state: Arc<Mutex<State>>,
    _stop: Arc<OwnedFd>,
    epoll: Epoll,
    door: Door,
    accounts: Accounts,
    connections: HashMap<u64, Connection>,
    connects: Buckets,
    requests: Buckets,
    next_id: u64,
}

impl Service {
    pub fn new(
        state: Arc<Mutex<State>>,
        stop: Arc<OwnedFd>,
        epoll: Epoll,
        door: Door,
        accounts: Accounts,
    ) -> Service {
        Service {
            state,
            _stop: stop,
            epoll,
            door,
            accounts,
            connections: HashMap::new(),
            connects: Buckets::new(CONNECT_RATE, CONNECT_BURST),
            requests: Buckets::new(REQUEST_RATE, REQUEST_BURST),
            next_id: FIRST_ID,
        }
    }

    pub fn run(mut self) {
        loop {
            let events = match self.epoll.wait(self.patience(Instant::now())) {
                Ok(events) => events,
                Err(e) => {
                    error!("the hint service has ended: {e}");
                    return;
                }
            };
            for (token, readable) in events {
                match token {
                    STOP => return,
                    EVERYBODY | ROOT => self.accept(token),
                    id if self.connections.contains_key(&id) => {
                        // One request per turn: nobody's queue comes first.
                        if !readable || !self.serve(id) {
                            self.connections.remove(&id);
                        }
                    }
                    id => self.task_exited(id),
                }
            }
            self.sweep(Instant::now());
        }
    }

    fn fresh_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    /// None, for ever, unless a connection is open or accepting is paused.
    fn patience(&self, now: Instant) -> Option<Duration> {
        self.connections
            .values()
            .map(|c| c.paused_until.unwrap_or(c.heard_at + SILENCE_MAX))
            .chain(self.door.paused_until())
            .min()
            .map(|at| at.saturating_duration_since(now))
    }

    fn sweep(&mut self, now: Instant) {
        self.door.sweep(now, &self.epoll);
        let epoll = &self.epoll;
        self.connections.retain(|id, c| {
            if c.paused_until.is_some_and(|at| at <= now) {
                c.paused_until = None;
                return epoll.resume(c.fd.as_fd(), *id).is_ok();
            }
            c.paused_until.is_some() || now.duration_since(c.heard_at) < SILENCE_MAX
        });
        self.requests.forget_idle(now);
        self.connects.forget_idle(now);
    }

    fn accept(&mut self, socket: u64) {
        for _ in 0..ACCEPTS_A_TURN {
            let now = Instant::now();
            match self.door.next(socket, now, &self.epoll) {
                Some(fd) => self.welcome(fd, now),
                None => return,
            }
        }
    }

    fn welcome(&mut self, fd: OwnedFd, now: Instant) {
        let Ok((uid, pid)) = seqpacket::credentials(fd.as_fd()) else {
            return;
        };
        let account = self.accounts.of(uid, now);
        if uid != 0 && self.connects.take(account, now).is_err() {
            return;
        }
        let Ok(peer) = Peer::of(fd.as_fd(), uid, pid) else {
            return;
        };
        if let Err(refusal) = self.admit_peer(&peer, account) {
            debug!("turned user {uid} away: {}", refusal.reason);
            let _ = seqpacket::send(fd.as_fd(), &refusal.encode());
            return;
        }
        let id = self.fresh_id();
        if self.epoll.add(fd.as_fd(), id).is_ok() {
            self.connections.insert(
                id,
                Connection {
                    fd,
                    uid,
                    account,
                    heard_at: now,
                    paused_until: None,
                },
            );
        }
    }

    fn admit_peer(&self, peer: &Peer, account: u32) -> Result<(), Reply> {
        let open = |of: &dyn Fn(u32) -> bool| {
            let accounts = self.connections.values().map(|c| c.account);
            accounts.filter(|&account| of(account)).count()
        };
        let is_crowded = match peer.uid {
            0 => open(&|other| other == 0) >= CONNECTIONS_ROOT,
            _ => {
                open(&|other| other == account) >= CONNECTIONS_USER
                    || open(&|other| other != 0) >= CONNECTIONS_USERS
            }
        };
        if is_crowded {
            return Err(Reply::refused(
                libc::EAGAIN,
                "too many connections are open; try again",
            ));
        }
        same_namespaces(peer)
    }

    /// Answers one request; false when the connection is done with.
    fn serve(&mut self, id: u64) -> bool {
        let now = Instant::now();
        let Some(connection) = self.connections.get_mut(&id) else {
            return false;
        };
        let (uid, account) = (connection.uid, connection.account);
        if uid != 0 {
            if let Err(wait) = self.requests.take(account, now) {
                connection.paused_until = Some(now + wait);
                return self.epoll.pause(connection.fd.as_fd(), id).is_ok();
            }
        }
        let mut packet = [0; REQUEST_BYTES];
        let request = match seqpacket::recv(connection.fd.as_fd(), &mut packet) {
            Ok(0) => return false,
            Ok(got) if got > packet.len() => Err(ProtocolError::Length {
                got,
                want: REQUEST_BYTES,
            }),
            Ok(got) => Request::decode(&packet[..got]),
            Err(e) => return e.kind() == io::ErrorKind::WouldBlock,
        };
        connection.heard_at = now;
        let (reply, sane) = match request {
            Ok(request) => (self.answer(uid, account, request), true),
            // A wrong number is a mistake to explain; a packet that is none of
            // ours is noise, and its sender is not talked to again.
            Err(e) => (
                Reply::refused(e.errno(), e.to_string()),
                matches!(e, ProtocolError::Hint(_) | ProtocolError::Tid(_)),
            ),
        };
        // Never waits: who does not read the answers is dropped once they
        // have filled the socket.
        self.connections
            .get(&id)
            .is_some_and(|c| seqpacket::send(c.fd.as_fd(), &reply.encode()).is_ok())
            && sane
    }

    fn answer(&mut self, uid: u32, account: u32, request: Request) -> Reply {
        let new_id = self.fresh_id();
        let task =
            match Task::open(request.tid).and_then(|task| task.check_owner(uid).map(|()| task)) {
                Ok(task) => task,
                Err(e) => return Reply::refused(e.errno(), e.to_string()),
            };
        let mut state = lock(&self.state);
        let State {
            registry,
            sink,
            limits,
            ..
        } = &mut *state;
        let store: Option<&dyn HintStore> = match sink {
            Sink::NotYet => {
                return Reply::refused(libc::EAGAIN, "the scheduler is being loaded; try again")
            }
            Sink::Between => None,
            Sink::Store(store) => Some(&**store),
        };
        let failed = |e: io::Error, task: &Task| {
            if has_exited(task.pidfd()) {
                return Reply::refused(libc::ESRCH, format!("no task has id {}", task.tid));
            }
            Reply::refused(
                e.raw_os_error().unwrap_or(libc::EIO),
                format!("the hint map cannot be reached: {e}"),
            )
        };
        match request.ask {
            Ask::Get => match store.map_or_else(
                || Ok(registry.get(task.tid)),
                |store| store.get(task.pidfd()),
            ) {
                Ok(Some(hint)) => Reply::done(Some(hint)),
                Ok(None) => Reply::refused(
                    libc::ENODATA,
                    format!("task {} has declared nothing", request.tid),
                ),
                Err(e) => failed(e, &task),
            },
            Ask::Clear => match registry.clear(store, &task) {
                Ok(()) => Reply::done(None),
                Err(e) => failed(e, &task),
            },
            Ask::Set(hint) => {
                let bounds = Bounds {
                    limits,
                    online: CpuSet::online(),
                };
                let declaration = Declaration {
                    uid: account,
                    task,
                    hint,
                };
                match registry.set(store, bounds, declaration, new_id) {
                    Ok(id) => {
                        if id == new_id {
                            watch(&self.epoll, registry, id);
                        }
                        Reply::done(None)
                    }
                    Err(e) => Reply::refused(e.errno(), e.to_string()),
                }
            }
        }
    }

    fn task_exited(&mut self, id: u64) {
        let new_id = self.fresh_id();
        let mut state = lock(&self.state);
        let State { registry, sink, .. } = &mut *state;
        let Some(orphan) = registry.exited(id) else {
            return;
        };
        if let Sink::Store(store) = sink {
            if let Some(adopted) = registry.adopt(store.as_ref(), orphan, new_id) {
                watch(&self.epoll, registry, adopted);
            }
        }
    }
}

/// Hears of the task's exit. Should that fail (memory), the share is given
/// back when the id is used again, which is late but not wrong.
fn watch(epoll: &Epoll, registry: &Registry, id: u64) {
    if let Some(Err(e)) = registry.pidfd(id).map(|pidfd| epoll.add(pidfd, id)) {
        error!("the exit of a declared task will go unnoticed: {e}");
    }
}
