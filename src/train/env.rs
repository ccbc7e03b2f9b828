//! What the network is trained on: machines drawn from a curriculum that is
//! wider than anything it will be judged on.

use crate::policy::{OverloadRule, PolicyConfig, ShieldConfig, ShieldMode, Tokenizer};
use crate::sim::engine::{Knowledge, Options};
use crate::sim::policies::overload_rule;
use crate::sim::rng::{child_seed, Rng};
use crate::sim::task::{Declaration, Execution, Semantics, TaskSet};
use crate::sim::time::{Ns, MS, SECOND, US};
use crate::sim::workload::{self, Params};
use serde::{Deserialize, Serialize};

/// How machines are drawn. Shares are probabilities.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Curriculum {
    /// Load per core.
    pub load: (f64, f64),
    /// Machines with more than one core, and how many at most.
    pub many_cores: f64,
    pub most_cores: usize,
    pub most_tasks: usize,
    /// Execution times hidden, only history to estimate them from.
    pub hidden: f64,
    /// Among the hidden: with overruns.
    pub overruns: f64,
    /// Late jobs are aborted; on the others they go on, as on Linux.
    pub abort: f64,
    /// Decisions that arrive 0.1 to 1 ms late.
    pub delayed: f64,
    /// Machines whose load the network is not told, by those who clone.
    pub load_unknown: f64,
    /// Decisions without the shield.
    pub bare: f64,
    /// Among those with it: overload left to the network (`fit`) instead of
    /// to the rule for such a machine.
    pub fit: f64,
}

impl Default for Curriculum {
    fn default() -> Curriculum {
        Curriculum {
            load: (0.5, 2.0),
            many_cores: 0.25,
            most_cores: 16,
            most_tasks: 64,
            hidden: 0.5,
            overruns: 0.5,
            abort: 0.4,
            delayed: 0.1,
            load_unknown: 0.1,
            bare: 0.3,
            fit: 0.6,
        }
    }
}

impl Curriculum {
    /// The first thing that makes no sense, if any.
    pub fn check(&self) -> Result<(), String> {
        let shares = [
            ("many_cores", self.many_cores),
            ("hidden", self.hidden),
            ("overruns", self.overruns),
            ("abort", self.abort),
            ("delayed", self.delayed),
            ("load_unknown", self.load_unknown),
            ("bare", self.bare),
            ("fit", self.fit),
        ];
        for (name, share) in shares {
            if !(0.0..=1.0).contains(&share) {
                return Err(format!("{name} is {share}; it must be within 0 and 1"));
            }
        }
        let (low, high) = self.load;
        if !(low > 0.0 && low <= high && high <= 4.0) {
            return Err(format!(
                "load is {low} to {high}; it must be above 0, ascending and at most 4"
            ));
        }
        if !(2..=64).contains(&self.most_cores) {
            return Err(format!(
                "most_cores is {}; it must be within 2 and 64",
                self.most_cores
            ));
        }
        if !(3..=1000).contains(&self.most_tasks) {
            return Err(format!(
                "most_tasks is {}; it must be within 3 and 1000",
                self.most_tasks
            ));
        }
        Ok(())
    }

    /// The machine of this seed.
    pub fn draw(&self, tokenizer: &Tokenizer, horizon_ns: Ns, seed: u64) -> TrainingMachine {
        let mut rng = Rng::new(seed);
        let hidden = rng.chance(self.hidden);
        let execution = hidden.then(|| {
            if rng.chance(self.overruns) {
                Execution::Overrun {
                    low: 0.5,
                    probability: rng.uniform(0.1, 0.3),
                    factor: 3.0,
                }
            } else {
                Execution::Uniform {
                    low: rng.uniform(0.4, 0.6),
                    high: 1.0,
                }
            }
        });
        let semantics = match rng.chance(self.abort) {
            true => Semantics::Abort,
            false => Semantics::Continue,
        };
        let mut options = Options::new(semantics);
        if hidden {
            options.knowledge = Knowledge::History;
        }
        if rng.chance(self.delayed) {
            options.decision_latency_ns = rng.log_uniform(0.1, 1.0).mul_add(MS as f64, 0.0) as Ns;
            options.decision_latency_ns -= options.decision_latency_ns % US;
        }
        let set = self.draw_set(&mut rng, execution, horizon_ns, seed);
        let shield = match rng.chance(self.bare) {
            true => ShieldMode::Off,
            false => ShieldMode::On,
        };
        let overload = match rng.chance(self.fit) {
            true => OverloadRule::Fit,
            false => overload_rule(semantics, set.cores),
        };
        TrainingMachine {
            policy: PolicyConfig {
                shield_config: ShieldConfig {
                    overload,
                    ..ShieldConfig::default()
                },
                ..policy(tokenizer, shield)
            },
            set,
            options,
            load_unknown: self.load_unknown,
        }
    }

