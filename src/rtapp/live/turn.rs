//! One scheduler's turn: load it, run rt-app, see that it stayed, unload it.

use std::mem::MaybeUninit;
use std::path::Path;
use std::process::ExitStatus;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::{bail, ensure, Context, Result};

use super::declare::{self, Declared};
use super::guard::{Launch, Program, Sysctl};
use super::judge;
use super::kernel::{online_cpus, Loaded};
use super::schedulers::{Entrant, Kind};
use super::{check, Interrupted, LivePlan, Run};
use crate::record::{Recorder, TaskRecord};
use crate::rtapp::log::{self, Log};
use crate::rtapp::write::{self, Class, Orders, LOG_BASENAME};
use crate::sim::time::{SECOND, US};

/// Every thread sleeps so long first: time to find it and to declare its deadline.
/// Where that was not enough, the machine is slow, and the second is tried.
const LEADS_US: [u64; 2] = [2_000_000, 15_000_000];
/// After the last judged deadline, at least, for jobs that are late; rt-app runs for
/// whole seconds.
const TAIL_US: u64 = 250_000;
const LOADING_LIMIT: Duration = Duration::from_secs(60);
const UNLOADING_LIMIT: Duration = Duration::from_secs(30);
/// Beyond its duration, for rt-app to end its threads and write its logs.
const RTAPP_GRACE: Duration = Duration::from_secs(60);
pub(super) const CALIBRATION_LIMIT: Duration = Duration::from_secs(120);
pub(super) const RTAPP_PATIENCE: Duration = Duration::from_secs(2);
const SCHEDULER_PATIENCE: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(100);
/// A row of rt-app's log in memory, generously.
const ROW_BYTES: u64 = 128;
const MOST_LOG_MEGABYTES: u64 = 64;
/// The kernel's admission control for SCHED_DEADLINE, and what switches it off.
const RT_RUNTIME: &str = "/proc/sys/kernel/sched_rt_runtime_us";

/// The threads began before everything was ready for them.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct TooSlow(String);

pub(super) struct Turn<'a> {
    pub plan: &'a LivePlan<'a>,
    pub entrant: &'a Entrant,
    pub declared: &'a [Option<Declared>],
    pub calibration_ns: u32,
    pub io_device: &'a str,
    pub folder: &'a Path,
    pub stop: &'a AtomicBool,
}

