//! `scx_temponet bench`: what a decision costs, stage by stage.

mod decision;
mod measure;
mod moments;

pub(super) use moments::{moments, Moment, CPUS};

use super::out::{self, outln};
use super::{progress, time};
use crate::agent::accel::{find_onnxruntime, OrtSearch};
use crate::policy::network::{Device, Model, Native, Precision};
use crate::report::table::Table;
use anyhow::{bail, Result};
use clap::{Args, ValueEnum};
use measure::{Agreement, Backend, Row, Runtime, Scaling, Trial, PAPER};
use serde::Serialize;
use std::path::PathBuf;
use std::time::Duration;

/// Situations per number of jobs.
const MOMENTS: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum DeviceArg {
    Cpu,
    Cuda,
}

/// Measure what a decision costs on one core: tokens, network, mapping to
/// eight CPUs
///
/// Situations are moments of a simulated machine at load 1.1. Beside the model
/// runs the paper's network (width 128, 2 layers, 4 heads, 512 hidden) with one
/// row per job in ONNX Runtime; all take turns, so compare the ratios.
#[derive(Args, Debug, Clone)]
pub struct BenchArgs {
    /// Numbers of jobs, separated by commas, each from 1 to 20000
    #[arg(
        long,
        value_name = "N,N,…",
        value_delimiter = ',',
        default_value = "64,200,600,5000",
        value_parser = clap::value_parser!(u32).range(1..=20_000)
    )]
    n: Vec<u32>,

    /// Which backends to measure, separated by commas (default: all there are)
    #[arg(long, value_enum, value_delimiter = ',')]
    backend: Vec<Backend>,

    /// A model file (default: the one that comes with this program)
    #[arg(long, value_name = "FILE")]
    model: Option<PathBuf>,

    /// What ONNX Runtime computes on; the paper's network stays on the CPU
    #[arg(long, value_enum, default_value = "cpu")]
    device: DeviceArg,

    /// How long to measure for each number of jobs; a number alone is seconds
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = measuring_time)]
    seconds: Duration,

    /// Where everything random starts
    #[arg(long, default_value_t = 1, value_parser = super::sim::parse_seed, allow_hyphen_values = true)]
    seed: u64,

    /// As JSON
    #[arg(long)]
    json: bool,
}

fn measuring_time(text: &str) -> Result<Duration, String> {
    time::parse_seconds(text, Duration::from_millis(10), Duration::from_secs(600))
}

#[derive(Serialize)]
struct Outcome {
    model: String,
    trained: bool,
    cpus: usize,
    instructions: &'static str,
    onnxruntime: Option<String>,
    decisions: Vec<Row>,
    agreement: Vec<Agreement>,
    scaling: Vec<Scaling>,
}

pub fn run(args: &BenchArgs) -> Result<()> {
    let model = Model::open(args.model.as_deref())?;
    let found = find_onnxruntime(&OrtSearch::here());
    let wants_ort = args.backend.contains(&Backend::Ort);
    let (runtime, version) = match found {
        Ok(Some((library, version))) => {
            let device = match args.device {
                DeviceArg::Cpu => Device::Cpu,
                DeviceArg::Cuda => Device::Cuda,
            };
            (Some(Runtime { library, device }), Some(version))
        }
        Ok(None) if wants_ort => bail!("ONNX Runtime is not here; scripts/setup.sh ort fetches it"),
        Ok(None) => (None, None),
        Err(error) if wants_ort => bail!("ONNX Runtime: {error}"),
        Err(error) => {
            out::errln!("scx_temponet: measuring without ONNX Runtime: {error}");
            (None, None)
        }
    };
    let all = [
        Backend::Ort,
        Backend::Native,
        Backend::NativeInt8,
        Backend::NativeBf16,
    ];
    let bar = progress::measurements(args.n.len() as u64);
    let plan = Trial {
        model: &model,
        backends: if args.backend.is_empty() {
            &all
        } else {
            &args.backend
        },
        runtime: runtime.as_ref(),
        seed: args.seed,
        time: args.seconds,
        begin: &|what| {
            bar.set_message(what);
            bar.inc(1);
        },
    };
    bar.set_length(plan.measurements(&args.n));
    stay_on_this_cpu();
    let mut outcome = Outcome {
        model: model.provenance().name.clone(),
        trained: model.is_trained(),
        cpus: CPUS,
        instructions: Native::new(model.weights(), Precision::Float).isa().name(),
        onnxruntime: version,
        decisions: Vec::new(),
        agreement: Vec::new(),
        scaling: Vec::new(),
    };
    let mut points = Vec::new();
    for &n in &args.n {
        let (jobs, moments) = (n as usize, moments(n as usize, MOMENTS, args.seed));
        if moments.is_empty() {
            bail!("the simulated machine never has {jobs} jobs waiting");
        }
        outcome.decisions.extend(plan.rows(jobs, &moments)?);
        let narrow = [Backend::NativeInt8, Backend::NativeBf16];
        if narrow.iter().any(|backend| plan.backends.contains(backend)) {
            outcome.agreement.push(plan.agreement(jobs, &moments)?);
        }
        points.push((jobs, moments));
    }
    if plan.backends.contains(&Backend::Native) {
        outcome.scaling = plan.scaling(&points)?;
    }
    bar.finish_and_clear();
    if args.json {
        outln!("{}", serde_json::to_string_pretty(&outcome)?);
    } else {
        print(&outcome)?;
    }
    Ok(())
}

