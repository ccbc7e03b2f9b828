//! How long decisions take: every contestant on the same moments, in turns, so
//! that a busy machine is as unkind to one as to the other.

use super::decision::{Decision, Encoder, Stages};
use super::moments::{Moment, CPUS};
use crate::policy::network::{
    top_m_agreement, Device, GraphKind, Model, Native, Ort, OrtError, Precision,
};
use serde::Serialize;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The paper's network over more rows than this takes gigabytes and seconds.
const MOST_PAPER_ROWS: usize = 1000;
/// End to end for 64, 200 and 600 tasks, on the paper's embedded CPU.
const PAPER_US: [(usize, f64); 3] = [(64, 105.0), (200, 185.0), (600, 375.0)];

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Backend {
    Native,
    NativeInt8,
    NativeBf16,
    Ort,
}

/// ONNX Runtime, where there is one.
#[derive(Debug, Clone)]
pub struct Runtime {
    pub library: PathBuf,
    pub device: Device,
}

#[derive(Debug, Serialize)]
pub struct Row {
    pub jobs: usize,
    /// Distinct tokens, idle included: the mean over the moments.
    pub distinct: f64,
    pub contestant: String,
    pub runs: usize,
    pub p50_us: f64,
    pub p99_us: f64,
    /// Medians of the stages.
    pub tokenise_us: f64,
    pub encode_us: f64,
    pub map_us: f64,
    /// How many times the paper's network in ONNX Runtime takes as long.
    pub cheaper_than_paper: Option<f64>,
    /// What the paper prints for its own.
    pub paper_printed_us: Option<f64>,
}

#[derive(Debug, Serialize)]
pub struct Agreement {
    pub jobs: usize,
    pub moments: usize,
    /// Share of the jobs on the CPUs that floats and fewer bits have in common.
    pub int8_top_m: f64,
    pub bf16_top_m: f64,
}

#[derive(Debug, Serialize)]
pub struct Scaling {
    pub backend: &'static str,
    pub attention: String,
    pub encode_us: Vec<(usize, f64)>,
    /// Slope of ln(time) over ln(jobs).
    pub exponent: f64,
}

pub struct Trial<'a> {
    pub model: &'a Model,
    pub backends: &'a [Backend],
    pub runtime: Option<&'a Runtime>,
    pub seed: u64,
    /// For every number of jobs.
    pub time: Duration,
    /// Told of every measurement before it begins.
    pub begin: &'a dyn Fn(String),
}

pub const PAPER: &str = "paper, dense, ort";

