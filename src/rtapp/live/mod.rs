//! The real rt-app under one scheduler after the other, on this machine.

mod collected;
mod declare;
mod guard;
mod judge;
pub mod kernel;
mod named_files;
mod schedulers;
mod turn;
pub mod vm;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{bail, ensure, Context, Result};

pub use self::collected::{Collected, LiveMachine, Run};
pub use self::guard::Scratch;
pub use self::schedulers::{installed, own_means, Entrant, Kind, FIFO_BY_RATE, KERNELS_OWN};

use self::declare::Declared;
use self::guard::{Launch, Program};
use self::kernel::Loaded;
use super::convert::Converted;
pub use super::unmodelled::bound_to;
use super::unmodelled::named_cpus;
use super::workload::{Calibration, Workload};
use crate::policy::network::Model;

/// Ctrl-C, or another signal that asks us to end.
#[derive(Debug, thiserror::Error)]
#[error("interrupted; everything is as it was before")]
pub struct Interrupted;

/// What is to be run.
pub struct LivePlan<'a> {
    pub workload: &'a Workload,
    pub converted: &'a Converted,
    pub entrants: &'a [Entrant],
    /// CPUs for rt-app, from `cpus_for`.
    pub cpus: Vec<u32>,
    pub model: Option<PathBuf>,
    /// Take the file's figure for what a loop takes, where it has one.
    pub trust_calibration: bool,
    /// What a loop takes, where it was measured before.
    pub calibration_ns: Option<u32>,
    /// rt-app may use the files and cgroups that the workload names.
    pub trusts_workload: bool,
    /// Who ran where is recorded, which costs a little at every switch.
    pub traced: bool,
}

/// The CPUs a workload runs on: those that its threads are bound to, and for the
/// others as many as asked for, from the last on (the first does the machine's own
/// work), else all.
pub fn cpus_for(workload: &Workload, online: &[u32], cores: Option<usize>) -> Result<Vec<u32>> {
    let wanted = cores.unwrap_or(online.len());
    ensure!(
        wanted <= online.len(),
        "{wanted} cores were asked for, and {} CPUs are online",
        online.len()
    );
    let named = named_cpus(workload);
    let mut cpus = match named {
        Some(_) => Vec::new(),
        None => online[online.len() - wanted..].to_vec(),
    };
    cpus.extend(bound_to(workload));
    cpus.sort_unstable();
    cpus.dedup();
    match cpus.iter().find(|cpu| !online.contains(cpu)) {
        Some(cpu) => bail!("the workload names CPU {cpu}, which is not online"),
        None => Ok(cpus),
    }
}

impl LivePlan<'_> {
    /// Runs all; who fails has the reason in its place. Ends early only when told to
    /// (`stop`), or when rt-app cannot run here at all.
    pub fn run(&self, stop: &AtomicBool, tell: &dyn Fn(&str)) -> Result<Collected> {
        let io_device = named_files::io_device(self.workload, self.trusts_workload)?;
        installed("rt-app").context(
            "rt-app is not installed (in Debian: apt install rt-app); --sim needs no rt-app",
        )?;
        let before = Loaded::now();
        if !before.is_none() {
            bail!(
                "the sched_ext scheduler {} is loaded: end it first",
                before.name()
            );
        }
        let scratch = Scratch::new()?;
        let calibration_ns = match self.calibration_ns {
            Some(known) => known,
            None => self.calibrate(&scratch, stop)?,
        };
        let mut collected = Collected::new(LiveMachine {
            kernel: kernel::release(),
            cpus: self.cpus.clone(),
            calibration_ns,
        });
        let file_s = (self.workload.global.calibration, self.calibration_ns);
        if let (Calibration::NsPerLoop(ns), None) = file_s {
            if ns.abs_diff(calibration_ns) > calibration_ns / 10 {
                collected.note(format!(
                    "the file says that a loop takes {ns} ns; {calibration_ns} ns were measured \
                     and used (--calibration file takes the other)"
                ));
            }
        }
        let declared = declare::declared(self.workload, self.converted);
        for entrant in self.entrants {
            tell(&entrant.name);
            let model = self.model_of(entrant)?;
            let mut run = Run::of(entrant.name.clone(), model);
            let folder = scratch.path().join(format!("run{}", collected.runs.len()));
            let turn = turn::Turn {
                plan: self,
                entrant,
                declared: &declared,
                calibration_ns,
                io_device: &io_device,
                folder: &folder,
                stop,
            };
            match turn.run(&mut run) {
                Ok(notes) => notes.into_iter().for_each(|note| collected.note(note)),
                Err(why) if why.is::<Interrupted>() => return Err(why),
                Err(why) => run.failed = Some(format!("{why:#}")),
            }
            collected.runs.push(run);
        }
        Ok(collected)
    }

    fn calibrate(&self, scratch: &Scratch, stop: &AtomicBool) -> Result<u32> {
        match self.workload.global.calibration {
            Calibration::NsPerLoop(ns) if self.trust_calibration => Ok(ns),
            Calibration::NsPerLoop(_) => calibrate(scratch.path(), 0, stop),
            Calibration::OnCpu(cpu) => calibrate(scratch.path(), cpu, stop),
        }
    }

    fn model_of(&self, entrant: &Entrant) -> Result<Option<String>> {
        if !entrant.wants_model() {
            return Ok(None);
        }
        let model = Model::open(self.model.as_deref())?;
        Ok(Some(model.provenance().name.clone()))
    }

    /// Share of a CPU that all declarations claim, per CPU of the machine.
    fn density(&self, declared: &[Option<Declared>]) -> Result<f64> {
        let threads = self.workload.threads.iter().zip(declared);
        let sum: f64 = threads
            .filter_map(|(thread, declared)| {
                let declared = declared.as_ref().filter(|declared| declared.is_told)?;
                Some(declared.density() * f64::from(thread.instances))
            })
            .sum();
        Ok(sum / kernel::online_cpus()?.len().max(1) as f64)
    }
}

