//! Durations as people write them: `10ms`, `250us`, `1.5ms`, `1s`.
//!
//! Exact decimal arithmetic, no floating point: what is written is what is
//! scheduled. A number without a unit is refused, because half of the tools
//! around (rt-app, chrt, sched_attr) would read it as µs and half as ns.

use std::fmt;
use thiserror::Error;

#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum DurationError {
    #[error("`{0}` has no unit: write {0}us, {0}ms or {0}s")]
    NoUnit(String),
    #[error("`{text}` has the unknown unit `{unit}`: use ns, us, ms or s")]
    Unit { text: String, unit: String },
    #[error("`{0}` is not a duration: write a number and a unit, such as 250us, 1.5ms or 1s")]
    Malformed(String),
    #[error("`{0}` is finer than a nanosecond")]
    TooFine(String),
    #[error("`{0}` is too long")]
    TooLong(String),
}

/// Nanoseconds of a written duration.
pub fn parse(text: &str) -> Result<u64, DurationError> {
    let shown = || text.chars().take(40).collect::<String>();
    let trimmed = text.trim();
    let digits_end = trimmed
        .find(|c: char| !(c.is_ascii_digit() || c == '.'))
        .unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(digits_end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let malformed =
        whole.is_empty() || fraction.contains('.') || (number.contains('.') && fraction.is_empty());
    if malformed {
        return Err(DurationError::Malformed(shown()));
    }
    let exponent = match unit.trim_start() {
        "" => return Err(DurationError::NoUnit(shown())),
        "ns" => 0,
        "us" | "µs" | "μs" => 3,
        "ms" => 6,
        "s" => 9,
        other => {
            return Err(DurationError::Unit {
                text: shown(),
                unit: other.chars().take(20).collect(),
            })
        }
    };
    let fraction = fraction.trim_end_matches('0');
    if fraction.len() > exponent {
        return Err(DurationError::TooFine(shown()));
    }
    // "1.5ms" is the integer 15 followed by as many zeros as ms still owes.
    let zeros = exponent - fraction.len();
    let mut ns: u64 = 0;
    for digit in whole
        .bytes()
        .chain(fraction.bytes())
        .chain(std::iter::repeat_n(b'0', zeros))
    {
        ns = ns
            .checked_mul(10)
            .and_then(|ns| ns.checked_add(u64::from(digit - b'0')))
            .ok_or_else(|| DurationError::TooLong(shown()))?;
    }
    Ok(ns)
}

/// Shows nanoseconds in the largest unit that gives a number of at least 1;
/// [`parse`] reads it back exactly.
pub struct Pretty(pub u64);

impl fmt::Display for Pretty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, digits) = match self.0 {
            0..1_000 => ("ns", 0),
            1_000..1_000_000 => ("us", 3),
            1_000_000..1_000_000_000 => ("ms", 6),
            _ => ("s", 9),
        };
        let scale = 10u64.pow(digits);
        let (whole, rest) = (self.0 / scale, self.0 % scale);
        if rest == 0 {
            write!(f, "{whole}{unit}")
        } else {
            let fraction = format!("{rest:0width$}", width = digits as usize);
            write!(f, "{whole}.{}{unit}", fraction.trim_end_matches('0'))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn durations_mean_what_they_say() {
        for (text, ns) in [
            ("10ms", 10_000_000),
            ("250us", 250_000),
            ("250µs", 250_000),
            ("1s", 1_000_000_000),
            ("1.5ms", 1_500_000),
            ("0.000000001s", 1),
            ("1.50 ms", 1_500_000),
            (" 7ns ", 7),
            ("0ms", 0),
        ] {
            assert_eq!(parse(text), Ok(ns), "{text}");
        }
    }

    #[test]
    fn a_bare_number_is_refused_with_what_to_write() {
        assert_eq!(
            parse("10").unwrap_err().to_string(),
            "`10` has no unit: write 10us, 10ms or 10s"
        );
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", "ms", "-5ms", "1.ms", ".5ms", "1.2.3ms", "١ms", "1e3ms"] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert!(matches!(parse("5min"), Err(DurationError::Unit { .. })));
        assert!(matches!(parse("0.5ns"), Err(DurationError::TooFine(_))));
        assert!(matches!(
            parse("99999999999s"),
            Err(DurationError::TooLong(_))
        ));
    }

    proptest! {
        #[test]
        fn what_is_shown_can_be_read_back(ns: u64) {
            prop_assert_eq!(parse(&Pretty(ns).to_string()), Ok(ns));
        }

        #[test]
        fn no_text_panics(text in "\\PC*") {
            let _ = parse(&text);
        }
    }
}
