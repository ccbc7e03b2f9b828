//! Verdicts on figures that no simulator makes on purpose.

use super::*;
use crate::rtapp::convert::Converted;
use crate::rtapp::outcome;
use crate::sim::compare::Contestant;
use crate::sim::engine::{JobRecord, Options, Segment};
use crate::sim::policies::find;
use crate::sim::rng::Rng;
use crate::sim::task::Task;
use crate::sim::time::MS;

/// Threads of 1,000 jobs each, of this many milliseconds every 10 ms.
fn converted(cores: usize, works: &[u64]) -> Converted {
    let task = |(i, &work): (usize, &u64)| Task::periodic(format!("t{i}"), 10 * MS, work * MS);
    Converted {
        set: TaskSet {
            name: "test".into(),
            cores,
            horizon_ns: 10_000 * MS,
            seed: 0,
            modes: Vec::new(),
            tasks: works.iter().enumerate().map(task).collect(),
        },
        timer_after_deadline: vec![None; works.len()],
        origins: Vec::new(),
        notes: Vec::new(),
    }
}

/// A live run in which the first jobs of every thread were late, so many of each.
fn run(converted: &Converted, name: &str, missed: &[u32], means: Means) -> Outcome {
    let jobs = missed.iter().enumerate().flat_map(|(task, &missed)| {
        (0..1000).map(move |index| {
            let release = Ns::from(index) * 10 * MS;
            let late = index < missed;
            JobRecord {
                task: task as u32,
                index,
                release,
                deadline: release + 10 * MS,
                finish: Some(release + if late { 11 } else { 5 } * MS),
                fate: if late { Fate::Late } else { Fate::OnTime },
            }
        })
    });
    let nobody_knows: Vec<Segment> = Vec::new();
    Outcome {
        means,
        ..outcome::live(name, "test", converted, jobs.collect(), nobody_knows)
    }
}

fn kernel() -> Means {
    Means::new(Needs::Kernel, "the kernel's own scheduler")
}

fn declared() -> Means {
    Means {
        declares: true,
        ..Means::new(Needs::Network, "`scx_temponet`")
    }
}

fn names(verdict: &ReplayVerdict) -> Vec<&str> {
    verdict.winners.iter().map(String::as_str).collect()
}

#[test]
fn a_few_jobs_more_or_less_are_no_victory_but_none_missed_is() {
    let set = converted(1, &[5, 4]);
    let near = [
        run(&set, "a", &[3, 0], declared()),
        run(&set, "b", &[0, 9], kernel()),
    ];
    let verdict = judge(&set.set, &near, &[]);
    assert_eq!(names(&verdict), ["a", "b"]);
    let enough = verdict.enough.unwrap();
    assert!(
        enough.contains("the kernel's own scheduler is enough"),
        "{enough}"
    );
    let none = [
        run(&set, "a", &[1, 0], declared()),
        run(&set, "b", &[0, 0], kernel()),
    ];
    assert_eq!(names(&judge(&set.set, &none, &[])), ["b"]);
    let far = [
        run(&set, "a", &[100, 0], declared()),
        run(&set, "b", &[0, 150], kernel()),
    ];
    let verdict = judge(&set.set, &far, &[]);
    assert_eq!(names(&verdict), ["a"]);
    assert_eq!(verdict.enough, None);
}

#[test]
fn of_those_that_are_level_the_one_that_loses_no_thread_wins() {
    let set = converted(1, &[5, 4]);
    let runs = [
        run(&set, "starves", &[0, 600], kernel()),
        run(&set, "spreads", &[304, 304], kernel()),
    ];
    assert_eq!(names(&judge(&set.set, &runs, &[])), ["spreads"]);
}

#[test]
fn declared_deadlines_are_advised_where_they_made_the_difference() {
    let set = converted(1, &[5, 4]);
    let runs = [
        run(&set, "eevdf", &[600, 500], kernel()),
        run(&set, "edf", &[0, 0], declared()),
    ];
    let verdict = judge(&set.set, &runs, &[("scx_other", "it was not there")]);
    assert_eq!(
        verdict.change,
        ["Declare the deadlines (hint, or rules): 100 % with them, 45.0 % without."]
    );
    let failed = verdict.losses.last().unwrap();
    assert_eq!(failed, "scx_other failed: it was not there");
    // What fits needs no other machine.
    assert_eq!(verdict.load.feasible, Feasible::Yes);
    let level = [
        run(&set, "eevdf", &[0, 0], kernel()),
        run(&set, "edf", &[0, 0], declared()),
    ];
    assert!(judge(&set.set, &level, &[]).change.is_empty());
}

