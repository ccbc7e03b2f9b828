//! What a file says and the simulator does not do, place by place: what can be read
//! off it, and what only shows when its threads run.

use std::collections::HashSet;

use super::idle_machine::{Due, End, Life};
use super::note::{About, Notes, Place};
use super::workload::{Action, Phase, Setting, Thread, Workload};
use crate::sim::time::{to_ms, Ns};

/// Notes everything in the workload that the simulated machine does differently.
pub fn note_all(workload: &Workload, cores: usize, notes: &mut Notes) {
    let names: HashSet<&str> = workload.threads.iter().map(|t| t.name.as_str()).collect();
    let everywhere = every_thread_may_use_every_core(workload, cores);
    for thread in &workload.threads {
        let mut remarks = Remarks {
            notes,
            thread,
            phase: None,
        };
        remarks.setting(&thread.setting, everywhere);
        for phase in &thread.phases {
            remarks.phase = phase.name.as_deref();
            remarks.setting(&phase.setting, everywhere);
            remarks.events(phase, &names);
        }
    }
}

/// Affinity is kept where it leaves no choice: all threads on the same CPUs, as
/// many as there are cores.
fn every_thread_may_use_every_core(workload: &Workload, cores: usize) -> bool {
    let sets: HashSet<Option<Vec<u32>>> = settings(workload)
        .map(|setting| setting.cpus.as_ref().map(|cpus| distinct(&cpus.value)))
        .collect();
    sets.len() == 1 && sets.iter().flatten().all(|cpus| cpus.len() == cores)
}

/// Of every thread, and of those phases that say where to run.
fn settings(workload: &Workload) -> impl Iterator<Item = &Setting> {
    workload.threads.iter().flat_map(|thread| {
        let phases = thread.phases.iter().map(|phase| &phase.setting);
        std::iter::once(&thread.setting).chain(phases.filter(|setting| setting.cpus.is_some()))
    })
}

fn distinct(cpus: &[u32]) -> Vec<u32> {
    let mut cpus = cpus.to_vec();
    cpus.sort_unstable();
    cpus.dedup();
    cpus
}

/// The CPUs the workload names, in order, when every thread is told where to run.
pub fn named_cpus(workload: &Workload) -> Option<Vec<u32>> {
    let mut all: Vec<u32> = Vec::new();
    for setting in settings(workload) {
        all.extend(&setting.cpus.as_ref()?.value);
    }
    let all = distinct(&all);
    (!all.is_empty()).then_some(all)
}

/// All CPUs that some thread is told to run on.
pub fn bound_to(workload: &Workload) -> impl Iterator<Item = u32> + '_ {
    let cpus = settings(workload).filter_map(|setting| setting.cpus.as_ref());
    cpus.flat_map(|cpus| cpus.value.iter().copied())
}

struct Remarks<'a> {
    notes: &'a mut Notes,
    thread: &'a Thread,
    phase: Option<&'a str>,
}

