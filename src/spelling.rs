//! What was meant by a name that nobody knows.

/// The known name that is nearest, if one is near: a slip or two, a letter for short ones.
pub fn meant<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    nearest(&[name], known)
}

/// The same where the name is written in several ways.
pub fn nearest<'a>(ways: &[&str], known: &[&'a str]) -> Option<&'a str> {
    let near = |candidate: &'a str| {
        let slips = ways.iter().map(|way| slips(way, candidate)).min()?;
        let most = if candidate.len() < 6 { 1 } else { 2 };
        (slips <= most).then_some((slips, candidate))
    };
    let nearest = known.iter().filter_map(|&candidate| near(candidate)).min();
    nearest.map(|(_, candidate)| candidate)
}

/// To put behind a name: ` (did you mean "edf"?)`, or nothing.
pub fn did_you_mean(name: &str, known: &[&str]) -> String {
    meant(name, known).map_or(String::new(), |meant| format!(" (did you mean {meant:?}?)"))
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

    #[test]
    fn a_slip_finds_the_policy_that_was_meant() {
        let known = [
            "edf",
            "plain-edf",
            "edf-drop",
            "mh",
            "temponet",
            "distilled",
        ];
        for (slip, right) in [
            ("temponett", "temponet"),
            ("Temponet", "temponet"),
            ("tempnoet", "temponet"),
            ("plainedf", "plain-edf"),
            ("edff", "edf"),
            ("distiled", "distilled"),
        ] {
            assert_eq!(meant(slip, &known), Some(right), "{slip}");
        }
        for other in ["best", "", "round-robin"] {
            assert_eq!(meant(other, &known), None, "{other}");
        }
        assert_eq!(did_you_mean("edff", &known), " (did you mean \"edf\"?)");
        assert_eq!(did_you_mean("best", &known), "");
    }
}
