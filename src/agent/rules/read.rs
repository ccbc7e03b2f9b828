//! Reads a rules file.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};

use thiserror::Error;
use toml::de::{DeTable, DeValue};
use toml::Spanned;

use super::*;
use crate::hint::accounts::uid_of;
use crate::hint::duration;
use crate::report::file::{called, STDIN};
use crate::spelling::did_you_mean;

/// 64 rules fit into a hundredth of it.
const FILE_MAX: u64 = 1 << 20;

const KEYS: [&str; 9] = [
    "comm",
    "cgroup",
    "user",
    "max",
    "runtime",
    "deadline",
    "period",
    "criticality",
    "class",
];

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
    let cgroup = value("cgroup").map(place).transpose()?;
    let user = value("user").map(owner).transpose()?;
    if comm.is_none() && cgroup.is_none() && user.is_none() {
        return mistake(
            span,
            "this rule matches nothing: give it a comm, a cgroup or a user",
        );
    }
    let max = value("max").map(most).transpose()?;
    let treatment = match value("class") {
        Some(class) => background(class, table)?,
        None => Treatment::Deadline(declared(&span, table)?),
    };
    Ok(Rule {
        comm,
        cgroup,
        user,
        max,
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
        if !["comm", "cgroup", "user", "class"].contains(&name) {
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

/// A path begins with a slash; anything else is a name.
fn place(value: &Value<'_>) -> Result<Place, Mistake> {
    let written = string("cgroup", value)?;
    let Some(path) = written.strip_prefix('/') else {
        let name = pattern("cgroup", value)?;
        if name.text.contains('/') {
            return mistake(
                value.span(),
                format!(
                    "cgroup `{written}` is a path: begin it with /, or give one directory's name"
                ),
            );
        }
        check_length(value, &name)?;
        return Ok(Place::Named(name));
    };
    let names: Vec<&str> = path.split('/').collect();
    if names.len() > RULE_PATH_MAX {
        return mistake(
            value.span(),
            format!("cgroup `{written}` has more than {RULE_PATH_MAX} directories"),
        );
    }
    let (last, above) = names.split_last().unwrap_or((&"", &[]));
    let last = pattern_of("cgroup", last, value)?;
    let above = above.iter().map(|name| Pattern {
        text: (*name).to_owned(),
        prefix: false,
    });
    let path: Vec<Pattern> = above.chain([last]).collect();
    for name in &path {
        if ["", ".", ".."].contains(&name.text.as_str()) || name.text.contains('*') {
            return mistake(
                value.span(),
                format!("cgroup `{written}` is no path: write /a/b, or /a/b* for a beginning"),
            );
        }
        check_length(value, name)?;
    }
    Ok(Place::At(path))
}

fn check_length(value: &Value<'_>, name: &Pattern) -> Result<(), Mistake> {
    if name.text.len() <= RULE_CGROUP_MAX {
        return Ok(());
    }
    mistake(
        value.span(),
        format!(
            "cgroup `{}` is longer than {RULE_CGROUP_MAX} bytes: shorten it with a trailing *",
            name.text
        ),
    )
}

/// A user's name, or the number.
fn owner(value: &Value<'_>) -> Result<Owner, Mistake> {
    if let DeValue::Integer(_) = value.get_ref() {
        let uid = integer("user", value)?;
        // The kernel has no such user, and the BPF half takes it for nobody.
        if uid == u32::MAX {
            return mistake(value.span(), format!("{uid} is no user id"));
        }
        return Ok(Owner {
            uid,
            written: uid.to_string(),
        });
    }
    let written = string("user", value)?;
    match uid_of(written) {
        Some(uid) => Ok(Owner {
            uid,
            written: written.to_owned(),
        }),
        None => mistake(
            value.span(),
            format!("there is no user `{written}` in /etc/passwd: give a name that is there, or a number"),
        ),
    }
}

fn most(value: &Value<'_>) -> Result<u32, Mistake> {
    match integer("max", value)? {
        0 => mistake(value.span(), "max is 0: leave the rule out instead"),
        max => Ok(max),
    }
}

fn pattern(key: &str, value: &Value<'_>) -> Result<Pattern, Mistake> {
    pattern_of(key, string(key, value)?, value)
}

/// `value` is where a mistake is.
fn pattern_of(key: &str, written: &str, value: &Value<'_>) -> Result<Pattern, Mistake> {
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
