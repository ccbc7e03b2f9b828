//! The paper's adversarial stress: 600 tasks on eight cores, mean load 1.25 with
//! peaks of 1.40, and ten short tasks with a deadline of 10 ms injected every
//! 20 ms for 10 s. The injected work (1 ms each) is part of the load. The rest
//! alternates between 1.10 and 1.40 every half second.

use super::{scatter, split, usual_period, Shape, Workload};
use crate::sim::rng::Rng;
use crate::sim::task::{Mode, Task, TaskSet};
use crate::sim::time::{MS, SECOND};

const INJECTED: usize = 10;

pub const STRESS: Workload = Workload {
    name: "stress",
    about: "600 tasks on eight cores, load 1.25 with peaks of 1.40, ten 10-ms tasks every 20 ms",
    cores: 8,
    tasks: 600,
    load: (1.25, 1.25),
    horizon_ns: 10 * SECOND,
    draw,
};

fn draw(shape: &Shape, rng: &mut Rng) -> TaskSet {
    let injected_load = INJECTED as f64 * (1.0 / 20.0);
    let base = (shape.total_load() - injected_load).max(0.01);
    let mut tasks = split(rng, shape.tasks, base, usual_period, scatter);
    for i in 0..INJECTED {
        let mut task = Task::periodic(format!("short{}", i + 1), 20 * MS, MS);
        task.deadline_ns = 10 * MS;
        tasks.push(task);
    }
    let half = SECOND / 2;
    let modes = (0..shape.horizon_ns.div_ceil(half))
        .map(|i| Mode {
            start_ns: i * half,
            rate: if i % 2 == 0 { 0.88 } else { 1.12 },
        })
        .collect();
    TaskSet {
        modes,
        ..shape.set("stress", tasks)
    }
}
