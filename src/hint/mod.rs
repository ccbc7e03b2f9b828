//! Declared deadlines: what a task promises, and who may promise it.
//!
//! A program (or `scx_temponet hint` on its behalf) sends a [`Hint`] over the
//! daemon's socket; the [`server`] checks whose task it is, the [`admission`]
//! bounds check that the machine can carry it, and the [`HintStore`] puts it
//! where the BPF half reads it. docs/guide/hints.md is the user's side of this.

pub mod accounts;
pub mod admission;
pub mod client;
pub mod cpus;
mod door;
pub mod duration;
mod host;
pub mod protocol;
pub mod registry;
mod seqpacket;
pub mod server;
mod service;
mod socket_file;
pub mod store;
pub mod task;
mod throttle;

pub use admission::Limits;
pub use client::HintClient;
pub use server::HintServer;
pub use socket_file::ServerError;
pub use store::{HintStore, MapStore, MemoryStore};

/// Types and limits of `include/temponet_hint.h`, by way of `bpf/intf.h`.
pub(crate) use crate::intf as abi;

use duration::Pretty;
use thiserror::Error;

pub const PERIOD_MIN_NS: u64 = abi::TEMPONET_PERIOD_MIN_NS as u64;
// bindgen gives a constant the smallest type that holds it: this one is u64 already.
pub const PERIOD_MAX_NS: u64 = abi::TEMPONET_PERIOD_MAX_NS;
pub const RUNTIME_MIN_NS: u64 = abi::TEMPONET_RUNTIME_MIN_NS as u64;
pub const CRITICALITY_MAX: u32 = abi::TEMPONET_CRITICALITY_MAX;
/// Of the hint and of the protocol.
pub const VERSION: u32 = abi::TEMPONET_HINT_VERSION;
/// Length of a hint as a map value.
pub const HINT_BYTES: usize = std::mem::size_of::<abi::temponet_hint>();

/// Where the daemon listens unless told otherwise.
pub fn default_socket() -> &'static std::path::Path {
    let bytes = abi::TEMPONET_HINT_SOCKET;
    // The header's literal is ASCII; the trailing byte is its NUL.
    std::path::Path::new(std::str::from_utf8(&bytes[..bytes.len() - 1]).unwrap_or_default())
}

/// Where it listens for root alone.
pub fn root_socket(socket: &std::path::Path) -> std::path::PathBuf {
    let mut path = socket.as_os_str().to_owned();
    path.push(".root");
    path.into()
}

/// A valid declaration; there is no other way to have one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hint {
    runtime_ns: u64,
    deadline_ns: u64,
    period_ns: u64,
    criticality: u32,
}

/// Why numbers are not a declaration.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum HintError {
    #[error("the period is zero: give the time between two jobs, such as 40ms")]
    ZeroPeriod,
    #[error(
        "a period of {} is not between {} and {}",
        Pretty(*.0), Pretty(PERIOD_MIN_NS), Pretty(PERIOD_MAX_NS)
    )]
    PeriodRange(u64),
    #[error("the runtime is zero: give the CPU time of one job, such as 10ms")]
    ZeroRuntime,
    #[error("a runtime of {} is shorter than {}", Pretty(*.0), Pretty(RUNTIME_MIN_NS))]
    RuntimeShort(u64),
    #[error(
        "a runtime of {} does not fit into a deadline of {}",
        Pretty(*.runtime), Pretty(*.deadline)
    )]
    RuntimeOverDeadline { runtime: u64, deadline: u64 },
    #[error(
        "a deadline of {} is after the period of {}: the next job would begin before this one is due",
        Pretty(*.deadline), Pretty(*.period)
    )]
    DeadlineOverPeriod { deadline: u64, period: u64 },
    #[error("criticality {0} is not between 0 (normal) and {CRITICALITY_MAX} (mission critical)")]
    Criticality(u32),
    #[error("hint version {0} is unknown; this is version {VERSION}")]
    Version(u32),
}

impl Hint {
    pub fn new(
        runtime_ns: u64,
        deadline_ns: u64,
        period_ns: u64,
        criticality: u32,
    ) -> Result<Self, HintError> {
        if period_ns == 0 {
            return Err(HintError::ZeroPeriod);
        }
        if runtime_ns == 0 {
            return Err(HintError::ZeroRuntime);
        }
        if !(PERIOD_MIN_NS..=PERIOD_MAX_NS).contains(&period_ns) {
            return Err(HintError::PeriodRange(period_ns));
        }
        if runtime_ns < RUNTIME_MIN_NS {
            return Err(HintError::RuntimeShort(runtime_ns));
        }
        if runtime_ns > deadline_ns {
            return Err(HintError::RuntimeOverDeadline {
                runtime: runtime_ns,
                deadline: deadline_ns,
            });
        }
        if deadline_ns > period_ns {
            return Err(HintError::DeadlineOverPeriod {
                deadline: deadline_ns,
                period: period_ns,
            });
        }
        if criticality > CRITICALITY_MAX {
            return Err(HintError::Criticality(criticality));
        }
        Ok(Self {
            runtime_ns,
            deadline_ns,
            period_ns,
            criticality,
        })
    }

