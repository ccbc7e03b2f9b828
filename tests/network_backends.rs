//! The network in ONNX Runtime and in plain Rust: the same values, the same
//! picks. Skipped, with a line that says so, where ONNX Runtime is not
//! installed; scripts/test.sh installs it.

use proptest::collection::SizeRange;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use scx_temponet::agent::accel::{find_onnxruntime, OrtSearch};
use scx_temponet::policy::network::*;
use scx_temponet::policy::*;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

const TOLERANCE: f32 = 1e-4;
/// Scores that differ by less are as good as equal: backends may order them
/// either way. They are ten times closer to each other than this.
const CLEAR: f32 = 1e-5;
const CPUS: usize = 8;

fn library() -> Option<PathBuf> {
    match find_onnxruntime(&OrtSearch::here()) {
        Ok(Some((library, _))) => Some(library),
        Ok(None) => {
            println!("SKIPPED: ONNX Runtime is not installed (scripts/setup.sh ort)");
            None
        }
        // One that is there and broken is a failure, not an excuse.
        Err(error) => panic!("{error}"),
    }
}

fn model(seed: u64) -> Model {
    Model::untrained(Model::default_tokenizer(), Model::default_shape(), seed).unwrap()
}

fn open(library: &Path, model: &Model, kind: GraphKind) -> Ort {
    Ort::open(library, model, kind, Device::Cpu).unwrap()
}

fn any_jobs(size: impl Into<SizeRange>) -> impl Strategy<Value = Vec<Job>> {
    let times = (-20_000_000i64..300_000_000, -1_000_000i64..60_000_000);
    let rest = (0i64..20_000_000, 0u8..3, prop::option::of(0..CPUS as CpuId));
    let job =
        (times, rest).prop_map(
            |((deadline, remaining), (spread, criticality, last_cpu))| Job {
                deadline_ns: deadline,
                remaining_ns: remaining,
                spread_ns: spread,
                criticality,
                last_cpu,
                allowed: CpuMask::ALL,
            },
        );
    prop::collection::vec(job, size)
}

/// So many jobs, the same every time.
fn some_jobs(n: usize) -> Vec<Job> {
    let mut runner = TestRunner::deterministic();
    any_jobs(n).new_tree(&mut runner).unwrap().current()
}

fn assert_close(found: &[f32], expected: &[f32]) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        let off = (found - expected).abs();
        assert!(
            off <= TOLERANCE * expected.abs().max(1.0),
            "{found} {expected}"
        );
    }
}

/// Between the last that runs and the first that waits there is a difference.
fn is_clear_cut(scores: &[f32]) -> bool {
    let mut sorted = scores[1..].to_vec();
    sorted.sort_by(|a, b| b.total_cmp(a));
    match (sorted.get(CPUS - 1), sorted.get(CPUS)) {
        (Some(last_in), Some(first_out)) => last_in == first_out || last_in - first_out > CLEAR,
        _ => true,
    }
}

fn config(model: &Model) -> PolicyConfig {
    PolicyConfig {
        tokenizer: model.tokenizer().clone(),
        shield: ShieldMode::Off,
        ..PolicyConfig::default()
    }
}

fn situation(jobs: &[Job]) -> Situation<'_> {
    Situation {
        now_ns: 0,
        jobs,
        upcoming: &[],
        cpus: CpuMask::first(CPUS),
        share: 1.0,
        hold_ns: 100_000,
    }
}

#[test]
fn onnx_runtime_and_rust_say_the_same_and_pick_the_same() {
    let Some(library) = library() else { return };
    let model = model(1);
    let mut native = NetworkScorer::native(&model, Precision::Float);
    let mut ort = NetworkScorer::ort(&model, &library, Device::Cpu).unwrap();
    let (mut one, mut other) = (Decider::new(config(&model)), Decider::new(config(&model)));
    let compared = Cell::new(0);
    let compare = RefCell::new(|jobs: &[Job]| {
        let situation = situation(jobs);
        let first = one.decide(&mut native, &situation).clone();
        let second = other.decide(&mut ort, &situation).clone();
        assert_eq!(first.scored, second.scored);
        if !first.scored {
            return;
        }
        assert!(one.scores().iter().all(|score| score.is_finite()));
        assert_close(other.scores(), one.scores());
        if is_clear_cut(one.scores()) {
            let picks = |decision: &Decision| {
                let running = decision.assignment.iter().map(|(_, job)| job);
                running.collect::<BTreeSet<usize>>()
            };
            assert_eq!(picks(&first), picks(&second));
            compared.set(compared.get() + 1);
        }
    });
    for most in [40, 400] {
        // A runner counts its cases over all of its runs.
        let mut runner = TestRunner::new(ProptestConfig {
            failure_persistence: None,
            ..ProptestConfig::with_cases(60)
        });
        let check = |jobs: Vec<Job>| {
            (compare.borrow_mut())(&jobs);
            Ok(())
        };
        runner.run(&any_jobs(0..most), check).unwrap();
    }
    let many = some_jobs(5000);
    for n in [0, 1, 9, 1000, 5000] {
        (compare.borrow_mut())(&many[..n]);
    }
    let compared = compared.get();
    assert!(compared > 60, "only {compared} picks could be compared");
}

