//! What goes into a guest, and what it says line by line: a guest that is killed keeps
//! nothing back.

use serde::{Deserialize, Serialize};

use super::measured::Measured;
use super::subject::Work;

pub const VERSION: u32 = 1;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Batch {
    pub version: u32,
    pub subjects: Vec<BatchSubject>,
    pub runs: Vec<BatchRun>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BatchSubject {
    pub work: Work,
    pub cores: usize,
    pub slowdown: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchRun {
    /// The sender's number for it.
    pub id: usize,
    /// Of the batch's subjects.
    pub subject: usize,
    pub scheduler: String,
}

/// A line that the guest says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Line {
    Ready { kernel: String, calibration_ns: u32 },
    Begin { id: usize },
    Measured { id: usize, measured: Measured },
    Failed { id: usize, why: String },
}

/// So that nothing else on the same stream is taken for one.
const MARK: &str = "@compare ";

impl Line {
    pub fn to_text(&self) -> String {
        // Numbers, words and lists of them: there is nothing that JSON cannot say.
        let json = serde_json::to_string(self).unwrap_or_default();
        format!("{MARK}{json}\n")
    }

    /// Nothing for what is no such line, or only the beginning of one.
    pub fn parse(text: &str) -> Option<Line> {
        serde_json::from_str(text.trim_end().strip_prefix(MARK)?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_back_and_anything_else_is_none() {
        let line = Line::Failed {
            id: 3,
            why: "a \"reason\"\nin two lines".into(),
        };
        let text = line.to_text();
        assert_eq!(text.lines().count(), 1);
        assert_eq!(Line::parse(&text), Some(line));
        assert_eq!(Line::parse(&text[..text.len() / 2]), None);
        assert_eq!(Line::parse("rt-app: some words"), None);
    }
}
