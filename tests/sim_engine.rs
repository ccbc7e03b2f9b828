//! What the engine and the classic schedulers promise, against textbooks.

use scx_temponet::sim::engine::{Fate, Knowledge, Options, Plan, Record, Sim, Tally, View};
use scx_temponet::sim::metrics::Metrics;
use scx_temponet::sim::policies::{find, Edf, Key, Policy, RateMonotonic, POLICIES};
use scx_temponet::sim::rng::Rng;
use scx_temponet::sim::task::{Arrival, Execution, Semantics, Task, TaskSet, TraceJob};
use scx_temponet::sim::time::{MS, SECOND, US};
use scx_temponet::sim::workload::{self, Params};

const KEEP: Record = Record {
    jobs: true,
    segments: true,
    events: false,
};

fn set_of(horizon_ms: u64, cores: usize, tasks: Vec<Task>) -> TaskSet {
    TaskSet {
        name: "test".into(),
        cores,
        horizon_ns: horizon_ms * MS,
        seed: 1,
        modes: Vec::new(),
        tasks,
    }
}

/// (period, wcet) in ms.
fn periodic(tasks: &[(u64, u64)]) -> Vec<Task> {
    tasks
        .iter()
        .enumerate()
        .map(|(i, &(p, c))| Task::periodic(format!("T{i}"), p * MS, c * MS))
        .collect()
}

fn run(set: &TaskSet, policy: &mut dyn Policy, options: Options) -> Tally {
    let mut sim = Sim::new(set, set.cores, options, KEEP);
    sim.run(policy);
    sim.tally
}

fn run_named(set: &TaskSet, name: &str, options: Options) -> Tally {
    run(set, (find(name).unwrap().make)().as_mut(), options)
}

fn abort() -> Options {
    Options::new(Semantics::Abort)
}

fn go_on() -> Options {
    Options::new(Semantics::Continue)
}

/// No job runs twice at once, no core runs two jobs, nothing runs before its
/// release or longer than it asks for, and the jobs of a task run in order.
fn check_schedule(set: &TaskSet, tally: &Tally) {
    let mut segments = tally.segments.clone();
    segments.sort_by_key(|s| (s.core, s.start));
    for w in segments.windows(2) {
        assert!(w[0].core != w[1].core || w[0].end <= w[1].start, "{w:?}");
    }
    segments.sort_by_key(|s| (s.task, s.start));
    for w in segments.windows(2) {
        if w[0].task == w[1].task {
            assert!(w[0].end <= w[1].start, "{w:?}");
            assert!(w[0].index <= w[1].index, "{w:?}");
        }
    }
    for record in &tally.records {
        let own = segments
            .iter()
            .filter(|s| s.task == record.task && s.index == record.index);
        let mut ran = 0;
        for s in own {
            assert!(s.start >= record.release);
            ran += s.end - s.start;
        }
        if record.fate == Fate::OnTime {
            assert!(record.finish.unwrap() <= record.deadline);
            assert!(ran > 0);
        }
        let _ = set;
    }
}

#[test]
fn edf_meets_every_deadline_below_full_utilisation_in_10_000_random_sets() {
    let mut rng = Rng::new(2026);
    for index in 0..10_000 {
        let params = Params {
            tasks: Some(1 + rng.below(12)),
            load: Some((0.3, 0.999_99)),
            horizon_ns: Some(SECOND / 2),
            ..Params::default()
        };
        let set = workload::find("random5")
            .unwrap()
            .generate(&params, 9, index);
        for semantics in Semantics::BOTH {
            let mut sim = Sim::new(&set, 1, Options::new(semantics), Record::default());
            sim.run(&mut Edf);
            assert_eq!(sim.tally.met, sim.tally.judged, "{set:?}");
            assert!(sim.tally.judged > 0);
        }
    }
}

#[test]
fn rm_meets_exactly_the_deadlines_response_time_analysis_grants() {
    // The first jobs after a critical instant decide (Liu and Layland), so one
    // job of each task settles what the analysis says.
    for index in 0..500 {
        let params = Params {
            tasks: Some(4),
            load: Some((0.6, 1.0)),
            ..Params::default()
        };
        let mut set = workload::find("random5")
            .unwrap()
            .generate(&params, 4, index);
        set.tasks.sort_by_key(|t| t.period_ns);
        if set
            .tasks
            .windows(2)
            .any(|w| w[0].period_ns == w[1].period_ns)
        {
            continue;
        }
        let tally = run(&set, &mut RateMonotonic, go_on());
        for (i, task) in set.tasks.iter().enumerate() {
            let mut response = task.wcet_ns;
            loop {
                let next = task.wcet_ns
                    + set.tasks[..i]
                        .iter()
                        .map(|t| response.div_ceil(t.period_ns) * t.wcet_ns)
                        .sum::<u64>();
                if next == response || next > task.deadline_ns {
                    response = next;
                    break;
                }
                response = next;
            }
            let first = tally
                .records
                .iter()
                .find(|r| r.task == i as u32 && r.index == 0);
            if response <= task.deadline_ns {
                assert_eq!(first.unwrap().finish, Some(response));
                let jobs = tally.records.iter().filter(|r| r.task == i as u32);
                assert!(jobs.clone().all(|r| r.fate == Fate::OnTime));
            } else {
                assert_ne!(first.unwrap().fate, Fate::OnTime);
            }
        }
    }
}

