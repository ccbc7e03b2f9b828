//! The loop: draw machines, run them, learn from what was seen, validate.

use super::batch::Tokens;
use super::bc::{self, Lesson};
use super::config::{Algo, Config};
use super::dqn::{self, Counters, Transition};
use super::learner::Learner;
use super::recorded;
use super::replay::Priorities;
use super::rollout::{self, Sample};
use super::validate::{Standing, Validation};
use crate::policy::network::{Model, Native, Precision, Provenance};
use crate::policy::Tokenizer;
use crate::sim::policies::{Decided, Policy};
use crate::sim::rng::{child_seed, Rng};
use crate::sim::task::TaskSet;
use crate::sim::time::{Ns, MS};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering};

pub struct Trainer {
    pub config: Config,
    /// Task sets that machines are also drawn from; not part of a checkpoint.
    pub recordings: Vec<TaskSet>,
    tokenizer: Tokenizer,
    pub learner: Learner,
    pub round: u32,
    lessons: VecDeque<Lesson>,
    samples: VecDeque<Sample>,
    transitions: VecDeque<Transition>,
    /// Of the transitions, where replay is prioritised.
    priorities: VecDeque<f32>,
    counters: Counters,
}

/// What a round came to.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Round {
    pub number: u32,
    pub phase: Algo,
    pub loss: f32,
    /// Decisions that were added to the replay.
    pub seen: usize,
}

impl Trainer {
    /// The configuration must have passed its check.
    pub fn new(config: Config) -> Result<Trainer, String> {
        config.check()?;
        let tokenizer = config.tokenizer()?;
        let learner = Learner::new(config.shape()?, &tokenizer, config.seed, config.optimiser);
        Ok(Trainer {
            recordings: Vec::new(),
            tokenizer,
            learner,
            round: 0,
            lessons: VecDeque::new(),
            samples: VecDeque::new(),
            transitions: VecDeque::new(),
            priorities: VecDeque::new(),
            counters: Counters::default(),
            config,
        })
    }

    pub fn is_done(&self) -> bool {
        self.round >= self.config.rounds
    }

    fn phase(&self) -> Algo {
        match self.round < self.config.warm_rounds {
            true => Algo::Bc,
            false => self.config.algo,
        }
    }

    pub fn play_round(&mut self) -> Round {
        let phase = self.phase();
        // What was learned by cloning is where the others start.
        if self.round == self.config.warm_rounds && phase != Algo::Bc {
            self.lessons.clear();
            let values = self.learner.weights.values().to_vec();
            self.learner.slow.values_mut().copy_from_slice(&values);
        }
        let (seen, loss) = match phase {
            Algo::Bc => {
                let seen = self.watch();
                (seen, self.learn_lessons(seen))
            }
            Algo::Rollout => {
                let seen = self.explore();
                (seen, self.learn_samples(seen))
            }
            Algo::Dqn => {
                let seen = self.gather();
                (seen, self.learn_transitions(seen))
            }
        };
        self.round += 1;
        Round {
            number: self.round,
            phase,
            loss,
            seen,
        }
    }

    fn done(&self) -> f64 {
        f64::from(self.round) / f64::from(self.config.rounds)
    }

    fn rate(&self) -> f32 {
        let optimiser = &self.config.optimiser;
        optimiser.rate * (1.0 - (1.0 - optimiser.last_rate) * self.done() as f32)
    }

    /// Seeds of this round's machines, and one more for the order of learning.
    fn seed(&self, index: usize) -> u64 {
        let round = child_seed(self.config.seed, 1 + u64::from(self.round));
        child_seed(round, index as u64)
    }

    fn machine(&self, index: usize) -> (super::env::TrainingMachine, u64) {
        let seed = self.seed(index);
        let horizon = (self.config.episode_ms * MS as f64) as Ns;
        let mut machine = self.config.curriculum.draw(&self.tokenizer, horizon, seed);
        let mut rng = Rng::new(child_seed(seed, 3));
        if !self.recordings.is_empty() && rng.chance(recorded::SHARE) {
            if let Some(set) = recorded::draw(&self.recordings, horizon, &mut rng) {
                machine.set = set;
            }
        }
        (machine, child_seed(seed, 2))
    }

