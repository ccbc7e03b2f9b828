//! What must hold, as data: `temponet >= edf - 0.1`.
//!
//! `[every] SIDE >= SIDE`, or `<=`. A side is a number, or a scheduler with a figure
//! behind a dot (percent of jobs on time where there is none) and a number added or
//! taken away. Names with spaces stand in quotes. Means over all sets are compared;
//! with `every`, the figures of each set.

use serde::Serialize;

use super::measured::Figures;
use super::scheduler::Scheduler;

/// The difference that rounding makes, in percent.
const EQUAL: f64 = 1e-9;

#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    pub text: String,
    every: bool,
    left: Side,
    at_least: bool,
    right: Side,
}

#[derive(Clone, Debug, PartialEq)]
enum Side {
    Number(f64),
    Figure {
        scheduler: String,
        figure: Figure,
        plus: f64,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Figure {
    Compliance,
    Settled,
    Critical,
    Response,
    ResponseP99,
    LatenessP95,
}

const FIGURES: [(&str, Figure); 6] = [
    ("compliance", Figure::Compliance),
    ("settled", Figure::Settled),
    ("critical", Figure::Critical),
    ("response", Figure::Response),
    ("response-p99", Figure::ResponseP99),
    ("lateness-p95", Figure::LatenessP95),
];

/// All figures of a set under a scheduler, those of the whole time and those without the
/// first second.
pub struct Both<'a> {
    pub whole: &'a Figures,
    pub settled: &'a Figures,
}

impl Figure {
    fn of(self, both: &Both) -> Option<f64> {
        match self {
            Figure::Compliance => both.whole.compliance(),
            Figure::Settled => both.settled.compliance(),
            Figure::Critical => both.whole.critical(),
            Figure::Response => Some(both.whole.response_ms),
            Figure::ResponseP99 => Some(both.whole.response_p99_ms),
            Figure::LatenessP95 => Some(both.whole.lateness_p95_ms),
        }
    }
}

/// How a condition came out on one machine.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    pub condition: String,
    pub case: String,
    pub machine: String,
    /// Nothing where no set has all figures.
    pub holds: Option<bool>,
    pub sets: usize,
    /// Means of both sides over those sets.
    pub left: f64,
    pub right: f64,
    /// Sets on which it does not hold, of `every`.
    pub against: Vec<String>,
}

impl Condition {
    pub fn parse(text: &str, schedulers: &[Scheduler]) -> Result<Condition, String> {
        let words = words(text)?;
        let every = words.first().is_some_and(|word| word == "every");
        let words = &words[usize::from(every)..];
        let is_sign = |word: &String| word == ">=" || word == "<=";
        let Some(middle) = words.iter().position(is_sign) else {
            return Err(format!("{text:?} has neither >= nor <="));
        };
        let side = |words: &[String]| Side::parse(words, schedulers);
        Ok(Condition {
            text: text.into(),
            every,
            left: side(&words[..middle])?,
            at_least: words[middle] == ">=",
            right: side(&words[middle + 1..])?,
        })
    }

