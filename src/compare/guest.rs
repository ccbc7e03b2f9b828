//! Guests that carry out batches, some side by side.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::Mutex;
use std::time::Duration;

use anyhow::{bail, Context, Result};

use super::measured::Measured;
use super::scheduler::Scheduler;
use super::subject::Work;
use super::wire::{Batch, BatchRun, BatchSubject, Line, VERSION};
use super::worker;
use crate::report::file::write_whole;
use crate::rtapp::live::vm::{self, Guest};
use crate::rtapp::live::{Interrupted, Scratch};
use crate::sim::time::{Ns, SECOND};

/// Boot, calibration: not worth less than so many runs.
const RUNS_A_GUEST: usize = 40;
/// Loading, the threads' lead, the tail, unloading.
const AROUND_A_RUN_S: u64 = 8;
/// A run during which its guest dies is tried so often: now and then the emulator is at
/// fault.
const MOST_TRIES: u32 = 2;
const POLL: Duration = Duration::from_millis(200);

/// A kernel in a guest.
#[derive(Clone, Debug, PartialEq)]
pub struct GuestMachine {
    pub kernel: String,
    /// As `scripts/vm --mode`.
    pub mode: String,
    /// So many at a time.
    pub guests: usize,
}

impl GuestMachine {
    /// All vCPUs of an icount guest share one clock, so a job takes as many times as long
    /// while all are busy: it is given so much less to do.
    pub fn slowdown(&self, cores: usize) -> u64 {
        match self.mode.as_str() {
            "icount" => cores as u64,
            _ => 1,
        }
    }
}

/// A run that a guest is to make.
#[derive(Clone)]
pub struct Order<'a> {
    /// The sender's number.
    pub id: usize,
    /// Subjects of the same number are the same.
    pub subject: usize,
    pub work: &'a Work,
    pub cores: usize,
    pub horizon_ns: Ns,
    pub scheduler: &'a Scheduler,
}

/// What became of an order.
pub type Told<'a> = &'a (dyn Fn(usize, Result<Measured, String>) -> Result<()> + Sync);

/// All orders, each answered once. Orders of the same subject should stand together.
pub fn run(
    machine: &GuestMachine,
    orders: Vec<Order>,
    stop: &AtomicBool,
    tell: Told,
) -> Result<()> {
    let queue = Queue::new(orders, machine.guests);
    let first_failure: Mutex<Option<anyhow::Error>> = Mutex::new(None);
    std::thread::scope(|scope| {
        for _ in 0..machine.guests.max(1) {
            scope.spawn(|| {
                while let Some(batch) = queue.next() {
                    if let Err(why) = one_guest(machine, batch, &queue, stop, tell) {
                        queue.close();
                        let mut failure = first_failure.lock().expect("nobody panics with it");
                        failure.get_or_insert(why);
                    }
                }
            });
        }
    });
    match first_failure.into_inner().expect("nobody panics with it") {
        Some(why) => Err(why),
        None => Ok(()),
    }
}

/// The same on this machine, without a guest.
pub fn run_here(orders: Vec<Order>, stop: &AtomicBool, tell: Told) -> Result<()> {
    if orders.is_empty() {
        return Ok(());
    }
    let orders: Vec<(Order, u32)> = orders.into_iter().map(|order| (order, 0)).collect();
    let batch = packed(&|_| 1, &orders);
    worker::carry_out(&batch, false, stop, &|line| match line.clone() {
        Line::Measured { id, measured } => tell(id, Ok(measured)),
        Line::Failed { id, why } => tell(id, Err(why)),
        Line::Ready { .. } | Line::Begin { .. } => Ok(()),
    })
}

/// Orders that wait, with how often each was tried.
struct Queue<'a> {
    waiting: Mutex<VecDeque<(Order<'a>, u32)>>,
    most: usize,
}

