//! All runs of a comparison: what was measured before, then what is missing.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Mutex;

use anyhow::{Context, Result};
use rayon::prelude::*;
use serde_json::json;

use super::best::{self, Best};
use super::case::{Case, CaseFile};
use super::guest::{self, GuestMachine, Order};
use super::measured::{Figures, Measured};
use super::scheduler::Scheduler;
use super::simulated;
use super::store::{self, Key, Store};
use super::subject::Subject;
use crate::rtapp::live::{installed, kernel, Interrupted, Kind};
use crate::sim::engine::Options;

/// Where runs are made.
#[derive(Clone, Debug, PartialEq)]
pub enum Machine {
    Simulator(Options),
    Guest(GuestMachine),
    /// This machine's own kernel.
    Here,
}

impl Machine {
    pub fn name(&self) -> String {
        match self {
            Machine::Simulator(_) => "simulator".into(),
            Machine::Guest(guest) => format!("Linux {} ({})", guest.kernel, guest.mode),
            Machine::Here => format!("Linux {} (here)", kernel::release()),
        }
    }

    pub fn is_kernel(&self) -> bool {
        !matches!(self, Machine::Simulator(_))
    }
}

/// Cases with all their sets, and who meets them where.
pub struct Experiment {
    pub cases: Vec<Case>,
    pub subjects: Vec<Subject>,
    pub machines: Vec<Machine>,
    /// Of a kernel; the simulator says the same twice.
    pub repeats: u32,
    pub candidate: String,
}

/// The reason where there are no figures.
pub type Outcome = Result<Measured, String>;
/// Keeps an outcome, and says how far everything is.
type Step<'a> = &'a (dyn Fn(usize, &Outcome) -> Result<()> + Sync);

/// A run that is to be made.
#[derive(Clone, Copy)]
struct Wanted<'a> {
    machine: usize,
    subject: usize,
    scheduler: &'a Scheduler,
    repeat: u32,
}

pub struct Run {
    pub machine: usize,
    pub subject: usize,
    pub scheduler: String,
    pub repeat: u32,
    pub outcome: Outcome,
}

/// How far it is: runs that are there, and of those the ones measured before.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    pub done: usize,
    pub kept: usize,
    pub all: usize,
}

impl Experiment {
    pub fn new(
        file: CaseFile,
        seeds: Option<&RangeInclusive<u64>>,
        only: &[String],
        machines: Vec<Machine>,
    ) -> Result<Experiment> {
        for name in only {
            let names: Vec<&str> = file.cases.iter().map(|case| case.name.as_str()).collect();
            names
                .contains(&name.as_str())
                .then_some(())
                .with_context(|| {
                    let path = file.path.display();
                    format!(
                        "{path} has no case {name:?}; its cases are {}",
                        names.join(", ")
                    )
                })?;
        }
        let cases: Vec<Case> = file
            .cases
            .into_iter()
            .filter(|case| only.is_empty() || only.contains(&case.name))
            .collect();
        let subjects = cases.iter().flat_map(|case| case.subjects(seeds)).collect();
        Ok(Experiment {
            cases,
            subjects,
            machines,
            repeats: file.repeats,
            candidate: file.candidate,
        })
    }