impl Trial<'_> {
    /// How often `begin` is called for these numbers of jobs.
    pub fn measurements(&self, numbers: &[u32]) -> u64 {
        let few = numbers.iter().filter(|&&n| n as usize <= MOST_PAPER_ROWS);
        let curves = match (self.backends.contains(&Backend::Native), self.runtime) {
            (false, _) => 0,
            (true, None) => numbers.len(),
            (true, Some(_)) => numbers.len() + few.count(),
        };
        (numbers.len() + curves) as u64
    }

    fn native(&self, precision: Precision) -> Native {
        Native::new(self.model.weights(), precision)
    }

    fn contestants(&self, jobs: usize) -> Result<Vec<(String, Decision)>, OrtError> {
        let tokenizer = self.model.tokenizer();
        let decision = |encoder| Decision::new(tokenizer, encoder);
        let mut contestants = Vec::new();
        if let Some(runtime) = self.runtime.filter(|_| jobs <= MOST_PAPER_ROWS) {
            let shape = Model::paper_shape(tokenizer);
            if let Ok(paper) = Model::untrained(tokenizer.clone(), shape, self.seed) {
                let ort = Ort::open(&runtime.library, &paper, GraphKind::Dense, Device::Cpu)?;
                contestants.push((PAPER.to_owned(), decision(Encoder::OrtDense(ort))));
            }
        }
        for backend in self.backends {
            let (name, encoder) = match (backend, self.runtime) {
                (Backend::Native, _) => ("native", Encoder::Native(self.native(Precision::Float))),
                (Backend::NativeInt8, _) => {
                    ("native-int8", Encoder::Native(self.native(Precision::Int8)))
                }
                (Backend::NativeBf16, _) => {
                    ("native-bf16", Encoder::Native(self.native(Precision::Bf16)))
                }
                (Backend::Ort, None) => continue,
                (Backend::Ort, Some(runtime)) => {
                    let device = runtime.device;
                    let ort = Ort::open(&runtime.library, self.model, GraphKind::Multiset, device)?;
                    let name = match ort.device() {
                        Device::Cpu => "ort",
                        Device::Cuda => "ort, cuda",
                    };
                    (name, Encoder::Ort(ort))
                }
            };
            contestants.push((name.to_owned(), decision(encoder)));
        }
        Ok(contestants)
    }

    /// `moments` all have so many jobs.
    pub fn rows(&self, jobs: usize, moments: &[Moment]) -> Result<Vec<Row>, OrtError> {
        let mut contestants = self.contestants(jobs)?;
        (self.begin)(format!("{jobs} jobs"));
        let times = race(&mut contestants, moments, self.time)?;
        let distinct = contestants
            .iter()
            .map(|(_, decision)| decision.mean_distinct())
            .fold(0.0, f64::max);
        let whole = |stages: &Vec<Stages>| percentile(stages, 0.5, Stages::whole);
        let paper = contestants.iter().position(|(name, _)| name == PAPER);
        let paper_us = paper.map(|place| whole(&times[place]));
        let rows = contestants
            .iter()
            .zip(&times)
            .map(|((name, _), stages)| Row {
                jobs,
                distinct,
                contestant: name.clone(),
                runs: stages.len(),
                p50_us: whole(stages),
                p99_us: percentile(stages, 0.99, Stages::whole),
                tokenise_us: percentile(stages, 0.5, |stages| stages.tokenise),
                encode_us: percentile(stages, 0.5, |stages| stages.encode),
                map_us: percentile(stages, 0.5, |stages| stages.map),
                cheaper_than_paper: paper_us.map(|paper| paper / whole(stages)),
                paper_printed_us: PAPER_US.iter().find(|(n, _)| *n == jobs).map(|(_, us)| *us),
            });
        Ok(rows.collect())
    }

    /// How often fewer bits pick the same jobs as floats.
    pub fn agreement(&self, jobs: usize, moments: &[Moment]) -> Result<Agreement, OrtError> {
        let mut floats = self.decision(Encoder::Native(self.native(Precision::Float)));
        let mut narrow = [Precision::Int8, Precision::Bf16]
            .map(|precision| self.decision(Encoder::Native(self.native(precision))));
        let mut shared = [0.0; 2];
        for moment in moments {
            floats.decide(moment)?;
            for (narrow, shared) in narrow.iter_mut().zip(&mut shared) {
                narrow.decide(moment)?;
                *shared += top_m_agreement(&floats.scores()[1..], &narrow.scores()[1..], CPUS);
            }
        }
        let [int8_top_m, bf16_top_m] = shared.map(|sum| sum / moments.len().max(1) as f64);
        Ok(Agreement {
            jobs,
            moments: moments.len(),
            int8_top_m,
            bf16_top_m,
        })
    }

    /// The encoder alone, over more and more jobs, with each kind of attention:
    /// in plain Rust, then in ONNX Runtime where there is one.
    pub fn scaling(&self, points: &[(usize, Vec<Moment>)]) -> Result<Vec<Scaling>, OrtError> {
        let native = || self.native(Precision::Float);
        let mut scaling = self.curves(
            "native",
            [
                ("multiset", Encoder::Native(native())),
                ("dense", Encoder::NativeDense(native())),
                ("sparse", Encoder::NativeSparse(native())),
            ],
            points.iter(),
        )?;
        if let Some(runtime) = self.runtime {
            let ort = |kind| Ort::open(&runtime.library, self.model, kind, runtime.device);
            let encoders = [
                ("multiset", Encoder::Ort(ort(GraphKind::Multiset)?)),
                ("dense", Encoder::OrtDense(ort(GraphKind::Dense)?)),
                ("sparse", Encoder::OrtSparse(ort(GraphKind::Sparse)?)),
            ];
            // Logits of thousands of jobs, block by block, take gigabytes.
            let few = points.iter().filter(|(jobs, _)| *jobs <= MOST_PAPER_ROWS);
            scaling.extend(self.curves("ort", encoders, few)?);
        }
        Ok(scaling)
    }

    fn curves<'p>(
        &self,
        backend: &'static str,
        encoders: [(&'static str, Encoder); 3],
        points: impl Iterator<Item = &'p (usize, Vec<Moment>)>,
    ) -> Result<Vec<Scaling>, OrtError> {
        let mut contestants: Vec<(String, Decision)> = encoders
            .into_iter()
            .map(|(name, encoder)| (name.to_owned(), self.decision(encoder)))
            .collect();
        let mut curves = [const { Vec::new() }; 3];
        for (jobs, moments) in points {
            (self.begin)(format!("{jobs} jobs, {backend} encoder"));
            let times = race(&mut contestants, moments, self.time)?;
            for (curve, stages) in curves.iter_mut().zip(&times) {
                curve.push((*jobs, percentile(stages, 0.5, |stages| stages.encode)));
            }
        }
        let scaling = contestants.into_iter().zip(curves);
        let scaling = scaling.filter_map(|((attention, _), encode_us)| {
            Some(Scaling {
                backend,
                attention,
                exponent: exponent(&encode_us)?,
                encode_us,
            })
        });
        Ok(scaling.collect())
    }

    fn decision(&self, encoder: Encoder) -> Decision {
        Decision::new(self.model.tokenizer(), encoder)
    }
}

