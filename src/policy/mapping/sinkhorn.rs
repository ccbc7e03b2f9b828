//! Sinkhorn matching: the relaxed assignment of jobs to CPUs, rounded.
//!
//! Rows are jobs (each runs at most once), columns are CPUs (each runs one job
//! or idles). With K_ij = exp(v_ij/τ), v the score less the migration price:
//!
//! ```text
//! u_i = min(1, 1 / Σ_j K_ij w_j)        a row is cut back only when it exceeds 1
//! w_j = 1 / (K_idle + Σ_i K_ij u_i)     a column always adds up to 1
//! ```
//!
//! The price factors out of the exponential, so there is one `exp` per job and
//! not per pair; in the probability domain this takes a thirtieth of the time
//! of the log domain. τ is a share of the spread of the scores, which keeps
//! every K within f32 whatever the scorer's scale.

use super::super::cpumask::MAX_CPUS;
use super::{greedy, Assignment, CpuId, Problem};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SinkhornConfig {
    /// τ as a share of the spread of the scores.
    pub temperature: f32,
    pub rounds: u32,
    /// Converged when no w_j changes by more than this share in a round.
    pub tolerance: f32,
}

impl Default for SinkhornConfig {
    fn default() -> SinkhornConfig {
        SinkhornConfig {
            temperature: 0.05,
            rounds: 20,
            tolerance: 0.02,
        }
    }
}

/// Rows go in blocks: sums of a block stay in registers, and one pass over the
/// kernel per round does for rows and columns.
const BLOCK: usize = 8;

/// Entries per CPU that the rounding looks at; greedy fills what they leave.
const SHORT_LIST: usize = 16;

#[derive(Debug, Clone, Default)]
pub(super) struct Scratch {
    rows: Vec<u32>,
    cpus: Vec<CpuId>,
    /// Place of each CPU in `cpus`.
    column_of: Vec<u16>,
    /// Block by block, in each one CPU after the other; padded with zeros.
    kernel: Vec<[f32; BLOCK]>,
    idle: f32,
    u: Vec<[f32; BLOCK]>,
    w: Vec<f32>,
    column_sums: Vec<[f32; BLOCK]>,
    short_list: Vec<(f32, u32, u32)>,
    greedy: Assignment,
}

/// Fills the free CPUs; false if the answer is greedy's.
pub(super) fn fill(
    problem: &Problem<'_>,
    price: f32,
    config: &SinkhornConfig,
    scratch: &mut Scratch,
    greedy_scratch: &mut greedy::Scratch,
    assignment: &mut Assignment,
) -> bool {
    scratch.greedy.copy_from(assignment);
    greedy::fill(problem, price, greedy_scratch, &mut scratch.greedy);

    let matched =
        prepare(problem, price, config, scratch, assignment) && balance(config, scratch) && {
            round(problem, price, scratch, assignment);
            greedy::fill(problem, price, greedy_scratch, assignment);
            total(problem, price, assignment) >= total(problem, price, &scratch.greedy)
        };
    if !matched {
        assignment.copy_from(&scratch.greedy);
    }
    matched
}

/// The kernel; false if there is nothing to weigh.
fn prepare(
    problem: &Problem<'_>,
    price: f32,
    config: &SinkhornConfig,
    scratch: &mut Scratch,
    assignment: &Assignment,
) -> bool {
    let known = problem.jobs.len();
    scratch.rows.clear();
    scratch.rows.extend(
        problem
            .candidates
            .iter()
            .filter(|&&job| (job as usize) < known && !assignment.is_placed(job)),
    );
    scratch.cpus.clear();
    scratch.cpus.extend(assignment.free.iter());
    let scores = scratch.rows.iter().map(|&job| problem.score(job));
    let finite = scores.filter(|score| score.is_finite());
    let (lowest, highest) = finite.fold((f32::MAX, f32::MIN), |(low, high), score| {
        (low.min(score), high.max(score))
    });
    let spread = highest - lowest;
    let tau = config.temperature * spread;
    if scratch.cpus.is_empty() || !(tau.is_normal() && tau > 0.0) {
        return false;
    }

    // −∞ and NaN stand a little below the lowest, +∞ a little above the highest.
    let exponent = |score: f32| {
        let clamped = score.clamp(lowest - 0.1 * spread, highest + 0.1 * spread);
        ((clamped - highest) / tau).clamp(-60.0, 20.0)
    };
    // A job prefers its old CPU, if only a little, even where moving is free.
    let moved = (-(price.max(0.01 * spread)) / tau).max(-20.0).exp();
    let columns = scratch.cpus.len();
    scratch.column_of.resize(MAX_CPUS, 0);
    for (column, &cpu) in scratch.cpus.iter().enumerate() {
        scratch.column_of[cpu as usize] = column as u16;
    }
    let blocks = scratch.rows.len().div_ceil(BLOCK);
    scratch.kernel.clear();
    scratch.kernel.resize(blocks * columns, [0.0; BLOCK]);
    for (row, &job) in scratch.rows.iter().enumerate() {
        let first = row / BLOCK * columns;
        let cells = &mut scratch.kernel[first..first + columns];
        let worth = exponent(problem.score(job)).exp();
        let permitted = &problem.permitted[job as usize];
        let last_cpu = problem.jobs[job as usize].last_cpu;
        let usual = if last_cpu.is_some() {
            worth * moved
        } else {
            worth
        };
        if assignment.free.is_subset(permitted) {
            cells.iter_mut().for_each(|cell| cell[row % BLOCK] = usual);
        } else {
            for (cell, &cpu) in cells.iter_mut().zip(&scratch.cpus) {
                cell[row % BLOCK] = if permitted.contains(cpu) { usual } else { 0.0 };
            }
        }
        if let Some(home) = last_cpu {
            if assignment.free.contains(home) && permitted.contains(home) {
                cells[scratch.column_of[home as usize] as usize][row % BLOCK] = worth;
            }
        }
    }
    scratch.idle = match problem.floor() {
        floor if floor == f32::NEG_INFINITY => 0.0,
        floor => exponent(floor).exp(),
    };
    scratch.u.clear();
    scratch.u.resize(blocks, [1.0; BLOCK]);
    scratch.w.clear();
    scratch.w.resize(columns, 0.0);
    true
}

