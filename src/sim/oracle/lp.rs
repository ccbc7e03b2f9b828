//! An upper bound for several cores: no schedule whatsoever meets more.
//!
//! Time is cut at releases and deadlines. In each piece a job can do at most the
//! piece's length and all jobs together m times that (McNaughton: this is also
//! enough). HiGHS solves the linear program in which jobs may be done in part; its
//! prices λ of the pieces then give the bound by weak duality, in our own
//! arithmetic, so that no tolerance of the solver can make it wrong:
//!
//!   Σ_pieces m · length · λ  +  Σ_jobs max(0, 1 − cheapest way to do the job)
//!
//! holds for any λ ≥ 0. Where late jobs go on, a job is only on time if all before
//! it in its task have been done, on time or not, and their work is charged too.

use highs::{ColProblem, Sense};

use super::Job;
use crate::sim::task::{Semantics, TaskSet};
use crate::sim::time::{Ns, MS};

/// More columns than this take the solver minutes; pieces are merged until they
/// fit, which loosens the bound a little and keeps it valid.
const COLUMNS: usize = 40_000;

struct Pieces {
    cuts: Vec<Ns>,
}

impl Pieces {
    fn of(jobs: &[Job]) -> Pieces {
        let mut all: Vec<Ns> = jobs.iter().flat_map(|j| [j.release, j.deadline]).collect();
        all.sort_unstable();
        all.dedup();
        let mut step = 1;
        loop {
            let last = all.last().copied();
            let mut cuts: Vec<Ns> = all.iter().copied().step_by(step).collect();
            if cuts.last().copied() != last {
                cuts.extend(last);
            }
            let pieces = Pieces { cuts };
            let columns: usize = jobs
                .iter()
                .map(|j| pieces.range(j.release, j.deadline).len())
                .sum();
            if columns <= COLUMNS || pieces.cuts.len() <= 8 {
                return pieces;
            }
            step *= 2;
        }
    }

    fn count(&self) -> usize {
        self.cuts.len().saturating_sub(1)
    }

    /// The pieces that overlap [from, to).
    fn range(&self, from: Ns, to: Ns) -> std::ops::Range<usize> {
        let first = self.cuts.partition_point(|&c| c <= from).saturating_sub(1);
        let end = self.cuts.partition_point(|&c| c < to);
        first..end.min(self.count()).max(first)
    }

    fn overlap(&self, piece: usize, from: Ns, to: Ns) -> f64 {
        let (a, b) = (self.cuts[piece].max(from), self.cuts[piece + 1].min(to));
        ms(b.saturating_sub(a))
    }

    fn length(&self, piece: usize) -> f64 {
        ms(self.cuts[piece + 1] - self.cuts[piece])
    }
}

fn ms(ns: Ns) -> f64 {
    ns as f64 / MS as f64
}

pub fn upper_bound(set: &TaskSet, semantics: Semantics, jobs: &[Job]) -> Option<f64> {
    let doable: Vec<Job> = jobs
        .iter()
        .copied()
        .filter(|j| j.release + j.work <= j.deadline)
        .collect();
    if doable.is_empty() {
        return Some(0.0);
    }
    let pieces = Pieces::of(&doable);
    let prices = prices(&doable, &pieces, set.cores)?;
    let capacity: f64 = (0..pieces.count())
        .map(|k| prices[k] * pieces.length(k) * set.cores as f64)
        .sum();
    let gain: f64 = doable
        .iter()
        .map(|j| (1.0 - cheapest(j, j.deadline, &pieces, &prices)).max(0.0))
        .sum();
    let mut bound = capacity + gain;
    if semantics == Semantics::Continue {
        bound = bound.min(capacity + gain_in_order(jobs, &pieces, &prices));
    }
    // Rounding of the sums; the true maximum is whole.
    Some(
        (bound + 1e-6 * jobs.len() as f64)
            .floor()
            .min(doable.len() as f64),
    )
}

/// What a millisecond of each piece is worth, from the solver.
fn prices(jobs: &[Job], pieces: &Pieces, cores: usize) -> Option<Vec<f64>> {
    let mut problem = ColProblem::default();
    let piece_rows: Vec<_> = (0..pieces.count())
        .map(|k| problem.add_row(..=pieces.length(k) * cores as f64))
        .collect();
    for job in jobs {
        let row = problem.add_row(..=ms(job.work));
        for k in pieces.range(job.release, job.deadline) {
            let most = pieces.overlap(k, job.release, job.deadline);
            problem.add_column(
                1.0 / ms(job.work),
                0.0..=most,
                [(piece_rows[k], 1.0), (row, 1.0)],
            );
        }
    }
    let mut model = problem.optimise(Sense::Maximise);
    model.make_quiet();
    model.set_option("threads", 1);
    // The interior point method without crossover: several times faster, and
    // prices that are a little off loosen the bound a little, no more.
    model.set_option("solver", "ipm");
    model.set_option("run_crossover", "off");
    model.set_option("time_limit", 60.0);
    let solution = model.solve().get_solution();
    let duals = solution.dual_rows().get(..pieces.count())?;
    let prices: Vec<f64> = duals.iter().map(|d| d.abs()).collect();
    prices.iter().all(|p| p.is_finite()).then_some(prices)
}

/// The least that the work of a job costs between its release and `until`.
fn cheapest(job: &Job, until: Ns, pieces: &Pieces, prices: &[f64]) -> f64 {
    let mut offers: Vec<(f64, f64)> = pieces
        .range(job.release, until)
        .map(|k| (prices[k], pieces.overlap(k, job.release, until)))
        .collect();
    offers.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut left = ms(job.work);
    let mut cost = 0.0;
    for (price, room) in offers {
        let part = left.min(room);
        cost += part * price;
        left -= part;
        if left <= 0.0 {
            return cost;
        }
    }
    // It does not fit at all.
    f64::INFINITY
}

/// The same gain where jobs run in order: the last one on time in each task
/// decides how many before it must be done, in time or late.
fn gain_in_order(jobs: &[Job], pieces: &Pieces, prices: &[f64]) -> f64 {
    let tasks = jobs.iter().map(|j| j.task).max().map_or(0, |t| t + 1);
    let mut own: Vec<Vec<&Job>> = vec![Vec::new(); tasks];
    for job in jobs {
        own[job.task].push(job);
    }
    own.iter()
        .map(|own| {
            // On time or late, whichever is worth more; a late job is charged the
            // cheapest time before the last one's deadline.
            let on_time: Vec<f64> = own
                .iter()
                .map(|j| 1.0 - cheapest(j, j.deadline, pieces, prices))
                .collect();
            (0..own.len())
                .filter(|&last| on_time[last] > f64::NEG_INFINITY)
                .map(|last| {
                    let before: f64 = (0..last)
                        .map(|i| {
                            let late = -cheapest(own[i], own[last].deadline, pieces, prices);
                            on_time[i].max(late)
                        })
                        .sum();
                    before + on_time[last]
                })
                .fold(0.0, f64::max)
        })
        .sum()
}
