//! Which runs a guest is to do, and how the scheduler of each is started.
use crate::cases::Case;
use crate::rhythm;
use anyhow::{anyhow, ensure, Result};
use clap::ValueEnum;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

#[derive(Clone)]
pub struct Seeds(pub Vec<u64>);

pub fn parse_seeds(text: &str) -> Result<Seeds> {
    let (from, to) = text.split_once("..").unwrap_or((text, text));
    let (from, to): (u64, u64) = (from.parse()?, to.parse()?);
    ensure!(from <= to && to - from < 1000, "no range of seeds");
    Ok(Seeds((from..=to).collect()))
}

pub struct Run {
    pub case: String,
    pub variant: String,
    /// Of the table: the scheduler, and what it was told.
    pub column: String,
}

impl Run {
    /// Its files in the guest's /out.
    pub fn file(&self, ending: &str) -> String {
        format!("{}.{}.{}.{ending}", self.case, self.variant, self.column)
    }

    /// From a line of the plan.
    pub fn parse(line: &str) -> Option<Run> {
        let mut words = line.split_whitespace().map(str::to_string);
        Some(Run {
            case: words.next()?,
            variant: words.next()?,
            column: words.next()?,
        })
    }
}

/// Whether a column is of a scheduler of ours.
pub fn is_ours(column: &str) -> bool {
    let scheduler = column.split('+').next().unwrap_or(column);
    ["temponet", "distilled", "edf"].contains(&scheduler)
}

/// The command line of a scheduler; empty: the kernel's own. One load serves all runs of a
/// case, with the rules of all of them.
fn launch(scheduler: &str, rules: Option<&str>) -> String {
    let policy = match scheduler {
        "eevdf" => return String::new(),
        "temponet" => "",
        "distilled" => " --policy distilled",
        "edf" => " --policy edf",
        peer => return peer.to_string(),
    };
    let rules = rules.map_or(String::new(), |file| format!(" --rules /fair/rules/{file}"));
    format!("scx_temponet{policy}{rules}")
}

/// A case, or one variant of it: `rhythm/seed-1-set-3`.
#[derive(Clone)]
pub struct Wanted {
    case: Case,
    variant: Option<String>,
}

pub fn parse_wanted(text: &str) -> Result<Wanted> {
    let (name, variant) = match text.split_once('/') {
        Some((name, variant)) => (name, Some(variant.to_string())),
        None => (text, None),
    };
    let case = Case::from_str(name, false).map_err(|_| anyhow!("no such case: {name}"))?;
    Ok(Wanted { case, variant })
}

impl Wanted {
    fn variants(&self, seeds: &[u64]) -> Result<Vec<String>> {
        let mut all = self.case.variants(seeds);
        if let Some(variant) = &self.variant {
            all.retain(|one| one == variant);
            let name = self.case.name();
            ensure!(
                !all.is_empty(),
                "{name} has no variant {variant} (of this seed)"
            );
        }
        Ok(all)
    }
}

/// The runs, and the rules that their tasks go by into a file per case.
pub fn print(
    wanted: &[Wanted],
    seeds: &[u64],
    against: &[String],
    folder: &Path,
) -> Result<ExitCode> {
    let all = Case::value_variants().iter().map(|&case| Wanted {
        case,
        variant: None,
    });
    let wanted = if wanted.is_empty() {
        all.collect()
    } else {
        wanted.to_vec()
    };
    fs::create_dir_all(folder)?;
    for wanted in wanted {
        let case = wanted.case;
        let mut runs = Vec::new();
        let mut rules = String::new();
        for variant in wanted.variants(seeds)? {
            for scheduler in against {
                for column in case.columns(scheduler) {
                    if case.has_rhythm() && is_ours(scheduler) {
                        rules += &rhythm::rules(case, &variant, &column);
                    }
                    runs.push((variant.clone(), column, scheduler));
                }
            }
        }
        let file = format!("{}.toml", case.name());
        let file = (!rules.is_empty()).then_some(file.as_str());
        for (variant, column, scheduler) in runs {
            let launch = launch(scheduler, file);
            let line = format!("{} {variant} {column} {launch}", case.name());
            println!("{}", line.trim_end());
        }
        if let Some(file) = file {
            fs::write(folder.join(file), rules)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