fn check(stop: &AtomicBool) -> Result<()> {
    match stop.load(Ordering::Relaxed) {
        true => Err(Interrupted.into()),
        false => Ok(()),
    }
}

/// Nanoseconds per loop, measured by rt-app once, while nothing of ours runs.
pub fn calibrate(folder: &Path, cpu: u32, stop: &AtomicBool) -> Result<u32> {
    let file = folder.join("calibrate.json");
    let text = serde_json::json!({
        "global": { "duration": 1, "calibration": format!("CPU{cpu}"), "lock_pages": false,
            "logdir": folder },
        "tasks": { "calibrate": { "loop": 1, "run": 1000 } },
    });
    std::fs::write(&file, text.to_string()).context("cannot write a temporary file")?;
    let said = folder.join("calibrate.txt");
    let words = ["rt-app".into(), file.into_os_string()];
    let mut rtapp = Program::start(Launch {
        words: &words,
        said: said.clone(),
        at_our_death: libc::SIGKILL,
        cpus: &[],
        patience: turn::RTAPP_PATIENCE,
    })?;
    turn::wait(&mut rtapp, turn::CALIBRATION_LIMIT, stop, &mut || Ok(()))?;
    let said = std::fs::read_to_string(&said).unwrap_or_default();
    said.split("pLoad = ")
        .nth(1)
        .and_then(|rest| rest.split("ns").next()?.trim().parse().ok())
        .filter(|&ns| ns > 0)
        .with_context(|| format!("rt-app did not calibrate: {}", rtapp.last_words()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workload_gets_the_cpus_that_were_asked_for_or_that_it_names() {
        let parse = |text: &str| Workload::parse(text.as_bytes()).unwrap();
        let free = parse(r#"{"tasks": {"a": {"run": 1, "sleep": 1}}}"#);
        let pinned = parse(r#"{"tasks": {"a": {"cpus": [1], "run": 1, "sleep": 1}}}"#);
        let online = [0, 1, 2, 3];
        assert_eq!(cpus_for(&free, &online, Some(2)).unwrap(), [2, 3]);
        assert_eq!(cpus_for(&free, &online, None).unwrap(), online);
        // The file's own word comes first: rt-app would bind the thread there.
        assert_eq!(cpus_for(&pinned, &online, Some(2)).unwrap(), [1]);
        let mixed = parse(
            r#"{"tasks": {"a": {"cpus": [0], "run": 1, "sleep": 1}, "b": {"run": 1, "sleep": 1}}}"#,
        );
        assert_eq!(cpus_for(&mixed, &online, Some(1)).unwrap(), [0, 3]);
        assert!(cpus_for(&pinned, &[0], None).is_err());
        assert!(cpus_for(&free, &online, Some(5)).is_err());
    }
}
