//! Rollouts: what each choice is worth, tried out.
//!
//! At a decision the machine is copied once per job that could run; that job
//! is made to run, the present policy goes on from there, and what is met and
//! missed is counted. The copies meet the same releases and execution times,
//! so the *differences* between choices carry little noise, and learning them
//! is one step of policy improvement.

use super::base::Base;
use super::batch::Tokens;
use super::dqn::huber;
use super::env::TrainingMachine;
use crate::policy::{Context, Decider, Scorer};
use crate::sim::engine::{Event, Plan, Record, Sim};
use crate::sim::policies::{ask_again, carry_out, run_all};
use crate::sim::rng::Rng;
use crate::sim::situation::Situations;
use crate::sim::task::{Semantics, Task};
use crate::sim::time::{Ns, MS};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RolloutConfig {
    /// The policy of the first rounds; the network takes over after them.
    pub base: Base,
    pub base_rounds: u32,
    /// How far a rollout looks; twice as far where late jobs go on, since a
    /// backlog stays.
    pub horizon_ms: f64,
    /// What comes this much later counts 1/e of what comes now; twice as long
    /// where late jobs go on.
    pub fade_ms: f64,
    /// A rollout takes about so many decisions at most: on a machine that
    /// decides often it looks less far.
    pub decisions: f64,
    /// Decisions that are tried out per machine, about.
    pub tried: f64,
    /// Choices tried at each.
    pub choices: usize,
    /// A job done at once instead of at its deadline is worth this share of a
    /// deadline: response time breaks ties.
    pub early: f64,
    /// A critical job is worth this many ordinary ones.
    pub critical: f64,
    /// Share of the decisions taken at random, to see more of the world.
    pub wander: f64,
    /// Learn odds: a choice worth this much more is e times as likely, which
    /// goes on where cloning left off. 0: learn the worth itself.
    pub temper: f32,
}

impl Default for RolloutConfig {
    fn default() -> RolloutConfig {
        RolloutConfig {
            base: Base::Any,
            base_rounds: 100,
            horizon_ms: 600.0,
            fade_ms: 300.0,
            decisions: 150.0,
            tried: 16.0,
            choices: 5,
            early: 0.1,
            critical: 1.5,
            wander: 0.05,
            temper: 0.1,
        }
    }
}

impl RolloutConfig {
    pub fn check(&self) -> Result<(), String> {
        let positive = [
            ("horizon_ms", self.horizon_ms),
            ("fade_ms", self.fade_ms),
            ("decisions", self.decisions),
            ("tried", self.tried),
            ("critical", self.critical),
        ];
        for (name, value) in positive {
            if !(value > 0.0 && value.is_finite()) {
                return Err(format!("{name} is {value}; it must be above 0"));
            }
        }
        if self.choices < 2 {
            return Err(format!(
                "choices is {}; two are needed to compare",
                self.choices
            ));
        }
        if !(0.0..=1.0).contains(&self.wander) || !(0.0..1.0).contains(&self.early) {
            return Err("wander and early must be within 0 and 1".into());
        }
        if !(0.0..=10.0).contains(&self.temper) {
            return Err(format!(
                "temper is {}; it must be within 0 and 10",
                self.temper
            ));
        }
        Ok(())
    }
}

/// A decision and what its choices turned out to be worth.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    pub tokens: Tokens,
    /// Slots of the tokens of the choices, and their worth; tokens that several
    /// choices share have the mean.
    pub worth: Vec<(u32, f32)>,
}

/// Scores of another, but this job first.
struct Forced<'a, S: ?Sized> {
    inner: &'a mut S,
    job: usize,
}

impl<S: Scorer + ?Sized> Scorer for Forced<'_, S> {
    fn score(&mut self, context: &Context<'_>, scores: &mut [f32]) {
        self.inner.score(context, scores);
        scores[1 + self.job] = f32::MAX;
    }
}

/// One simulated machine under a decider.
#[derive(Clone)]
struct Run<'a> {
    sim: Sim<'a>,
    decider: Decider,
    situations: Situations,
}