    /// Runs all machines of a round, in parallel, results in their order.
    fn on_machines<T: Send>(
        &self,
        run: impl Fn(&super::env::TrainingMachine, u64) -> Vec<T> + Sync,
    ) -> Vec<T> {
        let parts: Vec<Vec<T>> = (0..self.config.machines)
            .into_par_iter()
            .with_max_len(1)
            .map(|index| {
                let (machine, seed) = self.machine(index);
                run(&machine, seed)
            })
            .collect();
        parts.into_iter().flatten().collect()
    }

    fn watch(&mut self) -> usize {
        let config = &self.config.clone;
        let native = Native::new(&self.learner.slow, Precision::Float);
        // A network that knows nothing yet drives no machine.
        let drives = config.student_drives * (self.done() * 4.0).min(1.0);
        let lessons = self.on_machines(|machine, seed| {
            let mut lessons = Vec::new();
            if config.teacher == bc::RULE {
                let mut rng = Rng::new(child_seed(seed, 3));
                let policy = machine.policy.clone();
                let mut driver: Box<dyn Policy> = match rng.chance(drives) {
                    true => Box::new(Decided::new(policy, native.clone())),
                    false => Box::new(Decided::new(policy, config.rules.blend(machine))),
                };
                bc::judge(machine, driver.as_mut(), config, seed, &mut lessons);
            } else {
                let mut teacher = bc::teacher(machine, &config.teacher);
                bc::watch(machine, teacher.as_mut(), config.kept, seed, &mut lessons);
            }
            lessons
        });
        keep(&mut self.lessons, lessons, self.config.replay)
    }

    fn explore(&mut self) -> usize {
        let native = Native::new(&self.learner.slow, Precision::Float);
        let config = &self.config.rollout;
        let first = self.config.warm_rounds.saturating_add(config.base_rounds);
        let base = (self.round < first).then_some(config.base);
        let samples = self.on_machines(|machine, seed| {
            let mut samples = Vec::new();
            let mut scorer = match base {
                Some(base) => base.scorer(seed),
                None => Box::new(native.clone()),
            };
            rollout::explore(machine, scorer.as_mut(), config, seed, &mut samples);
            samples
        });
        keep(&mut self.samples, samples, self.config.replay)
    }

    fn gather(&mut self) -> usize {
        let native = Native::new(&self.learner.weights, Precision::Float);
        let config = &self.config.dqn;
        let epsilon = config.epsilon_at(self.done());
        let transitions = self.on_machines(|machine, seed| {
            let mut scorer = native.clone();
            dqn::gather(machine, &mut scorer, config, &self.counters, epsilon, seed)
        });
        for transition in &transitions {
            self.counters.count(transition);
        }
        // What has not been learned from yet comes first.
        let most = self.priorities.iter().copied().fold(1.0, f32::max);
        let new = vec![most; transitions.len()];
        keep(&mut self.priorities, new, self.config.replay);
        keep(&mut self.transitions, transitions, self.config.replay)
    }

    fn learn_lessons(&mut self, seen: usize) -> f32 {
        let lessons = std::mem::take(&mut self.lessons);
        let loss = self.learn(
            seen,
            &lessons,
            |lesson| &lesson.tokens,
            |_, picked| Box::new(|i, q, dq| bc::loss(picked[i], q, dq)),
        );
        self.lessons = lessons;
        loss
    }

    fn learn_samples(&mut self, seen: usize) -> f32 {
        let samples = std::mem::take(&mut self.samples);
        let temper = self.config.rollout.temper;
        let loss = self.learn(
            seen,
            &samples,
            |sample| &sample.tokens,
            |_, picked| Box::new(move |i, q, dq| rollout::loss(picked[i], temper, q, dq)),
        );
        self.samples = samples;
        loss
    }

    fn learn_transitions(&mut self, seen: usize) -> f32 {
        if self.config.dqn.priority > 0.0 {
            return self.learn_surprises(seen);
        }
        let transitions = std::mem::take(&mut self.transitions);
        let config = self.config.dqn.clone();
        let loss = self.learn(
            seen,
            &transitions,
            |t| &t.tokens,
            |learner, picked| {
                let targets = dqn::targets(learner, picked, &config);
                let config = &config;
                Box::new(move |i, q, dq| dqn::loss(picked[i], targets[i], q, dq, config))
            },
        );
        self.transitions = transitions;
        loss
    }

