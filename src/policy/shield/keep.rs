//! Which tasks to keep where late jobs go on and there is too much for all.
//!
//! A task that falls behind delays its own next job, so where nobody throws
//! late jobs away a task is on time always or, soon, never. Giving up a job of
//! every task in turn, as Moore and Hodgson's rule does, loses them all. So
//! whole tasks are given up: kept is the set that releases the most jobs a
//! second among those that fit in the long run. The less critical go first,
//! whatever they release.
//!
//! Tasks are taken by the length of their jobs, since jobs a second per share of
//! a CPU is 1/runtime; where there are few that choice is then improved to the best
//! there is. Tasks that may use one CPU each are chosen CPU by CPU.

use super::super::job::{Situation, Upcoming};
use super::future::FULL;
use super::strain::Strain;
use std::cmp::Reverse;

/// Up to so many tasks share a CPU, or all CPUs, the choice is improved.
const FEW: usize = 32;
/// By looking at no more than so many combinations, which for 16 tasks are all
/// worth looking at.
const LOOKS: u32 = 2000;
/// What is kept stays until it asks for this much more than there is, or those that
/// would come are worth so much more than those that would go: estimates move, and
/// whoever comes back brings a backlog.
const STICKY: f64 = 1.05;
const WORTH_IT: f64 = 1.5;
/// And only those come that leave a little: costs were measured while others ran, and grow
/// by a few per cent with who does.
const ROOM_FOR_CHANGE: f64 = 0.97;
/// Of the spread of a task's work, this much counts as load. Chosen on sets
/// with hidden times, from 0, 0.3 and 0.6.
const DOUBT: f64 = 0.3;
/// Who declares says what a job takes at most, and most take less. Of what tasks declared
/// that were not seen at work yet, this much is expected when it is asked whether anybody
/// has to be given up, and when it is asked who: whoever is given up at the start though
/// there is room falls behind, and is then hard to bring back. But nobody makes room for
/// somebody else on such a guess, and nobody who was given up comes back on it.
const UNSEEN_AT_LEAST: f64 = 0.8;
const UNSEEN: f64 = 0.97;
/// To be chosen, a task that is behind has to catch up within this time, beside its
/// further jobs. One that cannot would only make others late on its way. Whoever is kept
/// already and falls behind is not given up for that.
const CATCH_UP_NS: f64 = 1e9;

#[derive(Debug, Clone, Default)]
pub(super) struct Keep {
    items: Vec<Item>,
    /// Tasks as the last choice took them: little changes from one to the next.
    order: Vec<u32>,
    lane_items: Vec<Item>,
    /// By place in `Situation::upcoming`.
    kept: Vec<bool>,
    chosen: Vec<bool>,
    /// By pending job.
    given_up: Vec<bool>,
    lanes: Vec<f64>,
    strain: Strain,
}

#[derive(Debug, Clone, Copy)]
struct Item {
    task: usize,
    lane: Option<u16>,
    load: f64,
    /// The same without its backlog, which passes.
    lasting: f64,
    /// Jobs a second; a critical one is worth more than all that are not.
    worth: f64,
    critical: bool,
}

impl Keep {
    /// Makes the choice, which may `fill` so much of the CPUs. O(N log N), less where
    /// everybody fits.
    pub fn choose(&mut self, situation: &Situation<'_>, stated: f64, fill: f64) {
        let tasks = situation.upcoming;
        self.given_up.clear();
        self.given_up.resize(situation.jobs.len(), false);
        if self.all_fit(situation, stated) {
            self.kept.clear();
            self.kept.resize(tasks.len(), true);
            return;
        }
        if self.has_given_up(tasks.len()) {
            self.note_strain(situation);
        }
        let stated = stated * self.strain.room();
        let capacity = situation.cpus.count() as f64 * stated * fill;
        self.collect(situation);
        let may_stay = self.may_stay(capacity);
        let room = if may_stay { ROOM_FOR_CHANGE } else { 1.0 };
        self.choose_by_length(capacity * room, stated * room);
        let bound = self.items.iter().filter(|item| item.lane.is_some());
        match bound.count() {
            0 => self.improve(None, capacity * room),
            bound if bound == self.items.len() => {
                for cpu in situation.cpus.iter() {
                    self.improve(Some(cpu), stated * room);
                }
            }
            _ => {}
        }
        self.spare_the_lonely();
        if !may_stay || self.is_worth_it() {
            std::mem::swap(&mut self.kept, &mut self.chosen);
        }
        for (task, &kept) in tasks.iter().zip(&self.kept) {
            let job = task.pending.filter(|_| !kept);
            if let Some(gone) = job.and_then(|job| self.given_up.get_mut(job as usize)) {
                *gone = true;
            }
        }
    }

