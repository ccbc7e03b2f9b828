//! `--metrics`: the figures as text for Prometheus, in a file or at a socket.

pub mod http;
#[cfg(test)]
mod tests;

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{bail, Context, Result};
use log::warn;

use super::monitor::source::Source;
use crate::agent::stats::Dialect;
use crate::report::file::write_whole;

/// node_exporter is asked four times a minute as a rule.
const WRITE_EVERY: Duration = Duration::from_secs(5);
/// While the scheduler is being loaded, and is not there to ask.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Where the figures go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    File(PathBuf),
    Socket(PathBuf),
}

/// From the command line.
pub fn target(text: &str) -> Result<Target, String> {
    let (path, of): (&str, fn(PathBuf) -> Target) = match text.strip_prefix("unix:") {
        Some(path) => (path, Target::Socket),
        None => (text, Target::File),
    };
    match path.is_empty() || path.ends_with('/') {
        true => Err("give a file, or unix:PATH for a socket".into()),
        false => Ok(of(path.into())),
    }
}

/// Serves or writes the figures from its own thread until it is dropped, and then takes file or
/// socket away: who reads old figures takes them for new ones.
pub struct Publisher {
    path: PathBuf,
    /// Whoever writes holds it.
    is_over: Arc<Mutex<bool>>,
}

impl Publisher {
    /// `stats` is where the scheduler serves its figures, once it is loaded.
    pub fn start(target: &Target, stats: &Path) -> Result<Publisher> {
        let is_over = Arc::new(Mutex::new(false));
        let source = Source::new(stats);
        let path = match target {
            Target::File(path) => {
                // Says what is wrong with the place at once, and takes the figures of a
                // scheduler that was killed away.
                write_whole(path, b"# scx_temponet is not loaded yet\n")
                    .with_context(|| format!("--metrics {}", path.display()))?;
                let (path, is_over) = (path.clone(), is_over.clone());
                thread::spawn(move || write_again_and_again(&path, source, &is_over));
                path_of(target)
            }
            Target::Socket(path) => {
                let listener =
                    listen(path).with_context(|| format!("--metrics unix:{}", path.display()))?;
                thread::spawn(move || serve(&listener, source));
                path_of(target)
            }
        };
        Ok(Publisher { path, is_over })
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        *self.is_over.lock().unwrap_or_else(PoisonError::into_inner) = true;
        let _ = fs::remove_file(&self.path);
    }
}

fn path_of(target: &Target) -> PathBuf {
    let (Target::File(path) | Target::Socket(path)) = target;
    path.clone()
}

fn write_again_and_again(path: &Path, mut source: Source, is_over: &Mutex<bool>) {
    let mut complaint = String::new();
    loop {
        let mut pause = WRITE_EVERY;
        match source.text(Dialect::Prometheus) {
            Err(_) => pause = LOOK_EVERY,
            Ok(text) => {
                let over = is_over.lock().unwrap_or_else(PoisonError::into_inner);
                if *over {
                    return;
                }
                let trouble = match write_whole(path, text.as_bytes()) {
                    Ok(()) => String::new(),
                    Err(error) => format!("{error:#}"),
                };
                if !trouble.is_empty() && trouble != complaint {
                    warn!("--metrics: {trouble}; trying again");
                }
                complaint = trouble;
            }
        }
        thread::sleep(pause);
    }
}

/// Root may connect, and in a folder with the set-group-id bit that group too.
fn listen(path: &Path) -> Result<UnixListener> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error.into()),
        Ok(meta) if !meta.file_type().is_socket() => bail!("it exists and is no socket"),
        Ok(_) => match UnixStream::connect(path) {
            // Of one that was killed.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                fs::remove_file(path)?;
            }
            _ => bail!("another program listens there"),
        },
    }
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o660))?;
    Ok(listener)
}

/// One after the other, so that clients without end take one thread and no more.
fn serve(listener: &UnixListener, mut source: Source) {
    for client in listener.incoming() {
        match client {
            // A client that has gone is no business of ours.
            Ok(client) => drop(http::answer(client, |dialect| source.text(dialect))),
            // Without file descriptors, for example.
            Err(_) => thread::sleep(LOOK_EVERY),
        }
    }
}
