use super::*;
use proptest::test_runner::TestRng;

/// Scores from a list, over and over: any opinion at all.
struct Whim {
    scores: Vec<f32>,
    at: usize,
}

impl Scorer for Whim {
    fn score(&mut self, _: &Context<'_>, scores: &mut [f32]) {
        for score in scores {
            *score = self.scores[self.at % self.scores.len()];
            self.at += 1;
        }
    }
}

#[derive(Debug, Clone)]
struct Task {
    offset: i64,
    period: i64,
    deadline: i64,
    runtime: i64,
    allowed: CpuMask,
    /// Extra time between releases, in turn: sporadic where not all zero.
    delays: Vec<i64>,
}

/// A small machine: unit ticks, jobs go on when late, decisions at every
/// release and completion, and whenever the last has stood for `hold` ticks.
/// Returns misses per task.
fn misses(
    tasks: &[Task],
    cpus: usize,
    hold: i64,
    ticks: i64,
    decider: &mut Decider,
    scorer: &mut dyn Scorer,
) -> Vec<usize> {
    let mut next_release: Vec<i64> = tasks.iter().map(|task| task.offset).collect();
    let mut released = vec![0usize; tasks.len()];
    let mut pending: Vec<(usize, Job)> = Vec::new();
    let mut running: Vec<Option<(usize, i64)>> = vec![None; cpus];
    let mut missed = vec![0; tasks.len()];
    let mut decide_at = 0;
    for now in 0..ticks {
        for (i, task) in tasks.iter().enumerate() {
            if next_release[i] == now {
                pending.push((
                    i,
                    Job {
                        allowed: task.allowed,
                        ..job(now + task.deadline, task.runtime)
                    },
                ));
                next_release[i] += task.period + task.delays[released[i] % task.delays.len()];
                released[i] += 1;
                decide_at = now;
            }
        }
        let completed = pending.iter().any(|(_, job)| job.remaining_ns == 0);
        for &(task, ref job) in pending.iter().filter(|(_, job)| job.remaining_ns == 0) {
            missed[task] += (job.deadline_ns < now) as usize;
        }
        pending.retain(|(_, job)| job.remaining_ns > 0);
        if completed || now >= decide_at {
            decide_at = now + hold;
            let jobs: Vec<Job> = pending.iter().map(|&(_, job)| job).collect();
            // What the world promises: not before one period after the last release.
            let upcoming: Vec<Upcoming> = tasks
                .iter()
                .enumerate()
                .map(|(i, task)| Upcoming {
                    allowed: task.allowed,
                    ..Upcoming::new(
                        match released[i] {
                            0 => task.offset,
                            n => next_release[i] - task.delays[(n - 1) % task.delays.len()],
                        },
                        (task.deadline, task.runtime, task.period),
                    )
                })
                .collect();
            let situation = Situation {
                now_ns: now,
                jobs: &jobs,
                upcoming: &upcoming,
                cpus: CpuMask::first(cpus),
                share: 1.0,
                hold_ns: hold,
            };
            let decision = decider.decide(scorer, &situation);
            assert_valid(&decision.assignment, &jobs, &situation.cpus);
            for (cpu, slot) in running.iter_mut().enumerate() {
                *slot = decision
                    .assignment
                    .job_on(cpu as CpuId)
                    .map(|i| (pending[i].0, jobs[i].deadline_ns));
            }
        }
        for (cpu, slot) in running.iter().enumerate() {
            let Some((task, deadline)) = *slot else {
                continue;
            };
            let found = pending
                .iter_mut()
                .find(|(i, job)| *i == task && job.deadline_ns == deadline);
            if let Some((_, job)) = found {
                job.remaining_ns -= (job.remaining_ns > 0) as i64;
                job.last_cpu = Some(cpu as CpuId);
            }
        }
    }
    for (task, job) in pending {
        missed[task] += (job.deadline_ns < ticks) as usize;
    }
    missed
}

/// Implicit-deadline tasks that fill a core to at most `most`.
fn core_load(most: f64, allowed: CpuMask) -> impl Strategy<Value = Vec<Task>> {
    let task = (
        2i64..25,
        1i64..8,
        0i64..20,
        prop::collection::vec(0i64..6, 1..5),
        any::<bool>(),
    );
    prop::collection::vec(task, 1..6).prop_map(move |rows| {
        let mut load = 0.0;
        let mut tasks = Vec::new();
        for (period, runtime, offset, delays, sporadic) in rows {
            let runtime = runtime.min(period);
            let with = load + runtime as f64 / period as f64;
            if with <= most {
                load = with;
                let delays = if sporadic { delays } else { vec![0] };
                tasks.push(Task {
                    offset,
                    period,
                    deadline: period,
                    runtime,
                    allowed,
                    delays,
                });
            }
        }
        tasks
    })
}

fn whim() -> impl Strategy<Value = Vec<f32>> {
    prop::collection::vec(any_score(), 1..50)
}

