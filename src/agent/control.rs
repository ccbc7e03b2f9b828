//! What the agent's thread does: wakes when the BPF half rings, brings its mirror up to
//! date, decides, writes the board, and sleeps again.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use crossbeam_channel::{Receiver, Sender};
use libbpf_rs::{MapHandle, RingBufferBuilder};
use log::warn;

use super::allocations;
use super::board::{Board, Verdict};
use super::brain::Brain;
use super::gauges::{Endangered, Gauges, ENDANGERED};
use super::intake::{Inbox, Truth};
use super::mirror::Mirror;
use super::misbehave::{Garbage, Misbehaviour};
use super::pace::{Pace, LEAST_INTERVAL, MOST_INTERVAL};
use super::ring_record::RingRecord;
use super::supply::Supply;
use super::thread::{monotonic, page_faults, thread_cpu, wait};
use crate::policy::CpuMask;

const MS: i64 = 1_000_000;
/// Where several CPUs compete for jobs, time alone is a reason to look again.
const LOOK_AGAIN: i64 = 4 * MS;
/// What was said of tasks stands for so long, or until it is said again; the BPF half believes
/// nothing that is to stand for longer.
const VERDICT_FOR: i64 = 1500 * MS;
const VERDICT_MOST: i64 = 1900 * MS;
/// And a decision for a CPU for at most so long.
const DECISION_FOR: i64 = 50 * MS;
/// Resynchronisations are at least so far apart.
const RESYNC_EVERY: i64 = 20 * MS;
/// For tests: time for the ring to run full.
const DEAF_FOR: Duration = Duration::from_secs(5);
/// Faults are asked for once in so many rounds: that is a call into the kernel.
const FAULTS_EVERY: u64 = 16;

pub struct Settings {
    pub cpus: CpuMask,
    /// Share of one CPU.
    pub budget: f64,
    /// For tests: publish nonsense, or nothing.
    pub misbehave: Misbehaviour,
    /// For tests: compare the mirror with the truth so often.
    pub resync_every: Option<Duration>,
}

/// What comes to the thread from the daemon, and goes back.
pub(super) struct Lines {
    pub new_brains: Receiver<Brain>,
    pub retired: Sender<Brain>,
    pub new_cpus: Receiver<CpuMask>,
}

/// What it remembers from round to round.
#[derive(Default)]
struct Rounds {
    count: u64,
    untold: u64,
    resync_wanted: bool,
    resynced_at: i64,
    decided_at: i64,
    /// Ever.
    decided: bool,
    /// What it had used of a CPU when the last round was over.
    cpu_ns: i64,
    /// Running mean of what a decision takes.
    decision_ns: i64,
    /// Jobs wait, so there will be something to decide.
    contended: bool,
    heard: bool,
    allocations: u64,
    faults: u64,
    said: usize,
}

/// What there is to say of all tasks together.
#[derive(Default)]
struct Judged {
    given_up: u64,
    kept_load: f64,
    /// What one of those costs was only declared so far.
    unseen: bool,
}

pub(super) struct Control {
    brain: Brain,
    mirror: Mirror,
    truth: Truth,
    board: Board,
    settings: Settings,
    gauges: Arc<Gauges>,
    lines: Lines,
    rounds: Rounds,
    pace: Pace,
    supply: Supply,
    garbage: Garbage,
}

impl Control {
    pub fn new(
        brain: Brain,
        truth: Truth,
        board: Board,
        settings: Settings,
        gauges: Arc<Gauges>,
        lines: Lines,
    ) -> Control {
        Control {
            brain,
            mirror: Mirror::new(),
            truth,
            board,
            rounds: Rounds::default(),
            pace: Pace::new(settings.budget),
            settings,
            gauges,
            lines,
            supply: Supply::default(),
            garbage: Garbage::default(),
        }
    }

    pub fn warm_up(&mut self) {
        self.introduce();
        self.resync(|_| {});
        if let Ok(mut list) = self.gauges.endangered.lock() {
            list.reserve(ENDANGERED);
        }
    }

