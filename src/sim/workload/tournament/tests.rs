use std::collections::HashSet;
use std::path::Path;

use super::*;
use crate::sim::arrivals::JobStream;

const SEEDS: std::ops::Range<u64> = 0..600;

fn tasks(set: &TaskSet) -> impl Iterator<Item = &Task> {
    set.tasks.iter().filter(|task| !task.is_hog(set.horizon_ns))
}

#[test]
fn the_same_seed_gives_the_same_set_and_another_one_another() {
    let any = Options::default();
    let sets: Vec<Drawn> = SEEDS.map(|seed| draw(&any, seed)).collect();
    for (seed, drawn) in SEEDS.zip(&sets) {
        assert_eq!(*drawn, draw(&any, seed));
    }
    for pair in sets.windows(2) {
        assert_ne!(pair[0].set.tasks, pair[1].set.tasks);
    }
}

#[test]
fn every_set_is_within_the_bounds_that_are_promised() {
    for seed in SEEDS {
        let Drawn { set, knobs } = draw(&Options::default(), seed);
        set.check().unwrap();
        let n = tasks(&set).count();
        assert!((3..=64).contains(&n) && n == knobs.tasks, "{seed}: {n}");
        assert_eq!(set.tasks.len() - n, knobs.hogs);
        assert!((0.5..=2.0).contains(&knobs.load));
        assert!([1, 2, 4].contains(&set.cores));
        for task in tasks(&set) {
            let ms = task.period_ns as f64 / 1e6;
            assert!((2.0..=500.0).contains(&ms), "{seed}: {ms}");
            assert!(task.wcet_ns <= task.deadline_ns && task.deadline_ns <= task.period_ns);
            assert!(task.period_ns % US == 0 && task.offset_ns % US == 0);
            let ratio = task.told_ns() as f64 / task.wcet_ns as f64;
            let (least, most) = match knobs.declared {
                Declared::Exactly => (1.0, 1.0),
                Declared::Generously => (1.0, 1.5),
                Declared::TooSmall => (0.4, 0.9),
                Declared::SomeWrong => (0.33, 3.01),
                Declared::Nothing => (0.0, f64::INFINITY),
            };
            assert!(
                (least - 0.001..=most + 0.001).contains(&ratio),
                "{seed}: {ratio}"
            );
        }
    }
}

#[test]
fn the_load_is_within_two_per_cent_of_what_was_drawn() {
    for seed in SEEDS {
        let Drawn { set, knobs } = draw(&Options::default(), seed);
        let halves = (set.load_at(0), set.load_at(set.horizon_ns - 1));
        let wanted = knobs.load * knobs.cores as f64;
        let near = |load: f64| (load / wanted - 1.0).abs() < 0.02;
        let loads = format!("{seed}: {halves:?} for {wanted}, {}", knobs.describe());
        match knobs.change {
            Change::None | Change::Exchange => assert!(near(halves.0) && near(halves.1), "{loads}"),
            Change::SomeEnd => assert!(near(halves.0) && halves.1 < halves.0, "{loads}"),
            Change::SomeBegin => assert!(near(halves.1) && halves.0 < halves.1, "{loads}"),
        }
    }
}

/// The work that is really released, not what the parameters promise.
#[test]
fn jobs_that_are_released_ask_for_the_load() {
    for seed in 0..60 {
        let options = Options {
            horizon_ns: Some(200 * SECOND),
            change: Some(Change::None),
            ..Options::default()
        };
        let Drawn { set, knobs } = draw(&options, seed);
        let mut work = 0;
        for (id, task) in set.tasks.iter().enumerate() {
            let mut stream = JobStream::new(&set, id);
            if !task.is_hog(set.horizon_ns) {
                let jobs = std::iter::from_fn(|| stream.next_job(&set, task));
                let jobs = jobs.take_while(|job| job.release < set.horizon_ns);
                work += jobs.map(|job| job.execution).sum::<Ns>();
            }
        }
        let load = work as f64 / (set.horizon_ns as f64 * set.cores as f64);
        let off = (load / knobs.load - 1.0).abs();
        assert!(off < 0.02, "{seed}: {load} for {}", knobs.describe());
    }
}

#[test]
fn every_choice_comes_up() {
    let knobs: Vec<Knobs> = SEEDS
        .map(|seed| draw(&Options::default(), seed).knobs)
        .collect();
    fn all<T: Copy + Eq + std::hash::Hash>(seen: impl Iterator<Item = T>, all: &[T]) -> bool {
        seen.collect::<HashSet<T>>().len() == all.len()
    }
    assert!(all(knobs.iter().map(|k| k.periods), Periods::ALL));
    assert!(all(knobs.iter().map(|k| k.times), Times::ALL));
    assert!(all(knobs.iter().map(|k| k.deadlines), Deadlines::ALL));
    assert!(all(knobs.iter().map(|k| k.start), Start::ALL));
    assert!(all(knobs.iter().map(|k| k.change), Change::ALL));
    assert!(all(knobs.iter().map(|k| k.declared), Declared::ALL));
    assert!(all(knobs.iter().map(|k| k.cores), &[1, 2, 4]));
    assert!(all(knobs.iter().map(|k| k.critical), &[true, false]));
    assert!(knobs.iter().any(|k| k.hogs == 0) && knobs.iter().any(|k| k.hogs > 1));
    assert!(knobs.iter().any(|k| k.tasks < 6) && knobs.iter().any(|k| k.tasks > 50));
}

#[test]
fn fixing_one_property_leaves_the_others_of_that_seed() {
    for seed in 0..50 {
        let free = draw(&Options::default(), seed);
        let fixed = Options {
            declared: Some(Declared::Exactly),
            hogs: Some(0),
            ..Options::default()
        };
        let fixed = draw(&fixed, seed);
        let strip = |set: &TaskSet| -> Vec<Task> {
            let plain = |task: &Task| Task {
                declared: Declaration::Wcet,
                ..task.clone()
            };
            tasks(set).map(plain).collect()
        };
        assert_eq!(strip(&free.set), strip(&fixed.set));
        assert_eq!(fixed.knobs.hogs, 0);
    }
}

#[test]
fn a_set_comes_back_from_a_file_as_it_was() {
    for seed in 0..60 {
        let set = draw(&Options::default(), seed).set;
        let toml = toml::to_string_pretty(&set).unwrap();
        let json = serde_json::to_string(&set).unwrap();
        assert_eq!(TaskSet::parse(Path::new("a.toml"), &toml).unwrap(), set);
        assert_eq!(TaskSet::parse(Path::new("a.json"), &json).unwrap(), set);
    }
}

#[test]
fn a_description_names_every_property() {
    let options = Options {
        cores: Some(2),
        tasks: Some(5),
        load: Some((1.25, 1.25)),
        periods: Some(Periods::Harmonic),
        times: Some(Times::HeavyTail),
        deadlines: Some(Deadlines::BeforePeriod),
        start: Some(Start::Apart),
        hogs: Some(1),
        change: Some(Change::SomeEnd),
        critical: Some(true),
        declared: Some(Declared::Exactly),
        ..Options::default()
    };
    assert_eq!(
        draw(&options, 7).knobs.describe(),
        "2 CPUs, 5 tasks, load 1.25 a CPU, periods harmonic, times heavy-tailed, D < P, \
         started apart, 1 hog, some end half-way, some critical, declared exactly"
    );
}
