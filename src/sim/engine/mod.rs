//! The machine: m identical cores, preemptive and global, advanced from event to event.
//!
//! At one instant completions come first (a job that ends at its deadline is on
//! time), then deadlines, then releases; then the policy decides. Work is only
//! booked when a job stops, so an event costs O(log N + m), not O(N).

mod dispatch;
mod keyed;
mod min_tree;
mod options;
mod tally;
mod view;

use std::collections::VecDeque;

pub use options::{Knowledge, Options, Record};
pub use tally::{Fate, JobRecord, Moves, Segment, Tally};
pub use view::{CoreId, Estimate, Event, Plan, ReadyJob, TaskId, View, NO_CORE};

pub(super) use self::min_tree::{MinTree, Value};
use super::arrivals::{JobSpec, JobStream};
use super::policies::Policy;
use super::task::{Arrival, Declaration, Semantics, Task, TaskSet};
use super::time::{Ns, NEVER};

const NOT_READY: u32 = u32::MAX;
const NO_TASK: TaskId = TaskId::MAX;

#[derive(Clone, Debug)]
struct TaskState {
    stream: JobStream,
    /// The job that comes next.
    upcoming: Option<JobSpec>,
    /// Released behind an unfinished one, in order.
    queued: VecDeque<JobSpec>,
    /// Index the next activated job gets.
    next_index: u32,
    /// How many of the unfinished jobs have had their miss reported already.
    reported: u32,
    past: Past,
}

/// Running mean and variance of what a task's jobs took (Welford, with forgetting).
#[derive(Clone, Copy, Debug, Default)]
struct Past {
    jobs: u32,
    mean: f64,
    variance: f64,
}

impl Past {
    /// A job in sixteen: long enough to be steady, short enough to follow a mode switch.
    const MEMORY: u32 = 16;

    fn add(&mut self, execution: Ns) {
        self.jobs = (self.jobs + 1).min(Self::MEMORY);
        let weight = 1.0 / f64::from(self.jobs);
        let delta = execution as f64 - self.mean;
        self.mean += weight * delta;
        self.variance = (1.0 - weight) * (self.variance + weight * delta * delta);
    }

