//! From what the simulated machine shows to what the policy is told: a
//! [`View`] becomes a [`Situation`]. Everything that decides or learns in the
//! simulator goes through here, so it sees what the agent would see.

use super::engine::{Knowledge, TaskId, View};
use super::task::{Arrival, TaskSet};
use super::time::{Ns, NEVER};
use crate::policy::{linux, CpuId, CpuMask, Decider, Job, Situation, Standing, Upcoming};

/// On several cores decisions come at least this often.
pub const TICK: Ns = linux::TICK_NS as Ns;

const NO_SLOT: u32 = u32::MAX;
/// For a task that has ended; far enough from the end of an i64 to be added to.
const NEVER_RELEASED: Ns = 1 << 61;

/// The conversion with its buffers: after the first few calls it allocates nothing.
#[derive(Clone, Debug)]
pub struct Situations {
    foresees: bool,
    jobs: Vec<Job>,
    /// One for every task whose next release can be known, in task order.
    upcoming: Vec<Upcoming>,
    task_of_slot: Vec<TaskId>,
    slot_of_task: Vec<u32>,
    /// Those tasks, and what was decided for each.
    foreseeable: Vec<TaskId>,
    standings: Vec<Standing>,
}

impl Default for Situations {
    fn default() -> Self {
        Self::new()
    }
}

impl Situations {
    /// Jobs and releases to come.
    pub fn new() -> Self {
        Self {
            foresees: true,
            jobs: Vec::new(),
            upcoming: Vec::new(),
            task_of_slot: Vec::new(),
            slot_of_task: Vec::new(),
            foreseeable: Vec::new(),
            standings: Vec::new(),
        }
    }

    /// Without the releases to come, which only the shield looks at.
    pub fn of_jobs_alone() -> Self {
        Self {
            foresees: false,
            ..Self::new()
        }
    }

    /// Takes note of the tasks; call it before every run.
    pub fn start(&mut self, set: &TaskSet) {
        self.upcoming.clear();
        self.task_of_slot.clear();
        self.foreseeable.clear();
        self.standings.clear();
        self.standings.resize(set.tasks.len(), Standing::default());
        self.slot_of_task.clear();
        self.slot_of_task.resize(set.tasks.len(), NO_SLOT);
        if self.foresees {
            let regular = |&id: &TaskId| {
                let arrival = &set.tasks[id as usize].arrival;
                matches!(arrival, Arrival::Periodic | Arrival::Sporadic { .. })
            };
            let all = 0..set.tasks.len() as TaskId;
            self.foreseeable.extend(all.filter(regular));
        }
    }

    /// Takes note of what was decided for the situation that was told last.
    pub fn note(&mut self, decider: &Decider) {
        for (slot, &id) in self.task_of_slot.iter().enumerate() {
            self.standings[id as usize] = decider.standing(slot);
        }
    }

    /// What the policy is told of this moment. Job i of the situation is job i of
    /// the view. Where decisions take effect late it is the moment they do.
    pub fn of(&mut self, view: &View) -> Situation<'_> {
        let latency = view.options.decision_latency_ns;
        let now_ns = (view.now + latency) as i64;
        self.jobs.clear();
        self.jobs.extend(view.jobs.iter().map(|job| {
            let done_by_then = if job.is_running() { latency } else { 0 };
            let last_cpu = CpuId::try_from(job.last_core).ok();
            Job {
                deadline_ns: job.deadline as i64,
                remaining_ns: job.remaining.saturating_sub(done_by_then).max(1) as i64,
                spread_ns: job.spread as i64,
                criticality: job.criticality,
                last_cpu,
                allowed: CpuMask::ALL,
            }
        }));
        self.foresee(view);
        Situation {
            now_ns,
            jobs: &self.jobs,
            upcoming: &self.upcoming,
            cpus: CpuMask::first(view.cores),
            share: 1.0,
            hold_ns: hold(view) as i64,
        }
    }

    fn foresee(&mut self, view: &View) {
        self.upcoming.clear();
        self.task_of_slot.clear();
        for &id in &self.foreseeable {
            let task = &view.tasks[id as usize];
            // Who must learn what jobs take has not heard of tasks that have yet to begin.
            let learns = view.options.knowledge == Knowledge::History;
            if learns && view.now < task.offset_ns {
                self.slot_of_task[id as usize] = NO_SLOT;
                continue;
            }
            let release = view.next_releases[id as usize];
            let ended = release == NEVER;
            if ended && view.job_of(id).is_none() {
                self.slot_of_task[id as usize] = NO_SLOT;
                continue;
            }
            let estimate = &view.estimates[id as usize];
            self.slot_of_task[id as usize] = self.upcoming.len() as u32;
            self.task_of_slot.push(id);
            self.upcoming.push(Upcoming {
                release_ns: release.min(NEVER_RELEASED) as i64,
                deadline_ns: task.deadline_ns as i64,
                runtime_ns: if ended { 0 } else { estimate.runtime as i64 },
                period_ns: task.period_ns as i64,
                spread_ns: estimate.spread as i64,
                criticality: task.criticality,
                allowed: CpuMask::ALL,
                pending: None,
                unseen: estimate.unseen,
                outlived: false,
                declared_ns: task.told_ns() as i64,
                standing: self.standings[id as usize],
            });
        }
        for (place, job) in view.jobs.iter().enumerate() {
            let slot = self.slot_of_task[job.task as usize];
            if let Some(next) = self.upcoming.get_mut(slot as usize) {
                next.pending = Some(place as u32);
                next.outlived = job.executed >= view.estimates[job.task as usize].runtime;
            }
        }
    }
}