#[test]
fn the_dense_graph_says_what_the_multiset_does() {
    let Some(library) = library() else { return };
    let tokenizer = Model::default_tokenizer();
    let shape = Model::paper_shape(&tokenizer);
    let paper = Model::untrained(tokenizer, shape, 2).unwrap();
    for model in [model(2), paper] {
        let mut dense = open(&library, &model, GraphKind::Dense);
        let mut multiset = open(&library, &model, GraphKind::Multiset);
        let mut set = TokenSet::default();
        for (n, cpus) in [(0, 1), (0, 3), (1, 1), (70, 4), (400, 8)] {
            let jobs = some_jobs(n);
            model.tokenizer().tokenize(&jobs, 0, &mut set);
            let mut scores = vec![0.0; 1 + n];
            set.spread(multiset.forward(&set, cpus).unwrap(), &mut scores);
            let places = set.indices();
            let of_jobs = set.slots().iter().map(|&slot| places[slot as usize]);
            let rows = std::iter::repeat_n(0, cpus).chain(of_jobs);
            assert_close(&dense.forward_rows(rows).unwrap()[cpus - 1..], &scores);
        }
    }
}

#[test]
fn the_sparse_graph_says_what_the_native_backend_does() {
    let Some(library) = library() else { return };
    let tokenizer = Model::default_tokenizer().with_loads(5);
    let shape = Shape::new(&tokenizer, 24, 2, 3, 20).unwrap();
    let two_layers = Model::untrained(tokenizer, shape.with_pairs(true), 9).unwrap();
    for model in [model(8), two_layers] {
        let tokenizer = model.tokenizer();
        let mut sparse = open(&library, &model, GraphKind::Sparse);
        let mut dense = open(&library, &model, GraphKind::Multiset);
        let mut native = Native::new(model.weights(), Precision::Float);
        for n in [0, 1, 2, 7, 64, 250] {
            let mut jobs = some_jobs(n);
            jobs.sort_by_key(|job| job.deadline_ns);
            let mut rows = vec![Token::Idle { load: 0 }];
            rows.extend(jobs.iter().map(|job| tokenizer.token(job, 0)));
            let places = || rows.iter().map(|&token| tokenizer.index_of(token) as u32);
            for burst in [false, true] {
                let plan = SparsePlan::for_tasks(n, burst);
                let expected = native.forward_sparse(&rows, CPUS, &plan).to_vec();
                let found = sparse.forward_sparse(places(), CPUS, &plan).unwrap();
                assert_close(found, &expected);
                // Dropping makes a difference, so keeping all is no answer.
                let mut set = TokenSet::default();
                tokenizer.tokenize(&jobs, 0, &mut set);
                let mut all = vec![0.0; 1 + n];
                set.spread(dense.forward(&set, CPUS).unwrap(), &mut all);
                let off = found.iter().zip(&all).map(|(a, b)| (a - b).abs());
                assert_eq!(off.fold(0.0, f32::max) > TOLERANCE, n > 2, "{n}");
            }
        }
    }
}

#[test]
fn a_library_that_is_none_is_an_error_and_not_a_crash() {
    let model = model(3);
    let dir = tempfile::tempdir().unwrap();
    let missing = dir.path().join("libonnxruntime.so");
    let refusal = |path: &Path| match NetworkScorer::ort(&model, path, Device::Cpu) {
        Ok(_) => panic!("{} is no ONNX Runtime", path.display()),
        Err(error) => error.to_string(),
    };
    assert!(refusal(&missing).contains("libonnxruntime.so"));
    std::fs::write(&missing, "not a library").unwrap();
    assert!(refusal(&missing).contains("libonnxruntime.so"));
}

#[test]
fn where_cuda_cannot_be_had_the_cpu_takes_over() {
    let Some(library) = library() else { return };
    let model = model(4);
    let mut asked = Ort::open(&library, &model, GraphKind::Multiset, Device::Cuda).unwrap();
    let mut plain = open(&library, &model, GraphKind::Multiset);
    let mut set = TokenSet::default();
    model.tokenizer().tokenize(&[], 0, &mut set);
    assert_close(
        asked.forward(&set, 2).unwrap(),
        plain.forward(&set, 2).unwrap(),
    );
    assert_eq!(plain.device(), Device::Cpu);
}

#[test]
fn tokens_of_another_model_get_no_score() {
    let mut scorer = NetworkScorer::native(&model(5), Precision::Float);
    let jobs: Vec<Job> = (0..20)
        .map(|i| Job {
            deadline_ns: 20_000_000 - i * 100_000,
            remaining_ns: 1_000_000,
            spread_ns: 0,
            criticality: 0,
            last_cpu: None,
            allowed: CpuMask::ALL,
        })
        .collect();
    let mut decider = Decider::new(PolicyConfig {
        shield: ShieldMode::Off,
        ..PolicyConfig::default()
    });
    let decision = decider.decide(&mut scorer, &situation(&jobs)).clone();
    assert!(decision.scored);
    assert!(decider.scores().iter().all(|score| score.is_nan()));
    // And so the earliest deadlines run.
    let mut running: Vec<usize> = decision.assignment.iter().map(|(_, job)| job).collect();
    running.sort_unstable();
    assert_eq!(running, (12..20).collect::<Vec<_>>());
}

#[test]
fn sparse_attention_scores_every_job_whatever_their_order() {
    let model = model(6);
    let mut scorer = NetworkScorer::sparse(&model);
    let jobs = some_jobs(300);
    let mut decider = Decider::new(config(&model));
    decider.decide(&mut scorer, &situation(&jobs));
    let straight = decider.scores().to_vec();
    let mut turned = jobs.clone();
    turned.reverse();
    decider.decide(&mut scorer, &situation(&turned));
    let mut back = decider.scores()[1..].to_vec();
    back.reverse();
    assert_close(&back, &straight[1..]);
    assert!(straight.iter().all(|score| score.is_finite()));
}
