//! A workload with its names resolved: what every thread does, step by step.

use std::collections::HashMap;

use crate::rtapp::note::Place;
use crate::rtapp::workload::{Action, Loops, Thread, Workload};
use crate::sim::time::{Ns, US};

#[derive(Clone, Copy, Debug)]
pub enum Op {
    /// Uses the CPU.
    Run(Ns),
    Sleep(Ns),
    Timer {
        clock: Clock,
        period: Ns,
    },
    Lock(usize),
    Unlock(usize),
    Wait {
        condition: usize,
        mutex: usize,
    },
    Signal(usize),
    Broadcast(usize),
    Barrier(usize),
    Post(usize),
    Take(usize),
    /// Starts another of these threads.
    Fork(usize),
    Nothing,
}

/// Which timer: one that all threads share, or the thread's own.
#[derive(Clone, Copy, Debug)]
pub enum Clock {
    Shared(usize),
    Own(usize),
}

#[derive(Clone, Copy, Debug)]
pub struct Step {
    pub op: Op,
    pub at: Place,
}

pub struct Program {
    pub delay: Ns,
    pub loops: Loops,
    pub phases: Vec<(Loops, Vec<Step>)>,
    /// Absolute or not, for each of its own timers.
    pub own_timers: Vec<bool>,
}

/// The programs and how many of everything they share.
#[derive(Default)]
pub struct Programs {
    pub threads: Vec<Program>,
    pub shared_timers: Vec<bool>,
    pub mutexes: usize,
    pub conditions: usize,
    /// How many must come before anybody goes on.
    pub barriers: Vec<u64>,
    pub semaphores: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Sort {
    Timer,
    Mutex,
    Condition,
    Barrier,
    Semaphore,
}

struct Names<'a> {
    programs: Programs,
    shared: HashMap<(Sort, &'a str), usize>,
    own: HashMap<&'a str, usize>,
    own_timers: Vec<bool>,
    threads: HashMap<&'a str, usize>,
}

pub fn compile(workload: &Workload) -> Programs {
    let mut names = Names {
        programs: Programs::default(),
        shared: HashMap::new(),
        own: HashMap::new(),
        own_timers: Vec::new(),
        threads: HashMap::new(),
    };
    for (i, thread) in workload.threads.iter().enumerate() {
        names.threads.entry(&thread.name).or_insert(i);
    }
    for thread in &workload.threads {
        let program = names.thread(thread);
        names.programs.threads.push(program);
    }
    names.programs
}

impl<'a> Names<'a> {
    fn thread(&mut self, thread: &'a Thread) -> Program {
        self.own.clear();
        let phases = thread
            .phases
            .iter()
            .map(|phase| {
                let mut steps = Vec::with_capacity(phase.events.len());
                for event in &phase.events {
                    self.event(&event.action, thread, &mut |op| {
                        steps.push(Step { op, at: event.at })
                    });
                }
                (phase.loops, steps)
            })
            .collect();
        Program {
            delay: thread.delay_us * US,
            loops: thread.loops,
            phases,
            own_timers: std::mem::take(&mut self.own_timers),
        }
    }

    fn event(&mut self, action: &'a Action, thread: &Thread, push: &mut dyn FnMut(Op)) {
        match action {
            Action::Run { us } | Action::Runtime { us } => push(Op::Run(us * US)),
            Action::Sleep { us } => push(Op::Sleep(us * US)),
            Action::Timer(timer) => {
                let clock = if timer.unique {
                    let next = self.own_timers.len();
                    let id = *self.own.entry(&timer.reference).or_insert(next);
                    if id == next {
                        self.own_timers.push(timer.absolute);
                    }
                    Clock::Own(id)
                } else {
                    let id = self.shared(Sort::Timer, &timer.reference);
                    self.programs.shared_timers[id] = timer.absolute;
                    Clock::Shared(id)
                };
                let period = timer.period_us * US;
                push(Op::Timer { clock, period });
            }
            Action::Lock(name) => push(Op::Lock(self.shared(Sort::Mutex, name))),
            Action::Unlock(name) => push(Op::Unlock(self.shared(Sort::Mutex, name))),
            Action::Wait { on, mutex } => push(self.wait(on, mutex)),
            Action::Signal(on) => push(Op::Signal(self.shared(Sort::Condition, on))),
            Action::Broadcast(on) => push(Op::Broadcast(self.shared(Sort::Condition, on))),
            Action::Sync { on, mutex } => {
                push(Op::Signal(self.shared(Sort::Condition, on)));
                push(self.wait(on, mutex));
            }
            Action::Barrier(name) => {
                let id = self.shared(Sort::Barrier, name);
                // Every mention counts every instance, as rt-app does it.
                self.programs.barriers[id] += u64::from(thread.instances);
                push(Op::Barrier(id));
            }
            Action::SemPost(name) => push(Op::Post(self.shared(Sort::Semaphore, name))),
            Action::SemWait(name) => push(Op::Take(self.shared(Sort::Semaphore, name))),
            // rt-app makes these of a condition and a mutex of the same name, which
            // events of their own may use as well.
            Action::Suspend(name) => {
                let mutex = self.shared(Sort::Mutex, name);
                push(Op::Lock(mutex));
                push(self.wait(name, name));
                push(Op::Unlock(mutex));
            }
            Action::Resume(name) => {
                let mutex = self.shared(Sort::Mutex, name);
                push(Op::Lock(mutex));
                push(Op::Broadcast(self.shared(Sort::Condition, name)));
                push(Op::Unlock(mutex));
            }
            Action::Fork(name) => push(match self.threads.get(name.as_str()) {
                Some(&thread) => Op::Fork(thread),
                None => Op::Nothing,
            }),
            Action::Yield | Action::Mem { .. } | Action::IoRun { .. } | Action::MemRun(_) => {
                push(Op::Nothing)
            }
        }
    }

    fn wait(&mut self, on: &'a str, mutex: &'a str) -> Op {
        Op::Wait {
            condition: self.shared(Sort::Condition, on),
            mutex: self.shared(Sort::Mutex, mutex),
        }
    }

    fn shared(&mut self, sort: Sort, name: &'a str) -> usize {
        if let Some(&id) = self.shared.get(&(sort, name)) {
            return id;
        }
        let programs = &mut self.programs;
        let id = match sort {
            Sort::Timer => {
                programs.shared_timers.push(false);
                programs.shared_timers.len() - 1
            }
            Sort::Barrier => {
                programs.barriers.push(0);
                programs.barriers.len() - 1
            }
            Sort::Mutex => next(&mut programs.mutexes),
            Sort::Condition => next(&mut programs.conditions),
            Sort::Semaphore => next(&mut programs.semaphores),
        };
        self.shared.insert((sort, name), id);
        id
    }
}

fn next(count: &mut usize) -> usize {
    *count += 1;
    *count - 1
}