    fn introduce(&mut self) {
        self.brain.rehearse();
        if !self.brain.introduce(&self.board) {
            warn!("the model has more bins than the BPF half has room for: it decides, but its values are not tabled");
        }
        if let Ok(mut identity) = self.gauges.identity.lock() {
            identity.clone_from(self.brain.identity());
        }
    }

    /// `started` is for when all is there that it will use.
    pub fn run(
        &mut self,
        ring: &MapHandle,
        stop: &AtomicBool,
        doorbell: &OwnedFd,
        started: impl FnOnce(),
    ) -> Result<()> {
        let inbox = std::cell::RefCell::new(Inbox::default());
        let mut builder = RingBufferBuilder::new();
        builder.add(ring, |bytes| {
            inbox.borrow_mut().push(RingRecord::read(bytes));
            0
        })?;
        let ring = builder.build()?;
        started();
        while !stop.load(Ordering::Relaxed) {
            wait(ring.epoll_fd(), doorbell, self.patience())?;
            let began = monotonic();
            if self.rounds.count == 0 {
                self.rounds.cpu_ns = thread_cpu();
                self.rounds.allocations = allocations::count();
                self.rounds.faults = page_faults();
            }
            self.take_new_brain();
            self.take_new_cpus();
            if self.settings.misbehave == Misbehaviour::Deaf {
                std::thread::sleep(DEAF_FOR);
            }
            let drain = |control: &mut Control| loop {
                let read = ring.consume_raw_n(Inbox::ROOM);
                control.read_inbox(&mut inbox.borrow_mut());
                if read < Inbox::ROOM as i32 {
                    break;
                }
            };
            drain(self);
            self.round(began, drain);
            self.account();
        }
        Ok(())
    }

    /// How long to sleep if nobody rings: for ever where nothing waits.
    fn patience(&self) -> Option<i64> {
        let since = monotonic() - self.rounds.decided_at;
        self.rounds
            .contended
            .then(|| (self.look_again() - since).max(LEAST_INTERVAL / 4))
    }

    /// When to decide again though nothing new was heard. On one CPU a decision
    /// stands until a release, which rings.
    fn look_again(&self) -> i64 {
        self.pace.interval().max(match self.settings.cpus.count() {
            0 | 1 => MOST_INTERVAL,
            _ => LOOK_AGAIN,
        })
    }

    fn take_new_brain(&mut self) {
        let Ok(brain) = self.lines.new_brains.try_recv() else {
            return;
        };
        let old = std::mem::replace(&mut self.brain, brain);
        self.introduce();
        let _ = self.lines.retired.try_send(old);
        Gauges::add(&self.gauges.swaps, 1);
        self.rounds.allocations = allocations::count();
        self.rounds.faults = page_faults();
    }

    /// What was decided for a CPU that is gone must not wait there for its return.
    fn take_new_cpus(&mut self) {
        let Ok(cpus) = self.lines.new_cpus.try_recv() else {
            return;
        };
        for gone in self.settings.cpus.without(&cpus).iter() {
            self.board.withdraw(gone);
        }
        self.settings.cpus = cpus;
        // Fewer or more CPUs are as good a reason to decide again as a record.
        self.rounds.heard = true;
        self.rounds.contended = self.mirror.pending() > cpus.count();
    }

    fn read_inbox(&mut self, inbox: &mut Inbox) {
        let records = inbox.records();
        for record in records {
            self.rounds.resync_wanted |= record.first;
            self.mirror.apply(record);
        }
        self.rounds.heard |= !records.is_empty();
        Gauges::add(&self.gauges.records, records.len() as u64);
        Gauges::add(&self.gauges.bad_records, inbox.bad());
        inbox.clear();
    }

