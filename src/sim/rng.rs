//! Random numbers that stay the same for ever: xoshiro256++ seeded by splitmix64.
//!
//! Written out here because a result must be reproducible from its seed in ten
//! years' time; general purpose crates reserve the right to change their streams.

#[derive(Clone, Debug)]
pub struct Rng {
    s: [u64; 4],
}

fn splitmix(x: &mut u64) -> u64 {
    *x = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *x;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// A seed for the `index`-th child of `seed`: sets, tasks and policies each draw
/// from their own stream, so adding one never shifts the numbers of another.
pub fn child_seed(seed: u64, index: u64) -> u64 {
    let mut x = seed ^ index.wrapping_mul(0xD134_2543_DE82_EF95);
    splitmix(&mut x);
    splitmix(&mut x)
}

impl Rng {
    pub fn new(seed: u64) -> Self {
        let mut x = seed;
        Self {
            s: std::array::from_fn(|_| splitmix(&mut x)),
        }
    }

    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.s;
        let out = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        out
    }

    /// Uniform in [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    pub fn uniform(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    pub fn log_uniform(&mut self, low: f64, high: f64) -> f64 {
        self.uniform(low.ln(), high.ln()).exp()
    }

    /// Uniform in 0..n; n must not be zero.
    pub fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.next_u64()) * n as u128) >> 64) as usize
    }

    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.unit()).ln()
    }

    pub fn pareto(&mut self, alpha: f64, minimum: f64) -> f64 {
        minimum / (1.0 - self.unit()).powf(1.0 / alpha)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_of_a_seed_never_changes() {
        let mut rng = Rng::new(1);
        let first: Vec<u64> = (0..3).map(|_| rng.next_u64()).collect();
        let mut again = Rng::new(1);
        assert_eq!(first, (0..3).map(|_| again.next_u64()).collect::<Vec<_>>());
        assert_eq!(first[0], 14_971_601_782_005_023_387);
    }

    #[test]
    fn pareto_has_the_mean_of_the_textbook() {
        let mut rng = Rng::new(7);
        let n = 200_000;
        let mean = (0..n).map(|_| rng.pareto(3.0, 10.0)).sum::<f64>() / f64::from(n);
        assert!((mean - 15.0).abs() < 0.2, "{mean}");
    }

    #[test]
    fn children_of_one_seed_differ() {
        let seeds: std::collections::HashSet<u64> = (0..1000).map(|i| child_seed(42, i)).collect();
        assert_eq!(seeds.len(), 1000);
    }
}
