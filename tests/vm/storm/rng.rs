//! The storm's own random numbers. A story must be the same on every machine and in
//! every year, so it depends on no library's generator: this is splitmix64 (Steele,
//! Lea and Flood, 2014), and `splitmix64_is_what_was_published` pins it down.

pub struct Rng(u64);

impl Rng {
    /// A stream of its own for each part of a story, so that a change to how one part is
    /// drawn leaves the others as they were. The name is hashed by FNV-1a.
    pub fn stream(seed: u64, name: &str) -> Rng {
        let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        Rng(seed ^ hash)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// One of 0 to n - 1.
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(n)) >> 64) as u64
    }

    /// Both ends included.
    pub fn range(&mut self, from: u64, to: u64) -> u64 {
        from + self.below(to - from + 1)
    }

    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }

    /// One of the values, each as likely as its weight says; not all weights are 0.
    pub fn weighted<T: Copy>(&mut self, of: &[(T, u64)]) -> T {
        let mut at = self.below(of.iter().map(|(_, weight)| weight).sum());
        for &(value, weight) in of {
            if at < weight {
                return value;
            }
            at -= weight;
        }
        unreachable!("the point lies below the sum of the weights")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splitmix64_is_what_was_published() {
        let mut rng = Rng(1_234_567);
        assert_eq!(rng.next(), 6_457_827_717_110_365_317);
        assert_eq!(rng.next(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn every_value_of_a_range_comes_and_no_other() {
        let mut rng = Rng::stream(1, "range");
        let mut seen = [0; 4];
        for _ in 0..1000 {
            seen[rng.range(3, 6) as usize - 3] += 1;
        }
        assert!(seen.iter().all(|&n| n > 150), "{seen:?}");
    }

    #[test]
    fn a_weight_of_nothing_never_comes() {
        let mut rng = Rng::stream(2, "weighted");
        assert!((0..1000).all(|_| rng.weighted(&[('a', 1), ('b', 0), ('c', 3)]) != 'b'));
    }
}