    pub fn runtime_ns(&self) -> u64 {
        self.runtime_ns
    }

    pub fn deadline_ns(&self) -> u64 {
        self.deadline_ns
    }

    pub fn period_ns(&self) -> u64 {
        self.period_ns
    }

    pub fn criticality(&self) -> u32 {
        self.criticality
    }

    /// Share of one CPU while a job is pending: runtime / deadline.
    ///
    /// Admission counts this and not runtime / period. Both are the same when
    /// the deadline is the period; when it is shorter, jobs of little
    /// utilisation can still claim a CPU for themselves until they are done.
    pub fn density(&self) -> f64 {
        self.runtime_ns as f64 / self.deadline_ns as f64
    }

    /// As the map value and on the wire: `struct temponet_hint`.
    pub fn to_bytes(&self) -> [u8; HINT_BYTES] {
        let mut out = [0; HINT_BYTES];
        out[0..8].copy_from_slice(&self.runtime_ns.to_ne_bytes());
        out[8..16].copy_from_slice(&self.deadline_ns.to_ne_bytes());
        out[16..24].copy_from_slice(&self.period_ns.to_ne_bytes());
        out[24..28].copy_from_slice(&self.criticality.to_ne_bytes());
        out[28..32].copy_from_slice(&VERSION.to_ne_bytes());
        out
    }

    pub fn from_bytes(bytes: &[u8; HINT_BYTES]) -> Result<Self, HintError> {
        let u64_at = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at..at + 8]);
            u64::from_ne_bytes(word)
        };
        let u32_at = |at: usize| {
            let mut word = [0; 4];
            word.copy_from_slice(&bytes[at..at + 4]);
            u32::from_ne_bytes(word)
        };
        let version = u32_at(28);
        if version != VERSION {
            return Err(HintError::Version(version));
        }
        Self::new(u64_at(0), u64_at(8), u64_at(16), u32_at(24))
    }
}

impl std::fmt::Display for Hint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "runtime {} deadline {} period {} criticality {}",
            Pretty(self.runtime_ns),
            Pretty(self.deadline_ns),
            Pretty(self.period_ns),
            self.criticality
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn message(runtime: u64, deadline: u64, period: u64, criticality: u32) -> String {
        Hint::new(runtime, deadline, period, criticality)
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn every_mistake_has_its_own_sentence() {
        assert!(message(MS, MS, 0, 0).starts_with("the period is zero"));
        assert!(message(0, MS, MS, 0).starts_with("the runtime is zero"));
        assert_eq!(
            message(20_000, 50_000, 50_000, 0),
            "a period of 50us is not between 100us and 10s"
        );
        assert_eq!(
            message(MS, MS, 20_000 * MS, 0),
            "a period of 20s is not between 100us and 10s"
        );
        assert_eq!(
            message(9_999, MS, MS, 0),
            "a runtime of 9.999us is shorter than 10us"
        );
        assert_eq!(
            message(50 * MS, 40 * MS, 40 * MS, 0),
            "a runtime of 50ms does not fit into a deadline of 40ms"
        );
        assert!(message(MS, 50 * MS, 40 * MS, 0)
            .starts_with("a deadline of 50ms is after the period of 40ms"));
        assert!(message(MS, MS, MS, 4).starts_with("criticality 4 is not between 0"));
    }

    #[test]
    fn a_hint_survives_the_map_value_and_the_wire() {
        let hint = Hint::new(10 * MS, 30 * MS, 40 * MS, 2).unwrap();
        assert_eq!(Hint::from_bytes(&hint.to_bytes()), Ok(hint));
        let mut old = hint.to_bytes();
        old[28] = 9;
        assert_eq!(Hint::from_bytes(&old), Err(HintError::Version(9)));
    }

    #[test]
    fn the_map_value_has_the_layout_of_the_c_struct() {
        use std::mem::offset_of;
        assert_eq!(HINT_BYTES, 32);
        assert_eq!(offset_of!(abi::temponet_hint, deadline_ns), 8);
        assert_eq!(offset_of!(abi::temponet_hint, period_ns), 16);
        assert_eq!(offset_of!(abi::temponet_hint, criticality), 24);
        assert_eq!(offset_of!(abi::temponet_hint, version), 28);
        assert_eq!(
            default_socket().to_str(),
            Some("/run/scx_temponet/hint.sock")
        );
    }
}
