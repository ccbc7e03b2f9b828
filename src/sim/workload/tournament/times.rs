//! How long the jobs of a task run, so that they ask for a given load on average and
//! no job needs more than a period.

use super::Times;
use crate::sim::rng::Rng;
use crate::sim::task::Execution;

/// The worst case as a share of the period, and how jobs vary below it.
pub fn vary(times: Times, load: f64, rng: &mut Rng) -> (f64, Execution) {
    let kinds = [
        Times::Constant,
        Times::Uniform,
        Times::OneInK,
        Times::HeavyTail,
        Times::Drifting,
    ];
    // Always drawn, so that a fixed kind leaves the other numbers of a seed alone.
    let drawn = kinds[rng.below(kinds.len())];
    let kind = if times == Times::Mixed { drawn } else { times };
    let (spread, shape) = (rng.unit(), rounded(rng.unit()));
    let at = |low: f64, high: f64| rounded(low + (high - low) * spread);
    let (low, of): (f64, Box<dyn Fn(f64) -> Execution>) = match kind {
        Times::Constant | Times::Mixed => return (load.min(1.0), Execution::Wcet),
        Times::Uniform => (
            at(0.2, 0.8),
            Box::new(|low| Execution::Uniform { low, high: 1.0 }),
        ),
        Times::OneInK => (
            at(0.2, 0.6),
            Box::new(move |share| Execution::OneIn {
                jobs: 3 + (shape * 8.0) as u32,
                share,
            }),
        ),
        Times::HeavyTail => (
            at(0.1, 0.4),
            Box::new(move |low| Execution::HeavyTail {
                low,
                alpha: rounded(1.2 + 1.3 * shape),
                cap: 1.0,
            }),
        ),
        Times::Drifting => (
            at(0.3, 0.8),
            Box::new(move |share| match shape < 0.5 {
                true => Execution::Drift {
                    from: share,
                    to: 1.0,
                },
                false => Execution::Drift {
                    from: 1.0,
                    to: share,
                },
            }),
        ),
    };
    let mean = of(low).mean_share();
    if load <= mean {
        return (load / mean, of(low));
    }
    // The worst case would be longer than the period: the jobs vary less.
    let (mut low, mut high) = (low, 1.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        match of(middle).mean_share() < load {
            true => low = middle,
            false => high = middle,
        }
    }
    let execution = of(rounded(high));
    ((load / execution.mean_share()).min(1.0), execution)
}

/// So few digits come back from every file as they were.
fn rounded(share: f64) -> f64 {
    (share * 1e6).round() / 1e6
}
