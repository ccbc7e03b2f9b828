//! Every declaration in force: who is charged for it, and the pidfd that says
//! when the task is gone. It outlives the BPF half, which is loaded anew when
//! CPUs come or go, and puts the hints back afterwards.

use super::admission::{Charge, Limits, Refusal};
use super::cpus::CpuSet;
use super::store::HintStore;
use super::task::{has_exited, Task};
use super::Hint;
use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use thiserror::Error;

#[derive(Debug)]
struct Entry {
    pidfd: OwnedFd,
    tid: i32,
    tgid: i32,
    hint: Hint,
    charge: Charge,
    /// The store has this hint. False while no store is attached, and after a store failed.
    stored: bool,
}

#[derive(Debug, Error)]
pub enum SetError {
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("no task has id {0}")]
    Gone(i32),
    #[error("the hint could not be stored: {0}")]
    Store(io::Error),
}

impl SetError {
    pub fn errno(&self) -> i32 {
        match self {
            Self::Refused(refusal) => refusal.errno(),
            Self::Gone(_) => libc::ESRCH,
            Self::Store(e) => e.raw_os_error().unwrap_or(libc::EIO),
        }
    }
}

/// What the machine can take now: CPUs come and go.
#[derive(Clone, Copy, Debug)]
pub struct Bounds<'a> {
    pub limits: &'a Limits,
    pub online: CpuSet,
}

#[derive(Debug)]
pub struct Declaration {
    /// Who is charged.
    pub uid: u32,
    pub task: Task,
    pub hint: Hint,
}

/// Names an entry for as long as it lives; never used twice, unlike a tid.
pub type EntryId = u64;

#[derive(Debug, Default)]
pub struct Registry {
    entries: HashMap<EntryId, Entry>,
    by_tid: HashMap<i32, EntryId>,
}

impl Registry {
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Declared density in CPUs.
    pub fn density(&self) -> f64 {
        self.entries.values().map(|e| e.charge.density).sum()
    }

