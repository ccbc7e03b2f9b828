use super::*;

fn any_quantiser(levels: impl Strategy<Value = usize>) -> impl Strategy<Value = Quantiser> {
    (levels, 0..3, 1i64..10_000_000, 2i64..1000).prop_map(|(levels, scheme, width, ratio)| {
        match scheme {
            0 => Quantiser::uniform(width, levels),
            1 => Quantiser::log(width, width * ratio, levels),
            _ => {
                let samples: Vec<i64> = (0..2000).map(|i| i * i * width % 1_000_000_007).collect();
                Quantiser::kmeans(&samples, levels).or(Quantiser::uniform(width, levels))
            }
        }
        .unwrap()
    })
}

fn any_tokenizer() -> impl Strategy<Value = Tokenizer> {
    (
        any_quantiser(8usize..=256),
        any_quantiser(1usize..=64),
        1u8..4,
        1u8..=4,
    )
        .prop_map(|(slack, work, classes, doubts)| {
            Tokenizer::new(slack, work, classes, doubts).unwrap()
        })
}

fn slack_bin(token: Token) -> u16 {
    match token {
        Token::Job { slack, .. } => slack,
        Token::Idle { .. } => panic!("a job has no idle token"),
    }
}

proptest! {
    #[test]
    fn bins_never_fall_as_the_value_rises(
        quantiser in any_quantiser(1usize..=256), a in any_time(), b in any_time(),
    ) {
        let (low, high) = (a.min(b), a.max(b));
        prop_assert!(quantiser.bin(low) <= quantiser.bin(high));
        prop_assert!(quantiser.bin(high) < quantiser.levels());
    }

    #[test]
    fn urgency_never_falls_as_slack_falls_and_late_jobs_have_a_bin_of_their_own(
        tokenizer in any_tokenizer(), a in any_job(4), b in any_job(4), now in any_time(),
    ) {
        let (bin_a, bin_b) = (slack_bin(tokenizer.token(&a, now)), slack_bin(tokenizer.token(&b, now)));
        if a.slack(now) <= b.slack(now) {
            prop_assert!(bin_a <= bin_b);
        }
        prop_assert_eq!(bin_a == 0, a.slack(now).is_hopeless());
    }

    #[test]
    fn every_token_has_its_place_in_the_vocabulary(tokenizer in any_tokenizer(), a in any_job(4), now in any_time()) {
        let token = tokenizer.token(&a, now);
        let index = tokenizer.index_of(token);
        prop_assert!(0 < index && index < tokenizer.vocabulary());
        prop_assert_eq!(tokenizer.token_at(index), token);
        prop_assert_eq!(tokenizer.token_at(0), Token::Idle { load: 0 });
    }

    #[test]
    fn counts_add_up_and_every_job_finds_its_token(
        tokenizer in any_tokenizer(),
        jobs in prop::collection::vec(any_job(4), 0..60),
        now in any_time(),
    ) {
        let mut set = TokenSet::default();
        // Twice: working memory must not leak from one set into the next.
        for _ in 0..2 {
            tokenizer.tokenize(&jobs, now, &mut set);
            prop_assert_eq!(set.counts().iter().sum::<u32>() as usize, jobs.len() + 1);
            prop_assert_eq!((set.tokens()[0], set.counts()[0]), (Token::Idle { load: 0 }, 1));
            prop_assert!(set.indices().windows(2).all(|pair| pair[0] < pair[1]));
            for (i, job) in jobs.iter().enumerate() {
                prop_assert_eq!(set.token_of_job(i), tokenizer.token(job, now));
            }
            for (slot, &count) in set.counts().iter().enumerate().skip(1) {
                let users = set.slots().iter().filter(|&&used| used as usize == slot).count();
                prop_assert_eq!(users, count as usize);
            }
        }
    }

    #[test]
    fn permuting_jobs_permutes_their_tokens_and_nothing_else(
        jobs in prop::collection::vec(any_job(4), 1..40), turn in 0usize..40, now in any_time(),
    ) {
        let tokenizer = Tokenizer::default();
        let mut turned = jobs.clone();
        let turn = turn % jobs.len();
        turned.rotate_left(turn);
        let (mut a, mut b) = (TokenSet::default(), TokenSet::default());
        tokenizer.tokenize(&jobs, now, &mut a);
        tokenizer.tokenize(&turned, now, &mut b);
        prop_assert_eq!(a.tokens(), b.tokens());
        prop_assert_eq!(a.counts(), b.counts());
        let mut slots = a.slots().to_vec();
        slots.rotate_left(turn);
        prop_assert_eq!(&slots, b.slots());
    }

    #[test]
    fn a_slack_level_is_the_papers_clipped_bin(tokenizer in any_tokenizer(), a in any_job(4), now in any_time()) {
        let level = tokenizer.token(&a, now).slack_level();
        prop_assert_eq!(level, Some(tokenizer.slack().bin(a.slack(now).0)));
        let below = a.slack(now).0 < tokenizer.slack().edges_ns()[0];
        prop_assert_eq!(level == Some(0), below);
    }

    #[test]
    fn scores_by_token_reach_every_job_with_that_token(jobs in plain_jobs(30)) {
        let mut set = TokenSet::default();
        Tokenizer::default().tokenize(&jobs, 0, &mut set);
        let by_token: Vec<f32> = (0..set.distinct()).map(|slot| slot as f32).collect();
        let mut scores = vec![f32::NAN; 1 + jobs.len()];
        set.spread(&by_token, &mut scores);
        prop_assert_eq!(scores[0], 0.0);
        for (score, &slot) in scores[1..].iter().zip(set.slots()) {
            prop_assert_eq!(*score, slot as f32);
        }
    }
}

