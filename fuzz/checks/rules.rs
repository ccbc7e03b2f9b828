//! A rules file that anybody may have written: rules within the limits, or one
//! line that says where and what.

use scx_temponet::agent::rules::{self, Pattern, Treatment};
use scx_temponet::agent::rules::{RULES_MAX, RULE_CGROUP_MAX, RULE_COMM_MAX};
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
                assert!(rule.comm.is_some() || rule.cgroup.is_some());
                if let Some(comm) = &rule.comm {
                    check_pattern(comm, RULE_COMM_MAX);
                }
                if let Some(cgroup) = &rule.cgroup {
                    check_pattern(cgroup, RULE_CGROUP_MAX);
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
