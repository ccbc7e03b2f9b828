//! The native network against the textbook, on every kind of CPU there is here.

use super::*;
use crate::policy::network::reference::Reference;
use crate::policy::tests::{cases, plain_jobs};
use crate::policy::{Quantiser, SparsePlan, Tokenizer};
use proptest::prelude::*;

fn tokenizer() -> Tokenizer {
    let slack = Quantiser::log(100_000, 1_000_000_000, 16).unwrap();
    let work = Quantiser::log(100_000, 100_000_000, 4).unwrap();
    Tokenizer::new(slack, work, 2, 4).unwrap().with_loads(5)
}

fn weights(size: (usize, usize, usize, usize), seed: u64) -> Weights {
    let (width, layers, heads, hidden) = size;
    let shape = Shape::new(&tokenizer(), width, layers, heads, hidden).unwrap();
    let shape = shape.with_pairs(seed % 2 == 1);
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
        .filter_map(|isa| Native::for_isa(weights, Precision::Float, isa))
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
        let mut rows = vec![Token::Idle { load: 0 }];
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
    let mut native = Native::new(&weights, Precision::Float);
    let one = native.forward(&set, 1).to_vec();
    assert_ne!(native.forward(&set, 8), one);
}

/// Weights and inputs that eight bits hold exactly: whole numbers of which the
/// largest in each row and column is 127.
#[test]
fn eight_bits_add_up_exactly_where_nothing_needs_rounding() {
    let whole = |i: usize| ((i * 37) % 255) as f32 - 127.0;
    let (inputs, outputs, rows) = (31, 20, 9);
    let mut weights: Vec<f32> = (0..inputs * outputs).map(whole).collect();
    weights[..outputs].fill(127.0);
    let bias: Vec<f32> = (0..outputs).map(|i| i as f32).collect();
    let mut x = Rows::new(inputs);
    x.resize(rows);
    for row in 0..rows {
        let numbers = lanes::flat_mut(x.row_mut(row));
        for (i, number) in numbers[..inputs].iter_mut().enumerate() {
            *number = whole(row * inputs + i);
        }
        numbers[5] = -127.0;
    }
    let narrow_matrix = Int8Matrix::new(inputs, &weights, &bias, 1.0);
    for isa in Isa::here() {
        let kernels = Kernels::new(isa).unwrap();
        let (mut narrow, mut found) = (Int8Rows::default(), Rows::new(outputs));
        kernels.int8(&x, &narrow_matrix, &mut narrow, &mut found);
        for row in 0..rows {
            let numbers = x.numbers(row);
            for output in 0..outputs {
                let products = (0..inputs).map(|i| numbers[i] * weights[i * outputs + output]);
                let expected = products.sum::<f32>() + bias[output];
                let found = found.numbers(row)[output];
                assert!(
                    (found - expected).abs() <= 0.05,
                    "{isa:?}: {found} {expected}"
                );
            }
        }
    }
}

#[test]
fn eight_bits_say_the_same_on_every_cpu_and_nearly_what_floats_say() {
    let weights = weights((32, 2, 4, 64), 11);
    let mut set = TokenSet::default();
    tokenizer().tokenize(&many_jobs(600), 0, &mut set);
    let exact = Native::new(&weights, Precision::Float)
        .forward(&set, 8)
        .to_vec();
    let spread = exact.iter().fold(f32::MIN, |a, &b| a.max(b))
        - exact.iter().fold(f32::MAX, |a, &b| a.min(b));
    let mut first: Option<Vec<f32>> = None;
    for isa in Isa::here() {
        let mut native = Native::for_isa(&weights, Precision::Int8, isa).unwrap();
        let found = native.forward(&set, 8).to_vec();
        assert_ne!(found, exact);
        assert_close(&found, &exact, 0.05 * spread, isa);
        // A last bit in attention may move a number to the next of 255 steps.
        assert_close(
            &found,
            first.get_or_insert(found.clone()),
            0.01 * spread,
            isa,
        );
    }
}

