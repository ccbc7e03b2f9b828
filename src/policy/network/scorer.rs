//! The network's place in a decision.

use super::model::Model;
use super::native::{Native, Precision};
use super::onnx::GraphKind;
use super::ort::{Device, Ort, OrtError};
use crate::policy::scorer::{Context, Scorer};
use crate::policy::tokenizer::{Token, Tokenizer};
use log::warn;
use std::path::Path;

/// Scores jobs by the Q of their tokens. It says nothing (NaN, and so EDF)
/// where the tokens are not those of its model or ONNX Runtime fails.
pub struct NetworkScorer {
    tokenizer: Tokenizer,
    network: Network,
    warned: bool,
}

enum Network {
    Native(Box<Native>),
    Sparse(Box<Sparse>),
    Ort(Box<Ort>),
}

/// One row per job, in order of deadline.
struct Sparse {
    native: Native,
    order: Vec<u32>,
    rows: Vec<Token>,
}

impl NetworkScorer {
    /// In plain Rust, with floats or eight bits.
    pub fn native(model: &Model, precision: Precision) -> NetworkScorer {
        let native = Native::new(model.weights(), precision);
        NetworkScorer::with(model, Network::Native(Box::new(native)))
    }

    /// The paper's sparse attention over one row per job. An approximation of
    /// what the network was trained as, and dearer than [`Self::native`].
    pub fn sparse(model: &Model) -> NetworkScorer {
        let sparse = Sparse {
            native: Native::new(model.weights(), Precision::Float),
            order: Vec::new(),
            rows: Vec::new(),
        };
        NetworkScorer::with(model, Network::Sparse(Box::new(sparse)))
    }

    /// In the ONNX Runtime of this library.
    pub fn ort(model: &Model, library: &Path, device: Device) -> Result<NetworkScorer, OrtError> {
        let ort = Ort::open(library, model, GraphKind::Multiset, device)?;
        Ok(NetworkScorer::with(model, Network::Ort(Box::new(ort))))
    }

    /// Where it really runs.
    pub fn device(&self) -> Device {
        match &self.network {
            Network::Ort(ort) => ort.device(),
            Network::Native(_) | Network::Sparse(_) => Device::Cpu,
        }
    }

    fn with(model: &Model, network: Network) -> NetworkScorer {
        NetworkScorer {
            tokenizer: model.tokenizer().clone(),
            network,
            warned: false,
        }
    }

    fn warn_once(&mut self, why: &str) {
        if !std::mem::replace(&mut self.warned, true) {
            warn!("the network does not answer, deadlines decide: {why}");
        }
    }
}

/// The network alone, for those who know that the tokens are its own.
impl Scorer for Native {
    fn score(&mut self, context: &Context<'_>, scores: &mut [f32]) {
        let cpus = context.situation.cpus.count();
        context
            .tokens
            .spread(self.forward(context.tokens, cpus), scores);
    }
}

impl Scorer for NetworkScorer {
    fn score(&mut self, context: &Context<'_>, scores: &mut [f32]) {
        scores.fill(f32::NAN);
        if *context.tokenizer != self.tokenizer {
            return self.warn_once("its tokens have other bins");
        }
        let cpus = context.situation.cpus.count();
        let tokens = context.tokens;
        let answered = match &mut self.network {
            Network::Native(native) => Ok(native.forward(tokens, cpus)),
            Network::Ort(ort) => ort.forward(tokens, cpus),
            Network::Sparse(sparse) => return sparse.score(context, cpus, scores),
        };
        match answered {
            Ok(q) => tokens.spread(q, scores),
            Err(error) => self.warn_once(&error.to_string()),
        }
    }
}

impl Sparse {
    fn score(&mut self, context: &Context<'_>, cpus: usize, scores: &mut [f32]) {
        let (jobs, tokens) = (context.situation.jobs, context.tokens);
        self.order.clear();
        self.order.extend(0..jobs.len() as u32);
        // Equal deadlines by token, so that the order given makes no difference.
        self.order.sort_unstable_by_key(|&job| {
            let job = job as usize;
            (jobs[job].deadline_ns, tokens.token_of_job(job))
        });
        self.rows.clear();
        self.rows.push(tokens.tokens()[0]);
        let in_order = self
            .order
            .iter()
            .map(|&job| tokens.token_of_job(job as usize));
        self.rows.extend(in_order);
        let q = self
            .native
            .forward_sparse(&self.rows, cpus, &context.sparsity);
        scores[0] = q[0];
        for (&job, &q) in self.order.iter().zip(&q[1..]) {
            scores[1 + job as usize] = q;
        }
    }
}
