//! Which tasks are kept where late jobs go on.

use super::shield::situation;
use super::*;

fn keeping() -> Shield {
    Shield::new(ShieldConfig {
        overload: OverloadRule::Keep,
        ..ShieldConfig::default()
    })
}

/// The places of those that are kept, with nothing pending.
fn kept(shield: &mut Shield, tasks: &[Upcoming], cpus: usize) -> Vec<usize> {
    shield.assess(&Situation {
        upcoming: tasks,
        ..situation(&[], cpus, 1)
    });
    let kept = |&task: &usize| shield.keeps_task(task);
    (0..tasks.len()).filter(kept).collect()
}

#[test]
fn where_late_jobs_go_on_whole_tasks_are_given_up_the_critical_last() {
    let jobs = [job(40, 20), job(60, 30), job(100, 30)];
    let tasks = |critical: Option<usize>| -> Vec<Upcoming> {
        let works = [(40, 20, 40), (60, 30, 60), (100, 30, 100)];
        let task = |(i, work): (usize, (i64, i64, i64))| Upcoming {
            pending: Some(i as u32),
            criticality: u8::from(critical == Some(i)),
            ..Upcoming::new(work.2, work)
        };
        works.into_iter().enumerate().map(task).collect()
    };
    let given_up = |critical| {
        let mut shield = keeping();
        shield.assess(&Situation {
            upcoming: &tasks(critical),
            ..situation(&jobs, 1, 1)
        });
        assert!(!shield.candidates().contains(&shield.given_up()[0]));
        shield.given_up().to_vec()
    };
    // 25 and 17 jobs a second fit exactly; the third task would not.
    assert_eq!(given_up(None), [2]);
    assert_eq!(given_up(Some(2)), [1]);
}

#[test]
fn tasks_bound_to_a_full_cpu_are_given_up_while_another_idles() {
    let jobs = [20, 21, 22].map(|work| Job {
        allowed: CpuMask::only(0),
        ..job(40, work)
    });
    let task = |(i, job): (usize, &Job)| Upcoming {
        pending: Some(i as u32),
        allowed: job.allowed,
        ..Upcoming::new(40, (40, job.remaining_ns, 40))
    };
    let tasks: Vec<Upcoming> = jobs.iter().enumerate().map(task).collect();
    let mut shield = keeping();
    shield.assess(&Situation {
        upcoming: &tasks,
        ..situation(&jobs, 2, 1)
    });
    assert_eq!(shield.given_up(), [1, 2]);
}

#[test]
fn who_was_kept_stays_while_estimates_move_a_little() {
    let jobs = [job(40, 20), job(40, 20), job(40, 20)];
    let mut shield = keeping();
    let mut given_up = |runtimes: [i64; 3]| {
        let task = |(i, runtime): (usize, i64)| Upcoming {
            pending: Some(i as u32),
            ..Upcoming::new(40_000, (40_000, runtime, 40_000))
        };
        let tasks: Vec<Upcoming> = runtimes.into_iter().enumerate().map(task).collect();
        shield.assess(&Situation {
            upcoming: &tasks,
            ..situation(&jobs, 1, 1)
        });
        shield.given_up().to_vec()
    };
    let first = given_up([19_000, 20_000, 20_500]);
    assert_eq!(first, [2]);
    assert_eq!(given_up([19_000, 20_500, 20_000]), [2]);
    assert_eq!(given_up([19_000, 30_000, 20_000]), [1], "that is too much");
    assert_eq!(given_up([10_000, 10_000, 10_000]), Vec::<u32>::new());
}

#[test]
fn who_is_far_behind_is_kept_only_where_it_can_catch_up() {
    const MS: i64 = 1_000_000;
    // 15 of 40 ms and 23 of 60 leave a quarter of the CPU, and a job is 20 of 100.
    let jobs = [15, 23, 20].map(|work| job(100 * MS, work * MS));
    let given_up = |behind| {
        let task = |(i, period): (usize, i64)| Upcoming {
            pending: Some(i as u32),
            behind: if i == 2 { behind } else { 0 },
            ..Upcoming::new(MS, (period * MS, jobs[i].remaining_ns, period * MS))
        };
        let tasks: Vec<Upcoming> = [40, 60, 100].into_iter().enumerate().map(task).collect();
        let mut shield = keeping();
        shield.assess(&Situation {
            upcoming: &tasks,
            ..situation(&jobs, 1, 1)
        });
        shield.given_up().to_vec()
    };
    assert_eq!(given_up(2), Vec::<u32>::new());
    assert_eq!(given_up(4), [2]);
}