impl<'a> Run<'a> {
    fn new(machine: &'a TrainingMachine) -> Run<'a> {
        let record = Record {
            events: true,
            ..Record::default()
        };
        let set = &machine.set;
        let mut situations = Situations::new();
        situations.start(set);
        Run {
            sim: Sim::new(set, set.cores, machine.options, record),
            decider: Decider::new(machine.policy.clone()),
            situations,
        }
    }

    /// Decides and goes on; true if the job that was to be forced runs now.
    fn step<S: Scorer + ?Sized>(
        &mut self,
        scorer: &mut S,
        forced: Option<usize>,
        plan: &mut Plan,
    ) -> bool {
        self.sim.events.clear();
        plan.clear();
        let view = self.sim.view();
        if run_all(&view, plan) {
            self.sim.submit(plan);
            return false;
        }
        let situation = self.situations.of(&view);
        match forced {
            None => self.decider.decide(scorer, &situation),
            Some(job) => {
                let mut scorer = Forced { inner: scorer, job };
                self.decider.decide(&mut scorer, &situation)
            }
        };
        self.situations.note(&self.decider);
        let decision = self.decider.decision();
        carry_out(decision, &view, plan);
        ask_again(decision, &view, plan);
        let runs = forced.is_some_and(|job| decision.assignment.cpu_of(job).is_some());
        self.sim.submit(plan);
        runs
    }
}

/// One run of a machine under the policy of `scorer`, with what was tried out on the way.
pub fn explore<S: Scorer + ?Sized>(
    machine: &TrainingMachine,
    scorer: &mut S,
    config: &RolloutConfig,
    seed: u64,
    samples: &mut Vec<Sample>,
) {
    let set = &machine.set;
    let pace = pace(machine, scorer);
    let outlook = Outlook::new(machine, config, pace);
    let chance = config.tried / pace.contested.max(1.0);
    let mut rng = Rng::new(seed);
    let mut run = Run::new(machine);
    let mut plan = Plan::default();
    while run.sim.advance() {
        let jobs = run.sim.view().jobs.len();
        if jobs <= set.cores {
            run.step(scorer, None, &mut plan);
            continue;
        }
        let mut forced = None;
        if rng.chance(chance) {
            forced = try_out(&run, machine, scorer, &outlook, &mut rng, samples);
        }
        if rng.chance(config.wander) {
            forced = Some(rng.below(jobs));
        }
        run.step(scorer, forced, &mut plan);
    }
}

/// How often a machine decides.
#[derive(Clone, Copy, Debug)]
struct Pace {
    /// Decisions at which a job had to wait, in all.
    contested: f64,
    per_ns: f64,
}

fn pace<S: Scorer + ?Sized>(machine: &TrainingMachine, scorer: &mut S) -> Pace {
    let mut run = Run::new(machine);
    let mut plan = Plan::default();
    let (mut contested, mut all) = (0.0, 0.0);
    while run.sim.advance() {
        all += 1.0;
        if run.sim.view().jobs.len() > machine.set.cores {
            contested += 1.0;
        }
        run.step(scorer, None, &mut plan);
    }
    Pace {
        contested,
        per_ns: all / machine.set.horizon_ns as f64,
    }
}

/// How far rollouts look on a machine.
struct Outlook<'a> {
    config: &'a RolloutConfig,
    horizon_ns: Ns,
    fade_per_ns: f64,
}

impl Outlook<'_> {
    fn new<'a>(machine: &TrainingMachine, config: &'a RolloutConfig, pace: Pace) -> Outlook<'a> {
        let stretch = match machine.options.semantics {
            Semantics::Abort => 1.0,
            Semantics::Continue => 2.0,
        };
        let wanted = stretch * config.horizon_ms * MS as f64;
        let bearable = stretch * config.decisions / pace.per_ns.max(1e-12);
        let horizon = wanted.min(bearable);
        Outlook {
            config,
            horizon_ns: horizon as Ns,
            fade_per_ns: 1.0 / (stretch * config.fade_ms * MS as f64),
        }
    }
}

/// Tries the choices of this moment; the best of them, if it matters.
fn try_out<S: Scorer + ?Sized>(
    now: &Run<'_>,
    machine: &TrainingMachine,
    scorer: &mut S,
    outlook: &Outlook<'_>,
    rng: &mut Rng,
    samples: &mut Vec<Sample>,
) -> Option<usize> {
    let jobs = now.sim.view().jobs.len();
    let mut order: Vec<usize> = (0..jobs).collect();
    for i in 0..jobs {
        order.swap(i, i + rng.below(jobs - i));
    }
    let mut plan = Plan::default();
    let mut tokens = None;
    let mut worth: Vec<(u32, f32, usize)> = Vec::new();
    for job in order {
        let mut run = now.clone();
        if !run.step(scorer, Some(job), &mut plan) {
            continue;
        }
        // Nothing was decided: all jobs may run anyway.
        if run.decider.scores().len() != 1 + jobs || run.decider.tokens().slots().len() != jobs {
            return None;
        }
        let slot = run.decider.tokens().slots()[job];
        tokens.get_or_insert_with(|| Tokens::of(run.decider.tokens(), machine.set.cores));
        worth.push((slot, 0.0, job));
        let last = worth.len() - 1;
        worth[last].1 = value(run, machine, scorer, outlook);
        if worth.len() == outlook.config.choices {
            break;
        }
    }
    if worth.len() < 2 {
        return None;
    }
    let best = worth.iter().max_by(|a, b| a.1.total_cmp(&b.1))?.2;
    let mut by_slot: Vec<(u32, f32)> = Vec::new();
    worth.sort_by_key(|choice| choice.0);
    for group in worth.chunk_by(|a, b| a.0 == b.0) {
        let mean = group.iter().map(|choice| choice.1).sum::<f32>() / group.len() as f32;
        by_slot.push((group[0].0, mean));
    }
    if by_slot.len() >= 2 {
        samples.push(Sample {
            tokens: tokens?,
            worth: by_slot,
        });
    }
    Some(best)
}

