//! The fast path: policies whose order never changes while a job lives (FCFS, RM,
//! DM, EDF) need no look at the whole ready set, only at the best that waits and
//! the worst that runs.

use super::{min_tree::MinTree, Sim, NOT_READY};
use crate::sim::policies::Key;
use crate::sim::time::{Ns, NEVER};

impl Sim<'_> {
    pub(super) fn run_keyed(&mut self, key: Key) {
        let mut waiting = MinTree::new(self.tasks.len());
        loop {
            let time = self.next_event();
            if time > self.horizon {
                return;
            }
            self.process(time);
            self.dispatch_keyed(key, &mut waiting);
        }
    }

    fn dispatch_keyed(&mut self, key: Key, waiting: &mut MinTree) {
        self.tally.decisions += 1;
        // What runs and waits is known here without being told.
        self.touched.clear();
        while let Some(task) = self.fresh.pop() {
            let value = self.key_of(task as usize, key);
            waiting.set(task as usize, value);
        }
        while waiting.min() != NEVER {
            let task = waiting.argmin();
            if self.places[task] == NOT_READY {
                // Aborted while it waited.
                waiting.set(task, NEVER);
                continue;
            }
            let best = waiting.min();
            if let Some(core) = self.idle_core_for(task) {
                waiting.set(task, NEVER);
                self.start(core, task);
                self.cores[core].key = best;
                continue;
            }
            let (core, worst) = self.worst_running();
            if best >= worst {
                return;
            }
            let victim = self.cores[core].task as usize;
            self.preempt(core);
            waiting.set(victim, worst);
            waiting.set(task, NEVER);
            self.start(core, task);
            self.cores[core].key = best;
        }
    }

    fn key_of(&self, task: usize, key: Key) -> Ns {
        let position = self.places[task];
        if position == NOT_READY {
            return NEVER;
        }
        key.of(&self.ready[position as usize], &self.set.tasks[task])
    }

    /// Of equals the higher task number goes, as everywhere.
    fn worst_running(&self) -> (usize, Ns) {
        let mut worst = 0;
        for core in 1..self.cores.len() {
            let (a, b) = (&self.cores[core], &self.cores[worst]);
            if (a.key, a.task) > (b.key, b.task) {
                worst = core;
            }
        }
        (worst, self.cores[worst].key)
    }
}
