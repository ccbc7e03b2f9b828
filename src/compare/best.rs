//! The best fixed choice of tasks that fits: who would have been kept from the start by
//! somebody who knew what every job takes.
//!
//! The chosen tasks alone are run by EDF in the simulator, so a choice counts with what
//! it really meets. Choosing is a knapsack in two periods, before and after the middle;
//! it is filled by jobs per work, then improved by exchanging one or two tasks for others. So the
//! figure is what some choice reaches, at least, and a scheduler may still do better:
//! what is left over meets deadlines, too.

use serde::Serialize;

use crate::sim::arrivals::JobStream;
use crate::sim::engine::{Options, Record, Sim};
use crate::sim::policies::Edf;
use crate::sim::task::{Semantics, TaskSet};
use crate::sim::time::Ns;

/// Shares of the CPUs that a choice may fill. Full ones meet everything where deadlines
/// are periods and there is one CPU; a little more may fit where times vary, and work that
/// is left over at the end need not be done.
const FILLS: [f64; 8] = [1.04, 1.02, 1.0, 0.97, 0.93, 0.87, 0.8, 0.7];

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Best {
    pub jobs: u64,
    pub met: u64,
    /// The tasks of the choice, by number.
    pub chosen: Vec<usize>,
}

impl Best {
    fn try_out(&mut self, set: &TaskSet, chosen: &[Item]) -> bool {
        let met = met_by(set, chosen);
        let is_better = met > self.met;
        if is_better {
            self.met = met;
            self.chosen = chosen.iter().map(|item| item.task).collect();
            self.chosen.sort_unstable();
        }
        is_better
    }

    /// Exchanges one task for another where that could meet more.
    fn polish(&mut self, set: &TaskSet, items: &[Item], trials: &mut u32) -> bool {
        let is_in = |item: &&Item| self.chosen.binary_search(&item.task).is_ok();
        let (inside, outside): (Vec<&Item>, Vec<&Item>) = items.iter().partition(is_in);
        let all: u64 = inside.iter().map(|item| item.jobs).sum();
        for out in &inside {
            for into in &outside {
                if all - out.jobs + into.jobs <= self.met || *trials == 0 {
                    continue;
                }
                *trials -= 1;
                let kept = inside.iter().filter(|item| item.task != out.task);
                let other: Vec<Item> = kept.chain([into]).map(|item| **item).collect();
                if self.try_out(set, &other) {
                    return true;
                }
            }
        }
        false
    }

    pub fn compliance(&self) -> Option<f64> {
        (self.jobs > 0).then(|| 100.0 * self.met as f64 / self.jobs as f64)
    }
}

/// Runs of the simulator that the last improvements may cost.
const MOST_TRIALS: u32 = 60;

/// Sets of so few tasks are worth a longer search.
const FEW: usize = 24;

/// What a task asks for and what it is worth.
#[derive(Clone, Copy, Debug)]
struct Item {
    task: usize,
    /// Of the jobs that are judged: work released before and after the middle.
    work: [Ns; 2],
    jobs: u64,
}

impl Item {
    /// Work for a job: the less, the better.
    fn price(&self) -> f64 {
        (self.work[0] + self.work[1]) as f64 / self.jobs.max(1) as f64
    }
}

pub fn choice(set: &TaskSet) -> Best {
    let mut items: Vec<Item> = (0..set.tasks.len())
        .filter(|&id| !set.tasks[id].is_hog(set.horizon_ns))
        .map(|id| item(set, id))
        .collect();
    let jobs = items.iter().map(|item| item.jobs).sum();
    items.retain(|item| item.jobs > 0);
    items.sort_by(|a, b| a.price().total_cmp(&b.price()));
    let mut best = Best {
        jobs,
        met: 0,
        chosen: Vec::new(),
    };
    for fill in FILLS {
        let chosen = filled(&items, set, fill);
        // No emptier choice can meet more than all of a fuller one.
        if chosen.iter().map(|item| item.jobs).sum::<u64>() <= best.met {
            break;
        }
        best.try_out(set, &chosen);
    }
    // Choices of the same jobs differ in what they meet: times vary.
    let mut trials = MOST_TRIALS;
    while best.polish(set, &items, &mut trials) {}
    best
}

fn item(set: &TaskSet, task: usize) -> Item {
    let mut stream = JobStream::new(set, task);
    let all = std::iter::from_fn(|| stream.next_job(set, &set.tasks[task]));
    let mut item = Item {
        task,
        work: [0; 2],
        jobs: 0,
    };
    let judged = all.take_while(|job| job.deadline <= set.horizon_ns);
    for job in judged {
        item.work[usize::from(job.release >= set.horizon_ns / 2)] += job.execution;
        item.jobs += 1;
    }
    item
}

fn filled(items: &[Item], set: &TaskSet, fill: f64) -> Vec<Item> {
    let room = (set.horizon_ns as f64 / 2.0 * set.cores as f64 * fill) as Ns;
    let mut chosen: Vec<bool> = vec![false; items.len()];
    let mut left = [room; 2];
    add_all(items, &mut chosen, &mut left);
    while let Some(better) = exchanged(items, &chosen, &left) {
        (chosen, left) = better;
    }
    let kept = items.iter().zip(chosen).filter(|(_, chosen)| *chosen);
    kept.map(|(item, _)| *item).collect()
}

