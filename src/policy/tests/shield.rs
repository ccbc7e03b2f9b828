use super::*;
use std::collections::HashMap;

/// Ticks instead of nanoseconds: small numbers make the corners likely.
fn tick_jobs(most: usize, work: i64, deadline: i64) -> impl Strategy<Value = Vec<Job>> {
    let one = (1..=deadline, 1..=work).prop_map(|(d, c)| job(d, c));
    prop::collection::vec(one, 1..=most)
}

fn situation(jobs: &[Job], cpus: usize, hold_ns: i64) -> Situation<'_> {
    Situation {
        now_ns: 0,
        jobs,
        upcoming: &[],
        cpus: CpuMask::first(cpus),
        hold_ns,
    }
}

/// Tick by tick, earliest deadline first, on one core.
fn edf_meets_all(jobs: &[Job], now_ns: i64) -> bool {
    let mut left: Vec<(i64, i64)> = jobs
        .iter()
        .map(|job| (job.deadline_ns, job.remaining_ns))
        .collect();
    let mut now = now_ns;
    loop {
        left.retain(|&(_, remaining)| remaining > 0);
        if left.iter().any(|&(deadline, _)| deadline <= now) {
            return false;
        }
        let Some(first) = left.iter_mut().min() else {
            return true;
        };
        first.1 -= 1;
        now += 1;
    }
}

/// Can all jobs be on time on `cpus` cores? Tries every choice of every tick.
fn any_schedule_meets_all(
    jobs: &[(i64, i64)],
    cpus: usize,
    known: &mut HashMap<Vec<(i64, i64)>, bool>,
) -> bool {
    let left: Vec<(i64, i64)> = jobs.iter().copied().filter(|&(_, c)| c > 0).collect();
    if left.is_empty() {
        return true;
    }
    if left.iter().any(|&(d, c)| c > d) {
        return false;
    }
    if let Some(&answer) = known.get(&left) {
        return answer;
    }
    let answer = (0u32..1 << left.len())
        .filter(|chosen| chosen.count_ones() as usize == cpus.min(left.len()))
        .any(|chosen| any_schedule_meets_all(&after_tick(&left, chosen), cpus, known));
    known.insert(left, answer);
    answer
}

fn after_tick(jobs: &[(i64, i64)], chosen: u32) -> Vec<(i64, i64)> {
    let run = |(i, &(d, c)): (usize, &(i64, i64))| (d - 1, c - i64::from(chosen >> i & 1));
    jobs.iter().enumerate().map(run).collect()
}