#[test]
fn liu_and_layland_example_rm_misses_where_edf_does_not() {
    // U = 2/5 + 4/7 = 0.971: above the RM bound of 0.828, below EDF's 1.
    let set = set_of(35, 1, periodic(&[(5, 2), (7, 4)]));
    let edf = run(&set, &mut Edf, abort());
    assert_eq!((edf.met, edf.judged), (12, 12));
    let rm = run(&set, &mut RateMonotonic, abort());
    assert!(rm.met < rm.judged);
    // The first job of T1 has run 3 of its 4 ms when it is thrown away at 7.
    let first = rm.records.iter().find(|r| r.task == 1).unwrap();
    assert_eq!((first.fate, first.deadline), (Fate::Aborted, 7 * MS));
}

#[test]
fn dhall_effect_defeats_global_edf_but_not_edzl_or_dp_wrap() {
    // Two light tasks and a heavy one on two cores: U just above 1.
    let mut tasks = periodic(&[(10, 1), (10, 1)]);
    tasks.push(Task::periodic("heavy", 11 * MS, 10 * MS + MS / 2));
    let set = set_of(110, 2, tasks);
    let missed = |name| {
        let tally = run_named(&set, name, abort());
        tally.judged - tally.met
    };
    assert!(missed("plain-edf") > 0);
    assert!(missed("rm") > 0);
    assert_eq!(missed("edzl"), 0);
    assert_eq!(missed("dp-wrap"), 0);
}

#[test]
fn dp_wrap_meets_everything_up_to_full_utilisation_on_m_cores() {
    for index in 0..300 {
        let cores = 1 + index as usize % 5;
        let params = Params {
            cores: Some(cores),
            tasks: Some(cores + 1 + index as usize % 7),
            load: Some((0.97, 0.999_9)),
            horizon_ns: Some(SECOND / 2),
            ..Params::default()
        };
        let mut set = workload::find("random5")
            .unwrap()
            .generate(&params, 8, index);
        set.cores = cores;
        for semantics in Semantics::BOTH {
            let tally = run_named(&set, "dp-wrap", Options::new(semantics));
            assert_eq!(tally.met, tally.judged, "set {index} on {cores} cores");
        }
    }
}

#[test]
fn srpt_misses_the_papers_counterexample_and_slack_does_not() {
    let job = |c_us, d_us| {
        let mut task = Task::periodic("x", 1000 * MS, c_us * US);
        task.deadline_ns = d_us * US;
        task
    };
    // A: 1 of work due at 100; B: 2 of work due at 2.2.
    let set = set_of(500, 1, vec![job(1_000, 100_000), job(2_000, 2_200)]);
    assert_eq!(run_named(&set, "srpt", abort()).met, 1);
    for name in ["llf", "plain-edf", "mh"] {
        assert_eq!(run_named(&set, name, abort()).met, 2, "{name}");
    }
}

#[test]
fn moore_hodgson_gives_up_the_longest_job_where_edf_loses_them_all() {
    let job = |c, d| {
        let mut task = Task::periodic("x", 1000 * MS, c * MS);
        task.deadline_ns = d * MS;
        task
    };
    let set = set_of(
        500,
        1,
        vec![job(10, 10), job(5, 11), job(5, 12), job(5, 16)],
    );
    assert_eq!(run_named(&set, "mh", abort()).met, 3);
    assert_eq!(run_named(&set, "plain-edf", abort()).met, 1);
}

#[test]
fn a_late_job_that_goes_on_delays_its_successor_and_an_aborted_one_does_not() {
    let set = set_of(100, 1, periodic(&[(10, 12)]));
    let on = run(&set, &mut Edf, go_on());
    assert_eq!(on.met, 0);
    assert_eq!(on.records[0].finish, Some(12 * MS));
    assert_eq!(on.records[1].finish, Some(24 * MS));
    check_schedule(&set, &on);
    let off = run(&set, &mut Edf, abort());
    assert_eq!(off.met, 0);
    assert_eq!(off.judged, 10);
    assert!(off.records.iter().all(|r| r.fate == Fate::Aborted));
}