    fn note_strain(&mut self, situation: &Situation<'_>) {
        let tasks = situation.upcoming.iter().zip(&self.kept);
        let (mut late, mut kept) = (0, 0);
        for (task, _) in tasks.filter(|(_, &kept)| kept) {
            late += usize::from(task.late);
            kept += 1;
        }
        self.strain.note(late, kept, situation.now_ns);
    }

    /// All together, and on every CPU those that may use no other.
    fn all_fit(&mut self, situation: &Situation<'_>, stated: f64) -> bool {
        let cpus = situation.cpus.count();
        let (unseen, room) = match self.has_given_up(situation.upcoming.len()) {
            true => (1.0, ROOM_FOR_CHANGE),
            false => (UNSEEN_AT_LEAST, 1.0),
        };
        self.lanes.clear();
        let mut total = 0.0;
        for task in situation.upcoming {
            let load = load(task, unseen);
            total += load;
            if let Some(lane) = lane(task, situation) {
                *self.lane(lane) += load;
            }
        }
        let full = FULL * stated * room;
        total <= cpus as f64 * full && self.lanes.iter().all(|&load| load <= full)
    }

    fn lane(&mut self, lane: u16) -> &mut f64 {
        let lane = usize::from(lane);
        self.lanes.resize(self.lanes.len().max(lane + 1), 0.0);
        &mut self.lanes[lane]
    }

    pub fn keeps_job(&self, job: u32) -> bool {
        !self.given_up[job as usize]
    }

    pub fn keeps_task(&self, task: usize) -> bool {
        self.kept[task]
    }

    /// Those that ask for something, the best for their share first, equals by place.
    fn collect(&mut self, situation: &Situation<'_>) {
        let rate = |task: &Upcoming| 1e9 / task.period_ns.max(1) as f64;
        let all: f64 = situation.upcoming.iter().map(rate).sum();
        let tasks = situation.upcoming;
        let asks =
            |task: &Upcoming| task.runtime_ns > 0 && task.allowed.intersects(&situation.cpus);
        self.chosen.clear();
        self.chosen.extend(tasks.iter().map(|task| !asks(task)));
        if self.order.len() != tasks.len() {
            self.order.clear();
            self.order.extend(0..tasks.len() as u32);
        }
        // Quick where they are in order already; the stable sort may allocate.
        self.order.sort_unstable_by_key(|&at| {
            let task = &tasks[at as usize];
            (Reverse(task.criticality), task.runtime_ns, at)
        });
        self.items.clear();
        let chosen_before = self.has_given_up(tasks.len());
        for &at in &self.order {
            let (at, task) = (at as usize, &tasks[at as usize]);
            if asks(task) {
                let comes = chosen_before && !self.kept[at];
                let unseen = if comes { 1.0 } else { UNSEEN };
                self.items.push(Item {
                    task: at,
                    lane: lane(task, situation),
                    load: load(task, unseen),
                    lasting: lasting_load(task, unseen),
                    worth: rate(task) + f64::from(task.criticality) * all,
                    critical: task.criticality > 0,
                });
            }
        }
    }

    fn choose_by_length(&mut self, capacity: f64, per_cpu: f64) {
        self.lanes.clear();
        let mut total = 0.0;
        for at in 0..self.items.len() {
            let item = self.items[at];
            if total + item.load > capacity * FULL {
                continue;
            }
            if let Some(lane) = item.lane {
                let on_lane = self.lane(lane);
                if *on_lane + item.load > per_cpu * FULL {
                    continue;
                }
                *on_lane += item.load;
            }
            total += item.load;
            self.chosen[item.task] = true;
        }
    }

