//! The daemon's ear: takes declarations from any user over a Unix socket.
//!
//! One thread, asleep in epoll until somebody connects, a declared task exits
//! or the daemon ends; with no connection open it has no timer, so an idle
//! machine stays idle. It runs with the agent's scheduling privileges, so what
//! strangers can make it do is bounded: connections in all and per user,
//! requests per second and user, time a silent connection is kept, and the
//! length of a packet. A flood delays other declarations, never the scheduler.

use super::admission::Limits;
use super::host::{online_cpus, raise_descriptor_limit, same_namespaces};
use super::protocol::{Ask, ProtocolError, Reply, Request, REQUEST_BYTES};
use super::registry::{Bounds, Declaration, Registry};
use super::seqpacket::{self, Epoll, Peer};
use super::socket_file::{ServerError, SocketFile};
use super::store::HintStore;
use super::task::{has_exited, Task};
use super::throttle::{Bucket, Buckets};
use log::{debug, error, info, warn};
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const CONNECTIONS_MAX: usize = 128;
/// Kept free for root, who has to get in when users crowd the door.
const CONNECTIONS_ROOT: usize = 16;
const CONNECTIONS_USER: usize = 16;
/// A connection that says nothing for so long is closed. The C header and the
/// command line connect, ask and leave within milliseconds.
const SILENCE_MAX: Duration = Duration::from_secs(5);
/// Connections accepted per second, all users together, and at once.
const ACCEPT_RATE: f64 = 256.0;
const ACCEPT_BURST: f64 = 128.0;
const BACKLOG: i32 = 64;
/// Descriptors the rest of the daemon may need.
const FDS_ELSEWHERE: u64 = 512;

const STOP: u64 = 0;
const LISTENER: u64 = 1;
const FIRST_ID: u64 = 2;

type Store = Arc<dyn HintStore + Send + Sync>;

/// The running service. Dropping it ends the thread and removes the socket;
/// hints already stored stay with their tasks for as long as the map does.
pub struct HintServer {
    state: Arc<Mutex<State>>,
    stop: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

/// Where hints go.
enum Sink {
    /// No scheduler has been loaded yet, and it may be that none can be.
    NotYet,
    /// Between two loads: declarations wait for the next store.
    Between,
    Store(Store),
}

struct State {
    registry: Registry,
    sink: Sink,
    /// Declarations that the store did not take so far.
    missing: usize,
    limits: Limits,
}

impl HintServer {
    /// Listens on `path`. Until a store is [attached](Self::attach) requests
    /// are answered with "not yet".
    pub fn start(path: &Path, mut limits: Limits) -> Result<Self, ServerError> {
        // A declared task costs a descriptor: never promise more than there are.
        let room = raise_descriptor_limit().saturating_sub(FDS_ELSEWHERE);
        limits.hints_max = limits
            .hints_max
            .min(usize::try_from(room).unwrap_or(usize::MAX))
            .max(16);
        let socket = SocketFile::bind(path, BACKLOG)?;
        let state = Arc::new(Mutex::new(State {
            registry: Registry::default(),
            sink: Sink::NotYet,
            missing: 0,
            limits,
        }));
        let stop = Arc::new(seqpacket::eventfd()?);
        let epoll = Epoll::new()?;
        epoll.add(stop.as_fd(), STOP)?;
        epoll.add(socket.listener(), LISTENER)?;
        let service = Service {
            state: state.clone(),
            _stop: stop.clone(),
            epoll,
            socket,
            connections: HashMap::new(),
            requests: Buckets::default(),
            accepts: Bucket::new(ACCEPT_RATE, ACCEPT_BURST),
            accepts_paused_until: None,
            spare: File::open("/dev/null").ok(),
            next_id: FIRST_ID,
        };
        let thread = std::thread::Builder::new()
            .name("temponet-hint".into())
            .spawn(move || service.run())?;
        info!("taking declarations on {}", path.display());
        Ok(Self {
            state,
            stop,
            thread: Some(thread),
        })
    }

    /// From now on hints go to `store`, beginning with those in force: the BPF
    /// half has been loaded, or loaded again. One that the store does not take
    /// is kept, see [`store_missing`](Self::store_missing).
    pub fn attach(&self, store: Store) {
        let mut state = lock(&self.state);
        state.registry.unstore_all();
        let missing = state.registry.store_missing(store.as_ref());
        state.sink = Sink::Store(store);
        state.missing = missing.count;
        if let Some(reason) = missing.reason {
            warn!(
                "{} of {} declarations could not be stored and will be tried again: {reason}",
                missing.count,
                state.registry.len()
            );
        }
    }

    /// Tries again what the store did not take. Costs nothing while there is
    /// nothing to try.
    pub fn store_missing(&self) {
        let mut state = lock(&self.state);
        let State {
            registry,
            sink: Sink::Store(store),
            missing,
            ..
        } = &mut *state
        else {
            return;
        };
        if *missing == 0 {
            return;
        }
        *missing = registry.store_missing(store.as_ref()).count;
        if *missing == 0 {
            info!("all declarations are stored again");
        }
    }

