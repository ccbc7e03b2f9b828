//! Case files: what is compared, as TOML.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use thiserror::Error;
use toml::Spanned;

use super::scheduler::Scheduler;
use super::subject::{Subject, Work};
use super::verdict::Condition;
use crate::hint::duration;
use crate::report::file::read_whole;
use crate::rtapp::convert::{convert, Wishes};
use crate::rtapp::Workload;
use crate::sim::engine::{Knowledge, Options};
use crate::sim::task::{Semantics, TaskSet};
use crate::sim::time::{Ns, US};
use crate::sim::workload::tournament::{self, draw};
use crate::sim::workload::{self, Params};

#[derive(Debug, Error)]
pub enum CaseError {
    #[error("cannot read {path}: {reason}")]
    Read { path: PathBuf, reason: String },
    #[error("{path}, line {line}: {reason}")]
    Content {
        path: PathBuf,
        line: usize,
        reason: String,
    },
}

/// A file that was read and found good.
pub struct CaseFile {
    pub path: PathBuf,
    /// Whom the summary is about; one of the schedulers.
    pub candidate: String,
    pub repeats: u32,
    pub simulator: Options,
    pub cases: Vec<Case>,
}

pub struct Case {
    pub name: String,
    pub schedulers: Vec<Scheduler>,
    pub must: Vec<Condition>,
    source: Source,
    seeds: RangeInclusive<u64>,
}

enum Source {
    Tournament(tournament::Options),
    Generator(&'static workload::Workload, Params),
    /// Boxed: the others are small.
    Fixed(Box<Subject>),
}

impl Case {
    /// Seeds given on the command line come first.
    pub fn subjects(&self, seeds: Option<&RangeInclusive<u64>>) -> Vec<Subject> {
        let seeds = seeds.unwrap_or(&self.seeds).clone();
        let of_set = |seed, knobs, set: TaskSet| Subject {
            case: self.name.clone(),
            seed: Some(seed),
            knobs,
            work: Work::Set(set.clone()),
            set,
        };
        match &self.source {
            Source::Fixed(subject) => vec![(**subject).clone()],
            Source::Tournament(options) => seeds
                .map(|seed| {
                    let drawn = draw(options, seed);
                    of_set(seed, Some(drawn.knobs), drawn.set)
                })
                .collect(),
            Source::Generator(workload, params) => seeds
                .map(|seed| of_set(seed, None, workload.generate(params, seed, 0)))
                .collect(),
        }
    }