#[test]
fn deadlines_beyond_the_period_let_jobs_queue_in_order() {
    let mut task = Task::periodic("x", 10 * MS, 8 * MS);
    task.deadline_ns = 25 * MS;
    task.arrival = Arrival::Bursty {
        burst: 2,
        spacing_ns: MS,
    };
    let set = set_of(200, 2, vec![task]);
    for options in [abort(), go_on()] {
        let tally = run(&set, &mut Edf, options);
        check_schedule(&set, &tally);
        assert_eq!(tally.met, tally.judged);
        assert_eq!(tally.records[1].finish, Some(16 * MS));
    }
}

#[test]
fn every_policy_makes_valid_schedules_on_every_workload_under_both_semantics() {
    for workload in workload::WORKLOADS {
        let params = Params {
            tasks: Some(workload.tasks.min(30)),
            horizon_ns: Some(300 * MS),
            ..Params::default()
        };
        let set = workload.generate(&params, 5, 0);
        for semantics in Semantics::BOTH {
            let mut judged = None;
            for entry in POLICIES {
                let tally = run_named(&set, entry.name, Options::new(semantics));
                check_schedule(&set, &tally);
                assert!(tally.met <= tally.judged);
                // The same jobs for everybody.
                assert_eq!(*judged.get_or_insert(tally.judged), tally.judged);
            }
        }
    }
}

/// The slow road for a policy with a fixed order.
struct Undeclared(Key);

impl Policy for Undeclared {
    fn decide(&mut self, view: &View, plan: &mut Plan) {
        let mut jobs: Vec<_> = view.jobs.iter().collect();
        jobs.sort_by_key(|j| {
            let task = &view.tasks[j.task as usize];
            let key = match self.0 {
                Key::Release => j.release,
                Key::Period => task.period_ns,
                Key::RelativeDeadline => task.deadline_ns,
                Key::Deadline => j.deadline,
            };
            (key, !j.is_running(), j.task)
        });
        jobs.iter().take(view.cores).for_each(|j| plan.run(j.task));
    }
}

#[test]
fn the_fast_path_and_the_general_path_give_the_same_fates() {
    for (name, key) in [
        ("plain-edf", Key::Deadline),
        ("rm", Key::Period),
        ("dm", Key::RelativeDeadline),
        ("fcfs", Key::Release),
    ] {
        for index in 0..60 {
            let params = Params {
                cores: Some(1 + index as usize % 4),
                tasks: Some(20),
                load: Some((0.7, 1.3)),
                horizon_ns: Some(SECOND),
                ..Params::default()
            };
            let set = workload::find("large").unwrap().generate(&params, 6, index);
            for semantics in Semantics::BOTH {
                let options = Options::new(semantics);
                let fast = run_named(&set, name, options);
                let slow = run(&set, &mut Undeclared(key), options);
                assert_eq!(fast.met, slow.met, "{name} on set {index}");
                assert!(fast.records == slow.records, "{name} on set {index}");
            }
        }
    }
}

#[test]
fn switching_and_migration_cost_time() {
    let set = set_of(1000, 1, periodic(&[(10, 4), (15, 5)]));
    let free = run(&set, &mut Edf, abort());
    assert_eq!(free.met, free.judged);
    let costly = Options {
        context_switch_ns: 2 * MS,
        ..abort()
    };
    let paid = run(&set, &mut Edf, costly);
    assert!(paid.met < paid.judged);
    let large = workload::find("large").unwrap();
    let params = Params {
        tasks: Some(40),
        load: Some((0.95, 0.95)),
        ..Params::default()
    };
    let set = large.generate(&params, 3, 0);
    let moving = Options {
        migration_ns: 5 * MS,
        ..abort()
    };
    let paid = run(&set, &mut Edf, moving);
    assert!(paid.migrations > 0);
    assert!(paid.met < run(&set, &mut Edf, abort()).met);
}

#[test]
fn a_quantum_delays_preemption_to_the_next_tick_but_not_the_use_of_an_idle_core() {
    // T1 (period 10) arrives at 3 while T0 runs from 0.
    let mut tasks = periodic(&[(100, 20), (10, 2)]);
    tasks[1].offset_ns = 3 * MS;
    tasks.push(Task::periodic("late", 100 * MS, MS));
    tasks[2].offset_ns = 51 * MS;
    let set = set_of(60, 1, tasks);
    let options = Options {
        quantum_ns: 5 * MS,
        ..go_on()
    };
    let tally = run(&set, &mut Edf, options);
    let first = tally.segments.iter().find(|s| s.task == 1).unwrap();
    assert_eq!(first.start, 5 * MS);
    let idle = tally.segments.iter().find(|s| s.task == 2).unwrap();
    assert_eq!(idle.start, 51 * MS);
    check_schedule(&set, &tally);
}

