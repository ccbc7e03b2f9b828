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
    /// Judged jobs that were aborted, or not done when the run ended. With any of these
    /// the response time below is a lower bound.
    pub unfinished: u64,
    /// Mean response (ART) of the jobs that completed, and of those still waiting at the
    /// end with the time they had waited.
    pub response_ms: f64,
    pub lateness_p50_ms: f64,
    pub lateness_p95_ms: f64,
    pub lateness_p99_ms: f64,
    pub lateness_max_ms: f64,
    /// Absent where it is not known which task ran when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub migrations: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preemptions: Option<u64>,
    /// Share of the cores' time spent on jobs; absent where it is not known which task ran when.
    pub utilisation: Option<f64>,
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
            unfinished: tally.unfinished,
            response_ms: tally.response_sum as f64
                / (tally.completed + tally.waiting).max(1) as f64
                / MS as f64,
            lateness_p50_ms: late(0.5),
            lateness_p95_ms: late(0.95),
            lateness_p99_ms: late(0.99),
            lateness_max_ms: late(1.0),
            migrations: Some(tally.migrations),
            preemptions: Some(tally.preemptions),
            utilisation: Some(tally.busy as f64 / (cores as f64 * horizon as f64)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::engine::{Fate, JobRecord};

    fn job(index: u32, finish: Option<Ns>) -> JobRecord {
        let release = Ns::from(index) * 10 * MS;
        JobRecord {
            task: 0,
            index,
            release,
            deadline: release + 10 * MS,
            finish,
            fate: match finish {
                Some(_) => Fate::OnTime,
                None => Fate::Unfinished,
            },
        }
    }

    #[test]
    fn a_job_that_never_finishes_counts_in_the_response_time_with_what_it_waited() {
        let horizon = 100 * MS;
        let mut tally = Tally::default();
        tally.add(job(0, Some(2 * MS)), false, horizon);
        tally.add(job(1, None), false, horizon);
        let metrics = Metrics::of(&tally, 1, horizon);
        assert_eq!(metrics.unfinished, 1);
        assert_eq!(metrics.response_ms, (2.0 + 90.0) / 2.0);
    }

    #[test]
    fn who_starves_a_task_does_not_respond_better_than_who_serves_it_late() {
        let horizon = 100 * MS;
        let (mut starves, mut serves) = (Tally::default(), Tally::default());
        for tally in [&mut starves, &mut serves] {
            tally.add(job(0, Some(2 * MS)), false, horizon);
        }
        starves.add(job(1, None), false, horizon);
        serves.add(job(1, Some(60 * MS)), false, horizon);
        let art = |tally| Metrics::of(tally, 1, horizon).response_ms;
        assert!(art(&starves) > art(&serves));
    }
}
