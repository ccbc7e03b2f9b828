use super::*;
use crate::policy::network::Model;
use crate::policy::Edf;
use crate::sim::time::SECOND;
use crate::train::env::Curriculum;
use crate::train::learner::OptimiserConfig;

/// Three jobs, two cores, and job i is worth i: whatever two are run, the
/// reward is the sum. The decomposition must find the worth of each.
#[test]
fn credit_for_a_set_finds_what_each_action_is_worth() {
    let tokens = Tokens {
        indices: vec![0, 10, 200, 700],
        counts: vec![2, 1, 1, 1],
    };
    let pairs = [[1, 2], [1, 3], [2, 3]];
    let transitions: Vec<Transition> = pairs
        .iter()
        .map(|pair| Transition {
            tokens: tokens.clone(),
            run: pair.to_vec(),
            reward: pair.iter().sum::<u32>() as f32,
            discount: 0.0,
            next: tokens.clone(),
            next_choices: vec![1, 2, 3],
        })
        .collect();
    for (credit, worth) in [(Credit::Sum, 1.0), (Credit::Mean, 2.0)] {
        let config = DqnConfig {
            credit,
            huber: 0.0,
            ..DqnConfig::default()
        };
        let mut learner = Learner::new(
            Model::default_shape(),
            &Model::default_tokenizer(),
            1,
            OptimiserConfig::default(),
        );
        let contexts: Vec<&Tokens> = transitions.iter().map(|t| &t.tokens).collect();
        for _ in 0..800 {
            learner.step(&contexts, 1e-3, |i, q, dq| {
                let t = &transitions[i];
                loss(t, target(t, q, q, &config), q, dq, &config)
            });
        }
        let q = &learner.q(&learner.weights, &[&tokens])[0];
        for job in 1..4 {
            assert!(
                (q[job] - worth * job as f32).abs() < 0.1,
                "{credit:?}: {q:?}"
            );
        }
    }
}

/// Double Q: chosen by one network, valued by the other, and as many as
/// there are cores.
#[test]
fn the_target_takes_the_best_set_of_the_fast_and_the_value_of_the_slow() {
    let tokens = Tokens {
        indices: vec![0, 4, 8, 9],
        counts: vec![2, 1, 1, 1],
    };
    let transition = Transition {
        tokens: tokens.clone(),
        run: vec![1],
        reward: 1.0,
        discount: 0.5,
        next: tokens,
        next_choices: vec![1, 2, 3],
    };
    let (fast, slow) = ([9.0, 1.0, 2.0, 3.0], [9.0, 30.0, 20.0, 10.0]);
    let config = DqnConfig::default();
    assert_eq!(target(&transition, &fast, &slow, &config), 1.0 + 0.5 * 15.0);
    let single = DqnConfig {
        double: false,
        ..config
    };
    assert_eq!(target(&transition, &fast, &slow, &single), 1.0 + 0.5 * 25.0);
}

#[test]
fn rewards_and_discounts_follow_the_clock() {
    let curriculum = Curriculum::default();
    let config = DqnConfig {
        beta: 0.0,
        ..DqnConfig::default()
    };
    let machine = curriculum.draw(&crate::policy::Tokenizer::default(), SECOND, 3);
    let counters = Counters::default();
    let all = gather(&machine, &mut Edf, &config, &counters, 0.0, 1);
    assert!(all.len() > 10);
    for transition in &all {
        assert!(transition.discount < 1.0 && transition.discount > 0.0);
        let cores = machine.set.cores;
        assert!(transition.run.len() <= cores);
    }
    let one_step = DqnConfig {
        steps: 1,
        ..config.clone()
    };
    let short = gather(&machine, &mut Edf, &one_step, &counters, 0.0, 1);
    let mean = |all: &[Transition]| all.iter().map(|t| t.discount).sum::<f32>() / all.len() as f32;
    assert!(mean(&short) > mean(&all), "five steps take longer than one");
}

#[test]
fn what_was_tried_often_gets_less_of_a_bonus() {
    let tokens = Tokens {
        indices: vec![0, 4, 8],
        counts: vec![1, 1, 1],
    };
    let transition = Transition {
        tokens: tokens.clone(),
        run: vec![1],
        reward: 0.0,
        discount: 0.0,
        next: tokens.clone(),
        next_choices: Vec::new(),
    };
    let mut counters = Counters::default();
    for _ in 0..3 {
        counters.count(&transition);
    }
    assert_eq!(counters.bonus(&tokens, 1, 1.0), 0.5);
    assert_eq!(counters.bonus(&tokens, 2, 1.0), 1.0);
}

#[test]
fn huber_is_a_square_inside_and_a_line_outside() {
    assert_eq!(huber(0.5, 1.0), (0.125, 0.5));
    assert_eq!(huber(-3.0, 1.0), (2.5, -1.0));
    assert_eq!(huber(-3.0, 0.0), (4.5, -3.0));
}
