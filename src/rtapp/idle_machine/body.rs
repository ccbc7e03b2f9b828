//! One thread on its way through its program, and the job it is at.

use super::program::Program;
use super::{Due, End, IdleJob, Life};
use crate::rtapp::workload::Loops;
use crate::sim::time::Ns;

/// A loop that gets nowhere is given up after this many steps at one instant.
const STEPS_AT_ONCE: u32 = 10_000;

#[derive(Clone, Copy)]
pub struct TimerState {
    pub absolute: bool,
    /// When it expires next; `None` before its first use.
    pub next: Option<Ns>,
}

pub struct Body<'a> {
    pub program: &'a Program,
    pub life: Life,
    /// When its timers start to count.
    pub first: Ns,
    pub timers: Vec<TimerState>,
    pub phase: usize,
    pub step: usize,
    phase_loop: u32,
    thread_loop: u32,
    pub open: Option<Open>,
    /// The last job waits to hear when the thread wakes up.
    awaiting: bool,
    /// When it took its last step, and how many at that instant.
    pub stalled: (Ns, u32),
    pub done: bool,
}

pub struct Open {
    pub release: Ns,
    pub work: Ns,
    phase: usize,
}

/// How a step leaves the thread.
pub enum Then {
    GoOn,
    /// It is on the agenda, waits for somebody, or has ended.
    Leave,
}

impl TimerState {
    /// Timers that nobody has used yet, by whether they are absolute.
    pub fn all(absolute: &[bool]) -> Vec<TimerState> {
        let timer = |&absolute: &bool| TimerState {
            absolute,
            next: None,
        };
        absolute.iter().map(timer).collect()
    }
}

impl<'a> Body<'a> {
    pub fn new(program: &'a Program, thread: usize, instance: u32, forked: bool) -> Self {
        let idle = program.loops == Loops::Times(0)
            || program.phases.iter().all(|(_, steps)| steps.is_empty());
        Self {
            program,
            life: Life {
                thread,
                instance,
                forked,
                jobs: Vec::new(),
                end: if idle { End::Finished } else { End::Going },
            },
            // Forks count from the start of the whole, too.
            first: program.delay,
            timers: TimerState::all(&program.own_timers),
            phase: 0,
            step: 0,
            phase_loop: 0,
            thread_loop: 0,
            open: None,
            awaiting: false,
            stalled: (0, 0),
            done: idle,
        }
    }

    pub fn release(&mut self, at: Ns, horizon: Ns) {
        if std::mem::take(&mut self.awaiting) {
            if let Some(last) = self.life.jobs.last_mut() {
                last.due = Due::NextWake(at);
            }
        }
        if at >= horizon {
            self.done = true;
            return;
        }
        self.open = Some(Open {
            release: at,
            work: 0,
            phase: self.phase,
        });
    }

    pub fn compute(&mut self, work: Ns) {
        if let Some(open) = &mut self.open {
            if open.work == 0 {
                open.phase = self.phase;
            }
            open.work = open.work.saturating_add(work);
        }
    }

    /// Ends the job, if there was one.
    pub fn close(&mut self, timer: Option<Ns>) {
        self.awaiting = false;
        let Some(open) = self.open.take().filter(|open| open.work > 0) else {
            return;
        };
        self.awaiting = timer.is_none();
        self.life.jobs.push(IdleJob {
            release: open.release,
            work: open.work,
            due: timer.map_or(Due::Never, Due::Timer),
            phase: open.phase,
        });
    }

    pub fn finish(&mut self, end: End) {
        self.close(None);
        self.life.end = end;
        self.done = true;
    }

    pub fn is_spinning(&mut self, now: Ns) -> bool {
        if self.stalled.0 != now {
            self.stalled = (now, 0);
        }
        self.stalled.1 += 1;
        self.stalled.1 > STEPS_AT_ONCE
    }

    /// The end of a phase: again, the next one, from the start, or done.
    pub fn next_phase(&mut self) -> Then {
        self.step = 0;
        self.phase_loop = self.phase_loop.saturating_add(1);
        let (loops, steps) = &self.program.phases[self.phase];
        let over = match loops {
            Loops::Times(times) => self.phase_loop >= *times || steps.is_empty(),
            Loops::Forever => steps.is_empty(),
        };
        if !over {
            return Then::GoOn;
        }
        self.phase_loop = 0;
        self.phase += 1;
        if self.phase == self.program.phases.len() {
            self.phase = 0;
            self.thread_loop = self.thread_loop.saturating_add(1);
            if matches!(self.program.loops, Loops::Times(times) if self.thread_loop >= times) {
                self.finish(End::Finished);
                return Then::Leave;
            }
        }
        Then::GoOn
    }
}
