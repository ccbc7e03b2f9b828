//! The paper's 200 random five-task configurations, U in [0.6, 1.0] on one core
//! (UUniFast). Periods, which it does not print: log-uniform in 20 to 200 ms, whole milliseconds.

use super::{uunifast, work, Shape, Workload};
use crate::sim::rng::Rng;
use crate::sim::task::{Task, TaskSet};
use crate::sim::time::{MS, SECOND};

pub const RANDOM5: Workload = Workload {
    name: "random5",
    about: "five random tasks on one core, U in [0.6, 1.0]",
    cores: 1,
    tasks: 5,
    load: (0.6, 1.0),
    horizon_ns: 4 * SECOND,
    draw,
};

fn draw(shape: &Shape, rng: &mut Rng) -> TaskSet {
    let shares = uunifast(rng, shape.tasks, shape.total_load());
    let tasks = shares
        .into_iter()
        .enumerate()
        .map(|(i, share)| {
            let period = rng.log_uniform(20.0, 200.0).round() as u64 * MS;
            Task::periodic(format!("T{}", i + 1), period, work(period, share))
        })
        .collect();
    shape.set("random5", tasks)
}
