//! What `--policy edf` does in the kernel (bpf/shed.bpf.h, bpf/pressure.bpf.h): earliest
//! deadline first, and in overload some are given up until they are on time again. It
//! sees overload only once jobs have been late for a while, and a given-up task has
//! a turn now and then, so it does a little worse than a rule that looks ahead.

use super::{Plan, Policy, View};
use crate::intf;
use crate::sim::engine::{ReadyJob, TaskId};
use crate::sim::task::TaskSet;
use crate::sim::time::{Ns, MS};

const OVERLOAD_AFTER: Ns = intf::temponet_times_TN_OVERLOAD_AFTER as Ns;
const OVERLOAD_LATE: usize = intf::temponet_times_TN_OVERLOAD_LATE as usize;
const CONTENDED_FOR: Ns = intf::temponet_times_TN_CONTENDED_FOR as Ns;
const SERVE_EVERY: Ns = intf::temponet_times_TN_SERVE_LATE_EVERY as Ns;
const SERVE_LEAST: Ns = intf::temponet_times_TN_SERVE_LEAST as Ns;
const STARVE_BOUND: Ns = intf::TN_STARVE_BOUND as Ns;
/// A turn of the bound lasts to the tick after this.
const TURN: Ns = intf::temponet_times_TN_SLICE_BOUND as Ns;
const TICK: Ns = MS;
/// How many are given up in one dispatch.
const SHED_MAX: usize = 4;

#[derive(Default)]
pub struct Shedding {
    tasks: Vec<State>,
    late_jobs: usize,
    late_since: Ns,
    contended_at: Option<Ns>,
    late_ran_at: Option<Ns>,
    /// Last time that the late task that had waited longest had its turn.
    served_at: Ns,
    turn: Option<Turn>,
    /// No other turn before this.
    turn_again: Ns,
    /// Tasks that may run, the most urgent first.
    order: Vec<TaskId>,
}

#[derive(Clone, Copy, Default)]
struct State {
    /// The job that was there at the last decision: its number and deadline.
    seen: Option<(u32, Ns)>,
    dropped: bool,
    /// Since when it waits among the late.
    late_since: Option<Ns>,
}

#[derive(Clone, Copy)]
struct Turn {
    task: TaskId,
    began: Ns,
    ends: Ns,
}

fn recently(now: Ns, when: Option<Ns>, span: Ns) -> bool {
    when.is_some_and(|when| now - when < span)
}

impl Policy for Shedding {
    fn start(&mut self, set: &TaskSet, _cores: usize) {
        *self = Self {
            tasks: vec![State::default(); set.tasks.len()],
            ..Self::default()
        };
    }

    fn decide(&mut self, view: &View, plan: &mut Plan) {
        self.note_ends(view);
        self.note_pressure(view);
        let overloaded = self.overloaded(view);
        if overloaded {
            self.drop_running(view);
            for _ in 0..SHED_MAX {
                if !self.shed_load(view) {
                    break;
                }
            }
            self.shed_dearest(view);
        }
        self.rank(view, overloaded);
        self.give_turn(view, overloaded);
        let chosen = &self.order[..self.order.len().min(view.cores)];
        chosen.iter().for_each(|&task| plan.run(task));
        if self.late_jobs > 0 || overloaded {
            plan.wake_at((view.now / TICK + 1) * TICK);
        }
        if let Some(turn) = self.turn {
            plan.wake_at(turn.ends);
        }
        if self.order.len() > view.cores {
            self.contended_at = Some(view.now);
        }
    }
}

impl Shedding {
    /// Which tasks have ended a job since the last decision, and was it late?
    fn note_ends(&mut self, view: &View) {
        for task in 0..self.tasks.len() {
            let now_there = view.job_of(task as TaskId);
            let state = &mut self.tasks[task];
            let seen = std::mem::replace(
                &mut state.seen,
                now_there.map(|job| (job.index, job.deadline)),
            );
            if state.seen == seen {
                continue;
            }
            if now_there.is_none_or(|job| !job.is_hopeless(view.now)) {
                state.dropped = false;
            }
            if seen.is_some_and(|(_, deadline)| view.now > deadline) {
                if self.late_jobs == 0 {
                    self.late_since = view.now;
                }
                self.late_jobs += 1;
            }
        }
    }

    fn note_pressure(&mut self, view: &View) {
        let late_runs = view
            .running_jobs()
            .any(|job| self.tasks[job.task as usize].dropped);
        if late_runs && recently(view.now, self.contended_at, CONTENDED_FOR) {
            self.late_ran_at = Some(view.now);
        }
        let waits = view.jobs.iter().any(|job| !job.is_running());
        if !waits && !recently(view.now, self.late_ran_at, OVERLOAD_AFTER) {
            self.late_jobs = 0;
        }
    }

    fn overloaded(&self, view: &View) -> bool {
        self.late_jobs >= OVERLOAD_LATE * view.cores && view.now > self.late_since + OVERLOAD_AFTER
    }

    fn is_kept(&self, job: &ReadyJob) -> bool {
        !self.tasks[job.task as usize].dropped
    }

    /// A running job that can no longer make it is given up at the tick.
    fn drop_running(&mut self, view: &View) {
        for job in view.running_jobs().filter(|job| job.is_hopeless(view.now)) {
            self.tasks[job.task as usize].dropped = true;
        }
    }

    /// Where the work in front of a deadline does not fit, the longest of it goes.
    fn shed_load(&mut self, view: &View) -> bool {
        let mut kept: Vec<&ReadyJob> = view.jobs.iter().filter(|job| self.is_kept(job)).collect();
        kept.sort_unstable_by_key(|job| (job.deadline, job.task));
        let mut work = 0;
        for (at, job) in kept.iter().enumerate() {
            work = job.remaining.saturating_add(work);
            let left = job.deadline.saturating_sub(view.now);
            let room = left.saturating_mul(view.cores as Ns);
            if work > room {
                let longest = kept[..=at].iter().rev().max_by_key(|job| job.remaining);
                let victim = longest.expect("at least this one").task;
                self.tasks[victim as usize].dropped = true;
                return true;
            }
        }
        false
    }

