use super::*;
use crate::sim::engine::{Options, Record, Sim, Tally};
use crate::sim::task::{Arrival, Semantics, Task, TraceJob};

fn hog(nice: i8) -> Task {
    let whole = TraceJob {
        release_ns: 0,
        execution_ns: 100_000 * MS,
        deadline_ns: Some(200_000 * MS),
    };
    Task {
        nice,
        ..Task::traced("hog".into(), vec![whole], 200_000 * MS)
    }
}

/// What ran for a second, and how long each task did.
fn run(cores: usize, tasks: Vec<Task>) -> (Tally, Vec<f64>) {
    let set = TaskSet {
        name: "test".into(),
        cores,
        horizon_ns: 1000 * MS,
        seed: 1,
        modes: Vec::new(),
        tasks,
    };
    let record = Record {
        jobs: true,
        segments: true,
        events: false,
    };
    let mut sim = Sim::new(&set, cores, Options::new(Semantics::Continue), record);
    sim.run(&mut Eevdf::default());
    let ran = |task: usize| {
        let own = sim.tally.segments.iter();
        let own = own.filter(|segment| segment.task as usize == task);
        own.map(|segment| segment.end - segment.start).sum::<Ns>() as f64 / 1e9
    };
    let ran = (0..set.tasks.len()).map(ran).collect();
    (sim.tally, ran)
}

#[test]
fn hogs_share_a_second_by_weight_within_a_per_cent() {
    let nices = [0, 0, 5, -5];
    let (_, ran) = run(1, nices.map(hog).into());
    let all: i64 = nices.map(weight_of).iter().sum();
    for (nice, ran) in nices.into_iter().zip(ran) {
        let share = weight_of(nice) as f64 / all as f64;
        assert!((ran - share).abs() < 0.01, "nice {nice}: {ran} of {share}");
    }
}

#[test]
fn below_capacity_it_misses_deadlines_that_it_does_not_know() {
    let tasks = [(10, 20), (20, 100), (21, 100)];
    let task = |(work, period)| Task::periodic("t", period * MS, work * MS);
    let (tally, _) = run(1, tasks.map(task).into());
    // The first asks for half of the CPU and has a third while the others run.
    assert!(
        tally.met > 0 && tally.met * 4 < tally.judged * 3,
        "{tally:?}"
    );
}

#[test]
fn a_short_task_beside_a_hog_waits_about_a_slice_at_most() {
    let short = Task {
        offset_ns: MS / 3,
        ..Task::periodic("short", 10 * MS + MS / 7, MS / 5)
    };
    let (tally, _) = run(1, vec![hog(0), short]);
    let response = |job: &crate::sim::engine::JobRecord| job.finish.unwrap() - job.release;
    let longest = tally.records.iter().map(response).max().unwrap();
    // A slice to its tick, and its own work.
    assert!(longest <= 2 * TICK + MS / 5, "{longest}");
    assert_eq!(tally.met, tally.judged);
}

#[test]
fn a_sleeper_gains_no_credit_beyond_the_rule() {
    // It wakes up for good after half a second of sleep.
    let late = Task {
        arrival: Arrival::Trace(vec![TraceJob {
            release_ns: 500 * MS,
            execution_ns: 100_000 * MS,
            deadline_ns: Some(200_000 * MS),
        }]),
        ..hog(0)
    };
    let (tally, ran) = run(1, vec![hog(0), late]);
    assert!((ran[1] - 0.25).abs() < 0.004, "{ran:?}");
    let segments = tally.segments.iter();
    let own = segments.filter(|s| s.task == 1).map(|s| s.end - s.start);
    assert!(own.max().unwrap() <= 3 * MS);
}

#[test]
fn who_sleeps_with_negative_lag_pays_for_it_when_it_wakes_up() {
    // Over its share whenever it runs: 7 ms of every 10, beside a hog. The hog has half.
    let napper = Task::periodic("napper", 10 * MS, 7 * MS);
    let (_, ran) = run(1, vec![hog(0), napper]);
    assert!((ran[0] - 0.5).abs() < 0.01, "{ran:?}");
}

#[test]
fn no_cpu_is_idle_while_a_task_waits() {
    let mut tasks: Vec<Task> = (0..3).map(|_| hog(0)).collect();
    tasks.push(Task::periodic("t", 20 * MS, 9 * MS));
    tasks.push(Task::periodic("u", 30 * MS, 9 * MS));
    let (_, ran) = run(2, tasks);
    assert!((ran.iter().sum::<f64>() - 2.0).abs() < 1e-6, "{ran:?}");
}

#[test]
fn equal_hogs_spread_over_the_cpus() {
    let (_, ran) = run(2, (0..4).map(|_| hog(0)).collect());
    for share in ran {
        assert!((share - 0.5).abs() < 0.01, "{share}");
    }
}