#[test]
fn doubt_rises_with_the_spread_and_is_greatest_past_the_estimate() {
    let tokenizer = Tokenizer::default();
    let doubt = |remaining_ns, spread_ns| match tokenizer.token(
        &Job {
            spread_ns,
            ..job(100_000_000, remaining_ns)
        },
        0,
    ) {
        Token::Job { doubt, .. } => doubt,
        Token::Idle { .. } => panic!("a job has no idle token"),
    };
    let ms = 1_000_000;
    assert_eq!(
        [0, 1, 3, 9].map(|spread| doubt(10 * ms, spread * ms)),
        [0, 1, 2, 3]
    );
    assert_eq!((doubt(0, 0), doubt(-1, 5)), (3, 3));
}

#[test]
fn a_tokenizer_survives_storage() {
    let tokenizer = Tokenizer::default();
    let text = serde_json::to_string(&tokenizer).unwrap();
    assert_eq!(serde_json::from_str::<Tokenizer>(&text).unwrap(), tokenizer);
    let few = text.replacen(r#""edges_ns":["#, r#""edges_ns":[1,2],"x":["#, 1);
    assert!(serde_json::from_str::<Tokenizer>(&few).is_err());
}

#[test]
fn idle_says_how_loaded_the_machine_is_where_that_is_known() {
    let tokenizer = Tokenizer::default().with_loads(5);
    let jobs = [job(10_000_000, 1_000_000)];
    let level = |tokenizer: &Tokenizer, demand_percent: &[i64], cpus: usize| {
        let upcoming: Vec<Upcoming> = demand_percent
            .iter()
            .map(|&percent| Upcoming::new(0, (10_000_000, percent * 100_000, 10_000_000)))
            .collect();
        let situation = Situation {
            now_ns: 0,
            jobs: &jobs,
            upcoming: &upcoming,
            cpus: CpuMask::first(cpus),
            share: 1.0,
            hold_ns: 1_000_000,
        };
        let mut set = TokenSet::default();
        tokenizer.tokenize_situation(&situation, &mut set);
        assert_eq!(
            set.tokens()[0],
            tokenizer.token_at(set.indices()[0] as usize)
        );
        match set.tokens()[0] {
            Token::Idle { load } => load,
            Token::Job { .. } => panic!("idle comes first"),
        }
    };
    assert_eq!(level(&tokenizer, &[], 1), 0);
    assert_eq!(level(&tokenizer, &[80], 1), 1);
    assert_eq!(level(&tokenizer, &[60, 40], 1), 2, "full is not overloaded");
    assert_eq!(level(&tokenizer, &[60, 60], 1), 3);
    assert_eq!(level(&tokenizer, &[60, 90], 1), 4);
    assert_eq!(level(&tokenizer, &[60, 90], 2), 1);
    assert_eq!(level(&Tokenizer::default(), &[60, 90], 1), 0, "not told");
}
