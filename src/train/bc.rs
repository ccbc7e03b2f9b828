//! Behavioural cloning: learn whom a teacher runs, by cross-entropy over the
//! tokens. A warm start, or a student of any policy of the simulator.

use super::batch::Tokens;
use super::driver::Glass;
use super::env::Machine;
use crate::policy::TokenSet;
use crate::sim::engine::{Plan, Record, Sim};
use crate::sim::metrics::Metrics;
use crate::sim::policies::{self, Policy};
use crate::sim::rng::Rng;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CloneConfig {
    /// A policy of the simulator, or `best`: on every machine the one that
    /// meets the most deadlines there.
    pub teacher: String,
    /// Share of the contested decisions that are kept.
    pub kept: f64,
}

impl Default for CloneConfig {
    fn default() -> CloneConfig {
        CloneConfig {
            teacher: BEST.into(),
            kept: 0.5,
        }
    }
}

pub const BEST: &str = "best";

/// Who may be the best.
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
pub fn teacher(machine: &Machine, name: &str) -> Box<dyn Policy> {
    let master = |name: &str| (policies::find(name).expect("a policy of ours").make)();
    if name != BEST {
        return master(name);
    }
    let set = &machine.set;
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

/// A decision, and how many of the jobs of each token the teacher ran.
#[derive(Clone, Debug, PartialEq)]
pub struct Lesson {
    pub tokens: Tokens,
    pub run: Vec<u32>,
}

/// One run of a machine under the teacher.
pub fn watch(
    machine: &Machine,
    teacher: &mut dyn Policy,
    kept: f64,
    seed: u64,
    lessons: &mut Vec<Lesson>,
) {
    let set = &machine.set;
    let mut rng = Rng::new(seed);
    let mut sim = Sim::new(set, set.cores, machine.options, Record::default());
    let mut glass = Glass::default();
    glass.start(set);
    teacher.start(set, set.cores);
    let tokenizer = &machine.policy.tokenizer;
    let mut plan = Plan::default();
    let mut token_set = TokenSet::default();
    while sim.advance() {
        let view = sim.view();
        plan.clear();
        teacher.decide(&view, &mut plan);
        if view.jobs.len() > set.cores && rng.chance(kept) {
            let situation = glass.look(&view);
            tokenizer.tokenize(situation.jobs, situation.now_ns, &mut token_set);
            let mut run = vec![0; token_set.distinct()];
            for &(task, _) in plan.entries() {
                let job = view.jobs.iter().position(|job| job.task == task);
                if let Some(job) = job {
                    run[token_set.slots()[job] as usize] += 1;
                }
            }
            lessons.push(Lesson {
                tokens: Tokens::of(&token_set, set.cores),
                run,
            });
        }
        sim.submit(&plan);
    }
}

/// Cross-entropy between whom the teacher ran and a softmax over all jobs.
pub fn loss(lesson: &Lesson, q: &[f32], dq: &mut [f32]) -> f32 {
    let total: u32 = lesson.run.iter().sum();
    if total == 0 {
        return 0.0;
    }
    // Idle is no job.
    let logit = |slot: usize| q[slot] + (lesson.tokens.counts[slot] as f32).ln();
    let most = (1..q.len()).map(logit).fold(f32::NEG_INFINITY, f32::max);
    let sum: f32 = (1..q.len()).map(|slot| (logit(slot) - most).exp()).sum();
    let mut loss = 0.0;
    for (slot, slope) in dq.iter_mut().enumerate().skip(1) {
        let probability = (logit(slot) - most).exp() / sum;
        let wanted = lesson.run[slot] as f32 / total as f32;
        *slope = probability - wanted;
        loss -= wanted * (probability.max(1e-12) / lesson.tokens.counts[slot] as f32).ln();
    }
    loss
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Tokenizer;
    use crate::sim::policies::Edf;
    use crate::sim::time::SECOND;
    use crate::train::env::Curriculum;

    #[test]
    fn the_gradient_of_the_loss_is_that_of_finite_differences() {
        let lesson = Lesson {
            tokens: Tokens {
                indices: vec![0, 3, 5, 9],
                counts: vec![2, 1, 3, 2],
            },
            run: vec![0, 1, 0, 1],
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
            let run: u32 = lesson.run.iter().sum();
            assert_eq!(run, lesson.tokens.counts[0], "as many as there are cores");
            let runnable = lesson.run.iter().zip(&lesson.tokens.counts);
            assert!(runnable.skip(1).all(|(run, count)| run <= count));
        }
    }
}