    fn round(&mut self, began: i64, drain: impl Fn(&mut Control)) {
        self.rounds.count += 1;
        Gauges::add(&self.gauges.wakeups, 1);
        let untold = self.board.untold();
        self.rounds.resync_wanted |= untold != self.rounds.untold;
        self.rounds.untold = untold;
        let since = began - self.rounds.resynced_at;
        let asked = self.settings.resync_every;
        self.rounds.resync_wanted |= asked.is_some_and(|every| since >= every.as_nanos() as i64);
        if self.rounds.resync_wanted && since >= RESYNC_EVERY {
            self.resync(drain);
        }
        match self.settings.misbehave {
            Misbehaviour::Silence => {
                let later = monotonic() + 3_600_000 * MS;
                return self.board.heartbeat(self.mirror.kernel_time(later));
            }
            Misbehaviour::Garbage => return self.misbehave(),
            Misbehaviour::None | Misbehaviour::Deaf => {}
        }
        let now = monotonic();
        self.board.heartbeat(self.mirror.kernel_time(now) + 1);
        let since = now - self.rounds.decided_at + LEAST_INTERVAL / 4;
        let heard = self.rounds.heard && since >= self.pace.interval();
        if heard || self.rounds.contended && since >= self.look_again() {
            self.decide(began);
        }
    }

    /// `drain` is for what is told while the truth is being read.
    fn resync(&mut self, drain: impl Fn(&mut Control)) {
        let since = monotonic();
        self.rounds.resynced_at = since;
        self.mirror.ask_truth(since);
        if let Err(e) = self.truth.read() {
            warn!("cannot read how the tasks stand: {e}");
            return;
        }
        Gauges::add(&self.gauges.bad_records, self.truth.bad());
        // A CPU changes a task before it tells of it, so the truth may run ahead of the
        // ring, by as long as an interrupt or a hypervisor holds that CPU up. Who has them
        // compared all the time wants to know what was lost, and not what is late.
        let patience = match self.settings.resync_every {
            Some(_) => 6,
            None => 4,
        };
        for pause in &[0, 1, 4, 16, 64, 256][..patience] {
            std::thread::sleep(Duration::from_millis(*pause));
            drain(self);
            if !self.mirror.differs(self.truth.records()) {
                break;
            }
        }
        self.rounds.resync_wanted = false;
        let repair = self.mirror.resync(self.truth.records());
        Gauges::add(&self.gauges.resyncs, 1);
        let repaired = repair.missing + repair.wrong + repair.ghosts;
        Gauges::add(&self.gauges.repaired, repaired);
        Gauges::set(&self.gauges.overflow, self.mirror.overflow());
    }

    fn decide(&mut self, began: i64) {
        self.pace.begin();
        let interval = self.pace.interval();
        let made = self.mirror.kernel_time(monotonic());
        // It will land when it is made: that is the situation it has to fit.
        let effect = made + self.rounds.decision_ns;
        let cpus = self.settings.cpus;
        let share = self.supply.share(&self.board, cpus);
        let situation = self
            .mirror
            .situation(effect, interval.max(LOOK_AGAIN), cpus, share);
        let hold = situation.hold_ns;
        self.brain.decide(&situation);
        let stands = (interval + VERDICT_FOR / 3).max(VERDICT_FOR);
        let until = (effect + stands).min(made + VERDICT_MOST);
        let judged = self.judge(until);
        let decision = self.brain.decision();

        let expires = effect + hold.min(DECISION_FOR);
        for cpu in cpus.iter() {
            match decision.assignment.job_on(cpu) {
                Some(job) => {
                    let task = &self.mirror.task_of_job(job).record;
                    self.board.decide(cpu, task.pid, task.job, made, expires);
                }
                None => self.board.withdraw(cpu),
            }
        }
        let verdict = decision.verdict;
        let free = if verdict.may_idle && verdict.feasible {
            effect + hold.min(DECISION_FOR)
        } else {
            0
        };
        self.board.free_until(free);
        self.gauges
            .feasible
            .store(verdict.feasible, Ordering::Relaxed);
        self.gauges
            .overloaded
            .store(verdict.overloaded, Ordering::Relaxed);
        self.gauges.burst.store(decision.burst, Ordering::Relaxed);
        let contended = self.mirror.pending() > cpus.count();

        let spare = (cpus.count() as f64 - judged.kept_load).max(0.0);
        self.pace.leave_room((!judged.unseen).then_some(spare));
        if let Some(took) = self.brain.inference_ns() {
            self.brain.publish_values(&self.board);
            self.board.table_until(until);
            self.gauges.inference.note(took);
            Gauges::add(&self.gauges.inferences, 1);
        }

        let done = monotonic();
        self.board.heartbeat(self.mirror.kernel_time(done));
        Gauges::add(&self.gauges.decisions, 1);
        Gauges::set(&self.gauges.given_up, judged.given_up);
        Gauges::set(&self.gauges.tasks, self.mirror.tasks().len() as u64);
        self.gauges.latency.note(done - began);
        self.rounds.decision_ns +=
            (self.mirror.kernel_time(done) - made - self.rounds.decision_ns) / 8;
        self.rounds.decided_at = done;
        self.rounds.decided = true;
        self.rounds.contended = contended;
        self.rounds.heard = false;
        self.show_endangered(effect);
    }

