//! The simulator as an environment: step by step, with rewards.

use scx_temponet::sim::engine::{Options, Plan, Record, Sim};
use scx_temponet::sim::policies::{EdfDrop, MooreHodgson, Order, Policy};
use scx_temponet::sim::reward::{Frequency, Reward, Shape};
use scx_temponet::sim::task::{Semantics, TaskSet};
use scx_temponet::sim::time::MS;
use scx_temponet::sim::workload::{self, Params};

fn overloaded(index: u64) -> TaskSet {
    let params = Params {
        cores: Some(2),
        tasks: Some(10),
        load: Some((1.1, 1.4)),
        horizon_ns: Some(800 * MS),
        ..Params::default()
    };
    workload::find("large")
        .unwrap()
        .generate(&params, 12, index)
}

/// One episode; the sum of its rewards.
fn episode(sim: &mut Sim, policy: &mut dyn Policy, reward: Reward) -> f64 {
    policy.start(sim.task_set(), 2);
    let mut plan = Plan::default();
    let (mut sum, mut last, mut running) = (0.0, 0, 0);
    while sim.advance() {
        let view = sim.view();
        sum += reward.of(&sim.events, &view, sim.now() - last, running);
        last = sim.now();
        plan.clear();
        policy.decide(&view, &mut plan);
        sim.events.clear();
        sim.submit(&plan);
        running = sim.running();
    }
    sum += reward.of(&sim.events, &sim.view(), sim.now() - last, running);
    sim.finish();
    sum
}

const WATCHED: Record = Record {
    jobs: true,
    segments: false,
    events: true,
};

#[test]
fn stepping_gives_the_schedule_of_running() {
    for semantics in Semantics::BOTH {
        for index in 0..5 {
            let set = overloaded(index);
            let options = Options::new(semantics);
            let mut stepped = Sim::new(&set, 2, options, WATCHED);
            episode(&mut stepped, &mut EdfDrop::default(), Reward::BINARY);
            let mut run = Sim::new(&set, 2, options, WATCHED);
            run.run(&mut EdfDrop::default());
            assert!(stepped.tally.records == run.tally.records);
        }
    }
}

#[test]
fn binary_rewards_add_up_to_completions_less_misses() {
    for semantics in Semantics::BOTH {
        let set = overloaded(7);
        let mut sim = Sim::new(&set, 2, Options::new(semantics), WATCHED);
        let mut policy = MooreHodgson::new(Order::Deadline);
        let sum = episode(&mut sim, &mut policy, Reward::BINARY);
        let missed = sim.tally.judged - sim.tally.met;
        assert!(missed > 0);
        assert_eq!(sum, sim.tally.completed as f64 - missed as f64);
    }
}

#[test]
fn a_migration_price_and_the_energy_of_running_cores_are_charged() {
    let set = overloaded(3);
    let total = |reward| {
        let mut sim = Sim::new(&set, 2, Options::new(Semantics::Abort), WATCHED);
        let sum = episode(&mut sim, &mut EdfDrop::default(), reward);
        (sum, sim.tally)
    };
    let (plain, tally) = total(Reward::BINARY);
    let (priced, _) = total(Reward {
        migration: 0.5,
        ..Reward::BINARY
    });
    assert!(tally.migrations > 0);
    assert!((plain - priced - 0.5 * tally.migrations as f64).abs() < 1e-6);
    let (energy, _) = total(Reward {
        shape: Shape::EnergyAware {
            lambda: 0.01,
            frequency: Frequency(1.0),
        },
        migration: 0.0,
    });
    let busy_ms = tally.busy as f64 / MS as f64;
    assert!((plain - energy - 0.01 * busy_ms).abs() < 1e-3 * busy_ms);
}
