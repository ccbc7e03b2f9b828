//! Behavioural cloning: learn which job a teacher runs, by cross-entropy over the
//! tokens. A warm start, or a student of any policy of the simulator.

use super::batch::Tokens;
use super::env::TrainingMachine;
use crate::policy::{Blend, Job, Situation, TokenSet};
use crate::sim::engine::{Knowledge, Plan, ReadyJob, Record, Sim, View};
use crate::sim::metrics::Metrics;
use crate::sim::oracle;
use crate::sim::policies::{self, Policy};
use crate::sim::rng::{child_seed, Rng};
use crate::sim::situation::Situations;
use crate::sim::time::Ns;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CloneConfig {
    /// A policy of the simulator; `best`: on every machine the one that meets
    /// the most deadlines there; `oracle`: on one core where late jobs are aborted
    /// the one that knows the future, elsewhere as `best`; or `rule`, see [`Rules`].
    pub teacher: String,
    /// Share of the contested decisions that are kept, and of those on machines
    /// that are not overloaded. More of the latter make responses shorter at full
    /// compliance and cost deadlines in overload without the shield.
    pub kept: f64,
    pub kept_calm: f64,
    /// Share of the machines that the student drives while the rule teaches.
    pub student_drives: f64,
    pub rules: Rules,
}

impl Default for CloneConfig {
    fn default() -> CloneConfig {
        CloneConfig {
            teacher: RULE.into(),
            kept: 0.5,
            kept_calm: 0.45,
            student_drives: 0.5,
            rules: Rules::default(),
        }
    }
}

impl CloneConfig {
    pub fn check(&self) -> Result<(), String> {
        let share = |x: f64| (0.0..=1.0).contains(&x);
        if ![self.kept, self.kept_calm, self.student_drives]
            .into_iter()
            .all(share)
        {
            return Err("kept, kept_calm and student_drives must be within 0 and 1".into());
        }
        if !(self.rules.sharpness > 0.0 && self.rules.sharpness <= 100.0) {
            return Err("sharpness must be above 0 and at most 100".into());
        }
        Ok(())
    }
}

pub const BEST: &str = "best";
pub const RULE: &str = "rule";
/// Knows the future, where that can be computed; else as `best`.
pub const ORACLE: &str = "oracle";
/// Jobs in one busy stretch that its choice may take.
const ORACLE_LIMIT: usize = 120;

/// What is best under the shield, by the kind of machine: how much slack counts
/// beside work, and how much doubt. Found by trying blends from SRPT to least laxity.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rules {
    /// One core that is not overloaded: close to SRPT, for the response.
    pub calm: f32,
    /// One core in overload: close to EDF.
    pub overloaded: f32,
    /// One core, execution times hidden.
    pub hidden: f32,
    pub doubt: f32,
    /// Several cores: close to least laxity.
    pub many_cores: f32,
    /// How much surer the rule is of a job with half the urgency time: 2^this
    /// times.
    pub sharpness: f32,
}

impl Default for Rules {
    fn default() -> Rules {
        Rules {
            calm: 0.0,
            overloaded: 0.75,
            hidden: 0.7,
            doubt: 1.0,
            many_cores: 30.0,
            sharpness: 6.0,
        }
    }
}

impl Rules {
    pub fn blend(&self, machine: &TrainingMachine) -> Blend {
        let set = &machine.set;
        let hidden = machine.options.knowledge == Knowledge::History;
        let slack = if set.cores > 1 {
            self.many_cores
        } else if hidden {
            self.hidden
        } else if machine.is_overloaded() {
            self.overloaded
        } else {
            self.calm
        };
        Blend {
            slack,
            doubt: if hidden { self.doubt } else { 0.0 },
        }
    }
}

/// The policies that `best` chooses from.
const MASTERS: [&str; 7] = [
    "srpt-shield",
    "mh",
    "mh-llf",
    "edf-drop",
    "llf-drop",
    "srpt",
    "rm",
];
/// So much less compliance is forgiven for a shorter response.
const EVEN: f64 = 2e-4;

/// The teacher of this name for a machine.
pub fn teacher(machine: &TrainingMachine, name: &str) -> Box<dyn Policy> {
    let master = |name: &str| (policies::find(name).expect("a policy of ours").make)();
    let set = &machine.set;
    if name == ORACLE {
        if let Some(jobs) = oracle::chosen(set, machine.options.semantics, ORACLE_LIMIT) {
            return Box::new(Oracle::new(set.tasks.len(), &jobs));
        }
    } else if name != BEST {
        return master(name);
    }
    let mut best: Option<(&str, Metrics)> = None;
    for name in MASTERS {
        let mut sim = Sim::new(set, set.cores, machine.options, Record::default());
        sim.run(master(name).as_mut());
        let metrics = Metrics::of(&sim.tally, set.cores, set.horizon_ns);
        let better = best.as_ref().is_none_or(|(_, best)| {
            let ahead = metrics.compliance - best.compliance;
            ahead > EVEN || ahead > -EVEN && metrics.response_ms < best.response_ms
        });
        if better {
            best = Some((name, metrics));
        }
    }
    master(best.map_or(MASTERS[0], |(name, _)| name))
}

