//! EEVDF, Linux's own scheduler for SCHED_OTHER, as Linux 6.12 has it: earliest eligible
//! virtual deadline first (Stoica and Abdel-Wahab 1995). It knows weights and no
//! deadlines: here to answer "better than what I have?".
//!
//! # What is modelled
//! - **Virtual time.** A task's `vruntime` grows by what it runs, divided by its weight
//!   (by nice level, [`weight_of`]). The weighted mean over a CPU's queue is where all
//!   should stand; a task's lag is how far it stands behind that mean. It is eligible
//!   while its lag is not negative.
//! - **Slices.** A task asks for a slice at a time: its virtual deadline is `vruntime` plus
//!   slice by weight. Of the eligible the earliest virtual deadline runs, and it keeps the
//!   CPU until its slice is used up or its lag is (`RUN_TO_PARITY`). Slices end at ticks
//!   of a millisecond (HZ=1000). A slice is 0.75 ms · (1 + ⌊log₂ n⌋) on n CPUs, of which
//!   eight at most count.
//! - **Wake-ups.** A waking task preempts if it would be picked in place of who runs. All
//!   slices are alike, so `PREEMPT_SHORT` never applies.
//! - **Sleep.** Lag is kept over a sleep (`PLACE_LAG`), within two slices. A task that goes
//!   to sleep with negative lag stays in the queue until its lag is used up
//!   (`DELAY_DEQUEUE`), and gains none there (`DELAY_ZERO`).
//! - **Several CPUs.** A waking task goes where it ran before if that CPU is idle, then to
//!   any idle CPU, then where it ran before. A CPU that falls idle takes a waiting task
//!   from the CPU with most of them. Now and then one moves from the heaviest queue to
//!   the lightest.
//!
//! # What is left out
//! Cgroups, autogroups, cpusets, NUMA and cache domains, wake-up affinity with the waker,
//! load averages (so three equal tasks on two CPUs stay two and one for longer than in
//! Linux), misfit and capacity, custom slices, SCHED_BATCH and SCHED_IDLE, the kernel's
//! other threads. A task that is behind begins its next job without a sleep, as rt-app
//! does. Where decisions are only carried out at a quantum, time is charged as though they
//! had been carried out at once.

use super::{Plan, Policy, View};
use crate::sim::engine::{CoreId, TaskId};
use crate::sim::task::TaskSet;
use crate::sim::time::{Ns, MS};

const TICK: Ns = MS;
const BASE_SLICE: i64 = 750_000;
/// CPUs beyond this do not lengthen the slice.
const MOST_SCALED: usize = 8;
const NICE_0: i64 = 1024;
/// A busy CPU looks for a better balance this often, for each CPU there is.
const BALANCE_EVERY: Ns = 16 * MS;

/// Ten per cent of the CPU for each nice level, which is a factor of 1.25.
pub fn weight_of(nice: i8) -> i64 {
    (NICE_0 as f64 * 1.25_f64.powi(-i32::from(nice))).round() as i64
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Never seen yet.
    New,
    Asleep,
    Runnable,
    /// Asleep, and in the queue until its lag is used up.
    Delayed,
}

#[derive(Clone, Copy, Debug)]
struct Entity {
    weight: i64,
    vruntime: i64,
    /// Virtual.
    deadline: i64,
    /// What it had when it left a queue.
    lag: i64,
    state: State,
    /// Where it is queued, or was.
    core: usize,
}

#[derive(Clone, Debug, Default)]
struct Queue {
    /// All that count: who runs, who waits, and the delayed.
    members: Vec<TaskId>,
    current: Option<TaskId>,
    /// Up to when its time is charged.
    charged_to: Ns,
    /// It has not used up the slice that it was picked for.
    protected: bool,
    reschedule: bool,
    /// Virtual time where nobody is there; it never goes back.
    floor: i64,
}

#[derive(Default)]
pub struct Eevdf {
    tasks: Vec<Entity>,
    queues: Vec<Queue>,
    begun: bool,
    now: Ns,
    slice: i64,
    /// Those who came, left, or may have.
    changed: Vec<TaskId>,
}