    /// Tells of every task whether it is kept, and by when one that is behind is due.
    fn judge(&mut self, until: i64) -> Judged {
        let mut judged = Judged::default();
        let Control {
            brain,
            mirror,
            board,
            ..
        } = self;
        for (place, task) in mirror.upcoming_tasks().enumerate() {
            let standing = brain.standing(place);
            let verdict = if standing.kept {
                judged.kept_load += task.load();
                judged.unseen |= task.is_unseen();
                Verdict::Keep
            } else {
                judged.given_up += 1;
                Verdict::GiveUp
            };
            board.judge(task.record.pid, verdict, standing.due_ns, until);
        }
        for place in 0..mirror.told() {
            mirror.note(place, brain.standing(place));
        }
        judged
    }

    /// Once in a while, for those who watch: the jobs with the least slack.
    fn show_endangered(&mut self, now_ns: i64) {
        const EVERY: usize = 16;
        self.rounds.said += 1;
        if self.rounds.said % EVERY != 1 {
            return;
        }
        let Ok(mut list) = self.gauges.endangered.try_lock() else {
            return;
        };
        list.clear();
        for (place, task) in self.mirror.upcoming_tasks().enumerate() {
            if !task.record.runnable {
                continue;
            }
            let remaining_ns = task.remaining_ns(now_ns);
            let row = Endangered {
                pid: task.record.pid,
                comm: task.record.comm,
                slack_ns: task.record.deadline_ns - now_ns - remaining_ns,
                remaining_ns,
                deadline_in_ns: task.record.deadline_ns - now_ns,
                criticality: task.record.criticality,
                kept: self.brain.standing(place).kept,
            };
            let at = list.partition_point(|other| other.slack_ns <= row.slack_ns);
            if at < ENDANGERED {
                list.truncate(ENDANGERED - 1);
                list.insert(at, row);
            }
        }
    }

    fn misbehave(&mut self) {
        let now = monotonic();
        let kernel_now = self.mirror.kernel_time(now);
        self.garbage
            .publish(&self.board, self.settings.cpus, kernel_now);
        self.rounds.decided_at = now;
    }

    fn account(&mut self) {
        let cpu = thread_cpu();
        let cost = cpu - std::mem::replace(&mut self.rounds.cpu_ns, cpu);
        Gauges::add(&self.gauges.cpu_ns, cost.max(0) as u64);
        self.pace.spend(cost);
        if self.rounds.decided {
            let interval = self.pace.interval();
            Gauges::set(&self.gauges.interval_ns, interval as u64);
            let again = self.rounds.decided_at + interval;
            self.board.ring_after(self.mirror.kernel_time(again));
        }
        let made = allocations::count() - self.rounds.allocations;
        Gauges::set(&self.gauges.allocations, made);
        if self.rounds.count.is_multiple_of(FAULTS_EVERY) {
            let faults = page_faults() - self.rounds.faults;
            Gauges::set(&self.gauges.page_faults, faults);
        }
    }
}
