//! After warm-up a decision allocates nothing.

use scx_temponet::agent::brain::{Backend, Brain, BrainConfig};
use scx_temponet::policy::network::{Device, Model, NetworkScorer, Precision};
use scx_temponet::policy::*;
use scx_temponet::sim::engine::{Options, Plan, Record, Sim};
use scx_temponet::sim::policies::{Decided, Policy};
use scx_temponet::sim::rng::Rng;
use scx_temponet::sim::task::Semantics;
use scx_temponet::sim::workload::{self, Params};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    /// Tests run side by side; each counts its own.
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

fn count_one() {
    // While a thread goes down its counter may be gone already.
    let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
}

fn allocations() -> usize {
    ALLOCATIONS.with(Cell::get)
}

struct Counting;

// SAFETY: every call goes to the system allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count_one();
        System.alloc(layout)
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        System.dealloc(block, layout)
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count_one();
        System.realloc(block, layout, size)
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn jobs(n: u64, seed: u64) -> Vec<Job> {
    (0..n)
        .map(|i| {
            let draw = (i + 1 + seed).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20;
            Job {
                deadline_ns: (draw % 80_000_000) as i64,
                remaining_ns: (draw / 7 % 3_000_000) as i64,
                spread_ns: (draw / 11 % 3_000_000) as i64,
                criticality: (draw % 3) as u8,
                last_cpu: Some((draw % 8) as CpuId),
                allowed: match draw % 5 {
                    0 => CpuMask::only((draw / 5 % 8) as CpuId),
                    _ => CpuMask::ALL,
                },
            }
        })
        .collect()
}

#[test]
fn a_decision_allocates_nothing_after_warm_up() {
    for kind in [MappingKind::Greedy, MappingKind::Sinkhorn] {
        for overload in [OverloadRule::Fit, OverloadRule::Admit, OverloadRule::Keep] {
            let mut decider = Decider::new(PolicyConfig {
                mapping: MappingConfig {
                    kind,
                    migration_price: 0.1,
                    ..MappingConfig::default()
                },
                shield_config: ShieldConfig {
                    overload,
                    ..ShieldConfig::default()
                },
                ..PolicyConfig::default()
            });
            let sets: Vec<Vec<Job>> = (0..20).map(|seed| jobs(600, seed)).collect();
            let upcoming: Vec<Upcoming> = sets[0]
                .iter()
                .map(|job| Upcoming {
                    allowed: job.allowed,
                    ..Upcoming::new(job.deadline_ns, (20_000_000, 1000, 20_000_000))
                })
                .collect();
            let mut now_ns = 0;
            let mut run = |jobs: &[Job]| {
                now_ns += 1_000;
                let situation = Situation {
                    now_ns,
                    jobs,
                    upcoming: &upcoming,
                    cpus: CpuMask::first(8),
                    share: 1.0,
                    hold_ns: 100_000,
                };
                decider
                    .decide(&mut DistilledRule::default(), &situation)
                    .assignment
                    .running()
            };
            sets.iter().for_each(|jobs| assert_eq!(run(jobs), 8));
            let before = allocations();
            let running: usize = sets.iter().map(|jobs| run(&jobs[..500])).sum();
            assert_eq!(allocations(), before);
            assert_eq!(running, 160);
        }
    }
}

#[test]
fn the_network_allocates_nothing_after_warm_up() {
    let shape = Model::default_shape();
    let model = Model::untrained(Model::default_tokenizer(), shape, 1).unwrap();
    let scorers = [
        NetworkScorer::native(&model, Precision::Float),
        NetworkScorer::native(&model, Precision::Int8),
        NetworkScorer::sparse(&model),
    ];
    let sets: Vec<Vec<Job>> = (0..5).map(|seed| jobs(600, seed)).collect();
    for mut scorer in scorers {
        let mut decider = Decider::new(PolicyConfig {
            tokenizer: model.tokenizer().clone(),
            ..PolicyConfig::default()
        });
        let mut scored = 0;
        let mut run = |jobs: &[Job]| {
            let situation = Situation {
                now_ns: 0,
                jobs,
                upcoming: &[],
                cpus: CpuMask::first(8),
                share: 1.0,
                hold_ns: 100_000,
            };
            scored += usize::from(decider.decide(&mut scorer, &situation).scored);
        };
        sets.iter().for_each(|jobs| run(jobs));
        let before = allocations();
        sets.iter().for_each(|jobs| run(&jobs[..500]));
        assert_eq!(allocations(), before);
        assert_eq!(scored, 10);
    }
}

