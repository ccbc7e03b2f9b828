//! Machines as they were recorded: stretches of task sets that the user brings.

use crate::sim::rng::Rng;
use crate::sim::task::{Arrival, TaskSet, TraceJob};
use crate::sim::time::Ns;

/// Of the machines of a round, where there are recordings; the rest comes from the
/// curriculum, so that what is rare in a recording is not forgotten.
pub const SHARE: f64 = 0.5;

/// A stretch of one of them; `None` where nobody would have anything to do.
pub fn draw(sets: &[TaskSet], length: Ns, rng: &mut Rng) -> Option<TaskSet> {
    let set = sets.get(rng.below(sets.len().max(1)))?;
    let latest = set.horizon_ns.saturating_sub(length);
    let start = rng.uniform(0.0, latest as f64 + 1.0) as Ns;
    stretch(set, start.min(latest), length)
}

fn stretch(set: &TaskSet, start: Ns, length: Ns) -> Option<TaskSet> {
    let mut part = TaskSet {
        horizon_ns: length.min(set.horizon_ns),
        modes: Vec::new(),
        ..set.clone()
    };
    let end = start + part.horizon_ns;
    part.tasks.retain_mut(|task| match &mut task.arrival {
        Arrival::Trace(jobs) => {
            let inside = |job: &&TraceJob| (start..end).contains(&job.release_ns);
            let moved = jobs.iter().filter(inside).map(|job| TraceJob {
                release_ns: job.release_ns - start,
                execution_ns: job.execution_ns,
                deadline_ns: job.deadline_ns.map(|deadline| deadline - start),
            });
            let moved: Vec<TraceJob> = moved.collect();
            let any = !moved.is_empty();
            *jobs = moved;
            any
        }
        // The first release at or after the start.
        _ => {
            let missed = start
                .saturating_sub(task.offset_ns)
                .div_ceil(task.period_ns);
            task.offset_ns = (task.offset_ns + missed * task.period_ns).saturating_sub(start);
            task.offset_ns < part.horizon_ns
        }
    });
    (!part.tasks.is_empty()).then_some(part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::task::Task;
    use crate::sim::time::{MS, SECOND};

    #[test]
    fn a_stretch_has_the_jobs_that_were_released_in_it() {
        let jobs = (0..100).map(|k| TraceJob {
            release_ns: k * 100 * MS,
            execution_ns: MS,
            deadline_ns: Some((k + 1) * 100 * MS),
        });
        let trace = Task {
            arrival: Arrival::Trace(jobs.collect()),
            ..Task::periodic("trace", 100 * MS, MS)
        };
        let beat = Task {
            offset_ns: 7 * MS,
            ..Task::periodic("beat", 30 * MS, MS)
        };
        let set = TaskSet {
            name: "recorded".into(),
            cores: 1,
            horizon_ns: 10 * SECOND,
            seed: 0,
            modes: Vec::new(),
            tasks: vec![trace, beat],
        };
        let part = stretch(&set, 3050 * MS, 2 * SECOND).unwrap();
        part.check().unwrap();
        let Arrival::Trace(jobs) = &part.tasks[0].arrival else {
            panic!("a trace");
        };
        assert_eq!((jobs.len(), jobs[0].release_ns), (20, 50 * MS));
        assert_eq!(jobs[0].deadline_ns, Some(150 * MS));
        // 7 + 30 k at or after 3050: 3067.
        assert_eq!(part.tasks[1].offset_ns, 17 * MS);
        let mut rng = Rng::new(1);
        for _ in 0..100 {
            draw(std::slice::from_ref(&set), 2 * SECOND, &mut rng)
                .unwrap()
                .check()
                .unwrap();
        }
        assert!(draw(&[], SECOND, &mut rng).is_none());
    }
}
