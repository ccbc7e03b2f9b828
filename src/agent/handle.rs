//! The agent's thread as the daemon holds it: starts it, rings it, hands it models and CPUs.

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result};
use crossbeam_channel::{bounded, Receiver, Sender};
use libbpf_rs::{Link, MapHandle};
use log::{error, warn};

use super::board::Board;
use super::brain::Brain;
use super::control::{Control, Lines, Settings};
use super::gauges::Gauges;
use super::intake::Truth;
use super::thread::{event_fd, lock_memory, run_program, touch_stack};
use crate::policy::CpuMask;

/// How long the old model is waited for when there is a new one.
const TAKEN_OVER_WITHIN: Duration = Duration::from_secs(2);

/// What the thread works with.
pub struct Senses {
    pub ring: MapHandle,
    pub board: Board,
    /// The program that tells of all declared tasks.
    pub truth: Link,
    /// The program that tells the BPF half which thread decides: the one that runs it.
    pub introduction: OwnedFd,
}

/// The thread, from outside.
pub struct Agent {
    thread: Option<JoinHandle<()>>,
    stop: Arc<AtomicBool>,
    doorbell: Arc<OwnedFd>,
    brains: Sender<Brain>,
    old_brains: Receiver<Brain>,
    cpus: Sender<CpuMask>,
}

impl Agent {
    /// Starts it; it is ready to be rung for when this returns.
    pub fn start(
        brain: Brain,
        senses: Senses,
        settings: Settings,
        gauges: Arc<Gauges>,
    ) -> Result<Agent> {
        let stop = Arc::new(AtomicBool::new(false));
        let doorbell = Arc::new(event_fd().context("cannot make an event descriptor")?);
        let (brains, new_brains) = bounded(1);
        let (retired, old_brains) = bounded(1);
        let (cpus, new_cpus) = bounded(1);
        let (ready, is_ready) = bounded(1);
        let (stop_there, doorbell_there) = (stop.clone(), doorbell.clone());
        let thread = std::thread::Builder::new()
            .name("tn-agent".into())
            .spawn(move || {
                let truth = Truth::new(senses.truth);
                let lines = Lines { new_brains, retired, new_cpus };
                let mut control = Control::new(brain, truth, senses.board, settings, gauges, lines);
                control.warm_up();
                if let Err(e) = run_program(&senses.introduction) {
                    error!("the BPF half does not know the agent's thread, which will wait like others: {e}");
                }
                touch_stack();
                let started = || {
                    let _ = ready.send(());
                };
                if let Err(e) = control.run(&senses.ring, &stop_there, &doorbell_there, started) {
                    error!("the agent gave up, deadlines decide: {e:#}");
                }
            })
            .context("cannot start the agent's thread")?;
        let _ = is_ready.recv();
        Ok(Agent {
            thread: Some(thread),
            stop,
            doorbell,
            brains,
            old_brains,
            cpus,
        })
    }

    /// Another model from the next decision on. All that takes time is done here, by a thread
    /// that nobody waits for.
    pub fn swap(&self, brain: Brain) {
        lock_memory();
        // A full channel: one is already on its way, and the later is dropped.
        if self.brains.try_send(brain).is_err() {
            warn!("a model is being taken over already: try again");
        }
        self.ring();
        // A thread that does not answer is not waited for; the old one goes with the next.
        drop(self.old_brains.recv_timeout(TAKEN_OVER_WITHIN));
        lock_memory();
    }

    /// Decides for these CPUs from now on. `false` while it has not yet taken the last ones:
    /// say it again later.
    pub fn follow(&self, cpus: CpuMask) -> bool {
        let told = self.cpus.try_send(cpus).is_ok();
        self.ring();
        told
    }

    fn ring(&self) {
        let one = 1u64.to_ne_bytes();
        // SAFETY: eight bytes of our own to a descriptor of our own. It can only
        // fail when the counter is full, and then the thread is rung for anyway.
        unsafe { libc::write(self.doorbell.as_raw_fd(), one.as_ptr().cast(), one.len()) };
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.ring();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
