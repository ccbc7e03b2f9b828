//! Who else could change what a path leads to. Root must not run, or write, what another
//! user can put in its place.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use thiserror::Error;

#[derive(Debug, Error)]
pub enum Untrusted {
    #[error("{} belongs to user {owner}", .path.display())]
    Foreign { path: PathBuf, owner: u32 },
    #[error("{} can be written by others", .path.display())]
    Writable { path: PathBuf },
    #[error("{}: {source}", .path.display())]
    Io { path: PathBuf, source: io::Error },
}

/// Whose files count as ours.
#[derive(Clone, Copy, Debug)]
struct User {
    uid: u32,
    /// A group that has nobody else in it: by custom its number is the user's.
    private_gid: Option<u32>,
    /// Whose program runs already.
    author: Option<u32>,
}

impl User {
    fn this() -> User {
        // SAFETY: neither has arguments, and neither can fail.
        let (uid, gid) = unsafe { (libc::geteuid(), libc::getegid()) };
        User {
            uid,
            private_gid: (uid == gid).then_some(gid),
            author: None,
        }
    }

    fn has(self, uid: u32) -> bool {
        uid == 0 || uid == self.uid || Some(uid) == self.author
    }

    fn check(self, path: &Path, meta: &Metadata) -> Result<(), Untrusted> {
        if !self.has(meta.uid()) {
            return Err(Untrusted::Foreign {
                path: path.into(),
                owner: meta.uid(),
            });
        }
        let private = [self.private_gid, self.author];
        let is_ours = meta.gid() == 0 || private.contains(&Some(meta.gid()));
        let by_group = meta.mode() & 0o020 != 0 && !is_ours;
        // In a sticky folder nobody can replace what belongs to another.
        let is_sticky = meta.is_dir() && meta.mode() & 0o1000 != 0;
        if (by_group || meta.mode() & 0o002 != 0) && !is_sticky {
            return Err(Untrusted::Writable { path: path.into() });
        }
        Ok(())
    }
}

/// The path without symbolic links, once nobody but root and this user can change the
/// file, or put another in its place. Use the path that is returned: the links of the
/// other one may be somebody else's.
pub fn unchangeable(path: &Path) -> Result<PathBuf, Untrusted> {
    let real = real_path(path)?;
    check_each(&real, User::this())?;
    Ok(real)
}

/// The same for a file that is to be written, and so need not exist; what can be written
/// by others, such as /dev/null, stays what it is.
pub fn irreplaceable(path: &Path) -> Result<PathBuf, Untrusted> {
    let real = match (real_path(path), path.parent(), path.file_name()) {
        (Err(Untrusted::Io { source, .. }), Some(folder), Some(name))
            if source.kind() == io::ErrorKind::NotFound =>
        {
            // A link that leads nowhere would be followed.
            if path.is_symlink() {
                return Err(failed(path)(source));
            }
            real_path(folder)?.join(name)
        }
        (real, ..) => real?,
    };
    match fs::metadata(&real) {
        Ok(meta) if meta.uid() != 0 && meta.uid() != User::this().uid => Err(Untrusted::Foreign {
            path: real,
            owner: meta.uid(),
        }),
        _ => {
            let folder = real.parent();
            folder.map_or(Ok(()), |folder| check_each(folder, User::this()))?;
            Ok(real)
        }
    }
}

/// Every file of a folder, at any depth. The files may be those of `author`, whose program runs
/// already.
pub fn unchangeable_tree(folder: &Path, author: Option<u32>) -> Result<(), Untrusted> {
    let user = User {
        author,
        ..User::this()
    };
    check_each(&real_path(folder)?, user)?;
    check_below(folder, user)
}

fn check_below(folder: &Path, user: User) -> Result<(), Untrusted> {
    for entry in fs::read_dir(folder).map_err(failed(folder))? {
        let path = entry.map_err(failed(folder))?.path();
        let meta = fs::symlink_metadata(&path).map_err(failed(&path))?;
        if meta.is_symlink() {
            check_each(&real_path(&path)?, user)?;
            continue;
        }
        user.check(&path, &meta)?;
        if meta.is_dir() {
            check_below(&path, user)?;
        }
    }
    Ok(())
}

/// The path and all folders above it.
fn check_each(path: &Path, user: User) -> Result<(), Untrusted> {
    path.ancestors().try_for_each(|part| {
        let meta = fs::symlink_metadata(part).map_err(failed(part))?;
        user.check(part, &meta)
    })
}

fn real_path(path: &Path) -> Result<PathBuf, Untrusted> {
    fs::canonicalize(path).map_err(failed(path))
}

fn failed(path: &Path) -> impl Fn(io::Error) -> Untrusted + '_ {
    move |source| Untrusted::Io {
        path: path.into(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{chown, symlink, PermissionsExt};

    use super::*;

    fn file(folder: &Path, name: &str, mode: u32) -> PathBuf {
        let path = folder.join(name);
        fs::write(&path, "").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        path
    }

    #[test]
    fn what_others_can_write_or_replace_is_not_trusted() {
        let folder = tempfile::tempdir().unwrap();
        let own = file(folder.path(), "own", 0o644);
        assert_eq!(unchangeable(&own).unwrap(), own.canonicalize().unwrap());
        let open = file(folder.path(), "open", 0o646);
        assert!(matches!(
            unchangeable(&open),
            Err(Untrusted::Writable { path }) if path.ends_with("open")
        ));
        fs::set_permissions(folder.path(), Permissions::from_mode(0o757)).unwrap();
        unchangeable(&own).unwrap_err();
        irreplaceable(&own).unwrap_err();
        unchangeable_tree(folder.path(), None).unwrap_err();
        // As /tmp is: others may add files, and leave ours alone.
        fs::set_permissions(folder.path(), Permissions::from_mode(0o1777)).unwrap();
        unchangeable(&own).unwrap();
    }

    #[test]
    fn a_file_of_another_user_is_not_trusted_wherever_it_lies() {
        let folder = tempfile::tempdir().unwrap();
        let foreign = file(folder.path(), "foreign", 0o755);
        if chown(&foreign, Some(65534), None).is_err() {
            eprintln!("skipped: needs root to give a file away");
            return;
        }
        let said = unchangeable(&foreign).unwrap_err().to_string();
        assert!(said.ends_with("foreign belongs to user 65534"), "{said}");
        irreplaceable(&foreign).unwrap_err();
        unchangeable_tree(folder.path(), None).unwrap_err();
        unchangeable_tree(folder.path(), Some(65534)).unwrap();
        let link = folder.path().join("link");
        symlink(&foreign, &link).unwrap();
        unchangeable(&link).unwrap_err();
    }

    #[test]
    fn a_link_is_followed_once_and_its_end_is_what_counts() {
        let folder = tempfile::tempdir().unwrap();
        let own = file(folder.path(), "own", 0o644);
        let link = folder.path().join("link");
        symlink(&own, &link).unwrap();
        assert_eq!(unchangeable(&link).unwrap(), own.canonicalize().unwrap());
        let nowhere = folder.path().join("nowhere");
        symlink(folder.path().join("missing"), &nowhere).unwrap();
        irreplaceable(&nowhere).unwrap_err();
    }

    #[test]
    fn a_new_file_and_a_device_may_be_written() {
        let folder = tempfile::tempdir().unwrap();
        let new = folder.path().join("new");
        assert!(irreplaceable(&new).unwrap().ends_with("new"));
        assert_eq!(
            irreplaceable(Path::new("/dev/null")).unwrap(),
            Path::new("/dev/null")
        );
    }
}