/// One core, one cache: whoever moves in between measures the move.
fn stay_on_this_cpu() {
    // SAFETY: plain calls with a set of this size; a refusal changes nothing.
    unsafe {
        let cpu = libc::sched_getcpu();
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        if (0..libc::CPU_SETSIZE).contains(&cpu) {
            libc::CPU_SET(cpu as usize, &mut set);
            libc::sched_setaffinity(0, std::mem::size_of_val(&set), &set);
        }
    }
}

fn print(outcome: &Outcome) -> Result<()> {
    let about = if outcome.trained {
        ""
    } else {
        " (not trained: for speed only)"
    };
    outln!("model         {}{about}", outcome.model);
    outln!("native        {}", outcome.instructions);
    let runtime = outcome.onnxruntime.as_deref();
    outln!(
        "ONNX Runtime  {}",
        runtime.unwrap_or("not here: no comparison with the paper's network")
    );
    outln!(
        "mapping to {} CPUs; microseconds, medians but p99\n",
        outcome.cpus
    );
    let mut table = Table::new([
        "jobs",
        "tokens",
        "network",
        "whole",
        "p99",
        "tokenise",
        "encode",
        "map",
        "cheaper",
        "paper prints",
        "runs",
    ]);
    for row in &outcome.decisions {
        let us = |us: f64| format!("{us:.1}");
        let printed = row.paper_printed_us.filter(|_| row.contestant == PAPER);
        table.row([
            row.jobs.to_string(),
            format!("{:.0}", row.distinct),
            row.contestant.clone(),
            us(row.p50_us),
            us(row.p99_us),
            us(row.tokenise_us),
            us(row.encode_us),
            us(row.map_us),
            row.cheaper_than_paper
                .map_or(String::new(), |times| format!("{times:.1}x")),
            printed.map_or(String::new(), |us| format!("{us:.0}")),
            row.runs.to_string(),
        ]);
    }
    out::write(&table.to_string())?;
    outln!("");
    for agreement in &outcome.agreement {
        outln!(
            "{} jobs: eight bits pick {:.1} % and bf16 {:.1} % of the {} jobs that floats pick ({} moments)",
            agreement.jobs,
            100.0 * agreement.int8_top_m,
            100.0 * agreement.bf16_top_m,
            outcome.cpus,
            agreement.moments
        );
    }
    for scaling in &outcome.scaling {
        let points: Vec<String> = scaling
            .encode_us
            .iter()
            .map(|(n, us)| format!("{n}: {us:.0}"))
            .collect();
        outln!(
            "{} encoder, {}: jobs^{:.2} ({} µs)",
            scaling.backend,
            scaling.attention,
            scaling.exponent,
            points.join(", ")
        );
    }
    Ok(())
}
