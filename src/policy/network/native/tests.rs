//! The native network against the textbook, on every kind of CPU there is here.

use super::*;
use crate::policy::network::reference::Reference;
use crate::policy::tests::{cases, plain_jobs};
use crate::policy::{Quantiser, Tokenizer};
use proptest::prelude::*;

fn tokenizer() -> Tokenizer {
    let slack = Quantiser::log(100_000, 1_000_000_000, 16).unwrap();
    let work = Quantiser::log(100_000, 100_000_000, 4).unwrap();
    Tokenizer::new(slack, work, 2, 4).unwrap()
}

fn weights(size: (usize, usize, usize, usize), seed: u64) -> Weights {
    let (width, layers, heads, hidden) = size;
    let shape = Shape::new(&tokenizer(), width, layers, heads, hidden).unwrap();
    let mut weights = Weights::seeded(shape, seed);
    // Biases and gains that cannot be mistaken for none.
    for (i, value) in weights.values_mut().iter_mut().enumerate() {
        *value += 0.1 * ((i as f32 * 0.7).sin());
    }
    weights
}

/// Widths that fill panels and widths that do not; heads of odd width.
fn sizes() -> impl Strategy<Value = (usize, usize, usize, usize)> {
    prop_oneof![
        Just((32, 2, 4, 64)),
        Just((4, 1, 2, 1)),
        Just((12, 2, 4, 5)),
        Just((20, 3, 2, 17)),
        Just((48, 1, 3, 40)),
        Just((18, 2, 1, 33)),
    ]
}

fn networks(weights: &Weights) -> Vec<Native> {
    let networks: Vec<Native> = Isa::here()
        .into_iter()
        .filter_map(|isa| Native::for_isa(weights, isa))
        .collect();
    assert_eq!(networks[0].isa(), Isa::Plain);
    networks
}

fn assert_close(found: &[f32], expected: &[f32], tolerance: f32, isa: Isa) {
    assert_eq!(found.len(), expected.len());
    for (i, (found, expected)) in found.iter().zip(expected).enumerate() {
        let off = (found - expected).abs() / expected.abs().max(1.0);
        assert!(
            off <= tolerance,
            "{}: token {i}: {found} is not {expected}",
            isa.name()
        );
    }
}

proptest! {
    #![proptest_config(cases(24))]

    #[test]
    fn one_row_per_distinct_token_says_what_one_row_per_job_does(
        jobs in plain_jobs(120), cpus in 1usize..9, size in sizes(), seed in 0u64..1000,
    ) {
        let weights = weights(size, seed);
        let mut set = TokenSet::default();
        tokenizer().tokenize(&jobs, 0, &mut set);
        let each: Vec<Token> = (0..jobs.len()).map(|job| set.token_of_job(job)).collect();
        let expected = Reference::new(&weights).dense(&each, cpus);
        let mut scores = vec![0.0; 1 + jobs.len()];
        for mut native in networks(&weights) {
            set.spread(native.forward(&set, cpus), &mut scores);
            assert_close(&scores, &expected, 1e-5, native.isa());
        }
    }

    #[test]
    fn permuting_the_rows_permutes_the_answers(
        jobs in plain_jobs(60), turn in 0usize..60, seed in 0u64..1000,
    ) {
        let weights = weights((32, 2, 4, 64), seed);
        let tokenizer = tokenizer();
        let mut rows = vec![Token::Idle];
        rows.extend(jobs.iter().map(|job| tokenizer.token(job, 0)));
        let counts = vec![1; rows.len()];
        for mut native in networks(&weights) {
            let mut straight = native.forward_rows(&rows, &counts, 4).to_vec();
            let turn = turn % rows.len();
            let mut turned = rows.clone();
            turned.rotate_left(turn);
            straight.rotate_left(turn);
            let found = native.forward_rows(&turned, &counts, 4).to_vec();
            assert_close(&found, &straight, 1e-5, native.isa());
        }
    }
}

/// As `plain_jobs`, but as many as one likes without a thousand draws to shrink.
fn many_jobs(n: usize) -> Vec<crate::policy::Job> {
    (0..n as i64)
        .map(|i| {
            crate::policy::tests::job(
                i * 7_919_003 % 90_000_000 - 5_000_000,
                i * 104_729 % 9_000_000,
            )
        })
        .collect()
}

#[test]
fn any_number_of_jobs_from_none_to_thousands() {
    let weights = weights((32, 2, 4, 64), 3);
    let tokenizer = tokenizer();
    let mut set = TokenSet::default();
    let mut networks = networks(&weights);
    for n in [5000, 0, 1, 2, 15, 16, 17, 600] {
        let jobs = many_jobs(n);
        tokenizer.tokenize(&jobs, 0, &mut set);
        // The dense textbook is quadratic: one row per token, with its count.
        let expected = Reference::new(&weights).counted(set.tokens(), set.counts(), 8);
        for native in &mut networks {
            let isa = native.isa();
            assert_close(native.forward(&set, 8), &expected, 1e-5, isa);
        }
    }
}

#[test]
fn more_cpus_change_the_answer() {
    let weights = weights((32, 2, 4, 64), 5);
    let mut set = TokenSet::default();
    tokenizer().tokenize(&many_jobs(20), 0, &mut set);
    let mut native = Native::new(&weights);
    let one = native.forward(&set, 1).to_vec();
    assert_ne!(native.forward(&set, 8), one);
}
