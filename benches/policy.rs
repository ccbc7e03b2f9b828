//! What each stage of a decision costs: `cargo bench --bench policy`.

use divan::{black_box, Bencher};
use scx_temponet::policy::mapping::{Mapper, Problem};
use scx_temponet::policy::*;

fn main() {
    divan::main();
}

const N: &[usize] = &[5, 64, 200, 600, 5000];
const CPUS: usize = 8;

/// Numbers that look random and are the same every time.
fn draws(seed: u64) -> impl Iterator<Item = u64> {
    std::iter::successors(Some(seed), |state| {
        Some(
            state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407),
        )
    })
    .map(|state| state >> 24)
}

/// Jobs due within 10 to 100 ms that fill 8 cores to `load`; one in ten is
/// bound to two CPUs.
fn jobs(n: usize, load: f64) -> Vec<Job> {
    let mut draw = draws(42);
    let mut next = |below: u64| draw.next().unwrap() % below;
    let mean_ns = (load * CPUS as f64 * 55e6 / n as f64) as u64;
    (0..n)
        .map(|_| Job {
            deadline_ns: 10_000_000 + next(90_000_000) as i64,
            remaining_ns: 1 + next(2 * mean_ns) as i64,
            spread_ns: 0,
            criticality: next(10) as u8 / 9,
            last_cpu: Some(next(CPUS as u64) as CpuId),
            allowed: match next(10) {
                0 => [next(CPUS as u64) as CpuId, next(CPUS as u64) as CpuId]
                    .into_iter()
                    .collect(),
                _ => CpuMask::ALL,
            },
        })
        .collect()
}

fn situation(jobs: &[Job]) -> Situation<'_> {
    Situation {
        now_ns: 0,
        jobs,
        upcoming: &[],
        cpus: CpuMask::first(CPUS),
        share: 1.0,
        hold_ns: 100_000,
    }
}

fn map(bencher: Bencher, n: usize, kind: MappingKind) {
    let jobs = jobs(n, 0.5);
    let scores: Vec<f32> = draws(7)
        .map(|draw| draw as f32 / (1u64 << 40) as f32)
        .take(n + 1)
        .collect();
    let candidates: Vec<u32> = (0..n as u32).collect();
    let cpus = CpuMask::first(CPUS);
    let permitted: Vec<CpuMask> = jobs.iter().map(|job| job.allowed.and(&cpus)).collect();
    let problem = Problem {
        jobs: &jobs,
        scores: &scores,
        candidates: &candidates,
        permitted: &permitted,
        may_idle: false,
    };
    let mut mapper = Mapper::new(MappingConfig {
        kind,
        migration_price: 0.05,
        ..MappingConfig::default()
    });
    let mut assignment = Assignment::default();
    bencher.bench_local(|| {
        assignment.reset(n, &cpus);
        black_box(mapper.map(black_box(&problem), &mut assignment))
    });
}

#[divan::bench(args = N)]
fn mapping_greedy(bencher: Bencher, n: usize) {
    map(bencher, n, MappingKind::Greedy);
}

#[divan::bench(args = &[64, 200, 600])]
fn mapping_sinkhorn(bencher: Bencher, n: usize) {
    map(bencher, n, MappingKind::Sinkhorn);
}

fn tokenize(bencher: Bencher, n: usize, slack: Quantiser) {
    let work = Quantiser::log(100_000, 100_000_000, 8).unwrap();
    let tokenizer = Tokenizer::new(slack, work, 2, 4).unwrap();
    let jobs = jobs(n, 0.5);
    let mut set = TokenSet::default();
    bencher.bench_local(|| {
        tokenizer.tokenize(black_box(&jobs), 0, &mut set);
        black_box(set.distinct())
    });
}

#[divan::bench(args = N)]
fn tokenizer_log_64(bencher: Bencher, n: usize) {
    tokenize(
        bencher,
        n,
        Quantiser::log(50_000, 2_000_000_000, 64).unwrap(),
    );
}

#[divan::bench(args = N)]
fn tokenizer_uniform_128(bencher: Bencher, n: usize) {
    tokenize(bencher, n, Quantiser::uniform(1_000_000, 128).unwrap());
}

fn assess(bencher: Bencher, n: usize, load: f64, cpus: usize, overload: OverloadRule) {
    let jobs = jobs(n, load * cpus as f64 / CPUS as f64);
    let mut shield = Shield::new(ShieldConfig {
        overload,
        ..ShieldConfig::default()
    });
    let situation = Situation {
        cpus: CpuMask::first(cpus),
        ..situation(&jobs)
    };
    bencher.bench_local(|| black_box(shield.assess(black_box(&situation))));
}

#[divan::bench(args = N)]
fn shield_one_core(bencher: Bencher, n: usize) {
    assess(bencher, n, 0.3, 1, OverloadRule::Fit);
}

#[divan::bench(args = N)]
fn shield_eight_cores(bencher: Bencher, n: usize) {
    assess(bencher, n, 0.3, CPUS, OverloadRule::Fit);
}

#[divan::bench(args = N)]
fn shield_overload_admit(bencher: Bencher, n: usize) {
    assess(bencher, n, 1.5, CPUS, OverloadRule::Admit);
}

#[divan::bench(args = N)]
fn decide_distilled(bencher: Bencher, n: usize) {
    let jobs = jobs(n, 0.3);
    let mut decider = Decider::new(PolicyConfig::default());
    let situation = situation(&jobs);
    bencher.bench_local(|| {
        let decision = decider.decide(&mut DistilledRule::default(), black_box(&situation));
        black_box(decision.assignment.running())
    });
}
