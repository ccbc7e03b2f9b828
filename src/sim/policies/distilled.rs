//! The paper's distilled rule by itself, for long queues.
//!
//! It is [`Decided::bare`](super::Decided::bare) with the same rule, and
//! `tests/sim_decided.rs` holds it to the same schedules. But the score of a job
//! that waits only changes when its slack falls into the next bin, so only those
//! that come to an edge are scored again, where the kernel's code scores all.

use super::decided::paper_slack_bins;
use super::waiting::{ordered, Watch};
use super::{Best, Plan, Policy, View};
use crate::policy::mapping::{Mapper, Problem};
use crate::policy::{
    Assignment, BurstMonitor, CpuId, CpuMask, DistilledRule, Job, LongSlackReserve, Quantiser,
};
use crate::sim::engine::{CoreId, MinTree, ReadyJob, TaskId};
use crate::sim::task::TaskSet;
use crate::sim::time::NEVER;

/// The highest score first, then the deadline, then the place in the view: the
/// order in which the policy maps jobs to CPUs.
type Rank = u128;

/// Scores are positive, and of positive floats the bits are in order.
fn rank_of(score: f32, job: &ReadyJob, view: &View) -> Rank {
    let place = view.places[job.task as usize];
    Rank::from(!score.to_bits()) << 96 | Rank::from(job.deadline) << 32 | Rank::from(place)
}

fn score_of(rank: Rank) -> f32 {
    f32::from_bits(!((rank >> 96) as u32))
}

pub struct Distilled {
    rule: DistilledRule,
    slack: Quantiser,
    reserve: LongSlackReserve,
    burst: BurstMonitor,
    mapper: Mapper,
    watch: Watch,
    /// By task, of the waiting ones: their ranks, those in the highest slack bin
    /// apart, their scores, and the latest moment in their bin.
    ranks: MinTree<Rank>,
    reserved: MinTree<Rank>,
    scores: MinTree,
    edges: MinTree,
    /// By task, of the waiting ones: are they in the lowest bin? And how many are.
    is_below: Vec<bool>,
    below: usize,
    /// Beside `View::running`.
    running: Vec<Scored>,
    best: Best<Rank>,
    chosen: Vec<Job>,
    candidates: Vec<u32>,
    permitted: Vec<CpuMask>,
    assignment: Assignment,
}

impl Default for Distilled {
    fn default() -> Self {
        Self {
            rule: DistilledRule::default(),
            slack: paper_slack_bins(),
            reserve: LongSlackReserve::default(),
            burst: BurstMonitor::default(),
            mapper: Mapper::default(),
            watch: Watch::default(),
            ranks: MinTree::new(0),
            reserved: MinTree::new(0),
            scores: MinTree::new(0),
            edges: MinTree::new(0),
            is_below: Vec::new(),
            below: 0,
            running: Vec::new(),
            best: Best::default(),
            chosen: Vec::new(),
            candidates: Vec::new(),
            permitted: Vec::new(),
            assignment: Assignment::default(),
        }
    }
}

/// A job as the rule sees it.
#[derive(Clone, Copy)]
struct Scored {
    level: usize,
    score: f32,
}

impl Distilled {
    /// Decisions are made for the moment they take effect.
    fn score(&self, job: &ReadyJob, view: &View) -> Scored {
        let latency = view.options.decision_latency_ns;
        let done_by_then = if job.is_running() { latency } else { 0 };
        let remaining = job.remaining.saturating_sub(done_by_then).max(1) as i64;
        let now = (view.now + latency) as i64;
        let level = self.slack.bin(job.deadline as i64 - now - remaining);
        Scored {
            level,
            score: self.rule.priority(level, remaining),
        }
    }

    fn top_level(&self) -> usize {
        self.slack.levels() - 1
    }

    fn follow(&mut self, view: &View) {
        let mut watch = std::mem::take(&mut self.watch);
        watch.each(view, |task, job| self.place(task, job, view));
        self.watch = watch;
        let now = (view.now + view.options.decision_latency_ns) as i64;
        while self.edges.min() < ordered(now) {
            let task = self.edges.argmin() as TaskId;
            self.place(task, view.job_of(task), view);
        }
    }

