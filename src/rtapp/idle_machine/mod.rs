//! A workload on a machine with a CPU for every thread: when every job would be
//! released, what it takes, and when it is due, if no thread ever waited for a CPU.
//!
//! This is how threads that sleep, share timers, wake each other, lock, meet at
//! barriers or fork get releases that a scheduler's comparison can hold fixed. A
//! job begins when its thread starts to run and ends when it blocks or reaches its
//! timer, even a timer that has expired.

mod body;
mod program;
mod sync;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use thiserror::Error;

use self::body::{Body, Then, TimerState};
use self::program::{Clock, Op, Programs};
use self::sync::{Barrier, Condition, Mutex, Semaphore};
use super::note::Place;
use super::workload::Workload;
use crate::sim::time::Ns;

type ThreadId = usize;

/// What stops a workload that would go on and on.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Jobs released from here on are not wanted.
    pub horizon: Ns,
    /// Events of all threads together.
    pub steps: u64,
    /// Jobs of all threads together.
    pub jobs: u64,
    /// Threads, forked ones included.
    pub threads: usize,
}

impl Limits {
    pub fn until(horizon: Ns) -> Limits {
        Limits {
            horizon,
            steps: 20_000_000,
            jobs: 4_000_000,
            threads: 4096,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("it has more than {most} {what} in that time; simulate less of it (--horizon)")]
pub struct TooLong {
    most: u64,
    what: &'static str,
}

/// One thread from its start to its end.
#[derive(Clone, Debug)]
pub struct Life {
    /// Its place in the workload.
    pub thread: usize,
    /// Counts the instances, then the forks.
    pub instance: u32,
    pub forked: bool,
    pub jobs: Vec<IdleJob>,
    pub end: End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdleJob {
    pub release: Ns,
    /// CPU time.
    pub work: Ns,
    pub due: Due,
    /// The phase it was released in.
    pub phase: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// A timer ends the job; what rt-app measures its slack against.
    Timer(Ns),
    /// No timer, but the thread wakes up again then.
    NextWake(Ns),
    /// Neither: the thread ends, blocks for good or never blocks.
    Never,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It was still going when time was up.
    Going,
    Finished,
    /// It waits here, since then, for something that never came.
    Stuck {
        at: Place,
        since: Ns,
    },
    /// It loops here without using time.
    Spinning(Place),
    /// It computes and never blocks.
    Hog,
}

pub fn run(workload: &Workload, limits: Limits) -> Result<Vec<Life>, TooLong> {
    let programs = program::compile(workload);
    let mut machine = Machine::new(&programs, limits);
    for (thread, entry) in workload.threads.iter().enumerate() {
        for instance in 0..entry.instances {
            machine.start(thread, instance, false, 0);
        }
    }
    machine.run()?;
    Ok(machine.into_lives())
}

struct Machine<'a> {
    programs: &'a Programs,
    limits: Limits,
    /// Which thread goes on when; of those at the same time, the one that came first.
    agenda: BinaryHeap<Reverse<(Ns, u64, ThreadId)>>,
    sequence: u64,
    steps: u64,
    jobs: u64,
    threads: Vec<Body<'a>>,
    forks: Vec<u32>,
    timers: Vec<TimerState>,
    mutexes: Vec<Mutex>,
    conditions: Vec<Condition>,
    barriers: Vec<Barrier>,
    semaphores: Vec<Semaphore>,
}

impl<'a> Machine<'a> {
    fn new(programs: &'a Programs, limits: Limits) -> Self {
        Machine {
            programs,
            limits,
            agenda: BinaryHeap::new(),
            sequence: 0,
            steps: 0,
            jobs: 0,
            threads: Vec::new(),
            forks: vec![0; programs.threads.len()],
            timers: TimerState::all(&programs.shared_timers),
            mutexes: vec![Mutex::default(); programs.mutexes],
            conditions: vec![Condition::default(); programs.conditions],
            barriers: programs.barriers.iter().map(|&n| Barrier::of(n)).collect(),
            semaphores: vec![Semaphore::default(); programs.semaphores],
        }
    }

    fn start(&mut self, thread: usize, instance: u32, forked: bool, now: Ns) {
        let program = &self.programs.threads[thread];
        let body = Body::new(program, thread, instance, forked);
        let idle = body.done;
        self.threads.push(body);
        if !idle {
            self.wake(self.threads.len() - 1, now.max(program.delay));
        }
    }

    fn run(&mut self) -> Result<(), TooLong> {
        // Jobs released before the horizon may end, and learn when they were due.
        let end = self.limits.horizon.saturating_mul(2);
        while let Some(Reverse((now, _, id))) = self.agenda.pop() {
            if now > end {
                break;
            }
            self.check()?;
            while let Then::GoOn = self.step(id, now) {
                self.check()?;
            }
        }
        Ok(())
    }

    fn check(&mut self) -> Result<(), TooLong> {
        self.steps += 1;
        for (count, most, what) in [
            (self.steps, self.limits.steps, "events"),
            (self.jobs, self.limits.jobs, "jobs"),
        ] {
            if count > most {
                return Err(TooLong { most, what });
            }
        }
        Ok(())
    }

    fn into_lives(self) -> Vec<Life> {
        let horizon = self.limits.horizon;
        self.threads
            .into_iter()
            .map(|mut body| {
                if !body.done && body.open.is_none() {
                    let (_, steps) = &body.program.phases[body.phase];
                    if let Some(step) = steps.get(body.step.saturating_sub(1)) {
                        let since = body.stalled.0;
                        body.life.end = End::Stuck { at: step.at, since };
                    }
                }
                if body.open.as_ref().is_some_and(|open| open.work > horizon) {
                    body.life.end = End::Hog;
                }
                body.close(None);
                body.life
            })
            .collect()
    }

    fn schedule(&mut self, id: ThreadId, at: Ns) {
        self.agenda.push(Reverse((at, self.sequence, id)));
        self.sequence += 1;
    }

    fn release(&mut self, id: ThreadId, at: Ns) {
        self.jobs += 1;
        self.threads[id].release(at, self.limits.horizon);
    }

    /// A blocked thread goes on, with a new job.
    fn wake(&mut self, id: ThreadId, at: Ns) {
        self.release(id, at);
        if !self.threads[id].done {
            self.schedule(id, at);
        }
    }

    /// Blocks the thread; somebody else will wake it.
    fn block(&mut self, id: ThreadId) -> Then {
        self.threads[id].close(None);
        Then::Leave
    }

    fn step(&mut self, id: ThreadId, now: Ns) -> Then {
        let body = &mut self.threads[id];
        if body.done {
            return Then::Leave;
        }
        let (_, steps) = &body.program.phases[body.phase];
        let Some(step) = steps.get(body.step) else {
            return body.next_phase();
        };
        if body.is_spinning(now) {
            body.finish(End::Spinning(step.at));
            return Then::Leave;
        }
        body.step += 1;
        match step.op {
            Op::Nothing | Op::Run(0) | Op::Sleep(0) | Op::Timer { period: 0, .. } => Then::GoOn,
            Op::Run(work) => {
                body.compute(work);
                self.schedule(id, now.saturating_add(work));
                Then::Leave
            }
            Op::Sleep(time) => {
                body.close(None);
                self.wake(id, now.saturating_add(time));
                Then::Leave
            }
            Op::Timer { clock, period } => self.timer(id, clock, period, now),
            Op::Lock(mutex) => match self.mutexes[mutex].lock(id) {
                true => Then::GoOn,
                false => self.block(id),
            },
            Op::Unlock(mutex) => {
                self.unlock(id, mutex, now);
                Then::GoOn
            }
            Op::Wait { condition, mutex } => {
                self.conditions[condition].wait(id, mutex);
                self.unlock(id, mutex, now);
                self.block(id)
            }
            Op::Signal(condition) => {
                self.signal(condition, now);
                Then::GoOn
            }
            Op::Broadcast(condition) => {
                while self.signal(condition, now) {}
                Then::GoOn
            }
            Op::Barrier(barrier) => match self.barriers[barrier].arrive(id) {
                None => self.block(id),
                Some(others) => {
                    others.into_iter().for_each(|other| self.wake(other, now));
                    Then::GoOn
                }
            },
            Op::Post(semaphore) => {
                if let Some(other) = self.semaphores[semaphore].post() {
                    self.wake(other, now);
                }
                Then::GoOn
            }
            Op::Take(semaphore) => match self.semaphores[semaphore].take(id) {
                true => Then::GoOn,
                false => self.block(id),
            },
            Op::Fork(thread) => {
                if self.threads.len() < self.limits.threads {
                    self.forks[thread] += 1;
                    self.start(thread, self.forks[thread], true, now);
                }
                Then::GoOn
            }
        }
    }

    fn timer(&mut self, id: ThreadId, clock: Clock, period: Ns, now: Ns) -> Then {
        let body = &mut self.threads[id];
        let timer = match clock {
            Clock::Shared(timer) => &mut self.timers[timer],
            Clock::Own(timer) => &mut body.timers[timer],
        };
        let due = timer.next.unwrap_or(body.first).saturating_add(period);
        timer.next = Some(due);
        let release = if now < due || timer.absolute {
            due
        } else {
            timer.next = Some(now);
            now
        };
        body.close(Some(due));
        if now < due {
            self.wake(id, due);
            return Then::Leave;
        }
        // Late already: the next job begins at once, and was due to.
        self.release(id, release);
        Then::GoOn
    }

    fn unlock(&mut self, id: ThreadId, mutex: usize, now: Ns) {
        if let Some(next) = self.mutexes[mutex].unlock(id) {
            self.wake(next, now);
        }
    }

    /// True when somebody heard it.
    fn signal(&mut self, condition: usize, now: Ns) -> bool {
        let Some((waiter, mutex)) = self.conditions[condition].signal() else {
            return false;
        };
        if self.mutexes[mutex].lock(waiter) {
            self.wake(waiter, now);
        }
        true
    }
}
