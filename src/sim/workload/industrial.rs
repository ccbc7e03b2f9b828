//! Mixed-criticality workflows: pipelines of stages on eight cores.
//!
//! The paper's traces are not published. Here a workflow of three to six stages
//! is released every period, its stages one after the other at fixed offsets
//! (time-triggered, as such systems are built), each with an equal part of the
//! period as its deadline: D < P. A quarter of the workflows is mission-critical,
//! a third arrives sporadically, and jobs take between half and all of their C.

use super::{uunifast, work, Shape, Workload};
use crate::sim::rng::Rng;
use crate::sim::task::{Arrival, Execution, Task, TaskSet};
use crate::sim::time::{MS, SECOND};

pub const INDUSTRIAL: Workload = Workload {
    name: "industrial",
    about: "600 stages of mixed-criticality workflows on eight cores",
    cores: 8,
    tasks: 600,
    // Of the worst case; three quarters of it on average.
    load: (1.40, 1.40),
    horizon_ns: 2 * SECOND,
    draw,
};

fn draw(shape: &Shape, rng: &mut Rng) -> TaskSet {
    let shares = uunifast(rng, shape.tasks, shape.total_load());
    let mut tasks = Vec::with_capacity(shape.tasks);
    let mut workflow = 0;
    while tasks.len() < shape.tasks {
        let stages = (3 + rng.below(4)).min(shape.tasks - tasks.len());
        let period = rng.log_uniform(40.0, 400.0).round() as u64 * MS;
        let first = rng.below(period as usize) as u64;
        let critical = rng.chance(0.25);
        let sporadic = rng.chance(1.0 / 3.0);
        let part = period / stages as u64;
        for stage in 0..stages {
            let share = shares[tasks.len()].min(0.9 / stages as f64);
            let mut task = Task::periodic(
                format!("W{workflow}.{}", stage + 1),
                period,
                work(period, share),
            );
            task.deadline_ns = part;
            task.offset_ns = first + part * stage as u64;
            task.criticality = u8::from(critical);
            task.execution = Execution::Uniform {
                low: 0.5,
                high: 1.0,
            };
            if sporadic {
                task.arrival = Arrival::Sporadic {
                    mean_delay_ns: period / 10,
                };
            }
            tasks.push(task);
        }
        workflow += 1;
    }
    shape.set("industrial", tasks)
}