/// Times of each contestant, in turns over the moments until time is up, after
/// a round for warm-up. Slow ones need not see every moment.
fn race(
    contestants: &mut [(String, Decision)],
    moments: &[Moment],
    time: Duration,
) -> Result<Vec<Vec<Stages>>, OrtError> {
    /// Between looks at the clock.
    const STEP: usize = 4;
    let start = Instant::now();
    for step in moments.chunks(STEP) {
        for moment in step {
            for (_, decision) in contestants.iter_mut() {
                decision.decide(moment)?;
            }
        }
        if start.elapsed() >= time {
            break;
        }
    }
    let mut times = vec![Vec::new(); contestants.len()];
    let start = Instant::now();
    for (i, moment) in moments.iter().cycle().enumerate() {
        for ((_, decision), times) in contestants.iter_mut().zip(&mut times) {
            times.push(decision.decide(moment)?);
        }
        if i % STEP == STEP - 1 && start.elapsed() >= time {
            break;
        }
    }
    Ok(times)
}

fn percentile(stages: &[Stages], share: f64, of: impl Fn(&Stages) -> Duration) -> f64 {
    let mut times: Vec<Duration> = stages.iter().map(of).collect();
    times.sort_unstable();
    let place = (share * times.len().saturating_sub(1) as f64).round() as usize;
    times
        .get(place)
        .map_or(0.0, |time| time.as_secs_f64() * 1e6)
}

/// Least squares in logarithms; none for fewer than two points.
fn exponent(points: &[(usize, f64)]) -> Option<f64> {
    let logs: Vec<(f64, f64)> = points
        .iter()
        .map(|&(n, us)| ((n as f64).ln(), us.ln()))
        .collect();
    let count = logs.len() as f64;
    let (mean_x, mean_y) = (
        logs.iter().map(|(x, _)| x).sum::<f64>() / count,
        logs.iter().map(|(_, y)| y).sum::<f64>() / count,
    );
    let across: f64 = logs.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    let along: f64 = logs.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
    (along > 0.0).then(|| across / along)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exponent_of_a_power_law_is_its_power() {
        let points: Vec<(usize, f64)> = [10, 100, 1000]
            .map(|n| (n, 3.0 * (n as f64).powf(1.5)))
            .to_vec();
        assert!((exponent(&points).unwrap() - 1.5).abs() < 1e-9);
        assert_eq!(exponent(&points[..1]), None);
    }

    #[test]
    fn percentiles_are_of_the_sorted_times() {
        let stages: Vec<Stages> = (0..101)
            .map(|i| Stages {
                encode: Duration::from_micros((i * 37) % 101),
                ..Stages::default()
            })
            .collect();
        assert!((percentile(&stages, 0.5, Stages::whole) - 50.0).abs() < 1e-6);
        assert!((percentile(&stages, 0.99, Stages::whole) - 99.0).abs() < 1e-6);
    }
}