/// Rounds until w stands still; false if it does not.
fn balance(config: &SinkhornConfig, scratch: &mut Scratch) -> bool {
    let Scratch {
        kernel,
        idle,
        u,
        w,
        column_sums,
        ..
    } = scratch;
    let columns = w.len();
    for round in 0..=config.rounds {
        column_sums.clear();
        column_sums.resize(columns, [0.0; BLOCK]);
        for (block, u) in kernel.chunks_exact(columns).zip(u.iter_mut()) {
            // In round 0 w is 0, so every row sum is 0 and every u is 1.
            let mut row_sums = [0.0f32; BLOCK];
            for (cells, &w) in block.iter().zip(w.iter()) {
                for (sum, cell) in row_sums.iter_mut().zip(cells) {
                    *sum += cell * w;
                }
            }
            *u = row_sums.map(|sum| 1.0 / sum.max(1.0));
            for (sums, cells) in column_sums.iter_mut().zip(block) {
                for ((sum, cell), u) in sums.iter_mut().zip(cells).zip(u.iter()) {
                    *sum += cell * u;
                }
            }
        }
        let mut change: f32 = 0.0;
        for (w, sums) in w.iter_mut().zip(column_sums.iter()) {
            let sum = *idle + sums.iter().sum::<f32>();
            // A CPU nobody may use has nothing to share out.
            let new = if sum > 0.0 { 1.0 / sum } else { 0.0 };
            change = change.max((new - *w).abs() / new.max(f32::MIN_POSITIVE));
            *w = new;
        }
        if !change.is_finite() {
            return false;
        }
        if round > 0 && change <= config.tolerance {
            return true;
        }
    }
    false
}

/// The largest shares first, from a short list per CPU.
fn round(problem: &Problem<'_>, price: f32, scratch: &mut Scratch, assignment: &mut Assignment) {
    let Scratch {
        rows,
        cpus,
        kernel,
        u,
        w,
        short_list,
        ..
    } = scratch;
    short_list.clear();
    let per_cpu = SHORT_LIST.min(cpus.len());
    for (at, &w) in w.iter().enumerate() {
        let mut best = [(0.0f32, 0u32); SHORT_LIST];
        let mut least = 0.0;
        for (block, (cells, u)) in kernel.chunks_exact(cpus.len()).zip(u.iter()).enumerate() {
            let shares: [f32; BLOCK] = std::array::from_fn(|lane| cells[at][lane] * u[lane] * w);
            if shares.iter().fold(0.0f32, |most, &share| most.max(share)) <= least {
                continue;
            }
            for (lane, &share) in shares.iter().enumerate() {
                if share > least {
                    let after = best[..per_cpu].partition_point(|&(better, _)| better >= share);
                    best[after..per_cpu].rotate_right(1);
                    best[after] = (share, (block * BLOCK + lane) as u32);
                    least = best[per_cpu - 1].0;
                }
            }
        }
        let found = best[..per_cpu].iter().filter(|&&(share, _)| share > 0.0);
        short_list.extend(found.map(|&(share, row)| (share, row, at as u32)));
    }
    short_list.sort_unstable_by(|a, b| {
        (b.0.total_cmp(&a.0))
            .then(a.1.cmp(&b.1))
            .then(a.2.cmp(&b.2))
    });
    for &(_, row, at) in short_list.iter() {
        let (job, cpu) = (rows[row as usize], cpus[at as usize]);
        let net = problem.net(job, problem.is_migration(job, cpu) as usize, price);
        if assignment.free.contains(cpu) && !assignment.is_placed(job) && net >= problem.floor() {
            assignment.place(job, cpu);
        }
    }
}

/// What an assignment is worth: CPUs in use where they must be, then score
/// less price, then fewer migrations.
fn total(problem: &Problem<'_>, price: f32, assignment: &Assignment) -> (usize, f64, i64) {
    const HUGE: f64 = 1e30;
    let mut worth = 0.0;
    let mut migrations = 0;
    for (cpu, job) in assignment.iter() {
        worth += f64::from(problem.score(job as u32)).clamp(-HUGE, HUGE);
        migrations += i64::from(problem.is_migration(job as u32, cpu));
    }
    if migrations > 0 {
        worth -= migrations as f64 * f64::from(price);
    }
    let idle = match problem.floor() {
        floor if floor == f32::NEG_INFINITY => 0.0,
        floor => f64::from(floor).clamp(-HUGE, HUGE),
    };
    worth += assignment.free.count() as f64 * idle;
    let used = if problem.may_idle {
        0
    } else {
        assignment.running
    };
    (used, worth, -migrations)
}