impl<'a> Queue<'a> {
    fn new(orders: Vec<Order<'a>>, guests: usize) -> Queue<'a> {
        // The guests should be done at about the same time.
        let fair = orders.len().div_ceil(guests.max(1));
        Queue {
            most: RUNS_A_GUEST.min(fair.max(1)),
            waiting: Mutex::new(orders.into_iter().map(|order| (order, 0)).collect()),
        }
    }

    /// Orders for a guest of as many CPUs as the first of them wants.
    fn next(&self) -> Option<Vec<(Order<'a>, u32)>> {
        let mut waiting = self.waiting.lock().expect("nobody panics with it");
        let (first, _) = waiting.front()?;
        let cores = first.cores;
        let mut batch = Vec::new();
        while batch.len() < self.most && waiting.front().is_some_and(|(o, _)| o.cores == cores) {
            batch.extend(waiting.pop_front());
        }
        Some(batch)
    }

    fn give_back(&self, orders: Vec<(Order<'a>, u32)>) {
        let mut waiting = self.waiting.lock().expect("nobody panics with it");
        for order in orders.into_iter().rev() {
            waiting.push_front(order);
        }
    }

    fn close(&self) {
        self.waiting.lock().expect("nobody panics with it").clear();
    }
}

fn one_guest<'a>(
    machine: &GuestMachine,
    mut batch: Vec<(Order<'a>, u32)>,
    queue: &Queue<'a>,
    stop: &AtomicBool,
    tell: Told,
) -> Result<()> {
    let scratch = Scratch::new()?;
    let plan = scratch.path().join("plan.json");
    write_whole(
        &plan,
        serde_json::to_string(&packed(&|cores| machine.slowdown(cores), &batch))?.as_bytes(),
    )?;
    let seconds = batch
        .iter()
        .map(|(order, _)| order.horizon_ns / SECOND + AROUND_A_RUN_S)
        .sum();
    let networks = batch
        .iter()
        .filter_map(|(o, _)| o.scheduler.entrant.as_ref());
    let guest = Guest {
        kernel: &machine.kernel,
        mode: &machine.mode,
        cpus: batch[0].0.cores,
        seconds,
        infers: networks.clone().any(|entrant| entrant.wants_model()),
        files: vec![(plan, "/plan/plan.json")],
        out: None,
        command: ["scx_temponet", "compare", "--carry-out", "/plan/plan.json"]
            .map(String::from)
            .into(),
    };
    let mut child = guest.start(Stdio::piped())?;
    let stdout = child.stdout.take().context("the guest has no output")?;
    let (sender, lines) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    let (mut is_up, mut begun) = (false, None);
    loop {
        if stop.load(Ordering::Relaxed) {
            vm::end(&mut child)?;
            return Err(Interrupted.into());
        }
        let line = match lines.recv_timeout(POLL) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => break,
        };
        let (id, done) = match Line::parse(&line) {
            Some(Line::Ready { .. }) => {
                is_up = true;
                continue;
            }
            Some(Line::Begin { id }) => {
                begun = Some(id);
                continue;
            }
            Some(Line::Measured { id, measured }) => (id, Ok(measured)),
            Some(Line::Failed { id, why }) => (id, Err(why)),
            None => continue,
        };
        // Whatever comes twice, or was not asked for, is not believed.
        let place = batch.iter().position(|(order, _)| order.id == id);
        if let Some(place) = place {
            batch.remove(place);
            if let Err(why) = tell(id, done) {
                vm::end(&mut child)?;
                return Err(why);
            }
        }
    }
    let status = vm::wait(&mut child, stop)?;
    if batch.is_empty() {
        return Ok(());
    }
    if !is_up {
        bail!("the guest did not come up ({status}); its last words are above");
    }
    let why = match status.code() {
        Some(124) => "the guest was killed at its limit".into(),
        Some(123) => "the guest's kernel panicked".into(),
        _ => format!("the guest ended before it was done ({status})"),
    };
    let during = begun.and_then(|id| batch.iter().position(|(order, _)| order.id == id));
    let Some(during) = during else {
        bail!("{why}, and no run was under way");
    };
    batch[during].1 += 1;
    if batch[during].1 >= MOST_TRIES {
        let (order, _) = batch.remove(during);
        tell(order.id, Err(why))?;
    }
    queue.give_back(batch);
    Ok(())
}

fn packed(slowdown: &dyn Fn(usize) -> u64, orders: &[(Order, u32)]) -> Batch {
    let mut batch = Batch {
        version: VERSION,
        subjects: Vec::new(),
        runs: Vec::new(),
    };
    let mut numbers = Vec::new();
    for (order, _) in orders {
        let place = numbers.iter().position(|&number| number == order.subject);
        let subject = place.unwrap_or_else(|| {
            numbers.push(order.subject);
            batch.subjects.push(BatchSubject {
                work: order.work.clone(),
                cores: order.cores,
                slowdown: slowdown(order.cores),
            });
            numbers.len() - 1
        });
        batch.runs.push(BatchRun {
            id: order.id,
            subject,
            scheduler: order.scheduler.name.clone(),
        });
    }
    batch
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::workload::tournament::{draw, Options};

    fn orders<'a>(works: &'a [(Work, usize)], edf: &'a Scheduler) -> Vec<Order<'a>> {
        let order = |(id, (work, cores)): (usize, &'a (Work, usize))| Order {
            id,
            subject: id / 2,
            work,
            cores: *cores,
            horizon_ns: SECOND,
            scheduler: edf,
        };
        works.iter().enumerate().map(order).collect()
    }

    #[test]
    fn a_guest_gets_orders_for_its_number_of_cpus_and_each_set_once() {
        let edf = Scheduler::parse("edf").unwrap();
        let set = draw(&Options::default(), 1).set;
        let works: Vec<(Work, usize)> = [1, 1, 1, 1, 2, 2]
            .map(|cores| (Work::Set(set.clone()), cores))
            .into();
        let queue = Queue::new(orders(&works, &edf), 1);
        let first = queue.next().unwrap();
        assert_eq!(first.len(), 4);
        let machine = GuestMachine {
            kernel: "6.12.107".into(),
            mode: "icount".into(),
            guests: 1,
        };
        let batch = packed(&|cores| machine.slowdown(cores), &first);
        assert_eq!((batch.subjects.len(), batch.runs.len()), (2, 4));
        assert_eq!(batch.runs[3].subject, 1);
        // What a guest leaves undone is done next, in its order.
        queue.give_back(first[2..].to_vec());
        let ids: Vec<usize> = queue.next().unwrap().iter().map(|(o, _)| o.id).collect();
        assert_eq!(ids, [2, 3]);
        let last = queue.next().unwrap();
        assert_eq!(
            packed(&|cores| machine.slowdown(cores), &last).subjects[0].slowdown,
            2
        );
        assert!(queue.next().is_none());
    }
}