    fn estimate(&self) -> Estimate {
        Estimate {
            runtime: self.mean.round() as Ns,
            spread: self.variance.sqrt() as Ns,
            unseen: false,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Core {
    task: TaskId,
    /// The job makes progress from here on (after switching costs).
    since: Ns,
    /// When it took the core, for segments.
    taken: Ns,
    finish: Ns,
    /// Priority of what runs, for keyed dispatch.
    key: Ns,
    /// The plan being carried out leaves what runs here alone.
    stays: bool,
    /// The job that used the core last: turning back to it costs nothing.
    last: (TaskId, u32),
}

impl Core {
    const IDLE: Core = Core {
        task: NO_TASK,
        since: 0,
        taken: 0,
        finish: NEVER,
        key: 0,
        stays: false,
        last: (NO_TASK, 0),
    };

    fn is_idle(&self) -> bool {
        self.task == NO_TASK
    }
}

/// One run of one task set. Drive it with [`Sim::run`], or step by step:
/// [`Sim::advance`] to the next decision, look at [`Sim::view`], [`Sim::submit`] a plan.
#[derive(Clone, Debug)]
pub struct Sim<'a> {
    set: &'a TaskSet,
    options: Options,
    record: Record,
    horizon: Ns,
    now: Ns,
    tasks: Vec<TaskState>,
    ready: Vec<ReadyJob>,
    /// By task: where the job at its head stands in `ready`.
    places: Vec<u32>,
    cores: Vec<Core>,
    /// Next release or deadline of each task.
    timers: MinTree,
    /// See [`View::next_releases`].
    next_releases: Vec<Ns>,
    /// See [`View::estimates`].
    estimates: Vec<Estimate>,
    deadlines_are_events: bool,
    sequence: u64,
    /// Tasks whose head job became ready since the last dispatch.
    fresh: Vec<TaskId>,
    /// See [`View::touched`]; of the decision to come.
    touched: Vec<TaskId>,
    changed: bool,
    control: dispatch::Control,
    pub tally: Tally,
    pub events: Vec<Event>,
}

impl<'a> Sim<'a> {
    pub fn new(set: &'a TaskSet, cores: usize, options: Options, record: Record) -> Self {
        let mut sim = Sim {
            set,
            options,
            record,
            horizon: set.horizon_ns,
            now: 0,
            tasks: Vec::with_capacity(set.tasks.len()),
            ready: Vec::with_capacity(set.tasks.len()),
            places: vec![NOT_READY; set.tasks.len()],
            cores: vec![Core::IDLE; cores],
            timers: MinTree::new(set.tasks.len()),
            next_releases: set.tasks.iter().map(first_release).collect(),
            estimates: (set.tasks.iter())
                .map(|task| worst_case(task, options.knowledge))
                .collect(),
            deadlines_are_events: options.semantics == Semantics::Abort || record.events,
            sequence: 0,
            fresh: Vec::new(),
            touched: Vec::new(),
            changed: false,
            control: dispatch::Control::default(),
            tally: Tally::default(),
            events: Vec::new(),
        };
        for (id, task) in set.tasks.iter().enumerate() {
            let mut stream = JobStream::new(set, id);
            let upcoming = stream.next_job(set, task);
            sim.timers.set(id, upcoming.map_or(NEVER, |j| j.release));
            sim.tasks.push(TaskState {
                stream,
                upcoming,
                queued: VecDeque::new(),
                next_index: 0,
                reported: 0,
                past: Past::default(),
            });
        }
        sim
    }

    /// Runs to the horizon under a policy.
    pub fn run(&mut self, policy: &mut dyn Policy) {
        policy.start(self.set, self.cores.len());
        match policy.key() {
            Some(key) if self.options.decides_instantly() => self.run_keyed(key),
            _ => {
                let mut plan = Plan::default();
                while self.advance() {
                    plan.clear();
                    policy.decide(&self.view(), &mut plan);
                    self.submit(&plan);
                }
            }
        }
        self.finish();
    }

    pub fn now(&self) -> Ns {
        self.now
    }

    /// How many cores run a job.
    pub fn running(&self) -> usize {
        self.cores.iter().filter(|core| !core.is_idle()).count()
    }

    pub fn options(&self) -> &Options {
        &self.options
    }

    pub fn task_set(&self) -> &'a TaskSet {
        self.set
    }

    /// When the next release, deadline or completion happens.
    fn next_event(&self) -> Ns {
        self.cores
            .iter()
            .fold(self.timers.min(), |t, core| t.min(core.finish))
    }

    /// Everything that happens at this instant, before anybody decides.
    fn process(&mut self, time: Ns) {
        self.now = time;
        for core in 0..self.cores.len() {
            if self.cores[core].finish == time {
                self.complete(core);
            }
        }
        while self.timers.min() == time {
            let id = self.timers.argmin();
            self.task_timer(id);
        }
    }

    fn task_timer(&mut self, id: usize) {
        while self.next_deadline(id) <= self.now {
            self.pass_deadline(id);
        }
        if let Some(job) = self.tasks[id].upcoming {
            // Releases at the horizon belong to the time after it.
            if job.release <= self.now && self.now < self.horizon {
                self.tally.job_events += 1;
                let state = &mut self.tasks[id];
                state.upcoming = state.stream.next_job(self.set, &self.set.tasks[id]);
                if self.places[id] == NOT_READY {
                    self.activate(id, job);
                } else {
                    if state.queued.is_empty() && self.next_releases[id] != NEVER {
                        self.next_releases[id] = job.release;
                    }
                    state.queued.push_back(job);
                }
            }
        }
        self.set_timer(id);
    }

    fn set_timer(&mut self, id: usize) {
        let release = self.tasks[id].upcoming.map_or(NEVER, |j| j.release);
        let release = if release >= self.horizon {
            NEVER
        } else {
            release
        };
        self.timers.set(id, release.min(self.next_deadline(id)));
    }

    /// The earliest deadline of this task that has not passed yet.
    fn next_deadline(&self, id: usize) -> Ns {
        let state = &self.tasks[id];
        if !self.deadlines_are_events || self.places[id] == NOT_READY {
            return NEVER;
        }
        match state.reported.checked_sub(1) {
            None => self.ready[self.places[id] as usize].deadline,
            Some(behind) => state
                .queued
                .get(behind as usize)
                .map_or(NEVER, |job| job.deadline),
        }
    }

    fn pass_deadline(&mut self, id: usize) {
        if self.record.events {
            self.events.push(Event::Missed {
                task: id as TaskId,
                time: self.now,
            });
        }
        self.changed = true;
        match self.options.semantics {
            Semantics::Continue => self.tasks[id].reported += 1,
            Semantics::Abort => {
                self.tally.job_events += 1;
                let position = self.places[id] as usize;
                let core = self.ready[position].core;
                if core != NO_CORE {
                    self.stop(core as usize);
                }
                self.judge(position, Fate::Aborted);
                self.retire(id);
            }
        }
    }

    /// Puts a job at the head of its task.
    fn activate(&mut self, id: usize, spec: JobSpec) {
        let state = &mut self.tasks[id];
        self.places[id] = self.ready.len() as u32;
        let index = state.next_index;
        state.next_index += 1;
        let task = &self.set.tasks[id];
        if self.next_releases[id] != NEVER {
            let queued = state.queued.front().map(|next| next.release);
            self.next_releases[id] = queued.unwrap_or(spec.release + task.period_ns);
        }
        let expected = match self.options.knowledge {
            Knowledge::Known => spec.execution,
            Knowledge::Wcet | Knowledge::History => self.estimates[id].runtime,
        };
        self.ready.push(ReadyJob {
            task: id as TaskId,
            index,
            criticality: task.criticality,
            core: NO_CORE,
            last_core: NO_CORE,
            release: spec.release,
            deadline: spec.deadline,
            remaining: expected.max(1),
            executed: 0,
            spread: self.estimates[id].spread,
            queued: self.sequence,
            work: spec.execution,
            expected,
        });
        self.sequence += 1;
        self.fresh.push(id as TaskId);
        self.touched.push(id as TaskId);
        self.changed = true;
    }

    fn complete(&mut self, core: usize) {
        self.tally.job_events += 1;
        let id = self.cores[core].task as usize;
        self.stop(core);
        let position = self.places[id] as usize;
        let job = self.ready[position];
        debug_assert_eq!(job.work, 0);
        self.tally.completed += 1;
        self.tally.response_sum += u128::from(self.now - job.release);
        self.tasks[id].past.add(job.executed);
        if learns(&self.set.tasks[id], self.options.knowledge) {
            self.estimates[id] = self.tasks[id].past.estimate();
        }
        if self.record.events {
            self.events.push(Event::Completed {
                task: job.task,
                time: self.now,
                release: job.release,
                deadline: job.deadline,
                execution: job.executed,
            });
        }
        let fate = if self.now <= job.deadline {
            Fate::OnTime
        } else {
            Fate::Late
        };
        self.judge(position, fate);
        self.retire(id);
        self.set_timer(id);
    }

    fn judge(&mut self, position: usize, fate: Fate) {
        let job = &self.ready[position];
        if job.deadline > self.horizon {
            return;
        }
        let finish = matches!(fate, Fate::OnTime | Fate::Late).then_some(self.now);
        let record = JobRecord {
            task: job.task,
            index: job.index,
            release: job.release,
            deadline: job.deadline,
            finish,
            fate,
        };
        let critical = job.criticality > 0;
        self.tally
            .judge(record, critical, self.now, self.record.jobs);
    }

    /// Removes the head job; the one queued behind it, if any, takes its place.
    fn retire(&mut self, id: usize) {
        let position = self.places[id] as usize;
        self.ready.swap_remove(position);
        if let Some(moved) = self.ready.get(position) {
            self.places[moved.task as usize] = position as u32;
            self.touched.push(moved.task);
        }
        let state = &mut self.tasks[id];
        self.places[id] = NOT_READY;
        self.touched.push(id as TaskId);
        state.reported = state.reported.saturating_sub(1);
        self.changed = true;
        if let Some(next) = state.queued.pop_front() {
            self.activate(id, next);
        } else if state.upcoming.is_none() {
            // It has ended, as a thread does.
            self.next_releases[id] = NEVER;
        }
    }

    /// Judges what is left when time is up; call it once [`Sim::advance`] says so.
    pub fn finish(&mut self) {
        if self.now < self.horizon {
            self.now = self.horizon;
        }
        self.book_running();
        for core in 0..self.cores.len() {
            if !self.cores[core].is_idle() {
                self.stop(core);
            }
        }
        for id in 0..self.tasks.len() {
            while self.places[id] != NOT_READY {
                self.judge(self.places[id] as usize, Fate::Unfinished);
                self.retire(id);
            }
        }
    }

    /// Books the work of a core up to now.
    fn book(&mut self, core: usize) {
        let slot = &mut self.cores[core];
        if slot.is_idle() || self.now <= slot.since {
            return;
        }
        let done = self.now - slot.since;
        slot.since = self.now;
        self.tally.busy += u128::from(done);
        let task = slot.task as usize;
        let job = &mut self.ready[self.places[task] as usize];
        job.work -= done;
        job.executed += done;
        job.remaining = if job.executed < job.expected {
            job.expected - job.executed
        } else {
            // It outlived its estimate: the worst case still bounds it, and when
            // that is gone too, a tenth of it is as good a guess as any.
            let wcet = self.set.tasks[task].told_ns();
            wcet.saturating_sub(job.executed).max(wcet / 10).max(1)
        };
    }

    fn book_running(&mut self) {
        for core in 0..self.cores.len() {
            self.book(core);
        }
    }
}

fn worst_case(task: &Task, knowledge: Knowledge) -> Estimate {
    Estimate {
        runtime: task.told_ns(),
        spread: 0,
        unseen: learns(task, knowledge),
    }
}

/// Whether its jobs say what the next will take.
fn learns(task: &Task, knowledge: Knowledge) -> bool {
    match knowledge {
        Knowledge::Known => false,
        Knowledge::Wcet => task.declared == Declaration::Nothing,
        Knowledge::History => true,
    }
}

/// Where there is no telling the next release from the last, not even the first counts.
fn first_release(task: &Task) -> Ns {
    match task.arrival {
        Arrival::Periodic | Arrival::Sporadic { .. } => task.offset_ns,
        Arrival::Bursty { .. } | Arrival::Trace(_) => NEVER,
    }
}