impl Turn<'_> {
    /// Whatever this starts or changes is gone or undone when it returns.
    pub fn run(&self, run: &mut Run) -> Result<Vec<String>> {
        std::fs::create_dir(self.folder).context("cannot create a temporary folder")?;
        // Whoever failed before may still be on its way out.
        self.wait_until_unloaded()?;
        let _admission = self.open_admission()?;
        let mut scheduler = self.load()?;
        let loaded = Loaded::now();
        run.ops = loaded.name();
        let mut notes = self.workload(LEADS_US[0], &loaded, scheduler.as_mut(), run);
        if matches!(&notes, Err(why) if why.is::<TooSlow>()) {
            notes = self.workload(LEADS_US[1], &loaded, scheduler.as_mut(), run);
        }
        let notes = notes?;
        if let Some(mut scheduler) = scheduler {
            let ended = scheduler.end();
            ensure!(ended, "it did not end when asked, and was killed");
            self.wait_until_unloaded()?;
        }
        Ok(notes)
    }

    /// SCHED_DEADLINE refuses threads that are bound to CPUs, and those that ask for
    /// more than 95 % of the machine.
    fn open_admission(&self) -> Result<Option<Sysctl>> {
        if self.entrant.kind != Kind::Deadline {
            return Ok(None);
        }
        let all = online_cpus()?;
        if self.plan.cpus == all && self.plan.density(self.declared)? < 0.9 {
            return Ok(None);
        }
        Sysctl::set(Path::new(RT_RUNTIME), "-1").map(Some)
    }

    fn load(&self) -> Result<Option<Program>> {
        let density = self.plan.density(self.declared)?;
        let model = self.plan.model.as_deref();
        let Some(words) = self.entrant.command(density, model)? else {
            return Ok(None);
        };
        crate::agent::kernel::preflight()?;
        let mut scheduler = Program::start(Launch {
            words: &words,
            said: self.folder.join("scheduler.txt"),
            at_our_death: libc::SIGINT,
            cpus: &[],
            patience: SCHEDULER_PATIENCE,
        })?;
        let until = Instant::now() + LOADING_LIMIT;
        while !Loaded::now().is_enabled() {
            check(self.stop)?;
            if let Some(status) = scheduler.ended()? {
                let said = scheduler.last_words();
                bail!("it did not load ({status}): {said}");
            }
            ensure!(
                Instant::now() < until,
                "it did not load within {LOADING_LIMIT:?}"
            );
            std::thread::sleep(POLL);
        }
        let name = Loaded::now().ops.unwrap_or_default();
        ensure!(
            self.entrant.goes_by(&name),
            "the scheduler that was loaded calls itself {name:?}"
        );
        Ok(Some(scheduler))
    }

    fn wait_until_unloaded(&self) -> Result<()> {
        let until = Instant::now() + UNLOADING_LIMIT;
        while !Loaded::now().is_none() {
            let state = Loaded::now().name();
            ensure!(Instant::now() < until, "{state} did not unload");
            std::thread::sleep(POLL);
        }
        Ok(())
    }

    /// rt-app from start to end, with the scheduler watched.
    fn workload(
        &self,
        lead_us: u64,
        loaded: &Loaded,
        mut scheduler: Option<&mut Program>,
        run: &mut Run,
    ) -> Result<Vec<String>> {
        let file = self.folder.join("workload.json");
        let logs = self.folder.join(format!("logs-{lead_us}"));
        std::fs::create_dir(&logs).context("cannot create a temporary folder")?;
        let (text, duration) = self.file_text(lead_us, &logs)?;
        std::fs::write(&file, text).context("cannot write a temporary file")?;
        let words = ["rt-app".into(), file.into_os_string()];
        let started = Instant::now();
        let mut rtapp = Program::start(Launch {
            words: &words,
            said: self.folder.join("rt-app.txt"),
            at_our_death: libc::SIGKILL,
            cpus: &self.plan.cpus,
            patience: RTAPP_PATIENCE,
        })?;
        let lead = Duration::from_micros(lead_us);
        let threads = self.threads(&mut rtapp, lead)?;
        if self.entrant.wants_hints() {
            declare::declare(&threads, &write::names(self.plan.workload), self.declared)?;
            if started.elapsed() >= lead {
                let why = "the threads had begun before all deadlines were declared";
                return Err(TooSlow(why.into()).into());
            }
        }
        let mut storage = MaybeUninit::uninit();
        // Who ran where is worth having and no reason to fail.
        let mut recorder = match self.plan.traced {
            true => Recorder::start(Some(rtapp.pid()), &mut storage).ok(),
            false => None,
        };
        let mut stretches: Vec<TaskRecord> = Vec::new();
        let limit = Duration::from_secs(duration) + RTAPP_GRACE;
        let status = wait(&mut rtapp, limit, self.stop, &mut || {
            if let Some(recorder) = &mut recorder {
                stretches.extend(recorder.drain()?);
            }
            let now = Loaded::now();
            if let Some(scheduler) = scheduler.as_deref_mut() {
                if let Some(status) = scheduler.ended()? {
                    let said = scheduler.last_words();
                    bail!("the scheduler ended during the run ({status}): {said}");
                }
            }
            now.changed_since(loaded).map_or(Ok(()), |why| bail!(why))
        })?;
        run.overtime_s = started.elapsed().as_secs_f64() - duration as f64;
        ensure!(
            status.success(),
            "rt-app ended with {status}: {}",
            rtapp.last_words()
        );
        if let Some(why) = Loaded::now().changed_since(loaded) {
            bail!(why);
        }
        if let Some(recorder) = recorder {
            stretches.extend(recorder.finish()?.0);
        }
        let (workload, converted) = (self.plan.workload, self.plan.converted);
        let logs = self.logs(&logs)?;
        let judged = judge::judge(workload, converted, &logs, lead_us)?;
        let tids: Vec<u32> = threads.iter().map(|(tid, _)| *tid).collect();
        let segments = judge::segments(
            workload,
            converted,
            &judged,
            &stretches,
            &tids,
            &self.plan.cpus,
        );
        run.keep(&judged.jobs, &segments);
        Ok(judged.notes)
    }

    fn file_text(&self, lead_us: u64, logs: &Path) -> Result<(String, u64)> {
        let horizon = self.plan.converted.set.horizon_ns;
        let duration_s = (horizon + (lead_us + TAIL_US) * US).div_ceil(SECOND);
        let shortest = self.plan.converted.set.tasks.iter().map(|t| t.period_ns);
        let rows = duration_s * SECOND / shortest.min().unwrap_or(SECOND).max(1000);
        let megabytes = (rows * ROW_BYTES).div_ceil(1 << 20) + 1;
        let log_dir = logs.to_str().context("the temporary folder has no name")?;
        let classes: Vec<Class> = declare::classes(self.entrant, self.declared);
        let text = write::text(
            self.plan.workload,
            &Orders {
                classes,
                lead_us,
                duration_s,
                calibration_ns: self.calibration_ns,
                io_device: self.io_device,
                log_dir,
                log_megabytes: megabytes.min(MOST_LOG_MEGABYTES) as u32,
            },
        );
        Ok((text, duration_s))
    }

    /// rt-app's threads, once all are there and have their names.
    fn threads(&self, rtapp: &mut Program, lead: Duration) -> Result<Vec<(u32, String)>> {
        let workload = self.plan.workload;
        let names = write::names(workload);
        let expected: usize = workload.threads.iter().map(|t| t.instances as usize).sum();
        let until = Instant::now() + lead;
        loop {
            check(self.stop)?;
            if let Some(status) = rtapp.ended()? {
                bail!("rt-app ended with {status}: {}", rtapp.last_words());
            }
            let mut threads = declare::threads_of(rtapp.pid())?;
            threads.retain(|(tid, comm)| *tid != rtapp.pid() && names.contains(comm));
            if threads.len() == expected {
                return Ok(threads);
            }
            if Instant::now() >= until {
                let (count, said) = (threads.len(), rtapp.last_words());
                let why = format!("rt-app started {count} of {expected} threads: {said}");
                return Err(TooSlow(why).into());
            }
            std::thread::sleep(POLL);
        }
    }

    /// By number.
    fn logs(&self, folder: &Path) -> Result<Vec<Option<Log>>> {
        let workload = self.plan.workload;
        let names = write::names(workload);
        let threads = names.iter().zip(&workload.threads);
        let names = threads.flat_map(|(name, t)| vec![name; t.instances as usize]);
        let mut logs = Vec::new();
        for (number, name) in names.enumerate() {
            let path = folder.join(format!("{LOG_BASENAME}-{name}-{number}.log"));
            logs.push(match path.exists() {
                true => Some(log::load(&[path])?.remove(0)),
                false => None,
            });
        }
        Ok(logs)
    }
}

/// Until it ends by itself, looking after other things meanwhile.
pub(super) fn wait(
    program: &mut Program,
    limit: Duration,
    stop: &AtomicBool,
    meanwhile: &mut dyn FnMut() -> Result<()>,
) -> Result<ExitStatus> {
    let until = Instant::now() + limit;
    loop {
        if let Some(status) = program.ended()? {
            return Ok(status);
        }
        if check(stop).is_err() {
            return Err(Interrupted.into());
        }
        meanwhile()?;
        ensure!(
            Instant::now() < until,
            "rt-app did not end within {limit:?} and was killed"
        );
        std::thread::sleep(POLL);
    }
}
