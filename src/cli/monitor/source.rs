//! The scheduler's figures, from the socket that `--monitor` reads too.

use std::path::{Path, PathBuf};

use scx_stats::prelude::*;
use serde_json::Value;

/// A scheduler that answers later than this is as good as gone. The thread that answers is a
/// task like others, and may have to wait for as long as any (`TN_STARVE_BOUND`, 4 s).
const PATIENCE_MS: u64 = 6000;

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

    /// What happened since the last time. A scheduler may come and go between
    /// two calls; the error says why there is nothing now.
    pub fn read(&mut self) -> Result<Value, String> {
        let mut client = match self.client.take() {
            Some(client) => client,
            None => StatsClient::new()
                .set_path(&self.socket)
                .connect(Some(PATIENCE_MS))
                .map_err(|e| format!("no scheduler answers at {}: {e:#}", self.socket.display()))?,
        };
        let figures = client
            .request("stats", Vec::new())
            .map_err(|e| format!("the scheduler stopped answering: {e:#}"))?;
        self.client = Some(client);
        Ok(figures)
    }
}
