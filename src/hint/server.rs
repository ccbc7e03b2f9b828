//! The daemon's ear: takes declarations from any user over a Unix socket. What happens on
//! the sockets is in `service.rs`; here is what the daemon asks of it.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use log::{info, warn};

use super::accounts::Accounts;
use super::admission::Limits;
use super::door::Door;
use super::host::raise_descriptor_limit;
use super::registry::Registry;
use super::seqpacket::{self, Epoll};
use super::service::{Service, STOP};
use super::socket_file::ServerError;
use super::store::HintStore;

/// Descriptors the rest of the daemon may need.
const FDS_ELSEWHERE: u64 = 512;

type Store = Arc<dyn HintStore + Send + Sync>;

/// The running service. Dropping it ends the thread and removes the socket;
/// hints already stored stay with their tasks for as long as the map does.
pub struct HintServer {
    state: Arc<Mutex<State>>,
    stop: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

/// Where hints go.
pub(super) enum Sink {
    /// No scheduler has been loaded yet, and it may be that none can be.
    NotYet,
    /// Between two loads: declarations wait for the next store.
    Between,
    Store(Store),
}

pub(super) struct State {
    pub registry: Registry,
    pub sink: Sink,
    /// Declarations that the store did not take so far.
    missing: usize,
    pub limits: Limits,
}

impl HintServer {
    /// Listens on `path`, and for root on [`root_socket`](super::root_socket) as well. Until a
    /// store is [attached](Self::attach) requests are answered with "not yet".
    pub fn start(path: &Path, limits: Limits) -> Result<Self, ServerError> {
        Self::start_for(path, limits, Accounts::here())
    }

    /// The same where the machine's own accounts are not those that count.
    pub fn start_for(
        path: &Path,
        mut limits: Limits,
        accounts: Accounts,
    ) -> Result<Self, ServerError> {
        // A declared task costs a descriptor: never promise more than there are.
        let room = raise_descriptor_limit().saturating_sub(FDS_ELSEWHERE);
        limits.hints_max = limits
            .hints_max
            .min(usize::try_from(room).unwrap_or(usize::MAX))
            .max(16);
        let stop = Arc::new(seqpacket::eventfd()?);
        let epoll = Epoll::new()?;
        epoll.add(stop.as_fd(), STOP)?;
        let door = Door::open(path, &epoll)?;
        let state = Arc::new(Mutex::new(State {
            registry: Registry::default(),
            sink: Sink::NotYet,
            missing: 0,
            limits,
        }));
        let service = Service::new(state.clone(), stop.clone(), epoll, door, accounts);
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

pub(super) fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    // Every change is made after the last thing that could fail, so the state
    // behind a poisoned lock is whole.
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
