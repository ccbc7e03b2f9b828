//! Deadline order, of jobs and of releases: sorting is most of what a verdict costs.
//! From one verdict to the next little changes, so the last order is tried first.

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
        if self.indices.len() != these.len() {
            self.indices.clear();
            self.indices.extend(0..these.len() as u32);
        }
        self.keys.clear();
        let mut all_fit = these.len() < 1 << INDEX_BITS;
        self.keys.extend(self.indices.iter().map(|&index| {
            let ahead_ns = deadline_ns(&these[index as usize]).saturating_sub(now_ns);
            all_fit &= (-NOW..NOW).contains(&ahead_ns);
            (ahead_ns.wrapping_add(NOW) as u64) << INDEX_BITS | u64::from(index)
        }));
        if all_fit {
            sort_nearly_sorted(&mut self.keys);
            let index = |key: &u64| (key & ((1 << INDEX_BITS) - 1)) as u32;
            for (place, key) in self.indices.iter_mut().zip(&self.keys) {
                *place = index(key);
            }
        } else {
            self.indices
                .sort_unstable_by_key(|&index| (deadline_ns(&these[index as usize]), index));
        }
    }

    pub fn indices(&self) -> &[u32] {
        &self.indices
    }
}

/// By insertion while few have to move, and by the usual means otherwise.
fn sort_nearly_sorted(keys: &mut [u64]) {
    let mut moves = 4 * keys.len();
    for at in 1..keys.len() {
        let key = keys[at];
        let mut place = at;
        while place > 0 && keys[place - 1] > key {
            keys[place] = keys[place - 1];
            place -= 1;
        }
        keys[place] = key;
        match moves.checked_sub(at - place) {
            Some(left) => moves = left,
            None => return keys.sort_unstable(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_last_order_does_not_matter(
            before in prop::collection::vec(-50i64..50, 0..60),
            changes in prop::collection::vec((0usize..60, -50i64..50), 0..20),
        ) {
            let mut order = DeadlineOrder::default();
            order.sort(&before, |&at| at, 0);
            let mut after = before;
            let len = after.len();
            for (at, to) in changes.into_iter().filter(|&(at, _)| at < len) {
                after[at] = to;
            }
            order.sort(&after, |&at| at, 0);
            let mut expected: Vec<u32> = (0..len as u32).collect();
            expected.sort_by_key(|&at| after[at as usize]);
            prop_assert_eq!(order.indices(), expected);
        }
    }

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
