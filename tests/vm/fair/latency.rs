//! Wake-up latencies of an undeclared SCHED_OTHER thread, by cyclictest.
use crate::calls;
use crate::stage::write;
use anyhow::{ensure, Context, Result};
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// No multiple of a tick: an icount guest is so regular that whoever wakes up in step with
/// ticks meets the same moment every time.
const INTERVAL_US: u64 = 9_937;

/// µs, of all wake-ups but those of the first second.
pub struct Latency {
    pub samples: usize,
    pub p50_us: f64,
    pub p99_us: f64,
    pub max_us: f64,
}

pub struct Listener(Child);

/// Runs in the given cgroup for so many seconds.
pub fn start(cgroup: &Path, seconds: u64) -> Result<Listener> {
    let procs = cgroup.join("cgroup.procs");
    let mut command = Command::new("cyclictest");
    command
        .args([
            "--quiet",
            "--policy=other",
            "--threads=1",
            "--nsecs",
            "--verbose",
        ])
        .arg(format!("--interval={INTERVAL_US}"))
        .arg(format!("--duration={seconds}"))
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    // SAFETY: the parent has one thread, so the child may do all that the parent may.
    unsafe {
        command.pre_exec(move || {
            calls::set_timer_slack(1);
            write(&procs, "0").map_err(std::io::Error::other)
        });
    }
    Ok(Listener(
        command.spawn().context("cannot start cyclictest")?,
    ))
}

impl Listener {
    pub fn hear(mut self) -> Result<Latency> {
        let mut text = String::new();
        let mut stdout = self.0.stdout.take().context("cyclictest without output")?;
        stdout.read_to_string(&mut text)?;
        ensure!(self.0.wait()?.success(), "cyclictest failed");
        summarise(&text)
    }
}

/// Lines of `thread: cycle: ns`.
fn summarise(text: &str) -> Result<Latency> {
    let settled = 1_000_000 / INTERVAL_US;
    let mut latencies: Vec<f64> = text
        .lines()
        .filter_map(|line| {
            let mut parts = line.split(':').map(|part| part.trim().parse::<u64>().ok());
            let (_, cycle, ns) = (parts.next()??, parts.next()??, parts.next()??);
            (cycle >= settled).then_some(ns as f64 / 1000.0)
        })
        .collect();
    ensure!(!latencies.is_empty(), "cyclictest told of no wake-up");
    latencies.sort_by(f64::total_cmp);
    let percentile = |share: usize| latencies[(latencies.len() * share).div_ceil(100) - 1];
    Ok(Latency {
        samples: latencies.len(),
        p50_us: percentile(50),
        p99_us: percentile(99),
        max_us: percentile(100),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_second_does_not_count() {
        let lines: Vec<String> = (0..200)
            .map(|cycle| {
                format!(
                    "       0: {cycle:8}: {:8}",
                    if cycle < 100 { 9_000_000 } else { cycle * 1000 }
                )
            })
            .collect();
        let latency = summarise(&lines.join("\n")).unwrap();
        assert_eq!((latency.samples, latency.max_us), (100, 199.0));
        assert_eq!((latency.p50_us, latency.p99_us), (149.0, 198.0));
    }
}
