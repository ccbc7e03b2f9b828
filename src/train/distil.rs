//! The network as a table of slack and work: what is left of it when the
//! context is averaged over.
//!
//! A Q means something only beside the others of its context, so every context
//! has an offset of its own: scores and offsets are fitted in turns, to least
//! squares. Jobs that nobody would run count little: the order among them does
//! not matter.

use super::bc::observe;
use super::env::Curriculum;
use crate::policy::network::{
    top_m_agreement, DistilledError, DistilledTable, Model, Native, Precision,
};
use crate::policy::{Token, Tokenizer};
use crate::sim::policies::Decided;
use crate::sim::rng::child_seed;
use crate::sim::time::SECOND;
use rayon::prelude::*;
use serde::Serialize;

/// Of the contested decisions of a machine.
const KEPT: f64 = 0.2;
/// Turns of fitting: offsets and scores pass on slowly what they learn of each other.
const TURNS: usize = 200;
/// How far below the best a job counts a third as much, and the least it counts.
const REACH: f32 = 2.0;
const LEAST: f32 = 0.01;

/// A decision as the network saw it.
struct Seen {
    cores: usize,
    /// One per job.
    tokens: Vec<Token>,
    q: Vec<f32>,
    deadlines: Vec<i64>,
}

/// How a table does beside its network, on decisions it was not fitted to.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Agreement {
    pub contexts: usize,
    /// Share of the decisions whose first pick is the same.
    pub first: f64,
    /// Share of the jobs on the CPUs that both would run.
    pub top_m: f64,
    /// The same of plain EDF, for comparison.
    pub edf_first: f64,
    pub edf_top_m: f64,
}

/// Fits the table on this many machines and judges it on as many others.
pub fn distil(
    model: &Model,
    machines: usize,
    seed: u64,
) -> Result<(DistilledTable, Agreement), DistilledError> {
    let seen = contexts(model, machines, child_seed(seed, 0));
    let scores = fit(model.tokenizer(), &seen);
    let table = DistilledTable::new(model.tokenizer(), &scores, seen.len(), seed)?;
    let agreement = agreement(model, &table, machines, seed);
    Ok((table, agreement))
}

/// On machines that fitting with this seed did not see.
pub fn agreement(model: &Model, table: &DistilledTable, machines: usize, seed: u64) -> Agreement {
    judge(table, &contexts(model, machines, child_seed(seed, 1)))
}

fn contexts(model: &Model, machines: usize, seed: u64) -> Vec<Seen> {
    let curriculum = Curriculum {
        fit: 0.0,
        bare: 0.0,
        ..Curriculum::default()
    };
    let native = Native::new(model.weights(), Precision::Float);
    let parts: Vec<Vec<Seen>> = (0..machines)
        .into_par_iter()
        .with_max_len(1)
        .map(|index| {
            let seed = child_seed(seed, index as u64);
            let machine = curriculum.draw(model.tokenizer(), 2 * SECOND, seed);
            let mut driver = Decided::new(machine.policy.clone(), native.clone());
            let mut network = native.clone();
            let mut seen = Vec::new();
            observe(
                &machine,
                &mut driver,
                KEPT,
                seed,
                |view, _, situation, set| {
                    let q = network.forward(set, view.cores);
                    let slots = set.slots().iter();
                    seen.push(Seen {
                        cores: view.cores,
                        tokens: slots
                            .clone()
                            .map(|&slot| set.tokens()[slot as usize])
                            .collect(),
                        q: slots.map(|&slot| q[slot as usize]).collect(),
                        deadlines: situation.jobs.iter().map(|job| job.deadline_ns).collect(),
                    });
                },
            );
            seen
        })
        .collect();
    parts.into_iter().flatten().collect()
}

fn cell(token: Token, works: usize) -> Option<usize> {
    match token {
        Token::Idle { .. } => None,
        Token::Job { slack, work, .. } => Some(usize::from(slack) * works + usize::from(work)),
    }
}

fn fit(tokenizer: &Tokenizer, seen: &[Seen]) -> Vec<f32> {
    let works = tokenizer.work().levels();
    let cells = tokenizer.slack_bins() * works;
    let weighted: Vec<Vec<(usize, f32, f32)>> = seen
        .iter()
        .map(|context| {
            let best = context.q.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let jobs = context.tokens.iter().zip(&context.q);
            jobs.filter_map(|(&token, &q)| {
                let weight = ((q - best) / REACH).exp().max(LEAST);
                Some((cell(token, works)?, q, weight))
            })
            .collect()
        })
        .collect();
    let mut scores = vec![0.0; cells];
    let mut known = vec![false; cells];
    for _ in 0..TURNS {
        let mut sums = vec![(0.0f64, 0.0f64); cells];
        for context in &weighted {
            let total: f32 = context.iter().map(|(_, _, weight)| weight).sum();
            let off = context
                .iter()
                .map(|(cell, q, weight)| weight * (q - scores[*cell]));
            let offset = off.sum::<f32>() / total;
            for &(cell, q, weight) in context {
                sums[cell].0 += f64::from(weight * (q - offset));
                sums[cell].1 += f64::from(weight);
            }
        }
        for (cell, (sum, weight)) in sums.into_iter().enumerate() {
            if weight > 0.0 {
                scores[cell] = (sum / weight) as f32;
                known[cell] = true;
            }
        }
    }
    fill(&mut scores, &mut known, works);
    scores
}

