//! The cgroup of a user, as a login makes it, and all that the user runs in it.
use crate::{calls, sys};
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};

const ROOT: &str = "/sys/fs/cgroup";

pub struct Camp {
    uid: u32,
    folder: PathBuf,
    /// Where its tasks begin: the folder, or one below it.
    inner: PathBuf,
}

impl Camp {
    pub fn pitch(uid: u32) -> Result<Camp> {
        write(&Path::new(ROOT).join("cgroup.subtree_control"), "+cpu")?;
        let folder = Path::new(ROOT).join(format!("user-{uid}"));
        make(&folder)?;
        Ok(Camp {
            uid,
            inner: folder.clone(),
            folder,
        })
    }

    /// From now on tasks begin in a cgroup of that name below.
    pub fn name_inner(&mut self, name: &str) -> Result<()> {
        write(&self.folder.join("cgroup.subtree_control"), "+cpu")?;
        self.inner = self.folder.join(name);
        make(&self.inner)
    }

    /// A process of the user, which `prepare`s as root.
    pub fn start(&self, prepare: impl FnOnce(), work: impl FnOnce()) -> Result<i32> {
        let pid = sys::fork(|| {
            write(&self.inner.join("cgroup.procs"), "0").expect("a cgroup takes root's tasks");
            prepare();
            calls::become_user(self.uid).expect("root may become anybody");
            work();
        })?;
        Ok(pid)
    }

    /// CPU time of all, ns.
    pub fn usage(&self) -> Result<u64> {
        let text = fs::read_to_string(self.folder.join("cpu.stat"))?;
        let usage = text
            .lines()
            .find_map(|line| line.strip_prefix("usage_usec "));
        Ok(usage.context("no usage in cpu.stat")?.parse::<u64>()? * 1000)
    }

    /// Ends all that run in it.
    pub fn clear(&self) {
        // What cannot be ended is in the way of the next attack, which then says so.
        let _ = write(&self.folder.join("cgroup.kill"), "1");
        for _ in 0..500 {
            let events = fs::read_to_string(self.folder.join("cgroup.events"));
            // Children that have ended are still in it until somebody asks for them.
            while reap() {}
            if events.is_ok_and(|text| text.contains("populated 0")) {
                return;
            }
            sys::sleep_until(sys::now() + 20_000_000);
        }
    }
}

/// Whether a child had ended.
fn reap() -> bool {
    // SAFETY: a plain call; the status is not asked for.
    unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) > 0 }
}

impl Drop for Camp {
    fn drop(&mut self) {
        self.clear();
        for folder in [&self.inner, &self.folder] {
            let _ = fs::remove_dir(folder);
        }
    }
}

fn make(folder: &Path) -> Result<()> {
    fs::create_dir(folder).with_context(|| format!("cannot make {}", folder.display()))
}

pub fn write(file: &Path, text: &str) -> Result<()> {
    fs::write(file, text).with_context(|| format!("cannot write {text} to {}", file.display()))
}
