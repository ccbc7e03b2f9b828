//! The agent's picture of the declared tasks: kept by records, put right by the
//! kernel's truth whenever a record may have been lost.

use std::collections::HashMap;

use super::record::Record;
use crate::policy::{make_way, CpuMask, Job, Situation, Upcoming};

/// More declared tasks than this are left to the BPF half alone.
const MOST_TASKS: usize = 4096;
/// Work is stated with a margin: interrupts, kernel threads and the agent itself use
/// the CPUs too, tasks without deadlines have their turns by the starvation bound,
/// and what a job takes is an estimate. With 8 % for the releases to come, as for the
/// pending jobs, 1 % of the deadlines at a load of 0.91 were lost that EDF met: the
/// network had spent slack that a turn of 4 ms then needed.
pub const STATED_PERMILLE: u32 = 1250;
const PENDING_PERMILLE: u32 = 1080;
/// A task that released nothing for so many periods has stopped asking.
const SILENT_PERIODS: i64 = 3;

/// A task and how it stood when last heard of.
#[derive(Debug, Clone, Copy)]
pub struct Tracked {
    pub record: Record,
    /// When that was, on the clock of the BPF half. That clock stands still while a CPU
    /// is at it: what was told before what goes by the record's monotonic time.
    at_ns: i64,
    /// In the round of the last resynchronisation.
    confirmed: bool,
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
    pub fn apply(&mut self, record: &Record) {
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
        match (known, record.gone) {
            (Some(place), true) => self.remove(place),
            (None, true) => {}
            (Some(place), false) => self.tasks[place] = Tracked::new(record, at_ns),
            (None, false) => self.add(record, at_ns),
        }
    }

    /// Would [`Mirror::resync`] mend or add a task?
    pub fn differs(&self, truth: &[Record]) -> bool {
        truth.iter().filter(|record| !record.gone).any(|record| {
            let known = self.place_of.get(&record.pid).map(|&at| &self.tasks[at]);
            known.is_none_or(|known| !known.newer_than(record) && known.disagrees(record))
        })
    }

    /// Puts everything right by the kernel's truth, all declared tasks of which were
    /// read after the moment `since_ns` (monotonic), and says what was not.
    pub fn resync(&mut self, truth: &[Record], since_ns: i64) -> Repair {
        let mut repair = Repair::default();
        for tracked in &mut self.tasks {
            tracked.confirmed = false;
        }
        for record in truth.iter().filter(|record| !record.gone) {
            let at_ns = self.kernel_time(record.monotonic_ns);
            match self.place_of.get(&record.pid).copied() {
                None => {
                    repair.missing += 1;
                    self.add(record, at_ns);
                }
                Some(place) => {
                    let tracked = &mut self.tasks[place];
                    tracked.confirmed = true;
                    // What was told while the truth was being read is newer.
                    if tracked.newer_than(record) {
                        continue;
                    }
                    if tracked.disagrees(record) {
                        repair.wrong += 1;
                    }
                    *tracked = Tracked::new(record, at_ns);
                }
            }
        }
        let mut place = 0;
        while place < self.tasks.len() {
            // One that was heard of while the truth was being read is no ghost.
            if self.tasks[place].confirmed || self.tasks[place].record.monotonic_ns > since_ns {
                place += 1;
            } else {
                repair.ghosts += 1;
                self.remove(place);
            }
        }
        repair
    }

