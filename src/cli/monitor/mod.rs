//! `scx_temponet monitor`: what a loaded scheduler is doing, full screen.

mod app;
mod history;
mod panels;
pub(super) mod source;
mod tasks;
#[cfg(test)]
mod tests;
pub(super) mod text;
pub(super) mod verdict;
mod view;

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{bail, Context, Result};
use clap::Args;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{self, Event};
use ratatui::{DefaultTerminal, Terminal};
use serde_json::Value;

use self::app::{App, Step};
use self::source::Source;
use super::out;

/// Where scx_stats has a scheduler serve its figures.
pub(super) const SOCKET: &str = "/var/run/scx/root/stats";

/// Watch a scheduler that is already loaded, full screen.
///
/// What decides now, deadlines met and missed per second and since load, their history, the
/// tasks that miss most or are about to, and every CPU's load. Keys: q quits, p pauses, s sorts,
/// / filters, ? explains.
/// `--once` prints the same as text and ends; `--json` prints the figures, a line each time.
/// Both end with status 2 where no scheduler is loaded.
#[derive(Debug, Args)]
pub struct MonitorArgs {
    /// Time between two looks, such as 500ms; a number alone is seconds
    #[arg(short, long, value_name = "TIME", default_value = "1s", value_parser = super::load::interval)]
    interval: Duration,

    /// Print the figures of one interval and end; no terminal is needed
    #[arg(long)]
    once: bool,

    /// Print the figures as JSON, a line each time, and draw nothing
    #[arg(long)]
    json: bool,

    /// With --json: print the figures since load, not those between two looks
    #[arg(long, requires = "json")]
    since_load: bool,

    /// Where the scheduler serves its figures
    #[arg(long, value_name = "PATH", default_value = SOCKET)]
    socket: PathBuf,
}

pub fn run(args: &MonitorArgs) -> Result<()> {
    let source = Source::new(&args.socket);
    if args.json {
        return print(source, args);
    }
    if args.once {
        return out::write(&once(source, args.interval)?);
    }
    if !std::io::stdout().is_terminal() {
        bail!("standard output is no terminal; --once and --json print the figures");
    }
    let mut terminal = ratatui::try_init().context("cannot draw on this terminal")?;
    let watched = watch(&mut terminal, source, args.interval);
    ratatui::restore();
    watched
}

/// A scheduler that is being started is waited for this long.
const SHORT_WAIT: Duration = Duration::from_secs(3);

/// Without a scheduler this ends.
fn first_look<T>(mut look: impl FnMut() -> Result<T, String>, interval: Duration) -> Result<T> {
    let until = Instant::now() + SHORT_WAIT;
    loop {
        match look() {
            Ok(seen) => return Ok(seen),
            Err(reason) if Instant::now() >= until => {
                bail!("{reason}; load one with `scx_temponet`, or say where it is with --socket")
            }
            Err(_) => std::thread::sleep(interval.min(SHORT_WAIT / 10)),
        }
    }
}

/// A scheduler that was there may come back, and why there is nothing meanwhile is said on
/// standard error whenever the reason changes.
fn print(mut source: Source, args: &MonitorArgs) -> Result<()> {
    let (interval, once) = (args.interval, args.once);
    let mut read = || match args.since_load {
        true => source.read_total(),
        false => source.read(),
    };
    let mut figures: Result<Value, String> = Ok(first_look(&mut read, interval)?);
    if once && !args.since_load {
        std::thread::sleep(interval);
        figures = read();
    }
    let mut complaint = String::new();
    loop {
        match figures {
            Ok(figures) => {
                // One write for the line: a reader never sees half of it.
                let written = std::io::stdout().write_all(format!("{figures}\n").as_bytes());
                match written {
                    Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => return Ok(()),
                    written => written.context("cannot write the figures")?,
                }
                complaint.clear();
            }
            Err(reason) if once => bail!("{reason}"),
            Err(reason) => {
                if reason != complaint {
                    out::errln!("scx_temponet: {reason}");
                }
                complaint = reason;
            }
        }
        if once {
            return Ok(());
        }
        std::thread::sleep(interval);
        figures = read();
    }
}

/// Where nobody says how wide a line may be.
const USUAL_WIDTH: u16 = 100;
/// Nothing is cut off for want of height.
const TALL: u16 = 400;

fn once(mut source: Source, interval: Duration) -> Result<String> {
    first_look(|| source.look(), interval)?;
    std::thread::sleep(interval);
    let mut app = App::default();
    app.take(source.look());
    if let Some(Err(reason)) = &app.look {
        bail!("{reason}");
    }
    let columns = std::env::var("COLUMNS").ok().and_then(|n| n.parse().ok());
    let width = match ratatui::crossterm::terminal::size() {
        Ok((width, _)) if std::io::stdout().is_terminal() => width,
        _ => columns.unwrap_or(USUAL_WIDTH),
    };
    let mut lines = drawn(&app, width.clamp(40, 400), TALL)?;
    // The keys.
    lines.pop();
    while lines.last().is_some_and(|line| line.is_empty()) {
        lines.pop();
    }
    Ok(lines.join("\n") + "\n")
}

/// The screen as text.
fn drawn(app: &App, width: u16, height: u16) -> Result<Vec<String>> {
    let mut terminal = Terminal::new(TestBackend::new(width, height))?;
    terminal.draw(|frame| view::draw(frame, app))?;
    let buffer = terminal.backend().buffer();
    let line = |y| -> String { (0..width).map(|x| buffer[(x, y)].symbol()).collect() };
    Ok((0..height).map(|y| line(y).trim_end().to_owned()).collect())
}

/// A scheduler counts from when it is first asked, so the first figures need a moment.
const FIRST_MOMENT: Duration = Duration::from_millis(300);

fn watch(terminal: &mut DefaultTerminal, mut source: Source, interval: Duration) -> Result<()> {
    let mut app = App::default();
    loop {
        let mut wait = interval;
        if !app.is_paused {
            let was_open = source.is_open();
            match source.look() {
                Ok(_) if !was_open => wait = FIRST_MOMENT.min(interval),
                look => app.take(look),
            }
        }
        let next = Instant::now() + wait;
        loop {
            terminal.draw(|frame| view::draw(frame, &app))?;
            let left = next.saturating_duration_since(Instant::now());
            // A key or a new size ends the wait; the figures stay until it is time.
            if !event::poll(left)? {
                break;
            }
            if let Event::Key(key) = event::read()? {
                if app.press(key) == Step::Quit {
                    return Ok(());
                }
            }
        }
    }
}