    pub fn pidfd(&self, id: EntryId) -> Option<BorrowedFd<'_>> {
        self.entries.get(&id).map(|entry| entry.pidfd.as_fd())
    }

    /// The declaration of the task that has this id now.
    pub fn get(&mut self, tid: i32) -> Option<Hint> {
        let id = self.live_entry(tid)?;
        self.entries.get(&id).map(|entry| entry.hint)
    }

    /// Admits and stores a declaration, instead of the task's former one if
    /// there is one; a refused update leaves that as it was. `new_id` is used
    /// for a task not yet known; the entry's id is returned. Without a store
    /// the declaration waits for the next one, see [`store_missing`].
    ///
    /// [`store_missing`]: Registry::store_missing
    pub fn set(
        &mut self,
        store: Option<&dyn HintStore>,
        bounds: Bounds<'_>,
        declaration: Declaration,
        new_id: EntryId,
    ) -> Result<EntryId, SetError> {
        let Declaration { uid, task, hint } = declaration;
        let known = self.live_entry(task.tid);
        let charge = Charge::new(uid, &hint, task.cpus);
        let others = self
            .entries
            .iter()
            .filter(|(id, _)| Some(**id) != known)
            .map(|(_, entry)| &entry.charge);
        bounds
            .limits
            .admit(&bounds.online, others, &hint, &charge)?;
        if let Some(store) = store {
            store.set(task.pidfd(), &hint).map_err(|e| {
                if has_exited(task.pidfd()) {
                    SetError::Gone(task.tid)
                } else {
                    SetError::Store(e)
                }
            })?;
        }
        let stored = store.is_some();

        let id = known.unwrap_or(new_id);
        match self.entries.get_mut(&id) {
            Some(entry) => {
                entry.hint = hint;
                entry.charge = charge;
                entry.stored = stored;
            }
            None => {
                self.by_tid.insert(task.tid, id);
                self.entries.insert(
                    id,
                    Entry {
                        tid: task.tid,
                        tgid: task.tgid,
                        pidfd: task.into_pidfd(),
                        hint,
                        charge,
                        stored,
                    },
                );
            }
        }
        Ok(id)
    }

    pub fn clear(&mut self, store: Option<&dyn HintStore>, task: &Task) -> io::Result<()> {
        if let Some(store) = store {
            store.clear(task.pidfd())?;
        }
        if let Some(id) = self.live_entry(task.tid) {
            self.forget(id);
        }
        Ok(())
    }

    /// The task of entry `id` has exited: gives its share back. Returns its
    /// process when that may go on under the same declaration, see [`adopt`].
    ///
    /// Kernels before 6.15 say so too early of a first thread whose id another
    /// one takes over by execve(): what still lives stays charged.
    ///
    /// [`adopt`]: Registry::adopt
    pub fn exited(&mut self, id: EntryId) -> Option<Orphan> {
        if !has_exited(self.pidfd(id)?) {
            return None;
        }
        let entry = self.forget(id)?;
        (entry.tid != entry.tgid).then_some(Orphan {
            tgid: entry.tgid,
            uid: entry.charge.uid,
        })
    }

    /// execve() from a thread that is not the first makes it the first: the id
    /// it was declared under dies, while the task lives on with its hint under
    /// the id of the process. Without this its share would be given back and
    /// the hint would stay: free of charge. Returns the entry's id when there
    /// is one to be watched from now on.
    pub fn adopt(
        &mut self,
        store: &dyn HintStore,
        orphan: Orphan,
        new_id: EntryId,
    ) -> Option<EntryId> {
        let task = Task::open(orphan.tgid).ok()?;
        let hint = store.get(task.pidfd()).ok()??;
        let charge = Charge::new(orphan.uid, &hint, task.cpus);
        if let Some(known) = self.live_entry(task.tid) {
            // The old leader had a declaration of its own, which died with it.
            let entry = self.entries.get_mut(&known)?;
            if entry.hint != hint {
                entry.hint = hint;
                entry.charge = charge;
                entry.stored = true;
            }
            return None;
        }
        self.by_tid.insert(task.tid, new_id);
        self.entries.insert(
            new_id,
            Entry {
                tid: task.tid,
                tgid: task.tgid,
                pidfd: task.into_pidfd(),
                hint,
                charge,
                stored: true,
            },
        );
        Some(new_id)
    }

    /// The store has gone: the next one will have none of the declarations.
    pub fn unstore_all(&mut self) {
        for entry in self.entries.values_mut() {
            entry.stored = false;
        }
    }

    /// Puts every declaration into `store` that it does not have yet. One that
    /// fails keeps its entry, to be tried again, and holds up no other.
    pub fn store_missing(&mut self, store: &dyn HintStore) -> Missing {
        let mut missing = Missing::default();
        for entry in self.entries.values_mut().filter(|entry| !entry.stored) {
            match store.set(entry.pidfd.as_fd(), &entry.hint) {
                Ok(()) => entry.stored = true,
                // Its pidfd says so too, and then its share is given back.
                Err(_) if has_exited(entry.pidfd.as_fd()) => {}
                Err(e) => {
                    missing.count += 1;
                    missing.reason.get_or_insert(e);
                }
            }
        }
        missing
    }

    fn forget(&mut self, id: EntryId) -> Option<Entry> {
        let entry = self.entries.remove(&id)?;
        if self.by_tid.get(&entry.tid) == Some(&id) {
            self.by_tid.remove(&entry.tid);
        }
        Some(entry)
    }

    /// The entry of the task that has this id now. One whose task has exited
    /// is another task's, whatever its number: its share goes back here if the
    /// event has not been read yet.
    fn live_entry(&mut self, tid: i32) -> Option<EntryId> {
        let id = *self.by_tid.get(&tid)?;
        let live = self
            .entries
            .get(&id)
            .is_some_and(|entry| !has_exited(entry.pidfd.as_fd()));
        if !live {
            self.forget(id);
            return None;
        }
        Some(id)
    }
}

/// What a store did not take.
#[derive(Debug, Default)]
pub struct Missing {
    /// Tasks that live and are declared, and whose hint is not stored.
    pub count: usize,
    /// Why, of the first of them.
    pub reason: Option<io::Error>,
}

