//! Low load, then a burst, then sustained high load: 200 tasks on eight cores.
//! The load asked for is that of the last third; the first runs at half of it,
//! the burst at 1.4 times.

use super::{scatter, split, usual_period, Shape, Workload};
use crate::sim::rng::Rng;
use crate::sim::task::{Mode, TaskSet};
use crate::sim::time::SECOND;

pub const MODE_SWITCH: Workload = Workload {
    name: "mode-switch",
    about: "200 tasks on eight cores: low load, burst, sustained high load",
    cores: 8,
    tasks: 200,
    load: (1.05, 1.05),
    horizon_ns: 3 * SECOND,
    draw,
};

fn draw(shape: &Shape, rng: &mut Rng) -> TaskSet {
    let tasks = split(rng, shape.tasks, shape.total_load(), usual_period, scatter);
    let third = shape.horizon_ns / 3;
    let mode = |start_ns, rate| Mode { start_ns, rate };
    TaskSet {
        modes: vec![mode(0, 0.5), mode(third, 1.4), mode(2 * third, 1.0)],
        ..shape.set("mode-switch", tasks)
    }
}
