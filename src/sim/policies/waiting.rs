//! Waiting jobs, in an order that does not change while they wait: then only those
//! that came, went, started or stopped have to be looked at, and not the whole queue.

use super::{Best, Plan, View};
use crate::sim::engine::{MinTree, ReadyJob, TaskId, Value};
use crate::sim::task::{Semantics, TaskSet};
use crate::sim::time::{Ns, NEVER};

/// Names the tasks whose place in a queue may be out of date.
#[derive(Default)]
pub struct Watch {
    begun: bool,
    /// Chosen at the last decision and out of their queue; whether they were
    /// started is another matter where decisions take their time.
    taken: Vec<TaskId>,
}

impl Watch {
    /// All jobs at the first decision, later those that may have changed.
    pub fn each(&mut self, view: &View, mut look: impl FnMut(TaskId, Option<&ReadyJob>)) {
        let mut look = |task| look(task, view.job_of(task));
        if std::mem::replace(&mut self.begun, true) {
            self.taken.drain(..).for_each(&mut look);
            view.touched.iter().copied().for_each(look);
        } else {
            (0..view.tasks.len() as TaskId).for_each(look);
        }
    }

    /// This one has been chosen and taken out of its queue.
    pub fn take(&mut self, task: TaskId) {
        self.taken.push(task);
    }

    pub fn taken(&self) -> &[TaskId] {
        &self.taken
    }
}

impl<K: Ord + Copy> Best<K> {
    /// Takes from a queue, the least key first, until one is not good enough.
    pub fn offer_waiting<V: Value>(
        &mut self,
        view: &View,
        queue: &mut MinTree<V>,
        watch: &mut Watch,
        rank: impl Fn(V, TaskId) -> (K, bool, TaskId),
    ) {
        while queue.min() != V::NEVER {
            let task = queue.argmin();
            if !self.offer(view.cores, rank(queue.min(), task as TaskId)) {
                return;
            }
            queue.set(task, V::NEVER);
            watch.take(task as TaskId);
        }
    }
}

/// The place of a time that may be negative among those that may not.
pub fn ordered(time: i64) -> Ns {
    time as u64 ^ 1 << 63
}

/// What becomes of jobs that can no longer make it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hopeless {
    /// They are jobs like others.
    Keep,
    /// Where jobs are aborted they are not run at all; where they go on they get
    /// what no other job wants.
    Drop,
}

/// On equal keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tie {
    /// A running job stays; then the lower task number.
    Stay,
    /// The lower task number.
    Task,
}

/// Runs the m jobs of least key, where the key of a job only changes while it runs.
pub struct Ordered {
    hopeless: Hopeless,
    tie: Tie,
    watch: Watch,
    /// By task: the keys of waiting jobs, and of those that wait in vain.
    timely: MinTree,
    late: MinTree,
    /// Of the timely, when each is late.
    latest_starts: MinTree,
    best: Best<(bool, Ns)>,
}

impl Ordered {
    pub fn new(hopeless: Hopeless, tie: Tie) -> Self {
        Self {
            hopeless,
            tie,
            watch: Watch::default(),
            timely: MinTree::new(0),
            late: MinTree::new(0),
            latest_starts: MinTree::new(0),
            best: Best::default(),
        }
    }

    pub fn start(&mut self, set: &TaskSet) {
        let tasks = set.tasks.len();
        self.watch = Watch::default();
        self.timely = MinTree::new(tasks);
        if self.hopeless == Hopeless::Drop {
            self.late = MinTree::new(tasks);
            self.latest_starts = MinTree::new(tasks);
        }
    }

    pub fn run_least(&mut self, view: &View, plan: &mut Plan, key: impl Fn(&ReadyJob) -> Ns) {
        let drops = self.hopeless == Hopeless::Drop;
        let abandons = view.options.semantics == Semantics::Abort;
        let is_late = |job: &ReadyJob| drops && job.is_hopeless(view.now);
        self.follow(view, &key);

        self.best.clear();
        for job in view.running_jobs() {
            let late = is_late(job);
            if !(late && abandons) {
                let rank = ((late, key(job)), false, job.task);
                self.best.offer(view.cores, rank);
            }
        }
        let behind = self.tie == Tie::Stay;
        let rank = |late| move |key, task| ((late, key), behind, task);
        let Self {
            watch, best, late, ..
        } = self;
        best.offer_waiting(view, &mut self.timely, watch, rank(false));
        if drops && !abandons {
            best.offer_waiting(view, late, watch, rank(true));
        }
        best.run(plan);
    }

    fn follow(&mut self, view: &View, key: impl Fn(&ReadyJob) -> Ns) {
        let Self {
            watch,
            timely,
            late,
            latest_starts,
            ..
        } = self;
        let drops = self.hopeless == Hopeless::Drop;
        watch.each(view, |task, job| {
            let task = task as usize;
            let job = job.filter(|job| !job.is_running());
            let key = job.map_or(NEVER, &key);
            timely.set(task, key);
            if drops {
                late.set(task, NEVER);
                let latest_start = job.map(|job| ordered(job.latest_start()));
                latest_starts.set(task, latest_start.unwrap_or(NEVER));
            }
        });
        while drops && latest_starts.min() < ordered(view.now as i64) {
            let task = latest_starts.argmin();
            latest_starts.set(task, NEVER);
            late.set(task, timely.get(task));
            timely.set(task, NEVER);
        }
    }
}
