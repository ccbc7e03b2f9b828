//! The agent's picture of the declared tasks: kept by records, put right by the
//! kernel's truth whenever a record may have been lost.

use std::collections::HashMap;

use super::ring_record::RingRecord;
use crate::policy::linux::hold_ns;
use crate::policy::{CpuMask, Job, Situation, Standing, Upcoming, MAX_CPUS};

/// More declared tasks than this are left to the BPF half alone.
pub const MOST_TASKS: usize = 4096;
/// A task that released nothing for so many periods has stopped asking.
const SILENT_PERIODS: i64 = 3;

/// A task and how it stood when last heard of.
#[derive(Debug, Clone, Copy)]
pub struct Tracked {
    pub record: RingRecord,
    /// When that was, on the clock of the BPF half. That clock stands still while a CPU
    /// is at it: what was told before what goes by the record's monotonic time.
    at_ns: i64,
    /// In the round of the last resynchronisation.
    confirmed: bool,
    /// What the last decision said of it.
    standing: Standing,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Repair {
    /// Tasks that were missing, wrong, or no longer there.
    pub missing: u64,
    pub wrong: u64,
    pub ghosts: u64,
}

/// What the BPF half's clock says, by the monotonic one. A record has its time by both,
/// by the monotonic one a little later: by as much as the CPU was held up in between.
#[derive(Debug, Default, Clone, Copy)]
struct Clock {
    ahead_ns: i64,
    heard_ns: i64,
}

impl Clock {
    /// The clocks may drift apart by one part in so many.
    const DRIFT: i64 = 64;
    const JUMP: i64 = 1_000_000_000;

    fn heard(&mut self, at_ns: i64, monotonic_ns: i64) {
        let ahead = at_ns - monotonic_ns;
        let drift = (monotonic_ns - self.heard_ns).max(0) / Clock::DRIFT;
        let jumped = (ahead - self.ahead_ns).abs() > Clock::JUMP;
        self.ahead_ns = match jumped {
            true => ahead,
            false => ahead.max(self.ahead_ns - drift),
        };
        self.heard_ns = self.heard_ns.max(monotonic_ns);
    }

    fn kernel_time(&self, monotonic_ns: i64) -> i64 {
        monotonic_ns + self.ahead_ns
    }
}

/// All of them. After the first few tasks nothing here allocates.
pub struct Mirror {
    tasks: Vec<Tracked>,
    place_of: HashMap<u32, usize>,
    clock: Clock,
    overflow: u64,
    /// When the truth began to be read last (monotonic), and who left since.
    asked_ns: i64,
    departed: Vec<RingRecord>,
    /// The pid that ran last on each CPU.
    runners: Vec<u32>,
    jobs: Vec<Job>,
    upcoming: Vec<Upcoming>,
    /// Places of the situation's jobs and upcoming releases.
    job_places: Vec<u32>,
    upcoming_places: Vec<u32>,
}

impl Default for Mirror {
    fn default() -> Mirror {
        Mirror::new()
    }
}

impl Mirror {
    pub fn new() -> Mirror {
        Mirror {
            tasks: Vec::with_capacity(MOST_TASKS),
            place_of: HashMap::with_capacity(2 * MOST_TASKS),
            clock: Clock::default(),
            overflow: 0,
            asked_ns: 0,
            departed: Vec::with_capacity(MOST_TASKS),
            runners: vec![0; MAX_CPUS],
            jobs: Vec::with_capacity(MOST_TASKS),
            upcoming: Vec::with_capacity(MOST_TASKS),
            job_places: Vec::with_capacity(MOST_TASKS),
            upcoming_places: Vec::with_capacity(MOST_TASKS),
        }
    }

    pub fn tasks(&self) -> &[Tracked] {
        &self.tasks
    }

    /// Tasks that found no place.
    pub fn overflow(&self) -> u64 {
        self.overflow
    }

    /// The moment of the BPF half's clock that the monotonic one calls `monotonic_ns`.
    pub fn kernel_time(&self, monotonic_ns: i64) -> i64 {
        self.clock.kernel_time(monotonic_ns)
    }

    /// Takes note of a record from the ring.
    pub fn apply(&mut self, record: &RingRecord) {
        let at_ns = match record.at_ns {
            0 => self.kernel_time(record.monotonic_ns),
            at_ns => {
                self.clock.heard(at_ns, record.monotonic_ns);
                at_ns
            }
        };
        let known = self.place_of.get(&record.pid).copied();
        if let Some(place) = known {
            let tracked = &self.tasks[place];
            // Records of two CPUs may overtake each other, and a pid comes again.
            if record.start_time < tracked.record.start_time
                || record.start_time == tracked.record.start_time && tracked.newer_than(record)
            {
                return;
            }
        }
        if record.running {
            self.set_aside_on(record, at_ns);
        }
        match (known, record.gone) {
            (Some(place), true) => {
                self.remove(place);
                if self.departed.len() < MOST_TASKS {
                    self.departed.push(*record);
                }
            }
            (None, true) => {}
            (Some(place), false) => self.tasks[place].update(record, at_ns),
            (None, false) => self.add(record, at_ns),
        }
    }

