//! Results on disk, by what they are of: whoever asks for the same again gets them from
//! here, and an interrupted comparison goes on where it was.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::measured::Measured;
use crate::report::file::write_whole;

/// Counts up when what is measured, or how it is counted, changes.
pub const ENGINE: u32 = 1;

pub struct Store {
    folder: PathBuf,
}

impl Store {
    /// Below `$XDG_CACHE_HOME/scx_temponet`, as everything that is kept.
    pub fn open() -> Result<Store> {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let cache = set("XDG_CACHE_HOME").map(PathBuf::from);
        let home = || Some(Path::new(&set("HOME")?).join(".cache"));
        let cache = cache
            .or_else(home)
            .context("neither XDG_CACHE_HOME nor HOME says where results are kept")?;
        Store::at(&cache.join("scx_temponet/compare"))
    }

    pub fn at(folder: &Path) -> Result<Store> {
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        Ok(Store {
            folder: folder.into(),
        })
    }

    /// What cannot be read counts as not measured.
    pub fn get(&self, key: &Key) -> Option<Measured> {
        let text = fs::read_to_string(self.path(key)).ok()?;
        let kept: serde_json::Value = serde_json::from_str(&text).ok()?;
        serde_json::from_value(kept.get("measured")?.clone()).ok()
    }

    pub fn put(&self, key: &Key, measured: &Measured) -> Result<()> {
        let path = self.path(key);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)
                .with_context(|| format!("cannot create {}", folder.display()))?;
        }
        let kept = serde_json::json!({ "of": key.of, "measured": measured });
        write_whole(&path, kept.to_string().as_bytes())
    }

    fn path(&self, key: &Key) -> PathBuf {
        let (first, rest) = key.name.split_at(2);
        self.folder.join(first).join(format!("{rest}.json"))
    }
}

/// What a result is of, and a name for that.
#[derive(Clone, Debug, PartialEq)]
pub struct Key {
    pub name: String,
    of: serde_json::Value,
}

impl Key {
    /// `set` is hashed; the other parts are kept readable.
    pub fn new(set: &serde_json::Value, rest: serde_json::Value) -> Key {
        let of = serde_json::json!({
            "engine": ENGINE,
            "set": hash(set.to_string().as_bytes()),
            "run": rest,
        });
        Key {
            name: hash(of.to_string().as_bytes()),
            of,
        }
    }
}

/// FNV-1a of 128 bits: names that do not clash by accident. Nobody has a reason to make
/// them clash on purpose.
pub fn hash(bytes: &[u8]) -> String {
    const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    let mixed = bytes.iter().fold(OFFSET, |hash, &byte| {
        (hash ^ u128::from(byte)).wrapping_mul(PRIME)
    });
    format!("{mixed:032x}")
}

/// This program as it was built: our own schedulers and the simulator are in it.
pub fn program() -> Result<String> {
    let path = std::env::current_exe().context("cannot find this program")?;
    let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(hash(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn measured(met: u64) -> Measured {
        let mut measured: Measured = serde_json::from_value(json!({
            "whole": empty(), "settled": empty(), "tasks": [],
        }))
        .unwrap();
        measured.whole.met = met;
        measured
    }

    fn empty() -> serde_json::Value {
        serde_json::to_value(super::super::Figures::default()).unwrap()
    }

    #[test]
    fn the_hash_is_the_published_one() {
        assert_eq!(hash(b""), "6c62272e07bb014262b821756295c58d");
        assert_eq!(hash(b"foobar"), "343e1662793c64bf6f0d3597ba446f18");
    }

    #[test]
    fn a_result_is_found_by_what_it_is_of_and_by_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(folder.path()).unwrap();
        let key = |seed: u64, scheduler: &str| {
            Key::new(&json!({ "seed": seed }), json!({ "scheduler": scheduler }))
        };
        store.put(&key(1, "edf"), &measured(7)).unwrap();
        assert_eq!(store.get(&key(1, "edf")).unwrap().whole.met, 7);
        assert_eq!(store.get(&key(2, "edf")), None);
        assert_eq!(store.get(&key(1, "eevdf")), None);
        // Half a file is no result.
        fs::write(store.path(&key(1, "edf")), "{").unwrap();
        assert_eq!(store.get(&key(1, "edf")), None);
    }
}
