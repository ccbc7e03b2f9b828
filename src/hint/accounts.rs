//! Who is charged for what a user id declares. A user may own tens of thousands of
//! subordinate ids (/etc/subuid), and can run programs as each of them through a set-uid file
//! that a user namespace of theirs made. All of them count as their owner.
//!
//! The login uid of the audit system is not asked: a process that has none yet may choose
//! one, and so have its declarations charged to somebody else.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Longer ones are cut. A line has some 30 bytes.
const FILE_MAX: u64 = 4 << 20;
/// How often the files are looked at for changes.
const LOOK_EVERY: Duration = Duration::from_secs(1);

pub struct Accounts {
    subuid: PathBuf,
    passwd: PathBuf,
    /// What the files were when they were read.
    read: Option<[Option<Stamp>; 2]>,
    looked_at: Option<Instant>,
    table: Table,
}

/// Inode, size, and time of the last change.
type Stamp = (u64, u64, i64, i64);

impl Accounts {
    /// Of this machine.
    pub fn here() -> Accounts {
        Accounts::of_files("/etc/subuid".into(), "/etc/passwd".into())
    }

    pub fn of_files(subuid: PathBuf, passwd: PathBuf) -> Accounts {
        Accounts {
            subuid,
            passwd,
            read: None,
            looked_at: None,
            table: Table::default(),
        }
    }

    /// The user that is charged for `uid`. Never root for anybody else.
    pub fn of(&mut self, uid: u32, now: Instant) -> u32 {
        if uid == 0 {
            return 0;
        }
        let is_fresh = |at: Instant| now.saturating_duration_since(at) < LOOK_EVERY;
        if !self.looked_at.is_some_and(is_fresh) {
            self.looked_at = Some(now);
            self.refresh();
        }
        self.table.account(uid)
    }

    fn refresh(&mut self) {
        let stamp = |path: &PathBuf| -> Option<Stamp> {
            let meta = fs::metadata(path).ok()?;
            Some((meta.ino(), meta.size(), meta.mtime(), meta.mtime_nsec()))
        };
        let now = [stamp(&self.subuid), stamp(&self.passwd)];
        if self.read != Some(now) {
            self.table = Table::parse(&text(&self.subuid), &text(&self.passwd));
            self.read = Some(now);
        }
    }
}

/// The number of a user who has a line in /etc/passwd.
pub fn uid_of(name: &str) -> Option<u32> {
    let passwd = text(Path::new("/etc/passwd"));
    let found = users(&passwd).find(|(user, _)| *user == name);
    found.map(|(_, uid)| uid)
}

/// Names and numbers.
fn users(passwd: &str) -> impl Iterator<Item = (&str, u32)> {
    passwd.lines().filter_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        Some((name, fields.nth(1)?.parse().ok()?))
    })
}

