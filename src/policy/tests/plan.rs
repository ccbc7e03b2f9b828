//! Which tasks are kept where late jobs go on, and by when a task that is behind is due.

use super::*;
use crate::policy::linux::Margins;

const MS: i64 = 1_000_000;

fn planning() -> Decider {
    Decider::new(PolicyConfig {
        shield_config: ShieldConfig {
            overload: OverloadRule::Keep,
            margins: Margins::NONE,
            ..ShieldConfig::default()
        },
        ..PolicyConfig::default()
    })
}

/// A task of `work` of `period` ms, due at the end of its period, released now.
fn task(work: f64, period: f64) -> Upcoming {
    let ns = |ms: f64| (ms * MS as f64) as i64;
    Upcoming::new(0, (ns(period), ns(work), ns(period)))
}

fn told<'a>(jobs: &'a [Job], upcoming: &'a [Upcoming], cpus: usize) -> Situation<'a> {
    Situation {
        now_ns: 0,
        jobs,
        upcoming,
        cpus: CpuMask::first(cpus),
        share: 1.0,
        hold_ns: MS,
    }
}

fn standings(decider: &mut Decider, situation: &Situation<'_>) -> Vec<Standing> {
    decider.decide(&mut Edf, situation);
    let all = 0..situation.upcoming.len();
    all.map(|task| decider.standing(task)).collect()
}

/// The places of those that are kept, with nothing pending.
fn kept(tasks: &[Upcoming], cpus: usize, share: f64) -> Vec<usize> {
    let situation = Situation {
        share,
        ..told(&[], tasks, cpus)
    };
    let all = standings(&mut planning(), &situation);
    (0..all.len()).filter(|&at| all[at].kept).collect()
}

#[test]
fn whole_tasks_are_given_up_and_critical_ones_last() {
    let tasks = [task(20.0, 40.0), task(30.0, 60.0), task(30.0, 100.0)];
    // 25 and 17 jobs a second fit exactly; the third task does not.
    assert_eq!(kept(&tasks, 1, 1.0), [0, 1]);
    let mut critical = tasks;
    critical[2].criticality = 1;
    assert_eq!(kept(&critical, 1, 1.0), [0, 2]);
}

#[test]
fn what_this_machine_gives_decides_not_what_a_cpu_has() {
    let tasks = [task(20.0, 40.0), task(28.0, 60.0)];
    assert_eq!(kept(&tasks, 1, 1.0), [0, 1]);
    assert_eq!(kept(&tasks, 1, 0.95), [0]);
}

#[test]
fn no_task_is_given_up_for_what_was_only_declared() {
    let unseen = |work, period| Upcoming {
        unseen: true,
        ..task(work, period)
    };
    assert_eq!(
        kept(&[unseen(60.0, 100.0), unseen(50.0, 100.0)], 1, 1.0),
        [0, 1]
    );
    // Nor for work that varies: the least of it fits.
    let varies = Upcoming {
        spread_ns: 20 * MS,
        ..task(55.0, 100.0)
    };
    assert_eq!(kept(&[varies, task(48.0, 100.0)], 1, 1.0), [0, 1]);
    assert_eq!(
        kept(&[task(55.0, 100.0), task(48.0, 100.0)], 1, 1.0).len(),
        1
    );
}

#[test]
fn tasks_bound_to_a_full_cpu_are_given_up_while_another_idles() {
    let bound = |work| Upcoming {
        allowed: CpuMask::only(0),
        ..task(work, 40.0)
    };
    assert_eq!(
        kept(&[bound(20.0), bound(21.0), bound(22.0)], 2, 1.0).len(),
        1
    );
    assert_eq!(
        kept(&[bound(20.0), bound(19.0), bound(22.0)], 2, 1.0),
        [0, 1]
    );
}

#[test]
fn who_has_a_cpu_to_itself_is_never_given_up() {
    assert_eq!(kept(&[task(50.0, 40.0)], 1, 1.0), [0]);
    assert_eq!(kept(&[task(50.0, 40.0), task(60.0, 40.0)], 2, 1.0), [0, 1]);
    let bound = |cpu| Upcoming {
        allowed: CpuMask::only(cpu),
        ..task(50.0, 40.0)
    };
    assert_eq!(kept(&[bound(0), bound(1)], 2, 1.0), [0, 1]);
    assert_eq!(kept(&[bound(0), bound(1), bound(1)], 2, 1.0), [0]);
    assert_eq!(kept(&[bound(0), bound(0)], 2, 1.0), [] as [usize; 0]);
}

