//! A rules file that anybody may have written: rules within the limits, or one
//! line that says where and what.

use scx_temponet::agent::rules::{self, Pattern, Place, Treatment};
use scx_temponet::agent::rules::{RULES_MAX, RULE_CGROUP_MAX, RULE_COMM_MAX, RULE_PATH_MAX};
use scx_temponet::hint::Hint;
use std::path::Path;

fn check_pattern(pattern: &Pattern, longest: usize) {
    assert!(!pattern.text.is_empty() && pattern.text.len() <= longest);
    assert!(!pattern.text.contains(['*', '\0']));
    assert!(pattern.matches(&pattern.text));
}

pub fn check(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    match rules::parse(Path::new("r.toml"), text) {
        Ok(rules) => {
            assert!(rules.len() <= RULES_MAX);
            for rule in rules {
                assert!(rule.comm.is_some() || rule.cgroup.is_some() || rule.user.is_some());
                assert_ne!(rule.max, Some(0));
                if let Some(comm) = &rule.comm {
                    check_pattern(comm, RULE_COMM_MAX);
                }
                match &rule.cgroup {
                    None => {}
                    Some(Place::Named(name)) => check_pattern(name, RULE_CGROUP_MAX),
                    Some(Place::At(path)) => {
                        assert!(!path.is_empty() && path.len() <= RULE_PATH_MAX);
                        for name in path {
                            check_pattern(name, RULE_CGROUP_MAX);
                        }
                    }
                }
                if let Treatment::Deadline(hint) = rule.treatment {
                    assert_eq!(Hint::from_bytes(&hint.to_bytes()), Ok(hint));
                }
            }
        }
        Err(error) => {
            let line = error.line.expect("a text has lines");
            assert!(line >= 1 && line <= text.bytes().filter(|b| *b == b'\n').count() + 1);
            assert!(!error.to_string().contains('\n'), "{error}");
        }
    }
}
