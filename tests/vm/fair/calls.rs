//! The system calls that the storm (tests/vm/storm/sys.rs) does not need.
use std::io;

fn check(result: i32) -> io::Result<()> {
    match result {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// CPU time of the calling thread, ns.
pub fn cpu_time() -> u64 {
    // SAFETY: the kernel fills the timespec.
    unsafe {
        let mut time: libc::timespec = std::mem::zeroed();
        libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time);
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
    }
}

/// About so many instructions.
pub fn spin(instructions: u64) {
    for turn in 0..instructions / 4 {
        std::hint::black_box(turn);
    }
}

/// Of the calling process, which loses root's rights with it.
pub fn become_user(uid: u32) -> io::Result<()> {
    // SAFETY: plain calls.
    unsafe {
        check(libc::setgroups(0, std::ptr::null()))?;
        check(libc::setgid(uid))?;
        check(libc::setuid(uid))
    }
}

/// How late timers of the calling process, and of what it starts, may be: by default 50 µs,
/// and whether they are depends on when the tick comes.
pub fn set_timer_slack(ns: u64) {
    // SAFETY: a plain call.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, ns) };
}

/// Zeroed memory for `count` values, which processes forked later share; it stays.
pub fn shared<T: Default>(count: usize) -> io::Result<&'static [T]> {
    let bytes = count.max(1) * size_of::<T>();
    // SAFETY: a mapping of its own, of the right size, aligned to a page, never unmapped, and
    // filled before anybody sees it.
    unsafe {
        let memory = libc::mmap(
            std::ptr::null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_ANONYMOUS,
            -1,
            0,
        );
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let first = memory.cast::<T>();
        for at in 0..count {
            first.add(at).write(T::default());
        }
        Ok(std::slice::from_raw_parts(first, count))
    }
}

/// The status of a child of ours that has ended (a signal: minus its number), if it has;
/// `waits` until it does.
pub fn ended(pid: i32, waits: bool) -> Option<i32> {
    let mut status = 0;
    let options = if waits { 0 } else { libc::WNOHANG };
    // SAFETY: the kernel fills the status.
    match unsafe { libc::waitpid(pid, &mut status, options) } {
        found if found == pid && libc::WIFSIGNALED(status) => Some(-libc::WTERMSIG(status)),
        found if found == pid => Some(libc::WEXITSTATUS(status)),
        _ => None,
    }
}

/// The calling thread.
pub fn thread_id() -> i32 {
    // SAFETY: a plain call.
    unsafe { libc::gettid() }
}
