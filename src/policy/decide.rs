//! One decision, from a situation to an assignment. The simulator and the
//! agent both call this, so what was trained is what runs.

use super::course::Course;
use super::job::{Situation, Standing};
use super::late::{LateConfig, LateRule};
use super::mapping::{Assignment, Mapper, MappingConfig, Problem};
use super::mitigation::{
    share_below_resolution, BurstConfig, BurstMonitor, LongSlackReserve, SparsePlan,
};
use super::scorer::{Context, Scorer};
use super::shield::{OverloadRule, Shield, ShieldConfig, Verdict};
use super::tokenizer::{TokenSet, Tokenizer};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ShieldMode {
    #[default]
    On,
    /// The bare paper: the scores alone decide, late jobs included.
    Off,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PolicyConfig {
    pub tokenizer: Tokenizer,
    pub mapping: MappingConfig,
    pub shield: ShieldMode,
    pub shield_config: ShieldConfig,
    pub late: LateConfig,
    pub burst: BurstConfig,
    pub reserve: LongSlackReserve,
    /// May a CPU stay idle with work waiting because idle scored higher? The
    /// paper allows it; a kernel's users would not understand it. With the
    /// shield on it happens only where it costs no deadline.
    pub may_idle: bool,
}

/// What was decided, and how.
#[derive(Debug, Clone, Default)]
pub struct Decision {
    pub assignment: Assignment,
    pub verdict: Verdict,
    /// The scorer was asked. It is not when everybody could run anyway.
    pub scored: bool,
    /// Jobs the shield held back, and hopeless ones.
    pub masked: usize,
    pub late: usize,
    /// A late job was given a CPU because its bound had come.
    pub late_due: bool,
    /// Too many jobs below the slack resolution: mitigations are on.
    pub burst: bool,
    /// Sinkhorn was asked for and greedy had to answer.
    pub mapping_fell_back: bool,
}

/// A policy with its state and working memory.
#[derive(Debug, Clone)]
pub struct Decider {
    config: PolicyConfig,
    course: Course,
    shield: Shield,
    late: LateRule,
    burst: BurstMonitor,
    mapper: Mapper,
    tokens: TokenSet,
    scores: Vec<f32>,
    token_scores: Vec<f32>,
    candidates: Vec<u32>,
    decision: Decision,
}

impl Decider {
    pub fn new(config: PolicyConfig) -> Decider {
        Decider {
            course: Course::default(),
            shield: Shield::new(config.shield_config),
            late: LateRule::new(config.late),
            burst: BurstMonitor::new(config.burst),
            mapper: Mapper::new(config.mapping),
            config,
            tokens: TokenSet::default(),
            scores: Vec::new(),
            token_scores: Vec::new(),
            candidates: Vec::new(),
            decision: Decision::default(),
        }
    }

    /// Who runs where until the next decision.
    pub fn decide<S: Scorer + ?Sized>(
        &mut self,
        scorer: &mut S,
        told: &Situation<'_>,
    ) -> &Decision {
        if !self.plans() {
            return self.decide_here(scorer, told);
        }
        let mut course = std::mem::take(&mut self.course);
        let situation = course.plot(told, &self.config.shield_config);
        self.decide_here(scorer, &situation);
        self.course = course;
        &self.decision
    }

    /// Are whole tasks given up?
    fn plans(&self) -> bool {
        self.config.shield == ShieldMode::On
            && self.config.shield_config.overload == OverloadRule::Keep
    }

    fn decide_here<S: Scorer + ?Sized>(
        &mut self,
        scorer: &mut S,
        situation: &Situation<'_>,
    ) -> &Decision {
        let verdict = match self.config.shield {
            ShieldMode::On => self.shield.assess(situation),
            ShieldMode::Off => self.shield.wave_through(situation),
        };
        let late_due = self.late.is_due(
            situation.now_ns,
            !self.shield.late().is_empty() || !self.shield.given_up().is_empty(),
            verdict.may_idle,
        );
        self.candidates.clear();
        self.candidates.reserve(1 + situation.jobs.len());
        if late_due {
            let waiting = self.shield.late().iter().chain(self.shield.given_up());
            self.candidates.extend(waiting.take(1));
        }
        self.candidates.extend_from_slice(self.shield.candidates());
        let may_idle = self.config.may_idle && verdict.may_idle;
        self.decision.verdict = verdict;
        self.decision.masked = self.shield.masked().len();
        self.decision.late = self.shield.late().len() + self.shield.given_up().len();
        self.decision.late_due = late_due;

        // Scores matter only where somebody must wait.
        let cpus = situation.cpus.count();
        let all = self.shield.candidates().len() + self.decision.masked + self.decision.late;
        let contested = self.candidates.len() > cpus || self.decision.late > 0 && all > cpus;
        self.decision.scored = may_idle || contested;
        if !self.decision.scored {
            self.scores.clear();
            self.scores.resize(1 + situation.jobs.len(), 0.0);
            self.map(situation, false);
            let placed = |&job: &u32| self.decision.assignment.cpu_of(job as usize).is_some();
            self.decision.scored = !self.candidates.iter().all(placed);
        }
        if self.decision.scored {
            self.ask(scorer, situation, late_due);
            self.map(situation, may_idle);
        }

        let assignment = &self.decision.assignment;
        let served = |&job: &u32| assignment.cpu_of(job as usize).is_some();
        let mut waiting = self.shield.late().iter().chain(self.shield.given_up());
        if waiting.any(served) {
            self.late.served(situation.now_ns);
        }
        &self.decision
    }

    /// The last one.
    pub fn decision(&self) -> &Decision {
        &self.decision
    }

    /// What the last decision said of the task at this place of `upcoming`. Tell it back with
    /// the next situation.
    pub fn standing(&self, task: usize) -> Standing {
        match self.plans() {
            true => self.course.standing(task),
            false => Standing::default(),
        }
    }

    /// Tokens of the last decision that asked the scorer.
    pub fn tokens(&self) -> &TokenSet {
        &self.tokens
    }

    /// The jobs the last decision chose from.
    pub fn candidates(&self) -> &[u32] {
        &self.candidates
    }

    /// The scores that decision was mapped with: idle, then the jobs in their
    /// order. Jobs that had to run stand at +∞.
    pub fn scores(&self) -> &[f32] {
        &self.scores
    }

    /// The score of every distinct token of that decision, before jobs that must run
    /// were put first.
    pub fn token_scores(&self) -> &[f32] {
        &self.token_scores
    }

    pub fn config(&self) -> &PolicyConfig {
        &self.config
    }

    fn ask<S: Scorer + ?Sized>(
        &mut self,
        scorer: &mut S,
        situation: &Situation<'_>,
        late_due: bool,
    ) {
        let jobs = situation.jobs;
        let tokenizer = &self.config.tokenizer;
        tokenizer.tokenize_situation(situation, &mut self.tokens);
        self.decision.burst = self.burst.observe(share_below_resolution(&self.tokens));

        self.scores.clear();
        self.scores.resize(1 + jobs.len(), f32::NAN);
        let context = Context {
            situation,
            tokenizer,
            tokens: &self.tokens,
            sparsity: SparsePlan::for_tasks(jobs.len(), self.decision.burst),
        };
        scorer.score(&context, &mut self.scores);
        self.token_scores.clear();
        self.token_scores.reserve(tokenizer.vocabulary());
        self.token_scores.resize(self.tokens.distinct(), f32::NAN);
        self.token_scores[0] = self.scores[0];
        for (&slot, &score) in self.tokens.slots().iter().zip(&self.scores[1..]) {
            self.token_scores[slot as usize] = score;
        }
        if self.decision.burst {
            let reserve = &self.config.reserve;
            reserve.apply(tokenizer, &self.tokens, &mut self.scores);
        }
        let due = self.candidates.first().filter(|_| late_due);
        for &job in due.into_iter().chain(self.shield.must()) {
            self.scores[1 + job as usize] = f32::INFINITY;
        }
    }

    /// Candidates by score. CPUs that would idle then go to candidates that
    /// were kept off them, to the masked by latest start, to the late by score.
    fn map(&mut self, situation: &Situation<'_>, may_idle: bool) {
        let Decider {
            shield,
            mapper,
            scores,
            candidates,
            decision,
            ..
        } = self;
        let assignment = &mut decision.assignment;
        assignment.reset(situation.jobs.len(), &situation.cpus);
        let by_score = Problem {
            jobs: situation.jobs,
            scores,
            candidates,
            permitted: shield.permitted(),
            may_idle,
        };
        decision.mapping_fell_back = mapper.map(&by_score, assignment);
        if may_idle || assignment.free().is_empty() {
            return;
        }
        shield.rank_masked(situation.jobs);
        let again = Problem {
            jobs: situation.jobs,
            scores,
            candidates,
            permitted: shield.open(),
            may_idle,
        };
        let masked = Problem {
            scores: &[],
            candidates: shield.masked(),
            ..again
        };
        let late = Problem {
            candidates: shield.late(),
            ..again
        };
        let given_up = Problem {
            candidates: shield.given_up(),
            ..again
        };
        for leftover in [again, masked, late, given_up] {
            mapper.fill(&leftover, assignment);
        }
    }
}
