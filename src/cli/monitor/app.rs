//! What is on the screen, and what keys do to it.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::history::{History, Sample};
use super::source::Look;
use super::text::clean;

/// Which tasks stand first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    #[default]
    Misses,
    Lateness,
    Slack,
    Name,
}

impl Sort {
    pub fn name(self) -> &'static str {
        match self {
            Sort::Misses => "misses",
            Sort::Lateness => "lateness",
            Sort::Slack => "slack",
            Sort::Name => "name",
        }
    }

    fn next(self) -> Sort {
        match self {
            Sort::Misses => Sort::Lateness,
            Sort::Lateness => Sort::Slack,
            Sort::Slack => Sort::Name,
            Sort::Name => Sort::Misses,
        }
    }
}

/// Names are at most 16 bytes and a number.
const LONGEST_FILTER: usize = 24;

#[derive(Debug, Default)]
pub struct App {
    /// The last look, or why there was nothing to see; none before the first.
    pub look: Option<Result<Look, String>>,
    pub history: History,
    pub sort: Sort,
    /// Only tasks and CPUs whose task has this in its name.
    pub filter: String,
    /// The filter is being typed.
    pub is_typing: bool,
    pub is_paused: bool,
    pub is_helping: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Stay,
    Quit,
}

impl App {
    pub fn take(&mut self, look: Result<Look, String>) {
        self.history.add(match &look {
            Ok(look) => Sample::of(&look.recent),
            Err(_) => Sample::default(),
        });
        self.look = Some(look.map_err(|reason| clean(&reason, 300)));
    }

    pub fn shows(&self, task: &str) -> bool {
        task.to_lowercase().contains(&self.filter.to_lowercase())
    }

    pub fn press(&mut self, key: KeyEvent) -> Step {
        if key.kind != KeyEventKind::Press {
            return Step::Stay;
        }
        // In raw mode Ctrl-C is a key like any other.
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        if control {
            return match key.code {
                KeyCode::Char('c') => Step::Quit,
                _ => Step::Stay,
            };
        }
        if self.is_typing {
            self.type_filter(key.code);
            return Step::Stay;
        }
        match key.code {
            KeyCode::Char('q') => return Step::Quit,
            // It leaves what is open first.
            KeyCode::Esc if self.is_helping => self.is_helping = false,
            KeyCode::Esc if !self.filter.is_empty() => self.filter.clear(),
            KeyCode::Esc => return Step::Quit,
            KeyCode::Char('?' | 'h') => self.is_helping = !self.is_helping,
            KeyCode::Char('p' | ' ') => self.is_paused = !self.is_paused,
            KeyCode::Char('s') => self.sort = self.sort.next(),
            KeyCode::Char('/' | 'f') => self.is_typing = true,
            _ => {}
        }
        Step::Stay
    }

    fn type_filter(&mut self, key: KeyCode) {
        match key {
            KeyCode::Enter => self.is_typing = false,
            KeyCode::Esc => {
                self.is_typing = false;
                self.filter.clear();
            }
            KeyCode::Backspace => {
                self.filter.pop();
            }
            KeyCode::Char(c) if self.filter.chars().count() < LONGEST_FILTER => self.filter.push(c),
            _ => {}
        }
    }
}
