//! Times on the command line, the same way for every option: a number and a unit.

use std::time::{Duration, SystemTime};

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

/// Date, time and zone on this machine's clock.
pub fn local_time(at: SystemTime) -> String {
    let since = at.duration_since(SystemTime::UNIX_EPOCH);
    let seconds = since.map_or(0, |since| since.as_secs()) as libc::time_t;
    let mut text = [0u8; 64];
    // SAFETY: a struct of integers and a pointer may be all zero; localtime_r fills it, and
    // strftime writes no more than it is told there is room for.
    let length = unsafe {
        let mut parts: libc::tm = std::mem::zeroed();
        if libc::localtime_r(&seconds, &mut parts).is_null() {
            return format!("{seconds} s after 1970");
        }
        libc::strftime(
            text.as_mut_ptr().cast(),
            text.len(),
            c"%Y-%m-%d %H:%M:%S %z".as_ptr(),
            &parts,
        )
    };
    String::from_utf8_lossy(&text[..length]).into_owned()
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

    #[test]
    fn a_moment_has_date_time_and_zone() {
        let said = local_time(SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000));
        let shape: String = said
            .chars()
            .map(|c| if c.is_ascii_digit() { '0' } else { c })
            .collect();
        let shape = shape.replace('-', "+");
        assert_eq!(shape, "0000+00+00 00:00:00 +0000", "{said}");
        assert!(said.starts_with("2027-01-1"), "{said}");
    }
}
