//! Heavy-tailed deadlines: Pareto with shape 2 from 10 ms up, cut at the 2 s the
//! paper mentions; U in [0.6, 1.0]. Twenty tasks with implicit deadlines.

use super::{split, Shape, Workload};
use crate::sim::rng::Rng;
use crate::sim::task::TaskSet;
use crate::sim::time::{from_ms, SECOND};

pub const PARETO: Workload = Workload {
    name: "pareto",
    about: "twenty tasks with Pareto deadlines (shape 2, 10 ms), U in [0.6, 1.0]",
    cores: 1,
    tasks: 20,
    load: (0.6, 1.0),
    horizon_ns: 4 * SECOND,
    draw,
};

fn draw(shape: &Shape, rng: &mut Rng) -> TaskSet {
    let period = |rng: &mut Rng| from_ms(rng.pareto(2.0, 10.0).min(2_000.0));
    let load = shape.total_load();
    let tasks = split(rng, shape.tasks, load, period, |_, _| {});
    shape.set("pareto", tasks)
}
