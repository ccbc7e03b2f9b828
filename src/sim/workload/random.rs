//! The paper's 200 random five-task configurations, U in [0.6, 1.0] on one core
//! (UUniFast). Periods, which it does not print: log-uniform in 20 to 200 ms, whole milliseconds.

use super::{split, usual_period, Shape, Workload};
use crate::sim::rng::Rng;
use crate::sim::task::TaskSet;
use crate::sim::time::SECOND;

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
    let load = shape.total_load();
    let tasks = split(rng, shape.tasks, load, usual_period, |_, _| {});
    shape.set("random5", tasks)
}
