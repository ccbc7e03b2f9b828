//! `scx_temponet monitor`: what a loaded scheduler is doing, full screen.

mod scene;
mod source;
#[cfg(test)]
mod tests;
mod text;
mod view;

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{bail, Context, Result};
use clap::Args;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::DefaultTerminal;

use self::scene::Scene;
use self::source::Source;
use super::out;

/// Watch a scheduler that is already loaded, full screen.
///
/// One lane per CPU with what runs there, the tasks whose deadlines are most in
/// danger, who decides how often and how late, and deadlines met and missed.
/// `--json` prints the figures instead, a line each time, and ends with status 2 where no
/// scheduler is loaded.
#[derive(Debug, Args)]
pub struct MonitorArgs {
    /// Seconds between two looks
    #[arg(short, long, value_name = "SECONDS", default_value = "1", value_parser = super::load::interval)]
    interval: Duration,

    /// Print the figures as JSON, a line each time, and draw nothing
    #[arg(long)]
    json: bool,

    /// Where the scheduler serves its figures
    #[arg(long, value_name = "PATH", default_value = "/var/run/scx/root/stats")]
    socket: PathBuf,
}

pub fn run(args: &MonitorArgs) -> Result<()> {
    let source = Source::new(&args.socket);
    if args.json {
        return print(source, args.interval);
    }
    if !std::io::stdout().is_terminal() {
        bail!("standard output is no terminal; --json prints the figures");
    }
    let mut terminal = ratatui::try_init().context("cannot draw on this terminal")?;
    let watched = watch(&mut terminal, source, args.interval);
    ratatui::restore();
    watched
}

/// A scheduler that is being started is waited for this long.
const SHORT_WAIT: Duration = Duration::from_secs(3);

/// Without a scheduler this ends; one that was there may come back, and why there is nothing
/// meanwhile is said on standard error whenever the reason changes.
fn print(mut source: Source, interval: Duration) -> Result<()> {
    let mut complaint = String::new();
    let mut seen = false;
    let until = Instant::now() + SHORT_WAIT;
    loop {
        match source.read() {
            Ok(figures) => {
                // One write for the line: a reader never sees half of it.
                let written = std::io::stdout().write_all(format!("{figures}\n").as_bytes());
                match written {
                    Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => return Ok(()),
                    written => written.context("cannot write the figures")?,
                }
                complaint.clear();
                seen = true;
            }
            Err(reason) if !seen => {
                if Instant::now() >= until {
                    bail!(
                        "{reason}; load one with `scx_temponet`, or say where it is with --socket"
                    );
                }
                std::thread::sleep(interval.min(SHORT_WAIT / 10));
                continue;
            }
            Err(reason) => {
                if reason != complaint {
                    out::errln!("scx_temponet: {reason}");
                }
                complaint = reason;
            }
        }
        std::thread::sleep(interval);
    }
}

fn watch(terminal: &mut DefaultTerminal, mut source: Source, interval: Duration) -> Result<()> {
    loop {
        let scene = match source.read() {
            Ok(figures) => Scene::from_json(&figures),
            Err(reason) => Scene::absent(reason),
        };
        let next = Instant::now() + interval;
        loop {
            terminal.draw(|frame| view::draw(frame, &scene))?;
            let left = next.saturating_duration_since(Instant::now());
            // A key or a new size ends the wait; the figures stay until it is time.
            if !event::poll(left)? {
                break;
            }
            if matches!(event::read()?, Event::Key(key) if is_farewell(key)) {
                return Ok(());
            }
        }
    }
}

/// In raw mode Ctrl-C is a key like any other.
fn is_farewell(key: KeyEvent) -> bool {
    key.kind == KeyEventKind::Press
        && match key.code {
            KeyCode::Char('q') | KeyCode::Esc => true,
            KeyCode::Char('c') => key.modifiers.contains(KeyModifiers::CONTROL),
            _ => false,
        }
}
