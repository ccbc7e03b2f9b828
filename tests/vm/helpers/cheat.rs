//! A user who cheats, for tests/vm/guest/adversary.sh:
//!
//!     cheat budget SECONDS THREADS    threads declare as much as they are granted, and take
//!                                     more: twice as much, all but the end of a budget again
//!                                     and again, yields in between, children in each period
//!     cheat crowd SECONDS THREADS     threads connect to the hint socket over and over
//!     cheat many SECONDS THREADS      threads declare next to nothing each, and sleep
//!
//! The last line says what came of it, as `granted=N refused=N`, or `connected=N failed=N`.
#[path = "hint_socket.rs"]
mod hint_socket;

use anyhow::{bail, Context, Result};
use hint_socket::{request, send, seqpacket, status, HINT_SOCKET};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const US: u64 = 1_000;
const MS: u64 = 1_000_000;
const SET: u16 = 1;
/// A sixteenth of a CPU, the share at which twice the runtime is forgiven most easily.
const RUNTIME: u64 = MS;
const PERIOD: u64 = 16 * MS;
/// Threads that only ask and connect need little.
const STACK: usize = 64 * 1024;

static GOOD: AtomicU64 = AtomicU64::new(0);
static BAD: AtomicU64 = AtomicU64::new(0);

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [what, seconds, threads] = &args[..] else {
        bail!("usage: cheat budget|crowd|many SECONDS THREADS");
    };
    let until = Instant::now() + Duration::from_secs(seconds.parse().context("how long?")?);
    let threads: usize = threads.parse().context("how many threads?")?;
    let (act, words): (fn(usize, Instant), _) = match what.as_str() {
        "budget" => (cheat, ("granted", "refused")),
        "crowd" => (crowd, ("connected", "failed")),
        "many" => (declare_little, ("granted", "refused")),
        other => bail!("{other}?"),
    };
    let run = |i| {
        thread::Builder::new()
            .stack_size(STACK)
            .spawn(move || act(i, until))
    };
    let running = (0..threads).map(run).collect::<Result<Vec<_>, _>>()?;
    for thread in running {
        let _ = thread.join();
    }
    let (good, bad) = (GOOD.load(Ordering::Relaxed), BAD.load(Ordering::Relaxed));
    println!("{}={good} {}={bad}", words.0, words.1);
    Ok(())
}

fn count(good: bool) {
    let counter = if good { &GOOD } else { &BAD };
    counter.fetch_add(1, Ordering::Relaxed);
}

/// For this thread. A crowd may keep it waiting, so it asks a few times.
fn declare(runtime: u64, period: u64) -> bool {
    // SAFETY: gettid has no arguments.
    let tid = unsafe { libc::gettid() };
    let packet = request(SET, tid, [runtime, period, period], 0, 1);
    for _ in 0..20 {
        let answer = seqpacket(HINT_SOCKET)
            .ok()
            .filter(|fd| send(fd, &packet))
            .and_then(|fd| status(&fd));
        match answer {
            Some(0) => return true,
            Some(errno) if errno != libc::EAGAIN as u32 => return false,
            _ => thread::sleep(Duration::from_millis(20)),
        }
    }
    false
}

fn cheat(i: usize, until: Instant) {
    count(declare(RUNTIME, PERIOD));
    let mut release = Instant::now();
    while Instant::now() < until {
        match i % 4 {
            0 => burn(2 * RUNTIME),
            1 => {
                // As often as it gets through with it.
                burn(RUNTIME * 9 / 10);
                thread::sleep(Duration::from_nanos(50 * US));
                continue;
            }
            2 => {
                burn(RUNTIME / 10);
                thread::yield_now();
                continue;
            }
            _ => beget(),
        }
        release = (release + Duration::from_nanos(PERIOD)).max(Instant::now());
        thread::sleep(release - Instant::now());
    }
}

/// CPU time of this thread.
fn burn(ns: u64) {
    let enough = cpu_time() + ns;
    while cpu_time() < enough {}
}

fn cpu_time() -> u64 {
    // SAFETY: all zeros is a valid timespec, which the kernel fills.
    unsafe {
        let mut time: libc::timespec = std::mem::zeroed();
        libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time);
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
    }
}

/// A child that works in its parent's place.
fn beget() {
    // SAFETY: the child does nothing but read the clock, and ends.
    unsafe {
        match libc::fork() {
            0 => {
                burn(5 * MS);
                libc::_exit(0);
            }
            child if child > 0 => {
                libc::waitpid(child, std::ptr::null_mut(), 0);
            }
            _ => {}
        }
    }
}

fn crowd(_: usize, until: Instant) {
    while Instant::now() < until {
        count(seqpacket(HINT_SOCKET).is_ok());
    }
}

fn declare_little(_: usize, until: Instant) {
    count(declare(10 * US, 1000 * MS));
    thread::sleep(until.saturating_duration_since(Instant::now()));
}
