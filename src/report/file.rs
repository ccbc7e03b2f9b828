//! Results are written whole or not at all.

use std::path::Path;

use anyhow::{Context, Result};

/// Writes all of it or leaves what was there.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    let written = std::fs::write(&partial, bytes).and_then(|()| std::fs::rename(&partial, path));
    if written.is_err() {
        // A full disk is not helped by half a result; nothing more can be done.
        let _ = std::fs::remove_file(&partial);
    }
    written.with_context(|| format!("cannot write {}", path.display()))
}
