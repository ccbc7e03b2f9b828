//! Writes a model's two graphs and the native backend's answers on a few
//! situations, for scripts/check-onnx.py to compare with ONNX Runtime's:
//!
//!   cargo run --example onnx_sample -- FOLDER [MODEL.onnx]

use anyhow::{Context, Result};
use scx_temponet::policy::network::{GraphKind, Model, Native};
use scx_temponet::policy::{CpuMask, Job, Token, TokenSet};
use serde_json::json;
use std::path::PathBuf;

fn main() -> Result<()> {
    let mut args = std::env::args_os().skip(1).map(PathBuf::from);
    let folder = args.next().context("which folder?")?;
    let model = match args.next() {
        Some(path) => Model::load(&path)?,
        None => Model::untrained(Model::default_tokenizer(), Model::default_shape(), 1)?,
    };
    for kind in [GraphKind::Multiset, GraphKind::Dense] {
        let path = folder.join(format!("{}.onnx", kind.name()));
        std::fs::write(&path, model.to_onnx(kind))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    let mut native = Native::new(model.weights());
    let mut set = TokenSet::default();
    let mut situations = Vec::new();
    for (n, cpus) in [(0, 1), (1, 1), (5, 2), (64, 8), (600, 8)] {
        let jobs: Vec<Job> = (0..n).map(job).collect();
        model.tokenizer().tokenize(&jobs, 0, &mut set);
        let q = native.forward(&set, cpus).to_vec();
        let mut scores = vec![0.0; 1 + jobs.len()];
        set.spread(&q, &mut scores);
        let each: Vec<Token> = (0..jobs.len()).map(|job| set.token_of_job(job)).collect();
        situations.push(json!({
            "cpus": cpus,
            "tokens": rows(&set.tokens()[1..]),
            "counts": set.counts()[1..],
            "q": q,
            "jobs": rows(&each),
            "scores": scores,
        }));
    }
    let path = folder.join("native.json");
    std::fs::write(&path, json!({ "situations": situations }).to_string())
        .with_context(|| format!("cannot write {}", path.display()))
}

/// Jobs that look random and are the same every time.
fn job(i: i64) -> Job {
    Job {
        deadline_ns: i * 7_919_003 % 90_000_000 - 5_000_000,
        remaining_ns: i * 104_729 % 9_000_000,
        spread_ns: i * 50_021 % 4_000_000,
        criticality: (i % 3) as u8,
        last_cpu: None,
        allowed: CpuMask::ALL,
    }
}

fn rows(tokens: &[Token]) -> Vec<[u32; 4]> {
    let row = |&token: &Token| match token {
        Token::Idle => [0; 4],
        Token::Job {
            slack,
            work,
            class,
            doubt,
        } => [slack.into(), work.into(), class.into(), doubt.into()],
    };
    tokens.iter().map(row).collect()
}
