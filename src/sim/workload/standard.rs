//! The paper's standard configuration: periods of 40, 60 and 100 ms on one core,
//! overloaded. It prints no execution times; the load is split by UUniFast.

use super::{uunifast, work, Shape, Workload};
use crate::sim::rng::Rng;
use crate::sim::task::{Task, TaskSet};
use crate::sim::time::{MS, SECOND};

const PERIODS_MS: [u64; 3] = [40, 60, 100];

pub const STANDARD: Workload = Workload {
    name: "standard",
    about: "periods 40/60/100 ms on one core at a given load",
    cores: 1,
    tasks: 3,
    load: (1.25, 1.25),
    horizon_ns: 6 * SECOND,
    draw,
};

fn draw(shape: &Shape, rng: &mut Rng) -> TaskSet {
    let shares = uunifast(rng, PERIODS_MS.len(), shape.total_load());
    let tasks = PERIODS_MS
        .iter()
        .zip(shares)
        .enumerate()
        .map(|(i, (&period, share))| {
            let period = period * MS;
            Task::periodic(format!("T{}", i + 1), period, work(period, share))
        })
        .collect();
    shape.set("standard", tasks)
}
