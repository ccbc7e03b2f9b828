//! Scratch: policies over tournament sets in the simulator.
use rayon::prelude::*;
use scx_temponet::policy::{self, PolicyConfig};
use scx_temponet::sim::engine::{Knowledge, Options, Record, Sim};
use scx_temponet::sim::metrics::Metrics;
use scx_temponet::sim::policies::{find, Decided, Policy};
use scx_temponet::sim::task::{Semantics, TaskSet};
use scx_temponet::sim::workload::tournament::{draw, Change, Declared, Options as Draw};

fn run(set: &TaskSet, policy: &mut dyn Policy, knowledge: Knowledge) -> f64 {
    let mut options = Options::new(Semantics::Continue);
    options.knowledge = knowledge;
    let mut sim = Sim::new(set, set.cores, options, Record::default());
    policy.start(set, set.cores);
    sim.run(policy);
    Metrics::of(&sim.tally, set.cores, set.horizon_ns).compliance * 100.0
}

/// Best fixed choice: the subset by mean load with the most jobs, run by EDF.
fn best_fixed(set: &TaskSet) -> f64 {
    let judged: Vec<f64> = set
        .tasks
        .iter()
        .map(|t| {
            if t.name.starts_with("hog") {
                return 0.0;
            }
            let from = t.offset_ns;
            let to = t.end_ns.unwrap_or(set.horizon_ns).min(set.horizon_ns);
            ((to.saturating_sub(from)) as f64 / t.period_ns as f64).ceil()
        })
        .collect();
    let all: f64 = judged.iter().sum();
    let mut best: f64 = 0.0;
    for fill in [1.0, 0.99, 0.97, 0.94, 0.9, 0.85] {
        let cap = fill * set.cores as f64;
        let mut ids: Vec<usize> = (0..set.tasks.len()).filter(|&i| judged[i] > 0.0).collect();
        let load = |i: usize| set.tasks[i].utilisation() * set.tasks[i].execution.mean_share();
        ids.sort_by(|&a, &b| (judged[b] / load(b)).total_cmp(&(judged[a] / load(a))));
        let half = set.horizon_ns / 2;
        let mut used = [0.0f64; 2];
        let mut chosen = Vec::new();
        for &i in &ids {
            let t = &set.tasks[i];
            let in1 = t.offset_ns < half;
            let in2 = t.end_ns.is_none_or(|e| e > half);
            let l = load(i);
            if (!in1 || used[0] + l <= cap) && (!in2 || used[1] + l <= cap) {
                if in1 {
                    used[0] += l
                }
                if in2 {
                    used[1] += l
                }
                chosen.push(i);
            }
        }
        let mut sub = set.clone();
        sub.tasks = chosen.iter().map(|&i| set.tasks[i].clone()).collect();
        if sub.tasks.is_empty() {
            continue;
        }
        let c = run(
            &sub,
            &mut *(find("plain-edf").unwrap().make)(),
            Knowledge::Known,
        ) / 100.0;
        let mine: f64 = chosen.iter().map(|&i| judged[i]).sum();
        best = best.max(c * mine / all * 100.0);
    }
    best
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let cores: usize = args[1].parse().unwrap();
    let (low, high): (f64, f64) = (args[2].parse().unwrap(), args[3].parse().unwrap());
    let (from, to): (u64, u64) = (args[4].parse().unwrap(), args[5].parse().unwrap());
    let net = args.get(6).is_some_and(|a| a == "net");
    let names = ["plain-edf", "rm", "edf", "mine", "best"];
    let rows: Vec<(u64, String, Vec<f64>)> = (from..to)
        .into_par_iter()
        .filter_map(|seed| {
            let options = Draw {
                cores: Some(cores),
                load: Some((low, high)),
                critical: Some(false),
                hogs: Some(0),
                declared: Some(if seed % 2 == 0 {
                    Declared::Exactly
                } else {
                    Declared::Generously
                }),
                change: if seed % 4 < 3 {
                    Some(Change::None)
                } else {
                    None
                },
                deadlines: match std::env::var("DL").as_deref() {
                    Ok("p") => Some(scx_temponet::sim::workload::tournament::Deadlines::Period),
                    Ok("d") => {
                        Some(scx_temponet::sim::workload::tournament::Deadlines::BeforePeriod)
                    }
                    _ => None,
                },
                times: match std::env::var("TIMES").as_deref() {
                    Ok("c") => Some(scx_temponet::sim::workload::tournament::Times::Constant),
                    Ok("u") => Some(scx_temponet::sim::workload::tournament::Times::Uniform),
                    _ => None,
                },
                ..Draw::default()
            };
            let drawn = draw(&options, seed);
            let set = &drawn.set;
            let mut row: Vec<f64> = ["plain-edf", "rm", "edf"]
                .iter()
                .map(|n| run(set, &mut *(find(n).unwrap().make)(), Knowledge::History))
                .collect();
            let mut mine: Box<dyn Policy> = match net {
                true => (find("temponet").unwrap().make)(),
                false => Box::new(Decided::for_machine(PolicyConfig::default(), policy::Edf)),
            };
            row.push(run(set, &mut *mine, Knowledge::History));
            row.push(best_fixed(set));
            Some((seed, drawn.knobs.describe(), row))
        })
        .collect();
    let n = rows.len() as f64;
    for (i, name) in names.iter().enumerate() {
        let mean = rows.iter().map(|r| r.2[i]).sum::<f64>() / n;
        let below = rows.iter().filter(|r| r.2[3] < r.2[i] - 0.5).count();
        println!(
            "{name:>10} {mean:8.3}  mine below by >0.5: {below} of {}",
            rows.len()
        );
    }
    let mut worst: Vec<_> = rows
        .iter()
        .map(|r| (r.2[3] - r.2[..3].iter().cloned().fold(0.0, f64::max), r))
        .collect();
    worst.sort_by(|a, b| a.0.total_cmp(&b.0));
    for (d, r) in worst.iter().take(8) {
        println!(
            "{d:7.2} seed {} {:?} {}",
            r.0,
            r.2.iter()
                .map(|x| (x * 10.0).round() / 10.0)
                .collect::<Vec<_>>(),
            r.1
        );
    }
}