proptest! {
    #![proptest_config(cases(40))]

    #[test]
    fn whatever_the_scores_no_deadline_is_lost_that_edf_would_have_met(
        tasks in core_load(1.0, CpuMask::ALL), scores in whim(), may_idle: bool, hold in 1i64..9,
    ) {
        let mut decider = Decider::new(PolicyConfig { may_idle, ..PolicyConfig::default() });
        let missed = misses(&tasks, 1, hold, 500, &mut decider, &mut Whim { scores, at: 0 });
        prop_assert_eq!(missed.iter().sum::<usize>(), 0);
    }

    #[test]
    fn deadlines_shorter_than_periods_are_kept_too(
        mut tasks in core_load(0.9, CpuMask::ALL), scores in whim(), cut in 1i64..4, hold in 1i64..9,
    ) {
        for task in &mut tasks {
            task.deadline = (task.deadline - cut).max(task.runtime);
            task.delays = vec![0];
        }
        let edf = misses(&tasks, 1, 1, 600, &mut Decider::new(PolicyConfig::default()), &mut Edf);
        // Feasible for every release pattern, not only for this one.
        let demand = |at: i64| tasks.iter()
            .filter(|task| task.deadline <= at)
            .map(|task| ((at - task.deadline) / task.period + 1) * task.runtime)
            .sum::<i64>();
        prop_assume!((1..600).all(|at| demand(at) <= at));
        prop_assert_eq!(edf.iter().sum::<usize>(), 0);
        let mut decider = Decider::new(PolicyConfig::default());
        let missed = misses(&tasks, 1, hold, 500, &mut decider, &mut Whim { scores, at: 0 });
        prop_assert_eq!(missed.iter().sum::<usize>(), 0);
    }

    #[test]
    fn a_partitioned_machine_gets_the_one_core_promise_on_every_core(
        left in core_load(1.0, CpuMask::only(0)), right in core_load(1.0, CpuMask::only(1)),
        stranger in 1i64..30, scores in whim(), hold in 1i64..9,
    ) {
        let mut tasks = [left, right].concat();
        let bound = tasks.len();
        tasks.push(Task {
            offset: 0, period: 40, deadline: 40, runtime: stranger, allowed: CpuMask::ALL, delays: vec![0],
        });
        let mut decider = Decider::new(PolicyConfig {
            // The stranger may become late, and a late job's bound comes before all.
            late: LateConfig { bound_ns: i64::MAX },
            ..PolicyConfig::default()
        });
        let missed = misses(&tasks, 2, hold, 400, &mut decider, &mut Whim { scores, at: 0 });
        prop_assert_eq!(missed[..bound].iter().sum::<usize>(), 0);
    }

    #[test]
    fn any_situation_and_any_opinion_give_a_valid_work_conserving_decision(
        jobs in prop::collection::vec(any_job(5), 0..40), now_ns in any_time(), hold_ns in any_time(),
        tasks in prop::collection::vec((any_time(), any_time(), any_time(), any_time(), any_mask(5)), 0..6),
        scores in whim(), shield: bool, sinkhorn: bool, admit: bool, price in any_score(),
    ) {
        let upcoming: Vec<Upcoming> = tasks.into_iter()
            .map(|(release_ns, deadline_ns, runtime_ns, period_ns, allowed)| Upcoming { allowed, ..Upcoming::new(release_ns, (deadline_ns, runtime_ns, period_ns)) })
            .collect();
        let mut decider = Decider::new(PolicyConfig {
            shield: if shield { ShieldMode::On } else { ShieldMode::Off },
            shield_config: ShieldConfig {
                overload: if admit { OverloadRule::Admit } else { OverloadRule::Fit },
                ..ShieldConfig::default()
            },
            mapping: MappingConfig {
                kind: if sinkhorn { MappingKind::Sinkhorn } else { MappingKind::Greedy },
                migration_price: price,
                ..MappingConfig::default()
            },
            ..PolicyConfig::default()
        });
        let situation = Situation { now_ns, jobs: &jobs, upcoming: &upcoming, cpus: CpuMask::first(4), share: 1.0, hold_ns };
        let decision = decider.decide(&mut Whim { scores, at: 0 }, &situation);
        assert_valid(&decision.assignment, &jobs, &situation.cpus);
        for (i, job) in jobs.iter().enumerate() {
            let waits = decision.assignment.cpu_of(i).is_none();
            prop_assert!(!waits || !job.allowed.intersects(decision.assignment.free()), "job {}", i);
        }
    }

    #[test]
    fn a_scorer_without_opinion_leaves_edf(jobs in plain_jobs(20), cpus in 1usize..5) {
        for mut scorer in [Whim { scores: vec![f32::NAN], at: 0 }, Whim { scores: vec![0.0], at: 0 }] {
            let mut decider = Decider::new(PolicyConfig { shield: ShieldMode::Off, ..PolicyConfig::default() });
            let situation = Situation { now_ns: 0, jobs: &jobs, upcoming: &[], cpus: CpuMask::first(cpus), share: 1.0, hold_ns: 1_000_000 };
            let decision = decider.decide(&mut scorer, &situation);
            let mut order: Vec<usize> = (0..jobs.len()).collect();
            order.sort_by_key(|&i| jobs[i].deadline_ns);
            let mut ran: Vec<usize> = decision.assignment.iter().map(|(_, i)| i).collect();
            ran.sort_by_key(|&i| (jobs[i].deadline_ns, i));
            prop_assert_eq!(ran, &order[..jobs.len().min(cpus)]);
        }
    }
}

