//! A run in the simulator.

use anyhow::{bail, Result};

use super::measured::Measured;
use super::scheduler::Scheduler;
use crate::sim::engine::{Options, Record, Sim};
use crate::sim::task::{Declaration, TaskSet};

pub fn run(set: &TaskSet, scheduler: &Scheduler, options: Options) -> Result<Measured> {
    let simulated = match scheduler.simulated() {
        Ok(simulated) => simulated,
        Err(why) => bail!(why),
    };
    let mut seen = set.clone();
    for task in &mut seen.tasks {
        if !simulated.is_told {
            task.declared = Declaration::Nothing;
        }
        // Hogs declare nothing, so for these schedulers they are background: they get
        // what is left over. The simulator's policies know no classes.
        if simulated.entry.name != "eevdf" && task.is_hog(set.horizon_ns) {
            task.end_ns = Some(0);
        }
    }
    let record = Record {
        jobs: true,
        ..Record::default()
    };
    let mut sim = Sim::new(&seen, seen.cores, options, record);
    sim.run((simulated.entry.make)().as_mut());
    Ok(Measured::of(&seen, std::mem::take(&mut sim.tally.records)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::case::like_a_kernel;
    use crate::sim::task::Task;
    use crate::sim::time::{MS, SECOND};

    #[test]
    fn hogs_take_from_eevdf_and_not_from_those_who_know_deadlines() {
        let tasks = vec![
            Task::hog("hog", SECOND),
            Task::periodic("a", 10 * MS, 6 * MS),
            Task::periodic("b", 40 * MS, 8 * MS),
        ];
        let set = TaskSet {
            name: "t".into(),
            cores: 1,
            horizon_ns: SECOND,
            seed: 1,
            modes: Vec::new(),
            tasks,
        };
        let met = |name: &str| {
            let scheduler = Scheduler::parse(name).unwrap();
            let measured = run(&set, &scheduler, like_a_kernel()).unwrap();
            assert_eq!(measured.tasks[0].jobs, 0);
            measured.whole.compliance().unwrap()
        };
        assert!(met("eevdf") < 60.0);
        for name in ["edf", "fifo-rm", "temponet"] {
            assert_eq!(met(name), 100.0, "{name}");
        }
    }
}
