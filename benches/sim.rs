//! How fast the simulator is: job-events (releases, completions, aborts) a second
//! on one core, and how the cost of an event grows with the number of tasks.
//!
//! `cargo bench --bench sim` prints the figures of docs/measurements/yardstick.md and fails
//! when a floor is not held.

use std::time::Duration;

use scx_temponet::sim::engine::{Options, Record, Sim};
use scx_temponet::sim::policies::find;
use scx_temponet::sim::task::{Semantics, TaskSet};
use scx_temponet::sim::time::SECOND;
use scx_temponet::sim::workload::{self, Params};

/// Best of several: what the code costs, not what the neighbours do.
const ROUNDS: usize = 7;

/// CPU time of this thread, for the same reason.
fn cpu_time() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the kernel fills in the struct it is given.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    assert_eq!(failed, 0, "no CPU clock");
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn set(workload: &str, tasks: usize, cores: usize, load: f64, events: u64) -> TaskSet {
    let params = Params {
        cores: Some(cores),
        tasks: Some(tasks),
        load: Some((load, load)),
        ..Params::default()
    };
    let workload = workload::find(workload).expect("a known workload");
    let mut set = workload.generate(&params, 1, 0);
    let per_second: f64 = set.tasks.iter().map(|t| 2e9 / t.period_ns as f64).sum();
    set.horizon_ns = (events as f64 / per_second * SECOND as f64) as u64;
    set
}

/// Job-events a second, and nanoseconds for each.
fn measure(set: &TaskSet, policy: &str, semantics: Semantics) -> (f64, f64) {
    let entry = find(policy).expect("a known policy");
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let mut sim = Sim::new(set, set.cores, Options::new(semantics), Record::default());
        let start = cpu_time();
        sim.run((entry.make)().as_mut());
        let ns = (cpu_time() - start).as_nanos() as f64 / sim.tally.job_events as f64;
        best = best.min(ns);
    }
    (1e9 / best, best)
}

fn main() {
    let mut failed = false;
    let mut floor = |what: &str, rate: f64, least: f64| {
        let held = rate >= least;
        failed |= !held;
        println!(
            "{what:<44} {:>8.2} M job-events/s (floor {:.0} M: {})",
            rate / 1e6,
            least / 1e6,
            if held { "held" } else { "MISSED" }
        );
    };
    for semantics in Semantics::BOTH {
        let small = set("random5", 5, 1, 0.9, 2_000_000);
        let (rate, _) = measure(&small, "plain-edf", semantics);
        floor(&format!("EDF, N=5, m=1, {}", semantics.name()), rate, 5e6);
        let large = set("large", 600, 8, 1.0, 1_000_000);
        let (rate, _) = measure(&large, "plain-edf", semantics);
        floor(&format!("EDF, N=600, m=8, {}", semantics.name()), rate, 1e6);
    }
    println!("\nEDF on one core, load 0.9: cost of an event against log2 N");
    let mut first = None;
    for tasks in [4, 16, 64, 256, 1024, 4096, 16384] {
        let set = set("large", tasks, 1, 0.9, 1_000_000);
        let (_, ns) = measure(&set, "plain-edf", Semantics::Abort);
        let per_log = ns / (tasks as f64).log2();
        let reference = *first.get_or_insert(per_log);
        println!("  N={tasks:<6} {ns:>7.1} ns   {per_log:>6.1} ns per log2 N");
        // Caches end somewhere; up to 4096 tasks the bound must hold.
        if tasks <= 4096 && per_log > reference {
            failed = true;
            println!("  grows faster than log N");
        }
    }
    println!("\nother policies, N=600, m=8, load 1.0, abort");
    // DP-Wrap plans for everybody at every event: a thousand times the work.
    for (policy, events) in [
        ("llf", 100_000),
        ("srpt", 100_000),
        ("edf-drop", 100_000),
        ("mh", 100_000),
        ("edzl", 100_000),
        ("distilled", 100_000),
        ("distilled-shield", 10_000),
        ("dp-wrap", 5_000),
    ] {
        let large = set("large", 600, 8, 1.0, events);
        let (rate, ns) = measure(&large, policy, Semantics::Abort);
        println!(
            "  {policy:<17} {:>7.3} M job-events/s, {ns:>8.0} ns",
            rate / 1e6
        );
    }
    if failed {
        std::process::exit(1);
    }
}
