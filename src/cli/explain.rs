//! `scx_temponet explain`: what the network looks at, and what is left of it
//! as a rule.

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::{ensure, Context, Result};
use clap::Args;
use serde::Serialize;

use super::bench::{moments, Moment, CPUS};
use crate::policy::diagnostics::entropy;
use crate::policy::network::{DistilledTable, Model, Native, Precision};
use crate::policy::{Quantiser, Token, TokenSet};
use crate::report::table::Table;
use crate::train::distil::{self, Agreement};

/// Show what a model looks at: attention, a heat map of its values, and the rule
/// it comes down to
///
/// The situation is a moment of a simulated machine with eight CPUs at load 1.1.
/// With --fit-distilled the network is averaged over thousands of simulated
/// decisions into one number per slack bin and work bin, which is stored in the
/// model file; the kernel ranks by it what the agent has not seen yet.
#[derive(Args, Debug, Clone)]
pub struct ExplainArgs {
    /// A model file (default: the one that comes with this program)
    #[arg(long, value_name = "FILE")]
    model: Option<PathBuf>,

    /// Jobs in the situation that is shown
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=1000))]
    jobs: u32,

    /// Fit the table and store it
    #[arg(long)]
    fit_distilled: bool,

    /// Where the model with its table goes (default: --model itself)
    #[arg(long, value_name = "FILE", requires = "fit_distilled")]
    out: Option<PathBuf>,

    /// Simulated machines to fit the table to, and as many to judge it
    #[arg(long, default_value_t = 400, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    machines: u32,

    /// Where everything random starts
    #[arg(long, default_value_t = 1, value_parser = super::sim::parse_seed, allow_hyphen_values = true)]
    seed: u64,

    /// As JSON
    #[arg(long)]
    json: bool,
}

/// A token of the situation.
#[derive(Serialize)]
struct Seen {
    /// Where its bins begin; neither for idle, no slack for late jobs.
    slack_ms: Option<f64>,
    work_ms: Option<f64>,
    late: bool,
    class: u8,
    doubt: u8,
    count: u32,
    q: f32,
    /// How much of what the others see it is, on average, and how widely it
    /// looks itself.
    attended: f64,
    entropy: f64,
}

#[derive(Serialize)]
struct Outcome {
    model: String,
    tokens: Vec<Seen>,
    /// Q of one more job, by slack bin (late first) and work bin.
    heat: Vec<Vec<f32>>,
    distilled: Option<DistilledTable>,
    agreement: Option<Agreement>,
}

pub fn run(args: &ExplainArgs) -> Result<()> {
    let mut model = Model::open(args.model.as_deref())?;
    let machines = args.machines as usize;
    let mut agreement = None;
    if args.fit_distilled {
        let out = args.out.as_deref().or(args.model.as_deref());
        let out = out.context("say with --out where the model with its table should go")?;
        let (table, fitted) = distil::distil(&model, machines, args.seed)?;
        agreement = Some(fitted);
        model = model.with_distilled(table)?;
        model
            .save(out)
            .with_context(|| format!("cannot write {}", out.display()))?;
    } else if let Some(table) = model.distilled() {
        // Not on what it was fitted to, whatever the seed here.
        agreement = Some(distil::agreement(&model, table, machines, table.seed()));
    }
    let found = moments(args.jobs as usize, 1, args.seed);
    let moment = found.first();
    ensure!(
        moment.is_some(),
        "the simulated machine never has {} jobs waiting",
        args.jobs
    );
    let (tokens, heat) = moment
        .map(|moment| look(&model, moment))
        .unwrap_or_default();
    let outcome = Outcome {
        model: model.provenance().name.clone(),
        tokens,
        heat,
        distilled: model.distilled().cloned(),
        agreement,
    };
    let text = match args.json {
        true => serde_json::to_string_pretty(&outcome)? + "\n",
        false => printed(&model, &outcome),
    };
    // A closed pipe (explain | head) is no error worth a word.
    let _ = std::io::stdout().write_all(text.as_bytes());
    Ok(())
}

/// The tokens of a moment, and what one more job would be worth.
fn look(model: &Model, moment: &Moment) -> (Vec<Seen>, Vec<Vec<f32>>) {
    let tokenizer = model.tokenizer();
    let mut native = Native::new(model.weights(), Precision::Float);
    let mut set = TokenSet::default();
    tokenizer.tokenize_situation(&moment.situation(), &mut set);
    let q = native.forward(&set, CPUS).to_vec();
    let attention = native.first_attention(&set, CPUS);
    let seen = (0..set.distinct()).map(|i| {
        let looks = attention.iter().map(|row| f64::from(row[i]));
        let (slack, work, class, doubt) = match set.tokens()[i] {
            Token::Idle { .. } => (None, None, 0, 0),
            Token::Job {
                slack,
                work,
                class,
                doubt,
            } => (Some(slack), Some(work), class, doubt),
        };
        Seen {
            slack_ms: slack.and_then(|bin| slack_from_ms(tokenizer.slack(), bin.into())),
            late: slack == Some(0),
            work_ms: work.map(|bin| from_ms(tokenizer.work(), bin.into())),
            class,
            doubt,
            count: set.counts()[i],
            q: q[i],
            attended: looks.sum::<f64>() / set.distinct() as f64,
            entropy: entropy(&attention[i]),
        }
    });
    let mut tokens = set.tokens().to_vec();
    let mut counts = set.counts().to_vec();
    counts.push(1);
    tokens.push(tokens[0]);
    let mut value = |slack: usize, work: usize| {
        if let Some(last) = tokens.last_mut() {
            *last = Token::Job {
                slack: slack as u16,
                work: work as u8,
                class: 0,
                doubt: 0,
            };
        }
        let q = native.forward_rows(&tokens, &counts, CPUS);
        q.last().copied().unwrap_or(f32::NAN)
    };
    let works = tokenizer.work().levels();
    let heat = (0..tokenizer.slack_bins())
        .map(|slack| (0..works).map(|work| value(slack, work)).collect())
        .collect();
    (seen.collect(), heat)
}