/// How long a decision made now may stand: by the rule for Linux, and as long as this
/// machine takes to carry out another one.
pub fn hold(view: &View) -> Ns {
    let event = view.next_boundary.saturating_sub(view.now);
    let event = i64::try_from(event).ok();
    let hold = linux::hold_ns(event, view.cores, linux::TICK_NS) as Ns;
    hold.max(view.options.quantum_ns) + view.options.decision_latency_ns
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::engine::{Knowledge, Options, Plan, Record, Sim};
    use crate::sim::task::{Semantics, Task};
    use crate::sim::time::{MS, US};

    fn set_of(tasks: Vec<Task>) -> TaskSet {
        TaskSet {
            name: "t".into(),
            cores: 2,
            horizon_ns: 100 * MS,
            seed: 1,
            modes: Vec::new(),
            tasks,
        }
    }

    /// What is told at the last decision up to `until` if only the last task runs.
    fn told_last(set: &TaskSet, options: Options, until: Ns) -> (Ns, Vec<Job>, Vec<Upcoming>) {
        let mut sim = Sim::new(set, 1, options, Record::default());
        let mut situations = Situations::new();
        situations.start(set);
        let mut last = None;
        while sim.advance() && sim.now() <= until {
            let told = situations.of(&sim.view());
            last = Some((sim.now(), told.jobs.to_vec(), told.upcoming.to_vec()));
            let mut plan = Plan::default();
            plan.run(set.tasks.len() as TaskId - 1);
            sim.submit(&plan);
        }
        last.expect("a decision")
    }

    #[test]
    fn the_next_release_is_the_last_and_a_period() {
        let mut late = Task::periodic("late", 20 * MS, MS);
        late.offset_ns = 7 * MS;
        let mut sporadic = Task::periodic("sporadic", 10 * MS, 2 * MS);
        sporadic.arrival = Arrival::Sporadic {
            mean_delay_ns: 5 * MS,
        };
        let mut bursty = Task::periodic("bursty", 10 * MS, MS);
        bursty.arrival = Arrival::Bursty {
            burst: 2,
            spacing_ns: MS,
        };
        let set = set_of(vec![bursty, sporadic, late]);
        let options = Options::new(Semantics::Abort);
        let (_, jobs, upcoming) = told_last(&set, options, 0);
        assert_eq!(jobs.len(), 2);
        let ms = |ns: i64| ns / MS as i64;
        let releases: Vec<i64> = upcoming.iter().map(|u| ms(u.release_ns)).collect();
        assert_eq!(releases, [10, 7]);
        let work: Vec<i64> = upcoming.iter().map(|u| ms(u.runtime_ns)).collect();
        assert_eq!(work, [2, 1]);
        let (_, _, upcoming) = told_last(&set, options, 8 * MS);
        assert_eq!(ms(upcoming[1].release_ns), 27);
    }

    #[test]
    fn a_job_in_the_queue_is_told_with_the_release_that_it_had() {
        let mut task = Task::periodic("slow", 10 * MS, 4 * MS);
        task.deadline_ns = 15 * MS;
        let set = set_of(vec![task, Task::periodic("clock", MS, 1)]);
        let options = Options::new(Semantics::Continue);
        // Released at 0, 10 and 20 ms and never run.
        let (_, jobs, upcoming) = told_last(&set, options, 22 * MS);
        assert_eq!(upcoming[0].release_ns, 10 * MS as i64);
        let job = upcoming[0].pending.expect("a job") as usize;
        assert_eq!(jobs[job].deadline_ns, 15 * MS as i64);
    }

    #[test]
    fn doubt_is_told_only_where_times_are_not_known() {
        let mut task = Task::periodic("t", 10 * MS, 4 * MS);
        task.execution = crate::sim::task::Execution::Uniform {
            low: 0.2,
            high: 1.0,
        };
        let set = set_of(vec![task]);
        for (knowledge, doubted) in [(Knowledge::Known, false), (Knowledge::History, true)] {
            let mut options = Options::new(Semantics::Abort);
            options.knowledge = knowledge;
            let mut sim = Sim::new(&set, 1, options, Record::default());
            let mut situations = Situations::new();
            situations.start(&set);
            let mut spreads = Vec::new();
            let mut unseen = Vec::new();
            while sim.advance() {
                let mut plan = Plan::default();
                let view = sim.view();
                let told = situations.of(&view);
                spreads.extend(told.jobs.iter().map(|job| job.spread_ns));
                unseen.push(told.upcoming[0].unseen);
                view.jobs.iter().for_each(|job| plan.run(job.task));
                sim.submit(&plan);
            }
            assert_eq!(spreads.iter().any(|&spread| spread > 0), doubted);
            assert_eq!(unseen[0], doubted);
            assert!(!unseen[unseen.len() - 1]);
        }
    }

    #[test]
    fn a_late_decision_is_made_for_the_moment_it_lands() {
        let set = set_of(vec![Task::periodic("t", 10 * MS, 4 * MS)]);
        let mut options = Options::new(Semantics::Abort);
        options.decision_latency_ns = 300 * US;
        options.quantum_ns = 2 * MS;
        let mut sim = Sim::new(&set, 1, options, Record::default());
        let mut situations = Situations::of_jobs_alone();
        situations.start(&set);
        assert!(sim.advance());
        let told = situations.of(&sim.view());
        assert_eq!(told.now_ns, 300 * US as i64);
        // To the next release, and as long as the decision takes to land.
        assert_eq!(told.hold_ns, 10_300 * US as i64);
        assert!(told.upcoming.is_empty());
    }
}
