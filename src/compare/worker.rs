//! Carries out a batch on this machine's kernel, and says each result as soon as it is
//! there. It is what a guest runs.

use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use anyhow::{ensure, Context, Result};

use super::measured::Measured;
use super::wire::{Batch, BatchRun, BatchSubject, Line, VERSION};
use crate::rtapp::convert::Converted;
use crate::rtapp::live::{self, cpus_for, kernel, Entrant, Interrupted, LivePlan, Scratch};
use crate::rtapp::Workload;

/// Once in ten seconds khugepaged would hold the memory map of whoever is being measured
/// for some milliseconds.
const HUGE_PAGES: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

pub fn read(path: &Path) -> Result<Batch> {
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let batch: Batch = serde_json::from_str(&text).context("the batch is damaged")?;
    ensure!(
        batch.version == VERSION,
        "the batch is of version {}, not {VERSION}",
        batch.version
    );
    Ok(batch)
}

/// `is_ours`: the machine is a guest, so its settings may be changed for good.
pub fn carry_out(
    batch: &Batch,
    is_ours: bool,
    stop: &AtomicBool,
    say: &dyn Fn(&Line) -> Result<()>,
) -> Result<()> {
    if is_ours {
        // A kernel without them has none to switch off.
        let _ = fs::write(HUGE_PAGES, "never");
    }
    let scratch = Scratch::new()?;
    let calibration_ns = live::calibrate(scratch.path(), 0, stop)?;
    say(&Line::Ready {
        kernel: kernel::release(),
        calibration_ns,
    })?;
    let mut made: Option<(usize, Workload, Converted)> = None;
    for run in &batch.runs {
        say(&Line::Begin { id: run.id })?;
        let subject = &batch.subjects[run.subject];
        if made.as_ref().is_none_or(|(of, ..)| *of != run.subject) {
            let (workload, converted) = subject.work.to_workload(subject.slowdown)?;
            made = Some((run.subject, workload, converted));
        }
        let (_, workload, converted) = made.as_ref().expect("just made");
        let done = measure(
            run,
            subject,
            (workload, converted),
            calibration_ns,
            is_ours,
            stop,
        );
        say(&match done {
            Ok(measured) => Line::Measured {
                id: run.id,
                measured,
            },
            Err(why) if why.is::<Interrupted>() => return Err(why),
            Err(why) => Line::Failed {
                id: run.id,
                why: format!("{why:#}"),
            },
        })?;
    }
    Ok(())
}

fn measure(
    run: &BatchRun,
    subject: &BatchSubject,
    (workload, converted): (&Workload, &Converted),
    calibration_ns: u32,
    trusts_workload: bool,
    stop: &AtomicBool,
) -> Result<Measured> {
    let entrants = [Entrant::parse(&run.scheduler)?];
    let cpus = cpus_for(workload, &kernel::online_cpus()?, Some(subject.cores))?;
    let plan = LivePlan {
        workload,
        converted,
        entrants: &entrants,
        cpus,
        model: None,
        trust_calibration: false,
        calibration_ns: Some(calibration_ns),
        trusts_workload,
        traced: false,
    };
    let collected = plan.run(stop, &|_| {})?;
    let ran = &collected.runs[0];
    if let Some(why) = &ran.failed {
        anyhow::bail!("{why}");
    }
    Ok(Measured {
        loaded: ran.ops.clone(),
        overtime_s: ran.overtime_s,
        ..Measured::of(&converted.set, ran.jobs())
    })
}
