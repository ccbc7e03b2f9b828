//! Keys that are nearly one that rt-app knows. rt-app leaves out what it does not know,
//! so that a slip such as "timr" would turn a periodic thread into one that never sleeps.

use super::json::Member;
use super::note::Fault;

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

/// The known key that is nearest, if one is near: a slip or two, a letter for short ones.
fn meant(key: &str, known: &[&'static str]) -> Option<&'static str> {
    // Events carry what tells them apart behind their names: timr0, slepp_a.
    let stem = key.trim_end_matches(|c: char| c.is_ascii_digit());
    let stem = stem.split(['_', '-']).next().unwrap_or(stem);
    let near = |candidate: &'static str| {
        let slips = slips(key, candidate).min(slips(stem, candidate));
        let most = if candidate.len() < 6 { 1 } else { 2 };
        (slips <= most).then_some((slips, candidate))
    };
    let nearest = known.iter().filter_map(|&candidate| near(candidate)).min();
    nearest.map(|(_, candidate)| candidate)
}

/// Letters that are missing, too many, wrong, or swapped with their neighbour; case is no
/// matter for what was meant.
fn slips(a: &str, b: &str) -> usize {
    let letters = |text: &str| -> Vec<char> { text.to_lowercase().chars().take(32).collect() };
    let (a, b) = (letters(a), letters(b));
    let mut rows: Vec<Vec<usize>> = vec![(0..=b.len()).collect()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let wrong = usize::from(a[i - 1] != b[j - 1]);
            let mut least = (rows[i - 1][j] + 1)
                .min(row[j - 1] + 1)
                .min(rows[i - 1][j - 1] + wrong);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
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