#[test]
fn a_decision_in_the_simulator_allocates_nothing_after_warm_up() {
    let params = Params {
        load: Some((1.2, 1.2)),
        ..Params::default()
    };
    let workload = workload::find("heavy").expect("a known workload");
    let set = workload.generate(&params, 1, 0);
    let mut policy = Decided::shielded(DistilledRule::default());
    policy.start(&set, set.cores);
    let mut plan = Plan::default();
    // The same again needs no more room than the first time.
    let allocated: Vec<usize> = (0..2)
        .map(|_| {
            let options = Options::new(Semantics::Abort);
            let mut sim = Sim::new(&set, set.cores, options, Record::default());
            let mut allocated = 0;
            while sim.advance() {
                plan.clear();
                let before = allocations();
                policy.decide(&sim.view(), &mut plan);
                allocated += allocations() - before;
                sim.submit(&plan);
            }
            assert!(sim.tally.decisions > 2000, "{}", sim.tally.decisions);
            allocated
        })
        .collect();
    assert!(allocated[0] > 0, "nothing was counted");
    assert_eq!(allocated[1], 0);
}

#[test]
fn the_agent_allocates_nothing_after_its_warm_up() {
    for cpus in [1, 2, 4] {
        decide_whatever_comes(Backend::Native, cpus);
    }
}

/// What the library allocates for itself is not counted.
#[test]
fn nor_does_it_with_onnx_runtime() {
    if std::env::var_os("ORT_DYLIB_PATH").is_none() {
        eprintln!("skipped: no ORT_DYLIB_PATH");
        return;
    }
    decide_whatever_comes(Backend::Ort, 2);
}

/// A few tasks, or a crowd, of all periods and loads, bound to CPUs or not, late or not, seen before or
/// not.
fn decide_whatever_comes(backend: Backend, count: usize) {
    let cpus = CpuMask::first(count);
    let config = BrainConfig {
        model: None,
        backend,
        device: Device::Cpu,
        shield: ShieldMode::On,
        mapping: MappingKind::Greedy,
        slowed: 1,
    };
    let mut brain = Brain::open(&config, cpus).unwrap();
    let mut rng = Rng::new(1);
    for round in 0..20_000 {
        // Crowds come late and all at once.
        let n = match round % 1000 {
            999 => 1 + rng.below(512),
            _ => 1 + rng.below(24),
        };
        let load = rng.uniform(0.2, 3.0) / n as f64;
        let bound = [0.0, 0.0, 0.5, 1.0][rng.below(4)];
        let bound_to = rng.chance(0.5).then(|| rng.below(count) as CpuId);
        // Half of the time nobody is late, and anybody may be chosen.
        let earliest = if rng.chance(0.5) { -2.0 } else { 0.5 };
        let (mut jobs, mut upcoming) = (Vec::new(), Vec::new());
        // No plan stands for so long.
        let now_ns = 2_000_000_000 * round as i64;
        for _ in 0..n {
            let period_ns = rng.log_uniform(1e6, 2e8);
            let runtime_ns = period_ns * load * rng.uniform(0.5, 1.5);
            let allowed = match rng.chance(bound) {
                true => CpuMask::only(bound_to.unwrap_or_else(|| rng.below(count) as CpuId)),
                false => CpuMask::ALL,
            };
            let pending = rng.chance(0.7).then_some(jobs.len() as u32);
            if pending.is_some() {
                jobs.push(Job {
                    deadline_ns: now_ns + rng.uniform(earliest * period_ns, period_ns) as i64,
                    remaining_ns: rng.uniform(1.0, runtime_ns) as i64,
                    spread_ns: rng.uniform(0.0, runtime_ns / 4.0) as i64,
                    criticality: u8::from(rng.chance(0.1)),
                    last_cpu: Some(rng.below(count) as CpuId),
                    allowed,
                });
            }
            let release_ns = now_ns + rng.uniform(0.0, period_ns) as i64;
            let (period_ns, runtime_ns) = (period_ns as i64, runtime_ns as i64);
            upcoming.push(Upcoming {
                pending,
                allowed,
                unseen: rng.chance(0.3),
                ..Upcoming::new(release_ns, (period_ns, runtime_ns, period_ns))
            });
        }
        let situation = Situation {
            now_ns,
            jobs: &jobs,
            upcoming: &upcoming,
            cpus,
            share: 1.0,
            hold_ns: 1_000_000,
        };
        let before = allocations();
        brain.decide(&situation);
        assert_eq!(
            allocations(),
            before,
            "in round {round}, {n} tasks on {count} CPUs"
        );
    }
}
