//! Just enough of the kernel's BTF to tell a kernel no scheduler can load on.
//!
//! Some kernels carry scx kfuncs whose public prototype still has the implicit
//! `struct bpf_prog_aux *aux`: pahole before 1.26 does not split it off into
//! the `_impl` variant. There every scx scheduler fails with "func_proto
//! incompatible with vmlinux". Known before loading, it can be said in words.

use thiserror::Error;

#[derive(Debug, Error, PartialEq, Eq)]
pub enum BtfError {
    #[error("it is not BTF")]
    Magic,
    #[error("it ends in the middle of a type")]
    Truncated,
    #[error("it has types of a kind ({0}) not known here")]
    Kind(u32),
}

/// The sched_ext kernel functions that BTF describes.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ScxKfuncs {
    pub count: usize,
    pub malformed: Vec<String>,
}

const KIND_FUNC: u32 = 12;
const KIND_FUNC_PROTO: u32 = 13;

pub fn scx_kfuncs(btf: &[u8]) -> Result<ScxKfuncs, BtfError> {
    let header = Header::read(btf)?;
    let types = section(btf, header.types)?;
    let strings = section(btf, header.strings)?;

    // Functions come before or after their prototypes: find both, then join.
    let mut functions: Vec<(&str, u32)> = Vec::new();
    let mut with_aux = std::collections::HashSet::new();
    let (mut at, mut id) = (0, 0);
    while at < types.len() {
        id += 1;
        let name = word(types, at)?;
        let info = word(types, at + 4)?;
        let target = word(types, at + 8)?;
        let (kind, len) = ((info >> 24) & 0x1f, (info & 0xffff) as usize);
        at += 12;
        match kind {
            KIND_FUNC => {
                let name = text(strings, name);
                let scx = name.starts_with("scx_bpf_") || name.starts_with("__scx_bpf_");
                // There the argument belongs.
                if scx && !name.ends_with("_impl") {
                    functions.push((name, target));
                }
            }
            KIND_FUNC_PROTO => {
                for param in 0..len {
                    if text(strings, word(types, at + 8 * param)?) == "aux" {
                        with_aux.insert(id);
                    }
                }
            }
            _ => {}
        }
        at += extra(kind, len)?;
    }
    if at != types.len() {
        return Err(BtfError::Truncated);
    }
    Ok(ScxKfuncs {
        count: functions.len(),
        malformed: functions
            .iter()
            .filter(|(_, proto)| with_aux.contains(proto))
            .map(|(name, _)| (*name).to_owned())
            .collect(),
    })
}

/// Bytes that follow a type's three words (Documentation/bpf/btf.rst).
fn extra(kind: u32, len: usize) -> Result<usize, BtfError> {
    Ok(match kind {
        1 | 14 | 17 => 4,
        2 | 7..=12 | 16 | 18 => 0,
        3 => 12,
        4 | 5 | 15 | 19 => 12 * len,
        6 | 13 => 8 * len,
        _ => return Err(BtfError::Kind(kind)),
    })
}

struct Header {
    types: (usize, usize),
    strings: (usize, usize),
}

impl Header {
    fn read(btf: &[u8]) -> Result<Self, BtfError> {
        if btf.len() < 24 || btf[0..2] != 0xeb9f_u16.to_ne_bytes() {
            return Err(BtfError::Magic);
        }
        let at = |offset| word(btf, offset).map(|w| w as usize);
        let base = at(4)?;
        Ok(Self {
            types: (base.saturating_add(at(8)?), at(12)?),
            strings: (base.saturating_add(at(16)?), at(20)?),
        })
    }
}

fn section(btf: &[u8], (start, len): (usize, usize)) -> Result<&[u8], BtfError> {
    btf.get(start..start.saturating_add(len))
        .ok_or(BtfError::Truncated)
}

fn word(bytes: &[u8], at: usize) -> Result<u32, BtfError> {
    let word = bytes.get(at..at + 4).ok_or(BtfError::Truncated)?;
    Ok(u32::from_ne_bytes([word[0], word[1], word[2], word[3]]))
}

/// A string that is not one is no function of interest.
fn text(strings: &[u8], at: u32) -> &str {
    let rest = strings.get(at as usize..).unwrap_or_default();
    let end = rest.iter().position(|b| *b == 0).unwrap_or(0);
    std::str::from_utf8(&rest[..end]).unwrap_or_default()
}

/// BTF with one function per entry: its name and its parameters' names.
#[cfg(test)]
pub(crate) fn made_up(functions: &[(&str, &[&str])]) -> Vec<u8> {
    let (mut types, mut strings) = (Vec::new(), vec![0u8]);
    let mut put = |words: &[u32]| words.iter().for_each(|w| types.extend(w.to_ne_bytes()));
    let mut name = |text: &str| {
        let at = strings.len() as u32;
        strings.extend(text.bytes());
        strings.push(0);
        at
    };
    put(&[name("int"), 1 << 24, 4, 32]); // id 1
    for (i, (function, params)) in functions.iter().enumerate() {
        put(&[name(function), KIND_FUNC << 24, 2 * i as u32 + 3]);
        put(&[0, KIND_FUNC_PROTO << 24 | params.len() as u32, 0]);
        for param in params.iter() {
            put(&[name(param), 1]);
        }
    }
    let mut btf = 0xeb9f_u16.to_ne_bytes().to_vec();
    btf.extend([1, 0]);
    for word in [
        24,
        0,
        types.len() as u32,
        types.len() as u32,
        strings.len() as u32,
    ] {
        btf.extend(word.to_ne_bytes());
    }
    btf.extend(types);
    btf.extend(strings);
    btf
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_kfunc_that_kept_its_implicit_argument_is_found() {
        let btf = made_up(&[
            ("scx_bpf_good", &["cpu"]),
            ("scx_bpf_bad", &["cpu", "aux"]),
            ("scx_bpf_bad_impl", &["cpu", "aux"]),
            ("bpf_other", &["aux"]),
        ]);
        assert_eq!(
            scx_kfuncs(&btf),
            Ok(ScxKfuncs {
                count: 2,
                malformed: vec!["scx_bpf_bad".into()]
            })
        );
    }

    #[test]
    fn the_running_kernels_btf_is_read_to_its_end() {
        if let Ok(btf) = std::fs::read("/sys/kernel/btf/vmlinux") {
            let ours = scx_kfuncs(&btf).unwrap();
            let mut theirs = scx_utils::compat::malformed_scx_kfuncs();
            theirs.sort();
            let mut malformed = ours.malformed;
            malformed.sort();
            assert_eq!(malformed, theirs, "scx_utils sees the same");
        }
    }

    #[test]
    fn what_is_not_btf_is_refused() {
        assert_eq!(scx_kfuncs(b""), Err(BtfError::Magic));
        assert_eq!(scx_kfuncs(&[0; 64]), Err(BtfError::Magic));
        let btf = made_up(&[("scx_bpf_good", &["cpu"])]);
        assert_eq!(scx_kfuncs(&btf[..btf.len() - 1]), Err(BtfError::Truncated));
    }

    proptest! {
        #[test]
        fn damaged_btf_never_panics(at in 2usize..200, value: u8, cut in 0usize..300) {
            let mut btf = made_up(&[("scx_bpf_a", &["x", "aux"]), ("scx_bpf_b", &["y"])]);
            if let Some(byte) = btf.get_mut(at) {
                *byte = value;
            }
            btf.truncate(btf.len().saturating_sub(cut));
            let _ = scx_kfuncs(&btf);
        }
    }
}
