//! The policy in the agent's seat: a model in a backend, the decider around it,
//! and what its values look like on the board.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{bail, Context as _, Result};
use log::{info, warn};

use super::accel::{find_onnxruntime, OrtSearch};
use super::board::{Board, Cell};
use super::gauges::Identity;
use super::mirror::MOST_TASKS;
use crate::policy::network::{Device, DistilledTable, Model, NetworkScorer, Precision};
use crate::policy::{
    linux, Context, CpuId, CpuMask, Decider, Decision, Job, MappingConfig, MappingKind,
    PolicyConfig, Scorer, ShieldMode, Situation, Standing, Token, Tokenizer, Upcoming,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    /// ONNX Runtime where it is found, else the built-in one.
    Auto,
    Ort,
    Native,
}

#[derive(Debug, Clone)]
pub struct BrainConfig {
    pub model: Option<PathBuf>,
    pub backend: Backend,
    pub device: Device,
    pub shield: ShieldMode,
    pub mapping: MappingKind,
    /// For experiments: every inference takes so many times as long.
    pub slowed: u32,
}

/// A scorer with a watch.
struct Timed {
    scorer: NetworkScorer,
    slowed: u32,
    asked: bool,
    took_ns: i64,
}

impl Scorer for Timed {
    fn score(&mut self, context: &Context<'_>, scores: &mut [f32]) {
        let began = Instant::now();
        self.scorer.score(context, scores);
        if self.slowed > 1 {
            let until = began.elapsed() * self.slowed;
            while began.elapsed() < until {
                std::hint::spin_loop();
            }
        }
        self.asked = true;
        self.took_ns = began.elapsed().as_nanos() as i64;
    }
}

/// Inferences that get a thread warm.
const REHEARSED: usize = 8;

pub struct Brain {
    decider: Decider,
    scorer: Timed,
    tokenizer: Tokenizer,
    distilled: Option<DistilledTable>,
    /// What the table's whole range stands for, in units of Q.
    scale: f32,
    solo_values: Vec<(Cell, i16)>,
    identity: Identity,
}

impl Brain {
    /// Opens the model, tries it, and has every buffer it needs.
    pub fn open(config: &BrainConfig, cpus: CpuMask) -> Result<Brain> {
        let model = Model::open(config.model.as_deref())?;
        let (scorer, mut identity) = seat(&model, config)?;
        identity.model = model.provenance().name.clone();
        let decider = Decider::new(PolicyConfig {
            tokenizer: model.tokenizer().clone(),
            mapping: MappingConfig {
                kind: config.mapping,
                ..MappingConfig::default()
            },
            shield: config.shield,
            shield_config: linux::shield_config(),
            ..PolicyConfig::default()
        });
        let mut brain = Brain {
            decider,
            scorer: Timed {
                scorer,
                slowed: config.slowed,
                asked: false,
                took_ns: 0,
            },
            tokenizer: model.tokenizer().clone(),
            distilled: model.distilled().cloned(),
            scale: 1.0,
            solo_values: Vec::new(),
            identity,
        };
        brain.warm_up(cpus)?;
        brain.solo_values = brain.solo_values();
        Ok(brain)
    }

    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    pub fn decide(&mut self, situation: &Situation<'_>) {
        self.scorer.asked = false;
        self.decider.decide(&mut self.scorer, situation);
    }

    /// The last decision.
    pub fn decision(&self) -> &Decision {
        self.decider.decision()
    }

    /// What the last decision's inference took, if there was one.
    pub fn inference_ns(&self) -> Option<i64> {
        self.scorer.asked.then_some(self.scorer.took_ns)
    }

    /// What the last decision said of the task at this place of `upcoming`.
    pub fn standing(&self, task: usize) -> Standing {
        self.decider.standing(task)
    }

    /// A few inferences on the thread that will decide: the first ones there have page faults.
    pub fn rehearse(&mut self) {
        let tokens = self.tokenizer.loads()..self.tokenizer.vocabulary();
        for index in tokens.take(REHEARSED) {
            self.solo_advantage(index);
        }
    }

    /// Writes the bins, and a value for every token by itself: what the table says
    /// of tokens that no decision has met yet. `false` where there is no room.
    pub fn introduce(&self, board: &Board) -> bool {
        if !board.bins(&self.tokenizer) {
            return false;
        }
        for &(cell, value) in &self.solo_values {
            board.value(cell, value);
            // A model without a rule of its own: what it says of tokens alone.
            board.distilled_value(cell, value);
        }
        if let Some(rule) = &self.distilled {
            for index in self.tokenizer.loads()..self.tokenizer.vocabulary() {
                let token = self.tokenizer.token_at(index);
                if let Some((cell, score)) = cell(token).zip(rule.score(token)) {
                    board.distilled_value(cell, score);
                }
            }
        }
        board.has_distilled(true);
        true
    }

