use super::*;
use proptest::prelude::*;
use std::path::Path;

const MS: u64 = 1_000_000;

fn read(text: &str) -> Result<Vec<Rule>, String> {
    parse(Path::new("r.toml"), text).map_err(|e| e.to_string())
}

/// The message for a rule that matches `x` and has `lines` from line 3 on.
fn refused(lines: &str) -> String {
    read(&format!("[[rule]]\ncomm = \"x\"\n{lines}")).unwrap_err()
}

const TIMES: &str = "runtime = \"1ms\"\nperiod = \"10ms\"\n";

#[test]
fn the_worked_example_of_the_manual_is_read() {
    let manual = include_str!("../../../docs/guide/rules.md");
    let example = manual
        .split("```toml\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next())
        .unwrap();
    let rules = read(example).unwrap();
    assert!(rules.len() >= 3);
    assert!(rules.iter().any(|r| r.treatment == Treatment::Background));
}

#[test]
fn rules_keep_their_order_and_their_lines() {
    let rules = read(
        "# audio\n\n[[rule]]\ncomm = \"pipewire*\"\ncgroup = \"audio.slice\"\n\
         runtime = \"2ms\"\ndeadline = \"5ms\"\nperiod = \"10ms\"\ncriticality = 1\n\n\
         [[rule]]\ncomm = \"make\"\nclass = \"background\"\n",
    )
    .unwrap();
    let hint = Hint::new(2 * MS, 5 * MS, 10 * MS, 1).unwrap();
    assert_eq!(
        rules[0],
        Rule {
            comm: Some(Pattern {
                text: "pipewire".into(),
                prefix: true
            }),
            cgroup: Some(Place::Named(Pattern {
                text: "audio.slice".into(),
                prefix: false
            })),
            user: None,
            max: None,
            treatment: Treatment::Deadline(hint),
            line: 3,
        }
    );
    assert_eq!(rules[1].line, 11);
    assert_eq!(rules[1].treatment, Treatment::Background);
}

#[test]
fn the_deadline_is_the_period_unless_given() {
    let rules = read(&format!("[[rule]]\ncomm = \"x\"\n{TIMES}")).unwrap();
    let hint = Hint::new(MS, 10 * MS, 10 * MS, 0).unwrap();
    assert_eq!(rules[0].treatment, Treatment::Deadline(hint));
}

#[test]
fn patterns_match_names_or_their_beginning() {
    let exact = Pattern {
        text: "ardour".into(),
        prefix: false,
    };
    assert!(exact.matches("ardour") && !exact.matches("ardour8"));
    let prefix = Pattern {
        prefix: true,
        ..exact
    };
    assert!(prefix.matches("ardour") && prefix.matches("ardour8") && !prefix.matches("ardou"));
}

#[test]
fn no_rules_is_no_mistake() {
    assert_eq!(read(""), Ok(vec![]));
    assert_eq!(read("# nothing yet\n"), Ok(vec![]));
}

#[test]
fn syntax_errors_carry_their_line() {
    let message = read("[[rule]]\ncomm = \"x\"\nruntime = 2ms\n").unwrap_err();
    assert!(message.starts_with("r.toml:3: "), "{message}");
    let message = read("[[rule]]\ncomm = \"a\"\ncomm = \"b\"\n").unwrap_err();
    assert!(message.starts_with("r.toml:3: "), "{message}");
    assert!(!message.contains('\n'), "{message}");
}

#[test]
fn unknown_keys_are_named() {
    assert!(
        refused("wcet = \"1ms\"\n").starts_with("r.toml:3: unknown key `wcet`: a rule has comm,")
    );
    assert!(refused("runtim = \"1ms\"\n").contains("`runtim` (did you mean \"runtime\"?)"));
    assert_eq!(
        read("\ninterval = 3\n").unwrap_err(),
        "r.toml:2: unknown key `interval`: a rules file holds [[rule]] entries only"
    );
}

#[test]
fn single_brackets_are_explained() {
    assert_eq!(
        read("[rule]\ncomm = \"x\"\n").unwrap_err(),
        "r.toml:1: a rule begins with [[rule]], in double brackets"
    );
    assert!(read("rule = [1]\n")
        .unwrap_err()
        .contains("double brackets"));
}

#[test]
fn wrong_types_are_named() {
    assert_eq!(
        refused("runtime = 2\n"),
        "r.toml:3: runtime has no unit: write it as \"2ms\" or \"2us\""
    );
    assert_eq!(
        refused("runtime = true\n"),
        "r.toml:3: runtime is true or false, not text in quotes"
    );
    assert_eq!(
        refused(&format!("{TIMES}criticality = \"high\"\n")),
        "r.toml:5: criticality is text, not a whole number"
    );
    assert_eq!(
        refused(&format!("{TIMES}criticality = -1\n")),
        "r.toml:5: criticality -1 is out of range"
    );
    assert_eq!(
        read("[[rule]]\ncomm = [\"a\", \"b\"]\n").unwrap_err(),
        "r.toml:2: comm is a list, not text in quotes"
    );
}

#[test]
fn bad_durations_and_bad_parameters_are_explained() {
    assert_eq!(
        refused("runtime = \"2\"\n"),
        "r.toml:3: runtime: `2` has no unit: write 2us, 2ms or 2s"
    );
    assert_eq!(
        refused("runtime = \"20ms\"\nperiod = \"10ms\"\n"),
        "r.toml:1: a runtime of 20ms does not fit into a deadline of 10ms"
    );
    assert!(refused("runtime = \"1ms\"\nperiod = \"0ms\"\n").contains("the period is zero"));
    assert!(refused(&format!("{TIMES}criticality = 7\n")).contains("criticality 7"));
    assert!(refused("runtime = \"1ms\"\n").contains("has no period"));
    assert!(refused("period = \"1ms\"\n").contains("has no runtime"));
    assert!(refused("").contains("has no runtime"));
}

#[test]
fn empty_matches_are_refused() {
    let message = read(&format!("\n[[rule]]\n{TIMES}")).unwrap_err();
    assert_eq!(
        message,
        "r.toml:2: this rule matches nothing: give it a comm, a cgroup or a user"
    );
    for (comm, said) in [
        ("", "is empty"),
        ("*", "would match every task"),
        ("a*b", "not at its end"),
        ("a\\u0000", "no name can have"),
    ] {
        let message = read(&format!("[[rule]]\ncomm = \"{comm}\"\n{TIMES}")).unwrap_err();
        assert!(
            message.starts_with("r.toml:2: comm") && message.contains(said),
            "{message}"
        );
    }
}

#[test]
fn names_that_can_never_match_are_refused() {
    let message = read(&format!(
        "[[rule]]\ncomm = \"pipewire-media-session\"\n{TIMES}"
    ))
    .unwrap_err();
    assert!(message.ends_with("keeps 15 of a name: write `pipewire-media-`"));
    for (cgroup, said) in [
        ("a/b", "begin it with /"),
        ("/", "is empty"),
        ("/*", "would match every task"),
        ("//b", "is no path"),
        ("/a/../b", "is no path"),
        ("/a*/b", "is no path"),
        ("/a/b/", "is empty"),
        ("/a/b/c/d/e/f/g/h/i", "more than 8 directories"),
    ] {
        let message = read(&format!("[[rule]]\ncgroup = \"{cgroup}\"\n{TIMES}")).unwrap_err();
        assert!(message.contains(said), "{cgroup}: {message}");
    }
    let long = "g".repeat(RULE_CGROUP_MAX + 1);
    let message = read(&format!("[[rule]]\ncgroup = \"{long}\"\n{TIMES}")).unwrap_err();
    assert!(message.contains("longer than 47 bytes"), "{message}");
}

#[test]
fn background_takes_no_parameters_and_no_other_class_exists() {
    assert!(refused("class = \"idle\"\n").contains("class `idle` is unknown"));
    assert_eq!(
        refused("class = \"background\"\nperiod = \"1ms\"\n"),
        "r.toml:4: a background rule has no deadlines: remove `period` or the class"
    );
}

#[test]
fn too_many_rules_are_refused_at_the_first_too_many() {
    let one = format!("[[rule]]\ncomm = \"x\"\n{TIMES}");
    assert_eq!(read(&one.repeat(RULES_MAX)).unwrap().len(), RULES_MAX);
    assert_eq!(
        read(&one.repeat(RULES_MAX + 1)).unwrap_err(),
        "r.toml:257: there are more than 64 rules"
    );
}

#[test]
fn unreadable_files_are_explained() {
    let missing = load(Path::new("/nonexistent/r.toml")).unwrap_err();
    assert!(missing
        .to_string()
        .starts_with("/nonexistent/r.toml: cannot be read: "));
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("r.toml");
    std::fs::write(&file, b"# ok\n\xff\n").unwrap();
    assert_eq!(load(&file).unwrap_err().line, Some(2));
    assert!(load(dir.path()).is_err());
}

proptest! {
    #[test]
    fn no_text_panics(text in "(\\[\\[rule\\]\\]\n|comm|class|=|\"|\\*|period|\n|\\PC){0,40}") {
        let _ = read(&text);
    }
}

#[test]
fn masked_words_match_what_the_pattern_matches() {
    let names = [
        "pipewire",
        "pipewire-pulse",
        "pipe",
        "rt-task-1",
        "",
        "pipewirf",
    ];
    for pattern in [
        Pattern {
            text: "pipewire".into(),
            prefix: false,
        },
        Pattern {
            text: "pipewire".into(),
            prefix: true,
        },
        Pattern {
            text: "rt-task-".into(),
            prefix: true,
        },
        Pattern {
            text: "fifteen-letters".into(),
            prefix: false,
        },
    ] {
        let (name, mask) = words::<2>(Some(&pattern));
        for text in names.iter().copied().chain([pattern.text.as_str()]) {
            let exact = Pattern {
                text: text.into(),
                prefix: false,
            };
            let (comm, _) = words::<2>(Some(&exact));
            let hit = (0..2).all(|i| (comm[i] ^ name[i]) & mask[i] == 0);
            assert_eq!(hit, pattern.matches(text), "{pattern:?} against {text}");
        }
    }
}

#[test]
fn a_missing_pattern_matches_everything() {
    assert_eq!(words::<2>(None), ([0; 2], [0; 2]));
}

#[test]
fn the_worked_example_matches_the_thread_that_mixes_and_not_the_one_that_does_not() {
    let manual = include_str!("../../../docs/guide/rules.md");
    let example = manual.split("```toml\n").nth(1).unwrap();
    let rules = read(example.split("```").next().unwrap()).unwrap();
    let declared = |name: &str| {
        let matches = |rule: &&Rule| rule.comm.as_ref().is_some_and(|comm| comm.matches(name));
        rules
            .iter()
            .filter(|rule| rule.cgroup.is_none())
            .any(|rule| matches(&rule))
    };
    // PipeWire's data thread, now and before 1.2.
    assert!(declared("data-loop.0") && declared("data-loop"));
    assert!(!declared("pipewire") && !declared("wireplumber"));
}

#[test]
fn a_rule_may_be_for_a_user_a_path_and_a_number_of_threads() {
    let read_one = |lines: &str| read(&format!("[[rule]]\n{lines}{TIMES}")).map(|r| r[0].clone());
    let rule = read_one("user = \"root\"\nmax = 3\ncgroup = \"/system.slice/a*\"\n").unwrap();
    assert_eq!((rule.user.unwrap().uid, rule.max), (0, Some(3)));
    let Some(place) = rule.cgroup else {
        panic!("no cgroup")
    };
    let names = |path: &str| path.split('/').map(str::to_owned).collect::<Vec<_>>();
    assert!(place.matches(&names("system.slice/audio/deep")));
    for other in [
        "system.slice",
        "user.slice/system.slice/audio",
        "system.slice/b/audio",
    ] {
        assert!(!place.matches(&names(other)), "{other}");
    }
    assert_eq!(read_one("user = 7\n").unwrap().user.unwrap().uid, 7);
    for (lines, said) in [
        ("user = \"no such user\"\n", "there is no user"),
        ("user = -1\n", "out of range"),
        ("user = 4294967295\n", "is no user id"),
        ("comm = \"x\"\nmax = 0\n", "max is 0"),
    ] {
        let message = read_one(lines).unwrap_err();
        assert!(message.contains(said), "{message}");
    }
    assert!(refused("class = \"background\"\nmax = 3\n").contains("remove `max`"));
    read("[[rule]]\nuser = \"root\"\nclass = \"background\"\n").unwrap();
}

#[test]
fn a_rule_that_the_scheduler_would_not_hold_to_is_not_loaded() {
    let file = Path::new("r.toml");
    for line in ["max = 2", "cgroup = \"/a\""] {
        let rules = read(&format!("[[rule]]\ncomm = \"x\"\n{line}\n{TIMES}")).unwrap();
        let said = check_enforced(file, &rules).unwrap_err().to_string();
        assert!(
            said.starts_with("r.toml:1: this scheduler does not hold to"),
            "{said}"
        );
    }
    let rules = read(&format!(
        "[[rule]]\ncomm = \"x\"\ncgroup = \"a*\"\nuser = 0\n{TIMES}"
    ))
    .unwrap();
    assert_eq!(check_enforced(file, &rules), Ok(()));
}

#[test]
fn a_path_is_covered_by_a_shorter_one_and_by_the_name_of_a_part() {
    let rule = |lines: &str| {
        read(&format!("[[rule]]\n{lines}\n{TIMES}"))
            .unwrap()
            .remove(0)
    };
    let deep = rule("cgroup = \"/a/b\"");
    for wider in [
        "cgroup = \"/a\"",
        "cgroup = \"/a/b*\"",
        "cgroup = \"b\"",
        "cgroup = \"/a/b\"",
    ] {
        assert!(rule(wider).covers(&deep), "{wider}");
    }
    for other in [
        "cgroup = \"/b\"",
        "cgroup = \"c\"",
        "user = 0",
        "cgroup = \"/a/b/c\"",
    ] {
        assert!(!rule(other).covers(&deep), "{other}");
    }
    assert!(!deep.covers(&rule("cgroup = \"b\"")));
    assert!(!rule("user = 1\ncgroup = \"/a\"").covers(&deep));
}