    /// The same, drawn by how wrong the network was.
    fn learn_surprises(&mut self, seen: usize) -> f32 {
        if self.transitions.is_empty() {
            return 0.0;
        }
        let config = self.config.dqn.clone();
        let beta = config.correction + (1.0 - config.correction) * self.done();
        let mut priorities = Priorities::new(self.priorities.iter().copied());
        let mut rng = Rng::new(self.seed(self.config.machines));
        let (rate, steps, batch) = (self.rate(), self.steps(seen), self.config.optimiser.batch);
        let mut sum = 0.0;
        for _ in 0..steps {
            // One from each of as many equal shares, so that a batch is a fair sample.
            let drawn: Vec<usize> = (0..batch)
                .map(|i| priorities.draw((i as f64 + rng.unit()) / batch as f64))
                .collect();
            let picked: Vec<&Transition> = drawn.iter().map(|&i| &self.transitions[i]).collect();
            let counts: Vec<f64> = drawn
                .iter()
                .map(|&i| priorities.correction(i, beta))
                .collect();
            let most = counts.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
            let targets = dqn::targets(&self.learner, &picked, &config);
            let contexts: Vec<&Tokens> = picked.iter().map(|t| &t.tokens).collect();
            let errors: Vec<AtomicU32> = drawn.iter().map(|_| AtomicU32::new(0)).collect();
            sum += self.learner.step(&contexts, rate, |i, q, dq| {
                let error = dqn::set_value(q, &picked[i].run, config.credit) - targets[i];
                errors[i].store(error.abs().to_bits(), Ordering::Relaxed);
                let share = (counts[i] / most) as f32;
                let loss = dqn::loss(picked[i], targets[i], q, dq, &config);
                dq.iter_mut().for_each(|slope| *slope *= share);
                share * loss
            });
            for (&item, error) in drawn.iter().zip(&errors) {
                let error = f32::from_bits(error.load(Ordering::Relaxed));
                let priority = (error + dqn::LEAST_ERROR).powf(config.priority as f32);
                priorities.set(item, priority);
            }
        }
        for (item, priority) in self.priorities.iter_mut().enumerate() {
            *priority = priorities.get(item);
        }
        sum / steps as f32
    }

    fn steps(&self, seen: usize) -> usize {
        let passes = self.config.passes * seen as f64;
        let steps = passes / self.config.optimiser.batch as f64;
        steps.ceil().max(1.0) as usize
    }

    /// The steps of a round; the mean loss.
    fn learn<'a, T: Sync>(
        &mut self,
        seen: usize,
        replay: &'a VecDeque<T>,
        tokens: impl Fn(&'a T) -> &'a Tokens,
        prepare: impl for<'p> Fn(&Learner, &'p [&'a T]) -> LossOf<'p>,
    ) -> f32 {
        if replay.is_empty() {
            return 0.0;
        }
        let mut rng = Rng::new(self.seed(self.config.machines));
        let rate = self.rate();
        let mut sum = 0.0;
        let steps = self.steps(seen);
        for _ in 0..steps {
            let picked: Vec<&T> = (0..self.config.optimiser.batch)
                .map(|_| &replay[rng.below(replay.len())])
                .collect();
            let contexts: Vec<&Tokens> = picked.iter().map(|item| tokens(item)).collect();
            let loss = prepare(&self.learner, &picked);
            sum += self
                .learner
                .step(&contexts, rate, |i, q, dq| loss(i, q, dq));
        }
        sum / steps as f32
    }

    pub fn standing(&self, validation: &Validation) -> Standing {
        validation.standing(&self.learner.slow, &self.tokenizer)
    }

    /// The slow copy, as a model that says where it comes from.
    pub fn model(&self, standing: Option<&Standing>) -> Result<Model, String> {
        let training = serde_json::json!({
            "recipe": self.config,
            "rounds": self.round,
            "version": env!("CARGO_PKG_VERSION"),
        });
        let provenance = Provenance {
            name: self.config.name.clone(),
            training,
            compliance: standing.map_or(serde_json::Value::Null, |s| {
                serde_json::json!({
                    "validation": s,
                })
            }),
        };
        Model::new(
            self.tokenizer.clone(),
            self.learner.slow.clone(),
            provenance,
        )
        .map_err(|error| error.to_string())
    }
}

type LossOf<'p> = Box<dyn Fn(usize, &[f32], &mut [f32]) -> f32 + Sync + 'p>;

/// Adds what is new and lets go of the oldest. How many were added.
fn keep<T>(replay: &mut VecDeque<T>, new: Vec<T>, most: usize) -> usize {
    let added = new.len();
    replay.extend(new);
    let over = replay.len().saturating_sub(most);
    replay.drain(..over);
    added
}