    /// Whoever ran where the task of `record` runs now does not any more: it is not told of
    /// whom a brief job pushed aside.
    fn set_aside_on(&mut self, record: &RingRecord, at_ns: i64) {
        let Some(runner) = self.runners.get_mut(usize::from(record.cpu)) else {
            return;
        };
        let before = std::mem::replace(runner, record.pid);
        let Some(&place) = self.place_of.get(&before) else {
            return;
        };
        let tracked = &mut self.tasks[place];
        if before != record.pid
            && tracked.record.running
            && tracked.record.cpu == record.cpu
            && !tracked.newer_than(record)
        {
            let ran = (at_ns - tracked.at_ns).max(0);
            tracked.record.executed_ns = tracked.record.executed_ns.saturating_add(ran);
            tracked.record.running = false;
            tracked.at_ns = at_ns;
        }
    }

    /// The truth is going to be read, from `now_ns` (monotonic) on.
    pub fn ask_truth(&mut self, now_ns: i64) {
        self.asked_ns = now_ns;
        self.departed.clear();
    }

    /// Would [`Mirror::resync`] put anything right?
    pub fn differs(&mut self, truth: &[RingRecord]) -> bool {
        self.compare(truth, |_, _, _| {}) != Repair::default()
    }

    /// Puts everything right by the kernel's truth about all declared tasks, and says what
    /// was not.
    pub fn resync(&mut self, truth: &[RingRecord]) -> Repair {
        let repair = self.compare(truth, |mirror, record, place| {
            let at_ns = mirror.kernel_time(record.monotonic_ns);
            match place {
                None => mirror.add(record, at_ns),
                Some(place) => mirror.tasks[place].update(record, at_ns),
            }
        });
        let mut place = 0;
        while place < self.tasks.len() {
            if self.is_ghost(&self.tasks[place]) {
                self.remove(place);
            } else {
                place += 1;
            }
        }
        repair
    }

    /// `take` is given what the truth knows better, and the place of whom it knows better.
    fn compare(
        &mut self,
        truth: &[RingRecord],
        take: impl Fn(&mut Mirror, &RingRecord, Option<usize>),
    ) -> Repair {
        let mut repair = Repair::default();
        for tracked in &mut self.tasks {
            tracked.confirmed = false;
        }
        for record in truth.iter().filter(|record| !record.gone) {
            let place = self.place_of.get(&record.pid).copied();
            match place {
                // One that left while the truth was being read is not missing.
                None if self.has_left(record) => continue,
                None => repair.missing += 1,
                Some(place) => {
                    let tracked = &mut self.tasks[place];
                    tracked.confirmed = true;
                    // What was told while the truth was being read is newer.
                    if tracked.newer_than(record) {
                        continue;
                    }
                    repair.wrong += u64::from(tracked.disagrees(record));
                }
            }
            take(self, record, place);
        }
        let ghosts = self.tasks.iter().filter(|task| self.is_ghost(task));
        repair.ghosts = ghosts.count() as u64;
        repair
    }

    fn has_left(&self, record: &RingRecord) -> bool {
        let mut departed = self.departed.iter();
        departed.any(|left| {
            left.pid == record.pid
                && left.start_time == record.start_time
                && left.monotonic_ns >= record.monotonic_ns
        })
    }

    /// One that was heard of while the truth was being read is none.
    fn is_ghost(&self, tracked: &Tracked) -> bool {
        !tracked.confirmed && tracked.record.monotonic_ns <= self.asked_ns
    }

    fn add(&mut self, record: &RingRecord, at_ns: i64) {
        if self.tasks.len() >= MOST_TASKS {
            self.overflow += 1;
            return;
        }
        self.place_of.insert(record.pid, self.tasks.len());
        self.tasks.push(Tracked::new(record, at_ns));
    }

    fn remove(&mut self, place: usize) {
        let gone = self.tasks.swap_remove(place);
        self.place_of.remove(&gone.record.pid);
        if let Some(moved) = self.tasks.get(place) {
            self.place_of.insert(moved.record.pid, place);
        }
    }