/// Nothing where there is no such file.
fn text(path: &Path) -> String {
    let mut bytes = Vec::new();
    if let Ok(file) = File::open(path) {
        let _ = file.take(FILE_MAX).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// What the two files say.
#[derive(Default)]
pub struct Table {
    /// Users of this machine, who are charged themselves whatever a range says.
    users: HashSet<u32>,
    /// First id, last id, and who is charged.
    ranges: Vec<(u32, u32, u32)>,
}

impl Table {
    /// Lines that are none are left out.
    pub fn parse(subuid: &str, passwd: &str) -> Table {
        // A name may have several lines. The first is the user that it names.
        let mut by_name: HashMap<&str, u32> = HashMap::new();
        for (name, uid) in users(passwd) {
            by_name.entry(name).or_insert(uid);
        }
        let mut ranges = Vec::new();
        // An owner who is no user here, or root, whose ids are those of containers: the
        // first of their ids stands for all.
        let mut stand_in: HashMap<&str, u32> = HashMap::new();
        for line in subuid.lines() {
            let fields: Vec<&str> = line.trim().split(':').collect();
            let [owner, first, count] = fields[..] else {
                continue;
            };
            let (Ok(first), Ok(count)) = (first.parse::<u32>(), count.parse::<u32>()) else {
                continue;
            };
            if first == 0 || count == 0 {
                continue;
            }
            let known = by_name.get(owner).copied().or_else(|| owner.parse().ok());
            let account = match known {
                Some(uid) if uid != 0 => uid,
                _ => *stand_in.entry(owner).or_insert(first),
            };
            ranges.push((first, first.saturating_add(count - 1), account));
        }
        Table {
            users: users(passwd).map(|(_, uid)| uid).collect(),
            ranges,
        }
    }

    /// The user that is charged for `uid`, which is not root.
    pub fn account(&self, uid: u32) -> u32 {
        if self.users.contains(&uid) {
            return uid;
        }
        let range = self
            .ranges
            .iter()
            .find(|(first, last, _)| (*first..=*last).contains(&uid));
        range.map_or(uid, |(.., account)| *account)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str = "root:x:0:0:root:/root:/bin/sh\n\
        ann:x:1000:1000::/home/ann:/bin/sh\n\
        bob:x:1001:1001::/home/bob:/bin/sh\n";

    #[test]
    fn every_line_of_a_name_is_a_user() {
        let passwd = "ann:x:1000:1000::/:/bin/sh\nann:x:1001:1000::/:/bin/sh\n";
        let table = Table::parse("ann:1000:10\n", passwd);
        let accounts = [1000, 1001, 1002].map(|uid| table.account(uid));
        assert_eq!(accounts, [1000, 1001, 1000]);
    }

    #[test]
    fn subordinate_ids_count_as_their_owner() {
        let subuid = "ann:100000:65536\n1001:165536:65536\nann:300000:1\n";
        let table = Table::parse(subuid, PASSWD);
        for (uid, account) in [
            (1000, 1000),
            (100_000, 1000),
            (165_535, 1000),
            (165_536, 1001),
            (231_071, 1001),
            (231_072, 231_072),
            (300_000, 1000),
            (300_001, 300_001),
        ] {
            assert_eq!(table.account(uid), account, "{uid}");
        }
    }

    #[test]
    fn nobody_is_taken_for_root_or_for_another_user() {
        let subuid = "root:100000:65536\nroot:500000:10\nldap:200000:65536\n\
            ann:1000:65536\nbob:0:4000000000\n";
        let table = Table::parse(subuid, PASSWD);
        assert_eq!(table.account(100_001), 100_000);
        assert_eq!(table.account(500_009), 100_000, "all of root's containers");
        assert_eq!(
            table.account(200_007),
            200_000,
            "an owner who is no user here"
        );
        assert_eq!(
            table.account(1001),
            1001,
            "a user inside of another one's range"
        );
        assert_eq!(
            table.account(700_000),
            700_000,
            "a range that begins with root"
        );
        let dir = tempfile::tempdir().unwrap();
        let mut accounts = Accounts::of_files(dir.path().join("none"), dir.path().join("none"));
        assert_eq!(accounts.of(0, Instant::now()), 0);
    }

    #[test]
    fn lines_that_are_none_are_left_out() {
        for odd in [
            "",
            "ann",
            "ann:x:9",
            "ann:100000:",
            "ann:100000:0",
            ":::::",
            "ann:4294967295:9",
        ] {
            Table::parse(odd, odd).account(100_000);
        }
        assert_eq!(
            Table::parse("ann:4294967290:99", PASSWD).account(u32::MAX),
            1000
        );
    }

    #[test]
    fn a_change_of_the_files_is_seen_within_a_second() {
        let dir = tempfile::tempdir().unwrap();
        let (subuid, passwd) = (dir.path().join("subuid"), dir.path().join("passwd"));
        fs::write(&passwd, PASSWD).unwrap();
        let mut accounts = Accounts::of_files(subuid.clone(), passwd);
        let start = Instant::now();
        assert_eq!(accounts.of(100_000, start), 100_000);
        fs::write(&subuid, "ann:100000:65536\n").unwrap();
        assert_eq!(accounts.of(100_000, start + LOOK_EVERY), 1000);
    }
}