fn pairs(jobs: &[Job]) -> Vec<(i64, i64)> {
    jobs.iter()
        .map(|job| (job.deadline_ns, job.remaining_ns))
        .collect()
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn on_one_core_the_test_says_what_edf_can_do(jobs in tick_jobs(6, 5, 20)) {
        let mut shield = Shield::default();
        let verdict = shield.assess(&situation(&jobs, 1, 1));
        let feasible = verdict.feasible && shield.late().is_empty();
        prop_assert_eq!(feasible, edf_meets_all(&jobs, 0));
    }

    #[test]
    fn following_any_unmasked_choice_keeps_a_feasible_core_feasible(
        jobs in tick_jobs(6, 5, 30), hold in 1i64..8,
    ) {
        prop_assume!(edf_meets_all(&jobs, 0));
        let mut shield = Shield::default();
        let verdict = shield.assess(&situation(&jobs, 1, hold));
        for &chosen in shield.candidates() {
            let mut after = jobs.clone();
            let ran = hold.min(after[chosen as usize].remaining_ns);
            after[chosen as usize].remaining_ns -= ran;
            prop_assert!(edf_meets_all(&after, ran), "job {} for {}", chosen, ran);
        }
        if verdict.may_idle {
            prop_assert!(edf_meets_all(&jobs, hold));
        }
    }

    #[test]
    fn what_is_masked_on_one_core_would_have_cost_a_deadline(
        jobs in tick_jobs(6, 5, 30), hold in 1i64..8,
    ) {
        prop_assume!(edf_meets_all(&jobs, 0));
        let mut shield = Shield::default();
        let verdict = shield.assess(&situation(&jobs, 1, hold));
        for &masked in shield.masked() {
            let mut after = jobs.clone();
            let ran = hold.min(after[masked as usize].remaining_ns);
            after[masked as usize].remaining_ns -= ran;
            prop_assert!(!edf_meets_all(&after, ran), "job {} for {}", masked, ran);
        }
        prop_assert_eq!(verdict.may_idle, edf_meets_all(&jobs, hold));
    }

    #[test]
    fn the_edf_choice_is_never_masked_on_a_feasible_set(
        jobs in tick_jobs(8, 5, 40), cpus in 1usize..4, hold in 1i64..50,
        tasks in prop::collection::vec((0i64..10, (1i64..10, 1i64..4, 1i64..20)), 0..5),
    ) {
        let mut shield = Shield::default();
        let upcoming: Vec<Upcoming> = tasks.into_iter()
            .map(|(release_ns, work)| Upcoming::new(release_ns, work))
            .collect();
        let load: f64 = upcoming.iter().map(|task| task.utilisation()).sum();
        prop_assume!(load <= cpus as f64);
        let verdict = shield.assess(&Situation { upcoming: &upcoming, ..situation(&jobs, cpus, hold) });
        prop_assume!(verdict.feasible && shield.late().is_empty());
        let first = jobs.iter().map(|job| job.deadline_ns).min().unwrap();
        for (i, job) in jobs.iter().enumerate() {
            if job.deadline_ns == first {
                prop_assert!(shield.candidates().contains(&(i as u32)));
            }
        }
    }

    #[test]
    fn every_job_stands_somewhere_exactly_once(
        jobs in prop::collection::vec(any_job(4), 0..40), now_ns in any_time(), hold_ns in any_time(),
        admit: bool,
    ) {
        let overload = if admit { OverloadRule::Admit } else { OverloadRule::Fit };
        let mut shield = Shield::new(ShieldConfig { overload, ..ShieldConfig::default() });
        let cpus = CpuMask::first(3);
        shield.assess(&Situation { now_ns, jobs: &jobs, upcoming: &[], cpus, hold_ns });
        let mut all: Vec<u32> = [shield.candidates(), shield.masked(), shield.late()].concat();
        all.sort_unstable();
        let usable = |&i: &u32| jobs[i as usize].allowed.intersects(&cpus);
        let expected: Vec<u32> = (0..jobs.len() as u32).filter(usable).collect();
        prop_assert_eq!(all, expected);
        prop_assert!(shield.must().iter().all(|job| shield.candidates().contains(job)));
    }

    #[test]
    fn permuting_jobs_does_not_change_who_is_masked(
        jobs in tick_jobs(10, 6, 40), turn in 0usize..10, cpus in 1usize..4, hold in 1i64..6,
    ) {
        let turn = turn % jobs.len();
        let mut turned = jobs.clone();
        turned.rotate_left(turn);
        let mut shield = Shield::default();
        let a = shield.assess(&situation(&jobs, cpus, hold));
        // Of two jobs alike in everything, either may be the one given up.
        let mut masked: Vec<_> = shield.masked().iter().map(|&i| pairs(&jobs)[i as usize]).collect();
        let b = shield.assess(&situation(&turned, cpus, hold));
        let mut turned_masked: Vec<_> = shield.masked().iter().map(|&i| pairs(&turned)[i as usize]).collect();
        masked.sort_unstable();
        turned_masked.sort_unstable();
        prop_assert_eq!(masked, turned_masked);
        prop_assert_eq!((a.feasible, a.may_idle), (b.feasible, b.may_idle));
    }
}

