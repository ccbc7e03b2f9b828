//! Several policies on identical task sets, in parallel, with the same answer
//! whatever the number of threads: sets are independent and results keep their order.

use rayon::prelude::*;
use serde::Serialize;

use super::engine::{Options, Record, Sim};
use super::metrics::Metrics;
use super::oracle;
use super::policies::Policy;
use super::stats::{paired, Paired, Summary};
use super::task::TaskSet;

/// A policy to compare: what it is called and how to make a fresh one.
pub struct Contestant<'a> {
    pub name: String,
    pub make: &'a (dyn Fn() -> Box<dyn Policy> + Sync),
}

/// One policy over all sets.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    pub policy: String,
    pub compliance: Option<Summary>,
    pub pitmd: Option<Summary>,
    /// Share of the runs without a mission failure.
    pub success_rate: f64,
    /// Jobs that were aborted or not done at the end; with any, the response time is a
    /// lower bound.
    pub unfinished: Option<Summary>,
    pub response_ms: Option<Summary>,
    pub lateness_p95_ms: Option<Summary>,
    pub lateness_p99_ms: Option<Summary>,
    pub migrations: Option<Summary>,
    pub preemptions: Option<Summary>,
    pub utilisation: Option<Summary>,
    /// Compliance against the first policy, set by set; absent for the first.
    pub against_first: Option<Paired>,
    pub sets: Vec<Metrics>,
}

/// The most that any policy could have met, over the sets it could be computed for.
#[derive(Clone, Debug, Serialize)]
pub struct Ceiling {
    /// "exact" or "bound".
    pub kind: oracle::OracleKind,
    pub compliance: Summary,
    pub sets: Vec<f64>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    pub workload: String,
    pub cores: usize,
    pub tasks: usize,
    pub sets: usize,
    pub seed: u64,
    pub options: Options,
    pub outcomes: Vec<Outcome>,
    pub oracle: Option<Ceiling>,
}

/// What to compare, on what, and how to tell how far it is.
pub struct ComparisonPlan<'a> {
    pub workload: String,
    pub seed: u64,
    pub sets: usize,
    /// Makes the set of this number; called from several threads.
    pub set: &'a (dyn Fn(usize) -> TaskSet + Sync),
    pub contestants: Vec<Contestant<'a>>,
    pub options: Options,
    pub with_oracle: bool,
    /// Called once per finished run.
    pub tick: &'a (dyn Fn() + Sync),
}

pub fn run(plan: &ComparisonPlan) -> Comparison {
    let per_set: Vec<(Vec<Metrics>, Option<oracle::Best>, usize, usize)> = (0..plan.sets)
        .into_par_iter()
        .map(|index| {
            let set = (plan.set)(index);
            let metrics = plan
                .contestants
                .iter()
                .map(|contestant| {
                    let mut sim = Sim::new(&set, set.cores, plan.options, Record::default());
                    sim.run((contestant.make)().as_mut());
                    (plan.tick)();
                    Metrics::of(&sim.tally, set.cores, set.horizon_ns)
                })
                .collect();
            let best = if plan.with_oracle {
                let best = oracle::best(&set, plan.options.semantics);
                (plan.tick)();
                best
            } else {
                None
            };
            (metrics, best, set.cores, set.tasks.len())
        })
        .collect();
    let column = |i: usize| per_set.iter().map(|s| s.0[i].clone()).collect::<Vec<_>>();
    let mut outcomes: Vec<Outcome> = plan
        .contestants
        .iter()
        .enumerate()
        .map(|(i, contestant)| summarise(contestant.name.clone(), column(i)))
        .collect();
    let first = compliances(&outcomes[0].sets);
    for outcome in outcomes.iter_mut().skip(1) {
        outcome.against_first = paired(&compliances(&outcome.sets), &first);
    }
    Comparison {
        workload: plan.workload.clone(),
        cores: per_set.first().map_or(0, |s| s.2),
        tasks: per_set.first().map_or(0, |s| s.3),
        sets: plan.sets,
        seed: plan.seed,
        options: plan.options,
        outcomes,
        oracle: ceiling(&per_set.iter().map(|s| s.1).collect::<Vec<_>>()),
    }
}

fn compliances(sets: &[Metrics]) -> Vec<f64> {
    sets.iter().map(|m| m.compliance).collect()
}

fn summarise(policy: String, sets: Vec<Metrics>) -> Outcome {
    let over = |f: &dyn Fn(&Metrics) -> f64| {
        let values: Vec<f64> = sets.iter().map(f).collect();
        Summary::of(&values)
    };
    let critical: Vec<f64> = sets.iter().filter_map(|m| m.pitmd).collect();
    let successes = sets.iter().filter(|m| m.success).count();
    Outcome {
        policy,
        compliance: over(&|m| m.compliance),
        pitmd: Summary::of(&critical),
        success_rate: successes as f64 / sets.len().max(1) as f64,
        unfinished: over(&|m| m.unfinished as f64),
        response_ms: over(&|m| m.response_ms),
        lateness_p95_ms: over(&|m| m.lateness_p95_ms),
        lateness_p99_ms: over(&|m| m.lateness_p99_ms),
        migrations: over(&|m| m.migrations.unwrap_or(0) as f64),
        preemptions: over(&|m| m.preemptions.unwrap_or(0) as f64),
        utilisation: over(&|m| m.utilisation.unwrap_or(0.0)),
        against_first: None,
        sets,
    }
}

/// Only when every set has one; a mean over the easy sets would mislead.
fn ceiling(bests: &[Option<oracle::Best>]) -> Option<Ceiling> {
    let all: Option<Vec<oracle::Best>> = bests.iter().copied().collect();
    let all = all?;
    let sets: Vec<f64> = all.iter().map(oracle::Best::compliance).collect();
    let exact = all.iter().all(|b| b.kind == oracle::OracleKind::Exact);
    Some(Ceiling {
        kind: if exact {
            oracle::OracleKind::Exact
        } else {
            oracle::OracleKind::Bound
        },
        compliance: Summary::of(&sets)?,
        sets,
    })
}
