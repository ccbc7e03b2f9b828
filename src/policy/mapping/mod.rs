//! Scores -> one job per CPU.
//!
//! Two mappings share one promise: whatever the scores (NaN and infinities
//! included), no job runs twice, every job runs where it may, and no CPU stays
//! free while a candidate that may use it waits, unless idle scored higher.

mod greedy;
mod sinkhorn;

pub use sinkhorn::SinkhornConfig;

use super::cpumask::{CpuId, CpuMask};
use super::job::Job;
use serde::{Deserialize, Serialize};

/// Uniprocessor: the job with the highest score, `None` for idle. `scores[0]`
/// is idle, which wins only if it is strictly better; NaN is below everything.
pub fn argmax(scores: &[f32]) -> Option<usize> {
    let idle = scores.first().map_or(0, |&score| sortable(score));
    let best = |best: Option<usize>, job: usize| match best {
        Some(chosen) if sortable(scores[1 + chosen]) >= sortable(scores[1 + job]) => best,
        _ => Some(job),
    };
    (0..scores.len().saturating_sub(1))
        .fold(None, best)
        .filter(|&job| sortable(scores[1 + job]) >= idle)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MappingKind {
    /// Highest score first, each to the CPU it was on if that is free.
    #[default]
    Greedy,
    /// Relaxed matching; greedy where it does not converge or does no better.
    Sinkhorn,
}

#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MappingConfig {
    pub kind: MappingKind,
    /// λ: what a job must gain, in units of score, to be worth moving.
    pub migration_price: f32,
    pub sinkhorn: SinkhornConfig,
}

/// What is to be mapped.
#[derive(Debug, Clone, Copy)]
pub struct Problem<'a> {
    pub jobs: &'a [Job],
    /// `scores[0]` is idle, `scores[1 + i]` job i.
    pub scores: &'a [f32],
    /// The jobs that may run, best first among equals.
    pub candidates: &'a [u32],
    /// Where each job may run, by job.
    pub permitted: &'a [CpuMask],
    /// May a CPU stay idle because idle scored higher than anybody left?
    pub may_idle: bool,
}

impl Problem<'_> {
    fn score(&self, job: u32) -> f32 {
        let score = self.scores.get(1 + job as usize).copied();
        score.filter(|s| !s.is_nan()).unwrap_or(f32::NEG_INFINITY)
    }

    /// The score below which a CPU rather stays idle.
    fn floor(&self) -> f32 {
        let idle = self.scores.first().copied().filter(|s| !s.is_nan());
        idle.filter(|_| self.may_idle).unwrap_or(f32::NEG_INFINITY)
    }

    fn is_migration(&self, job: u32, cpu: CpuId) -> bool {
        self.jobs[job as usize]
            .last_cpu
            .is_some_and(|last| last != cpu)
    }

    fn net(&self, job: u32, migrations: usize, price: f32) -> f32 {
        match migrations {
            0 => self.score(job),
            n => self.score(job) - n as f32 * price,
        }
    }
}

/// Which job runs on which CPU.
#[derive(Debug, Clone, Default)]
pub struct Assignment {
    job_on: Vec<u32>,
    cpu_of: Vec<CpuId>,
    free: CpuMask,
    running: usize,
}

const NO_JOB: u32 = u32::MAX;
const NO_CPU: CpuId = CpuId::MAX;

impl Assignment {
    /// Everything idle: `cpus` to fill with some of `jobs` jobs.
    pub fn reset(&mut self, jobs: usize, cpus: &CpuMask) {
        self.job_on.clear();
        self.job_on
            .resize(cpus.highest().map_or(0, |cpu| cpu as usize + 1), NO_JOB);
        self.cpu_of.clear();
        self.cpu_of.resize(jobs, NO_CPU);
        self.free = *cpus;
        self.running = 0;
    }

    /// The job on a CPU, `None` for idle.
    pub fn job_on(&self, cpu: CpuId) -> Option<usize> {
        let job = *self.job_on.get(cpu as usize)?;
        (job != NO_JOB).then_some(job as usize)
    }

    pub fn cpu_of(&self, job: usize) -> Option<CpuId> {
        let cpu = *self.cpu_of.get(job)?;
        (cpu != NO_CPU).then_some(cpu)
    }

