//! Jobs in deadline order: the sort is most of what a verdict costs.

use super::super::job::Job;

#[derive(Debug, Clone, Default)]
pub(super) struct DeadlineOrder {
    keys: Vec<u64>,
    indices: Vec<u32>,
}

/// A key holds the deadline, as far as ±2.4 hours from now in nanoseconds, and
/// the index of up to a million jobs: plain integers sort three times as fast
/// as pairs.
const INDEX_BITS: u32 = 20;
const NOW: i64 = 1 << (63 - INDEX_BITS);

impl DeadlineOrder {
    /// Equal deadlines stand in the order given.
    pub fn sort(&mut self, jobs: &[Job], now_ns: i64) {
        self.keys.clear();
        self.indices.clear();
        let mut all_fit = jobs.len() < 1 << INDEX_BITS;
        self.keys
            .extend(jobs.iter().enumerate().map(|(index, job)| {
                let ahead_ns = job.deadline_ns.saturating_sub(now_ns);
                all_fit &= (-NOW..NOW).contains(&ahead_ns);
                (ahead_ns.wrapping_add(NOW) as u64) << INDEX_BITS | index as u64
            }));
        if all_fit {
            self.keys.sort_unstable();
            let index = |&key: &u64| (key & ((1 << INDEX_BITS) - 1)) as u32;
            self.indices.extend(self.keys.iter().map(index));
        } else {
            self.indices.extend(0..jobs.len() as u32);
            self.indices
                .sort_unstable_by_key(|&index| (jobs[index as usize].deadline_ns, index));
        }
    }

    pub fn indices(&self) -> &[u32] {
        &self.indices
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::CpuMask;

    #[test]
    fn near_and_far_deadlines_sort_alike() {
        let job = |deadline_ns| Job {
            deadline_ns,
            remaining_ns: 1,
            spread_ns: 0,
            criticality: 0,
            last_cpu: None,
            allowed: CpuMask::ALL,
        };
        let near = [5, -3, 5, NOW - 1, -NOW, 0].map(job);
        let mut order = DeadlineOrder::default();
        order.sort(&near, 0);
        assert_eq!(order.indices(), [4, 1, 5, 0, 2, 3]);
        let far = [5, -3, 5, i64::MAX, i64::MIN, NOW].map(job);
        order.sort(&far, 0);
        assert_eq!(order.indices(), [4, 1, 0, 2, 5, 3]);
    }
}
