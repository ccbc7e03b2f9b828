//! Online admission after Moore and Hodgson (1968): at every event keep the
//! largest set of ready jobs that can all be on time, then run it.
//!
//! Going through the jobs by deadline, whenever the work so far no longer fits,
//! the longest job is given up. Exact for one core and jobs that are all there;
//! on m cores the work is compared with m · (deadline − now).

use super::waiting::{ordered, Watch};
use super::{Best, Plan, Policy, View};
use crate::sim::engine::{MinTree, ReadyJob, TaskId};
use crate::sim::task::{Semantics, TaskSet};
use crate::sim::time::{Ns, MS, NEVER};
use std::collections::BinaryHeap;

/// In which order the admitted run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Deadline,
    Laxity,
}

impl Order {
    fn of(self, deadline: Ns, remaining: Ns) -> Ns {
        match self {
            Order::Deadline => deadline,
            Order::Laxity => ordered(deadline as i64 - remaining as i64),
        }
    }
}

/// A job that can still be on time.
#[derive(Clone, Copy)]
struct Timely {
    deadline: Ns,
    task: TaskId,
    waits: bool,
    remaining: Ns,
}

/// Remaining work, place in the view (of equals the last goes) and in `timely`, as
/// one number: the heap is most of an admission.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Longest(u128);

impl Longest {
    fn new(job: &Timely, n: usize, view: &View) -> Self {
        let place = view.places[job.task as usize];
        Self(u128::from(job.remaining) << 64 | u128::from(place) << 32 | n as u128)
    }

    fn remaining(self) -> Ns {
        (self.0 >> 64) as Ns
    }

    fn n(self) -> usize {
        self.0 as u32 as usize
    }
}

/// By deadline, kept in order from one decision to the next.
#[derive(Default)]
struct ByDeadline {
    jobs: Vec<Timely>,
    /// By task: the deadline of its job in there, or `NEVER`.
    deadlines: Vec<Ns>,
    /// What they all need together.
    work: Ns,
}

impl ByDeadline {
    fn put(&mut self, task: TaskId, job: Option<&ReadyJob>) {
        let new = job.map(|job| Timely {
            deadline: job.deadline,
            task,
            waits: !job.is_running(),
            remaining: job.remaining,
        });
        let deadline = new.map_or(NEVER, |new| new.deadline);
        let old = std::mem::replace(&mut self.deadlines[task as usize], deadline);
        if old != NEVER {
            let place = self.place(old, task);
            self.work -= self.jobs[place].remaining;
            match new {
                Some(new) if old == deadline => self.jobs[place] = new,
                _ => drop(self.jobs.remove(place)),
            }
        }
        self.work += new.map_or(0, |new| new.remaining);
        if let Some(new) = new.filter(|_| old != deadline) {
            self.jobs.insert(self.place(deadline, task), new);
        }
    }

    fn place(&self, deadline: Ns, task: TaskId) -> usize {
        self.jobs
            .partition_point(|job| (job.deadline, job.task) < (deadline, task))
    }
}

pub struct MooreHodgson {
    order: Order,
    watch: Watch,
    timely: ByDeadline,
    /// When each waiting job becomes hopeless, and the order of the hopeless ones.
    latest_starts: MinTree,
    late: MinTree,
    longest: BinaryHeap<Longest>,
    /// Beside `timely`.
    given_up: Vec<bool>,
    best: Best<(bool, Ns)>,
}

impl MooreHodgson {
    pub fn new(order: Order) -> Self {
        Self {
            order,
            watch: Watch::default(),
            timely: ByDeadline::default(),
            latest_starts: MinTree::new(0),
            late: MinTree::new(0),
            longest: BinaryHeap::new(),
            given_up: Vec::new(),
            best: Best::default(),
        }
    }

    fn follow(&mut self, view: &View) {
        let Self {
            order,
            watch,
            timely,
            latest_starts,
            late,
            ..
        } = self;
        watch.each(view, |task, job| {
            let waiting = job.filter(|job| !job.is_running());
            let latest_start = waiting.map(|job| ordered(job.latest_start()));
            latest_starts.set(task as usize, latest_start.unwrap_or(NEVER));
            late.set(task as usize, NEVER);
            timely.put(task, waiting);
        });
        for job in view.running_jobs() {
            timely.put(job.task, Some(job).filter(|job| !job.is_hopeless(view.now)));
        }
        while latest_starts.min() < ordered(view.now as i64) {
            let task = latest_starts.argmin();
            latest_starts.set(task, NEVER);
            timely.put(task as TaskId, None);
            if let Some(job) = view.job_of(task as TaskId) {
                late.set(task, order.of(job.deadline, job.remaining));
            }
        }
    }

    fn admit(&mut self, view: &View) {
        let jobs = &self.timely.jobs;
        self.given_up.clear();
        self.given_up.resize(jobs.len(), false);
        self.longest.clear();
        let (mut work, mut total) = (0, self.timely.work);
        // Only jobs that stand before one that does not fit go into the heap.
        let mut heaped = 0;
        for (n, job) in jobs.iter().enumerate() {
            work += job.remaining;
            let room = view.cores as u64 * (job.deadline - view.now);
            if total <= room {
                // So do all later ones.
                return;
            }
            if work <= room {
                continue;
            }
            let places = heaped..=n;
            heaped = n + 1;
            self.longest
                .extend(places.map(|n| Longest::new(&jobs[n], n, view)));
            if let Some(dropped) = self.longest.pop() {
                work -= dropped.remaining();
                total -= dropped.remaining();
                self.given_up[dropped.n()] = true;
            }
        }
    }
}

impl Policy for MooreHodgson {
    fn start(&mut self, set: &TaskSet, _cores: usize) {
        let tasks = set.tasks.len();
        *self = Self {
            timely: ByDeadline {
                deadlines: vec![NEVER; tasks],
                ..ByDeadline::default()
            },
            latest_starts: MinTree::new(tasks),
            late: MinTree::new(tasks),
            ..Self::new(self.order)
        };
    }

    fn decide(&mut self, view: &View, plan: &mut Plan) {
        self.follow(view);
        self.admit(view);
        let (order, best) = (self.order, &mut self.best);
        let rank = |given_up: bool, job: &Timely| {
            let key = order.of(job.deadline, job.remaining);
            ((given_up, key), job.waits, job.task)
        };
        best.clear();
        for (job, _) in self.timely.jobs.iter().zip(&self.given_up).filter(|e| !e.1) {
            let rank = rank(false, job);
            let beaten = |worst: &((bool, Ns), bool, TaskId)| worst.0 < rank.0;
            if !best.worst(view.cores).is_some_and(beaten) {
                best.offer(view.cores, rank);
            } else if order == Order::Deadline {
                break;
            }
        }
        // No job that can be on time wants the rest.
        if best.worst(view.cores).is_none() {
            for (job, _) in self.timely.jobs.iter().zip(&self.given_up).filter(|e| *e.1) {
                best.offer(view.cores, rank(true, job));
            }
            if view.options.semantics == Semantics::Continue {
                for job in view.running_jobs().filter(|job| job.is_hopeless(view.now)) {
                    let key = order.of(job.deadline, job.remaining);
                    best.offer(view.cores, ((true, key), false, job.task));
                }
                best.offer_waiting(view, &mut self.late, &mut self.watch, |key, task| {
                    ((true, key), true, task)
                });
            }
        }
        best.run(plan);
        if self.order == Order::Laxity && view.jobs.len() > view.cores {
            plan.wake_at((view.now / MS + 1) * MS);
        }
    }
}