    /// Runs what is missing. Interrupted, everything measured so far is kept.
    pub fn run(
        &self,
        store: &Store,
        stop: &AtomicBool,
        tell: &(dyn Fn(Progress) + Sync),
    ) -> Result<Results<'_>> {
        let wanted = self.wanted();
        let program = store::program()?;
        let keys: Vec<Key> = wanted.iter().map(|run| self.key(run, &program)).collect();
        let mut outcomes: Vec<Option<Outcome>> =
            keys.iter().map(|key| store.get(key).map(Ok)).collect();
        let kept = outcomes.iter().flatten().count();
        let all = wanted.len();
        let done = Mutex::new(Progress {
            done: kept,
            kept,
            all,
        });
        tell(*done.lock().expect("nobody panics with it"));
        let step = |id: usize, outcome: &Outcome| -> Result<()> {
            if let Ok(measured) = outcome {
                store.put(&keys[id], measured)?;
            }
            let mut done = done.lock().expect("nobody panics with it");
            done.done += 1;
            tell(*done);
            Ok(())
        };
        let missing: Vec<usize> = (0..all).filter(|&id| outcomes[id].is_none()).collect();
        for machine in 0..self.machines.len() {
            let here = missing
                .iter()
                .copied()
                .filter(|&id| wanted[id].machine == machine);
            let here: Vec<usize> = here.collect();
            let fresh = match &self.machines[machine] {
                Machine::Simulator(options) => {
                    self.simulate(*options, &wanted, &here, stop, &step)?
                }
                Machine::Guest(guest) => {
                    self.on_a_kernel(&wanted, &here, &step, &|orders, tell| {
                        guest::run(guest, orders, stop, tell)
                    })?
                }
                Machine::Here => self.on_a_kernel(&wanted, &here, &step, &|orders, tell| {
                    guest::run_here(orders, stop, tell)
                })?,
            };
            for (id, outcome) in fresh {
                outcomes[id] = Some(outcome);
            }
        }
        let runs = wanted.iter().zip(outcomes).map(|(run, outcome)| Run {
            machine: run.machine,
            subject: run.subject,
            scheduler: run.scheduler.name.clone(),
            repeat: run.repeat,
            outcome: outcome.unwrap_or_else(|| Err("it was not run".into())),
        });
        Ok(Results::new(self, runs.collect()))
    }

    /// Machine by machine, set by set: what is near is done together.
    fn wanted(&self) -> Vec<Wanted<'_>> {
        let mut wanted = Vec::new();
        for (machine, at) in self.machines.iter().enumerate() {
            let mut order: Vec<usize> = (0..self.subjects.len()).collect();
            // A guest has one number of CPUs.
            order.sort_by_key(|&subject| self.subjects[subject].set.cores);
            for subject in order {
                let case = self.case_of(subject);
                let repeats = if at.is_kernel() { self.repeats } else { 1 };
                for repeat in 0..repeats {
                    for scheduler in &case.schedulers {
                        wanted.push(Wanted {
                            machine,
                            subject,
                            scheduler,
                            repeat,
                        });
                    }
                }
            }
        }
        wanted
    }

    pub fn case_of(&self, subject: usize) -> &Case {
        let name = &self.subjects[subject].case;
        let case = self.cases.iter().find(|case| case.name == *name);
        case.expect("subjects are made of cases")
    }

    fn key(&self, run: &Wanted, program: &str) -> Key {
        let subject = &self.subjects[run.subject];
        // Names are for people.
        let mut set = subject.set.clone();
        set.name.clear();
        let work = json!({ "set": set, "work": match &subject.work {
            super::subject::Work::Set(_) => None,
            other => Some(other),
        }});
        let scheduler = run.scheduler;
        let machine = match &self.machines[run.machine] {
            Machine::Simulator(options) => json!({ "simulator": options, "program": program }),
            Machine::Guest(guest) => json!({
                "kernel": guest.kernel,
                "mode": guest.mode,
                "program": version_of(scheduler, program),
            }),
            Machine::Here => json!({
                "kernel": kernel::release(),
                "cpus": kernel::online_cpus().unwrap_or_default(),
                "program": version_of(scheduler, program),
            }),
        };
        let rest = json!({
            "scheduler": scheduler.name,
            "machine": machine,
            "repeat": run.repeat,
        });
        Key::new(&work, rest)
    }

    fn simulate(
        &self,
        options: Options,
        wanted: &[Wanted],
        missing: &[usize],
        stop: &AtomicBool,
        step: Step,
    ) -> Result<Vec<(usize, Outcome)>> {
        missing
            .par_iter()
            .map(|&id| {
                if stop.load(Ordering::Relaxed) {
                    return Err(Interrupted.into());
                }
                let run = &wanted[id];
                let set = &self.subjects[run.subject].set;
                let outcome = simulated::run(set, run.scheduler, options);
                let outcome = outcome.map_err(|why| format!("{why:#}"));
                step(id, &outcome)?;
                Ok((id, outcome))
            })
            .collect()
    }

    fn on_a_kernel(
        &self,
        wanted: &[Wanted],
        missing: &[usize],
        step: Step,
        run_all: &dyn Fn(Vec<Order>, guest::Told) -> Result<()>,
    ) -> Result<Vec<(usize, Outcome)>> {
        let fresh = Mutex::new(Vec::new());
        let answer = |id: usize, outcome: Outcome| -> Result<()> {
            step(id, &outcome)?;
            fresh
                .lock()
                .expect("nobody panics with it")
                .push((id, outcome));
            Ok(())
        };
        let mut orders = Vec::new();
        for &id in missing {
            let run = &wanted[id];
            let subject = &self.subjects[run.subject];
            if run.scheduler.entrant.is_none() {
                answer(id, Err("only the simulator has it".into()))?;
                continue;
            }
            orders.push(Order {
                id,
                subject: run.subject,
                work: &subject.work,
                cores: subject.set.cores,
                horizon_ns: subject.set.horizon_ns,
                scheduler: run.scheduler,
            });
        }
        run_all(orders, &answer)?;
        Ok(fresh.into_inner().expect("nobody panics with it"))
    }
}

/// What makes another build of the same name another scheduler.
fn version_of(scheduler: &Scheduler, program: &str) -> Option<String> {
    if scheduler.is_own() {
        return Some(program.to_owned());
    }
    let Kind::Peer(name) = &scheduler.entrant.as_ref()?.kind else {
        return None;
    };
    let bytes = std::fs::read(installed(name)?).ok()?;
    Some(store::hash(&bytes))
}