/// One or two out, another in, and what else fits then, if that is worth more. In large
/// sets one out is enough: what remains empty is small.
fn exchanged(items: &[Item], chosen: &[bool], left: &[Ns; 2]) -> Option<(Vec<bool>, [Ns; 2])> {
    let worth = value(items, chosen);
    let inside = || (0..items.len()).filter(|&i| chosen[i]);
    for first in inside() {
        let seconds = inside().filter(|&i| i == first || (i > first && items.len() <= FEW));
        for second in seconds {
            for into in (0..items.len()).filter(|&i| !chosen[i]) {
                let (mut other, mut room) = (chosen.to_vec(), *left);
                take(&items[first], &mut other[first], &mut room, false);
                if second != first {
                    take(&items[second], &mut other[second], &mut room, false);
                }
                if !fits(&items[into], &room) {
                    continue;
                }
                take(&items[into], &mut other[into], &mut room, true);
                add_all(items, &mut other, &mut room);
                if value(items, &other) > worth {
                    return Some((other, room));
                }
            }
        }
    }
    None
}

fn value(items: &[Item], chosen: &[bool]) -> u64 {
    let kept = items.iter().zip(chosen).filter(|(_, chosen)| **chosen);
    kept.map(|(item, _)| item.jobs).sum()
}

fn fits(item: &Item, left: &[Ns; 2]) -> bool {
    item.work[0] <= left[0] && item.work[1] <= left[1]
}

fn take(item: &Item, chosen: &mut bool, left: &mut [Ns; 2], add: bool) {
    *chosen = add;
    for (left, work) in left.iter_mut().zip(item.work) {
        *left = if add { *left - work } else { *left + work };
    }
}

fn add_all(items: &[Item], chosen: &mut [bool], left: &mut [Ns; 2]) {
    for (item, chosen) in items.iter().zip(chosen) {
        if !*chosen && fits(item, left) {
            take(item, chosen, left, true);
        }
    }
}

/// Jobs on time where the chosen alone release any.
fn met_by(set: &TaskSet, chosen: &[Item]) -> u64 {
    let mut alone = set.clone();
    for (id, task) in alone.tasks.iter_mut().enumerate() {
        if chosen.iter().all(|item| item.task != id) {
            task.end_ns = Some(0);
        }
    }
    let options = Options::new(Semantics::Continue);
    let mut sim = Sim::new(&alone, alone.cores, options, Record::default());
    sim.run(&mut Edf);
    sim.tally.met
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::task::Task;
    use crate::sim::time::{MS, SECOND};
    use crate::sim::workload::tournament::{draw, Change, Deadlines, Options};

    fn set_of(tasks: Vec<Task>) -> TaskSet {
        TaskSet {
            name: "t".into(),
            cores: 1,
            horizon_ns: SECOND,
            seed: 1,
            modes: Vec::new(),
            tasks,
        }
    }

    /// Every subset, for sets small enough.
    fn exhaustive(set: &TaskSet) -> u64 {
        let items: Vec<Item> = (0..set.tasks.len()).map(|id| item(set, id)).collect();
        (0..1u32 << items.len())
            .map(|mask| {
                let bits = items.iter().filter(|item| mask >> item.task & 1 == 1);
                let chosen: Vec<Item> = bits.copied().collect();
                let all: u64 = chosen.iter().map(|item| item.jobs).sum();
                let met = met_by(set, &chosen);
                // A choice that fits meets all of itself.
                if met == all {
                    met
                } else {
                    0
                }
            })
            .max()
            .unwrap()
    }

    #[test]
    fn the_tasks_with_the_most_jobs_for_their_work_are_kept() {
        let task = |period: u64, work: u64| Task::periodic("t", period * MS, work * MS);
        let set = set_of(vec![task(100, 60), task(10, 4), task(20, 6), task(50, 10)]);
        let best = choice(&set);
        // 0.4 + 0.3 + 0.2 fit, and the long one with 0.6 does not.
        assert_eq!(best.chosen, [1, 2, 3]);
        assert_eq!((best.jobs, best.met), (180, 170));
    }

    #[test]
    fn everything_is_chosen_where_everything_fits() {
        let task = |period: u64, work: u64| Task::periodic("t", period * MS, work * MS);
        let best = choice(&set_of(vec![
            task(10, 5),
            task(20, 10),
            Task::hog("h", SECOND),
        ]));
        assert_eq!((best.met, best.chosen), (best.jobs, vec![0, 1]));
    }

    #[test]
    fn no_subset_of_a_small_set_is_better() {
        let options = Options {
            cores: Some(1),
            tasks: Some(8),
            hogs: Some(0),
            load: Some((0.9, 1.9)),
            change: Some(Change::None),
            deadlines: Some(Deadlines::Period),
            ..Options::default()
        };
        for seed in 0..15 {
            let set = draw(&options, seed).set;
            let (best, most) = (choice(&set).met, exhaustive(&set));
            // A choice that overfills a little may meet more than any that fits.
            assert!(
                best as f64 >= 0.99 * most as f64,
                "{seed}: {best} of {most}"
            );
        }
    }
}
