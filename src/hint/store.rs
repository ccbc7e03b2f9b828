//! Where admitted hints go: the BPF task storage map, or a fake in tests.

use super::{Hint, HINT_BYTES};
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use std::collections::HashMap;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::{Mutex, PoisonError};

pub trait HintStore {
    fn set(&self, pidfd: BorrowedFd<'_>, hint: &Hint) -> io::Result<()>;
    /// A task without a hint is not an error.
    fn clear(&self, pidfd: BorrowedFd<'_>) -> io::Result<()>;
    fn get(&self, pidfd: BorrowedFd<'_>) -> io::Result<Option<Hint>>;
}

/// The pinned TASK_STORAGE map. From userspace its key is a pidfd, and the
/// kernel takes thread pidfds as well as process ones.
pub struct MapStore {
    hints: MapHandle,
    /// Counts changes: tasks that run look their hints up again when it moves.
    changes: MapHandle,
}

impl MapStore {
    pub fn new(map: MapHandle, changes: MapHandle) -> io::Result<Self> {
        if map.key_size() != 4 || map.value_size() as usize != HINT_BYTES {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!(
                    "map `{}` has keys of {} and values of {} bytes; a hint map has 4 and {HINT_BYTES}",
                    map.name().to_string_lossy(),
                    map.key_size(),
                    map.value_size()
                ),
            ));
        }
        Ok(Self {
            hints: map,
            changes,
        })
    }

    /// Without it a task would find its new hint some milliseconds later, so a failure is none.
    fn note_change(&self) {
        let first = 0u32.to_ne_bytes();
        let count = match self.changes.lookup(&first, MapFlags::ANY) {
            Ok(Some(bytes)) => bytes.try_into().map_or(0, u32::from_ne_bytes),
            _ => 0,
        };
        let next = count.wrapping_add(1).to_ne_bytes();
        let _ = self.changes.update(&first, &next, MapFlags::ANY);
    }
}

fn key(pidfd: BorrowedFd<'_>) -> [u8; 4] {
    pidfd.as_raw_fd().to_ne_bytes()
}

/// libbpf-rs wraps the errno; the kind survives, the number is what we answer with.
fn to_io(error: libbpf_rs::Error) -> io::Error {
    io::Error::new(error_kind(&error), error.to_string())
}

fn error_kind(error: &libbpf_rs::Error) -> io::ErrorKind {
    match error.kind() {
        libbpf_rs::ErrorKind::NotFound => io::ErrorKind::NotFound,
        libbpf_rs::ErrorKind::PermissionDenied => io::ErrorKind::PermissionDenied,
        _ => io::ErrorKind::Other,
    }
}

impl HintStore for MapStore {
    fn set(&self, pidfd: BorrowedFd<'_>, hint: &Hint) -> io::Result<()> {
        self.hints
            .update(&key(pidfd), &hint.to_bytes(), MapFlags::ANY)
            .map_err(to_io)?;
        self.note_change();
        Ok(())
    }

    fn clear(&self, pidfd: BorrowedFd<'_>) -> io::Result<()> {
        match self.hints.delete(&key(pidfd)) {
            Err(e) if e.kind() == libbpf_rs::ErrorKind::NotFound => return Ok(()),
            other => other.map_err(to_io)?,
        }
        self.note_change();
        Ok(())
    }

    fn get(&self, pidfd: BorrowedFd<'_>) -> io::Result<Option<Hint>> {
        let Some(value) = self
            .hints
            .lookup(&key(pidfd), MapFlags::ANY)
            .map_err(to_io)?
        else {
            return Ok(None);
        };
        let value: [u8; HINT_BYTES] = value
            .as_slice()
            .try_into()
            .map_err(|_| io::Error::other("the hint map has values of another size"))?;
        // BPF creates entries with zeros when it looks a task up: not a hint.
        if value == [0; HINT_BYTES] {
            return Ok(None);
        }
        Hint::from_bytes(&value).map(Some).map_err(io::Error::other)
    }
}

/// Hints in memory, by thread id: the socket without a scheduler behind it,
/// which is what the tests of everything but the map want.
#[derive(Debug, Default)]
pub struct MemoryStore(Mutex<HashMap<i32, Hint>>);

impl MemoryStore {
    pub fn len(&self) -> usize {
        self.hints().len()
    }

    pub fn is_empty(&self) -> bool {
        self.hints().is_empty()
    }

    fn hints(&self) -> std::sync::MutexGuard<'_, HashMap<i32, Hint>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The task a pidfd holds now: -1 once it has exited.
fn tid_of(pidfd: BorrowedFd<'_>) -> io::Result<i32> {
    let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", pidfd.as_raw_fd()))?;
    info.lines()
        .find_map(|line| line.strip_prefix("Pid:")?.trim().parse().ok())
        .filter(|tid| *tid > 0)
        .ok_or_else(|| io::Error::from_raw_os_error(libc::ESRCH))
}

impl HintStore for MemoryStore {
    fn set(&self, pidfd: BorrowedFd<'_>, hint: &Hint) -> io::Result<()> {
        self.hints().insert(tid_of(pidfd)?, *hint);
        Ok(())
    }

    fn clear(&self, pidfd: BorrowedFd<'_>) -> io::Result<()> {
        self.hints().remove(&tid_of(pidfd)?);
        Ok(())
    }

    fn get(&self, pidfd: BorrowedFd<'_>) -> io::Result<Option<Hint>> {
        Ok(self.hints().get(&tid_of(pidfd)?).copied())
    }
}
