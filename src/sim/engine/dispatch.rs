//! From decisions to cores: when a policy is asked, when its answer takes effect,
//! and what starting, stopping and moving a job costs.

use std::collections::VecDeque;

use super::{
    tally::Segment,
    view::{CoreId, Event, Plan, ReadyJob, TaskId, View, NO_CORE},
    Core, Sim, NOT_READY, NO_TASK,
};
use crate::sim::time::{Ns, NEVER};

/// The state of the conversation with the policy.
#[derive(Clone, Debug)]
pub(super) struct Control {
    /// When the policy asked to be woken.
    wake: Ns,
    pending: Option<Pending>,
    /// Something happened that the policy has not been asked about.
    due: bool,
    /// When hidden releases become visible (staleness).
    reveals: VecDeque<Ns>,
    /// The jobs the policy may see, when that is not all of them, and where they stand.
    visible: Vec<ReadyJob>,
    visible_places: Vec<u32>,
    /// What the policy is told of this decision: see [`View`].
    running: Vec<TaskId>,
    touched: Vec<TaskId>,
}

/// A decision under way.
#[derive(Clone, Debug)]
struct Pending {
    /// When it takes effect.
    at: Ns,
    /// Task, the index of the job it was made for, and core.
    entries: Vec<(TaskId, u32, CoreId)>,
}

impl Default for Control {
    fn default() -> Self {
        Self {
            wake: NEVER,
            pending: None,
            due: false,
            reveals: VecDeque::new(),
            visible: Vec::new(),
            visible_places: Vec::new(),
            running: Vec::new(),
            touched: Vec::new(),
        }
    }
}

