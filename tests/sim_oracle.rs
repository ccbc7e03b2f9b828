//! Nobody beats somebody who knows the future.

use scx_temponet::sim::engine::{Options, Record, Sim};
use scx_temponet::sim::oracle::{best, OracleKind};
use scx_temponet::sim::policies::POLICIES;
use scx_temponet::sim::task::{Execution, Semantics, TaskSet};
use scx_temponet::sim::time::MS;
use scx_temponet::sim::workload::{self, Params};

fn met(
    set: &TaskSet,
    make: fn() -> Box<dyn scx_temponet::sim::policies::Policy>,
    semantics: Semantics,
) -> f64 {
    let mut sim = Sim::new(set, set.cores, Options::new(semantics), Record::default());
    sim.run(make().as_mut());
    sim.tally.met as f64
}

fn draw(name: &str, cores: usize, tasks: usize, load: (f64, f64), index: u64) -> TaskSet {
    let params = Params {
        cores: Some(cores),
        tasks: Some(tasks),
        load: Some(load),
        horizon_ns: Some(400 * MS),
        execution: (index % 3 == 2).then_some(Execution::Overrun {
            low: 0.5,
            probability: 0.2,
            factor: 3.0,
        }),
    };
    workload::find(name).unwrap().generate(&params, 77, index)
}

#[test]
fn no_policy_beats_the_exact_oracle_on_one_core() {
    for (name, load) in [
        ("random5", (0.8, 1.8)),
        ("standard", (1.1, 2.0)),
        ("pareto", (0.9, 1.4)),
    ] {
        for index in 0..40 {
            let tasks = workload::find(name).unwrap().tasks.min(6);
            let set = draw(name, 1, tasks, load, index);
            for semantics in Semantics::BOTH {
                let Some(ceiling) = best(&set, semantics) else {
                    continue;
                };
                for entry in POLICIES {
                    let met = met(&set, entry.make, semantics);
                    assert!(
                        met <= ceiling.met,
                        "{} meets {met} of {} on {name} {index}",
                        entry.name,
                        ceiling.met
                    );
                }
            }
        }
    }
}

#[test]
fn the_oracle_is_exact_where_edf_meets_everything() {
    let set = draw("random5", 1, 5, (0.7, 0.9), 0);
    let ceiling = best(&set, Semantics::Abort).unwrap();
    assert_eq!(ceiling.kind, OracleKind::Exact);
    assert_eq!(ceiling.compliance(), 1.0);
}

#[cfg(feature = "lp")]
#[test]
fn no_policy_beats_the_bound_on_several_cores() {
    for (name, tasks, load) in [("large", 30, (0.9, 1.4)), ("heavy", 12, (0.9, 1.25))] {
        for index in 0..12 {
            let set = draw(name, 2 + index as usize % 7, tasks, load, index);
            for semantics in Semantics::BOTH {
                let ceiling = best(&set, semantics).unwrap();
                assert_eq!(ceiling.kind, OracleKind::Bound);
                for entry in POLICIES {
                    let met = met(&set, entry.make, semantics);
                    assert!(
                        met <= ceiling.met,
                        "{} meets {met} of {} on {name} {index} ({semantics:?})",
                        entry.name,
                        ceiling.met
                    );
                }
            }
        }
    }
}

#[cfg(feature = "lp")]
#[test]
fn where_everything_can_be_met_the_bound_says_so() {
    let set = draw("heavy", 8, 12, (0.9, 0.95), 0);
    let ceiling = best(&set, Semantics::Abort).unwrap();
    let wrapped = scx_temponet::sim::policies::find("dp-wrap").unwrap();
    assert_eq!(met(&set, wrapped.make, Semantics::Abort), ceiling.met);
}