    /// Writes the values of the tokens that the last inference met.
    pub fn publish_values(&self, board: &Board) {
        let scores = self.decider.token_scores();
        let Some((&idle, scores)) = scores.split_first() else {
            return;
        };
        for (&token, &score) in self.decider.tokens().tokens()[1..].iter().zip(scores) {
            if let Some(cell) = cell(token) {
                board.value(cell, self.quantised(score - idle));
            }
        }
    }

    fn quantised(&self, advantage: f32) -> i16 {
        if advantage.is_nan() {
            return i16::MIN;
        }
        (advantage / self.scale * 16_000.0).clamp(-32_000.0, 32_000.0) as i16
    }

    /// Every token's advantage over idle where it is the only one.
    fn solo_values(&mut self) -> Vec<(Cell, i16)> {
        let tokens = self.tokenizer.loads()..self.tokenizer.vocabulary();
        let advantages: Vec<(Cell, f32)> = tokens
            .filter_map(|index| self.solo_advantage(index))
            .collect();
        let largest = advantages.iter().map(|(_, a)| a.abs());
        let largest = largest.filter(|a| a.is_finite()).fold(0.0, f32::max);
        self.scale = if largest > 0.0 { largest } else { 1.0 };
        let quantised = |&(cell, advantage): &(Cell, f32)| (cell, self.quantised(advantage));
        advantages.iter().map(quantised).collect()
    }

    /// `None` for a token that no job in itself has.
    fn solo_advantage(&mut self, index: usize) -> Option<(Cell, f32)> {
        let token = self.tokenizer.token_at(index);
        let Token::Job { doubt: 0, .. } = token else {
            return None;
        };
        let (cell, job) = cell(token).zip(self.job_of(token))?;
        let mut scores = [f32::NAN; 2];
        let jobs = [job];
        let situation = alone(&jobs);
        let mut tokens = Default::default();
        self.tokenizer.tokenize(&jobs, 0, &mut tokens);
        let context = Context {
            situation: &situation,
            tokenizer: &self.tokenizer,
            tokens: &tokens,
            sparsity: crate::policy::SparsePlan::for_tasks(1, false),
        };
        self.scorer.scorer.score(&context, &mut scores);
        Some((cell, scores[1] - scores[0]))
    }

    /// A job that has this token at time 0.
    fn job_of(&self, token: Token) -> Option<Job> {
        let Token::Job {
            slack, work, class, ..
        } = token
        else {
            return None;
        };
        let lower = |edges: &[i64], bin: usize| match bin {
            0 => edges.first().map_or(1, |&edge| edge / 2),
            bin => edges[bin - 1],
        };
        let remaining_ns = lower(self.tokenizer.work().edges_ns(), work.into()).max(1);
        let slack_ns = match slack {
            0 => -1,
            slack => lower(self.tokenizer.slack().edges_ns(), usize::from(slack) - 1),
        };
        Some(Job {
            deadline_ns: slack_ns + remaining_ns,
            remaining_ns,
            spread_ns: 0,
            criticality: class,
            last_cpu: None,
            allowed: CpuMask::ALL,
        })
    }

    /// Decisions of all sizes, so that the first real one allocates nothing; the
    /// network must answer with numbers.
    fn warm_up(&mut self, cpus: CpuMask) -> Result<()> {
        let task = |i: usize| {
            let period_ns = 20_000_000 + 1_370_000 * (i as i64 * 7 % 97);
            let runtime_ns = period_ns / 3 - 13_000 * (i as i64 % 31);
            (period_ns, runtime_ns)
        };
        let one = cpus.lowest().map_or(CpuMask::ALL, CpuMask::only);
        for n in [1, 2, 3, 8, 20, 64, 256, MOST_TASKS] {
            for shift in 0..8 {
                // So far apart that each is planned for.
                let now_ns = 2_000_000_000 * shift as i64;
                // Some bound to a CPU, then all, then none.
                let allowed = |i: usize| match shift {
                    6 => one,
                    7 => CpuMask::ALL,
                    _ if i.is_multiple_of(3) => one,
                    _ => CpuMask::ALL,
                };
                let jobs: Vec<Job> = (0..n)
                    .map(|i| {
                        let (period_ns, runtime_ns) = task(i + shift);
                        Job {
                            deadline_ns: now_ns + period_ns - shift as i64 * 9_000_000,
                            remaining_ns: runtime_ns,
                            spread_ns: runtime_ns / 10 * (i as i64 % 5),
                            criticality: (i % 2) as u8,
                            last_cpu: Some((i % cpus.count().max(1)) as CpuId),
                            allowed: allowed(i),
                        }
                    })
                    .collect();
                let upcoming: Vec<Upcoming> = (0..n)
                    .map(|i| {
                        let (period_ns, runtime_ns) = task(i + shift);
                        // Every other time all fit in the long run, and only now they do not.
                        let runtime_ns = match shift % 2 {
                            0 => runtime_ns,
                            _ => runtime_ns / n as i64,
                        };
                        Upcoming {
                            pending: Some(i as u32),
                            allowed: allowed(i),
                            ..Upcoming::new(now_ns + period_ns, (period_ns, runtime_ns, period_ns))
                        }
                    })
                    .collect();
                let situation = Situation {
                    now_ns,
                    jobs: &jobs,
                    upcoming: &upcoming,
                    cpus,
                    share: 1.0,
                    hold_ns: 1_000_000,
                };
                self.decide(&situation);
                let answered = |score: &f32| score.is_finite();
                if self.scorer.asked && !self.decider.token_scores().iter().all(answered) {
                    bail!("the network's answers are not numbers");
                }
            }
        }
        Ok(())
    }
}

