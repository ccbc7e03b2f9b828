use super::*;
use crate::policy::mapping::{argmax, Mapper, Problem};

const CPUS: usize = 6;

fn mapper(kind: MappingKind, migration_price: f32) -> Mapper {
    Mapper::new(MappingConfig {
        kind,
        migration_price,
        ..MappingConfig::default()
    })
}

fn run(
    mapper: &mut Mapper,
    jobs: &[Job],
    scores: &[f32],
    cpus: &CpuMask,
    may_idle: bool,
) -> Assignment {
    let candidates: Vec<u32> = (0..jobs.len() as u32).collect();
    let permitted: Vec<CpuMask> = jobs.iter().map(|job| job.allowed.and(cpus)).collect();
    let problem = Problem {
        jobs,
        scores,
        candidates: &candidates,
        permitted: &permitted,
        may_idle,
    };
    let mut assignment = Assignment::default();
    assignment.reset(jobs.len(), cpus);
    mapper.map(&problem, &mut assignment);
    assignment
}

fn with_scores(most: usize) -> impl Strategy<Value = (Vec<Job>, Vec<f32>)> {
    prop::collection::vec((any_job(CPUS), any_score()), 0..most)
        .prop_flat_map(|rows| (Just(rows), any_score()))
        .prop_map(|(rows, idle)| {
            let (jobs, scores): (Vec<Job>, Vec<f32>) = rows.into_iter().unzip();
            (jobs, std::iter::once(idle).chain(scores).collect())
        })
}

/// Best total of scores over all ways to seat jobs, by trying them.
fn best_total(jobs: &[Job], scores: &[f32], cpus: &[CpuId], price: f32) -> f32 {
    let Some((&cpu, rest)) = cpus.split_first() else {
        return 0.0;
    };
    let mut best = best_total(jobs, scores, rest, price);
    for (i, job) in jobs.iter().enumerate() {
        if job.allowed.contains(cpu) {
            let moved = job.last_cpu.is_some_and(|last| last != cpu);
            let mut others = jobs.to_vec();
            others[i].allowed = CpuMask::EMPTY;
            let worth = scores[i] - if moved { price } else { 0.0 };
            best = best.max(worth + best_total(&others, scores, rest, price));
        }
    }
    best
}

fn worth(assignment: &Assignment, jobs: &[Job], scores: &[f32], price: f32) -> f32 {
    assignment
        .iter()
        .map(|(cpu, i)| {
            let moved = jobs[i].last_cpu.is_some_and(|last| last != cpu);
            scores[1 + i] - if moved { price } else { 0.0 }
        })
        .sum()
}

proptest! {
    #[test]
    fn any_scores_give_a_valid_assignment(
        (jobs, scores) in with_scores(40),
        cpus in prop::collection::vec(0..CPUS as CpuId, 0..CPUS).prop_map(CpuMask::from_iter),
        price in any_score(),
        may_idle: bool,
    ) {
        for kind in [MappingKind::Greedy, MappingKind::Sinkhorn] {
            let assignment = run(&mut mapper(kind, price), &jobs, &scores, &cpus, may_idle);
            assert_valid(&assignment, &jobs, &cpus);
            if !may_idle {
                for (i, job) in jobs.iter().enumerate() {
                    prop_assert!(
                        assignment.cpu_of(i).is_some() || !job.allowed.intersects(assignment.free()),
                        "job {} waits beside a free CPU", i
                    );
                }
            }
        }
    }

    #[test]
    fn without_a_price_greedy_runs_the_best_set_there_is(
        (jobs, scores) in prop::collection::vec((any_job(3), 0.0f32..5.0), 0..7)
            .prop_map(|rows| rows.into_iter().unzip::<_, _, Vec<_>, Vec<_>>()),
    ) {
        let cpus = CpuMask::first(3);
        let best = best_total(&jobs, &scores, &[0, 1, 2], 0.0);
        let scores: Vec<f32> = std::iter::once(0.0).chain(scores).collect();
        let greedy = run(&mut mapper(MappingKind::Greedy, 0.0), &jobs, &scores, &cpus, false);
        prop_assert!((worth(&greedy, &jobs, &scores, 0.0) - best).abs() < 1e-4);
    }

    #[test]
    fn sinkhorn_is_never_worth_less_than_greedy(
        (jobs, scores) in prop::collection::vec((any_job(4), 0.0f32..5.0), 0..12)
            .prop_map(|rows| rows.into_iter().unzip::<_, _, Vec<_>, Vec<_>>()),
        price in 0.0f32..2.0,
    ) {
        let cpus = CpuMask::first(4);
        let scores: Vec<f32> = std::iter::once(0.0).chain(scores).collect();
        let [greedy, sinkhorn] = [MappingKind::Greedy, MappingKind::Sinkhorn]
            .map(|kind| run(&mut mapper(kind, price), &jobs, &scores, &cpus, false));
        prop_assert!(sinkhorn.running() >= greedy.running());
        let gain = worth(&sinkhorn, &jobs, &scores, price) - worth(&greedy, &jobs, &scores, price);
        prop_assert!(sinkhorn.running() > greedy.running() || gain > -1e-4);
    }

    #[test]
    fn permuting_jobs_permutes_the_assignment(
        rows in prop::collection::vec((0u16..CPUS as u16, any_mask(CPUS)), 1..30), turn in 0usize..30,
        price in 0.0f32..1.0,
    ) {
        // Scores that differ: between equals the order given decides.
        let jobs: Vec<Job> = rows.iter()
            .map(|&(last, allowed)| Job { last_cpu: Some(last), allowed, ..job(0, 0) })
            .collect();
        let scores: Vec<f32> = (0..jobs.len()).map(|i| (i * 7919 % 101) as f32 / 10.0 + i as f32 * 1e-3).collect();
        let turn = turn % jobs.len();
        let (mut turned, mut turned_scores) = (jobs.clone(), scores.clone());
        turned.rotate_left(turn);
        turned_scores.rotate_left(turn);
        let idle_first = |scores: Vec<f32>| std::iter::once(0.0).chain(scores).collect::<Vec<f32>>();
        let cpus = CpuMask::first(CPUS);
        for kind in [MappingKind::Greedy] {
            let a = run(&mut mapper(kind, price), &jobs, &idle_first(scores.clone()), &cpus, false);
            let b = run(&mut mapper(kind, price), &turned, &idle_first(turned_scores.clone()), &cpus, false);
            for (cpu, i) in b.iter() {
                prop_assert_eq!(a.job_on(cpu), Some((i + turn) % jobs.len()));
            }
            prop_assert_eq!(a.running(), b.running());
        }
    }

    #[test]
    fn one_cpu_without_affinity_is_argmax(scores in prop::collection::vec(any_score(), 1..20)) {
        let jobs = vec![job(0, 0); scores.len() - 1];
        let cpus = CpuMask::only(3);
        let assignment = run(&mut mapper(MappingKind::Greedy, 0.0), &jobs, &scores, &cpus, true);
        prop_assert_eq!(assignment.job_on(3), argmax(&scores));
    }
}