/// Everything that was measured, by machine, set and scheduler.
pub struct Results<'a> {
    pub of: &'a Experiment,
    pub runs: Vec<Run>,
    cells: HashMap<(usize, usize, String), Cell>,
    /// By set.
    pub best: Vec<Best>,
}

/// All repeats of a run together.
#[derive(Clone, Debug, Default)]
pub struct Cell {
    pub whole: Figures,
    pub settled: Figures,
    pub repeats: usize,
    pub failed: Option<String>,
    pub disturbed: Option<String>,
}

impl Results<'_> {
    fn new(of: &Experiment, runs: Vec<Run>) -> Results<'_> {
        let mut cells: HashMap<(usize, usize, String), Cell> = HashMap::new();
        for run in &runs {
            let key = (run.machine, run.subject, run.scheduler.clone());
            let cell = cells.entry(key).or_default();
            match &run.outcome {
                Ok(measured) => cell.add(measured),
                Err(why) => cell.failed = Some(why.clone()),
            }
        }
        let best = of
            .subjects
            .par_iter()
            .map(|subject| best::choice(&subject.set))
            .collect();
        Results {
            of,
            runs,
            cells,
            best,
        }
    }

    pub fn cell(&self, machine: usize, subject: usize, scheduler: &str) -> Option<&Cell> {
        self.cells.get(&(machine, subject, scheduler.to_owned()))
    }

    /// Percent of the jobs on time.
    pub fn compliance(&self, machine: usize, subject: usize, scheduler: &str) -> Option<f64> {
        let cell = self.cell(machine, subject, scheduler)?;
        cell.whole.compliance().filter(|_| cell.repeats > 0)
    }
}

impl Cell {
    fn add(&mut self, measured: &Measured) {
        self.repeats += 1;
        let n = self.repeats as f64;
        for (sum, of) in [
            (&mut self.whole, &measured.whole),
            (&mut self.settled, &measured.settled),
        ] {
            sum.jobs += of.jobs;
            sum.met += of.met;
            sum.unfinished += of.unfinished;
            sum.critical_jobs += of.critical_jobs;
            sum.critical_met += of.critical_met;
            // Running means over the repeats.
            sum.response_ms += (of.response_ms - sum.response_ms) / n;
            sum.response_p99_ms += (of.response_p99_ms - sum.response_p99_ms) / n;
            sum.lateness_p95_ms += (of.lateness_p95_ms - sum.lateness_p95_ms) / n;
        }
        self.disturbed = measured.disturbed().or(self.disturbed.take());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use std::sync::atomic::AtomicUsize;

    fn experiment(seeds: &str) -> Experiment {
        let text = format!(
            "schedulers = ['eevdf', 'edf', 'scx_bpfland']\nseeds = '{seeds}'\n\
             [[case]]\nname = 'any'\nhorizon = '1s'\ntournament = {{ cores = 1, tasks = 4 }}\n"
        );
        let file = CaseFile::parse(Path::new("cases.toml"), &text).unwrap();
        let machine = Machine::Simulator(file.simulator);
        Experiment::new(file, None, &[], vec![machine]).unwrap()
    }

    #[test]
    fn nothing_is_measured_twice_and_what_cannot_be_has_a_reason() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(folder.path()).unwrap();
        let stop = AtomicBool::new(false);
        let first = experiment("1..3");
        let results = first.run(&store, &stop, &|_| {}).unwrap();
        assert_eq!(results.runs.len(), 9);
        for subject in 0..3 {
            assert!(results.compliance(0, subject, "edf").is_some());
            let peer = results.cell(0, subject, "scx_bpfland").unwrap();
            assert!(peer.failed.as_ref().unwrap().contains("no model"));
        }
        // Two more sets: only theirs are new, and the same seeds say the same again.
        let more = experiment("1..5");
        let kept = AtomicUsize::new(usize::MAX);
        let tell = |progress: Progress| kept.store(progress.kept, Ordering::Relaxed);
        let again = more.run(&store, &stop, &tell).unwrap();
        assert_eq!(kept.load(Ordering::Relaxed), 6);
        for subject in 0..3 {
            for name in ["eevdf", "edf"] {
                let told = results.compliance(0, subject, name);
                assert_eq!(told, again.compliance(0, subject, name));
            }
        }
    }

    #[test]
    fn whoever_interrupts_it_is_told_so_and_loses_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(folder.path()).unwrap();
        let (stop, experiment) = (AtomicBool::new(false), experiment("1..40"));
        let tell = |progress: Progress| stop.store(progress.done > 10, Ordering::Relaxed);
        let why = experiment.run(&store, &stop, &tell).err().unwrap();
        assert!(why.is::<Interrupted>());
        stop.store(false, Ordering::Relaxed);
        let kept = AtomicUsize::new(0);
        let tell = |progress: Progress| kept.store(progress.kept, Ordering::Relaxed);
        experiment.run(&store, &stop, &tell).unwrap();
        assert!(kept.load(Ordering::Relaxed) >= 6);
    }
}
