//! The policy of the kernel in the simulator: what the shield promises on one
//! core, and what it leaves to be won.

use scx_temponet::policy::{Context, DistilledRule, Edf, PolicyConfig, Scorer, Srpt};
use scx_temponet::sim::engine::{Knowledge, Options, Record, Sim, Tally};
use scx_temponet::sim::policies::{self, find, Decided, Policy};
use scx_temponet::sim::rng::Rng;
use scx_temponet::sim::task::{Arrival, Execution, Semantics, TaskSet};
use scx_temponet::sim::time::{MS, SECOND, US};
use scx_temponet::sim::workload::{self, Params};

fn run(set: &TaskSet, policy: &mut dyn Policy, options: Options) -> Tally {
    let mut sim = Sim::new(set, set.cores, options, Record::default());
    sim.run(policy);
    sim.tally
}

/// No idea at all, and another one every time.
struct Dice(Rng);

impl Scorer for Dice {
    fn score(&mut self, _: &Context<'_>, scores: &mut [f32]) {
        scores.fill_with(|| self.0.unit() as f32);
    }
}

/// Latest deadline first: the worst advice there is.
struct Contrary;

impl Scorer for Contrary {
    fn score(&mut self, context: &Context<'_>, scores: &mut [f32]) {
        for (score, job) in scores[1..].iter_mut().zip(context.situation.jobs) {
            *score = job.deadline_ns as f32;
        }
    }
}

