//! A task set in a file: refused, or simulated without a panic and with every
//! released job accounted for. The first byte chooses the format and the policy.

use scx_temponet::sim::engine::{Options, Record, Sim};
use scx_temponet::sim::policies::POLICIES;
use scx_temponet::sim::task::{Arrival, Semantics, TaskSet};
use std::path::Path;

/// More than a file that anybody waits for in a fuzzer.
const MOST_JOBS: f64 = 5_000.0;

fn is_small(set: &TaskSet) -> bool {
    let rate = set.modes.iter().map(|mode| mode.rate).fold(1.0, f64::max);
    let jobs: f64 = set
        .tasks
        .iter()
        .map(|task| match &task.arrival {
            Arrival::Trace(jobs) => jobs.len() as f64,
            Arrival::Bursty { burst, .. } => {
                *burst as f64 * (1.0 + set.horizon_ns as f64 / task.period_ns as f64 * rate)
            }
            _ => 1.0 + set.horizon_ns as f64 / task.period_ns as f64 * rate,
        })
        .sum();
    jobs <= MOST_JOBS && set.cores <= 64
}

pub fn check(bytes: &[u8]) {
    let Some((&choice, text)) = bytes.split_first() else {
        return;
    };
    let Ok(text) = std::str::from_utf8(text) else {
        return;
    };
    let name = if choice & 1 == 0 { "s.toml" } else { "s.json" };
    let set = match TaskSet::parse(Path::new(name), text) {
        Ok(set) => set,
        Err(error) => {
            assert!(error.to_string().starts_with(name), "{error}");
            return;
        }
    };
    if !is_small(&set) {
        return;
    }
    let semantics = if choice & 2 == 0 {
        Semantics::Abort
    } else {
        Semantics::Continue
    };
    let entry = &POLICIES[usize::from(choice >> 2) % POLICIES.len()];
    let mut sim = Sim::new(&set, set.cores, Options::new(semantics), Record::default());
    sim.run((entry.make)().as_mut());
    sim.finish();
}
