//! What the agent's thread counts and the stats server reads.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Mutex;

/// Powers of two of a microsecond, as the BPF half keeps them.
pub const BUCKETS: usize = crate::intf::temponet_consts_TN_AGE_BUCKETS as usize;

/// Counts by power of two of a microsecond.
#[derive(Default)]
pub struct Histogram {
    counts: [AtomicU64; BUCKETS],
}

impl Histogram {
    pub fn note(&self, ns: i64) {
        let us = (ns.max(0) / 1000) as u64;
        let bucket = us.checked_ilog2().unwrap_or(0) as usize;
        self.counts[bucket.min(BUCKETS - 1)].fetch_add(1, Ordering::Relaxed);
    }

    pub fn read(&self) -> [u64; BUCKETS] {
        std::array::from_fn(|i| self.counts[i].load(Ordering::Relaxed))
    }
}

/// The upper edge, in µs, of the bucket that holds this share of all; 0 for none.
pub fn percentile_us(counts: &[u64], share: f64) -> u64 {
    let total: u64 = counts.iter().sum();
    let mut seen = 0;
    for (bucket, &count) in counts.iter().enumerate() {
        seen += count;
        if count > 0 && seen as f64 >= share * total as f64 {
            return 2 << bucket;
        }
    }
    0
}

/// A job in danger, for those who watch.
#[derive(Debug, Clone, Copy)]
pub struct Endangered {
    pub pid: u32,
    pub comm: [u8; 16],
    pub slack_ns: i64,
    pub remaining_ns: i64,
    pub deadline_in_ns: i64,
    pub criticality: u8,
    pub kept: bool,
}

pub const ENDANGERED: usize = 8;

/// Only ever grow, except where said.
#[derive(Default)]
pub struct Gauges {
    pub records: AtomicU64,
    pub bad_records: AtomicU64,
    pub wakeups: AtomicU64,
    pub decisions: AtomicU64,
    /// Of which the network was asked for so many.
    pub inferences: AtomicU64,
    pub resyncs: AtomicU64,
    /// Tasks that a resynchronisation found missing, wrong or no longer there.
    pub repaired: AtomicU64,
    /// Tasks for which the mirror had no room.
    pub overflow: AtomicU64,
    pub swaps: AtomicU64,
    pub swaps_refused: AtomicU64,
    pub cpu_ns: AtomicU64,
    /// Since warm-up.
    pub allocations: AtomicU64,
    pub page_faults: AtomicU64,
    /// Now: time between decisions, tasks known, verdicts.
    pub interval_ns: AtomicU64,
    pub tasks: AtomicU64,
    pub given_up: AtomicU64,
    pub feasible: AtomicBool,
    pub overloaded: AtomicBool,
    pub burst: AtomicBool,
    pub inference: Histogram,
    /// From the first record of a round to the decision on the board.
    pub latency: Histogram,
    pub endangered: Mutex<Vec<Endangered>>,
    pub identity: Mutex<Identity>,
}

/// Who decides.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Identity {
    pub backend: String,
    pub provider: String,
    pub model: String,
}

impl std::fmt::Display for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({}: {})", self.model, self.backend, self.provider)
    }
}

impl Gauges {
    pub fn add(counter: &AtomicU64, n: u64) {
        counter.fetch_add(n, Ordering::Relaxed);
    }

    pub fn set(counter: &AtomicU64, n: u64) {
        counter.store(n, Ordering::Relaxed);
    }

    pub fn get(counter: &AtomicU64) -> u64 {
        counter.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_the_edge_of_its_bucket() {
        let histogram = Histogram::default();
        for us in [1, 3, 3, 3, 100] {
            histogram.note(us * 1000);
        }
        let counts = histogram.read();
        assert_eq!(percentile_us(&counts, 0.5), 4);
        assert_eq!(percentile_us(&counts, 0.99), 128);
        assert_eq!(percentile_us(&[0; BUCKETS], 0.5), 0);
        histogram.note(i64::MAX);
        histogram.note(-5);
    }
}
