//! The promises of this room, over random situations.

mod decide;
mod mapping;
mod plan;
mod shield;
mod tokenizer;

use super::*;
use proptest::prelude::*;

/// Enough cases to run before every commit; `POLICY_CASES=100` runs that many
/// times as many.
pub fn cases(few: u32) -> ProptestConfig {
    let times = std::env::var("POLICY_CASES")
        .ok()
        .and_then(|n| n.parse().ok());
    ProptestConfig {
        cases: few * times.unwrap_or(1),
        max_global_rejects: u32::MAX,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

pub fn job(deadline_ns: i64, remaining_ns: i64) -> Job {
    Job {
        deadline_ns,
        remaining_ns,
        spread_ns: 0,
        criticality: 0,
        last_cpu: None,
        allowed: CpuMask::ALL,
    }
}

/// Any time at all, with the awkward ones among them.
pub fn any_time() -> impl Strategy<Value = i64> {
    prop_oneof![
        4 => -1_000_000_000i64..10_000_000_000,
        1 => any::<i64>(),
        1 => prop::sample::select(vec![i64::MIN, -1, 0, 1, i64::MAX]),
    ]
}

/// Any score, with the awkward ones among them.
pub fn any_score() -> impl Strategy<Value = f32> {
    prop_oneof![
        6 => -5.0f32..5.0,
        1 => any::<f32>(),
        1 => prop::sample::select(vec![f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, f32::MIN, 0.0, -0.0]),
    ]
}

pub fn any_mask(cpus: usize) -> impl Strategy<Value = CpuMask> {
    prop_oneof![
        2 => Just(CpuMask::ALL),
        2 => prop::collection::vec(0..cpus as CpuId, 0..4).prop_map(CpuMask::from_iter),
    ]
}

pub fn any_job(cpus: usize) -> impl Strategy<Value = Job> {
    let last_cpu = prop::option::of(0..cpus as CpuId + 2);
    let times = (any_time(), any_time(), any_time());
    (times, 0u8..4, last_cpu, any_mask(cpus)).prop_map(
        |((deadline_ns, remaining_ns, spread_ns), criticality, last_cpu, allowed)| Job {
            deadline_ns,
            remaining_ns,
            spread_ns,
            criticality,
            last_cpu,
            allowed,
        },
    )
}

/// Jobs of a machine in normal use: milliseconds, not extremes.
pub fn plain_jobs(most: usize) -> impl Strategy<Value = Vec<Job>> {
    let times = (-5_000_000i64..100_000_000, 0i64..30_000_000, 0u8..3);
    prop::collection::vec(
        times.prop_map(|(deadline_ns, remaining_ns, criticality)| Job {
            criticality,
            ..job(deadline_ns, remaining_ns)
        }),
        0..most,
    )
}

/// No job twice, none where it may not be, every CPU asked for and no other.
pub fn assert_valid(assignment: &Assignment, jobs: &[Job], cpus: &CpuMask) {
    let mut seen = vec![false; jobs.len()];
    for (cpu, job) in assignment.iter() {
        assert!(cpus.contains(cpu), "CPU {cpu} was not to be decided for");
        assert!(jobs[job].allowed.contains(cpu), "job {job} on CPU {cpu}");
        assert!(!std::mem::replace(&mut seen[job], true), "job {job} twice");
        assert_eq!(assignment.cpu_of(job), Some(cpu));
        assert!(!assignment.free().contains(cpu));
    }
    assert_eq!(assignment.running(), assignment.iter().count());
    assert_eq!(
        assignment.running() + assignment.free().count(),
        cpus.count()
    );
}
