//! The paper's rewards, computed from what happened between two decisions.
//!
//! All start from +1 per completed job and −1 per passed deadline (§ Problem
//! formulation; binary), less λ per migration (multi-core MDP). R1 to R5 add one
//! term each; the paper names the terms of R3 to R5 and only the idea of R1 and R2.

use serde::{Deserialize, Serialize};

use super::engine::{Event, View};
use super::time::{Ns, MS};

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// +1 and −1 only.
    Binary,
    /// R1: −η per relative deadline by which a late job completes late.
    Lateness { eta: f64 },
    /// R2: +η times the share of the relative deadline left at completion.
    EarlyBonus { eta: f64 },
    /// R3: −η · max(0, −slack) in milliseconds per ready job, times the time it lasts.
    SlackSensitive { eta: f64 },
    /// R4: completions and misses of a task weigh 1 + ρ · σ̂, σ̂ the coefficient of
    /// variation of its execution times.
    RiskAware { rho: f64 },
    /// R5: −λ · P_dyn(f) for the time the cores run.
    EnergyAware { lambda: f64, frequency: Frequency },
}

/// Dynamic power of a core: P = f³, normalised to 1 at full speed. One speed for
/// all cores; work stretches by 1/f elsewhere (scale the task set).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Frequency(pub f64);

impl Frequency {
    pub fn dynamic_power(self) -> f64 {
        self.0.powi(3)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reward {
    pub shape: Shape,
    /// λ, the price of a migration.
    pub migration: f64,
}

impl Reward {
    pub const BINARY: Reward = Reward {
        shape: Shape::Binary,
        migration: 0.0,
    };

    /// The reward of the time since the last decision. `events` are what happened,
    /// `view` the state now, `elapsed` and `running` the time and how many cores
    /// ran jobs in it.
    pub fn of(&self, events: &[Event], view: &View, elapsed: Ns, running: usize) -> f64 {
        let mut sum = 0.0;
        for event in events {
            sum += match *event {
                Event::Completed {
                    task,
                    time,
                    release,
                    deadline,
                    execution,
                } => self.weight(view, task, execution) + self.completion(time, release, deadline),
                Event::Missed { task, .. } => -self.weight(view, task, 0),
                Event::Migrated { .. } => -self.migration,
            };
        }
        let elapsed_ms = elapsed as f64 / MS as f64;
        match self.shape {
            Shape::SlackSensitive { eta } => {
                let tardy: i64 = view.jobs.iter().map(|j| (-j.slack(view.now)).max(0)).sum();
                sum -= eta * tardy as f64 / MS as f64 * elapsed_ms;
            }
            Shape::EnergyAware { lambda, frequency } => {
                sum -= lambda * frequency.dynamic_power() * running as f64 * elapsed_ms;
            }
            _ => {}
        }
        sum
    }

    fn weight(&self, view: &View, task: u32, execution: Ns) -> f64 {
        let Shape::RiskAware { rho } = self.shape else {
            return 1.0;
        };
        let wcet = view.tasks[task as usize].wcet_ns;
        let typical = if execution > 0 { execution } else { wcet } as f64;
        let spread = view
            .jobs
            .iter()
            .find(|job| job.task == task)
            .map_or(0, |job| job.spread);
        1.0 + rho * spread as f64 / typical.max(1.0)
    }

    fn completion(&self, time: Ns, release: Ns, deadline: Ns) -> f64 {
        let window = (deadline - release).max(1) as f64;
        match self.shape {
            Shape::Lateness { eta } => -eta * time.saturating_sub(deadline) as f64 / window,
            Shape::EarlyBonus { eta } => eta * deadline.saturating_sub(time) as f64 / window,
            _ => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::engine::Options;
    use crate::sim::task::{Semantics, Task};

    fn view<'a>(tasks: &'a [Task], options: &'a Options) -> View<'a> {
        View {
            now: 10 * MS,
            cores: 2,
            options,
            jobs: &[],
            places: &[],
            running: &[],
            touched: &[],
            tasks,
            next_boundary: 20 * MS,
            next_releases: &[],
            estimates: &[],
        }
    }

    fn completed(time_ms: u64) -> Event {
        Event::Completed {
            task: 0,
            time: time_ms * MS,
            release: 0,
            deadline: 10 * MS,
            execution: MS,
        }
    }

    fn reward(shape: Shape, events: &[Event]) -> f64 {
        let tasks = [Task::periodic("x", 10 * MS, MS)];
        let reward = Reward {
            shape,
            migration: 0.25,
        };
        let options = Options::new(Semantics::Continue);
        reward.of(events, &view(&tasks, &options), 2 * MS, 1)
    }

    #[test]
    fn binary_counts_completions_misses_and_migrations() {
        let missed = Event::Missed { task: 0, time: 0 };
        let moved = Event::Migrated { task: 0, time: 0 };
        let events = [completed(5), completed(6), missed, moved];
        assert_eq!(reward(Shape::Binary, &events), 2.0 - 1.0 - 0.25);
    }

    #[test]
    fn lateness_costs_and_earliness_pays() {
        assert_eq!(reward(Shape::Lateness { eta: 0.5 }, &[completed(15)]), 0.75);
        assert_eq!(reward(Shape::Lateness { eta: 0.5 }, &[completed(5)]), 1.0);
        assert_eq!(
            reward(Shape::EarlyBonus { eta: 0.5 }, &[completed(5)]),
            1.25
        );
        assert_eq!(
            reward(Shape::EarlyBonus { eta: 0.5 }, &[completed(15)]),
            1.0
        );
    }

    #[test]
    fn energy_grows_with_the_cube_of_the_frequency() {
        let energy = |f| {
            let frequency = Frequency(f);
            -reward(
                Shape::EnergyAware {
                    lambda: 1.0,
                    frequency,
                },
                &[],
            )
        };
        assert_eq!(energy(1.0), 2.0);
        assert_eq!(energy(0.5), 0.25);
    }
}
