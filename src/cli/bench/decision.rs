//! One decision in three stages, with a clock between them.

use super::moments::{Moment, CPUS};
use crate::policy::mapping::{Mapper, Problem};
use crate::policy::network::{Native, Ort, OrtError};
use crate::policy::{Assignment, CpuMask, MappingConfig, SparsePlan, Token, TokenSet, Tokenizer};
use std::time::{Duration, Instant};

/// What turns tokens into scores.
pub enum Encoder {
    Native(Native),
    Ort(Ort),
    /// One row per job from here on, as in the paper.
    OrtDense(Ort),
    NativeDense(Native),
    /// Rows in order of deadline.
    NativeSparse(Native),
    OrtSparse(Ort),
}

#[derive(Debug, Clone, Copy, Default)]
pub struct Stages {
    pub tokenise: Duration,
    pub encode: Duration,
    pub map: Duration,
}

impl Stages {
    pub fn whole(&self) -> Duration {
        self.tokenise + self.encode + self.map
    }
}

/// A policy without its shield: tokens, network, mapping.
pub struct Decision {
    tokenizer: Tokenizer,
    encoder: Encoder,
    tokens: TokenSet,
    rows: Vec<Token>,
    ones: Vec<u32>,
    scores: Vec<f32>,
    candidates: Vec<u32>,
    permitted: Vec<CpuMask>,
    mapper: Mapper,
    assignment: Assignment,
    decided: usize,
    distinct: usize,
}

impl Decision {
    pub fn new(tokenizer: &Tokenizer, encoder: Encoder) -> Decision {
        Decision {
            tokenizer: tokenizer.clone(),
            encoder,
            tokens: TokenSet::default(),
            rows: Vec::new(),
            ones: Vec::new(),
            scores: Vec::new(),
            candidates: Vec::new(),
            permitted: Vec::new(),
            mapper: Mapper::new(MappingConfig::default()),
            assignment: Assignment::default(),
            decided: 0,
            distinct: 0,
        }
    }

    /// Idle's score and every job's, as the last decision had them.
    pub fn scores(&self) -> &[f32] {
        &self.scores
    }

    /// Distinct tokens, idle included, over all decisions so far.
    pub fn mean_distinct(&self) -> f64 {
        self.distinct as f64 / self.decided.max(1) as f64
    }

    pub fn decide(&mut self, moment: &Moment) -> Result<Stages, OrtError> {
        let jobs = &moment.jobs;
        let situation = moment.situation();
        let cpus = situation.cpus;
        // The shield's answer, were everybody safe: all jobs, by deadline.
        self.candidates.clear();
        self.candidates.extend(0..jobs.len() as u32);
        let by_deadline = |&job: &u32| jobs[job as usize].deadline_ns;
        self.candidates.sort_by_key(by_deadline);
        self.permitted.clear();
        self.permitted
            .extend(jobs.iter().map(|job| job.allowed.and(&cpus)));
        self.scores.resize(1 + jobs.len(), 0.0);

        let start = Instant::now();
        self.tokenizer
            .tokenize_situation(&situation, &mut self.tokens);
        let tokenised = Instant::now();
        self.encode(jobs.len())?;
        let encoded = Instant::now();
        self.assignment.reset(jobs.len(), &cpus);
        let problem = Problem {
            jobs,
            scores: &self.scores,
            candidates: &self.candidates,
            permitted: &self.permitted,
            may_idle: false,
        };
        self.mapper.map(&problem, &mut self.assignment);
        let mapped = Instant::now();
        self.decided += 1;
        self.distinct += self.tokens.distinct();
        Ok(Stages {
            tokenise: tokenised - start,
            encode: encoded - tokenised,
            map: mapped - encoded,
        })
    }

    fn encode(&mut self, jobs: usize) -> Result<(), OrtError> {
        let Decision {
            tokens,
            rows,
            ones,
            scores,
            candidates,
            ..
        } = self;
        rows.clear();
        match &mut self.encoder {
            Encoder::Native(native) => tokens.spread(native.forward(tokens, CPUS), scores),
            Encoder::Ort(ort) => tokens.spread(ort.forward(tokens, CPUS)?, scores),
            Encoder::OrtDense(ort) => {
                let places = tokens.indices();
                let jobs = tokens.slots().iter().map(|&slot| places[slot as usize]);
                // The paper has one idle token, whatever the CPUs.
                scores.copy_from_slice(ort.forward_rows(places[..1].iter().copied().chain(jobs))?);
            }
            Encoder::NativeDense(native) => {
                rows.push(tokens.tokens()[0]);
                rows.extend((0..jobs).map(|job| tokens.token_of_job(job)));
                ones.resize(rows.len(), 1);
                scores.copy_from_slice(native.forward_rows(rows, ones, CPUS));
            }
            Encoder::NativeSparse(native) => {
                rows.push(tokens.tokens()[0]);
                let sorted = candidates.iter().map(|&job| job as usize);
                rows.extend(sorted.map(|job| tokens.token_of_job(job)));
                let plan = SparsePlan::for_tasks(jobs, false);
                in_place(native.forward_sparse(rows, CPUS, &plan), candidates, scores);
            }
            Encoder::OrtSparse(ort) => {
                let places = tokens.indices();
                let slots = candidates.iter().map(|&job| tokens.slots()[job as usize]);
                let sorted = std::iter::once(0).chain(slots);
                let sorted = sorted.map(|slot| places[slot as usize]);
                let plan = SparsePlan::for_tasks(jobs, false);
                in_place(ort.forward_sparse(sorted, CPUS, &plan)?, candidates, scores);
            }
        }
        Ok(())
    }
}

/// Idle's, then the jobs' in this order, back to where the jobs stand.
fn in_place(q: &[f32], sorted: &[u32], scores: &mut [f32]) {
    scores[0] = q[0];
    for (&job, &q) in sorted.iter().zip(&q[1..]) {
        scores[1 + job as usize] = q;
    }
}
