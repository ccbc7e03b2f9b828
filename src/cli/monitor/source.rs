//! The scheduler's figures, from the socket that `--monitor` reads too.

use std::path::{Path, PathBuf};

use scx_stats::prelude::*;
use scx_stats::StatsErrno;
use serde::de::DeserializeOwned;

use crate::agent::stats::{Dialect, Metrics, RECENT, SINCE_LOAD};

/// A scheduler that answers later than this is as good as gone. The thread that answers is a
/// task like others, and may have to wait for as long as any (`TN_STARVE_BOUND`, 4 s).
const PATIENCE_MS: u64 = 6000;

/// What the scheduler served at one moment.
#[derive(Clone, Debug, Default)]
pub struct Look {
    /// Of the time since the look before.
    pub recent: Metrics,
    /// Since load; none from a scheduler too old to serve it.
    pub total: Option<Metrics>,
}

fn of(target: &str) -> Vec<(String, String)> {
    vec![("target".to_owned(), target.to_owned())]
}

pub struct Source {
    socket: PathBuf,
    client: Option<StatsClient>,
}

impl Source {
    pub fn new(socket: &Path) -> Self {
        Self {
            socket: socket.into(),
            client: None,
        }
    }

    /// Whether the next figures are those since the last ones, not those since now.
    pub fn is_open(&self) -> bool {
        self.client.is_some()
    }

    /// What happened since the last time. A scheduler may come and go between
    /// two calls; the error says why there is nothing now.
    pub fn read<T: DeserializeOwned>(&mut self) -> Result<T, String> {
        self.ask(RECENT)
    }

    /// What happened since load.
    pub fn read_total<T: DeserializeOwned>(&mut self) -> Result<T, String> {
        self.ask(SINCE_LOAD)
    }

    /// The totals as text for Prometheus.
    pub fn text(&mut self, dialect: Dialect) -> Result<String, String> {
        self.ask(dialect.target())
    }

    fn ask<T: DeserializeOwned>(&mut self, target: &str) -> Result<T, String> {
        let mut client = match self.client.take() {
            Some(client) => client,
            None => StatsClient::new()
                .set_path(&self.socket)
                .connect(Some(PATIENCE_MS))
                .map_err(|e| format!("no scheduler answers at {}: {e:#}", self.socket.display()))?,
        };
        let figures = client.request("stats", of(target)).map_err(|e| {
            match e.is::<serde_json::Error>() || e.is::<StatsErrno>() {
                true => format!(
                    "use the monitor of the scheduler's own version: this program cannot read \
                     its figures ({e})"
                ),
                false => format!("the scheduler stopped answering: {e:#}"),
            }
        })?;
        self.client = Some(client);
        Ok(figures)
    }

    /// The same with the totals.
    pub fn look(&mut self) -> Result<Look, String> {
        let recent = self.read()?;
        let mut total = None;
        if let Some(mut client) = self.client.take() {
            match client.request("stats", of(SINCE_LOAD)) {
                Ok(metrics) => {
                    total = Some(metrics);
                    self.client = Some(client);
                }
                // It answered, and knows no such figures.
                Err(e) if e.is::<StatsErrno>() => self.client = Some(client),
                // An answer that comes later would be taken for that to the next question.
                Err(_) => {}
            }
        }
        Ok(Look { recent, total })
    }
}