proptest! {
    #![proptest_config(cases(100))]

    #[test]
    fn admission_keeps_as_many_as_can_be_on_time(jobs in tick_jobs(7, 5, 12)) {
        let mut shield = Shield::new(ShieldConfig { overload: OverloadRule::Admit, ..ShieldConfig::default() });
        shield.assess(&situation(&jobs, 1, 1));
        let most = (0u32..1 << jobs.len())
            .filter(|kept| {
                let kept: Vec<Job> = (0..jobs.len()).filter(|i| kept >> i & 1 == 1).map(|i| jobs[i]).collect();
                edf_meets_all(&kept, 0)
            })
            .map(u32::count_ones)
            .max()
            .unwrap();
        // Whoever is run among the candidates, as many stay possible.
        for &chosen in shield.candidates() {
            let mut after = jobs.clone();
            after[chosen as usize].remaining_ns -= 1;
            let still = (0u32..1 << jobs.len())
                .filter(|kept| {
                    let kept: Vec<Job> = (0..jobs.len()).filter(|i| kept >> i & 1 == 1).map(|i| after[i]).collect();
                    edf_meets_all(&kept, 1)
                })
                .map(u32::count_ones)
                .max()
                .unwrap();
            prop_assert_eq!(still, most, "running {}", chosen);
        }
    }

    #[test]
    fn on_several_cores_the_test_says_what_any_schedule_can_do(jobs in tick_jobs(6, 4, 7), cpus in 2usize..4) {
        let mut shield = Shield::default();
        let verdict = shield.assess(&situation(&jobs, cpus, 1));
        let possible = any_schedule_meets_all(&pairs(&jobs), cpus, &mut HashMap::new());
        prop_assert_eq!(verdict.feasible && shield.late().is_empty(), possible);
    }

    #[test]
    fn on_several_cores_any_m_unmasked_jobs_keep_the_rest_feasible(jobs in tick_jobs(7, 5, 12), cpus in 2usize..4) {
        let mut shield = Shield::default();
        let verdict = shield.assess(&situation(&jobs, cpus, 1));
        prop_assume!(verdict.feasible && shield.late().is_empty());
        let (candidates, must) = (shield.candidates(), shield.must());
        prop_assert!(must.len() <= cpus);
        prop_assume!(candidates.len() >= cpus);
        let mut known = HashMap::new();
        for chosen in 0u32..1 << jobs.len() {
            let named = |job: &&u32| chosen >> **job & 1 == 1;
            let of_candidates = candidates.iter().filter(named).count();
            let allowed = chosen.count_ones() as usize == cpus
                && of_candidates == cpus
                && must.iter().all(|job| named(&job));
            if allowed {
                let after = after_tick(&pairs(&jobs), chosen);
                prop_assert!(any_schedule_meets_all(&after, cpus, &mut known), "{:b}", chosen);
            }
        }
    }
}

#[test]
fn without_admission_overload_leaves_everybody_who_can_still_make_it() {
    let jobs = [job(10, 8), job(10, 8), job(5, 8), job(100, 1)];
    let mut shield = Shield::new(ShieldConfig {
        overload: OverloadRule::Fit,
        ..ShieldConfig::default()
    });
    let verdict = shield.assess(&situation(&jobs, 1, 1));
    assert!(!verdict.feasible && verdict.overloaded && !verdict.may_idle);
    assert_eq!(shield.candidates(), [0, 1, 3]);
    assert_eq!(shield.late(), [2]);
}

#[test]
fn admission_gives_up_the_longest_and_never_the_critical_one() {
    let admit = ShieldConfig {
        overload: OverloadRule::Admit,
        ..ShieldConfig::default()
    };
    let mut jobs = [job(10, 9), job(10, 3), job(12, 5)];
    let mut shield = Shield::new(admit);
    shield.assess(&situation(&jobs, 1, 1));
    assert_eq!(shield.masked(), [0]);
    jobs[0].criticality = 1;
    shield.assess(&situation(&jobs, 1, 1));
    assert_eq!(shield.candidates(), [0]);
    assert_eq!(shield.masked().len(), 2);
}

