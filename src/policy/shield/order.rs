//! Deadline order, of jobs and of releases: sorting is most of what a verdict costs.

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
    pub fn sort<T>(&mut self, these: &[T], deadline_ns: impl Fn(&T) -> i64, now_ns: i64) {
        self.keys.clear();
        self.indices.clear();
        let mut all_fit = these.len() < 1 << INDEX_BITS;
        self.keys
            .extend(these.iter().enumerate().map(|(index, this)| {
                let ahead_ns = deadline_ns(this).saturating_sub(now_ns);
                all_fit &= (-NOW..NOW).contains(&ahead_ns);
                (ahead_ns.wrapping_add(NOW) as u64) << INDEX_BITS | index as u64
            }));
        if all_fit {
            self.keys.sort_unstable();
            let index = |&key: &u64| (key & ((1 << INDEX_BITS) - 1)) as u32;
            self.indices.extend(self.keys.iter().map(index));
        } else {
            self.indices.extend(0..these.len() as u32);
            self.indices
                .sort_unstable_by_key(|&index| (deadline_ns(&these[index as usize]), index));
        }
    }

    pub fn indices(&self) -> &[u32] {
        &self.indices
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_and_far_deadlines_sort_alike() {
        let near = [5, -3, 5, NOW - 1, -NOW, 0];
        let mut order = DeadlineOrder::default();
        order.sort(&near, |&at| at, 0);
        assert_eq!(order.indices(), [4, 1, 5, 0, 2, 3]);
        let far = [5, -3, 5, i64::MAX, i64::MIN, NOW];
        order.sort(&far, |&at| at, 0);
        assert_eq!(order.indices(), [4, 1, 0, 2, 5, 3]);
    }
}