impl Sim<'_> {
    /// Moves on to the next moment at which the policy decides; false when the
    /// horizon is reached.
    pub fn advance(&mut self) -> bool {
        loop {
            let time = self.next_moment();
            if time > self.horizon {
                return false;
            }
            if time > self.now || self.next_event() == time {
                self.process(time);
            }
            self.note_changes();
            if self.control.wake <= self.now {
                self.control.wake = NEVER;
                self.control.due = true;
            }
            if matches!(&self.control.pending, Some(p) if p.at <= self.now) {
                self.land_pending();
            }
            if self.now >= self.horizon {
                return false;
            }
            if self.control.pending.is_some() {
                self.fill_idle_by_deadline();
            } else if self.control.due && self.may_decide() {
                self.control.due = false;
                self.tally.decisions += 1;
                self.book_running();
                self.tell();
                return true;
            }
        }
    }

    /// What the policy sees of the present state.
    pub fn view(&self) -> View<'_> {
        let control = &self.control;
        let (jobs, places) = if self.options.staleness_ns > 0 {
            (&control.visible, &control.visible_places)
        } else {
            (&self.ready, &self.places)
        };
        View {
            now: self.now,
            cores: self.cores.len(),
            options: &self.options,
            jobs,
            places,
            running: &control.running,
            touched: &control.touched,
            tasks: &self.set.tasks,
            next_boundary: self.timers.min(),
            next_releases: &self.next_releases,
            estimates: &self.estimates,
        }
    }

    /// Takes the policy's answer; it takes effect after the decision latency.
    pub fn submit(&mut self, plan: &Plan) {
        self.control.wake = if plan.wake > self.now {
            plan.wake
        } else {
            NEVER
        };
        if self.options.decision_latency_ns == 0 {
            if self.may_preempt() {
                self.apply(plan.entries());
            } else {
                self.fill_idle(plan.entries());
                self.control.due = true;
            }
        } else {
            let entries = plan
                .entries()
                .iter()
                .filter_map(|&(task, core)| {
                    let place = *self.places.get(task as usize)?;
                    let job = self.ready.get(place as usize)?;
                    Some((task, job.index, core))
                })
                .collect();
            let at = self.now + self.options.decision_latency_ns;
            self.control.pending = Some(Pending { at, entries });
            self.fill_idle_by_deadline();
        }
    }

    fn next_moment(&self) -> Ns {
        let control = &self.control;
        let mut time = self.next_event().min(control.wake);
        if let Some(pending) = &control.pending {
            time = time.min(pending.at);
        } else if control.due {
            // Waiting for a tick.
            time = time.min(self.next_tick());
        }
        if let Some(&reveal) = control.reveals.front() {
            time = time.min(reveal);
        }
        time
    }

    fn next_tick(&self) -> Ns {
        let quantum = self.options.quantum_ns.max(1);
        (self.now / quantum + 1) * quantum
    }

    fn may_preempt(&self) -> bool {
        let quantum = self.options.quantum_ns;
        quantum == 0 || self.now.is_multiple_of(quantum)
    }

    fn may_decide(&self) -> bool {
        self.may_preempt() || self.cores.iter().any(Core::is_idle)
    }

    fn note_changes(&mut self) {
        if self.options.staleness_ns > 0 && !self.fresh.is_empty() {
            let at = self.now + self.options.staleness_ns;
            if self.control.reveals.back() != Some(&at) {
                self.control.reveals.push_back(at);
            }
        }
        self.fresh.clear();
        self.control.due |= std::mem::take(&mut self.changed);
        while self.control.reveals.front().is_some_and(|&t| t <= self.now) {
            self.control.reveals.pop_front();
            self.control.due = true;
        }
    }

    /// Puts together what the policy is told beside the jobs themselves.
    fn tell(&mut self) {
        let control = &mut self.control;
        let running = self.cores.iter().map(|core| core.task);
        control.running.clear();
        control
            .running
            .extend(running.filter(|&task| task != NO_TASK));
        std::mem::swap(&mut control.touched, &mut self.touched);
        self.touched.clear();
        let staleness = self.options.staleness_ns;
        if staleness > 0 {
            let now = self.now;
            control.visible.clear();
            control.visible.extend(
                self.ready
                    .iter()
                    .filter(|job| job.release + staleness <= now || job.is_running()),
            );
            control.visible_places.clear();
            control.visible_places.resize(self.tasks.len(), NOT_READY);
            for (place, job) in control.visible.iter().enumerate() {
                control.visible_places[job.task as usize] = place as u32;
            }
            // What has come into sight since is not worth keeping track of.
            control.touched.clear();
            control.touched.extend(0..self.tasks.len() as TaskId);
        }
    }

    fn land_pending(&mut self) {
        let Some(Pending { entries, .. }) = self.control.pending.take() else {
            return;
        };
        self.book_running();
        let before = entries.len();
        let live: Vec<(TaskId, CoreId)> = entries
            .into_iter()
            .filter(|&(task, index, _)| {
                let place = self.places[task as usize];
                place != NOT_READY && self.ready[place as usize].index == index
            })
            .map(|(task, _, core)| (task, core))
            .collect();
        self.tally.stale += (before - live.len()) as u64;
        if self.may_preempt() {
            self.apply(&live);
        } else {
            self.fill_idle(&live);
            self.control.due = true;
        }
        self.fill_idle_by_deadline();
    }

    /// Makes exactly these jobs run.
    fn apply(&mut self, entries: &[(TaskId, CoreId)]) {
        let cores = self.cores.len();
        let entries = &entries[..entries.len().min(cores)];
        for core in &mut self.cores {
            core.stays = false;
        }
        // Backwards, so that of two entries for a task the first counts.
        for &(task, on) in entries.iter().rev() {
            let place = self.places[task as usize];
            let job = self.ready.get(place as usize);
            if let Some(job) = job.filter(|job| job.is_running()) {
                self.cores[job.core as usize].stays = on == NO_CORE || on == job.core;
            }
        }
        let mut idle = 0;
        for core in 0..cores {
            if !self.cores[core].is_idle() && !self.cores[core].stays {
                self.preempt(core);
            }
            idle += usize::from(self.cores[core].is_idle());
        }
        if idle == 0 {
            return;
        }
        // Those with a fixed core first, so that nobody sits on it by chance.
        for &(task, core) in entries {
            if core != NO_CORE && self.can_start(task) && self.cores[core as usize].is_idle() {
                self.start(core as usize, task as usize);
            }
        }
        self.fill_idle(entries);
    }

    /// Starts these jobs as far as there are idle cores; preempts nobody.
    fn fill_idle(&mut self, entries: &[(TaskId, CoreId)]) {
        for &(task, core) in entries {
            if core == NO_CORE && self.can_start(task) {
                let Some(core) = self.idle_core_for(task as usize) else {
                    return;
                };
                self.start(core, task as usize);
            } else if core != NO_CORE && self.can_start(task) && self.cores[core as usize].is_idle()
            {
                self.start(core as usize, task as usize);
            }
        }
    }

    fn fill_idle_by_deadline(&mut self) {
        while self.cores.iter().any(Core::is_idle) {
            let Some(task) = self
                .ready
                .iter()
                .filter(|job| !job.is_running())
                .min_by_key(|job| (job.deadline, job.task))
                .map(|job| job.task as usize)
            else {
                return;
            };
            let Some(core) = self.idle_core_for(task) else {
                return;
            };
            self.start(core, task);
        }
    }

    fn can_start(&self, task: TaskId) -> bool {
        let place = self.places.get(task as usize).copied();
        let job = place.and_then(|place| self.ready.get(place as usize));
        job.is_some_and(|job| !job.is_running())
    }

    /// Where the job ran last if that is free, else the first idle core.
    pub(super) fn idle_core_for(&self, task: usize) -> Option<usize> {
        let last = self.ready[self.places[task] as usize].last_core as usize;
        match self.cores.get(last) {
            Some(core) if core.is_idle() => Some(last),
            _ => self.cores.iter().position(Core::is_idle),
        }
    }

    pub(super) fn start(&mut self, core: usize, task: usize) {
        let job = &mut self.ready[self.places[task] as usize];
        let mut cost = 0;
        let identity = (task as TaskId, job.index);
        if self.cores[core].last != identity {
            cost += self.options.context_switch_ns;
        }
        if job.last_core != NO_CORE && job.last_core as usize != core {
            cost += self.options.migration_ns;
            self.tally.migrations += 1;
            if self.record.segments {
                self.tally.moves_of(task).migrations += 1;
            }
            if self.record.events {
                self.events.push(Event::Migrated {
                    task: task as TaskId,
                    time: self.now,
                });
            }
        }
        self.touched.push(task as TaskId);
        job.core = core as CoreId;
        job.last_core = core as CoreId;
        let slot = &mut self.cores[core];
        slot.task = task as TaskId;
        slot.taken = self.now;
        slot.since = self.now + cost;
        slot.finish = slot.since + job.work;
        slot.last = identity;
    }

    pub(super) fn preempt(&mut self, core: usize) {
        let task = self.cores[core].task as usize;
        self.stop(core);
        self.tally.preemptions += 1;
        if self.record.segments {
            self.tally.moves_of(task).preemptions += 1;
        }
        let job = &mut self.ready[self.places[task] as usize];
        job.queued = self.sequence;
        self.sequence += 1;
    }

    /// Takes the job off its core.
    pub(super) fn stop(&mut self, core: usize) {
        self.book(core);
        let slot = self.cores[core];
        let job = &mut self.ready[self.places[slot.task as usize] as usize];
        job.core = NO_CORE;
        self.touched.push(slot.task);
        if self.record.segments && slot.taken < self.now {
            self.tally.segments.push(Segment {
                core: core as CoreId,
                task: slot.task,
                index: job.index,
                start: slot.taken,
                end: self.now,
            });
        }
        self.cores[core] = Core {
            last: slot.last,
            ..Core::IDLE
        };
    }
}