impl Policy for Eevdf {
    fn start(&mut self, set: &TaskSet, cores: usize) {
        let entity = |nice| Entity {
            weight: weight_of(nice),
            vruntime: 0,
            deadline: 0,
            lag: 0,
            state: State::New,
            core: 0,
        };
        let scaled = cores.clamp(1, MOST_SCALED).ilog2();
        *self = Self {
            tasks: set.tasks.iter().map(|task| entity(task.nice)).collect(),
            queues: vec![Queue::default(); cores],
            slice: BASE_SLICE * i64::from(1 + scaled),
            ..Self::default()
        };
    }

    fn decide(&mut self, view: &View, plan: &mut Plan) {
        self.now = view.now;
        self.follow(view);
        let at_tick = view.now.is_multiple_of(TICK);
        for core in 0..self.queues.len() {
            if at_tick {
                self.charge(core);
            }
            if self.queues[core].reschedule || self.queues[core].current.is_none() {
                self.switch(core);
            }
        }
        if at_tick && view.now.is_multiple_of(self.balance_period()) {
            self.balance();
        }
        for (core, queue) in self.queues.iter().enumerate() {
            if let Some(task) = queue.current {
                plan.run_on(task, core as CoreId);
            }
        }
        if let Some(time) = self.next_look() {
            plan.wake_at(time);
        }
    }
}

impl Eevdf {
    /// Takes note of who went to sleep, then of who woke up.
    fn follow(&mut self, view: &View) {
        let mut changed = std::mem::take(&mut self.changed);
        changed.clear();
        match std::mem::replace(&mut self.begun, true) {
            true => changed.extend_from_slice(view.touched),
            false => changed.extend(0..self.tasks.len() as TaskId),
        }
        for &task in &changed {
            let is_there = view.job_of(task).is_some();
            if !is_there && self.tasks[task as usize].state == State::Runnable {
                self.sleep(task);
            }
        }
        for &task in &changed {
            let is_there = view.job_of(task).is_some();
            if is_there && self.tasks[task as usize].state != State::Runnable {
                self.wake(task);
            }
        }
        self.changed = changed;
    }

    /// The weighted mean of the queue's virtual times, as a sum above `base` and the weight.
    fn sum(&self, core: usize, base: i64) -> (i128, i64) {
        let members = self.queues[core].members.iter();
        let entities = members.map(|&task| &self.tasks[task as usize]);
        entities.fold((0, 0), |(sum, load), entity| {
            let above = i128::from(entity.vruntime - base) * i128::from(entity.weight);
            (sum + above, load + entity.weight)
        })
    }

    /// Where everybody on this CPU should stand.
    fn mean(&self, core: usize) -> i64 {
        let base = self.queues[core].floor;
        let (sum, load) = self.sum(core, base);
        match load {
            0 => base,
            load => base + sum.div_euclid(i128::from(load)) as i64,
        }
    }

    fn is_eligible(&self, core: usize, task: TaskId) -> bool {
        let (sum, _) = self.sum(core, self.tasks[task as usize].vruntime);
        sum >= 0
    }

    fn virtual_time(&self, task: TaskId, time: i64) -> i64 {
        time * NICE_0 / self.tasks[task as usize].weight
    }

    /// Books what ran on this CPU since it was last looked at. A slice that is used up is
    /// followed by the next, for which it competes with the others.
    fn charge(&mut self, core: usize) {
        let Some(task) = self.queues[core].current else {
            return;
        };
        let ran = (self.now - self.queues[core].charged_to) as i64;
        self.queues[core].charged_to = self.now;
        let ran = self.virtual_time(task, ran);
        let slice = self.virtual_time(task, self.slice);
        let entity = &mut self.tasks[task as usize];
        entity.vruntime += ran;
        let used_up = entity.vruntime >= entity.deadline;
        if used_up {
            entity.deadline = entity.vruntime + slice;
            self.queues[core].protected = false;
        }
        self.raise_floor(core);
        if self.queues[core].members.len() > 1 {
            let overtaken = !self.queues[core].protected && !self.is_eligible(core, task);
            self.queues[core].reschedule |= used_up || overtaken;
        }
    }

    fn raise_floor(&mut self, core: usize) {
        let members = self.queues[core].members.iter();
        let least = members
            .map(|&task| self.tasks[task as usize].vruntime)
            .min();
        let queue = &mut self.queues[core];
        queue.floor = queue.floor.max(least.unwrap_or(queue.floor));
    }

