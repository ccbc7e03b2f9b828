//! The rules file: deadlines for programs nobody can change.
//!
//! docs/guide/rules.md is the manual. A mistake anywhere refuses the whole file, with
//! the line and what is wrong: half a rule set applied in silence is worse.

use super::bpf::types::temponet_rule;
use crate::hint::{duration, Hint};
use crate::intf;
use crate::report::file::{called, STDIN};
use crate::spelling::did_you_mean;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};
use thiserror::Error;
use toml::de::{DeTable, DeValue};
use toml::Spanned;

/// BPF walks them all for every new task, so they are few.
pub const RULES_MAX: usize = intf::temponet_consts_TN_MAX_RULES as usize;
/// Less the NUL.
pub const RULE_COMM_MAX: usize = intf::temponet_consts_TN_COMM_LEN as usize - 1;
/// Less the NUL; unit names are rarely that long.
pub const RULE_CGROUP_MAX: usize = intf::temponet_consts_TN_CGROUP_LEN as usize - 1;
/// 64 rules fit into a hundredth of it.
const FILE_MAX: u64 = 1 << 20;

const KEYS: [&str; 7] = [
    "comm",
    "cgroup",
    "runtime",
    "deadline",
    "period",
    "criticality",
    "class",
];

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
    (out.cgroup, out.cgroup_mask) = words(rule.cgroup.as_ref());
    out.has_cgroup = u32::from(rule.cgroup.is_some());
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

/// Applies to a task when everything given matches; the first rule wins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    pub comm: Option<Pattern>,
    /// Name of the task's cgroup directory or of one above it.
    pub cgroup: Option<Pattern>,
    pub treatment: Treatment,
    /// Where in the file it begins, for messages.
    pub line: usize,
}

impl Rule {
    /// Whether it matches every task that the other one does.
    pub fn covers(&self, other: &Rule) -> bool {
        let covers = |mine: &Option<Pattern>, theirs: &Option<Pattern>| match (mine, theirs) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(mine), Some(theirs)) => mine.covers(theirs),
        };
        covers(&self.comm, &other.comm) && covers(&self.cgroup, &other.cgroup)
    }
}

#[derive(Debug, Error, PartialEq, Eq)]
#[error("{}{}: {what}", .file.display(), Line(*.line))]
pub struct RulesError {
    pub file: PathBuf,
    /// None when the file could not be read at all.
    pub line: Option<usize>,
    pub what: String,
}

struct Line(Option<usize>);

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |line| write!(f, ":{line}"))
    }
}

/// Reads and checks a rules file, or standard input for `-`.
pub fn load(path: &Path) -> Result<Vec<Rule>, RulesError> {
    let is_stdin = path.as_os_str() == STDIN;
    let file = called(path);
    let unreadable = |what: String| RulesError {
        file: file.to_owned(),
        line: None,
        what,
    };
    let mut bytes = Vec::new();
    let read = match is_stdin {
        true => std::io::stdin()
            .lock()
            .take(FILE_MAX + 1)
            .read_to_end(&mut bytes),
        false => File::open(file).and_then(|f| f.take(FILE_MAX + 1).read_to_end(&mut bytes)),
    };
    read.map_err(|e| unreadable(format!("cannot be read: {e}")))?;
    if bytes.len() as u64 > FILE_MAX {
        return Err(unreadable(format!("is larger than {FILE_MAX} bytes")));
    }
    let text = String::from_utf8(bytes).map_err(|e| {
        let valid = &e.as_bytes()[..e.utf8_error().valid_up_to()];
        RulesError {
            file: file.to_owned(),
            line: Some(1 + valid.iter().filter(|b| **b == b'\n').count()),
            what: "is not UTF-8".into(),
        }
    })?;
    parse(file, &text)
}

