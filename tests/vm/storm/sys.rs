//! The system calls of director and workers, fenced in one place. tests/vm/fair uses them too.
use crate::sets::Cpus;
use std::io;

const SCHED_EXT: i32 = 7;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    Other,
    Batch,
    Idle,
    Ext,
    Fifo,
}

fn check(result: i32) -> io::Result<()> {
    match result {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// ns.
pub fn now() -> u64 {
    // SAFETY: the kernel fills the timespec.
    unsafe {
        let mut time: libc::timespec = std::mem::zeroed();
        libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time);
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
    }
}

pub fn sleep_until(at: u64) {
    let time = libc::timespec {
        tv_sec: (at / 1_000_000_000) as i64,
        tv_nsec: (at % 1_000_000_000) as i64,
    };
    // A stop and its continuation interrupt the sleep, which then goes on.
    // SAFETY: the timespec lives across the call; the rest is not asked for.
    while unsafe {
        libc::clock_nanosleep(
            libc::CLOCK_MONOTONIC,
            libc::TIMER_ABSTIME,
            &time,
            std::ptr::null_mut(),
        )
    } == libc::EINTR
    {}
}

pub fn current_cpu() -> usize {
    // SAFETY: a plain call.
    unsafe { libc::sched_getcpu() as usize }
}

pub fn yield_cpu() {
    // SAFETY: a plain call.
    unsafe { libc::sched_yield() };
}

/// How often the thread that calls had to leave the CPU although it wanted to go on.
pub fn times_taken_off() -> u64 {
    // SAFETY: the kernel fills the structure.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &mut usage);
        usage.ru_nivcsw as u64
    }
}

/// The name that rules go by.
pub fn set_name(name: &std::ffi::CStr) {
    // SAFETY: the name ends with a zero, and lives across the call.
    unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
}

/// Of the task that calls.
pub fn allowed_cpus() -> Option<Cpus> {
    // SAFETY: the kernel fills the set.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        check(libc::sched_getaffinity(0, size_of_val(&set), &mut set)).ok()?;
        Some(Cpus((0..64).fold(0, |mask, cpu| {
            mask | u64::from(libc::CPU_ISSET(cpu, &set)) << cpu
        })))
    }
}

/// pid 0: who calls.
pub fn set_affinity(pid: i32, cpus: Cpus) -> io::Result<()> {
    // SAFETY: the set lives across the call.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        for cpu in cpus.iter() {
            libc::CPU_SET(cpu, &mut set);
        }
        check(libc::sched_setaffinity(pid, size_of_val(&set), &set))
    }
}

pub fn set_nice(pid: i32, nice: i64) -> io::Result<()> {
    // SAFETY: a plain call.
    check(unsafe { libc::setpriority(libc::PRIO_PROCESS, pid as u32, nice as i32) })
}

/// Children begin as SCHED_OTHER again.
pub fn set_class(pid: i32, class: Class, priority: i32) -> io::Result<()> {
    let policy = match class {
        Class::Other => libc::SCHED_OTHER,
        Class::Batch => libc::SCHED_BATCH,
        Class::Idle => libc::SCHED_IDLE,
        Class::Ext => SCHED_EXT,
        Class::Fifo => libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK,
    };
    let real_time = class == Class::Fifo;
    let parameters = libc::sched_param {
        sched_priority: if real_time { priority } else { 0 },
    };
    // SAFETY: the parameters live across the call.
    check(unsafe { libc::sched_setscheduler(pid, policy, &parameters) })
}

pub fn signal(pid: i32, signal: i32) -> io::Result<()> {
    // SAFETY: a plain call.
    check(unsafe { libc::kill(pid, signal) })
}

pub fn close(descriptor: i32) {
    // SAFETY: a plain call; whoever owns the descriptor does not use it again.
    unsafe { libc::close(descriptor) };
}

/// Who calls ends when its parent does.
pub fn die_with_parent() {
    // SAFETY: a plain call.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
}

/// A process that does `work` and ends; its pid. The caller has one thread only.
pub fn fork(work: impl FnOnce()) -> io::Result<i32> {
    // SAFETY: with one thread the child may do all that the parent may.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            die_with_parent();
            work();
            // SAFETY: ends the child without the parent's exit handlers.
            unsafe { libc::_exit(0) }
        }
        pid => Ok(pid),
    }
}

pub fn wait_for(pid: i32) {
    let mut status = 0;
    // SAFETY: the kernel fills the status.
    while unsafe { libc::waitpid(pid, &mut status, 0) } == -1
        && io::Error::last_os_error().raw_os_error() == Some(libc::EINTR)
    {}
}
