//! Input is read once; results are written whole or not at all.

use std::io::Read as _;
use std::path::Path;

use anyhow::{Context, Result};

use crate::draft;

/// What stands for standard input on the command line.
pub const STDIN: &str = "-";

/// What an error calls the file.
pub fn called(path: &Path) -> &Path {
    match path.as_os_str() == STDIN {
        true => Path::new("standard input"),
        false => path,
    }
}

/// All of a file, or of standard input for `-`. In one go: what comes through a pipe, such
/// as `<(command)`, can be read only once.
pub fn read_whole(path: &Path) -> std::io::Result<Vec<u8>> {
    if path.as_os_str() != STDIN {
        return std::fs::read(path);
    }
    let mut bytes = Vec::new();
    std::io::stdin().lock().read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Writes all of it or leaves what was there.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<()> {
    draft::replace(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}