/// What is met and missed from here on under the policy.
fn value<S: Scorer + ?Sized>(
    mut run: Run<'_>,
    machine: &TrainingMachine,
    scorer: &mut S,
    outlook: &Outlook<'_>,
) -> f32 {
    let start = run.sim.now();
    let end = start + outlook.horizon_ns;
    let tasks = &machine.set.tasks;
    let mut plan = Plan::default();
    let mut sum = 0.0;
    loop {
        let on = run.sim.advance();
        for event in &run.sim.events {
            let (time, gain) = gain(event, tasks, outlook.config);
            sum += gain * (-((time - start) as f64) * outlook.fade_per_ns).exp();
        }
        if !on || run.sim.now() >= end {
            return sum as f32;
        }
        run.step(scorer, None, &mut plan);
    }
}

/// Half for what is met and minus half for what is missed: a deadline is worth one.
fn gain(event: &Event, tasks: &[Task], config: &RolloutConfig) -> (Ns, f64) {
    let weight = |task: u32| match tasks[task as usize].criticality {
        0 => 1.0,
        _ => config.critical,
    };
    match *event {
        Event::Completed {
            task,
            time,
            release,
            deadline,
            ..
        } => {
            let window = (deadline - release).max(1) as f64;
            let early = deadline.saturating_sub(time) as f64 / window;
            let met = if time <= deadline { 0.5 } else { 0.0 };
            (time, weight(task) * (met + config.early * early))
        }
        Event::Missed { task, time } => (time, -0.5 * weight(task)),
        Event::Migrated { time, .. } => (time, 0.0),
    }
}

/// Cross-entropy between the odds that the worth of the choices gives them and
/// those of their scores.
fn odds_loss(sample: &Sample, temper: f32, q: &[f32], dq: &mut [f32]) -> f32 {
    let most =
        |of: &dyn Fn(&(u32, f32)) -> f32| sample.worth.iter().map(of).fold(f32::MIN, f32::max);
    let score = |choice: &(u32, f32)| q[choice.0 as usize];
    let worth = |choice: &(u32, f32)| choice.1 / temper;
    let (top_score, top_worth) = (most(&score), most(&worth));
    let likely = |choice: &(u32, f32)| (score(choice) - top_score).exp();
    let wanted = |choice: &(u32, f32)| (worth(choice) - top_worth).exp();
    let all_likely: f32 = sample.worth.iter().map(likely).sum();
    let all_wanted: f32 = sample.worth.iter().map(wanted).sum();
    let mut loss = 0.0;
    for choice in &sample.worth {
        let (is, should) = (likely(choice) / all_likely, wanted(choice) / all_wanted);
        dq[choice.0 as usize] = is - should;
        loss -= should * is.max(1e-12).ln();
    }
    loss
}

/// What the scores of a sample's choices are off by.
pub fn loss(sample: &Sample, temper: f32, q: &[f32], dq: &mut [f32]) -> f32 {
    match temper > 0.0 {
        true => odds_loss(sample, temper, q, dq),
        false => worth_loss(sample, q, dq),
    }
}

/// Huber error of the differences between choices: what all of them have in
/// common is no choice's merit.
fn worth_loss(sample: &Sample, q: &[f32], dq: &mut [f32]) -> f32 {
    let share = 1.0 / sample.worth.len() as f32;
    let (mut q_mean, mut worth_mean) = (0.0, 0.0);
    for &(slot, worth) in &sample.worth {
        q_mean += share * q[slot as usize];
        worth_mean += share * worth;
    }
    let (mut sum, mut slope_mean) = (0.0, 0.0);
    for &(slot, worth) in &sample.worth {
        let error = (q[slot as usize] - q_mean) - (worth - worth_mean);
        let (loss, slope) = huber(error, 1.0);
        sum += loss;
        dq[slot as usize] = slope;
        slope_mean += share * slope;
    }
    for &(slot, _) in &sample.worth {
        dq[slot as usize] -= slope_mean;
    }
    sum
}

#[cfg(test)]
mod tests;