#[test]
fn who_is_behind_is_due_when_the_others_leave_it_room() {
    // The first was to end 30 ms ago and has 25 ms left; the second is on time.
    let jobs = [job(-30 * MS, 25 * MS), job(20 * MS, 10 * MS)];
    let tasks = [
        Upcoming {
            pending: Some(0),
            release_ns: -30 * MS,
            ..task(30.0, 50.0)
        },
        Upcoming {
            pending: Some(1),
            release_ns: 20 * MS,
            ..task(6.0, 20.0)
        },
    ];
    let mut decider = planning();
    let all = standings(&mut decider, &told(&jobs, &tasks, 1));
    assert!(all[0].kept && all[1].kept);
    assert!(
        all[1].due_ns <= jobs[1].deadline_ns,
        "nobody is late for it"
    );
    // Its next jobs are due at 20, 70, 120 ms: 25 + 60 ms fit beside the other by 170.
    assert!(
        all[0].due_ns > 70 * MS && all[0].due_ns < 1000 * MS,
        "{:?}",
        all[0]
    );
    assert_eq!(
        (all[0].due_ns - 20 * MS) % (50 * MS),
        0,
        "with one of its jobs"
    );
    // And the one that is on time runs first.
    assert_eq!(decider.decision().assignment.job_on(0), Some(1));
}

#[test]
fn who_can_never_catch_up_beside_the_others_is_given_up() {
    let jobs = [job(-30 * MS, 25 * MS), job(20 * MS, 10 * MS)];
    let tasks = [
        Upcoming {
            pending: Some(0),
            release_ns: -30 * MS,
            ..task(26.0, 50.0)
        },
        Upcoming {
            pending: Some(1),
            release_ns: 20 * MS,
            ..task(10.0, 20.0)
        },
    ];
    let all = standings(&mut planning(), &told(&jobs, &tasks, 1));
    assert_eq!(all.map_kept(), [false, true]);
}

#[test]
fn who_was_kept_stays_while_estimates_move_a_little() {
    let mut decider = planning();
    let mut before = vec![Standing::default(); 3];
    let mut kept = |works: [f64; 3]| {
        let mut tasks = works.map(|work| task(work, 40.0));
        for (task, &standing) in tasks.iter_mut().zip(&before) {
            task.standing = standing;
        }
        before = standings(&mut decider, &told(&[], &tasks, 1));
        before.map_kept()
    };
    assert_eq!(kept([19.0, 20.0, 20.5]), [true, true, false]);
    assert_eq!(kept([19.0, 20.5, 20.2]), [true, true, false]);
    assert_eq!(
        kept([19.0, 30.0, 20.0]),
        [true, false, true],
        "that is too much"
    );
    assert_eq!(kept([10.0, 10.0, 10.0]), [true, true, true]);
}

trait Kept {
    fn map_kept(&self) -> Vec<bool>;
}

impl Kept for Vec<Standing> {
    fn map_kept(&self) -> Vec<bool> {
        self.iter().map(|standing| standing.kept).collect()
    }
}

fn works() -> impl Strategy<Value = Vec<(i64, i64)>> {
    prop::collection::vec((1i64..60, 5i64..60), 2..9)
}

proptest! {
    #![proptest_config(cases(300))]
    #[test]
    fn a_task_that_is_given_up_does_not_fit_beside_all_others(works in works(), cpus in 1usize..4) {
        let tasks: Vec<Upcoming> = works.iter()
            .map(|&(work, period)| task(work as f64, period as f64)).collect();
        let load: f64 = works.iter().map(|&(work, period)| work as f64 / period as f64).sum();
        let kept = kept(&tasks, cpus, 1.0);
        let fits = load <= cpus as f64 && works.iter().all(|&(work, period)| work <= period);
        if fits || tasks.len() <= cpus {
            prop_assert_eq!(kept.len(), tasks.len());
        } else if load > cpus as f64 * 1.002 {
            prop_assert!(kept.len() < tasks.len());
        }
        let of_kept: f64 = kept.iter().map(|&at| works[at].0 as f64 / works[at].1 as f64).sum();
        prop_assert!(of_kept <= cpus as f64 * 1.0011 || tasks.len() <= cpus);
    }

    #[test]
    fn any_situation_at_all_is_planned(
        jobs in prop::collection::vec(any_job(3), 0..20), times in prop::collection::vec((any_time(), any_time(), any_time(), any_time()), 20),
        share in 0.0f64..1.0, now_ns in any_time(),
    ) {
        let tasks: Vec<Upcoming> = jobs.iter().enumerate().zip(&times).map(|((at, job), time)| Upcoming {
            pending: Some(at as u32),
            spread_ns: time.3,
            allowed: job.allowed,
            standing: Standing { kept: at % 3 > 0, due_ns: time.1 },
            ..Upcoming::new(time.0, (time.1, time.2, time.3))
        }).collect();
        let mut decider = planning();
        let situation = Situation { now_ns, share, ..told(&jobs, &tasks, 3) };
        decider.decide(&mut Edf, &situation);
        assert_valid(&decider.decision().assignment, &jobs, &situation.cpus);
    }
}
