//! Prioritised replay (Schaul et al., 2016): what surprised the network most is
//! drawn most often, and counts less the more often it is drawn.

/// A tree of sums over the priorities: drawing and changing one take as many
/// steps as the tree is high.
#[derive(Clone, Debug)]
pub struct Priorities {
    /// The root is 1; the leaves begin at `leaves`.
    tree: Vec<f64>,
    leaves: usize,
    len: usize,
}

impl Priorities {
    pub fn new(values: impl ExactSizeIterator<Item = f32>) -> Priorities {
        let len = values.len();
        let leaves = len.next_power_of_two().max(1);
        let mut tree = vec![0.0; 2 * leaves];
        for (leaf, value) in tree[leaves..].iter_mut().zip(values) {
            *leaf = f64::from(value);
        }
        for node in (1..leaves).rev() {
            tree[node] = tree[2 * node] + tree[2 * node + 1];
        }
        Priorities { tree, leaves, len }
    }

    pub fn get(&self, item: usize) -> f32 {
        self.tree[self.leaves + item] as f32
    }

    pub fn set(&mut self, item: usize, value: f32) {
        let mut node = self.leaves + item;
        self.tree[node] = f64::from(value);
        while node > 1 {
            node /= 2;
            self.tree[node] = self.tree[2 * node] + self.tree[2 * node + 1];
        }
    }

    /// The item at this share, from 0 to 1, of the sum of all priorities.
    pub fn draw(&self, share: f64) -> usize {
        let mut left = share * self.tree[1];
        let mut node = 1;
        while node < self.leaves {
            node *= 2;
            // Rounding must not lead beyond the last that has any.
            if left >= self.tree[node] && self.tree[node + 1] > 0.0 {
                left -= self.tree[node];
                node += 1;
            }
        }
        (node - self.leaves).min(self.len.saturating_sub(1))
    }

    /// What an item counts so that the mean is that of even drawing: all of it at
    /// `beta` = 1, none at 0.
    pub fn correction(&self, item: usize, beta: f64) -> f64 {
        let odds = self.tree[self.leaves + item] / self.tree[1];
        (self.len as f64 * odds).powf(-beta)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::rng::Rng;

    #[test]
    fn items_are_drawn_by_their_priority_and_corrected_for_it() {
        let values = [1.0f32, 0.0, 3.0, 6.0, 2.0];
        let mut priorities = Priorities::new([0.5f32; 5].into_iter());
        for (item, value) in values.into_iter().enumerate() {
            priorities.set(item, value);
            assert_eq!(priorities.get(item), value);
        }
        let mut rng = Rng::new(7);
        let (mut drawn, mut mean, draws) = ([0u32; 5], 0.0, 60_000);
        for _ in 0..draws {
            let item = priorities.draw(rng.unit());
            drawn[item] += 1;
            mean += priorities.correction(item, 1.0) * item as f64 / f64::from(draws);
        }
        for (drawn, value) in drawn.into_iter().zip(values) {
            let expected = f64::from(value) / 12.0;
            let found = f64::from(drawn) / f64::from(draws);
            assert!((found - expected).abs() < 0.01, "{found} {expected}");
        }
        // Even over those that can be drawn at all: (0 + 2 + 3 + 4) / 5.
        assert!((mean - 1.8).abs() < 0.05, "{mean}");
        assert_eq!(priorities.correction(3, 0.0), 1.0);
        assert_eq!(priorities.draw(1.0), 4);
        assert_eq!(priorities.draw(0.0), 0);
    }
}