    fn place(&mut self, task: TaskId, job: Option<&ReadyJob>, view: &View) {
        let (mut rank, mut reserved) = (Rank::MAX, Rank::MAX);
        let (mut score, mut edge, mut is_below) = (NEVER, NEVER, false);
        if let Some(job) = job.filter(|job| !job.is_running()) {
            let scored = self.score(job, view);
            score = scored.score.to_bits().into();
            is_below = scored.level == 0;
            if scored.level == self.top_level() {
                reserved = rank_of(scored.score, job, view);
            } else {
                rank = rank_of(scored.score, job, view);
            }
            if let Some(lower) = scored.level.checked_sub(1) {
                edge = ordered(job.latest_start() - self.slack.edges_ns()[lower]);
            }
        }
        let task = task as usize;
        self.ranks.set(task, rank);
        self.reserved.set(task, reserved);
        self.scores.set(task, score);
        self.edges.set(task, edge);
        let was_below = std::mem::replace(&mut self.is_below[task], is_below);
        self.below = self.below + usize::from(is_below) - usize::from(was_below);
    }

    /// What jobs in the highest slack bin get on top; nothing outside bursts.
    fn bonus(&mut self, view: &View) -> f32 {
        let mut below = self.below;
        let mut highest = score_of(self.ranks.min().min(self.reserved.min()));
        let mut lowest = match self.scores.min() {
            NEVER => f32::MAX,
            bits => f32::from_bits(bits as u32),
        };
        for scored in &self.running {
            below += usize::from(scored.level == 0);
            highest = highest.max(scored.score);
            lowest = lowest.min(scored.score);
        }
        if self.burst.observe(below as f32 / view.jobs.len() as f32) {
            self.reserve.share_of_spread * (highest - lowest)
        } else {
            0.0
        }
    }

    fn choose(&mut self, view: &View) {
        let mut running = std::mem::take(&mut self.running);
        running.clear();
        running.extend(view.running_jobs().map(|job| self.score(job, view)));
        self.running = running;
        let bonus = self.bonus(view);
        let mut best = std::mem::take(&mut self.best);
        best.clear();
        for (job, scored) in view.running_jobs().zip(&self.running) {
            let is_reserved = scored.level == self.top_level();
            let score = scored.score + if is_reserved { bonus } else { 0.0 };
            let rank = rank_of(score, job, view);
            best.offer(view.cores, (rank, false, job.task));
        }
        best.offer_waiting(view, &mut self.ranks, &mut self.watch, |rank, task| {
            (rank, false, task)
        });
        while self.reserved.min() != Rank::MAX {
            let score = score_of(self.reserved.min()) + bonus;
            // Sums that round to the same leave it to the deadline, so all of them count.
            let worst = best.worst(view.cores).map(|worst| score_of(worst.0));
            if worst.is_some_and(|worst| worst > score) {
                break;
            }
            let task = self.reserved.argmin();
            self.reserved.set(task, Rank::MAX);
            self.watch.take(task as TaskId);
            if let Some(job) = view.job_of(task as TaskId) {
                let rank = rank_of(score, job, view);
                best.offer(view.cores, (rank, false, job.task));
            }
        }
        self.best = best;
    }
}

impl Policy for Distilled {
    fn start(&mut self, set: &TaskSet, _cores: usize) {
        let tasks = set.tasks.len();
        *self = Self {
            ranks: MinTree::new(tasks),
            reserved: MinTree::new(tasks),
            scores: MinTree::new(tasks),
            edges: MinTree::new(tasks),
            is_below: vec![false; tasks],
            ..Self::default()
        };
    }

    fn decide(&mut self, view: &View, plan: &mut Plan) {
        self.follow(view);
        // As in the kernel, the rule is not asked where all can run.
        if view.jobs.len() <= view.cores {
            view.jobs.iter().for_each(|job| plan.run(job.task));
            return;
        }
        self.choose(view);
        let cpus = CpuMask::first(view.cores);
        self.chosen.clear();
        for job in self.best.tasks().filter_map(|task| view.job_of(task)) {
            self.chosen.push(Job {
                deadline_ns: job.deadline as i64,
                remaining_ns: job.remaining as i64,
                spread_ns: 0,
                criticality: job.criticality,
                last_cpu: CpuId::try_from(job.last_core).ok(),
                allowed: cpus,
            });
        }
        // The best m in their order are all that the mapping would look at.
        self.candidates.clear();
        self.candidates.extend(0..self.chosen.len() as u32);
        self.permitted.clear();
        self.permitted.resize(self.chosen.len(), cpus);
        let in_order = Problem {
            jobs: &self.chosen,
            scores: &[],
            candidates: &self.candidates,
            permitted: &self.permitted,
            may_idle: false,
        };
        self.assignment.reset(self.chosen.len(), &cpus);
        self.mapper.map(&in_order, &mut self.assignment);
        for (cpu, chosen) in self.assignment.iter() {
            if let Some(task) = self.best.tasks().nth(chosen) {
                plan.run_on(task, CoreId::from(cpu));
            }
        }
    }
}