#[test]
fn late_jobs_neither_block_nor_starve() {
    // Two tasks that fill the core, and one job that was late from the start.
    let task = |period, runtime, deadline| Task {
        offset: 0,
        period,
        deadline,
        runtime,
        allowed: CpuMask::ALL,
        delays: vec![0],
    };
    let tasks = [task(4, 2, 4), task(6, 3, 6), task(100_000, 5, 1)];
    let config = |bound_ns| PolicyConfig {
        late: LateConfig { bound_ns },
        ..PolicyConfig::default()
    };
    let count = |bound| {
        misses(
            &tasks,
            1,
            1,
            1200,
            &mut Decider::new(config(bound)),
            &mut DistilledRule::default(),
        )
    };
    assert_eq!(count(i64::MAX), [0, 0, 1]);
    // One tick in fifty: the late job is done after 250, and costs little.
    let bounded = count(50);
    assert!(
        bounded[0] + bounded[1] > 0,
        "the core was full: {bounded:?}"
    );
    let mut decider = Decider::new(config(50));
    let jobs = [job(10, 10), job(-5, 3)];
    let mut served = Vec::new();
    for now_ns in 0..200 {
        let jobs = jobs.map(|job| Job {
            deadline_ns: job.deadline_ns.max(0) + now_ns * (job.deadline_ns > 0) as i64,
            ..job
        });
        let situation = Situation {
            now_ns,
            jobs: &jobs,
            upcoming: &[],
            cpus: CpuMask::first(1),
            share: 1.0,
            hold_ns: 1,
        };
        if decider.decide(&mut Edf, &situation).assignment.job_on(0) == Some(1) {
            served.push(now_ns);
        }
    }
    assert_eq!(served, [50, 100, 150]);
}

#[test]
fn nobody_is_asked_when_everybody_can_run() {
    struct Never;
    impl Scorer for Never {
        fn score(&mut self, _: &Context<'_>, _: &mut [f32]) {
            panic!("nothing to decide");
        }
    }
    let jobs = [job(10, 3), job(20, 3), job(-5, 3)];
    let situation = Situation {
        now_ns: 0,
        jobs: &jobs,
        upcoming: &[],
        cpus: CpuMask::first(4),
        share: 1.0,
        hold_ns: 1,
    };
    let mut decider = Decider::new(PolicyConfig::default());
    let decision = decider.decide(&mut Never, &situation);
    assert!(!decision.scored);
    assert_eq!(decision.assignment.running(), 3);
}

#[test]
fn in_a_burst_long_slack_gets_its_bonus() {
    // Half the jobs at the edge; the long one is a whisker behind in score.
    let mut jobs = vec![job(1_000_000, 999_999); 4];
    jobs.extend([job(10_000_000_000, 1_000_000); 4]);
    let situation = Situation {
        now_ns: 0,
        jobs: &jobs,
        upcoming: &[],
        cpus: CpuMask::first(1),
        share: 1.0,
        hold_ns: 1000,
    };
    let scores = vec![0.0, 0.5, 0.5, 0.5, 1.0, 0.98, 0.0, 0.0, 0.0];
    for (share_of_spread, chosen) in [(0.0, 3), (0.05, 4)] {
        let mut decider = Decider::new(PolicyConfig {
            shield: ShieldMode::Off,
            reserve: LongSlackReserve { share_of_spread },
            ..PolicyConfig::default()
        });
        let decision = decider.decide(
            &mut Whim {
                scores: scores.clone(),
                at: 0,
            },
            &situation,
        );
        assert!(decision.burst);
        assert_eq!(decision.assignment.job_on(0), Some(chosen));
    }
}

#[test]
fn decisions_repeat_from_the_same_state() {
    let mut rng = TestRng::deterministic_rng(proptest::test_runner::RngAlgorithm::ChaCha);
    let jobs: Vec<Job> = (0..200)
        .map(|_| {
            let draw = rng.next_u64();
            job((draw % 50_000_000) as i64, (draw >> 40) as i64 % 3_000_000)
        })
        .collect();
    let situation = Situation {
        now_ns: 0,
        jobs: &jobs,
        upcoming: &[],
        cpus: CpuMask::first(8),
        share: 1.0,
        hold_ns: 100_000,
    };
    let decider = Decider::new(PolicyConfig::default());
    let places = |mut decider: Decider| -> Vec<(CpuId, usize)> {
        let decision = decider.decide(&mut DistilledRule::default(), &situation);
        decision.assignment.iter().collect()
    };
    assert_eq!(places(decider.clone()), places(decider));
}
