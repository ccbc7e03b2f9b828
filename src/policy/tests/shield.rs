use super::*;
use std::collections::HashMap;

/// Ticks instead of nanoseconds: small numbers make the corners likely.
fn tick_jobs(most: usize, work: i64, deadline: i64) -> impl Strategy<Value = Vec<Job>> {
    let one = (1..=deadline, 1..=work).prop_map(|(d, c)| job(d, c));
    prop::collection::vec(one, 1..=most)
}

pub fn situation(jobs: &[Job], cpus: usize, hold_ns: i64) -> Situation<'_> {
    Situation {
        now_ns: 0,
        jobs,
        upcoming: &[],
        cpus: CpuMask::first(cpus),
        share: 1.0,
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
        shield.assess(&Situation { now_ns, jobs: &jobs, upcoming: &[], cpus, share: 1.0, hold_ns });
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