/// Where a bin begins, in milliseconds.
fn from_ms(bins: &Quantiser, bin: usize) -> f64 {
    let edge = bin
        .checked_sub(1)
        .and_then(|edge| bins.edges_ns().get(edge));
    edge.map_or(0.0, |&ns| ns as f64 / 1e6)
}

/// Of a slack bin as tokens count it: the first is for late jobs.
fn slack_from_ms(bins: &Quantiser, bin: usize) -> Option<f64> {
    bin.checked_sub(1).map(|bin| from_ms(bins, bin))
}

fn slack_label(bins: &Quantiser, bin: usize) -> String {
    slack_from_ms(bins, bin).map_or("late".into(), |ms| format!("{ms:.1}"))
}

fn printed(model: &Model, outcome: &Outcome) -> String {
    let mut text = format!(
        "model  {}\n\nA situation of {CPUS} CPUs: attention of the first layer\n",
        outcome.model
    );
    let mut table = Table::new([
        "slack from ms",
        "work from ms",
        "class",
        "doubt",
        "jobs",
        "Q",
        "attended %",
        "entropy",
    ]);
    for seen in &outcome.tokens {
        let ms = |ms: Option<f64>| match ms {
            Some(ms) => format!("{ms:.1}"),
            None if seen.late => "late".into(),
            None => "idle".into(),
        };
        table.row([
            ms(seen.slack_ms),
            ms(seen.work_ms),
            seen.class.to_string(),
            seen.doubt.to_string(),
            seen.count.to_string(),
            format!("{:.3}", seen.q),
            format!("{:.1}", 100.0 * seen.attended),
            format!("{:.2}", seen.entropy),
        ]);
    }
    text += &format!("{table}\n");
    text += "What one more job would be worth there, by slack (down) and work (across):\n";
    let values: Vec<f32> = outcome.heat.iter().flatten().copied().collect();
    text += &heat_map(model, &values);
    let Some(table) = &outcome.distilled else {
        return text + "\nIt has no distilled table; --fit-distilled makes one.\n";
    };
    text += &format!(
        "\nThe distilled table, of {} decisions (seed {}):\n",
        table.contexts(),
        table.seed()
    );
    let values: Vec<f32> = table.scores().iter().map(|&score| score.into()).collect();
    text += &heat_map(model, &values);
    if let Some(agreement) = &outcome.agreement {
        text += &format!(
            "On {} decisions that it was not fitted to, its first choice is the network's in {:.1} % (EDF {:.1} %); of the jobs that the network runs it runs {:.1} % (EDF {:.1} %).\n",
            agreement.contexts,
            100.0 * agreement.first,
            100.0 * agreement.edf_first,
            100.0 * agreement.top_m,
            100.0 * agreement.edf_top_m
        );
    }
    text
}

/// From the least to the most.
const SHADES: [char; 10] = [' ', '.', ':', '-', '=', '+', '*', '#', '%', '@'];

/// Shades by rank, so that a few large values do not hide the rest.
fn heat_map(model: &Model, values: &[f32]) -> String {
    let tokenizer = model.tokenizer();
    let works = tokenizer.work().levels();
    let mut ranked = values.to_vec();
    ranked.sort_by(f32::total_cmp);
    let shade = |value: f32| {
        let below = ranked.partition_point(|&other| other < value);
        SHADES[(below * SHADES.len() / ranked.len().max(1)).min(SHADES.len() - 1)]
    };
    let mut text = String::new();
    for (slack, row) in values.chunks(works).enumerate() {
        text += &format!("{:>9}  ", slack_label(tokenizer.slack(), slack));
        text.extend(row.iter().flat_map(|&value| [shade(value); 2]));
        text += "\n";
    }
    let last = from_ms(tokenizer.work(), works - 1);
    text + &format!("{:>9}  work from 0 to {last:.1} ms and more\n", "slack ms")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_heat_map_has_a_line_per_slack_bin_and_its_darkest_is_the_largest() {
        let model = Model::shipped();
        let (slacks, works) = (
            model.tokenizer().slack_bins(),
            model.tokenizer().work().levels(),
        );
        let values: Vec<f32> = (0..slacks * works).map(|i| -(i as f32)).collect();
        let text = heat_map(&model, &values);
        assert_eq!(text.lines().count(), slacks + 1);
        assert!(text.starts_with("     late  @@"));
        assert_eq!(text.lines().nth(slacks - 1).unwrap().trim_end().len(), 9);
    }

    #[test]
    fn attention_adds_up_and_idle_comes_first() {
        let model = Model::shipped();
        let found = moments(16, 1, 1);
        let (seen, heat) = look(&model, &found[0]);
        let total: f64 = seen.iter().map(|seen| seen.attended).sum();
        assert!((total - 1.0).abs() < 1e-4, "{total}");
        assert_eq!((seen[0].slack_ms, seen[0].work_ms), (None, None));
        assert_eq!(seen.iter().skip(1).map(|s| s.count).sum::<u32>(), 16);
        assert_eq!(heat.len(), model.tokenizer().slack_bins());
    }
}