    /// The BPF half is going away; declarations are kept for the next one, and
    /// so are those that are made until then.
    pub fn detach(&self) {
        let mut state = lock(&self.state);
        state.sink = Sink::Between;
        state.registry.unstore_all();
        state.missing = 0;
    }

    /// How many tasks are declared, and how many CPUs they claim together.
    pub fn declared(&self) -> (usize, f64) {
        let state = lock(&self.state);
        (state.registry.len(), state.registry.density())
    }
}

impl Drop for HintServer {
    fn drop(&mut self) {
        seqpacket::ring(&self.stop);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    // Every change is made after the last thing that could fail, so the state
    // behind a poisoned lock is whole.
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Connection {
    fd: OwnedFd,
    uid: u32,
    heard_at: Instant,
    paused_until: Option<Instant>,
}

struct Service {
    state: Arc<Mutex<State>>,
    _stop: Arc<OwnedFd>,
    epoll: Epoll,
    socket: SocketFile,
    connections: HashMap<u64, Connection>,
    requests: Buckets,
    accepts: Bucket,
    accepts_paused_until: Option<Instant>,
    /// Given up for a moment when descriptors run out, so that a waiting
    /// connection can be taken and closed instead of waking us for ever.
    spare: Option<File>,
    next_id: u64,
}

impl Service {
    fn run(mut self) {
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
                    LISTENER => self.accept(),
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
            .chain(self.accepts_paused_until)
            .min()
            .map(|at| at.saturating_duration_since(now))
    }

    fn sweep(&mut self, now: Instant) {
        if self.accepts_paused_until.is_some_and(|at| at <= now) {
            self.accepts_paused_until = None;
            let _ = self.epoll.resume(self.socket.listener(), LISTENER);
        }
        let epoll = &self.epoll;
        self.connections.retain(|id, c| {
            if c.paused_until.is_some_and(|at| at <= now) {
                c.paused_until = None;
                return epoll.resume(c.fd.as_fd(), *id).is_ok();
            }
            c.paused_until.is_some() || now.duration_since(c.heard_at) < SILENCE_MAX
        });
        self.requests.forget_idle(now);
    }

    fn accept(&mut self) {
        for _ in 0..16 {
            let now = Instant::now();
            if let Err(wait) = self.accepts.take(now) {
                self.pause_accepting(now + wait);
                return;
            }
            match seqpacket::accept(self.socket.listener()) {
                Ok(fd) => self.welcome(fd, now),
                Err(e) => match e.raw_os_error() {
                    Some(libc::EAGAIN) => return,
                    Some(libc::ECONNABORTED | libc::EINTR) => {}
                    _ => {
                        self.spare = None;
                        let turned_away = seqpacket::accept(self.socket.listener()).is_ok();
                        self.spare = File::open("/dev/null").ok();
                        if !turned_away {
                            self.pause_accepting(now + Duration::from_millis(100));
                        }
                        return;
                    }
                },
            }
        }
    }

    fn pause_accepting(&mut self, until: Instant) {
        self.accepts_paused_until = Some(until);
        let _ = self.epoll.pause(self.socket.listener(), LISTENER);
    }

    fn welcome(&mut self, fd: OwnedFd, now: Instant) {
        let peer = match seqpacket::peer(fd.as_fd()) {
            Ok(peer) => peer,
            Err(_) => return,
        };
        if let Err(refusal) = self.admit_peer(&peer) {
            debug!("turned user {} away: {}", peer.uid, refusal.reason);
            let _ = seqpacket::send(fd.as_fd(), &refusal.encode());
            return;
        }
        let id = self.fresh_id();
        if self.epoll.add(fd.as_fd(), id).is_ok() {
            self.connections.insert(
                id,
                Connection {
                    fd,
                    uid: peer.uid,
                    heard_at: now,
                    paused_until: None,
                },
            );
        }
    }

    fn admit_peer(&self, peer: &Peer) -> Result<(), Reply> {
        let open = self.connections.len();
        let own = self
            .connections
            .values()
            .filter(|c| c.uid == peer.uid)
            .count();
        let crowded = if peer.uid == 0 {
            open >= CONNECTIONS_MAX
        } else {
            open >= CONNECTIONS_MAX - CONNECTIONS_ROOT || own >= CONNECTIONS_USER
        };
        if crowded {
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
        let uid = connection.uid;
        if uid != 0 {
            if let Err(wait) = self.requests.take(uid, now) {
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
            Ok(request) => (self.answer(uid, request), true),
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

    fn answer(&mut self, uid: u32, request: Request) -> Reply {
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
                    online_cpus: online_cpus(),
                };
                let declaration = Declaration { uid, task, hint };
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