/// Every kind of CPU, to the last bit: with AMX and without.
#[test]
fn bf16_says_the_same_on_every_cpu_and_nearly_what_floats_say() {
    let mut set = TokenSet::default();
    tokenizer().tokenize(&many_jobs(600), 0, &mut set);
    for (size, seed) in [
        ((128, 2, 4, 512), 13),
        ((20, 1, 2, 33), 14),
        ((16, 1, 1, 32), 15),
    ] {
        let weights = weights(size, seed);
        let exact = Native::new(&weights, Precision::Float)
            .forward(&set, 8)
            .to_vec();
        let spread = exact.iter().fold(f32::MIN, |a, &b| a.max(b))
            - exact.iter().fold(f32::MAX, |a, &b| a.min(b));
        for isa in Isa::here() {
            let mut native = Native::for_isa(&weights, Precision::Bf16, isa).unwrap();
            let found = native.forward(&set, 8).to_vec();
            assert_ne!(found, exact);
            assert_close(&found, &exact, 0.05 * spread, isa);
        }
    }
}

#[test]
fn bf16_products_are_the_same_to_the_last_bit_with_and_without_amx() {
    for (inputs, outputs, rows) in [(16, 16, 1), (33, 70, 17), (128, 512, 40), (512, 128, 16)] {
        let number = |i: usize| ((i * 7919) as f32 * 0.37).sin() * 3.0;
        let values: Vec<f32> = (0..inputs * outputs).map(number).collect();
        let bias: Vec<f32> = (0..outputs).map(number).collect();
        let w = Bf16Matrix::new(inputs, &values, &bias, 0.5);
        let mut x = Rows::new(inputs);
        x.resize(rows);
        for row in 0..rows {
            let numbers = lanes::flat_mut(x.row_mut(row));
            for (i, place) in numbers[..inputs].iter_mut().enumerate() {
                *place = number(row * inputs + i + 5);
            }
        }
        for relu in [false, true] {
            let mut expected = Rows::new(outputs);
            bf16::linear(&x, &w, &mut Bf16Rows::default(), &mut expected, relu);
            for row in 0..rows {
                let dot = |output: usize| -> f64 {
                    let terms = (0..inputs).map(|i| {
                        f64::from(x.numbers(row)[i]) * f64::from(values[i * outputs + output])
                    });
                    0.5 * (terms.sum::<f64>() + f64::from(bias[output]))
                };
                for output in 0..outputs {
                    let exact = if relu {
                        dot(output).max(0.0)
                    } else {
                        dot(output)
                    };
                    let found = f64::from(expected.numbers(row)[output]);
                    assert!(
                        (found - exact).abs() < 0.02 * inputs as f64,
                        "{found} {exact}"
                    );
                }
            }
            for isa in Isa::here() {
                let kernels = Kernels::new(isa).unwrap();
                let (mut narrow, mut found) = (Bf16Rows::default(), Rows::new(outputs));
                kernels.bf16(&x, &w, &mut narrow, &mut found, relu);
                for row in 0..rows {
                    let bits = |rows: &Rows| {
                        rows.numbers(row)
                            .iter()
                            .map(|v| v.to_bits())
                            .collect::<Vec<_>>()
                    };
                    assert_eq!(bits(&found), bits(&expected), "{isa:?}");
                }
            }
        }
    }
}

#[test]
fn sparse_attention_drops_what_the_paper_drops() {
    let tokenizer = tokenizer();
    for (size, n) in [
        ((32, 2, 4, 64), 150),
        ((12, 1, 2, 5), 90),
        ((32, 2, 4, 64), 7),
        ((20, 1, 2, 9), 1),
    ] {
        let weights = weights(size, 21);
        let mut jobs = many_jobs(n);
        jobs.sort_by_key(|job| job.deadline_ns);
        let mut rows = vec![Token::Idle { load: 0 }];
        rows.extend(jobs.iter().map(|job| tokenizer.token(job, 0)));
        for burst in [false, true] {
            let plan = SparsePlan::for_tasks(n, burst);
            let expected = Reference::new(&weights).sparse(&rows, 4, &plan);
            for mut native in networks(&weights) {
                let found = native.forward_sparse(&rows, 4, &plan).to_vec();
                assert_close(&found, &expected, 1e-5, native.isa());
                let dense = native.forward_rows(&rows, &vec![1; rows.len()], 4);
                assert_eq!(n > 1, dense != found, "only one job has nothing to drop");
            }
        }
    }
}
