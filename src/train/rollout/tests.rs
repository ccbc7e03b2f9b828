use super::*;
use crate::policy::{Edf, PolicyConfig, ShieldMode};
use crate::sim::engine::Options;
use crate::sim::task::TaskSet;

/// Two jobs and room for one: the short one lets a third be met as well.
#[test]
fn the_choice_that_meets_more_deadlines_is_worth_more() {
    let once = |name: &str, wcet_ms: u64, deadline_ms: u64, offset_ms: u64| Task {
        deadline_ns: deadline_ms * MS,
        offset_ns: offset_ms * MS,
        ..Task::periodic(name, 1000 * MS, wcet_ms * MS)
    };
    let machine = TrainingMachine {
        set: TaskSet {
            name: "t".into(),
            cores: 1,
            horizon_ns: 900 * MS,
            seed: 1,
            modes: Vec::new(),
            tasks: vec![
                once("long", 90, 100, 0),
                once("short", 10, 100, 0),
                once("later", 80, 90, 10),
            ],
        },
        options: Options::new(Semantics::Abort),
        policy: PolicyConfig {
            shield: ShieldMode::Off,
            ..PolicyConfig::default()
        },
        load_unknown: 0.0,
    };
    let config = RolloutConfig {
        tried: 1e9,
        wander: 0.0,
        early: 0.0,
        ..RolloutConfig::default()
    };
    let mut samples = Vec::new();
    explore(&machine, &mut Edf, &config, 1, &mut samples);
    let tokenizer = &machine.policy.tokenizer;
    let first = &samples[0];
    assert_eq!(first.worth.len(), 2);
    let work = |slot: u32| {
        let index = first.tokens.indices[slot as usize];
        match tokenizer.token_at(index as usize) {
            crate::policy::Token::Job { work, .. } => work,
            crate::policy::Token::Idle { .. } => panic!("idle was tried"),
        }
    };
    let best = first
        .worth
        .iter()
        .max_by(|a, b| a.1.total_cmp(&b.1))
        .unwrap();
    let worst = first
        .worth
        .iter()
        .min_by(|a, b| a.1.total_cmp(&b.1))
        .unwrap();
    assert!(work(best.0) < work(worst.0));
    // Short and later are met and long is missed, against long alone.
    assert!(best.1 - worst.1 > 0.5, "{first:?}");
}

#[test]
fn only_differences_count_and_their_slope_is_right() {
    for temper in [0.0, 2.0] {
        check_slope(temper);
    }
}

fn check_slope(temper: f32) {
    let sample = Sample {
        tokens: Tokens::default(),
        worth: vec![(1, 5.0), (2, 3.0), (3, 4.5)],
    };
    let q = [0.0, 105.1, 103.0, 104.0];
    let mut dq = [0.0; 4];
    let at = loss(&sample, temper, &q, &mut dq);
    let mut unused = [0.0; 4];
    // Scores that say what the choices are worth cannot be bettered.
    let per = if temper > 0.0 { temper } else { 1.0 };
    let ideal = [0.0, 5.0, 3.0, 4.5].map(|worth| 7.0 + worth / per);
    let least = loss(&sample, temper, &ideal, &mut unused);
    assert!(least < at, "{least} {at}");
    assert!(unused.iter().all(|slope| slope.abs() < 1e-5), "{unused:?}");
    for slot in 0..4 {
        let mut moved = q;
        moved[slot] += 0.01;
        let above = loss(&sample, temper, &moved, &mut unused);
        moved[slot] -= 0.02;
        let below = loss(&sample, temper, &moved, &mut unused);
        assert!(((above - below) / 0.02 - dq[slot]).abs() < 1e-2, "{slot}");
    }
}
