//! The rules file: deadlines for programs nobody can change.
//!
//! docs/guide/rules.md is the manual. A mistake anywhere refuses the whole file, with
//! the line and what is wrong: half a rule set applied in silence is worse.

use super::bpf::types::temponet_rule;
use crate::hint::Hint;
use crate::intf;

pub use read::{load, parse, RulesError};

mod read;

/// BPF walks them all for every new task, so they are few.
pub const RULES_MAX: usize = intf::temponet_consts_TN_MAX_RULES as usize;
/// Less the NUL.
pub const RULE_COMM_MAX: usize = intf::temponet_consts_TN_COMM_LEN as usize - 1;
/// Less the NUL; unit names are rarely that long.
pub const RULE_CGROUP_MAX: usize = intf::temponet_consts_TN_CGROUP_LEN as usize - 1;
/// Of a cgroup's path.
pub const RULE_PATH_MAX: usize = 8;

/// A name, or the beginning of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    pub text: String,
    /// Written with a trailing `*`, which is not in `text`.
    pub prefix: bool,
}

impl Pattern {
    pub fn matches(&self, name: &str) -> bool {
        if self.prefix {
            name.starts_with(&self.text)
        } else {
            name == self.text
        }
    }

    /// Whether it matches every name that the other one does.
    fn covers(&self, other: &Pattern) -> bool {
        match self.prefix {
            true => other.text.starts_with(&self.text),
            false => self == other,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Treatment {
    /// As if the program had declared this itself.
    Deadline(Hint),
    /// No jobs, no deadlines, whatever its wake-ups look like.
    Background,
}

/// A name as the BPF half compares it: words, and which of their bytes count.
/// An exact pattern includes the NUL that ends the name, a prefix does not.
fn words<const N: usize>(pattern: Option<&Pattern>) -> ([u64; N], [u64; N]) {
    let (mut name, mut mask) = ([0; N], [0; N]);
    let Some(pattern) = pattern else {
        return (name, mask);
    };
    let counted = pattern.text.len() + usize::from(!pattern.prefix);
    let bytes = pattern.text.bytes().chain(std::iter::once(0)).take(counted);
    for (i, byte) in bytes.enumerate().take(N * 8) {
        let shift = 8 * (i % 8);
        name[i / 8] |= u64::from(byte) << shift;
        mask[i / 8] |= 0xff << shift;
    }
    (name, mask)
}

/// As the BPF half wants it. Words are in memory order on little-endian CPUs,
/// the only ones scx_cargo builds for besides s390x, which is refused here.
pub(super) fn to_bpf(rule: &Rule) -> temponet_rule {
    const { assert!(cfg!(target_endian = "little")) };
    let mut out = temponet_rule::default();
    (out.comm, out.comm_mask) = words(rule.comm.as_ref());
    if let Some(Place::Named(name)) = &rule.cgroup {
        (out.cgroup, out.cgroup_mask) = words(Some(name));
        out.has_cgroup = 1;
    }
    if let Some(owner) = &rule.user {
        out.uid = owner.uid;
        out.has_user = 1;
    }
    match rule.treatment {
        Treatment::Background => out.background = 1,
        Treatment::Deadline(hint) => {
            out.hint.runtime_ns = hint.runtime_ns();
            out.hint.deadline_ns = hint.deadline_ns();
            out.hint.period_ns = hint.period_ns();
            out.hint.criticality = hint.criticality();
            out.hint.version = intf::TEMPONET_HINT_VERSION;
        }
    }
    out
}

/// Where a task's cgroup is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In or below a directory of this name, wherever that is. Who may make cgroups can
    /// make one.
    Named(Pattern),
    /// In or below this directory, told from the root; only the last name may be the
    /// beginning of one.
    At(Vec<Pattern>),
}

impl Place {
    /// `names`: of the directories from the root to the task's cgroup.
    pub fn matches(&self, names: &[String]) -> bool {
        match self {
            Place::Named(pattern) => names.iter().any(|name| pattern.matches(name)),
            Place::At(path) => {
                path.len() <= names.len() && path.iter().zip(names).all(|(p, name)| p.matches(name))
            }
        }
    }

    fn covers(&self, other: &Place) -> bool {
        match (self, other) {
            (Place::Named(mine), Place::Named(theirs)) => mine.covers(theirs),
            (Place::Named(mine), Place::At(path)) => path.iter().any(|part| mine.covers(part)),
            (Place::At(mine), Place::At(theirs)) => {
                mine.len() <= theirs.len() && mine.iter().zip(theirs).all(|(a, b)| a.covers(b))
            }
            (Place::At(_), Place::Named(_)) => false,
        }
    }
}

/// Whose threads a rule is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    pub uid: u32,
    /// As the file has it.
    pub written: String,
}

impl Owner {
    /// All four ids must be the user's, as for a hint: nobody else can take them on.
    pub fn owns(&self, uids: [u32; 4]) -> bool {
        uids == [self.uid; 4]
    }
}

/// Applies to a task when everything given matches; the first rule wins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    pub comm: Option<Pattern>,
    pub cgroup: Option<Place>,
    pub user: Option<Owner>,
    /// So many threads at a time; one that comes later is left as it is.
    pub max: Option<u32>,
    pub treatment: Treatment,
    /// Where in the file it begins, for messages.
    pub line: usize,
}

impl Rule {
    /// Whether it matches every task that the other one does.
    pub fn covers(&self, other: &Rule) -> bool {
        fn all<T>(mine: &Option<T>, theirs: &Option<T>, covers: impl Fn(&T, &T) -> bool) -> bool {
            match (mine, theirs) {
                (None, _) => true,
                (Some(_), None) => false,
                (Some(mine), Some(theirs)) => covers(mine, theirs),
            }
        }
        all(&self.comm, &other.comm, Pattern::covers)
            && all(&self.cgroup, &other.cgroup, Place::covers)
            && all(&self.user, &other.user, |mine, theirs| {
                mine.uid == theirs.uid
            })
    }

    /// What of it the BPF half does not know.
    fn beyond_bpf(&self) -> Option<&'static str> {
        match self {
            Rule { max: Some(_), .. } => Some("max"),
            Rule {
                cgroup: Some(Place::At(_)),
                ..
            } => Some("a cgroup's path"),
            _ => None,
        }
    }
}

/// An error where a rule says what the scheduler would not hold to.
pub fn check_enforced(file: &std::path::Path, rules: &[Rule]) -> Result<(), RulesError> {
    let beyond = rules
        .iter()
        .find_map(|rule| Some((rule.line, rule.beyond_bpf()?)));
    match beyond {
        None => Ok(()),
        Some((line, what)) => Err(RulesError {
            file: file.to_owned(),
            line: Some(line),
            what: format!(
                "this scheduler does not hold to {what} yet: only `rules --check` knows it"
            ),
        }),
    }
}

#[cfg(test)]
mod tests;