/// Checks the text of a rules file; `file` is for the messages only.
pub fn parse(file: &Path, text: &str) -> Result<Vec<Rule>, RulesError> {
    rules(text).map_err(|mistake| RulesError {
        file: file.to_owned(),
        line: Some(line_of(text, mistake.at)),
        what: mistake.what,
    })
}

fn line_of(text: &str, at: usize) -> usize {
    let before = &text.as_bytes()[..at.min(text.len())];
    1 + before.iter().filter(|b| **b == b'\n').count()
}

struct Mistake {
    at: usize,
    what: String,
}

fn mistake<T>(span: Range<usize>, what: impl Into<String>) -> Result<T, Mistake> {
    Err(Mistake {
        at: span.start,
        what: what.into(),
    })
}

fn rules(text: &str) -> Result<Vec<Rule>, Mistake> {
    let document = DeTable::parse(text).map_err(|e| Mistake {
        at: e.span().map_or(0, |span| span.start),
        // The parser's own words, which may come in several lines.
        what: e.message().lines().collect::<Vec<_>>().join(", "),
    })?;
    let mut rules = Vec::new();
    for (key, value) in document.get_ref() {
        let name: &str = key.get_ref();
        if name != "rule" {
            return mistake(
                key.span(),
                format!("unknown key `{name}`: a rules file holds [[rule]] entries only"),
            );
        }
        let DeValue::Array(entries) = value.get_ref() else {
            return mistake(
                key.span(),
                "a rule begins with [[rule]], in double brackets",
            );
        };
        for entry in entries.iter() {
            let DeValue::Table(table) = entry.get_ref() else {
                return mistake(
                    entry.span(),
                    "a rule begins with [[rule]], in double brackets",
                );
            };
            if rules.len() == RULES_MAX {
                return mistake(
                    entry.span(),
                    format!("there are more than {RULES_MAX} rules"),
                );
            }
            rules.push(rule(text, entry.span(), table)?);
        }
    }
    Ok(rules)
}

type Value<'a> = Spanned<DeValue<'a>>;

fn rule(text: &str, span: Range<usize>, table: &DeTable<'_>) -> Result<Rule, Mistake> {
    for (key, _) in table {
        let name: &str = key.get_ref();
        if !KEYS.contains(&name) {
            return mistake(
                key.span(),
                format!(
                    "unknown key `{name}`{}: a rule has {}",
                    did_you_mean(name, &KEYS),
                    KEYS.join(", ")
                ),
            );
        }
    }
    let value = |name: &str| table.get(name);

    let comm = value("comm").map(comm_pattern).transpose()?;
    let cgroup = value("cgroup").map(cgroup_pattern).transpose()?;
    if comm.is_none() && cgroup.is_none() {
        return mistake(
            span,
            "this rule matches nothing: give it a comm or a cgroup",
        );
    }
    let treatment = match value("class") {
        Some(class) => background(class, table)?,
        None => Treatment::Deadline(declared(&span, table)?),
    };
    Ok(Rule {
        comm,
        cgroup,
        treatment,
        line: line_of(text, span.start),
    })
}

fn background(class: &Value<'_>, table: &DeTable<'_>) -> Result<Treatment, Mistake> {
    let name = string("class", class)?;
    if name != "background" {
        return mistake(
            class.span(),
            format!("class `{name}` is unknown: the only one is \"background\""),
        );
    }
    for (key, _) in table {
        let name: &str = key.get_ref();
        if !["comm", "cgroup", "class"].contains(&name) {
            return mistake(
                key.span(),
                format!("a background rule has no deadlines: remove `{name}` or the class"),
            );
        }
    }
    Ok(Treatment::Background)
}

