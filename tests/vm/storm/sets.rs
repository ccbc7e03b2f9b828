//! Sets of small numbers as the kernel writes them (`0-3,5`): CPUs, and the indices of
//! tasks and events that a shrunk story keeps.
use anyhow::{bail, Context, Result};
use std::collections::BTreeSet;
use std::fmt;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cpus(pub u64);

impl Cpus {
    pub fn first(n: usize) -> Cpus {
        Cpus((1 << n) - 1)
    }

    pub fn one(cpu: usize) -> Cpus {
        Cpus(1 << cpu)
    }

    pub fn has(self, cpu: usize) -> bool {
        self.0 >> cpu & 1 == 1
    }

    pub fn iter(self) -> impl Iterator<Item = usize> {
        (0..64).filter(move |&cpu| self.has(cpu))
    }
}

impl fmt::Display for Cpus {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&to_list(self.iter()))
    }
}

/// Ascending numbers as `0-3,5`.
pub fn to_list(numbers: impl IntoIterator<Item = usize>) -> String {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let texts: Vec<String> = ranges
        .iter()
        .map(|&(from, to)| match from == to {
            true => from.to_string(),
            false => format!("{from}-{to}"),
        })
        .collect();
    texts.join(",")
}

/// The other way; an empty text or `none` is the empty set.
pub fn from_list(text: &str) -> Result<BTreeSet<usize>> {
    let mut numbers = BTreeSet::new();
    if text.is_empty() || text == "none" {
        return Ok(numbers);
    }
    for part in text.split(',') {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| -> Result<usize> {
            text.parse()
                .with_context(|| format!("not a list of numbers such as 0-5,9: {text}"))
        };
        let (from, to) = (number(from)?, number(to)?);
        if from > to || to > 1_000_000 {
            bail!("not a range: {part}");
        }
        numbers.extend(from..=to);
    }
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_read_back_is_the_same_set() {
        for text in ["0-5,9", "7", "0,2,4-6"] {
            assert_eq!(to_list(from_list(text).unwrap()), text);
        }
        assert!(from_list("none").unwrap().is_empty());
    }

    #[test]
    fn what_is_no_list_is_refused() {
        for text in ["a", "3-1", "1,,2", "-4", "0-99999999999"] {
            assert!(from_list(text).is_err(), "{text}");
        }
    }
}
