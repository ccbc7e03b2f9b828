//! Keys that are nearly one that rt-app knows. rt-app leaves out what it does not know,
//! so that a slip such as "timr" would turn a periodic thread into one that never sleeps.

use super::json::Member;
use super::note::Fault;
use crate::spelling::nearest;

/// Refuses the first of these members, which nobody asked for, that looks like a slip.
pub fn check<'a>(
    unread: impl IntoIterator<Item = &'a Member>,
    known: &[&'static str],
) -> Result<(), Fault> {
    for member in unread {
        if let Some(meant) = meant(&member.key, known) {
            let what = format!(
                "rt-app knows no {:?} here; did you mean {meant:?}? Correct it, or take it out",
                member.key
            );
            return Err(Fault::new(member.at, what));
        }
    }
    Ok(())
}

fn meant(key: &str, known: &[&'static str]) -> Option<&'static str> {
    // Events carry what tells them apart behind their names: timr0, slepp_a.
    let stem = key.trim_end_matches(|c: char| c.is_ascii_digit());
    let stem = stem.split(['_', '-']).next().unwrap_or(stem);
    nearest(&[key, stem], known)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [&str; 6] = ["timer", "loop", "period", "instance", "run", "lock"];

    #[test]
    fn a_slip_finds_what_was_meant() {
        for (slip, right) in [
            ("timr", "timer"),
            ("tmier", "timer"),
            ("Timer", "timer"),
            ("timr0", "timer"),
            ("timmer_a", "timer"),
            ("instnace", "instance"),
            ("perod", "period"),
            ("lop", "loop"),
        ] {
            assert_eq!(meant(slip, &KNOWN), Some(right), "{slip}");
        }
    }

    #[test]
    fn other_words_are_no_slips() {
        for word in [
            "comment",
            "colour",
            "description",
            "nice",
            "extra",
            "_note",
            "",
        ] {
            assert_eq!(meant(word, &KNOWN), None, "{word}");
        }
    }
}