    /// The best choice among the tasks of a lane, if they are few.
    fn improve(&mut self, lane: Option<u16>, capacity: f64) {
        self.lane_items.clear();
        let of_lane = self.items.iter().filter(|item| item.lane == lane);
        self.lane_items.extend(of_lane.take(FEW + 1));
        if self.lane_items.len() > FEW {
            return;
        }
        let chosen = |(at, item): (usize, &Item)| (self.chosen[item.task], 1u32 << at, item.worth);
        let by_length = self.lane_items.iter().enumerate().map(chosen);
        let (taken, worth) = by_length
            .filter(|&(taken, ..)| taken)
            .fold((0, 0.0), |(set, sum), (_, bit, worth)| {
                (set | bit, sum + worth)
            });
        let mut search = Search {
            items: &self.lane_items,
            best: (worth, taken),
            looks: LOOKS,
        };
        search.descend(0, capacity * FULL, 0.0, 0);
        let best = search.best.1;
        for (at, item) in self.lane_items.iter().enumerate() {
            self.chosen[item.task] = best & (1 << at) != 0;
        }
    }

    /// Whoever has a CPU for himself is in nobody's way, however far behind.
    fn spare_the_lonely(&mut self) {
        let free = self.items.iter().filter(|item| item.lane.is_none());
        if free.count() > 0 && self.items.len() > 1 {
            return;
        }
        self.lanes.clear();
        for at in 0..self.items.len() {
            if let Some(lane) = self.items[at].lane {
                *self.lane(lane) += 1.0;
            }
        }
        for item in &self.items {
            let alone = |lane| self.lanes[usize::from(lane)] == 1.0;
            self.chosen[item.task] |= item.lane.is_none_or(alone);
        }
    }

    /// Among so many tasks a choice was made before.
    fn has_given_up(&self, tasks: usize) -> bool {
        self.kept.len() == tasks && self.kept.contains(&false)
    }

    /// The last choice still fits, as far as can be told.
    fn may_stay(&self, capacity: f64) -> bool {
        let kept = self.items.iter().filter(|item| self.kept[item.task]);
        self.has_given_up(self.chosen.len())
            && kept.map(|item| item.lasting).sum::<f64>() <= capacity * STICKY
    }

    fn is_worth_it(&self) -> bool {
        let worth = |comes: bool| -> f64 {
            let changes =
                |item: &&Item| self.kept[item.task] != comes && self.chosen[item.task] == comes;
            self.items
                .iter()
                .filter(changes)
                .map(|item| item.worth)
                .sum()
        };
        worth(true) > worth(false) * WORTH_IT
    }
}

/// The one CPU of several that the task may use.
fn lane(task: &Upcoming, situation: &Situation<'_>) -> Option<u16> {
    match situation.cpus.is_subset(&task.allowed) {
        true => None,
        false => {
            let permitted = task.allowed.and(&situation.cpus);
            permitted.single().filter(|_| situation.cpus.count() > 1)
        }
    }
}

/// What it asks for in the long run, `unseen` of it where that was only declared.
fn lasting_load(task: &Upcoming, unseen: f64) -> f64 {
    let spread = task.spread_ns.max(0) as f64 / task.period_ns.max(1) as f64;
    let expected = if task.unseen { unseen } else { 1.0 };
    expected * task.utilisation() + DOUBT * spread
}

fn load(task: &Upcoming, unseen: f64) -> f64 {
    let backlog = f64::from(task.behind) * task.runtime_ns.max(0) as f64;
    lasting_load(task, unseen) + backlog / CATCH_UP_NS
}

/// Every combination that may still beat the best, the dearest for its share last.
struct Search<'a> {
    items: &'a [Item],
    best: (f64, u32),
    looks: u32,
}

impl Search<'_> {
    fn descend(&mut self, at: usize, room: f64, worth: f64, taken: u32) {
        if worth > self.best.0 {
            self.best = (worth, taken);
        }
        let Some(item) = self.items.get(at) else {
            return;
        };
        if self.looks == 0 || worth + self.at_most(at, room) <= self.best.0 {
            return;
        }
        self.looks -= 1;
        if item.load <= room {
            let with = (room - item.load, worth + item.worth, taken | 1 << at);
            self.descend(at + 1, with.0, with.1, with.2);
        }
        self.descend(at + 1, room, worth, taken);
    }

    /// What the rest could add if the last of them could be taken in part. Critical
    /// tasks come first whatever their share, so they all count.
    fn at_most(&self, at: usize, mut room: f64) -> f64 {
        let mut sum = 0.0;
        for item in &self.items[at..] {
            if item.critical || item.load <= room {
                sum += item.worth;
                room = (room - item.load).max(0.0);
            } else {
                return sum + item.worth * room / item.load;
            }
        }
        sum
    }
}