#[test]
fn who_is_kept_and_falls_behind_is_not_given_up_for_that() {
    const MS: i64 = 1_000_000;
    // 18 of 40 ms and 28 of 60 fit, 35 of 100 beside them do not.
    let jobs = [18, 28, 35].map(|work| job(100 * MS, work * MS));
    let given_up = |shield: &mut Shield, behind| {
        let task = |(i, period): (usize, i64)| Upcoming {
            pending: Some(i as u32),
            behind: if i == 1 { behind } else { 0 },
            ..Upcoming::new(MS, (period * MS, jobs[i].remaining_ns, period * MS))
        };
        let tasks: Vec<Upcoming> = [40, 60, 100].into_iter().enumerate().map(task).collect();
        shield.assess(&Situation {
            upcoming: &tasks,
            ..situation(&jobs, 1, 1)
        });
        shield.given_up().to_vec()
    };
    let mut shield = keeping();
    assert_eq!(given_up(&mut shield, 0), [2]);
    assert_eq!(given_up(&mut shield, 9), [2]);
    assert_eq!(given_up(&mut keeping(), 9), [1], "nor chosen like that");
}

#[test]
fn who_is_kept_goes_only_for_one_that_is_worth_much_more() {
    let stays_beside = |period: i64| {
        let mut shield = keeping();
        let mut keeps_first = |behind| {
            let tasks = [
                Upcoming::new(0, (100_000, 60_000, 100_000)),
                Upcoming {
                    behind,
                    ..Upcoming::new(0, (period, period * 6 / 10, period))
                },
            ];
            shield.assess(&Situation {
                upcoming: &tasks,
                ..situation(&[], 1, 1)
            });
            shield.keeps_task(0)
        };
        assert!(keeps_first(1_000_000), "the other is too far behind");
        keeps_first(0)
    };
    assert!(stays_beside(75_000));
    assert!(!stays_beside(60_000));
}

#[test]
fn of_tasks_that_were_not_seen_less_is_expected_than_they_declared() {
    let kept = |works: &[(i64, i64)], unseen| {
        let task = |&(runtime, period): &(i64, i64)| Upcoming {
            unseen,
            ..Upcoming::new(0, (period, runtime, period))
        };
        let tasks: Vec<Upcoming> = works.iter().map(task).collect();
        kept(&mut keeping(), &tasks, 1)
    };
    // Nobody is given up for a tenth too much on paper.
    assert_eq!(kept(&[(60, 100), (50, 100)], true), [0, 1]);
    assert_eq!(kept(&[(60, 100), (50, 100)], false), [1]);
    assert_eq!(kept(&[(70, 100), (60, 100)], true), [1]);
    // And where somebody has to be, the others may declare a little more than there is.
    let three = [(55, 100), (47, 100), (70, 200)];
    assert_eq!(kept(&three, true), [0, 1]);
    assert_eq!(kept(&three, false), [1, 2]);
}

#[test]
fn nobody_makes_room_for_what_was_only_declared() {
    let mut shield = keeping();
    let mut kept = |unseen| {
        let task = |(runtime, period)| Upcoming {
            unseen,
            ..Upcoming::new(0, (period, runtime, period))
        };
        let tasks = [(55, 100), (47, 100), (70, 200)].map(task);
        kept(&mut shield, &tasks, 1)
    };
    assert_eq!(kept(false), [1, 2]);
    assert_eq!(
        kept(true),
        [1, 2],
        "the first would be worth it if it took less"
    );
}

#[test]
fn nobody_who_was_given_up_comes_back_on_a_guess() {
    let mut shield = keeping();
    let mut kept = |works: [(i64, i64); 2], unseen| {
        let task = |(runtime, period)| Upcoming {
            unseen,
            ..Upcoming::new(0, (period, runtime, period))
        };
        kept(&mut shield, &works.map(task), 1)
    };
    let (much, less, little) = (
        [(70, 100), (60, 100)],
        [(60, 100), (50, 100)],
        [(50, 100), (45, 100)],
    );
    assert_eq!(kept(less, true), [0, 1]);
    assert_eq!(kept(much, true), [1]);
    assert_eq!(kept(less, true), [1], "they would have stayed together");
    assert_eq!(kept(little, false), [0, 1]);
}

