//! The smallest of N numbers, each of which may change at any time, in O(log N).
//!
//! A tournament tree instead of a binary heap: an entry is its task, so removing
//! or moving one needs no search and leaves no garbage behind. Ties go to the
//! lower index, which is what makes schedules deterministic.

use crate::sim::time::{Ns, NEVER};

/// What a tree may hold: mostly times, and "never" for nothing.
pub trait Value: Copy + Ord {
    const NEVER: Self;
}

impl Value for Ns {
    const NEVER: Ns = NEVER;
}

impl Value for u128 {
    const NEVER: u128 = u128::MAX;
}

#[derive(Clone, Debug)]
pub struct MinTree<V = Ns> {
    leaves: usize,
    tree: Vec<V>,
}

impl<V: Value> MinTree<V> {
    pub fn new(entries: usize) -> Self {
        let leaves = entries.next_power_of_two().max(2);
        Self {
            leaves,
            tree: vec![V::NEVER; 2 * leaves],
        }
    }

    #[inline]
    pub fn min(&self) -> V {
        self.tree[1]
    }

    /// The entry that holds the minimum; meaningless when everything is `NEVER`.
    #[inline]
    pub fn argmin(&self) -> usize {
        let minimum = self.tree[1];
        let mut node = 1;
        while node < self.leaves {
            node *= 2;
            node += usize::from(self.tree[node] != minimum);
        }
        node - self.leaves
    }

    #[inline]
    pub fn get(&self, entry: usize) -> V {
        self.tree[entry + self.leaves]
    }

    #[inline]
    pub fn set(&mut self, entry: usize, value: V) {
        let mut node = entry + self.leaves;
        self.tree[node] = value;
        while node > 1 {
            let winner = self.tree[node].min(self.tree[node ^ 1]);
            node /= 2;
            if self.tree[node] == winner {
                return;
            }
            self.tree[node] = winner;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::rng::Rng;

    #[test]
    fn agrees_with_a_linear_scan() {
        let mut rng = Rng::new(5);
        for n in [1, 2, 3, 5, 8, 13, 64, 100] {
            let mut tree: MinTree = MinTree::new(n);
            let mut plain = vec![NEVER; n];
            for _ in 0..2_000 {
                let (i, v) = (rng.below(n), rng.below(50) as Ns);
                let v = if v == 0 { NEVER } else { v };
                tree.set(i, v);
                plain[i] = v;
                let least = *plain.iter().min().unwrap();
                assert_eq!(tree.min(), least);
                if least != NEVER {
                    let first = plain.iter().position(|&x| x == least).unwrap();
                    assert_eq!(tree.argmin(), first);
                }
            }
        }
    }
}