impl Remarks<'_> {
    fn note(&mut self, at: Place, what: impl Into<String>) {
        let about = About {
            thread: Some(&self.thread.name),
            phase: self.phase,
        };
        self.notes.add(Some(at), about, what);
    }

    fn setting(&mut self, setting: &Setting, everywhere: bool) {
        if let Some(cpus) = setting.cpus.as_ref().filter(|_| !everywhere) {
            let what = "\"cpus\" is not modelled; the thread may run on every core";
            self.note(cpus.at, what);
        }
        if let Some(policy) = &setting.policy {
            if policy.value.is_above_sched_ext() {
                let what = format!(
                    "{} threads never reach a sched_ext scheduler; here this one is scheduled \
                     like the others",
                    policy.value.name()
                );
                self.note(policy.at, what);
            }
        }
        let changes = self.phase.is_some();
        let mut ignored = |at: Option<Place>, what: &str| {
            if let Some(at) = at {
                self.note(at, what);
            }
        };
        let priority = setting.priority.as_ref().filter(|p| p.value != 0);
        let is_nice = setting
            .policy
            .as_ref()
            .is_none_or(|policy| !policy.value.is_above_sched_ext());
        ignored(
            priority.map(|p| p.at),
            match (changes, is_nice) {
                (true, _) => "a priority that changes on the way is not modelled",
                (false, true) => "eevdf is the only policy here that looks at nice levels",
                (false, false) => "no policy here looks at priorities",
            },
        );
        ignored(
            setting.taskgroup.as_ref().map(|group| group.at),
            "task groups are not modelled",
        );
        let clamp = setting.util_min.as_ref().or(setting.util_max.as_ref());
        ignored(
            clamp.filter(|clamp| clamp.value >= 0).map(|clamp| clamp.at),
            "clamps of utilisation are not modelled; every core has one speed",
        );
        ignored(
            setting.memory_nodes.as_ref().map(|nodes| nodes.at),
            "memory nodes are not modelled",
        );
    }

    fn events(&mut self, phase: &Phase, names: &HashSet<&str>) {
        for event in &phase.events {
            let what = match &event.action {
                Action::Run { .. } | Action::Sleep { us: 0 } => continue,
                Action::Runtime { .. } => {
                    "\"runtime\" is wall-clock time in rt-app; here it is that much CPU time"
                }
                Action::Sleep { .. } => {
                    "a sleep counts from when the job ended; here wake-ups stay where an idle \
                     machine would have them"
                }
                Action::Timer(timer) if timer.period_us == 0 => {
                    "a timer without a period does nothing"
                }
                Action::Timer(timer) if !timer.absolute => {
                    "a relative timer starts anew after a miss; here its grid stays, as with \
                     \"mode\": \"absolute\""
                }
                Action::Timer(_) => continue,
                Action::Lock(_)
                | Action::Unlock(_)
                | Action::Wait { .. }
                | Action::Signal(_)
                | Action::Broadcast(_)
                | Action::Sync { .. }
                | Action::Barrier(_)
                | Action::SemPost(_)
                | Action::SemWait(_)
                | Action::Suspend(_)
                | Action::Resume(_) => {
                    "threads wait for each other as on an idle machine; one that is late delays nobody"
                }
                Action::Yield => "\"yield\" does nothing here",
                Action::Fork(name) if !names.contains(name.as_str()) => {
                    "there is no thread of this name to fork"
                }
                Action::Fork(_) => "a fork starts when it would on an idle machine",
                Action::Mem { .. } | Action::IoRun { .. } | Action::MemRun(_) => {
                    "how long this takes only a machine can tell; here it takes no time"
                }
            };
            self.note(event.at, what);
        }
    }
}

/// What only shows when the thread runs.
pub fn note_life(life: &Life, thread: &Thread, horizon: Ns, notes: &mut Notes) {
    let about = About {
        thread: Some(&thread.name),
        phase: None,
    };
    match life.end {
        End::Stuck { at, since } if since < horizon / 2 => {
            let what = format!(
                "waits here from {:.3} ms on, and nobody wakes it in the simulated time",
                to_ms(since)
            );
            notes.add(Some(at), about, what);
        }
        End::Spinning(at) => {
            let what = "loops here without using time; what it would use is not simulated";
            notes.add(Some(at), about, what);
        }
        End::Hog => {
            let what = "never blocks: one job without a deadline that takes what CPU time it gets";
            notes.add(Some(thread.at), about, what);
            return;
        }
        End::Stuck { .. } | End::Going | End::Finished => {}
    }
    if life.jobs.is_empty() {
        notes.add(Some(thread.at), about, "has no work of its own to simulate");
    }
    let mut undue = 0;
    for job in &life.jobs {
        if thread.declared_deadline_us(job.phase).is_some() {
            continue;
        }
        match job.due {
            Due::Timer(_) => {}
            Due::NextWake(_) => {
                let phase = &thread.phases[job.phase];
                let about = About {
                    phase: phase.name.as_deref(),
                    ..about
                };
                let what = "no timer ends this work, so it is due when the thread wakes up next";
                notes.add(Some(phase.at), about, what);
            }
            Due::Never => undue += 1,
        }
    }
    // The last job may be cut off by the horizon; that is no news.
    if undue > 0 && matches!(life.end, End::Finished) {
        let what =
            "its last job ends with the thread: nothing says when it is due, so it is not judged";
        notes.add(Some(thread.at), about, what);
    }
}

/// On an idle machine everybody had a CPU. Where that was more than there are now,
/// threads without timers would fall back in rt-app, and only fall behind here.
pub fn note_crowding(lives: &[Life], horizon: Ns, cores: usize, notes: &mut Notes) {
    let blocking = lives.iter().filter(|life| life.end != End::Hog);
    let mut jobs = blocking.flat_map(|life| &life.jobs);
    let work: u128 = jobs.clone().map(|job| u128::from(job.work)).sum();
    let cpus = work as f64 / horizon as f64;
    if cpus > cores as f64 && jobs.any(|job| matches!(job.due, Due::NextWake(_))) {
        let what = format!(
            "an idle machine would use {cpus:.2} CPUs, and there are {cores}: in rt-app threads \
             without timers would slow down, here they fall behind (--cores gives more)"
        );
        notes.add(None, About::default(), what);
    }
}
