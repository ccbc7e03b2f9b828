//! D-over (Koren and Shasha 1992), the best a clairvoyance-free scheduler can
//! guarantee on one overloaded core: 1/(1+√k)² of all value, k the ratio of the
//! greatest to the smallest value density.
//!
//! Every job is worth one here, as compliance counts them, and a mission-critical
//! one a hundred. EDF runs while nothing is endangered; a waiting job at its
//! latest start time preempts only if it is worth more than (1+√k) times what it
//! pushes aside, else it is abandoned. On several cores every core runs its own
//! copy (`partitioned`).

use super::{Plan, Policy, View};
use crate::sim::engine::ReadyJob;
use crate::sim::task::{Semantics, Task, TaskSet};

type JobId = (u32, u32);

fn value_of(criticality: u8) -> f64 {
    if criticality > 0 {
        100.0
    } else {
        1.0
    }
}

/// A preempted job with the state to return to.
struct Suspended {
    job: JobId,
    value: f64,
    spare: i64,
    pushed_aside: f64,
}

pub struct Dover {
    threshold: f64,
    current: Option<JobId>,
    /// Preempted while nothing was endangered; the last is the most recent.
    recent: Vec<Suspended>,
    /// All other waiting jobs.
    others: Vec<JobId>,
    abandoned: Vec<JobId>,
    /// The job of each task that was seen last.
    known: Vec<u32>,
    /// How long another job may use the core without hurting `current` and `recent`.
    spare: i64,
    /// Value of what has been preempted and may still be lost (the paper's recentval).
    pushed_aside: f64,
}

impl Default for Dover {
    fn default() -> Self {
        Self {
            threshold: 2.0,
            current: None,
            recent: Vec::new(),
            others: Vec::new(),
            abandoned: Vec::new(),
            known: Vec::new(),
            spare: i64::MAX,
            pushed_aside: 0.0,
        }
    }
}

fn id_of(job: &ReadyJob) -> JobId {
    (job.task, job.index)
}

impl Dover {
    fn take(&mut self, job: &ReadyJob, now: u64) {
        self.current = Some(id_of(job));
        self.spare = job.slack(now);
        self.pushed_aside = 0.0;
    }

    /// The current job is gone: return to a preempted one or take another.
    fn next_after_completion(&mut self, view: &View) {
        let other = self
            .others
            .iter()
            .filter_map(|&id| find(view, id))
            .min_by_key(|job| (job.deadline, job.task));
        match (self.recent.pop(), other) {
            (Some(back), Some(other)) => {
                let back_deadline = find(view, back.job).map_or(u64::MAX, |job| job.deadline);
                if other.deadline < back_deadline && back.spare >= other.remaining as i64 {
                    self.others.retain(|&id| id != id_of(other));
                    self.current = Some(id_of(other));
                    self.spare = (back.spare - other.remaining as i64).min(other.slack(view.now));
                    self.pushed_aside = back.pushed_aside + back.value;
                    self.recent.push(back);
                } else {
                    self.resume(back);
                }
            }
            (Some(back), None) => self.resume(back),
            (None, Some(other)) => {
                self.others.retain(|&id| id != id_of(other));
                self.take(other, view.now);
            }
            (None, None) => {}
        }
    }

    fn resume(&mut self, back: Suspended) {
        self.current = Some(back.job);
        self.spare = back.spare;
        self.pushed_aside = back.pushed_aside;
    }

    fn arrive(&mut self, job: &ReadyJob, view: &View) {
        let Some(current) = self.current.and_then(|id| find(view, id)) else {
            self.take(job, view.now);
            return;
        };
        if job.deadline < current.deadline && self.spare >= job.remaining as i64 {
            self.recent.push(Suspended {
                job: id_of(current),
                value: value_of(current.criticality),
                spare: self.spare,
                pushed_aside: self.pushed_aside,
            });
            self.spare = (self.spare - job.remaining as i64).min(job.slack(view.now));
            self.pushed_aside += value_of(current.criticality);
            self.current = Some(id_of(job));
        } else {
            self.others.push(id_of(job));
        }
    }

    /// A waiting job must start now or never.
    fn latest_start(&mut self, job: &ReadyJob, view: &View) {
        self.others.retain(|&id| id != id_of(job));
        let current = self.current.and_then(|id| find(view, id));
        let at_stake = self.pushed_aside + current.map_or(0.0, |job| value_of(job.criticality));
        if value_of(job.criticality) > self.threshold * at_stake {
            self.others.extend(self.current);
            self.others.extend(self.recent.drain(..).map(|s| s.job));
            self.current = Some(id_of(job));
            self.spare = 0;
            self.pushed_aside = 0.0;
        } else {
            self.abandoned.push(id_of(job));
        }
    }
}

fn find<'a>(view: &'a View, id: JobId) -> Option<&'a ReadyJob> {
    view.job_of(id.0).filter(|job| job.index == id.1)
}

impl Policy for Dover {
    fn start(&mut self, set: &TaskSet, _cores: usize) {
        let density = |t: &Task| value_of(t.criticality) / t.told_ns() as f64;
        let greatest = set.tasks.iter().map(density).fold(0.0, f64::max);
        let smallest = set.tasks.iter().map(density).fold(f64::INFINITY, f64::min);
        let k = greatest / smallest;
        *self = Self {
            threshold: 1.0 + k.sqrt(),
            known: vec![u32::MAX; set.tasks.len()],
            ..Self::default()
        };
    }

    fn decide(&mut self, view: &View, plan: &mut Plan) {
        let now = view.now;
        let alive = |id: &JobId| find(view, *id).is_some();
        self.recent.retain(|s| alive(&s.job));
        self.others.retain(alive);
        self.abandoned.retain(alive);
        if self.current.is_some_and(|id| !alive(&id)) {
            self.current = None;
            self.next_after_completion(view);
        }
        let mut arrived: Vec<&ReadyJob> = view
            .touched
            .iter()
            .filter_map(|&task| view.job_of(task))
            .filter(|job| {
                let known = &mut self.known[job.task as usize];
                std::mem::replace(known, job.index) != job.index
            })
            .collect();
        arrived.sort_by_key(|job| (job.deadline, job.task));
        for job in arrived {
            self.arrive(job, view);
        }
        loop {
            let due = self
                .others
                .iter()
                .filter_map(|&id| find(view, id))
                .find(|job| job.latest_start() <= now as i64);
            let Some(job) = due else { break };
            self.latest_start(job, view);
        }
        if self.current.is_none() {
            self.next_after_completion(view);
        }
        match self.current {
            Some((task, _)) => plan.run(task),
            // Idle: where jobs go on, the abandoned may have what is left.
            None if view.options.semantics == Semantics::Continue => {
                let late = self.abandoned.iter().filter_map(|&id| find(view, id));
                if let Some(job) = late.min_by_key(|job| (job.deadline, job.task)) {
                    plan.run(job.task);
                }
            }
            None => {}
        }
        let waiting = self.others.iter().filter_map(|&id| find(view, id));
        if let Some(at) = waiting.map(|job| job.latest_start()).min() {
            plan.wake_at(at.max(now as i64 + 1) as u64);
        }
    }
}
