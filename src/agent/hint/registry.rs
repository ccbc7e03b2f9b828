//! Every declaration in force: who is charged for it, and the pidfd that says
//! when the task is gone. It outlives the BPF half, which is loaded anew when
//! CPUs come or go, and puts the hints back afterwards.

use super::admission::{Charge, Limits, Refusal};
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
    pub online_cpus: usize,
}

#[derive(Debug)]
pub struct Declaration {
    /// Who declares and is charged.
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

    /// Admits and stores a declaration, instead of the task's former one if
    /// there is one; a refused update leaves that as it was. `new_id` is used
    /// for a task not yet known; the entry's id is returned.
    pub fn set(
        &mut self,
        store: &dyn HintStore,
        bounds: Bounds<'_>,
        declaration: Declaration,
        new_id: EntryId,
    ) -> Result<EntryId, SetError> {
        let Declaration { uid, task, hint } = declaration;
        let known = self.live_entry(task.tid);
        let charge = Charge::new(uid, &hint, task.pinned);
        let others = self
            .entries
            .iter()
            .filter(|(id, _)| Some(**id) != known)
            .map(|(_, entry)| &entry.charge);
        bounds
            .limits
            .admit(bounds.online_cpus, others, &hint, &charge)?;
        store.set(task.pidfd(), &hint).map_err(|e| {
            if has_exited(task.pidfd()) {
                SetError::Gone(task.tid)
            } else {
                SetError::Store(e)
            }
        })?;

        let id = known.unwrap_or(new_id);
        match self.entries.get_mut(&id) {
            Some(entry) => {
                entry.hint = hint;
                entry.charge = charge;
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
                    },
                );
            }
        }
        Ok(id)
    }

    pub fn clear(&mut self, store: &dyn HintStore, task: &Task) -> io::Result<()> {
        store.clear(task.pidfd())?;
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
        let charge = Charge::new(orphan.uid, &hint, task.pinned);
        if let Some(known) = self.live_entry(task.tid) {
            // The old leader had a declaration of its own, which died with it.
            let entry = self.entries.get_mut(&known)?;
            if entry.hint != hint {
                entry.hint = hint;
                entry.charge = charge;
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
            },
        );
        Some(new_id)
    }

    /// Puts every declaration into a store that has just been made. A task
    /// that exits meanwhile is no error: its pidfd will say so.
    pub fn reapply(&self, store: &dyn HintStore) -> io::Result<()> {
        for entry in self.entries.values() {
            match store.set(entry.pidfd.as_fd(), &entry.hint) {
                Err(_) if has_exited(entry.pidfd.as_fd()) => {}
                other => other?,
            }
        }
        Ok(())
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

/// A process one of whose declared threads has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Orphan {
    tgid: i32,
    uid: u32,
}