    fn note_lag(&mut self, core: usize, task: TaskId) {
        let most = self.virtual_time(task, (2 * self.slice).max(TICK as i64));
        let mean = self.mean(core);
        let entity = &mut self.tasks[task as usize];
        entity.lag = (mean - entity.vruntime).clamp(-most, most);
    }

    fn sleep(&mut self, task: TaskId) {
        let core = self.tasks[task as usize].core;
        self.charge(core);
        let queue = &mut self.queues[core];
        if queue.current == Some(task) {
            queue.current = None;
        }
        if !self.is_eligible(core, task) {
            self.tasks[task as usize].state = State::Delayed;
            return;
        }
        self.leave(core, task);
        self.tasks[task as usize].state = State::Asleep;
    }

    /// Takes its lag along.
    fn leave(&mut self, core: usize, task: TaskId) {
        self.note_lag(core, task);
        self.queues[core].members.retain(|&other| other != task);
        self.raise_floor(core);
    }

    /// Joins a queue so that its lag is the same once it is there: its own weight moves
    /// the mean.
    fn join(&mut self, core: usize, task: TaskId) {
        let mean = self.mean(core);
        let (_, load) = self.sum(core, mean);
        let Entity { weight, lag, .. } = self.tasks[task as usize];
        let lag = match load {
            0 => 0,
            load => i128::from(lag) * i128::from(load + weight) / i128::from(load),
        };
        let entity = &mut self.tasks[task as usize];
        entity.vruntime = mean - lag as i64;
        entity.core = core;
        self.queues[core].members.push(task);
    }

    fn ask_for_slice(&mut self, task: TaskId, slice: i64) {
        let slice = self.virtual_time(task, slice);
        let entity = &mut self.tasks[task as usize];
        entity.deadline = entity.vruntime + slice;
    }

    fn wake(&mut self, task: TaskId) {
        let was = self.tasks[task as usize].state;
        let core = match was {
            State::Delayed => self.tasks[task as usize].core,
            _ => self.place_for(task),
        };
        self.charge(core);
        self.tasks[task as usize].state = State::Runnable;
        match was {
            State::Delayed => {
                self.note_lag(core, task);
                if self.tasks[task as usize].lag > 0 {
                    self.queues[core].members.retain(|&other| other != task);
                    self.tasks[task as usize].lag = 0;
                    self.join(core, task);
                    self.ask_for_slice(task, self.slice);
                }
            }
            _ => {
                self.join(core, task);
                // The others are half-way through theirs, on average.
                let share = if was == State::New { 2 } else { 1 };
                self.ask_for_slice(task, self.slice / share);
            }
        }
        if self.pick(core) == Some(task) {
            self.queues[core].reschedule = true;
        }
    }

    /// The CPU that a waking task goes to; a new one goes where the fewest are.
    fn place_for(&self, task: TaskId) -> usize {
        let entity = &self.tasks[task as usize];
        let cores = self.queues.len();
        if entity.state == State::New {
            let fewest = (0..cores).min_by_key(|&core| self.queues[core].members.len());
            return fewest.expect("a machine has a CPU");
        }
        let from_its_own = (0..cores).map(|step| (entity.core + step) % cores);
        let mut idle = from_its_own.filter(|&core| self.queues[core].members.is_empty());
        idle.next().unwrap_or(entity.core)
    }

    /// The eligible task of the earliest virtual deadline; who runs is not disturbed while
    /// it is eligible and has some of its slice left.
    fn pick(&self, core: usize) -> Option<TaskId> {
        let queue = &self.queues[core];
        if let [only] = queue.members[..] {
            return Some(only);
        }
        let (sum, load) = self.sum(core, queue.floor);
        let eligible = |task: &TaskId| {
            let above = i128::from(self.tasks[*task as usize].vruntime - queue.floor);
            above * i128::from(load) <= sum
        };
        let deadline = |task: &TaskId| self.tasks[*task as usize].deadline;
        let current = queue.current.filter(eligible);
        if queue.protected && current.is_some() {
            return current;
        }
        let others = queue.members.iter().copied();
        let best = others
            .filter(|&task| Some(task) != queue.current && eligible(&task))
            .min_by_key(deadline);
        match (current, best) {
            (Some(current), Some(best)) if deadline(&best) <= deadline(&current) => Some(best),
            (Some(current), _) => Some(current),
            (None, best) => best,
        }
    }

