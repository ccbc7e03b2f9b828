//! A run in the simulator.

use anyhow::{bail, Result};

use super::measured::Measured;
use super::scheduler::Scheduler;
use crate::sim::engine::{Options, Record, Sim};
use crate::sim::task::{Declaration, Task, TaskSet, TraceJob};
use crate::sim::time::{Ns, MS, SECOND};

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
    if simulated.entry.name == "rm" && set.tasks.iter().any(|task| task.is_hog(set.horizon_ns)) {
        seen.tasks.extend(fair_servers(set));
    }
    let record = Record {
        jobs: true,
        ..Record::default()
    };
    let mut sim = Sim::new(&seen, seen.cores, options, record);
    sim.run((simulated.entry.make)().as_mut());
    Ok(Measured::of(set, std::mem::take(&mut sim.tally.records)))
}

/// Linux (6.12) gives fair tasks that SCHED_FIFO starves 50 ms of each CPU at the end of
/// every second, before everybody else.
fn fair_servers(set: &TaskSet) -> impl Iterator<Item = Task> + '_ {
    const PERIOD: Ns = SECOND;
    const RUNTIME: Ns = 50 * MS;
    let turn = |turn: u64| TraceJob {
        release_ns: (turn + 1) * PERIOD - RUNTIME,
        execution_ns: RUNTIME,
        // Beyond the time: nobody judges it.
        deadline_ns: Some(2 * set.horizon_ns + turn),
    };
    let turns: Vec<TraceJob> = (0..set.horizon_ns.div_ceil(PERIOD)).map(turn).collect();
    (0..set.cores).map(move |_| Task {
        // Rate-monotonic order puts it first.
        period_ns: 1,
        ..Task::traced("fair server".into(), turns.clone(), set.horizon_ns)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::case::like_a_kernel;

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
        for name in ["edf", "temponet"] {
            assert_eq!(met(name), 100.0, "{name}");
        }
        // The hog's 50 ms at the end of the second cost some jobs.
        assert!(
            (85.0..100.0).contains(&met("fifo-rm")),
            "{}",
            met("fifo-rm")
        );
    }
}
