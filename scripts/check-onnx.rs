//! Writes a model's graphs and the native backend's answers on a few
//! situations, for scripts/check-onnx.py to compare with ONNX Runtime's:
//!
//!   cargo run --example onnx_sample -- FOLDER [MODEL.onnx]

use anyhow::{Context, Result};
use scx_temponet::policy::network::{GraphKind, Model, Native, Precision};
use scx_temponet::policy::{CpuMask, Job, SparsePlan, TokenSet};
use serde_json::json;
use std::path::PathBuf;

fn main() -> Result<()> {
    let mut args = std::env::args_os().skip(1).map(PathBuf::from);
    let folder = args.next().context("which folder?")?;
    let model = match args.next() {
        Some(path) => Model::load(&path)?,
        None => Model::untrained(Model::default_tokenizer(), Model::default_shape(), 1)?,
    };
    for kind in [GraphKind::Multiset, GraphKind::Dense, GraphKind::Sparse] {
        let path = folder.join(format!("{}.onnx", kind.name()));
        std::fs::write(&path, model.to_onnx(kind))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    let mut native = Native::new(model.weights(), Precision::Float);
    let mut set = TokenSet::default();
    let mut situations = Vec::new();
    for (n, cpus) in [(0, 1), (1, 1), (5, 2), (64, 8), (600, 8)] {
        let jobs: Vec<Job> = (0..n).map(job).collect();
        model.tokenizer().tokenize(&jobs, 0, &mut set);
        let q = native.forward(&set, cpus).to_vec();
        let mut scores = vec![0.0; 1 + jobs.len()];
        set.spread(&q, &mut scores);
        let mut in_order: Vec<usize> = (0..jobs.len()).collect();
        in_order.sort_by_key(|&i| jobs[i].deadline_ns);
        let rows: Vec<_> = std::iter::once(set.tokens()[0])
            .chain(in_order.iter().map(|&i| set.token_of_job(i)))
            .collect();
        let plan = SparsePlan::for_tasks(jobs.len(), false);
        let sparse = json!({
            "tokens": rows
                .iter()
                .map(|&token| model.tokenizer().index_of(token))
                .collect::<Vec<_>>(),
            "plan": [plan.chunk, plan.block, plan.keep],
            "q": native.forward_sparse(&rows, cpus, &plan),
        });
        let places = set.indices();
        let jobs: Vec<u32> = set
            .slots()
            .iter()
            .map(|&slot| places[slot as usize])
            .collect();
        situations.push(json!({
            "cpus": cpus,
            "tokens": places,
            "counts": set.counts(),
            "q": q,
            "jobs": jobs,
            "scores": scores,
            "sparse": sparse,
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