#[test]
fn jobs_stay_where_they_were_unless_moving_pays() {
    let home = |cpu| Job {
        last_cpu: Some(cpu),
        ..job(0, 0)
    };
    let cpus = CpuMask::first(2);
    let jobs = [home(0), home(0), home(1)];
    let mut mapper = mapper(MappingKind::Greedy, 1.0);
    // Worth moving: 5 − 1 > 3. Not worth moving: 3.5 − 1 < 3.
    let moved = run(&mut mapper, &jobs, &[0.0, 6.0, 5.0, 3.0], &cpus, false);
    assert_eq!((moved.job_on(0), moved.job_on(1)), (Some(0), Some(1)));
    let stayed = run(&mut mapper, &jobs, &[0.0, 6.0, 3.5, 3.0], &cpus, false);
    assert_eq!((stayed.job_on(0), stayed.job_on(1)), (Some(0), Some(2)));
}

#[test]
fn a_migrant_makes_room_for_the_one_at_home() {
    let home = |cpu| Job {
        last_cpu: Some(cpu),
        ..job(0, 0)
    };
    let jobs = [home(2), home(2), home(0), home(1)];
    let scores = [0.0, 9.0, 8.0, 7.0, 6.0];
    let cpus = CpuMask::first(4);
    let assignment = run(
        &mut mapper(MappingKind::Greedy, 0.1),
        &jobs,
        &scores,
        &cpus,
        false,
    );
    let places: Vec<_> = (0..4).map(|i| assignment.cpu_of(i)).collect();
    assert_eq!(places, [Some(2), Some(3), Some(0), Some(1)]);
}

#[test]
fn a_job_bound_to_a_taken_cpu_moves_the_free_one_over() {
    let mut jobs = [job(0, 0), job(0, 0), job(0, 0)];
    jobs[0].last_cpu = Some(0);
    jobs[1].allowed = CpuMask::only(0);
    let cpus = CpuMask::first(2);
    let assignment = run(
        &mut mapper(MappingKind::Greedy, 0.0),
        &jobs,
        &[0.0, 3.0, 2.0, 1.0],
        &cpus,
        false,
    );
    assert_eq!(
        (assignment.job_on(0), assignment.job_on(1)),
        (Some(1), Some(0))
    );
}

#[test]
fn sinkhorn_usually_converges_and_says_when_it_did_not() {
    let mut seed = 7u64;
    let mut next = || {
        seed = seed
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (seed >> 40) as f32 / (1u64 << 24) as f32
    };
    let mut converged = 0;
    let mut mapper = mapper(MappingKind::Sinkhorn, 0.05);
    for _ in 0..100 {
        let jobs: Vec<Job> = (0..200)
            .map(|_| Job {
                last_cpu: Some((next() * 8.0) as u16),
                ..job(0, 0)
            })
            .collect();
        let scores: Vec<f32> = (0..201).map(|_| next()).collect();
        let candidates: Vec<u32> = (0..200).collect();
        let permitted = vec![CpuMask::first(8); 200];
        let problem = Problem {
            jobs: &jobs,
            scores: &scores,
            candidates: &candidates,
            permitted: &permitted,
            may_idle: false,
        };
        let mut assignment = Assignment::default();
        assignment.reset(200, &CpuMask::first(8));
        converged += !mapper.map(&problem, &mut assignment) as usize;
    }
    assert!(converged > 50, "{converged} of 100");
    // All scores equal: nothing to weigh, greedy answers.
    let jobs = vec![job(0, 0); 9];
    let equal = run(&mut mapper, &jobs, &[1.0; 10], &CpuMask::first(8), false);
    assert_eq!(equal.running(), 8);
}
