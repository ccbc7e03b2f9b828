//! Simulated time: integer nanoseconds, so that two runs never differ by a rounding.

pub type Ns = u64;

pub const US: Ns = 1_000;
pub const MS: Ns = 1_000_000;
pub const SECOND: Ns = 1_000_000_000;
/// "Never": later than anything that can happen.
pub const NEVER: Ns = Ns::MAX;

pub fn from_ms(ms: f64) -> Ns {
    (ms * MS as f64).round() as Ns
}

pub fn to_ms(ns: Ns) -> f64 {
    ns as f64 / MS as f64
}