/// Runs the jobs of a best choice in order of deadline, and others where these
/// leave the core idle.
struct Oracle {
    /// By task: deadlines of the jobs to do.
    chosen: Vec<HashSet<Ns>>,
}

impl Oracle {
    fn new(tasks: usize, jobs: &[oracle::Job]) -> Oracle {
        let mut chosen = vec![HashSet::new(); tasks];
        for job in jobs {
            chosen[job.task].insert(job.deadline);
        }
        Oracle { chosen }
    }
}

impl Policy for Oracle {
    fn decide(&mut self, view: &View, plan: &mut Plan) {
        let left_out = |job: &ReadyJob| !self.chosen[job.task as usize].contains(&job.deadline);
        let best = view
            .jobs
            .iter()
            .min_by_key(|job| (left_out(job), job.deadline, job.task));
        if let Some(job) = best {
            plan.run(job.task);
        }
    }
}

/// A decision, and what share of the choice falls to each token.
#[derive(Clone, Debug, PartialEq)]
pub struct Lesson {
    pub tokens: Tokens,
    pub wanted: Vec<f32>,
}

/// One run of a machine under a policy that teaches by what it does.
pub fn watch(
    machine: &TrainingMachine,
    teacher: &mut dyn Policy,
    kept: f64,
    seed: u64,
    lessons: &mut Vec<Lesson>,
) {
    observe(machine, teacher, kept, seed, |view, plan, _, tokens| {
        let mut wanted = vec![0.0; tokens.distinct()];
        for &(task, _) in plan.entries() {
            if let Some(job) = view.jobs.iter().position(|job| job.task == task) {
                wanted[tokens.slots()[job] as usize] += 1.0;
            }
        }
        lessons.extend(Lesson::of(tokens, view.cores, wanted));
    });
}

/// One run of a machine under any policy, every decision judged by the rule.
pub fn judge(
    machine: &TrainingMachine,
    driver: &mut dyn Policy,
    config: &CloneConfig,
    seed: u64,
    lessons: &mut Vec<Lesson>,
) {
    let blend = config.rules.blend(machine);
    let kept = match machine.is_overloaded() {
        true => config.kept,
        false => config.kept_calm,
    };
    let sharpness = config.rules.sharpness;
    observe(machine, driver, kept, seed, |view, _, situation, tokens| {
        let time = |job: &Job| (-blend.urgency(job, situation.now_ns)).max(0.0);
        let least = situation
            .jobs
            .iter()
            .map(time)
            .fold(f32::INFINITY, f32::min);
        let mut wanted = vec![0.0; tokens.distinct()];
        for (job, &slot) in situation.jobs.iter().zip(tokens.slots()) {
            // Below the resolution all are alike.
            let ratio = (least + RESOLUTION) / (time(job) + RESOLUTION);
            wanted[slot as usize] += ratio.powf(sharpness);
        }
        lessons.extend(Lesson::of(tokens, view.cores, wanted));
    });
}

/// 0.1 ms.
const RESOLUTION: f32 = 1e5;

impl Lesson {
    fn of(tokens: &TokenSet, cores: usize, mut wanted: Vec<f32>) -> Option<Lesson> {
        let total: f32 = wanted.iter().sum();
        wanted.iter_mut().for_each(|share| *share /= total);
        (total > 0.0).then(|| Lesson {
            tokens: Tokens::of(tokens, cores),
            wanted,
        })
    }
}

/// Runs the machine and shows some of the contested decisions.
pub(super) fn observe(
    machine: &TrainingMachine,
    driver: &mut dyn Policy,
    kept: f64,
    seed: u64,
    mut show: impl FnMut(&View, &Plan, &Situation, &TokenSet),
) {
    let set = &machine.set;
    let mut rng = Rng::new(seed);
    let mut sim = Sim::new(set, set.cores, machine.options, Record::default());
    let mut situations = Situations::new();
    situations.start(set);
    driver.start(set, set.cores);
    let tokenizer = &machine.policy.tokenizer;
    // What the load is taught to mean must not be missed where nobody knows it.
    let load_unknown = Rng::new(child_seed(seed, 9)).chance(machine.load_unknown);
    let mut plan = Plan::default();
    let mut token_set = TokenSet::default();
    while sim.advance() {
        let view = sim.view();
        plan.clear();
        driver.decide(&view, &mut plan);
        if view.jobs.len() > set.cores && rng.chance(kept) {
            let situation = situations.of(&view);
            match load_unknown {
                true => tokenizer.tokenize(situation.jobs, situation.now_ns, &mut token_set),
                false => tokenizer.tokenize_situation(&situation, &mut token_set),
            }
            show(&view, &plan, &situation, &token_set);
        }
        sim.submit(&plan);
    }
}

