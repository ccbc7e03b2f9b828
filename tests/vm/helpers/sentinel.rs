//! A periodic task that judges itself, so that nobody has to believe the scheduler's
//! own figures. It wakes up on a fixed grid of the monotonic clock, burns so much CPU
//! time, and is on time if that ends before its next release. Grid points that it slept
//! or worked through are misses.
//!
//!     sentinel FILE PERIOD_MS WORK_US [map | together]
//!
//! With `map` a thread of it that nobody declares holds the memory map of the process as
//! often as it gets a CPU, and each of its jobs begins by wanting that map. With `together`
//! it wakes up at the same moments as all others of its period.
//!
//! On SIGTERM it leaves `jobs=`, `missed=`, `worst_us=` (its longest response), `worst_at_s=`
//! (when that began, by the monotonic clock) and `worst_pushed_aside=` (how often it lost the
//! CPU meanwhile, before it was done) in FILE.
use anyhow::{Context, Result};
use std::sync::atomic::{AtomicBool, Ordering};

static STOP: AtomicBool = AtomicBool::new(false);

fn clock(id: libc::clockid_t) -> i64 {
    // SAFETY: the kernel fills the timespec.
    unsafe {
        let mut time: libc::timespec = std::mem::zeroed();
        libc::clock_gettime(id, &mut time);
        time.tv_sec * 1_000_000_000 + time.tv_nsec
    }
}

/// How often this thread lost its CPU without having asked for it.
fn pushed_aside() -> i64 {
    // SAFETY: the kernel fills the struct.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &mut usage);
        usage.ru_nivcsw
    }
}

fn sleep_until(at: i64) {
    let time = libc::timespec {
        tv_sec: at / 1_000_000_000,
        tv_nsec: at % 1_000_000_000,
    };
    // SAFETY: the timespec lives across the call; the rest is not asked for.
    unsafe {
        libc::clock_nanosleep(
            libc::CLOCK_MONOTONIC,
            libc::TIMER_ABSTIME,
            &time,
            std::ptr::null_mut(),
        );
    }
}

/// A piece of memory that was touched.
fn map(bytes: usize) -> Result<*mut libc::c_void> {
    // SAFETY: nobody's memory is replaced.
    let at = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE,
            -1,
            0,
        )
    };
    anyhow::ensure!(at != libc::MAP_FAILED, std::io::Error::last_os_error());
    Ok(at)
}

/// To change what may be done to many pages takes long, with the map locked.
fn hold_the_map() -> Result<()> {
    const BYTES: usize = 128 << 10;
    let at = map(BYTES)?;
    while !STOP.load(Ordering::Relaxed) {
        for protection in [libc::PROT_READ, libc::PROT_READ | libc::PROT_WRITE] {
            // SAFETY: memory of our own that nobody uses.
            unsafe { libc::mprotect(at, BYTES, protection) };
        }
    }
    Ok(())
}

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let mut next = |what: &str| args.next().with_context(|| format!("which {what}?"));
    let file = next("file")?;
    let period = next("period, in ms")?.parse::<i64>()? * 1_000_000;
    let work = next("work, in us")?.parse::<i64>()? * 1_000;
    ctrlc::set_handler(|| STOP.store(true, Ordering::Relaxed))?;
    // It judges the scheduler, not the disk that pages come from. Where it may not, it
    // judges both.
    // SAFETY: a plain call.
    unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) };

    let (wants_the_map, together) = match args.next().as_deref() {
        None => (false, false),
        Some("map") => (true, false),
        Some("together") => (false, true),
        Some(other) => anyhow::bail!("{other}?"),
    };
    if wants_the_map {
        std::thread::spawn(hold_the_map);
    }

    let (mut jobs, mut missed, mut worst) = (0, 0, (0, 0, 0));
    let mut release = clock(libc::CLOCK_MONOTONIC) + period;
    if together {
        release -= release % period;
    }
    while !STOP.load(Ordering::Relaxed) {
        let before = pushed_aside();
        sleep_until(release);
        if wants_the_map {
            // SAFETY: what was mapped here and nobody has seen.
            unsafe { libc::munmap(map(4096)?, 4096) };
        }
        let enough = clock(libc::CLOCK_THREAD_CPUTIME_ID) + work;
        while clock(libc::CLOCK_THREAD_CPUTIME_ID) < enough {}
        let response = clock(libc::CLOCK_MONOTONIC) - release;
        worst = worst.max((response, release, pushed_aside() - before));
        let passed = response / period;
        jobs += 1 + passed;
        // A late job, and a release for every whole period more that it took.
        missed += passed;
        release += (passed + 1) * period;
    }
    let (worst, at, pushed) = (worst.0 / 1000, worst.1 / 1_000_000_000, worst.2);
    std::fs::write(
        file,
        format!(
            "jobs={jobs}\nmissed={missed}\nworst_us={worst}\nworst_at_s={at}\nworst_pushed_aside={pushed}\n"
        ),
    )?;
    Ok(())
}