fn declared(span: &Range<usize>, table: &DeTable<'_>) -> Result<Hint, Mistake> {
    let time = |name: &str| {
        table.get(name).map_or(Ok(None), |value| {
            let text = match value.get_ref() {
                DeValue::Integer(n) => {
                    return mistake(
                        value.span(),
                        format!("{name} has no unit: write it as \"{n}ms\" or \"{n}us\""),
                    )
                }
                _ => string(name, value)?,
            };
            match duration::parse(text) {
                Ok(ns) => Ok(Some(ns)),
                Err(e) => mistake(value.span(), format!("{name}: {e}")),
            }
        })
    };
    let (runtime, deadline, period) = (time("runtime")?, time("deadline")?, time("period")?);
    let (Some(runtime), Some(period)) = (runtime, period) else {
        let missing = if runtime.is_none() {
            "runtime"
        } else {
            "period"
        };
        return mistake(
            span.clone(),
            format!(
                "this rule has no {missing}: give runtime and period, or class = \"background\""
            ),
        );
    };
    let criticality = match table.get("criticality") {
        None => 0,
        Some(value) => integer("criticality", value)?,
    };
    Hint::new(runtime, deadline.unwrap_or(period), period, criticality)
        .or_else(|e| mistake(span.clone(), e.to_string()))
}

fn comm_pattern(value: &Value<'_>) -> Result<Pattern, Mistake> {
    let pattern = pattern("comm", value)?;
    if pattern.text.len() > RULE_COMM_MAX {
        let mut end = RULE_COMM_MAX;
        while !pattern.text.is_char_boundary(end) {
            end -= 1;
        }
        return mistake(
            value.span(),
            format!(
                "comm `{}` is {} bytes long and the kernel keeps {RULE_COMM_MAX} of a name: write `{}`",
                pattern.text,
                pattern.text.len(),
                &pattern.text[..end]
            ),
        );
    }
    Ok(pattern)
}

fn cgroup_pattern(value: &Value<'_>) -> Result<Pattern, Mistake> {
    let pattern = pattern("cgroup", value)?;
    if pattern.text.contains('/') {
        return mistake(
            value.span(),
            format!(
                "cgroup `{}` is a path: give the name of one directory in it",
                pattern.text
            ),
        );
    }
    if pattern.text.len() > RULE_CGROUP_MAX {
        return mistake(
            value.span(),
            format!(
                "cgroup `{}` is longer than {RULE_CGROUP_MAX} bytes: shorten it with a trailing *",
                pattern.text
            ),
        );
    }
    Ok(pattern)
}

fn pattern(key: &str, value: &Value<'_>) -> Result<Pattern, Mistake> {
    let written = string(key, value)?;
    let (text, prefix) = match written.strip_suffix('*') {
        Some(text) => (text, true),
        None => (written, false),
    };
    if text.is_empty() {
        let what = if prefix {
            format!("{key} `*` would match every task: give at least one character before it")
        } else {
            format!("{key} is empty: give a name")
        };
        return mistake(value.span(), what);
    }
    if text.contains('*') {
        return mistake(
            value.span(),
            format!("{key} `{written}` has a * that is not at its end"),
        );
    }
    if text.chars().any(|c| c == '\0' || c == '\n') {
        return mistake(
            value.span(),
            format!("{key} has a character no name can have"),
        );
    }
    Ok(Pattern {
        text: text.to_owned(),
        prefix,
    })
}

fn string<'a>(key: &str, value: &'a Value<'_>) -> Result<&'a str, Mistake> {
    match value.get_ref() {
        DeValue::String(text) => Ok(text),
        other => mistake(
            value.span(),
            format!("{key} is {}, not text in quotes", kind(other)),
        ),
    }
}

fn integer(key: &str, value: &Value<'_>) -> Result<u32, Mistake> {
    match value.get_ref() {
        DeValue::Integer(n) => u32::from_str_radix(n.as_str(), n.radix())
            .or_else(|_| mistake(value.span(), format!("{key} {n} is out of range"))),
        other => mistake(
            value.span(),
            format!("{key} is {}, not a whole number", kind(other)),
        ),
    }
}

fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a fraction",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

#[cfg(test)]
mod tests;
