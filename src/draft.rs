//! Results are written whole or not at all: into a draft beside the file, which then takes
//! its place. Nobody can know the draft's name beforehand, and what is there already is
//! never written to, so a link that somebody has laid leads nowhere.

use std::fs::{self, OpenOptions};
use std::hash::{BuildHasher, Hasher};
use std::io::{self, Write};
use std::path::Path;

/// Writes all of it or leaves what was there. What is no file, such as a pipe or a
/// terminal, is written to and stays what it is.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if fs::metadata(path).is_ok_and(|meta| !meta.is_file() && !meta.is_dir()) {
        return OpenOptions::new().write(true).open(path)?.write_all(bytes);
    }
    let draft = path.with_file_name(format!(".{}.partial", unused_name()));
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&draft)?;
    let written = file
        .write_all(bytes)
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(&draft, path));
    if written.is_err() {
        // A full disk is not helped by half a result; nothing more can be done.
        let _ = fs::remove_file(&draft);
    }
    written
}

/// A name that is free and that nobody can foresee.
pub fn unused_name() -> String {
    let number = std::hash::RandomState::new().build_hasher().finish();
    format!("scx_temponet-{number:016x}")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{symlink, FileTypeExt};

    use super::*;

    #[test]
    fn a_link_that_was_laid_beforehand_leads_nowhere() {
        let dir = tempfile::tempdir().unwrap();
        let (path, victim) = (dir.path().join("out.html"), dir.path().join("victim"));
        fs::write(&victim, "precious").unwrap();
        for laid in ["out.html.partial", "out.partial", "out.html"] {
            symlink(&victim, dir.path().join(laid)).unwrap();
        }
        replace(&path, b"result").unwrap();
        assert_eq!(fs::read(&victim).unwrap(), b"precious");
        assert_eq!(fs::read(&path).unwrap(), b"result");
        assert!(!fs::symlink_metadata(&path).unwrap().is_symlink());
    }

    #[test]
    fn a_draft_that_fails_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("taken")).unwrap();
        replace(&dir.path().join("taken"), b"x").unwrap_err();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_device_is_written_to_and_stays_one() {
        replace(Path::new("/dev/null"), b"x").unwrap();
        let meta = fs::metadata("/dev/null").unwrap();
        assert!(meta.file_type().is_char_device());
    }

    #[test]
    fn no_two_names_are_alike() {
        assert_ne!(unused_name(), unused_name());
    }
}
