//! The paper's head-to-head with SRPT: execution times uniform in 10 to 50 ms,
//! U in [0.6, 1.0]. Five tasks; the periods follow from work and share.

use super::{uunifast, Shape, Workload};
use crate::sim::rng::Rng;
use crate::sim::task::{Task, TaskSet};
use crate::sim::time::{from_ms, MS, SECOND};

pub const SRPT: Workload = Workload {
    name: "srpt",
    about: "SRPT head-to-head: execution times 10 to 50 ms, U in [0.6, 1.0]",
    cores: 1,
    tasks: 5,
    load: (0.6, 1.0),
    horizon_ns: 20 * SECOND,
    draw,
};

/// A share that would stretch a period beyond this gets it anyway, with less work.
const LONGEST_MS: f64 = 2_000.0;

fn draw(shape: &Shape, rng: &mut Rng) -> TaskSet {
    let shares = uunifast(rng, shape.tasks, shape.total_load());
    let tasks = shares
        .into_iter()
        .enumerate()
        .map(|(i, share)| {
            let wcet_ms = rng.uniform(10.0, 50.0).min(share * LONGEST_MS);
            let period = from_ms(wcet_ms / share).max(MS);
            Task::periodic(format!("T{}", i + 1), period, from_ms(wcet_ms).max(1))
        })
        .collect();
    shape.set("srpt", tasks)
}
