//! What was seen at the last looks, as lines of bars.

use std::collections::VecDeque;

use crate::agent::stats::Metrics;

use super::text::per_second;

/// As many as the widest terminal has columns for.
const MOST: usize = 512;

/// One look; rates are per second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sample {
    pub met: Option<f64>,
    pub missed: Option<f64>,
    /// Share of all CPUs.
    pub load: Option<f64>,
    pub decisions: Option<f64>,
}

impl Sample {
    pub fn of(metrics: &Metrics) -> Self {
        let jobs = |of: fn(&crate::agent::stats::ClassMetrics) -> u64| {
            let sum = metrics
                .classes
                .values()
                .fold(0u64, |sum, class| sum.saturating_add(of(class)));
            per_second(sum, metrics.interval_s)
        };
        Self {
            met: jobs(|class| class.met),
            missed: jobs(|class| class.missed),
            load: load(metrics),
            decisions: (!metrics.agent.backend.is_empty())
                .then_some(metrics.agent.decisions_per_s)
                .filter(|rate| rate.is_finite()),
        }
    }
}

/// Share of all CPUs that ran tasks of the scheduler.
pub fn load(metrics: &Metrics) -> Option<f64> {
    let cpus = metrics.cpus.len();
    let busy: f64 = metrics.cpus.values().map(|cpu| cpu.busy).sum();
    (cpus > 0).then(|| busy / cpus as f64)
}

#[derive(Debug, Default)]
pub struct History {
    samples: VecDeque<Sample>,
}

impl History {
    pub fn add(&mut self, sample: Sample) {
        if self.samples.len() == MOST {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);
    }

    /// The last `width` values, the newest last.
    pub fn last(&self, width: usize, of: impl Fn(&Sample) -> Option<f64>) -> Vec<Option<f64>> {
        let skipped = self.samples.len().saturating_sub(width);
        self.samples.iter().skip(skipped).map(of).collect()
    }
}

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// A bar per value, `most` being a full one. What is above zero is higher than zero, however
/// small; what is unknown is a gap.
pub fn spark(values: &[Option<f64>], most: f64) -> String {
    let bar = |value: &Option<f64>| match value {
        None => ' ',
        Some(value) if *value <= 0.0 || most <= 0.0 => BARS[0],
        Some(value) => {
            let eighths = (value / most * 8.0).ceil() as usize;
            BARS[eighths.clamp(2, 8) - 1]
        }
    };
    values.iter().map(bar).collect()
}
