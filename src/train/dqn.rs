//! Deep Q-learning, in the order of the paper's Algorithm 1, with what has
//! been shown to help since: double Q, n steps, time-aware discounts.
//!
//! **Credit for several cores.** A decision on m cores is a set of m actions;
//! its value is the mean (or the sum) of their Q. The best set is then the m
//! best actions, which is what the greedy mapping takes, and one target
//! teaches all of them.
//!
//! **Time.** Decisions come when something happens, not at ticks, so what
//! comes t later counts γ^(t/unit).

use super::batch::Tokens;
use super::env::TrainingMachine;
use super::learner::Learner;
use crate::policy::{Context, Decider, Scorer};
use crate::sim::engine::{Plan, Record, Sim};
use crate::sim::policies::{ask_again, carry_out, run_all};
use crate::sim::reward::{Reward, Shape};
use crate::sim::rng::Rng;
use crate::sim::situation::Situations;
use crate::sim::time::{Ns, MS};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Credit {
    Mean,
    Sum,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DqnConfig {
    /// γ per `unit_ms` of simulated time.
    pub gamma: f64,
    pub unit_ms: f64,
    pub steps: usize,
    /// Choose the next set by the fast weights, value it by the slow ones.
    pub double: bool,
    pub credit: Credit,
    /// Huber beyond this error; 0: squares throughout.
    pub huber: f32,
    /// ε falls linearly over this share of the rounds.
    pub epsilon: (f64, f64),
    pub epsilon_rounds: f64,
    /// β of the bonus β/√(N(s, a)+1) on what was seldom tried.
    pub beta: f32,
    /// The reward of the paper: binary, with a bonus for being early.
    pub early: f64,
    /// Prioritised replay: transitions are drawn by error^priority, 0 for evenly,
    /// and corrected for it by a power that rises linearly from `correction` to 1.
    pub priority: f64,
    pub correction: f64,
}

impl Default for DqnConfig {
    fn default() -> DqnConfig {
        DqnConfig {
            gamma: 0.97,
            unit_ms: 10.0,
            steps: 5,
            double: true,
            credit: Credit::Mean,
            huber: 1.0,
            epsilon: (0.5, 0.02),
            epsilon_rounds: 0.5,
            beta: 0.1,
            early: 0.1,
            priority: 0.6,
            correction: 0.4,
        }
    }
}

impl DqnConfig {
    pub fn check(&self) -> Result<(), String> {
        if !(self.gamma > 0.0 && self.gamma < 1.0) {
            return Err(format!(
                "gamma is {}; it must be within 0 and 1",
                self.gamma
            ));
        }
        if !(self.unit_ms > 0.0 && self.unit_ms.is_finite()) {
            return Err(format!("unit_ms is {}; it must be above 0", self.unit_ms));
        }
        if self.steps == 0 {
            return Err("steps is 0; it must be at least 1".into());
        }
        for (name, power) in [("priority", self.priority), ("correction", self.correction)] {
            if !(0.0..=1.0).contains(&power) {
                return Err(format!("{name} is {power}; it must be within 0 and 1"));
            }
        }
        let (first, last) = self.epsilon;
        if !(0.0..=1.0).contains(&first) || !(0.0..=1.0).contains(&last) {
            return Err(format!(
                "epsilon is {first} to {last}; both must be within 0 and 1"
            ));
        }
        let bonus = [
            self.beta,
            self.huber,
            self.early as f32,
            self.epsilon_rounds as f32,
        ];
        if bonus.iter().any(|value| value.is_nan() || *value < 0.0) {
            return Err("beta, huber, early and epsilon_rounds must not be negative".into());
        }
        Ok(())
    }

    /// ε in the course of the run, `done` of it past.
    pub fn epsilon_at(&self, done: f64) -> f64 {
        let (first, last) = self.epsilon;
        let part = (done / self.epsilon_rounds.max(1e-9)).min(1.0);
        first + (last - first) * part
    }

    fn discount(&self, elapsed: Ns) -> f64 {
        self.gamma.powf(elapsed as f64 / (self.unit_ms * MS as f64))
    }

    fn reward(&self) -> Reward {
        let shape = match self.early > 0.0 {
            true => Shape::EarlyBonus { eta: self.early },
            false => Shape::Binary,
        };
        Reward {
            shape,
            migration: 0.0,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Transition {
    pub tokens: Tokens,
    /// Slot of every job that was run.
    pub run: Vec<u32>,
    /// Discounted, of the steps between the two states.
    pub reward: f32,
    pub discount: f32,
    pub next: Tokens,
    /// Slot of every job that could be run next.
    pub next_choices: Vec<u32>,
}

/// How often a token was chosen in a context, by hash: collisions only make
/// things look more familiar than they are.
#[derive(Clone, Debug)]
pub struct Counters(Vec<u32>);

const COUNTERS: usize = 1 << 18;

impl Default for Counters {
    fn default() -> Counters {
        Counters(vec![0; COUNTERS])
    }
}

impl Counters {
    fn place(tokens: &Tokens, slot: usize) -> usize {
        // FNV-1a over the context, then the action.
        let mut hash = 0xCBF2_9CE4_8422_2325u64;
        let context = tokens.indices.iter().zip(&tokens.counts);
        let words = context.flat_map(|(&index, &count)| [index, count]);
        for word in words.chain([tokens.indices[slot]]) {
            hash = (hash ^ u64::from(word)).wrapping_mul(0x0100_0000_01B3);
        }
        (hash ^ hash >> 32) as usize % COUNTERS
    }

    pub fn bonus(&self, tokens: &Tokens, slot: usize, beta: f32) -> f32 {
        let seen = self.0[Counters::place(tokens, slot)];
        beta / (seen as f32 + 1.0).sqrt()
    }

    pub fn count(&mut self, transition: &Transition) {
        for &slot in &transition.run {
            let place = Counters::place(&transition.tokens, slot as usize);
            self.0[place] = self.0[place].saturating_add(1);
        }
    }
}

/// The network's scores with the bonus, or a random job first.
struct Curious<'a, S: ?Sized> {
    inner: &'a mut S,
    counters: &'a Counters,
    beta: f32,
    random: Option<u64>,
}

impl<S: Scorer + ?Sized> Scorer for Curious<'_, S> {
    fn score(&mut self, context: &Context<'_>, scores: &mut [f32]) {
        self.inner.score(context, scores);
        if self.beta > 0.0 {
            let tokens = Tokens::of(context.tokens, context.situation.cpus.count());
            for (job, &slot) in context.tokens.slots().iter().enumerate() {
                scores[1 + job] += self.counters.bonus(&tokens, slot as usize, self.beta);
            }
        }
        if let Some(seed) = self.random {
            let mut rng = Rng::new(seed);
            for score in &mut scores[1..] {
                *score = rng.unit() as f32;
            }
        }
    }
}

/// A decision on its way to becoming a transition.
struct Pending {
    tokens: Tokens,
    run: Vec<u32>,
    time: Ns,
    reward: f64,
}

/// One run of a machine with exploration.
pub fn gather<S: Scorer + ?Sized>(
    machine: &TrainingMachine,
    scorer: &mut S,
    config: &DqnConfig,
    counters: &Counters,
    epsilon: f64,
    seed: u64,
) -> Vec<Transition> {
    let record = Record {
        events: true,
        ..Record::default()
    };
    let set = &machine.set;
    let mut rng = Rng::new(seed);
    let mut sim = Sim::new(set, set.cores, machine.options, record);
    let mut decider = Decider::new(machine.policy.clone());
    let mut situations = Situations::new();
    situations.start(set);
    let reward = config.reward();
    let mut plan = Plan::default();
    let mut pending: VecDeque<Pending> = VecDeque::new();
    let mut transitions = Vec::new();
    let (mut last, mut running) = (0, 0);
    while sim.advance() {
        let view = sim.view();
        let gained = reward.of(&sim.events, &view, view.now - last, running);
        last = view.now;
        for earlier in &mut pending {
            earlier.reward += gained * config.discount(view.now - earlier.time);
        }
        plan.clear();
        if run_all(&view, &mut plan) {
            sim.events.clear();
            sim.submit(&plan);
            running = sim.running();
            continue;
        }
        let situation = situations.of(&view);
        let mut curious = Curious {
            inner: scorer,
            counters,
            beta: config.beta,
            random: rng.chance(epsilon).then(|| rng.next_u64()),
        };
        decider.decide(&mut curious, &situation);
        situations.note(&decider);
        let decision = decider.decision();
        carry_out(decision, &view, &mut plan);
        ask_again(decision, &view, &mut plan);
        if decision.scored {
            let jobs: Vec<usize> = decision.assignment.iter().map(|(_, job)| job).collect();
            let slots = decider.tokens().slots();
            let run: Vec<u32> = jobs.iter().map(|&job| slots[job]).collect();
            let tokens = Tokens::of(decider.tokens(), set.cores);
            if pending.len() == config.steps {
                if let Some(Pending {
                    tokens: before,
                    run,
                    time,
                    reward,
                }) = pending.pop_front()
                {
                    let choices = decider.candidates().iter();
                    transitions.push(Transition {
                        tokens: before,
                        run,
                        reward: reward as f32,
                        discount: config.discount(view.now - time) as f32,
                        next: tokens.clone(),
                        next_choices: choices.map(|&job| slots[job as usize]).collect(),
                    });
                }
            }
            pending.push_back(Pending {
                tokens,
                run,
                time: view.now,
                reward: 0.0,
            });
        }
        sim.events.clear();
        sim.submit(&plan);
        running = sim.running();
    }
    transitions
}

/// Value of a set of actions.
pub fn set_value(q: &[f32], slots: &[u32], credit: Credit) -> f32 {
    let sum: f32 = slots.iter().map(|&slot| q[slot as usize]).sum();
    match credit {
        Credit::Sum => sum,
        Credit::Mean => sum / slots.len().max(1) as f32,
    }
}

/// The target: what was gained, and the value of the best set that comes next.
pub fn target(transition: &Transition, fast: &[f32], slow: &[f32], config: &DqnConfig) -> f32 {
    let mut best = transition.next_choices.clone();
    let by = if config.double { fast } else { slow };
    best.sort_by(|&a, &b| by[b as usize].total_cmp(&by[a as usize]));
    best.truncate(transition.next.counts[0] as usize);
    transition.reward + transition.discount * set_value(slow, &best, config.credit)
}

/// The targets of a batch.
pub fn targets(learner: &Learner, picked: &[&Transition], config: &DqnConfig) -> Vec<f32> {
    let next: Vec<&Tokens> = picked.iter().map(|t| &t.next).collect();
    let fast = learner.q(&learner.weights, &next);
    let slow = learner.q(&learner.slow, &next);
    (0..picked.len())
        .map(|i| target(picked[i], &fast[i], &slow[i], config))
        .collect()
}

/// Added to every error before it becomes a priority: nothing is never drawn.
pub const LEAST_ERROR: f32 = 1e-3;

/// Squared or Huber error against the target.
pub fn loss(
    transition: &Transition,
    target: f32,
    q: &[f32],
    dq: &mut [f32],
    config: &DqnConfig,
) -> f32 {
    if transition.run.is_empty() {
        return 0.0;
    }
    let error = set_value(q, &transition.run, config.credit) - target;
    let share = match config.credit {
        Credit::Sum => 1.0,
        Credit::Mean => 1.0 / transition.run.len() as f32,
    };
    let (loss, slope) = huber(error, config.huber);
    for &slot in &transition.run {
        dq[slot as usize] += share * slope;
    }
    loss
}

/// Half the square, and a line beyond `edge` (0: never); with its slope.
pub fn huber(error: f32, edge: f32) -> (f32, f32) {
    if edge <= 0.0 || error.abs() <= edge {
        (0.5 * error * error, error)
    } else {
        (edge * (error.abs() - 0.5 * edge), edge * error.signum())
    }
}

#[cfg(test)]
mod tests;