    fn add(&mut self, record: &Record, at_ns: i64) {
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
    /// `interval_ns` is how long it will be before the next one.
    pub fn situation(&mut self, now_ns: i64, interval_ns: i64, cpus: CpuMask) -> Situation<'_> {
        self.jobs.clear();
        self.upcoming.clear();
        self.job_places.clear();
        self.upcoming_places.clear();
        for (place, tracked) in self.tasks.iter().enumerate() {
            let job = tracked.job(now_ns);
            let mut next = tracked.next();
            if let Some(job) = job {
                next.pending = Some(self.jobs.len() as u32);
                next.queue_behind(now_ns);
                self.jobs.push(job);
                self.job_places.push(place as u32);
            } else if now_ns - next.release_ns > SILENT_PERIODS * next.period_ns {
                continue;
            }
            self.upcoming.push(next);
            self.upcoming_places.push(place as u32);
        }
        make_way(&mut self.jobs, &self.upcoming, now_ns);
        let releases = self.upcoming.iter().map(|next| next.release_ns);
        let event = releases.filter(|&at| at > now_ns).min();
        Situation {
            now_ns,
            jobs: &self.jobs,
            upcoming: &self.upcoming,
            cpus,
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

    /// How many of the last situation's jobs there were.
    pub fn pending(&self) -> usize {
        self.jobs.len()
    }
}

/// How long a decision stands: on one CPU to the next release, which calls for a
/// new one anyway; on several to the next decision.
fn hold_ns(event_ns: Option<i64>, cpus: usize, interval_ns: i64) -> i64 {
    const TICK: i64 = 1_000_000;
    const LONGEST: i64 = 100_000_000;
    let event = event_ns.unwrap_or(LONGEST).clamp(1, LONGEST);
    match cpus {
        0 | 1 => event,
        _ => event.min(interval_ns.max(TICK)),
    }
}

fn stated(work_ns: i64, permille: u32) -> i64 {
    work_ns / 1000 * i64::from(permille)
}

impl Tracked {
    fn new(record: &Record, at_ns: i64) -> Tracked {
        Tracked {
            record: *record,
            at_ns,
            confirmed: true,
        }
    }

    /// Is it known from later than `truth`? A change comes before its record, whose
    /// time is taken in between: truth read from then on has it.
    fn newer_than(&self, truth: &Record) -> bool {
        self.record.monotonic_ns > truth.monotonic_ns
    }

    /// What a lost record would have changed for good.
    fn disagrees(&self, truth: &Record) -> bool {
        let known = &self.record;
        known.start_time != truth.start_time
            || known.job != truth.job
            || known.runnable != truth.runnable
            || known.deadline_ns != truth.deadline_ns
            || known.period_ns != truth.period_ns
    }

    pub fn remaining_ns(&self, now_ns: i64) -> i64 {
        let since = if self.record.running {
            (now_ns - self.at_ns).max(0)
        } else {
            0
        };
        (self.record.cost_ns - self.record.executed_ns - since).max(1)
    }

    /// It has a job that cannot be on time any more.
    pub fn is_late(&self, now_ns: i64) -> bool {
        self.record.runnable && self.record.deadline_ns < now_ns + self.remaining_ns(now_ns)
    }

    /// Share of a CPU.
    pub fn load(&self) -> f64 {
        self.record.cost_ns as f64 / self.record.period_ns.max(1) as f64
    }

    fn job(&self, now_ns: i64) -> Option<Job> {
        let record = &self.record;
        record.runnable.then(|| Job {
            deadline_ns: record.deadline_ns,
            remaining_ns: stated(self.remaining_ns(now_ns), PENDING_PERMILLE),
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
            runtime_ns: stated(record.cost_ns, STATED_PERMILLE),
            period_ns: record.period_ns,
            spread_ns: record.spread_ns,
            criticality: record.criticality,
            allowed: record.allowed,
            pending: None,
            behind: 0,
            // How far its jobs vary is not said before some were seen.
            unseen: record.spread_ns == 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::tests::{bytes, raw};
    use super::*;

    const MS: i64 = 1_000_000;

    fn record(pid: u32) -> Record {
        Record::read(&bytes(&raw(pid))).unwrap()
    }

    #[test]
    fn older_records_and_dead_namesakes_change_nothing() {
        let mut mirror = Mirror::new();
        let mut now = record(7);
        now.at_ns = 5 * MS;
        now.monotonic_ns = 4 * MS;
        now.job = 3;
        mirror.apply(&now);
        let mut old = record(7);
        old.at_ns = 4 * MS;
        old.monotonic_ns = 3 * MS;
        mirror.apply(&old);
        assert_eq!(mirror.tasks()[0].record.job, 3);
        // The exit of an earlier task of the same pid, told late.
        old.at_ns = 6 * MS;
        old.monotonic_ns = 5 * MS;
        old.start_time -= 1;
        old.gone = true;
        mirror.apply(&old);
        assert_eq!(mirror.tasks().len(), 1);
        // A later one takes its place.
        let mut reborn = now;
        reborn.start_time += 1;
        reborn.job = 1;
        mirror.apply(&reborn);
        assert_eq!((mirror.tasks().len(), mirror.tasks()[0].record.job), (1, 1));
        reborn.gone = true;
        mirror.apply(&reborn);
        assert!(mirror.tasks().is_empty());
    }

    #[test]
    fn a_resync_adds_mends_and_removes() {
        let mut mirror = Mirror::new();
        for pid in 1..=4 {
            mirror.apply(&record(pid));
        }
        let later = |pid: u32| Record {
            at_ns: 0,
            monotonic_ns: 50 * MS,
            ..record(pid)
        };
        let mut wrong = later(2);
        wrong.job = 9;
        // 1 is as known, 2 differs, 3 and 4 are gone, 5 is new; 4 was heard of since.
        let mut heard = record(4);
        heard.at_ns = 60 * MS;
        heard.monotonic_ns = 60 * MS - 100_000;
        mirror.apply(&heard);
        assert!(mirror.differs(&[later(1), wrong]) && mirror.differs(&[later(5)]));
        assert!(!mirror.differs(&[later(1)]));
        let repair = mirror.resync(&[later(1), wrong, later(5)], 45 * MS);
        assert_eq!(
            repair,
            Repair {
                missing: 1,
                wrong: 1,
                ghosts: 1
            }
        );
        let mut pids: Vec<u32> = mirror.tasks().iter().map(|t| t.record.pid).collect();
        pids.sort_unstable();
        assert_eq!(pids, [1, 2, 4, 5]);
        let again = [later(1), wrong, later(5), later(4)];
        assert_eq!(mirror.resync(&again, 70 * MS), Repair::default());
    }

    #[test]
    fn a_cpu_that_was_held_up_does_not_set_the_clock_back() {
        let mut clock = Clock::default();
        clock.heard(3600 * 1000 * MS, 5 * MS);
        let then = clock.kernel_time(10 * MS);
        assert_eq!(then, 3600 * 1000 * MS + 5 * MS);
        // 20 ms between its two times; then one in time.
        clock.heard(3600 * 1000 * MS + 5 * MS, 30 * MS);
        assert!((clock.kernel_time(10 * MS) - then).abs() < MS);
        clock.heard(3600 * 1000 * MS + 26 * MS, 31 * MS);
        assert_eq!(clock.kernel_time(10 * MS), then);
        // What really is apart is followed, at once where it is far.
        clock.heard(3600 * 1000 * MS + 900 * MS, 1031 * MS);
        let followed = then - clock.kernel_time(10 * MS);
        assert!((15 * MS..17 * MS).contains(&followed), "{followed}");
        clock.heard(9 * MS, 1032 * MS);
        assert_eq!(clock.kernel_time(1032 * MS), 9 * MS);
    }

    /// The BPF half's clock stands still while a CPU is held up: what was read in
    /// between is older than the record, though its time is later by that clock.
    #[test]
    fn truth_from_before_a_record_changes_nothing() {
        let mut mirror = Mirror::new();
        mirror.apply(&record(1));
        let truth = Record {
            at_ns: 0,
            monotonic_ns: 50 * MS,
            ..record(1)
        };
        let told = Record {
            at_ns: 45 * MS,
            monotonic_ns: 51 * MS,
            job: 9,
            ..record(1)
        };
        mirror.apply(&told);
        assert!(!mirror.differs(&[truth]));
        assert_eq!(mirror.resync(&[truth], 49 * MS), Repair::default());
        assert_eq!(mirror.tasks()[0].record.job, 9);
    }

    #[test]
    fn a_situation_is_projected_to_the_moment_it_will_meet() {
        let mut mirror = Mirror::new();
        let mut running = record(1);
        running.running = true;
        mirror.apply(&running);
        let mut asleep = record(2);
        asleep.runnable = false;
        mirror.apply(&asleep);
        let told = mirror.situation(3 * MS, MS, CpuMask::first(1));
        assert_eq!((told.jobs.len(), told.upcoming.len()), (1, 2));
        // It has run from 1 to 3 ms.
        assert_eq!(told.jobs[0].remaining_ns, stated(8 * MS, PENDING_PERMILLE));
        assert_eq!(told.upcoming[0].pending, Some(0));
        assert_eq!(told.upcoming[1].release_ns, 40 * MS + 500_000);
        // To the next release.
        assert_eq!(told.hold_ns, 37 * MS + 500_000);
        // A task that has been silent for long reserves nothing.
        let told = mirror.situation(300 * MS, MS, CpuMask::first(1));
        assert_eq!(told.upcoming.len(), 1);
        assert_eq!(mirror.situation(3 * MS, MS, CpuMask::first(2)).hold_ns, MS);
    }

    #[test]
    fn late_is_who_waits_for_more_than_is_left_before_its_deadline() {
        let mut mirror = Mirror::new();
        let mut asleep = record(2);
        asleep.runnable = false;
        mirror.apply(&record(1));
        mirror.apply(&asleep);
        let late = |now_ns| [0, 1].map(|at| mirror.tasks()[at].is_late(now_ns));
        // Due at 40.5 ms, with 10 ms to do.
        assert_eq!(late(30 * MS), [false, false]);
        assert_eq!(late(31 * MS), [true, false]);
    }

    #[test]
    fn a_task_is_unseen_until_it_is_said_how_far_its_jobs_vary() {
        let mut mirror = Mirror::new();
        let mut seen = record(2);
        seen.spread_ns = 1;
        mirror.apply(&record(1));
        mirror.apply(&seen);
        let told = mirror.situation(3 * MS, MS, CpuMask::first(1));
        assert_eq!([0, 1].map(|at| told.upcoming[at].unseen), [true, false]);
    }

    #[test]
    fn more_tasks_than_there_is_room_for_are_counted() {
        let mut mirror = Mirror::new();
        for pid in 0..MOST_TASKS as u32 + 5 {
            mirror.apply(&record(pid + 1));
        }
        assert_eq!((mirror.tasks().len(), mirror.overflow()), (MOST_TASKS, 5));
    }
}
