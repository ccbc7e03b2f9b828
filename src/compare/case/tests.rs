use super::*;

const GOOD: &str = "schedulers = ['eevdf', 'edf', 'temponet']\nseeds = '3..5'\n\
    must = ['temponet >= edf - 0.1']\n\n[[case]]\nname = 'any'\nhorizon = '2s'\n\
    tournament = { cores = 1, hogs = 0 }\n";

fn parse(text: &str) -> Result<CaseFile, CaseError> {
    CaseFile::parse(Path::new("cases.toml"), text)
}

#[test]
fn a_case_becomes_a_subject_per_seed_as_the_file_fixes_it() {
    let file = parse(GOOD).unwrap();
    assert_eq!(file.candidate, "temponet");
    let case = &file.cases[0];
    let subjects = case.subjects(None);
    let seeds: Vec<Option<u64>> = subjects.iter().map(|s| s.seed).collect();
    assert_eq!(seeds, [Some(3), Some(4), Some(5)]);
    let knobs = subjects[0].knobs.as_ref().unwrap();
    assert_eq!((knobs.cores, knobs.hogs), (1, 0));
    assert_eq!(subjects[0].set.horizon_ns, 2 * SHORTEST);
    assert_eq!(case.subjects(Some(&(7..=7)))[0].seed, Some(7));
    assert_eq!(case.must.len(), 1);
}

#[test]
fn a_bad_file_is_answered_with_its_line_and_what_is_wrong() {
    for (from, to, line, what) in [
        ("'edf'", "'edff'", 1, "edff"),
        ("'edf'", "'eevdf'", 1, "twice"),
        ("3..5", "5..3", 2, "range of seeds"),
        ("temponet >= edf", "temponet >= rm", 3, "rm"),
        ("cores = 1", "cores = 0", 8, "between 1 and 64"),
        ("cores = 1", "coers = 1", 8, "unknown field"),
        ("'2s'", "'2 days'", 7, "2 days"),
        ("tournament = {", "set = 'none.toml' # {", 8, "none.toml"),
        ("[[case]]", "[[case]]\nset = 'x'", 6, "one of tournament"),
        ("name = 'any'", "name = 'a b'", 6, "letters"),
    ] {
        assert!(GOOD.contains(from));
        let why = parse(&GOOD.replacen(from, to, 1))
            .err()
            .expect(to)
            .to_string();
        let place = format!("cases.toml, line {line}: ");
        // The case that names two sources is named where its name stands.
        let place = match what {
            "one of tournament" => "cases.toml, line 7: ".to_owned(),
            _ => place,
        };
        assert!(why.starts_with(&place) && why.contains(what), "{why}");
    }
    assert!(parse("seeds = '1'\n").is_err());
}

#[test]
fn a_generator_or_a_set_that_nobody_can_draw_or_run_is_refused() {
    let generated = |said: &str| {
        let case = format!("schedulers = ['edf']\n[[case]]\nname = 'any'\nworkload = {{ name = 'random5'{said} }}\n");
        parse(&case).map(|file| file.cases[0].subjects(Some(&(1..=1))).len())
    };
    assert_eq!(
        generated(", cores = 2, tasks = 9, load = [0.5, 0.9]").ok(),
        Some(1)
    );
    for wrong in [
        ", cores = 0",
        ", cores = 100000",
        ", tasks = 0",
        ", tasks = 1000000000000",
        ", load = [0.0, 0.5]",
        ", load = [0.9, 0.5]",
        ", load = [0.9, nan]",
        ", load = [0.9, inf]",
    ] {
        let why = generated(wrong).expect_err(wrong).to_string();
        assert!(why.starts_with("cases.toml, line 4: "), "{why}");
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("cases.toml");
    let drawn = parse(GOOD).unwrap().cases[0].subjects(None);
    let set = folder.path().join("set.toml");
    drawn[0].set.save(&set).unwrap();
    let fixed = |said: &str| {
        let case =
            format!("schedulers = ['edf']\n[[case]]\nname = 'any'\nset = 'set.toml'\n{said}");
        CaseFile::parse(&file, &case).map(|_| ())
    };
    fixed("").unwrap();
    let why = fixed("cores = 0\n").unwrap_err().to_string();
    assert!(why.contains("between 1 and 4096"), "{why}");
    assert!(fixed("horizon = '0ms'\n").is_err());
}

#[test]
fn seeds_are_a_range_with_both_ends() {
    assert_eq!(parse_seeds("1..20"), Ok(1..=20));
    assert_eq!(parse_seeds("7"), Ok(7..=7));
    for wrong in ["", "a..b", "3..1", "1..1000000", "-1..2"] {
        assert!(parse_seeds(wrong).is_err(), "{wrong}");
    }
}