    pub fn is_drawn(&self) -> bool {
        !matches!(self.source, Source::Fixed(_))
    }
}

/// `1..20`, the last included.
pub fn parse_seeds(text: &str) -> Result<RangeInclusive<u64>, String> {
    let (first, last) = text.split_once("..").unwrap_or((text, text));
    let number = |text: &str| text.trim().parse::<u64>();
    match (number(first), number(last)) {
        (Ok(first), Ok(last)) if first <= last && last - first < MOST_SEEDS => Ok(first..=last),
        (Ok(first), Ok(last)) if first <= last => Err(format!("more than {MOST_SEEDS} seeds")),
        _ => Err(format!("{text:?} is no range of seeds such as 1..20")),
    }
}

const MOST_SEEDS: u64 = 100_000;

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Raw {
    #[serde(default)]
    schedulers: Vec<Spanned<String>>,
    candidate: Option<Spanned<String>>,
    repeats: Option<Spanned<u32>>,
    seeds: Option<Spanned<String>>,
    #[serde(default)]
    must: Vec<Spanned<String>>,
    #[serde(default)]
    simulator: RawSimulator,
    #[serde(rename = "case", default)]
    cases: Vec<RawCase>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
struct RawSimulator {
    knowledge: Option<Knowledge>,
    decision_latency: Option<Spanned<String>>,
    switch_cost: Option<Spanned<String>>,
    migration_cost: Option<Spanned<String>>,
    quantum: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct RawCase {
    name: Spanned<String>,
    #[serde(default)]
    schedulers: Vec<Spanned<String>>,
    #[serde(default)]
    must: Vec<Spanned<String>>,
    seeds: Option<Spanned<String>>,
    horizon: Option<Spanned<String>>,
    tournament: Option<Spanned<tournament::Options>>,
    workload: Option<Spanned<RawGenerator>>,
    set: Option<Spanned<String>>,
    rt_app: Option<Spanned<String>>,
    cores: Option<Spanned<usize>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct RawGenerator {
    name: Spanned<String>,
    cores: Option<usize>,
    tasks: Option<usize>,
    load: Option<(f64, f64)>,
}

/// As near to the icount guest as a few numbers come; docs/measurements says how near.
pub fn like_a_kernel() -> Options {
    Options {
        knowledge: Knowledge::History,
        context_switch_ns: 10 * US,
        migration_ns: 5 * US,
        ..Options::new(Semantics::Continue)
    }
}

impl CaseFile {
    /// The same for every case; what must hold of others is not judged.
    pub fn replace_schedulers(&mut self, schedulers: Vec<Scheduler>) {
        let is_there = schedulers.iter().any(|other| other.name == self.candidate);
        if let (false, Some(last)) = (is_there, schedulers.last()) {
            self.candidate = last.name.clone();
        }
        for case in &mut self.cases {
            case.schedulers.clone_from(&schedulers);
        }
    }

    pub fn load(path: &Path) -> Result<CaseFile, CaseError> {
        let failed = |reason: String| CaseError::Read {
            path: path.into(),
            reason,
        };
        let bytes = read_whole(path).map_err(|e| failed(e.to_string()))?;
        let text = String::from_utf8(bytes).map_err(|e| failed(e.to_string()))?;
        CaseFile::parse(path, &text)
    }

    /// `path` is for messages, and where other files are looked for.
    pub fn parse(path: &Path, text: &str) -> Result<CaseFile, CaseError> {
        let reader = Reader { path, text };
        let raw: Raw = toml::from_str(text).map_err(|e| {
            let at = e.span().map_or(0, |span| span.start);
            reader.wrong(at, e.message())
        })?;
        reader.file(raw)
    }
}

struct Reader<'a> {
    path: &'a Path,
    text: &'a str,
}

type Read<T> = Result<T, CaseError>;

impl Reader<'_> {
    fn wrong(&self, at: usize, reason: impl ToString) -> CaseError {
        let before = &self.text.as_bytes()[..at.min(self.text.len())];
        CaseError::Content {
            path: self.path.into(),
            line: 1 + before.iter().filter(|&&byte| byte == b'\n').count(),
            reason: reason.to_string(),
        }
    }

    fn file(&self, raw: Raw) -> Read<CaseFile> {
        if raw.cases.is_empty() {
            return Err(self.wrong(0, "there is no [[case]]"));
        }
        let simulator = self.simulator(&raw.simulator)?;
        let mut cases: Vec<Case> = Vec::new();
        for case in &raw.cases {
            let made = self.case(case, &raw)?;
            if cases.iter().any(|other| other.name == made.name) {
                let at = case.name.span().start;
                return Err(self.wrong(at, format!("there are two cases {:?}", made.name)));
            }
            cases.push(made);
        }
        let repeats = raw.repeats.as_ref().map_or(1, |repeats| *repeats.get_ref());
        if repeats == 0 || repeats > 1000 {
            let at = raw.repeats.map_or(0, |repeats| repeats.span().start);
            return Err(self.wrong(at, "repeats must be between 1 and 1000"));
        }
        let last = |case: &Case| case.schedulers[case.schedulers.len() - 1].name.clone();
        let candidate = match &raw.candidate {
            None => last(&cases[0]),
            Some(name) => {
                let known =
                    |case: &Case| case.schedulers.iter().any(|s| s.name == **name.get_ref());
                if !cases.iter().all(known) {
                    let reason = format!("{:?} is no scheduler of every case", name.get_ref());
                    return Err(self.wrong(name.span().start, reason));
                }
                name.get_ref().clone()
            }
        };
        Ok(CaseFile {
            path: self.path.into(),
            candidate,
            repeats,
            simulator,
            cases,
        })
    }

    fn simulator(&self, raw: &RawSimulator) -> Read<Options> {
        let mut options = like_a_kernel();
        options.knowledge = raw.knowledge.unwrap_or(options.knowledge);
        for (said, field) in [
            (&raw.decision_latency, &mut options.decision_latency_ns),
            (&raw.switch_cost, &mut options.context_switch_ns),
            (&raw.migration_cost, &mut options.migration_ns),
            (&raw.quantum, &mut options.quantum_ns),
        ] {
            if let Some(said) = said {
                *field = self.time(said)?;
            }
        }
        Ok(options)
    }

    fn time(&self, said: &Spanned<String>) -> Read<Ns> {
        duration::parse(said.get_ref()).map_err(|e| self.wrong(said.span().start, e))
    }

    fn case(&self, raw: &RawCase, file: &Raw) -> Read<Case> {
        let at = raw.name.span().start;
        let name = raw.name.get_ref();
        let plain = |c: char| c.is_alphanumeric() || "-_.".contains(c);
        if name.is_empty() || !name.chars().all(plain) {
            let reason = "a case's name is letters, digits, -, _ and dots";
            return Err(self.wrong(at, reason));
        }
        let names = match raw.schedulers.is_empty() {
            true => &file.schedulers,
            false => &raw.schedulers,
        };
        let schedulers = self.schedulers(names)?;
        if schedulers.is_empty() {
            return Err(self.wrong(at, format!("nobody runs case {name:?}: name schedulers")));
        }
        let must = file.must.iter().chain(&raw.must);
        let must = must
            .map(|text| {
                let condition = Condition::parse(text.get_ref(), &schedulers);
                condition.map_err(|reason| self.wrong(text.span().start, reason))
            })
            .collect::<Read<Vec<_>>>()?;
        let seeds = match raw.seeds.as_ref().or(file.seeds.as_ref()) {
            Some(said) => {
                let parsed = parse_seeds(said.get_ref());
                parsed.map_err(|reason| self.wrong(said.span().start, reason))?
            }
            None => 1..=20,
        };
        Ok(Case {
            name: name.clone(),
            schedulers,
            must,
            source: self.source(raw)?,
            seeds,
        })
    }

    fn schedulers(&self, names: &[Spanned<String>]) -> Read<Vec<Scheduler>> {
        let mut schedulers: Vec<Scheduler> = Vec::new();
        for name in names {
            let at = name.span().start;
            let scheduler = Scheduler::parse(name.get_ref()).map_err(|why| self.wrong(at, why))?;
            if schedulers.iter().any(|other| other.name == scheduler.name) {
                return Err(self.wrong(at, format!("{:?} is there twice", scheduler.name)));
            }
            schedulers.push(scheduler);
        }
        Ok(schedulers)
    }

    fn source(&self, raw: &RawCase) -> Read<Source> {
        let at = raw.name.span().start;
        let horizon = raw
            .horizon
            .as_ref()
            .map(|said| self.time(said))
            .transpose()?;
        match (&raw.tournament, &raw.workload, &raw.set, &raw.rt_app) {
            (Some(said), None, None, None) => {
                let options = tournament::Options {
                    horizon_ns: horizon.or(said.get_ref().horizon_ns),
                    ..said.get_ref().clone()
                };
                match wrong_with(&options) {
                    Some(reason) => Err(self.wrong(said.span().start, reason)),
                    None => Ok(Source::Tournament(options)),
                }
            }
            (None, Some(said), None, None) => {
                let generator = said.get_ref();
                let name = generator.name.get_ref();
                let workload = workload::find(name).ok_or_else(|| {
                    let reason = format!("there is no workload {name:?}; `sim --list` names them");
                    self.wrong(generator.name.span().start, reason)
                })?;
                if let Some(reason) = wrong_with_generator(generator, horizon) {
                    return Err(self.wrong(said.span().start, reason));
                }
                let params = Params {
                    cores: generator.cores,
                    tasks: generator.tasks,
                    load: generator.load,
                    horizon_ns: horizon,
                    execution: None,
                };
                Ok(Source::Generator(workload, params))
            }
            (None, None, Some(file), None) => {
                let path = self.beside(file.get_ref());
                let mut set = TaskSet::load(&path).map_err(|e| self.wrong(file.span().start, e))?;
                set.horizon_ns = horizon.unwrap_or(set.horizon_ns);
                set.cores = raw
                    .cores
                    .as_ref()
                    .map_or(set.cores, |cores| *cores.get_ref());
                set.check().map_err(|e| self.wrong(file.span().start, e))?;
                Ok(self.fixed(raw, Work::Set(set.clone()), set))
            }
            (None, None, None, Some(file)) => self.rt_app(raw, file, horizon),
            _ => Err(self.wrong(at, "a case has one of tournament, workload, set and rt-app")),
        }
    }

    fn rt_app(&self, raw: &RawCase, file: &Spanned<String>, horizon: Option<Ns>) -> Read<Source> {
        let at = file.span().start;
        let path = self.beside(file.get_ref());
        let text = std::fs::read_to_string(&path)
            .map_err(|e| self.wrong(at, format!("cannot read {}: {e}", path.display())))?;
        let workload = Workload::of(&path, text.as_bytes()).map_err(|e| self.wrong(at, e))?;
        let wishes = Wishes {
            horizon,
            cores: raw.cores.as_ref().map(|cores| *cores.get_ref()),
        };
        let converted = convert(&workload, &wishes)
            .map_err(|e| self.wrong(at, format!("{}: {e}", path.display())))?;
        let set = converted.set;
        set.check().map_err(|e| self.wrong(at, e))?;
        let work = Work::RtApp {
            text,
            horizon_ns: set.horizon_ns,
            cores: set.cores,
        };
        Ok(self.fixed(raw, work, set))
    }

    fn fixed(&self, raw: &RawCase, work: Work, set: TaskSet) -> Source {
        Source::Fixed(Box::new(Subject {
            case: raw.name.get_ref().clone(),
            seed: None,
            knobs: None,
            work,
            set,
        }))
    }

    /// Files are named from where the case file is.
    fn beside(&self, name: &str) -> PathBuf {
        self.path.parent().unwrap_or(Path::new("")).join(name)
    }
}

fn wrong_with(options: &tournament::Options) -> Option<&'static str> {
    if options
        .cores
        .is_some_and(|cores| !(1..=64).contains(&cores))
    {
        return Some("cores must be between 1 and 64");
    }
    if options
        .tasks
        .is_some_and(|tasks| !(3..=64).contains(&tasks))
    {
        return Some("tasks must be between 3 and 64");
    }
    if options.hogs.is_some_and(|hogs| hogs > 64) {
        return Some("there may be 64 hogs");
    }
    let load = |(low, high): (f64, f64)| low > 0.0 && low <= high && high <= 4.0;
    if options.load.is_some_and(|range| !load(range)) {
        return Some("load must be two numbers in order, above 0 and up to 4");
    }
    (options
        .horizon_ns
        .is_some_and(|horizon| !(SHORTEST..=LONGEST).contains(&horizon)))
    .then_some("horizon must be between 1s and 10min")
}

/// The bounds of `sim`, which draws from the same generators.
fn wrong_with_generator(said: &RawGenerator, horizon: Option<Ns>) -> Option<&'static str> {
    if said.cores.is_some_and(|n| !(1..=4096).contains(&n)) {
        return Some("cores must be between 1 and 4096");
    }
    if said.tasks.is_some_and(|n| !(1..=100_000).contains(&n)) {
        return Some("tasks must be between 1 and 100000");
    }
    let load = |(low, high): (f64, f64)| low > 0.0 && low <= high && high <= 100.0;
    if said.load.is_some_and(|range| !load(range)) {
        return Some("load must be two numbers in order, above 0 and up to 100");
    }
    (horizon.is_some_and(|horizon| horizon == 0 || horizon > LONGEST))
        .then_some("horizon must be above zero and up to 10min")
}

const SHORTEST: Ns = 1_000_000 * US;
const LONGEST: Ns = 600 * SHORTEST;

#[cfg(test)]
mod tests;