fn cell(token: Token) -> Option<Cell> {
    match token {
        Token::Idle { .. } => None,
        Token::Job {
            slack, work, class, ..
        } => Some(Cell {
            class: class.into(),
            slack: slack.into(),
            work: work.into(),
        }),
    }
}

fn alone(jobs: &[Job]) -> Situation<'_> {
    Situation {
        now_ns: 0,
        jobs,
        upcoming: &[],
        cpus: CpuMask::first(1),
        share: 1.0,
        hold_ns: 1_000_000,
    }
}

const NATIVE: &str = "the built-in backend runs the network, on the CPU";

/// The model in the backend that was asked for, or the best there is.
fn seat(model: &Model, config: &BrainConfig) -> Result<(NetworkScorer, Identity)> {
    let identity = |backend: &str, provider: String| Identity {
        backend: backend.into(),
        provider,
        model: String::new(),
    };
    if config.backend != Backend::Native {
        match seat_ort(model, config.device) {
            Ok(Some((scorer, provider))) => return Ok((scorer, identity("ort", provider))),
            Ok(None) if config.backend == Backend::Ort => {
                bail!("ONNX Runtime was asked for and is not here (scx_temponet doctor tells more)")
            }
            Err(error) if config.backend == Backend::Ort => return Err(error),
            Ok(None) if config.device == Device::Cpu => {
                info!("no ONNX Runtime here: the built-in backend runs the network")
            }
            Ok(None) => warn!("CUDA needs ONNX Runtime, and it is not here: {NATIVE}"),
            Err(error) => warn!("{NATIVE}: {error:#}"),
        }
    } else if config.device == Device::Cuda {
        warn!("CUDA needs ONNX Runtime: {NATIVE}");
    }
    let scorer = NetworkScorer::native(model, Precision::Float);
    Ok((scorer, identity("native", "CPU".into())))
}

fn seat_ort(model: &Model, device: Device) -> Result<Option<(NetworkScorer, String)>> {
    let found = find_onnxruntime(&OrtSearch::here());
    let Some((library, version)) = found.map_err(anyhow::Error::msg)? else {
        return Ok(None);
    };
    let scorer = NetworkScorer::ort(model, &library, device).context("cannot use ONNX Runtime")?;
    let device = match scorer.device() {
        Device::Cpu => "CPU",
        Device::Cuda => "CUDA",
    };
    Ok(Some((scorer, format!("ONNX Runtime {version}, {device}"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> BrainConfig {
        BrainConfig {
            model: None,
            backend: Backend::Native,
            device: Device::Cpu,
            shield: ShieldMode::On,
            mapping: MappingKind::Greedy,
            slowed: 1,
        }
    }

    #[test]
    fn every_token_of_the_shipped_model_has_a_value() {
        let mut brain = Brain::open(&config(), CpuMask::first(2)).unwrap();
        let values = brain.solo_values();
        let tokenizer = brain.tokenizer.clone();
        let cells = tokenizer.slack_bins() * tokenizer.work().levels() * tokenizer.classes();
        assert_eq!(values.len(), cells);
        // Less slack is more urgent, as long as there is some.
        let value = |slack| {
            let wanted =
                |(cell, _): &&(Cell, i16)| (cell.class, cell.slack, cell.work) == (0, slack, 6);
            values.iter().find(wanted).unwrap().1
        };
        assert!(value(10) > value(30), "{} {}", value(10), value(30));
    }

    #[test]
    fn a_job_made_for_a_token_has_it() {
        let brain = Brain::open(&config(), CpuMask::first(2)).unwrap();
        for index in brain.tokenizer.loads()..brain.tokenizer.vocabulary() {
            let token = brain.tokenizer.token_at(index);
            if let Token::Job { doubt: 0, .. } = token {
                let job = brain.job_of(token).unwrap();
                assert_eq!(brain.tokenizer.token(&job, 0), token);
            }
        }
    }

    #[test]
    fn a_model_that_is_none_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("noise.onnx");
        std::fs::write(&file, b"\x7fELF and no model").unwrap();
        let config = BrainConfig {
            model: Some(file),
            ..config()
        };
        assert!(Brain::open(&config, CpuMask::first(1)).is_err());
    }
}
