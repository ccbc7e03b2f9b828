//! A story: machine, population and events, a pure function of the seed and its length.
//! Filters leave out tasks and events by their index; what is left stays the same story.
use crate::events::{self, Event};
use crate::machine::Machine;
use crate::population::Population;
use crate::sets::from_list;
use anyhow::Result;
use std::collections::BTreeSet;

pub struct Story {
    pub seed: u64,
    pub seconds: u64,
    pub machine: Machine,
    pub people: Population,
    pub events: Vec<Event>,
    tasks_kept: Option<BTreeSet<usize>>,
    events_kept: Option<BTreeSet<usize>>,
}

impl Story {
    pub fn generate(seed: u64, seconds: u64) -> Story {
        let machine = Machine::generate(seed);
        let people = Population::generate(seed, &machine);
        let events = events::generate(seed, seconds, &machine, &people);
        Story {
            seed,
            seconds,
            machine,
            people,
            events,
            tasks_kept: None,
            events_kept: None,
        }
    }

    pub fn keep(mut self, tasks: Option<&str>, events: Option<&str>) -> Result<Story> {
        self.tasks_kept = tasks.map(from_list).transpose()?;
        self.events_kept = events.map(from_list).transpose()?;
        Ok(self)
    }

    pub fn has_task(&self, task: usize) -> bool {
        self.tasks_kept
            .as_ref()
            .is_none_or(|kept| kept.contains(&task))
    }

    /// Kept itself, and so is the task that it happens to.
    pub fn has_event(&self, event: usize) -> bool {
        self.events_kept
            .as_ref()
            .is_none_or(|kept| kept.contains(&event))
            && self.events[event]
                .what
                .task()
                .is_none_or(|task| self.has_task(task))
    }

    pub fn tasks(&self) -> Vec<usize> {
        (0..self.people.tasks.len())
            .filter(|&task| self.has_task(task))
            .collect()
    }

    pub fn events_left(&self) -> Vec<usize> {
        (0..self.events.len())
            .filter(|&event| self.has_event(event))
            .collect()
    }

    /// For a person.
    pub fn describe(&self) -> String {
        let mut text = format!(
            "seed {}, {} s\nmachine: {}\nscripts/vm {}\n",
            self.seed,
            self.seconds,
            self.machine,
            self.machine.vm_options()
        );
        for (at, group) in self.people.groups.iter().enumerate() {
            text += &format!("group {at}: {}, weight {}", group.path, group.weight);
            if let Some(cpus) = group.cpus {
                text += &format!(", CPUs {cpus}");
            }
            if let Some(quota) = group.quota_us {
                text += &format!(", {quota} us in 100 ms");
            }
            text += if group.leaf { "\n" } else { ", holds groups\n" };
        }
        for at in self.tasks() {
            text += &format!("task {at}: {}\n", self.people.tasks[at]);
        }
        for at in self.events_left() {
            let event = &self.events[at];
            text += &format!(
                "event {at}: {:.3} s {}\n",
                event.at_ms as f64 / 1000.0,
                event.what
            );
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::What;
    use crate::population::MOST_TASKS;

    #[test]
    fn the_same_seed_tells_the_same_story() {
        for seed in [0, 1, 42, u64::MAX] {
            let (one, other) = (Story::generate(seed, 20), Story::generate(seed, 20));
            assert_eq!(one.describe(), other.describe());
        }
        assert_ne!(
            Story::generate(1, 20).describe(),
            Story::generate(2, 20).describe()
        );
    }

    #[test]
    fn a_longer_story_begins_with_other_events_only_near_the_end() {
        let (short, long) = (Story::generate(7, 20), Story::generate(7, 60));
        assert_eq!(short.people, long.people);
        assert_eq!(short.machine, long.machine);
    }

    #[test]
    fn every_story_can_be_told() {
        for seed in 0..2000 {
            let story = Story::generate(seed, 20);
            let all = story.machine.all().0;
            assert!((4..=MOST_TASKS + 2).contains(&story.people.tasks.len()));
            for task in &story.people.tasks {
                assert!(task.cpus.0 != 0 && task.cpus.0 & !all == 0);
                assert!(task.group.is_none_or(|g| story.people.groups[g].leaf));
            }
            for event in &story.events {
                assert!(event.at_ms < 20_000);
                match event.what {
                    What::Affinity { cpus, .. }
                    | What::MoveAsleep { cpus, .. }
                    | What::Cpuset { cpus, .. } => assert!(cpus.0 != 0 && cpus.0 & !all == 0),
                    What::Offline { cpus, for_ms } => {
                        assert!(cpus.0 != 0 && cpus.0 & !all == 0 && !cpus.has(0));
                        assert!(event.at_ms + for_ms < 20_000);
                    }
                    _ => {}
                }
            }
        }
    }

    #[test]
    fn a_filter_leaves_the_rest_as_it_was() {
        let whole = Story::generate(3, 20);
        let some = Story::generate(3, 20)
            .keep(Some("0-1,3"), Some("0-9"))
            .unwrap();
        assert_eq!(some.tasks(), [0, 1, 3]);
        assert_eq!(some.people, whole.people);
        for at in some.events_left() {
            assert!(at < 10);
            assert!(whole.events[at]
                .what
                .task()
                .is_none_or(|t| some.has_task(t)));
        }
        assert!(Story::generate(3, 20).keep(Some("x"), None).is_err());
    }
}