/// A process one of whose declared threads has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Orphan {
    tgid: i32,
    uid: u32,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hint::store::MemoryStore;
    use std::cell::Cell;
    use std::process::{Child, Command};

    const MS: u64 = 1_000_000;

    /// Takes all but the next `failures` hints.
    struct Failing {
        store: MemoryStore,
        failures: Cell<usize>,
    }

    impl Failing {
        fn new(failures: usize) -> Failing {
            Failing {
                store: MemoryStore::default(),
                failures: Cell::new(failures),
            }
        }
    }

    impl HintStore for Failing {
        fn set(&self, pidfd: BorrowedFd<'_>, hint: &Hint) -> io::Result<()> {
            if let Some(left) = self.failures.get().checked_sub(1) {
                self.failures.set(left);
                return Err(io::Error::from_raw_os_error(libc::ENOMEM));
            }
            self.store.set(pidfd, hint)
        }

        fn clear(&self, pidfd: BorrowedFd<'_>) -> io::Result<()> {
            self.store.clear(pidfd)
        }

        fn get(&self, pidfd: BorrowedFd<'_>) -> io::Result<Option<Hint>> {
            self.store.get(pidfd)
        }
    }

    struct Sleeper(Child);

    impl Sleeper {
        fn new() -> Sleeper {
            Sleeper(Command::new("sleep").arg("60").spawn().unwrap())
        }

        fn task(&self) -> Task {
            Task::open(self.0.id() as i32).unwrap()
        }

        fn end(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    impl Drop for Sleeper {
        fn drop(&mut self) {
            self.end();
        }
    }

    fn hint(runtime_ms: u64) -> Hint {
        Hint::new(runtime_ms * MS, 40 * MS, 40 * MS, 0).unwrap()
    }

    fn declare(
        registry: &mut Registry,
        store: Option<&dyn HintStore>,
        task: Task,
        id: EntryId,
    ) -> Result<EntryId, SetError> {
        let bounds = Bounds {
            limits: &Limits::default(),
            online: CpuSet::first(4),
        };
        let declaration = Declaration {
            uid: 0,
            task,
            hint: hint(id),
        };
        registry.set(store, bounds, declaration, id)
    }

    #[test]
    fn a_hint_that_a_new_store_refuses_holds_up_no_other_and_is_tried_again() {
        let sleepers: Vec<Sleeper> = (0..3).map(|_| Sleeper::new()).collect();
        let mut registry = Registry::default();
        let first = MemoryStore::default();
        for (sleeper, id) in sleepers.iter().zip(1..) {
            declare(&mut registry, Some(&first), sleeper.task(), id).unwrap();
        }
        registry.unstore_all();

        let second = Failing::new(1);
        let missing = registry.store_missing(&second);
        assert_eq!(missing.count, 1);
        let reason = missing.reason.and_then(|e| e.raw_os_error());
        assert_eq!(reason, Some(libc::ENOMEM));
        assert_eq!((registry.len(), second.store.len()), (3, 2));

        assert_eq!(registry.store_missing(&second).count, 0);
        for (sleeper, id) in sleepers.iter().zip(1..) {
            let stored = second.get(sleeper.task().pidfd()).unwrap();
            assert_eq!(stored, Some(hint(id)));
        }
    }

    #[test]
    fn a_hint_that_is_stored_is_not_stored_again() {
        let sleeper = Sleeper::new();
        let mut registry = Registry::default();
        let store = Failing::new(0);
        declare(&mut registry, Some(&store), sleeper.task(), 1).unwrap();
        store.failures.set(1);
        assert_eq!(registry.store_missing(&store).count, 0);
        assert_eq!(store.failures.get(), 1, "the store was asked");
    }

    #[test]
    fn what_is_declared_without_a_store_waits_for_one() {
        let (set, cleared) = (Sleeper::new(), Sleeper::new());
        let mut registry = Registry::default();
        declare(&mut registry, None, set.task(), 1).unwrap();
        declare(&mut registry, None, cleared.task(), 2).unwrap();
        assert_eq!(registry.get(set.task().tid), Some(hint(1)));
        registry.clear(None, &cleared.task()).unwrap();
        assert_eq!(registry.get(cleared.task().tid), None);

        let store = MemoryStore::default();
        assert_eq!(registry.store_missing(&store).count, 0);
        assert_eq!(store.get(set.task().pidfd()).unwrap(), Some(hint(1)));
        assert_eq!(store.len(), 1);
    }

    #[test]
    fn a_task_that_is_gone_counts_as_nothing_missing() {
        let mut gone = Sleeper::new();
        let mut registry = Registry::default();
        declare(&mut registry, None, gone.task(), 1).unwrap();
        gone.end();
        assert_eq!(registry.store_missing(&Failing::new(1)).count, 0);
        assert!(registry.exited(1).is_none());
        assert!(registry.is_empty());
    }
}