#[test]
fn room_is_kept_for_a_job_that_is_yet_to_come() {
    // Without the upcoming job, the second may run first (margin 5 of 5). With
    // it, EDF would have met all three and that choice would have lost one.
    let jobs = [job(10, 5), job(20, 5)];
    let upcoming = [Upcoming::new(5, (4, 3, 100))];
    let mut shield = Shield::default();
    let blind = situation(&jobs, 1, 5);
    shield.assess(&blind);
    assert_eq!(shield.candidates(), [0, 1]);
    shield.assess(&Situation {
        upcoming: &upcoming,
        ..blind
    });
    assert_eq!(shield.candidates(), [0]);
}

#[test]
fn a_long_job_makes_way_for_short_ones_to_come_where_not_all_can_be_met() {
    // Both pending jobs fit, and so would one of those to come; not all.
    let jobs = [job(10, 9), job(20, 5)];
    let busy = Upcoming::new(1, (8, 4, 8));
    let mut shield = Shield::default();
    let verdict = shield.assess(&Situation {
        upcoming: &[busy, Upcoming::new(2, (9, 5, 8))],
        ..situation(&jobs, 1, 1)
    });
    assert!(verdict.feasible, "overload is what is here already");
    assert_eq!(shield.candidates(), [1]);
    assert_eq!(shield.masked(), [0]);
    // Alone that task leaves room for both.
    shield.assess(&Situation {
        upcoming: &[Upcoming::new(1, (40, 4, 40))],
        ..situation(&jobs, 1, 1)
    });
    assert_eq!(shield.candidates(), [0, 1]);
}

#[test]
fn room_is_kept_for_what_is_planned_of_too_much_to_come() {
    // In overload the job due at 12 and the short one to come both stay; to run
    // the later job first would cost one of them.
    let jobs = [job(12, 6), job(30, 6)];
    let upcoming = [
        Upcoming::new(4, (6, 4, 40)),
        Upcoming::new(35, (40, 39, 40)),
    ];
    let mut shield = Shield::default();
    shield.assess(&Situation {
        upcoming: &upcoming,
        ..situation(&jobs, 1, 4)
    });
    assert_eq!(shield.candidates(), [0]);
    assert_eq!(shield.masked(), [1]);
}

fn keeping() -> Shield {
    Shield::new(ShieldConfig {
        overload: OverloadRule::Keep,
        ..ShieldConfig::default()
    })
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
fn a_stranger_may_borrow_a_cpu_only_within_the_margin_of_its_bound_jobs() {
    let bound = |deadline, remaining| Job {
        allowed: CpuMask::only(0),
        ..job(deadline, remaining)
    };
    let tight = [bound(10, 8), job(100, 5)];
    let mut shield = Shield::default();
    shield.assess(&situation(&tight, 2, 5));
    assert_eq!(shield.permitted()[1], CpuMask::only(1));
    let loose = [bound(10, 4), job(100, 5)];
    shield.assess(&situation(&loose, 2, 5));
    assert_eq!(shield.permitted()[1], CpuMask::first(2));
}

#[test]
fn who_has_a_cpu_to_himself_is_never_given_up() {
    let task = |cpu, behind| Upcoming {
        allowed: CpuMask::only(cpu),
        behind,
        ..Upcoming::new(0, (10_000_000, 9_000_000, 10_000_000))
    };
    let kept = |tasks: &[Upcoming], cpus| {
        let mut shield = keeping();
        shield.assess(&Situation {
            upcoming: tasks,
            ..situation(&[], cpus, 1)
        });
        let kept = |&task: &usize| shield.keeps_task(task);
        (0..tasks.len()).filter(kept).collect::<Vec<_>>()
    };
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
        shield.assess(&Situation {
            upcoming: tasks,
            ..situation(&[], 2, 1)
        });
        let kept = |&task: &usize| shield.keeps_task(task);
        (0..tasks.len()).filter(kept).collect::<Vec<_>>()
    };
    assert_eq!(kept(&[often, often, rarely], 1000), [0, 1]);
    assert_eq!(kept(&[often, often, rarely], 960), [0, 2]);
    assert_eq!(kept(&[often, often], 960), [0, 1]);
}
