//! What the agent's thread asks of the kernel: to be woken, its clocks, its page faults.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use libbpf_rs::libbpf_sys::{bpf_prog_test_run_opts, bpf_test_run_opts};
use log::warn;

/// Has the pages of the stack there that a decision will use.
#[inline(never)]
pub fn touch_stack() {
    let mut pages = [0u8; 256 * 1024];
    for page in pages.iter_mut().step_by(4096) {
        // SAFETY: a byte of our own; volatile, so that it is really written.
        unsafe { std::ptr::write_volatile(page, 1) };
    }
}

pub fn event_fd() -> io::Result<OwnedFd> {
    // SAFETY: a plain call; the descriptor it returns is ours alone.
    let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: as above.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Until the ring or the bell rings, or `patience` nanoseconds.
pub fn wait(ring: i32, bell: &OwnedFd, patience: Option<i64>) -> io::Result<()> {
    let poll = |fd| libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    };
    let mut fds = [poll(ring), poll(bell.as_raw_fd())];
    let time = patience.map(|ns| libc::timespec {
        tv_sec: ns / 1_000_000_000,
        tv_nsec: ns % 1_000_000_000,
    });
    let timeout = time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: both arguments point to values that live through the call.
    let ready = unsafe { libc::ppoll(fds.as_mut_ptr(), 2, timeout, std::ptr::null()) };
    if ready < 0 {
        let error = io::Error::last_os_error();
        return if error.kind() == io::ErrorKind::Interrupted {
            Ok(())
        } else {
            Err(error)
        };
    }
    if fds[1].revents != 0 {
        let mut count = [0u8; 8];
        // SAFETY: eight bytes of our own; it was readable, and does not block.
        unsafe { libc::read(bell.as_raw_fd(), count.as_mut_ptr().cast(), 8) };
    }
    Ok(())
}

/// Runs a BPF program of type syscall on the calling thread.
pub fn run_program(program: &OwnedFd) -> io::Result<()> {
    // SAFETY: zeroes are valid options, which say their own length.
    let mut options: bpf_test_run_opts = unsafe { std::mem::zeroed() };
    options.sz = std::mem::size_of_val(&options) as _;
    // SAFETY: the descriptor is open, and the options live through the call.
    match unsafe { bpf_prog_test_run_opts(program.as_raw_fd(), &raw mut options) } {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(-error)),
    }
}

fn clock(id: libc::clockid_t) -> i64 {
    let mut time = MaybeUninit::<libc::timespec>::zeroed();
    // SAFETY: the kernel fills in the struct; these clocks are always there.
    let time = unsafe {
        libc::clock_gettime(id, time.as_mut_ptr());
        time.assume_init()
    };
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

pub fn monotonic() -> i64 {
    clock(libc::CLOCK_MONOTONIC)
}

pub fn thread_cpu() -> i64 {
    clock(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Of this thread so far.
pub fn page_faults() -> u64 {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the kernel fills in the struct; zeroes are a valid value of it.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
        usage.assume_init()
    };
    (usage.ru_minflt + usage.ru_majflt) as u64
}

/// A page fault in the agent could wait for a task that waits for the agent. It is
/// warm by now and allocates no more; what other threads allocate later need not be
/// there at once, and making it so would take time from others.
pub fn lock_memory() {
    // Nor may the kernel hold the agent up to make large pages of its memory.
    // SAFETY: as below.
    unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0) };
    // SAFETY: changes how our own memory is kept, nothing else.
    if unsafe { libc::mlockall(libc::MCL_CURRENT) } != 0 {
        warn!(
            "cannot lock the agent's memory ({}): it may be late under memory pressure",
            io::Error::last_os_error()
        );
    }
}
