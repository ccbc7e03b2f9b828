//! Values on the command line of `sim`.

use crate::sim::task::Execution;

pub(super) fn parse_range(text: &str) -> Result<(f64, f64), String> {
    let number = |s: &str| {
        s.trim()
            .parse::<f64>()
            .ok()
            .filter(|v| *v > 0.0 && *v <= 100.0)
            .ok_or_else(|| format!("{s:?} is not a load between 0 and 100"))
    };
    match text.split_once("..") {
        None => number(text).map(|u| (u, u)),
        Some((low, high)) => {
            let (low, high) = (number(low)?, number(high.trim_start_matches('='))?);
            if low > high {
                return Err("a range goes from the smaller to the larger load".into());
            }
            Ok((low, high))
        }
    }
}

pub(in crate::cli) fn parse_seed(text: &str) -> Result<u64, String> {
    text.parse()
        .map_err(|_| format!("a seed is a whole number from 0 to {}", u64::MAX))
}

pub(super) fn parse_execution(text: &str) -> Result<Execution, String> {
    let mut parts = text.split(':');
    let kind = parts.next().unwrap_or_default();
    let figures: Option<Vec<f64>> = parts.map(|p| p.parse().ok()).collect();
    let figures = figures.ok_or("the shares must be numbers")?;
    let ordered = |low: f64, high: f64| low > 0.0 && low <= high && high <= 1000.0;
    match (kind, figures.as_slice()) {
        ("wcet", []) => Ok(Execution::Wcet),
        ("uniform", &[low, high]) if ordered(low, high) => Ok(Execution::Uniform { low, high }),
        ("overrun", &[low, probability, factor])
            if ordered(low, 1.0) && (0.0..=1.0).contains(&probability) && ordered(1.0, factor) =>
        {
            Ok(Execution::Overrun {
                low,
                probability,
                factor,
            })
        }
        ("pareto", &[low, alpha, cap]) if ordered(low, cap) && alpha > 0.0 => {
            Ok(Execution::HeavyTail { low, alpha, cap })
        }
        _ => Err(
            "use wcet, uniform:LOW:HIGH, overrun:LOW:PROBABILITY:FACTOR or pareto:LOW:ALPHA:CAP"
                .into(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_is_a_number_or_a_range() {
        assert_eq!(parse_range("0.9"), Ok((0.9, 0.9)));
        assert_eq!(parse_range("0.6..1.0"), Ok((0.6, 1.0)));
        for bad in ["", "x", "0", "1..0.5", "NaN", "..1"] {
            assert!(parse_range(bad).is_err(), "{bad}");
        }
    }
}
