//! The socket in the file system: made where only we can make it, open to all.

use super::seqpacket;
use crate::trust::{self, Untrusted};
use std::fs::{self, Permissions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;
use thiserror::Error;

#[derive(Debug, Error)]
pub enum ServerError {
    #[error("another scx_temponet is listening on {}", .0.display())]
    InUse(PathBuf),
    #[error("{} exists and is not a socket", .0.display())]
    NotASocket(PathBuf),
    #[error("another user could put a socket of their own there: {0}")]
    Directory(#[from] Untrusted),
    #[error("cannot listen on {}: {source}", .path.display())]
    Bind { path: PathBuf, source: io::Error },
    #[error("the hint service cannot be started: {0}")]
    Io(#[from] io::Error),
}

pub struct SocketFile {
    listener: OwnedFd,
    path: PathBuf,
    inode: (u64, u64),
}

impl SocketFile {
    pub fn bind(path: &Path, backlog: i32, mode: u32) -> Result<Self, ServerError> {
        let failed = |source| ServerError::Bind {
            path: path.to_owned(),
            source,
        };
        if let Some(directory) = path.parent().filter(|d| !d.as_os_str().is_empty()) {
            make_directory(directory).map_err(failed)?;
            trust::unchangeable(directory)?;
        }
        remove_stale(path)?;
        let listener = seqpacket::listen(path, backlog).map_err(failed)?;
        fs::set_permissions(path, Permissions::from_mode(mode)).map_err(failed)?;
        let meta = fs::symlink_metadata(path).map_err(failed)?;
        Ok(Self {
            listener,
            path: path.to_owned(),
            inode: (meta.dev(), meta.ino()),
        })
    }

    pub fn listener(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // A successor may have put its own there already.
        let ours = fs::symlink_metadata(&self.path)
            .is_ok_and(|meta| (meta.dev(), meta.ino()) == self.inode);
        if ours {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Whatever the umask says, users must be able to reach the socket.
fn make_directory(directory: &Path) -> io::Result<()> {
    match fs::create_dir(directory) {
        Ok(()) => fs::set_permissions(directory, Permissions::from_mode(0o755)),
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(e) => Err(e),
    }
}

/// A daemon that was killed leaves its socket behind; one that lives answers.
fn remove_stale(path: &Path) -> Result<(), ServerError> {
    let meta = match fs::symlink_metadata(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other?,
    };
    if !meta.file_type().is_socket() {
        return Err(ServerError::NotASocket(path.to_owned()));
    }
    match seqpacket::connect(path, Duration::from_millis(200)) {
        Err(e) if e.kind() == io::ErrorKind::ConnectionRefused => Ok(fs::remove_file(path)?),
        _ => Err(ServerError::InUse(path.to_owned())),
    }
}