fn shielded(seed: u64) -> [(&'static str, Box<dyn Scorer>); 4] {
    [
        ("distilled", Box::new(DistilledRule::default())),
        ("srpt", Box::new(Srpt)),
        ("dice", Box::new(Dice(Rng::new(seed)))),
        ("contrary", Box::new(Contrary)),
    ]
}

fn random5(tasks: usize, index: u64, horizon_ns: u64) -> TaskSet {
    let params = Params {
        tasks: Some(tasks),
        load: Some((0.6, 1.0)),
        horizon_ns: Some(horizon_ns),
        ..Params::default()
    };
    let workload = workload::find("random5").expect("a known workload");
    workload.generate(&params, 77, index)
}

#[test]
fn under_the_shield_no_scorer_costs_a_deadline_on_one_core() {
    let mut rng = Rng::new(5);
    for index in 0..300 {
        let set = random5(2 + rng.below(8), index, SECOND / 2);
        let options = Options::new(Semantics::BOTH[index as usize % 2]);
        for (name, scorer) in shielded(index) {
            let mut policy = Decided::new(PolicyConfig::default(), scorer);
            let tally = run(&set, &mut policy, options);
            assert!(tally.judged > 0);
            assert_eq!(tally.met, tally.judged, "{name} on {set:?}");
        }
    }
}

/// Deadlines before and beyond the next release, random gaps and execution
/// times: whatever EDF meets, everybody meets under the shield.
#[test]
fn the_shield_keeps_what_edf_meets_with_any_deadlines_gaps_and_times() {
    let mut rng = Rng::new(6);
    let mut compared = 0;
    for index in 0..300 {
        let mut set = random5(2 + rng.below(6), 1000 + index, SECOND / 2);
        let mut options = Options::new(Semantics::BOTH[index as usize % 2]);
        options.knowledge = [Knowledge::Known, Knowledge::Wcet][rng.below(2)];
        // EDF may meet by luck what the worst case would not allow.
        let shortest = match options.knowledge {
            Knowledge::Known => 0.7,
            _ => 1.0,
        };
        for task in &mut set.tasks {
            let stretch = [shortest, 1.0, 1.6][rng.below(3)];
            task.deadline_ns = (task.period_ns as f64 * stretch) as u64;
            task.offset_ns = rng.below(task.period_ns as usize) as u64;
            if rng.chance(0.3) {
                let mean_delay_ns = task.period_ns / 5;
                task.arrival = Arrival::Sporadic { mean_delay_ns };
            }
            if rng.chance(0.3) {
                task.execution = Execution::Uniform {
                    low: 0.3,
                    high: 1.0,
                };
            }
        }
        let edf = run(&set, &mut policies::Edf, options);
        if edf.met < edf.judged {
            continue;
        }
        compared += 1;
        for (name, scorer) in shielded(index) {
            let mut policy = Decided::new(PolicyConfig::default(), scorer);
            let tally = run(&set, &mut policy, options);
            assert_eq!(tally.met, tally.judged, "{name}, {options:?} on {set:?}");
        }
    }
    assert!(compared > 150, "{compared} sets compared");
}

#[test]
fn without_the_shield_bad_advice_does_cost_deadlines() {
    let missed = (0..20).filter(|&index| {
        let set = random5(5, index, SECOND);
        let mut policy = Decided::bare(Contrary);
        let tally = run(&set, &mut policy, Options::new(Semantics::Abort));
        tally.met < tally.judged
    });
    assert!(missed.count() > 10);
}

/// Bursts and their reserve, long queues and ties included.
#[test]
fn the_distilled_rule_of_the_simulator_schedules_as_the_policy_code_does() {
    let record = Record {
        jobs: true,
        segments: true,
        ..Record::default()
    };
    let late = |semantics| Options {
        decision_latency_ns: 200 * US,
        ..Options::new(semantics)
    };
    for (name, tasks) in [("random5", 5), ("heavy", 12), ("large", 80), ("stress", 60)] {
        let params = Params {
            tasks: Some(tasks),
            load: Some((1.1, 1.4)),
            horizon_ns: Some(SECOND / 2),
            ..Params::default()
        };
        let workload = workload::find(name).expect("a known workload");
        let set = workload.generate(&params, 21, 0);
        for options in Semantics::BOTH.map(|s| [Options::new(s), late(s)]).concat() {
            let schedule = |policy: &mut dyn Policy| {
                let mut sim = Sim::new(&set, set.cores, options, record);
                sim.run(policy);
                (sim.tally.records, sim.tally.segments)
            };
            let mut ours = policies::Distilled::default();
            let mut theirs = Decided::bare(DistilledRule::default());
            assert!(schedule(&mut ours) == schedule(&mut theirs), "{name}");
        }
    }
}

#[test]
fn under_the_shield_srpt_answers_a_tenth_sooner_than_edf_and_misses_nothing() {
    let (mut ours, mut edf) = (0.0, 0.0);
    for index in 0..60 {
        let set = random5(5, index, 2 * SECOND);
        for (name, sum) in [("srpt-shield", &mut ours), ("plain-edf", &mut edf)] {
            let mut policy = (find(name).expect("a known policy").make)();
            let tally = run(&set, policy.as_mut(), Options::new(Semantics::Continue));
            assert_eq!(tally.met, tally.judged, "{name}");
            *sum += tally.response_sum as f64 / tally.completed as f64;
        }
    }
    assert!(ours <= 0.90 * edf, "{ours} against {edf}");
}

/// With no opinion from the scorer the deadlines decide, in both worlds.
#[test]
fn a_scorer_without_an_opinion_schedules_as_edf_does() {
    let record = Record {
        jobs: true,
        ..Record::default()
    };
    let mut rng = Rng::new(7);
    for index in 0..50 {
        let mut set = random5(5, index, SECOND);
        for task in &mut set.tasks {
            // No two deadlines alike: a tie may go either way.
            task.offset_ns = rng.below(task.period_ns as usize) as u64;
        }
        for semantics in Semantics::BOTH {
            let finishes = |policy: &mut dyn Policy| {
                let mut sim = Sim::new(&set, 1, Options::new(semantics), record);
                sim.run(policy);
                let mut jobs: Vec<_> = sim.tally.records.iter().map(|r| r.finish).collect();
                jobs.sort();
                jobs
            };
            let mut ours = Decided::new(PolicyConfig::default(), Edf);
            assert!(finishes(&mut ours) == finishes(&mut policies::Edf));
        }
    }
}

/// Late decisions and coarse ticks cost deadlines under any policy; the shield
/// is told of both and must not fall behind plain EDF by much.
#[test]
fn the_shield_is_told_how_slow_the_machine_decides() {
    let (mut ours, mut edf, mut judged) = (0, 0, 0);
    for index in 0..60 {
        let set = random5(5, index, SECOND);
        let mut options = Options::new(Semantics::Abort);
        options.quantum_ns = MS;
        options.decision_latency_ns = 200 * US;
        let mut policy = Decided::new(PolicyConfig::default(), Srpt);
        let tally = run(&set, &mut policy, options);
        ours += tally.met;
        judged += tally.judged;
        edf += run(&set, &mut policies::Edf, options).met;
    }
    let lost = (edf as f64 - ours as f64) / judged as f64;
    assert!(lost < 0.01, "{ours} of {judged} met, EDF {edf}");
}