/// Cross-entropy between the job that the teacher ran and a softmax over all jobs.
pub fn loss(lesson: &Lesson, q: &[f32], dq: &mut [f32]) -> f32 {
    // Idle is no job.
    let logit = |slot: usize| q[slot] + (lesson.tokens.counts[slot] as f32).ln();
    let most = (1..q.len()).map(logit).fold(f32::NEG_INFINITY, f32::max);
    let sum: f32 = (1..q.len()).map(|slot| (logit(slot) - most).exp()).sum();
    let mut loss = 0.0;
    for (slot, slope) in dq.iter_mut().enumerate().skip(1) {
        let probability = (logit(slot) - most).exp() / sum;
        let wanted = lesson.wanted[slot];
        *slope = probability - wanted;
        loss -= wanted * (probability.max(1e-12) / lesson.tokens.counts[slot] as f32).ln();
    }
    loss
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Tokenizer;
    use crate::sim::policies::{Decided, Edf};
    use crate::sim::time::SECOND;
    use crate::train::env::Curriculum;

    #[test]
    fn the_gradient_of_the_loss_is_that_of_finite_differences() {
        let lesson = Lesson {
            tokens: Tokens {
                indices: vec![0, 3, 5, 9],
                counts: vec![2, 1, 3, 2],
            },
            wanted: vec![0.0, 0.5, 0.0, 0.5],
        };
        let q = [0.3, -0.2, 0.8, 0.1];
        let mut dq = [0.0; 4];
        loss(&lesson, &q, &mut dq);
        let mut unused = [0.0; 4];
        for slot in 0..4 {
            let moved = |by: f32, unused: &mut [f32; 4]| {
                let mut q = q;
                q[slot] += by;
                loss(&lesson, &q, unused)
            };
            let numeric = (moved(1e-2, &mut unused) - moved(-1e-2, &mut unused)) / 2e-2;
            assert!((numeric - dq[slot]).abs() < 1e-3, "{slot}");
        }
    }

    #[test]
    fn every_lesson_says_whom_the_teacher_ran() {
        let curriculum = Curriculum::default();
        let mut lessons = Vec::new();
        for seed in 0..10 {
            let machine = curriculum.draw(&Tokenizer::default(), SECOND, seed);
            watch(&machine, &mut Edf, 1.0, seed, &mut lessons);
        }
        assert!(lessons.len() > 100);
        for lesson in &lessons {
            assert!((lesson.wanted.iter().sum::<f32>() - 1.0).abs() < 1e-5);
            assert_eq!(lesson.wanted[0], 0.0, "nobody idles with work waiting");
            let cores = lesson.tokens.counts[0] as f32;
            let runnable = lesson.wanted.iter().zip(&lesson.tokens.counts);
            assert!(runnable
                .skip(1)
                .all(|(share, &n)| share * cores <= n as f32 + 1e-3));
        }
    }

    /// On one overloaded core it meets exactly as many as the oracle counts.
    #[test]
    fn the_oracle_teaches_as_many_deadlines_as_can_be_met() {
        let curriculum = Curriculum {
            many_cores: 0.0,
            hidden: 0.0,
            abort: 1.0,
            delayed: 0.0,
            load: (1.2, 1.6),
            ..Curriculum::default()
        };
        let mut compared = 0;
        for seed in 0..12 {
            let machine = curriculum.draw(&Tokenizer::default(), SECOND / 2, seed);
            let set = &machine.set;
            let Some(best) = oracle::best(set, machine.options.semantics) else {
                continue;
            };
            if oracle::chosen(set, machine.options.semantics, ORACLE_LIMIT).is_none() {
                continue;
            }
            let mut sim = Sim::new(set, 1, machine.options, Record::default());
            sim.run(teacher(&machine, ORACLE).as_mut());
            let met = Metrics::of(&sim.tally, 1, set.horizon_ns).compliance;
            assert!((met - best.compliance()).abs() < 1e-9, "{seed}: {met}");
            compared += 1;
        }
        assert!(compared >= 5, "{compared}");
    }

    #[test]
    fn the_rule_wants_most_whom_it_would_run() {
        let curriculum = Curriculum {
            many_cores: 0.0,
            bare: 1.0,
            ..Curriculum::default()
        };
        let config = CloneConfig {
            kept: 1.0,
            kept_calm: 1.0,
            ..CloneConfig::default()
        };
        let (mut done, mut wanted) = (Vec::new(), Vec::new());
        for seed in 0..10 {
            let machine = curriculum.draw(&Tokenizer::default(), SECOND, seed);
            let driver = || Decided::new(machine.policy.clone(), config.rules.blend(&machine));
            watch(&machine, &mut driver(), 1.0, seed, &mut done);
            judge(&machine, &mut driver(), &config, seed, &mut wanted);
        }
        assert!(done.len() > 100 && done.len() == wanted.len());
        let agreed = done.iter().zip(&wanted).filter(|(done, wanted)| {
            let of_one = |(share, &n): (&f32, &u32)| share / n as f32;
            let each = wanted.wanted.iter().zip(&wanted.tokens.counts).map(of_one);
            let most = each.enumerate().max_by(|a, b| a.1.total_cmp(&b.1));
            most.is_some_and(|(slot, _)| done.wanted[slot] == 1.0)
        });
        // Jobs that share a token may differ in what the rule makes of them.
        let share = agreed.count() as f32 / done.len() as f32;
        assert!(share > 0.95, "{share}");
    }
}