#[test]
fn late_decisions_take_effect_late_and_cores_fall_back_to_edf_meanwhile() {
    let mut tasks = periodic(&[(100, 20), (40, 2)]);
    tasks[1].offset_ns = 3 * MS;
    let set = set_of(100, 1, tasks);
    let options = Options {
        decision_latency_ns: 4 * MS,
        ..go_on()
    };
    let tally = run_named(&set, "srpt", options);
    let first = tally.segments.iter().find(|s| s.task == 0).unwrap();
    assert_eq!(first.start, 0, "the fallback does not wait");
    let first = tally.segments.iter().find(|s| s.task == 1).unwrap();
    // The decision made at 0 lands at 4; the one about the release at 3 starts
    // then and lands at 8.
    assert_eq!(first.start, 8 * MS);
    check_schedule(&set, &tally);
}

#[test]
fn stale_views_hide_fresh_releases() {
    let mut tasks = periodic(&[(100, 20), (40, 2)]);
    tasks[1].offset_ns = 3 * MS;
    let set = set_of(100, 1, tasks);
    let options = Options {
        staleness_ns: 2 * MS,
        ..go_on()
    };
    let tally = run_named(&set, "srpt", options);
    let first = tally.segments.iter().find(|s| s.task == 1).unwrap();
    assert_eq!(first.start, 5 * MS);
}

/// Notes what the policy was told and what was true.
struct Curious(Vec<(u32, u64)>);

impl Policy for Curious {
    fn decide(&mut self, view: &View, plan: &mut Plan) {
        for job in view.jobs.iter().filter(|j| j.executed == 0) {
            self.0.push((job.index, job.remaining));
        }
        view.jobs.iter().take(1).for_each(|j| plan.run(j.task));
    }
}

#[test]
fn remaining_work_is_known_bounded_or_estimated_as_asked() {
    let mut task = Task::periodic("x", 10 * MS, 4 * MS);
    task.execution = Execution::Uniform {
        low: 0.5,
        high: 0.5,
    };
    let set = set_of(100, 1, vec![task]);
    let told = |knowledge| {
        let mut policy = Curious(Vec::new());
        let options = Options {
            knowledge,
            ..go_on()
        };
        run(&set, &mut policy, options);
        policy.0
    };
    assert!(told(Knowledge::Known).iter().all(|&(_, r)| r == 2 * MS));
    assert!(told(Knowledge::Wcet).iter().all(|&(_, r)| r == 4 * MS));
    let history = told(Knowledge::History);
    assert_eq!(history[0].1, 4 * MS);
    assert!(history.iter().skip(1).all(|&(_, r)| r == 2 * MS));
}

#[test]
fn recorded_jobs_are_replayed_as_they_were() {
    let job = |release, execution, deadline: Option<u64>| TraceJob {
        release_ns: release * MS,
        execution_ns: execution * MS,
        deadline_ns: deadline.map(|d| d * MS),
    };
    let mut task = Task::periodic("recorded", 10 * MS, 5 * MS);
    task.arrival = Arrival::Trace(vec![
        job(3, 2, None),
        job(4, 4, Some(9)),
        job(50, 1, Some(52)),
    ]);
    let set = set_of(100, 1, vec![task]);
    let tally = run(&set, &mut Edf, go_on());
    let fates: Vec<_> = tally.records.iter().map(|r| (r.finish, r.fate)).collect();
    assert_eq!(
        fates,
        [
            (Some(5 * MS), Fate::OnTime),
            (Some(9 * MS), Fate::OnTime),
            (Some(51 * MS), Fate::OnTime)
        ]
    );
}

#[test]
fn mission_critical_jobs_are_counted_apart() {
    let mut tasks = periodic(&[(10, 6), (20, 12)]);
    tasks[0].criticality = 1;
    let set = set_of(200, 1, tasks);
    let tally = run(&set, &mut RateMonotonic, abort());
    let metrics = Metrics::of(&tally, 1, set.horizon_ns);
    assert_eq!(metrics.pitmd, Some(1.0));
    assert!(metrics.success && metrics.compliance < 1.0);
    assert_eq!((tally.critical_judged, tally.judged), (20, 30));
    assert!(metrics.utilisation > Some(0.99));
}