/// Pairs of bins that never occurred get the mean of their neighbours, from
/// the known ones outwards.
fn fill(scores: &mut [f32], known: &mut [bool], works: usize) {
    while known.contains(&true) && known.contains(&false) {
        let before = known.to_vec();
        for cell in (0..scores.len()).filter(|&cell| !before[cell]) {
            let (slack, work) = (cell / works, cell % works);
            let neighbours = [
                (slack > 0).then(|| cell - works),
                (cell + works < scores.len()).then(|| cell + works),
                (work > 0).then(|| cell - 1),
                (work + 1 < works).then(|| cell + 1),
            ];
            let near: Vec<f32> = neighbours
                .into_iter()
                .flatten()
                .filter(|&near| before[near])
                .map(|near| scores[near])
                .collect();
            if !near.is_empty() {
                scores[cell] = near.iter().sum::<f32>() / near.len() as f32;
                known[cell] = true;
            }
        }
    }
}

fn judge(table: &DistilledTable, seen: &[Seen]) -> Agreement {
    let mut sums = [0.0; 4];
    for context in seen {
        let scored = context
            .tokens
            .iter()
            .map(|&token| table.score(token).map_or(f32::NEG_INFINITY, f32::from));
        // Scores that are equal leave it to the deadline, as decisions do.
        let first = context.deadlines.iter().min().copied().unwrap_or(0);
        let late: Vec<f32> = context
            .deadlines
            .iter()
            .map(|d| -((d - first) as f32))
            .collect();
        let furthest = late.iter().copied().fold(1.0, |a: f32, b| a.max(-b));
        let table: Vec<f32> = scored
            .zip(&late)
            .map(|(score, late)| score + late / (2.0 * furthest))
            .collect();
        let m = context.cores;
        sums[0] += top_m_agreement(&context.q, &table, 1);
        sums[1] += top_m_agreement(&context.q, &table, m);
        sums[2] += top_m_agreement(&context.q, &late, 1);
        sums[3] += top_m_agreement(&context.q, &late, m);
    }
    let [first, top_m, edf_first, edf_top_m] = sums.map(|sum| sum / seen.len().max(1) as f64);
    Agreement {
        contexts: seen.len(),
        first,
        top_m,
        edf_first,
        edf_top_m,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(slack: u16, work: u8) -> Token {
        Token::Job {
            slack,
            work,
            class: 0,
            doubt: 0,
        }
    }

    /// Scores that do not depend on the context are found, whatever the offsets,
    /// and the pairs between them are filled.
    #[test]
    fn a_table_comes_back_as_it_was_and_the_gaps_are_filled() {
        let tokenizer = Tokenizer::default();
        let works = tokenizer.work().levels();
        let truth = |slack: u16, work: u8| -0.5 * f32::from(slack) - 0.2 * f32::from(work);
        let seen: Vec<Seen> = (0..400u16)
            .map(|i| {
                let tokens: Vec<Token> = (0..4)
                    .map(|j| token(2 * ((i * 7 + j * 5) % 9), ((i + j) % 5) as u8))
                    .collect();
                let q = tokens.iter().map(|token| match token {
                    Token::Job { slack, work, .. } => truth(*slack, *work) + f32::from(i % 13),
                    Token::Idle { .. } => unreachable!("only jobs"),
                });
                Seen {
                    cores: 1,
                    q: q.collect(),
                    deadlines: vec![0; tokens.len()],
                    tokens,
                }
            })
            .collect();
        let scores = fit(&tokenizer, &seen);
        let at = |slack: u16, work: u8| scores[usize::from(slack) * works + usize::from(work)];
        let off = truth(0, 0) - at(0, 0);
        for slack in (0..18).step_by(2) {
            for work in 0..5 {
                let error = at(slack, work) + off - truth(slack, work);
                assert!(error.abs() < 0.05, "{slack} {work}: {error}");
            }
        }
        assert!((at(3, 2) + off - truth(3, 2)).abs() < 0.3);
        assert!(scores.iter().all(|score| score.is_finite()));
        let table = DistilledTable::new(&tokenizer, &scores, seen.len(), 1).unwrap();
        assert_eq!(judge(&table, &seen).first, 1.0);
    }

    #[test]
    fn the_table_of_the_shipped_model_agrees_better_than_deadlines_alone() {
        let (table, agreement) = distil(&Model::shipped(), 24, 3).unwrap();
        assert_eq!(table.seed(), 3);
        assert!(agreement.contexts > 100, "{agreement:?}");
        assert!(agreement.first > agreement.edf_first, "{agreement:?}");
        assert!(agreement.top_m > agreement.edf_top_m, "{agreement:?}");
    }
}
