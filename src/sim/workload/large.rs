//! Many tasks on eight cores, and few heavy ones.
//!
//! `large` is the paper's 100 to 600 tasks. It prints no load; success rates of
//! 98 % and 88 % speak of one around capacity. A tenth of the tasks is mission-critical.

use super::{scatter, split, usual_period, Shape, Workload};
use crate::sim::rng::Rng;
use crate::sim::task::TaskSet;
use crate::sim::time::SECOND;

pub const LARGE: Workload = Workload {
    name: "large",
    about: "100 to 600 tasks on eight cores (--tasks), load 0.90 to 1.15 a core",
    cores: 8,
    tasks: 600,
    load: (0.90, 1.15),
    horizon_ns: 2 * SECOND,
    draw,
};

pub const HEAVY: Workload = Workload {
    name: "heavy",
    about: "twelve heavy tasks on eight cores, load 0.90 to 1.25 a core",
    cores: 8,
    tasks: 12,
    load: (0.90, 1.25),
    horizon_ns: 4 * SECOND,
    draw,
};

fn draw(shape: &Shape, rng: &mut Rng) -> TaskSet {
    let tasks = split(rng, shape.tasks, shape.total_load(), usual_period, scatter);
    shape.set("large", tasks)
}