    /// One that costs more per job makes room for the cheapest that was given up.
    fn shed_dearest(&mut self, view: &View) {
        let cost = |job: &ReadyJob| view.estimates[job.task as usize].runtime;
        let late = view.jobs.iter().filter(|job| !self.is_kept(job));
        let Some(cheapest) = late.filter(|job| !job.is_running()).map(cost).min() else {
            return;
        };
        let kept = view.jobs.iter().filter(|job| self.is_kept(job));
        let dearest = kept.max_by_key(|job| (cost(job), job.task));
        if let Some(job) = dearest.filter(|job| cost(job) > cheapest.saturating_mul(9) / 8) {
            self.tasks[job.task as usize].dropped = true;
        }
    }

    /// Kept tasks by deadline, then the late ones, the cheapest first.
    fn rank(&mut self, view: &View, overloaded: bool) {
        let tasks = &self.tasks;
        let is_late = |task: TaskId| overloaded && tasks[task as usize].dropped;
        self.order.clear();
        self.order.extend(view.jobs.iter().map(|job| job.task));
        self.order.sort_unstable_by_key(|&task| {
            let job = view.job_of(task).expect("it is among the jobs");
            let late = is_late(task);
            let key = match late {
                true => view.estimates[task as usize].runtime,
                false => job.deadline,
            };
            (late, key, !job.is_running(), task)
        });
    }

    /// However little is left, late tasks have a turn now and then: the one that has
    /// waited longest.
    fn give_turn(&mut self, view: &View, overloaded: bool) {
        let now = view.now;
        if let Some(turn) = self.turn {
            let there = self.order.iter().position(|&task| task == turn.task);
            match there.filter(|_| now < turn.ends) {
                Some(place) => return self.order[..=place].rotate_right(1),
                None => {
                    self.turn_again = now + 2 * (now - turn.began);
                    self.turn = None;
                }
            }
        }
        let mut waiting = 0;
        let mut oldest: Option<(Ns, TaskId)> = None;
        for (place, &task) in self.order.iter().enumerate() {
            let state = &mut self.tasks[task as usize];
            if !(overloaded && state.dropped) || place < view.cores {
                state.late_since = None;
                continue;
            }
            waiting += 1;
            let since = *state.late_since.get_or_insert(now);
            let this = (since, task);
            oldest = Some(oldest.map_or(this, |oldest| oldest.min(this)));
        }
        let Some((_, task)) = oldest else {
            self.served_at = now;
            return;
        };
        let every = SERVE_EVERY.min((STARVE_BOUND / 2 / waiting).max(SERVE_LEAST));
        if (now - self.served_at) * view.cores as Ns >= every && now >= self.turn_again {
            self.served_at = now;
            let ends = (now / TICK + 1) * TICK + TURN;
            self.turn = Some(Turn {
                task,
                began: now,
                ends,
            });
            let place = self.order.iter().position(|&other| other == task);
            self.order[..=place.expect("it is there")].rotate_right(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::engine::{Options, Record, Sim, Tally};
    use crate::sim::policies::Edf;
    use crate::sim::task::{Semantics, Task};

    /// (work, period) in ms, for six seconds on one core, and how long each ran.
    fn run(tasks: &[(u64, u64)], policy: &mut dyn Policy) -> (Tally, Vec<Ns>) {
        let task = |&(work, period): &(u64, u64)| Task::periodic("t", period * MS, work * MS);
        let set = TaskSet {
            name: "test".into(),
            cores: 1,
            horizon_ns: 6000 * MS,
            seed: 1,
            modes: Vec::new(),
            tasks: tasks.iter().map(task).collect(),
        };
        let record = Record {
            segments: true,
            ..Record::default()
        };
        let mut sim = Sim::new(&set, 1, Options::new(Semantics::Continue), record);
        sim.run(policy);
        let ran = |task: usize| {
            let own = sim.tally.segments.iter();
            let own = own.filter(|segment| segment.task as usize == task);
            own.map(|segment| segment.end - segment.start).sum()
        };
        let ran = (0..tasks.len()).map(ran).collect();
        (sim.tally, ran)
    }

    #[test]
    fn without_overload_it_is_edf() {
        let tasks = [(12, 40), (18, 60), (30, 100)];
        let (ours, _) = run(&tasks, &mut Shedding::default());
        let (edf, _) = run(&tasks, &mut Edf);
        assert_eq!(ours.met, ours.judged);
        assert_eq!(ours.segments, edf.segments);
    }

    #[test]
    fn in_overload_the_cheaper_are_on_time_again_and_stay_so() {
        let tasks = [(13, 40), (20, 60), (59, 100)];
        let (ours, _) = run(&tasks, &mut Shedding::default());
        let (edf, _) = run(&tasks, &mut Edf);
        assert!(ours.met * 100 > ours.judged * 75, "{ours:?}");
        assert!(edf.met * 100 < edf.judged * 10, "{edf:?}");
    }

    #[test]
    fn who_is_given_up_has_a_turn_within_the_bound() {
        // The first two need all there is.
        let (_, ran) = run(&[(20, 40), (30, 60), (50, 100)], &mut Shedding::default());
        let turns = 6000 * MS / SERVE_EVERY / 2;
        assert!(ran[2] >= turns * TURN, "{ran:?}");
        assert!(ran[2] <= 6000 * MS / 10, "{ran:?}");
    }
}