    /// What a decision that takes effect at `now_ns` (the BPF half's clock) is about.
    /// `interval_ns` is how long it will be before the next one, and `share` what declared
    /// jobs get of a CPU while they want all of it.
    pub fn situation(
        &mut self,
        now_ns: i64,
        interval_ns: i64,
        cpus: CpuMask,
        share: f64,
    ) -> Situation<'_> {
        self.jobs.clear();
        self.upcoming.clear();
        self.job_places.clear();
        self.upcoming_places.clear();
        for (place, tracked) in self.tasks.iter().enumerate() {
            let job = tracked.job(now_ns);
            let mut next = tracked.next();
            if let Some(job) = job {
                next.pending = Some(self.jobs.len() as u32);
                next.outlived = job.remaining_ns <= 1;
                self.jobs.push(job);
                self.job_places.push(place as u32);
            } else if now_ns - next.release_ns > SILENT_PERIODS * next.period_ns {
                continue;
            }
            self.upcoming.push(next);
            self.upcoming_places.push(place as u32);
        }
        let releases = self.upcoming.iter().map(|next| next.release_ns);
        let event = releases.filter(|&at| at > now_ns).min();
        Situation {
            now_ns,
            jobs: &self.jobs,
            upcoming: &self.upcoming,
            cpus,
            share,
            hold_ns: hold_ns(event.map(|at| at - now_ns), cpus.count(), interval_ns),
        }
    }

    /// The task of the last situation's job.
    pub fn task_of_job(&self, job: usize) -> &Tracked {
        &self.tasks[self.job_places[job] as usize]
    }

    /// The tasks of the last situation's upcoming releases, in their order.
    pub fn upcoming_tasks(&self) -> impl Iterator<Item = &Tracked> {
        let places = self.upcoming_places.iter();
        places.map(|&place| &self.tasks[place as usize])
    }

    /// What was decided for the task at this place of the last situation's `upcoming`.
    pub fn note(&mut self, place: usize, standing: Standing) {
        if let Some(&at) = self.upcoming_places.get(place) {
            self.tasks[at as usize].standing = standing;
        }
    }

    /// How many tasks the last situation told of.
    pub fn told(&self) -> usize {
        self.upcoming.len()
    }

    /// How many of the last situation's jobs there were.
    pub fn pending(&self) -> usize {
        self.jobs.len()
    }
}

impl Tracked {
    fn new(record: &RingRecord, at_ns: i64) -> Tracked {
        Tracked {
            record: *record,
            at_ns,
            confirmed: true,
            standing: Standing::default(),
        }
    }

    /// Another task with the same pid begins anew.
    fn update(&mut self, record: &RingRecord, at_ns: i64) {
        let same = self.record.start_time == record.start_time;
        let standing = self.standing;
        *self = Tracked::new(record, at_ns);
        if same {
            self.standing = standing;
        }
    }

    /// Is it known from later than `truth`? A change comes before its record, whose
    /// time is taken in between: truth read from then on has it.
    fn newer_than(&self, truth: &RingRecord) -> bool {
        self.record.monotonic_ns > truth.monotonic_ns
    }

    /// What a lost record would have changed for good. A brief job is told of when it has ended.
    fn disagrees(&self, truth: &RingRecord) -> bool {
        let known = &self.record;
        let told_before = truth.is_brief() && known.job.checked_add(1) == Some(truth.job);
        known.start_time != truth.start_time
            || known.period_ns != truth.period_ns
            || !told_before
                && (known.job != truth.job
                    || known.runnable != truth.runnable
                    || known.deadline_ns != truth.deadline_ns)
    }

    pub fn remaining_ns(&self, now_ns: i64) -> i64 {
        let since = if self.record.running {
            (now_ns - self.at_ns).max(0)
        } else {
            0
        };
        (self.record.cost_ns - self.record.executed_ns - since).max(1)
    }

    /// What its jobs take was only declared so far.
    pub fn is_unseen(&self) -> bool {
        self.record.spread_ns == 0
    }

    /// Share of a CPU.
    pub fn load(&self) -> f64 {
        self.record.cost_ns as f64 / self.record.period_ns.max(1) as f64
    }

    fn job(&self, now_ns: i64) -> Option<Job> {
        let record = &self.record;
        record.runnable.then(|| Job {
            deadline_ns: record.deadline_ns,
            remaining_ns: self.remaining_ns(now_ns),
            spread_ns: record.spread_ns,
            criticality: record.criticality,
            last_cpu: Some(record.cpu),
            allowed: record.allowed,
        })
    }

    fn next(&self) -> Upcoming {
        let record = &self.record;
        Upcoming {
            release_ns: record.release_ns + record.period_ns,
            deadline_ns: record.relative_deadline_ns,
            runtime_ns: record.cost_ns,
            period_ns: record.period_ns,
            spread_ns: record.spread_ns,
            criticality: record.criticality,
            allowed: record.allowed,
            pending: None,
            // How far its jobs vary is not said before some were seen.
            unseen: self.is_unseen(),
            outlived: false,
            declared_ns: record.declared_ns,
            standing: self.standing,
        }
    }
}

#[cfg(test)]
mod tests;