    /// CPUs that idle.
    pub fn free(&self) -> &CpuMask {
        &self.free
    }

    pub fn running(&self) -> usize {
        self.running
    }

    /// (CPU, job) pairs, by CPU.
    pub fn iter(&self) -> impl Iterator<Item = (CpuId, usize)> + '_ {
        let jobs = self.job_on.iter().enumerate();
        jobs.filter(|&(_, &job)| job != NO_JOB)
            .map(|(cpu, &job)| (cpu as CpuId, job as usize))
    }

    fn is_placed(&self, job: u32) -> bool {
        self.cpu_of[job as usize] != NO_CPU
    }

    /// Puts a job on a CPU, taking it from where it was placed before.
    fn place(&mut self, job: u32, cpu: CpuId) {
        let before = std::mem::replace(&mut self.cpu_of[job as usize], cpu);
        if before == NO_CPU {
            self.running += 1;
        } else if self.job_on[before as usize] == job {
            self.job_on[before as usize] = NO_JOB;
            self.free.insert(before);
        }
        self.job_on[cpu as usize] = job;
        self.free.remove(cpu);
    }

    fn copy_from(&mut self, other: &Assignment) {
        self.job_on.clone_from(&other.job_on);
        self.cpu_of.clone_from(&other.cpu_of);
        self.free = other.free;
        self.running = other.running;
    }
}

/// A mapping with its working memory.
#[derive(Debug, Clone, Default)]
pub struct Mapper {
    config: MappingConfig,
    greedy: greedy::Scratch,
    sinkhorn: sinkhorn::Scratch,
}

impl Mapper {
    pub fn new(config: MappingConfig) -> Mapper {
        Mapper {
            config,
            ..Mapper::default()
        }
    }

    /// Fills free CPUs of `assignment` with candidates. Jobs already placed
    /// stay, though perhaps on another CPU. Says whether Sinkhorn was asked
    /// for and greedy had to answer.
    pub fn map(&mut self, problem: &Problem<'_>, assignment: &mut Assignment) -> bool {
        if self.config.kind == MappingKind::Greedy {
            self.fill(problem, assignment);
            return false;
        }
        !sinkhorn::fill(
            problem,
            self.price(),
            &self.config.sinkhorn,
            &mut self.sinkhorn,
            &mut self.greedy,
            assignment,
        )
    }

    /// The same by greedy, whatever the configuration: for leftovers.
    pub fn fill(&mut self, problem: &Problem<'_>, assignment: &mut Assignment) {
        greedy::fill(problem, self.price(), &mut self.greedy, assignment);
    }

    fn price(&self) -> f32 {
        match self.config.migration_price {
            price if price > 0.0 => price,
            _ => 0.0,
        }
    }
}

/// Integers in the order of the floats, NaN below −∞.
fn sortable(score: f32) -> u32 {
    if score.is_nan() {
        return 0;
    }
    // −0 and +0 are the same score.
    let bits = (score + 0.0).to_bits();
    if bits >> 31 == 1 {
        !bits
    } else {
        bits | 1 << 31
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn argmax_takes_the_best_and_idles_only_when_idle_is_better() {
        let nan = f32::NAN;
        assert_eq!(argmax(&[0.0, 1.0, 3.0, 2.0]), Some(1));
        assert_eq!(argmax(&[5.0, 1.0, 3.0]), None);
        assert_eq!(argmax(&[3.0, 1.0, 3.0]), Some(1));
        assert_eq!(argmax(&[nan, nan, nan]), Some(0));
        assert_eq!(argmax(&[0.0, nan]), None);
        assert_eq!(argmax(&[nan, f32::NEG_INFINITY]), Some(0));
        assert_eq!(argmax(&[0.0]), None);
        assert_eq!(argmax(&[]), None);
    }

    #[test]
    fn sortable_keeps_the_order_of_floats() {
        let ascending = [
            f32::NAN,
            f32::NEG_INFINITY,
            -1e30,
            -1.0,
            -1e-40,
            0.0,
            1e-40,
            1.0,
            f32::INFINITY,
        ];
        for pair in ascending.windows(2) {
            assert!(sortable(pair[0]) < sortable(pair[1]), "{pair:?}");
        }
        assert_eq!(sortable(-0.0), sortable(0.0));
    }
}
