//! The paper's metrics for one run of one set.

use serde::Serialize;

use super::engine::Tally;
use super::stats::percentile;
use super::time::{Ns, MS};

/// Shares are in 0..=1, times in milliseconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Metrics {
    /// Jobs judged: those whose deadline lies inside the horizon.
    pub jobs: u64,
    pub met: u64,
    pub compliance: f64,
    /// Compliance of the mission-critical jobs; absent when there are none.
    pub pitmd: Option<f64>,
    /// No mission failure: every mission-critical job met (every job, when none is marked).
    pub success: bool,
    /// Mean response of the jobs that completed (ART).
    pub response_ms: f64,
    pub lateness_p50_ms: f64,
    pub lateness_p95_ms: f64,
    pub lateness_p99_ms: f64,
    pub lateness_max_ms: f64,
    pub migrations: u64,
    pub preemptions: u64,
    /// Share of the cores' time spent on jobs.
    pub utilisation: f64,
}

impl Metrics {
    pub fn of(tally: &Tally, cores: usize, horizon: Ns) -> Metrics {
        let share = |met: u64, of: u64| if of == 0 { 1.0 } else { met as f64 / of as f64 };
        let mut lateness: Vec<f64> = tally
            .lateness
            .iter()
            .map(|&l| l as f64 / MS as f64)
            .collect();
        lateness.sort_by(f64::total_cmp);
        let late = |p| {
            if lateness.is_empty() {
                0.0
            } else {
                percentile(&lateness, p)
            }
        };
        let critical = tally.critical_judged > 0;
        Metrics {
            jobs: tally.judged,
            met: tally.met,
            compliance: share(tally.met, tally.judged),
            pitmd: critical.then(|| share(tally.critical_met, tally.critical_judged)),
            success: if critical {
                tally.critical_met == tally.critical_judged
            } else {
                tally.met == tally.judged
            },
            response_ms: tally.response_sum as f64 / tally.completed.max(1) as f64 / MS as f64,
            lateness_p50_ms: late(0.5),
            lateness_p95_ms: late(0.95),
            lateness_p99_ms: late(0.99),
            lateness_max_ms: late(1.0),
            migrations: tally.migrations,
            preemptions: tally.preemptions,
            utilisation: tally.busy as f64 / (cores as f64 * horizon as f64),
        }
    }
}