    fn switch(&mut self, core: usize) {
        self.queues[core].reschedule = false;
        let next = loop {
            match self.pick(core) {
                Some(task) if self.tasks[task as usize].state == State::Delayed => {
                    self.leave(core, task);
                    let entity = &mut self.tasks[task as usize];
                    entity.lag = entity.lag.min(0);
                    entity.state = State::Asleep;
                }
                Some(task) => break Some(task),
                None if self.pull_to(core) => {}
                None => break None,
            }
        };
        let queue = &mut self.queues[core];
        if next != queue.current {
            queue.current = next;
            queue.protected = true;
            queue.charged_to = self.now;
        }
    }

    fn waiting(&self, core: usize) -> impl Iterator<Item = TaskId> + '_ {
        let queue = &self.queues[core];
        let members = queue.members.iter().copied();
        members.filter(|&task| {
            Some(task) != queue.current && self.tasks[task as usize].state == State::Runnable
        })
    }

    /// A waiting task for a CPU that has none.
    fn pull_to(&mut self, core: usize) -> bool {
        let others = (0..self.queues.len()).filter(|&other| other != core);
        let busiest = others.max_by_key(|&other| self.waiting(other).count());
        let Some(from) = busiest.filter(|&from| self.queues[from].current.is_some()) else {
            return false;
        };
        let Some(task) = self.waiting(from).next() else {
            return false;
        };
        self.move_to(from, core, task);
        true
    }

    /// Lag and what is left of the slice go along.
    fn move_to(&mut self, from: usize, to: usize, task: TaskId) {
        self.charge(from);
        self.charge(to);
        let entity = &self.tasks[task as usize];
        let left = entity.deadline - entity.vruntime;
        self.leave(from, task);
        self.join(to, task);
        let entity = &mut self.tasks[task as usize];
        entity.deadline = entity.vruntime + left;
    }

    fn load(&self, core: usize) -> i64 {
        let running = self.queues[core].current;
        let tasks = self.waiting(core).chain(running);
        tasks.map(|task| self.tasks[task as usize].weight).sum()
    }

    /// Moves the heaviest task that makes the heaviest and the lightest queue more alike.
    fn balance(&mut self) {
        let cores = 0..self.queues.len();
        let Some(heaviest) = cores.clone().max_by_key(|&core| self.load(core)) else {
            return;
        };
        let Some(lightest) = cores.min_by_key(|&core| self.load(core)) else {
            return;
        };
        let gap = self.load(heaviest) - self.load(lightest);
        let weight = |task: &TaskId| self.tasks[*task as usize].weight;
        let fitting = self
            .waiting(heaviest)
            .filter(|task| 2 * weight(task) <= gap);
        let Some(task) = fitting.max_by_key(weight) else {
            return;
        };
        self.move_to(heaviest, lightest, task);
        if self.pick(lightest) == Some(task) {
            self.queues[lightest].reschedule = true;
            self.switch(lightest);
        }
    }

    fn balance_period(&self) -> Ns {
        BALANCE_EVERY * self.queues.len() as Ns
    }

    /// The next tick that may change something.
    fn next_look(&self) -> Option<Ns> {
        let next = |span: Ns| (self.now / span + 1) * span;
        let contended = |queue: &&Queue| queue.members.len() > 1 && queue.current.is_some();
        let ends = self.queues.iter().filter(contended).map(|queue| {
            let task = queue.current.expect("only those with one are looked at");
            let entity = &self.tasks[task as usize];
            let left = (entity.deadline - entity.vruntime).max(0) * entity.weight / NICE_0;
            let used_up = (queue.charged_to + left as Ns).div_ceil(TICK) * TICK;
            match queue.protected {
                true => used_up.max(next(TICK)),
                false => next(TICK),
            }
        });
        let slices = ends.min();
        let several = self.queues.len() > 1 && slices.is_some();
        let balanced = several.then(|| next(self.balance_period()));
        slices.into_iter().chain(balanced).min()
    }
}

#[cfg(test)]
mod tests;
