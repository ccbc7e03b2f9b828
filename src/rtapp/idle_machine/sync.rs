//! What threads wait for each other with. Every change answers which threads to wake.

use std::collections::VecDeque;

use super::ThreadId;

#[derive(Clone, Default)]
pub struct Mutex {
    owner: Option<ThreadId>,
    waiting: VecDeque<ThreadId>,
}

impl Mutex {
    /// True when the thread has it; otherwise it waits in line. Locking twice is
    /// a deadlock with oneself, as with POSIX's plain mutexes.
    pub fn lock(&mut self, thread: ThreadId) -> bool {
        match self.owner {
            None => self.owner = Some(thread),
            Some(_) => self.waiting.push_back(thread),
        }
        self.owner == Some(thread) && self.waiting.back() != Some(&thread)
    }

    /// Gives it to the first in line, which is to be woken.
    pub fn unlock(&mut self, thread: ThreadId) -> Option<ThreadId> {
        if self.owner != Some(thread) {
            return None;
        }
        self.owner = self.waiting.pop_front();
        self.owner
    }
}

#[derive(Clone, Default)]
pub struct Condition {
    /// Threads that wait, and which mutex each wants back.
    waiting: VecDeque<(ThreadId, usize)>,
}

impl Condition {
    pub fn wait(&mut self, thread: ThreadId, mutex: usize) {
        self.waiting.push_back((thread, mutex));
    }

    /// A signal that finds nobody is lost.
    pub fn signal(&mut self) -> Option<(ThreadId, usize)> {
        self.waiting.pop_front()
    }
}

#[derive(Clone)]
pub struct Barrier {
    needed: u64,
    waiting: Vec<ThreadId>,
}

impl Barrier {
    pub fn of(needed: u64) -> Self {
        Self {
            needed,
            waiting: Vec::new(),
        }
    }

    /// The threads that may go on, when this was the last one missing.
    pub fn arrive(&mut self, thread: ThreadId) -> Option<Vec<ThreadId>> {
        if self.waiting.len() as u64 + 1 >= self.needed {
            return Some(std::mem::take(&mut self.waiting));
        }
        self.waiting.push(thread);
        None
    }
}

#[derive(Clone, Default)]
pub struct Semaphore {
    count: u64,
    waiting: VecDeque<ThreadId>,
}

impl Semaphore {
    pub fn post(&mut self) -> Option<ThreadId> {
        let woken = self.waiting.pop_front();
        self.count += u64::from(woken.is_none());
        woken
    }

    pub fn take(&mut self, thread: ThreadId) -> bool {
        let free = self.count > 0;
        if free {
            self.count -= 1;
        } else {
            self.waiting.push_back(thread);
        }
        free
    }
}
