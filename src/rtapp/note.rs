//! Where something stands in a file, and what there is to say about it.

use std::collections::HashMap;
use std::fmt;

use serde::Serialize;
use thiserror::Error;

/// Counted from 1, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Place {
    pub line: u32,
    pub column: u32,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// Why a file cannot be used, and where.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{at}: {what}")]
pub struct Fault {
    pub at: Place,
    pub what: String,
}

impl Fault {
    pub fn new(at: Place, what: impl Into<String>) -> Fault {
        let what = what.into();
        Fault { at, what }
    }
}

/// Something the reader should know: what is not modelled, or not as written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Note {
    /// Every place it is about; none when it is about the whole.
    pub at: Vec<Place>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    pub what: String,
}

impl fmt::Display for Note {
    /// `12:5, 14:5: thread a, phase b: what`.
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let whose = self.whose();
        match (self.places(), whose.is_empty()) {
            (places, _) if places.is_empty() && whose.is_empty() => write!(f, "{}", self.what),
            (places, true) => write!(f, "{places}: {}", self.what),
            (places, false) if places.is_empty() => write!(f, "{whose}: {}", self.what),
            (places, false) => write!(f, "{places}: {whose}: {}", self.what),
        }
    }
}

impl Note {
    fn places(&self) -> String {
        let places: Vec<String> = self.at.iter().map(Place::to_string).collect();
        places.join(", ")
    }

    fn whose(&self) -> String {
        match (&self.thread, &self.phase) {
            (Some(thread), Some(phase)) => format!("thread {thread}, phase {phase}"),
            (Some(thread), None) => format!("thread {thread}"),
            (None, _) => String::new(),
        }
    }
}

/// For people: each thing said once, with everybody it is about and where, in the
/// order of the first. `[("what", ["12:5, 14:5 thread a", ...])]`
pub fn grouped(notes: &[Note]) -> Vec<(&str, Vec<String>)> {
    let mut groups: Vec<(&str, Vec<String>)> = Vec::new();
    let mut known = HashMap::new();
    for note in notes {
        let group = *known.entry(note.what.as_str()).or_insert_with(|| {
            groups.push((&note.what, Vec::new()));
            groups.len() - 1
        });
        let mention = format!("{} {}", note.places(), note.whose());
        if !mention.trim().is_empty() {
            groups[group].1.push(mention.trim().to_owned());
        }
    }
    groups
}

/// What a note is about, but for its place.
#[derive(Clone, Copy, Debug, Default)]
pub struct About<'a> {
    pub thread: Option<&'a str>,
    pub phase: Option<&'a str>,
}

/// Notes as they come up; the same thing said twice becomes one note with two places.
#[derive(Clone, Debug, Default)]
pub struct Notes {
    notes: Vec<Note>,
    known: HashMap<(Option<String>, Option<String>, String), usize>,
    dropped: usize,
}

impl Notes {
    /// A file with more to say than this is not one that somebody wrote.
    const MOST: usize = 1000;

    pub fn add(&mut self, at: Option<Place>, about: About, what: impl Into<String>) {
        let key = (
            about.thread.map(str::to_owned),
            about.phase.map(str::to_owned),
            what.into(),
        );
        if let Some(&i) = self.known.get(&key) {
            let places = &mut self.notes[i].at;
            if places.len() < Self::MOST && at.is_some_and(|at| !places.contains(&at)) {
                places.extend(at);
            }
        } else if self.notes.len() == Self::MOST {
            self.dropped += 1;
        } else {
            self.known.insert(key.clone(), self.notes.len());
            let (thread, phase, what) = key;
            let at = at.into_iter().collect();
            self.notes.push(Note {
                at,
                thread,
                phase,
                what,
            });
        }
    }

    /// In the order of the file; what has no place comes last.
    pub fn into_sorted(mut self) -> Vec<Note> {
        self.notes
            .sort_by_key(|note| (note.at.is_empty(), note.at.first().copied()));
        if self.dropped > 0 {
            self.notes.push(Note {
                at: Vec::new(),
                thread: None,
                phase: None,
                what: format!("{} more notes are left out", self.dropped),
            });
        }
        self.notes
    }
}