#[test]
fn nothing_is_called_impossible_that_somebody_did() {
    let set = converted(1, &[8, 8]);
    let verdict = judge(&set.set, &[run(&set, "recorded", &[0, 0], kernel())], &[]);
    assert!(
        verdict.why[0].contains("it had more CPUs"),
        "{:?}",
        verdict.why
    );
    assert!(verdict.change.is_empty(), "{:?}", verdict.change);
}

#[test]
fn no_share_below_all_is_called_100_percent() {
    assert_eq!(words::percent(1.0), "100 %");
    assert_eq!(words::percent(0.999_99), "99.9 %");
    assert_eq!(words::percent(0.29), "29.0 %");
}

/// A live run in which every job of the one thread took so many microseconds.
fn run_taking(converted: &Converted, name: &str, micros: u64, means: Means) -> Outcome {
    let late = if micros > 10_000 { 1000 } else { 0 };
    let mut outcome = run(converted, name, &[late], means);
    outcome.segments = (0..1000)
        .map(|index| {
            let start = Ns::from(index) * micros * 1000;
            Segment {
                core: 0,
                task: 0,
                index,
                start,
                end: start + micros * 1000,
            }
        })
        .collect();
    outcome
}

#[test]
fn a_machine_slower_than_it_was_measured_is_blamed_before_its_schedulers() {
    let set = converted(1, &[8]);
    let slow = [
        run_taking(&set, "eevdf", 12_000, kernel()),
        run_taking(&set, "edf", 11_200, declared()),
    ];
    let verdict = judge(&set.set, &slow, &[]);
    assert_eq!(verdict.schedulers[0].slowness, Some(1.5));
    assert!(
        verdict.why[0].starts_with("The work took 1.40 times as long as the file says"),
        "{:?}",
        verdict.why
    );
    assert!(
        verdict.why[0].ends_with("as if 1.12 CPUs were asked of 1."),
        "{:?}",
        verdict.why
    );
    assert_eq!(verdict.why[1], "0.80 CPUs are asked of 1.");
    assert_eq!(verdict.enough, None);
    // One of them at full speed: the machine can.
    let one = [
        run_taking(&set, "eevdf", 12_000, kernel()),
        run_taking(&set, "edf", 8000, declared()),
    ];
    let verdict = judge(&set.set, &one, &[]);
    assert_eq!(verdict.why, ["0.80 CPUs are asked of 1."]);
}

#[test]
fn without_a_scheduler_there_is_a_verdict_too() {
    let set = converted(1, &[5]);
    let verdict = judge(&set.set, &[], &[("edf", "it ended")]);
    assert_eq!(verdict.headline, "No scheduler was compared.");
    assert_eq!(verdict.losses.len(), 1);
}

/// One to six threads on one to three CPUs; some deadlines come before the period.
fn random_set(seed: u64) -> Converted {
    let mut rng = Rng::new(seed);
    let cores = 1 + rng.below(3);
    let threads = 1 + rng.below(6);
    let mut converted = converted(cores, &vec![1; threads]);
    converted.set.horizon_ns = 1000 * MS;
    let each = rng.uniform(0.3, 1.5) * cores as f64 / threads as f64;
    for task in &mut converted.set.tasks {
        task.period_ns = [5, 8, 10, 16, 25, 40, 100][rng.below(7)] * MS;
        let share = (each * rng.uniform(0.5, 1.5)).min(1.1);
        task.wcet_ns = (task.period_ns as f64 * share) as Ns;
        let early = if rng.chance(0.2) {
            rng.uniform(0.6, 1.0)
        } else {
            1.0
        };
        task.deadline_ns = (task.period_ns as f64 * early) as Ns;
    }
    converted
}

#[test]
fn what_is_called_impossible_no_scheduler_does_and_what_fits_one_cpu_edf_does() {
    let entries = ["edf", "rm", "llf", "mh"].map(|name| find(name).unwrap());
    let (mut impossible, mut possible) = (0, 0);
    for seed in 0..300 {
        let converted = random_set(seed);
        let contestants = entries.each_ref().map(|entry| Contestant {
            name: entry.name.into(),
            make: &entry.make,
        });
        let options = Options::new(crate::sim::task::Semantics::Continue);
        let outcomes = outcome::simulate(&converted, &contestants, options, &|| ());
        let verdict = judge(&converted.set, &outcomes, &[]);
        assert!(
            verdict.beyond_the_ceiling().is_none(),
            "{seed}: {verdict:?}"
        );
        match verdict.load.feasible {
            Feasible::No => impossible += 1,
            Feasible::Yes if converted.set.cores == 1 => {
                possible += 1;
                assert!(verdict.schedulers[0].all_met(), "{seed}: {verdict:?}");
            }
            Feasible::Yes | Feasible::Unknown => {}
        }
    }
    assert!(impossible > 50 && possible > 30, "{impossible} {possible}");
}
