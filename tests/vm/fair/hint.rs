//! Declares tasks to our scheduler, as a user would.
use anyhow::{Context, Result};
use std::process::Command;

/// Why it was refused, where it was.
pub fn declare(pid: i32, runtime_us: u64, period_us: u64) -> Result<Option<String>> {
    let output = Command::new("scx_temponet")
        .args(["hint", "--runtime", &format!("{runtime_us}us")])
        .args(["--period", &format!("{period_us}us")])
        .args(["--pid", &pid.to_string()])
        .output()
        .context("cannot start scx_temponet hint")?;
    let reason = String::from_utf8_lossy(&output.stderr).trim().to_string();
    Ok((!output.status.success()).then_some(reason))
}