#[test]
fn a_task_that_is_worth_it_comes_back_though_many_others_are_kept() {
    let jobs = vec![job(40, 1); 12];
    let mut shield = keeping();
    let mut given_up = |behind| {
        // Ten that release much, one that costs a lot, and one that is behind for a while.
        let task = |i: usize| match i {
            0..10 => Upcoming::new(40_000, (40_000, 3_000, 40_000)),
            10 => Upcoming::new(100_000, (100_000, 22_000, 100_000)),
            _ => Upcoming::new(40_000, (40_000, 1_500, 40_000)),
        };
        let tasks: Vec<Upcoming> = (0..12)
            .map(|i| Upcoming {
                pending: Some(i as u32),
                behind: if i == 11 { behind } else { 0 },
                ..task(i)
            })
            .collect();
        shield.assess(&Situation {
            upcoming: &tasks,
            ..situation(&jobs, 1, 1)
        });
        shield.given_up().to_vec()
    };
    assert_eq!(given_up(1_000_000), [11]);
    assert_eq!(given_up(1), [10]);
}

proptest! {
    #![proptest_config(cases(300))]
    #[test]
    fn no_set_of_tasks_that_fits_releases_more_jobs_than_the_kept(
        works in prop::collection::vec((1i64..60, 5i64..60), 1..9), cpus in 1usize..4,
    ) {
        let jobs = vec![job(1000, 1); works.len()];
        let tasks: Vec<Upcoming> = works.iter().enumerate()
            .map(|(i, &(runtime, period))| Upcoming {
                pending: Some(i as u32),
                ..Upcoming::new(period, (period, runtime, period))
            })
            .collect();
        let mut shield = keeping();
        shield.assess(&Situation { upcoming: &tasks, ..situation(&jobs, cpus, 1) });
        let sums = |kept: &dyn Fn(usize) -> bool| {
            let chosen = (0..works.len()).filter(|&i| kept(i));
            chosen.fold((0.0, 0.0), |(load, rate), i| {
                (load + tasks[i].utilisation(), rate + 1.0 / works[i].1 as f64)
            })
        };
        let (load, rate) = sums(&|i| !shield.given_up().contains(&(i as u32)));
        let capacity = cpus as f64 * (1.0 + 1e-3);
        let alone = works.len() == 1;
        prop_assert!(load <= capacity + 1e-9 || alone);
        for others in 0u32..1 << works.len() {
            let (load, worth) = sums(&|i| others & (1 << i) != 0);
            prop_assert!(load > capacity - 1e-9 || worth <= rate + 1e-9);
        }
    }
}

#[test]
fn who_has_a_cpu_to_himself_is_never_given_up() {
    let task = |cpu, behind| Upcoming {
        allowed: CpuMask::only(cpu),
        behind,
        ..Upcoming::new(0, (10_000_000, 9_000_000, 10_000_000))
    };
    let kept = |tasks: &[Upcoming], cpus| kept(&mut keeping(), tasks, cpus);
    assert_eq!(kept(&[task(0, 500)], 1), [0]);
    assert_eq!(kept(&[task(0, 500), task(1, 500)], 2), [0, 1]);
    assert_eq!(kept(&[task(0, 500), task(0, 0)], 2), [1]);
    let anywhere = Upcoming {
        allowed: CpuMask::ALL,
        ..task(0, 500)
    };
    assert_eq!(kept(&[anywhere], 2), [0]);
    assert_eq!(kept(&[task(0, 0), anywhere], 1), [0]);
}

#[test]
fn of_several_cpus_the_kept_leave_some_but_nobody_is_given_up_for_that() {
    let often = Upcoming::new(0, (100, 97, 100));
    let rarely = Upcoming::new(0, (200, 120, 200));
    let kept = |tasks: &[Upcoming], kept_permille| {
        let mut shield = Shield::new(ShieldConfig {
            overload: OverloadRule::Keep,
            kept_permille,
            ..ShieldConfig::default()
        });
        kept(&mut shield, tasks, 2)
    };
    assert_eq!(kept(&[often, often, rarely], 1000), [0, 1]);
    assert_eq!(kept(&[often, often, rarely], 960), [0, 2]);
    assert_eq!(kept(&[often, often], 960), [0, 1]);
}
