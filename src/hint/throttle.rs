//! Token buckets: how often a user may make the daemon work.

use std::collections::HashMap;
use std::time::{Duration, Instant};

#[derive(Debug)]
pub struct Bucket {
    rate: f64,
    burst: f64,
    tokens: f64,
    filled_at: Option<Instant>,
}

impl Bucket {
    pub fn new(rate: f64, burst: f64) -> Self {
        Self {
            rate,
            burst,
            tokens: burst,
            filled_at: None,
        }
    }

    /// Takes a token, or says how long until there is one.
    pub fn take(&mut self, now: Instant) -> Result<(), Duration> {
        self.fill(now);
        if self.tokens >= 1.0 {
            self.tokens -= 1.0;
            Ok(())
        } else {
            Err(Duration::from_secs_f64((1.0 - self.tokens) / self.rate))
        }
    }

    fn fill(&mut self, now: Instant) {
        if let Some(at) = self.filled_at.replace(now) {
            let passed = now.saturating_duration_since(at).as_secs_f64();
            self.tokens = (self.tokens + passed * self.rate).min(self.burst);
        }
    }
}

/// A bucket per user, forgotten when full: a full one is what a newcomer gets.
#[derive(Debug)]
pub struct Buckets {
    rate: f64,
    burst: f64,
    buckets: HashMap<u32, Bucket>,
}

impl Buckets {
    pub fn new(rate: f64, burst: f64) -> Buckets {
        Buckets {
            rate,
            burst,
            buckets: HashMap::new(),
        }
    }

    pub fn take(&mut self, uid: u32, now: Instant) -> Result<(), Duration> {
        self.buckets
            .entry(uid)
            .or_insert_with(|| Bucket::new(self.rate, self.burst))
            .take(now)
    }

    /// Cheap unless many users have been here.
    pub fn forget_idle(&mut self, now: Instant) {
        if self.buckets.len() > 64 {
            self.buckets.retain(|_, bucket| {
                bucket.fill(now);
                bucket.tokens < bucket.burst
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_slowed_to_the_rate() {
        let start = Instant::now();
        let mut bucket = Bucket::new(100.0, 10.0);
        for _ in 0..10 {
            bucket.take(start).unwrap();
        }
        let wait = bucket.take(start).unwrap_err();
        assert_eq!(wait, Duration::from_millis(10));
        bucket.take(start + wait).unwrap();
        bucket.take(start + wait).unwrap_err();
    }

    #[test]
    fn users_do_not_share_and_idle_ones_are_forgotten() {
        let start = Instant::now();
        let mut buckets = Buckets::new(500.0, 512.0);
        while buckets.take(1, start).is_ok() {}
        for uid in 2..200 {
            buckets.take(uid, start).unwrap();
        }
        buckets.forget_idle(start + Duration::from_millis(100));
        assert_eq!(buckets.buckets.len(), 1, "only the flooder is remembered");
    }
}