    fn draw_set(
        &self,
        rng: &mut Rng,
        execution: Option<Execution>,
        horizon_ns: Ns,
        seed: u64,
    ) -> TaskSet {
        let mut params = Params {
            load: Some(self.load),
            horizon_ns: Some(horizon_ns),
            execution,
            ..Params::default()
        };
        let name = if rng.chance(self.many_cores) {
            let cores = rng.log_uniform(2.0, self.most_cores as f64 + 1.0) as usize;
            let cores = cores.min(self.most_cores);
            let least = cores + 1;
            let most = (self.most_tasks as f64).max(least as f64 + 1.0);
            // Half of them with few tasks, where packing is hard.
            let most = if rng.chance(0.5) {
                (2 * cores + 1) as f64
            } else {
                most
            };
            params.cores = Some(cores);
            params.tasks = Some(rng.log_uniform(least as f64, most) as usize);
            // A task cannot use more than one core.
            let (low, high) = self.load;
            let bearable = 0.9 * params.tasks.unwrap_or(1) as f64 / cores as f64;
            params.load = Some((low.min(bearable), high.min(bearable)));
            "large"
        } else {
            let name = [
                "random5", "random5", "random5", "standard", "pareto", "srpt",
            ][rng.below(6)];
            if name == "random5" {
                let most = (self.most_tasks as f64).min(24.0);
                params.tasks = Some(match rng.chance(0.5) {
                    true => 5,
                    false => rng.log_uniform(2.0, most) as usize,
                });
            }
            let tasks = params.tasks.unwrap_or(3) as f64;
            let (low, high) = self.load;
            params.load = Some((low.min(0.9 * tasks), high.min(0.9 * tasks)));
            name
        };
        let workload = workload::find(name).expect("a workload of ours");
        let mut set = workload.generate(&params, child_seed(seed, 1), 0);
        stretch(&mut set, rng.log_uniform(0.5, 2.0));
        // Not every machine starts with all tasks at once.
        if rng.chance(0.5) {
            for task in &mut set.tasks {
                task.offset_ns = rng.below(task.period_ns as usize) as Ns;
            }
        }
        set
    }
}

pub fn policy(tokenizer: &Tokenizer, shield: ShieldMode) -> PolicyConfig {
    PolicyConfig {
        tokenizer: tokenizer.clone(),
        shield,
        ..PolicyConfig::default()
    }
}

/// The same set at another pace.
fn stretch(set: &mut TaskSet, factor: f64) {
    let scale = |time: &mut Ns| *time = ((*time as f64 * factor).round() as Ns).max(1);
    for task in &mut set.tasks {
        scale(&mut task.period_ns);
        scale(&mut task.wcet_ns);
        scale(&mut task.deadline_ns);
        task.offset_ns = (task.offset_ns as f64 * factor).round() as Ns;
        task.wcet_ns = task.wcet_ns.min(2 * SECOND);
        if let Declaration::Runtime(runtime) = &mut task.declared {
            scale(runtime);
        }
        task.end_ns.iter_mut().for_each(scale);
    }
}

/// A machine with its task set, and how decisions are made on it.
#[derive(Clone, Debug)]
pub struct TrainingMachine {
    pub set: TaskSet,
    pub options: Options,
    pub policy: PolicyConfig,
    /// How likely the network is not told the load.
    pub load_unknown: f64,
}

impl TrainingMachine {
    pub fn is_overloaded(&self) -> bool {
        self.set.utilisation() > self.set.cores as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_are_sound_reproducible_and_of_every_kind() {
        let curriculum = Curriculum::default();
        let tokenizer = Tokenizer::default();
        let draw = |seed| curriculum.draw(&tokenizer, 2 * SECOND, seed);
        let machines: Vec<TrainingMachine> = (0..400).map(draw).collect();
        for (seed, machine) in machines.iter().enumerate() {
            machine.set.check().unwrap();
            assert_eq!(machine.set, draw(seed as u64).set);
            let load = machine.set.utilisation() / machine.set.cores as f64;
            assert!(load < 2.05, "{load}");
        }
        let any = |test: &dyn Fn(&TrainingMachine) -> bool| machines.iter().any(test);
        assert!(any(&|m| m.set.cores == 16) && any(&|m| m.set.tasks.len() > 50));
        assert!(any(&|m| m.options.knowledge == Knowledge::History));
        assert!(any(&|m| m.options.semantics == Semantics::Abort));
        assert!(any(&|m| m.options.decision_latency_ns > 0));
        assert!(any(&|m| m.policy.shield == ShieldMode::Off));
    }

    #[test]
    fn a_share_that_is_none_is_named() {
        let curriculum = Curriculum {
            hidden: 1.5,
            ..Curriculum::default()
        };
        assert!(curriculum.check().unwrap_err().contains("hidden is 1.5"));
        assert!(Curriculum::default().check().is_ok());
    }
}