    /// `sets`: their names, and how to get at the figures of a scheduler there.
    pub fn judge<'a>(
        &self,
        case: &str,
        machine: &str,
        sets: &[String],
        figures: &dyn Fn(usize, &str) -> Option<Both<'a>>,
    ) -> Verdict {
        let pairs: Vec<(usize, f64, f64)> = (0..sets.len())
            .filter_map(|i| {
                let get = |name: &str| figures(i, name);
                Some((i, self.left.value(&get)?, self.right.value(&get)?))
            })
            .collect();
        let n = pairs.len() as f64;
        let mean = |of: fn(&(usize, f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>() / n;
        let (left, right) = match pairs.is_empty() {
            true => (0.0, 0.0),
            false => (mean(|pair| pair.1), mean(|pair| pair.2)),
        };
        let broken = pairs
            .iter()
            .filter(|(_, l, r)| self.every && !self.holds(*l, *r));
        let against: Vec<String> = broken.map(|(i, ..)| sets[*i].clone()).collect();
        let holds = match self.every {
            true => against.is_empty(),
            false => self.holds(left, right),
        };
        Verdict {
            condition: self.text.clone(),
            case: case.into(),
            machine: machine.into(),
            holds: (!pairs.is_empty()).then_some(holds),
            sets: pairs.len(),
            left,
            right,
            against,
        }
    }

    fn holds(&self, left: f64, right: f64) -> bool {
        match self.at_least {
            true => left >= right - EQUAL,
            false => left <= right + EQUAL,
        }
    }
}

impl Side {
    fn parse(words: &[String], schedulers: &[Scheduler]) -> Result<Side, String> {
        let number = |word: &str| word.parse::<f64>().ok().filter(|n| n.is_finite());
        let (name, plus) = match words {
            [one] => match number(one) {
                Some(number) => return Ok(Side::Number(number)),
                None => (one, 0.0),
            },
            [one, sign, amount] => match (sign.as_str(), number(amount)) {
                ("+", Some(plus)) => (one, plus),
                ("-", Some(minus)) => (one, -minus),
                _ => return Err(format!("{sign} {amount} is neither + nor - a number")),
            },
            _ => return Err("a side is a scheduler, or a number, or both".into()),
        };
        let known = |name: &str| schedulers.iter().any(|s| s.name == name);
        let (scheduler, figure) = match name.rsplit_once('.') {
            Some((scheduler, figure)) if known(scheduler) => {
                let found = FIGURES.iter().find(|(called, _)| *called == figure);
                let figures: Vec<&str> = FIGURES.iter().map(|(called, _)| *called).collect();
                let unknown = || format!("{figure:?} is none of {}", figures.join(", "));
                (scheduler, found.ok_or_else(unknown)?.1)
            }
            _ => (name.as_str(), Figure::Compliance),
        };
        match known(scheduler) {
            true => Ok(Side::Figure {
                scheduler: scheduler.into(),
                figure,
                plus,
            }),
            false => Err(format!("{scheduler:?} is no scheduler of this case")),
        }
    }

    fn value<'a>(&self, figures: &dyn Fn(&str) -> Option<Both<'a>>) -> Option<f64> {
        match self {
            Side::Number(number) => Some(*number),
            Side::Figure {
                scheduler,
                figure,
                plus,
            } => Some(figure.of(&figures(scheduler)?)? + plus),
        }
    }
}

/// Split at spaces; what is in quotes is one word.
fn words(text: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    for (i, part) in text.split(['\'', '"']).enumerate() {
        match i % 2 {
            0 => words.extend(part.split_whitespace().map(str::to_owned)),
            _ => words.push(part.to_owned()),
        }
    }
    match text.matches(['\'', '"']).count() % 2 {
        0 => Ok(words),
        _ => Err(format!("{text:?} opens a quote and does not close it")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedulers() -> Vec<Scheduler> {
        let names = ["edf", "temponet", "edf --slow-inference 3"];
        names.map(|name| Scheduler::parse(name).unwrap()).into()
    }

    fn figures(met: u64) -> Figures {
        Figures {
            jobs: 100,
            met,
            response_ms: met as f64,
            ..Figures::default()
        }
    }

    /// Two sets; `edf` meets 90 and 80, `temponet` 95 and 74.
    fn judge(text: &str) -> Verdict {
        let met = [[90, 80], [95, 74]].map(|row| row.map(figures));
        let sets = ["a 1".to_owned(), "a 2".to_owned()];
        let condition = Condition::parse(text, &schedulers()).unwrap();
        condition.judge("a", "simulator", &sets, &|set, name| {
            let row = ["edf", "temponet"]
                .iter()
                .position(|known| *known == name)?;
            let whole = &met[row][set];
            Some(Both {
                whole,
                settled: whole,
            })
        })
    }

    #[test]
    fn means_are_compared_and_with_every_each_set() {
        assert_eq!(judge("temponet >= edf - 1").holds, Some(true));
        assert_eq!(judge("temponet >= edf").holds, Some(false));
        assert_eq!(judge("temponet.settled >= 84.5").holds, Some(true));
        assert_eq!(
            judge("temponet.response <= edf.response - 0.5").holds,
            Some(true)
        );
        let every = judge("every temponet >= edf - 5");
        assert_eq!(
            (every.holds, every.against),
            (Some(false), vec!["a 2".to_owned()])
        );
        assert_eq!(judge("every temponet >= edf - 6").holds, Some(true));
        // Nobody has critical jobs here, and nobody ran the third.
        assert_eq!(judge("temponet.critical >= 99").holds, None);
        assert_eq!(judge("edf >= 'edf --slow-inference 3'").holds, None);
    }

    #[test]
    fn what_makes_no_sense_is_said() {
        for (text, what) in [
            ("temponet", "neither"),
            ("temponet > edf", "neither"),
            ("temponet >= eevdf", "eevdf"),
            ("temponet.speed >= 3", "speed"),
            ("temponet >= edf * 2", "neither + nor -"),
            ("temponet >= edf - x", "neither + nor -"),
            ("temponet >= 'edf", "quote"),
            (">= edf", "a side"),
        ] {
            let why = Condition::parse(text, &schedulers()).unwrap_err();
            assert!(why.contains(what), "{text}: {why}");
        }
    }
}
