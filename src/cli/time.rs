//! Times on the command line, the same way for every option: a number and a unit.

use std::time::Duration;

use crate::hint::duration;
use crate::sim::time::Ns;

/// Longer than anything here lasts, and short enough to be added up.
const LONGEST: Ns = 10_000_000_000_000_000;

/// Nanoseconds of `250us`, `1.5ms` or `2s`; zero needs no unit.
pub fn parse_time(text: &str) -> Result<Ns, String> {
    if text.trim() == "0" {
        return Ok(0);
    }
    let ns = duration::parse(text).map_err(|error| error.to_string())?;
    match ns > LONGEST {
        true => Err("that is more than a hundred days".into()),
        false => Ok(ns),
    }
}

/// A time within these bounds. Options that were always in seconds take a number alone, too.
pub fn parse_seconds(text: &str, least: Duration, most: Duration) -> Result<Duration, String> {
    let time = match text.trim().parse::<f64>() {
        Ok(seconds) => Duration::try_from_secs_f64(seconds)
            .map_err(|_| format!("`{text}` is not a time: write 0.5s or 250ms"))?,
        Err(_) => Duration::from_nanos(parse_time(text)?),
    };
    if !(least..=most).contains(&time) {
        return Err(format!("must be between {least:?} and {most:?}"));
    }
    Ok(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_need_a_unit_and_keep_their_decimals() {
        assert_eq!(parse_time("1.5ms"), Ok(1_500_000));
        assert_eq!(parse_time("250us"), Ok(250_000));
        assert_eq!(parse_time("250 µs"), Ok(250_000));
        assert_eq!(parse_time("0"), Ok(0));
        for bad in ["5", "ms", "-1ms", "5 years", "1e9s", "10000001s"] {
            assert!(parse_time(bad).is_err(), "{bad}");
        }
        assert_eq!(
            parse_time("5").unwrap_err(),
            "`5` has no unit: write 5us, 5ms or 5s"
        );
    }

    #[test]
    fn seconds_may_stand_alone() {
        let (least, most) = (Duration::from_millis(10), Duration::from_secs(60));
        let read = |text| parse_seconds(text, least, most);
        assert_eq!(read("1"), Ok(Duration::from_secs(1)));
        assert_eq!(read("0.25"), Ok(Duration::from_millis(250)));
        assert_eq!(read("250ms"), Ok(Duration::from_millis(250)));
        for bad in [
            "0", "61", "1ms", "-1", "nan", "inf", "1e300", "soon", "5min",
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
        assert_eq!(read("0").unwrap_err(), "must be between 10ms and 60s");
    }
}
