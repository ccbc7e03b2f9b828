//! `replay` in the terminal and as Markdown: the verdict, then the tables.

use super::columns;
use super::input::Input;
use super::live::Live;
use super::page;
use crate::report::table::Table;
use crate::rtapp::outcome::Outcome;
use crate::rtapp::verdict::ReplayVerdict;
use crate::sim::time::SECOND;

pub(super) fn text(
    input: &Input,
    live: Option<&Live>,
    verdict: &ReplayVerdict,
    outcomes: &[Outcome],
) -> String {
    let live = live.map_or(String::new(), |live| {
        let mut lines = format!("live on {}\n", live.where_it_ran());
        for loaded in live.loaded() {
            lines += &format!("  {loaded}\n");
        }
        lines
    });
    let best = |i: usize| verdict.is_contest() && verdict.schedulers[i].best;
    let marked = |i: usize| format!("{}{}", outcomes[i].scheduler, mark(best(i), "*"));
    let critical = |name: &str, critical: bool| format!("{name}{}", mark(critical, "!"));
    let schedulers = columns::schedulers(outcomes, &marked).table;
    let tasks = columns::tasks(verdict, outcomes, &critical).table;
    format!(
        "{}\n{live}\n{}\n{schedulers}{}\n{tasks}",
        summary(input),
        spoken(verdict),
        mark(verdict.is_contest(), "* best\n"),
    )
}

fn mark(holds: bool, text: &str) -> &str {
    match holds {
        true => text,
        false => "",
    }
}

fn summary(input: &Input) -> String {
    let set = &input.converted.set;
    format!(
        "{}: {} on {}, {} s, {:.2} CPUs asked for; late jobs go on",
        input.title,
        counted(set.tasks.len(), "task"),
        counted(set.cores, "core"),
        set.horizon_ns as f64 / SECOND as f64,
        input.demand(),
    )
}

fn counted(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

fn spoken(verdict: &ReplayVerdict) -> String {
    let mut text = format!("{}\n", verdict.headline);
    for (title, lines) in verdict.parts() {
        for (i, line) in lines.iter().enumerate() {
            let title = if i == 0 { title } else { "" };
            text += &format!("{title:<8}{line}\n");
        }
    }
    text
}

/// The same for a document: what was run is at its end.
pub(super) fn markdown(
    input: &Input,
    facts: &page::Facts,
    verdict: &ReplayVerdict,
    outcomes: &[Outcome],
) -> String {
    let best = |i: usize| verdict.is_contest() && verdict.schedulers[i].best;
    let marked = |i: usize| {
        let name = &outcomes[i].scheduler;
        match best(i) {
            true => format!("**{name}**"),
            false => name.clone(),
        }
    };
    let critical = |name: &str, critical: bool| format!("{name}{}", mark(critical, " (critical)"));
    let schedulers = columns::schedulers(outcomes, &marked).table;
    let tasks = columns::tasks(verdict, outcomes, &critical).table;
    let mut text = format!(
        "# {}\n{}.\n\n**{}**\n\n",
        input.title,
        summary(input),
        verdict.headline
    );
    for (title, lines) in verdict.parts() {
        text += &format!("- **{title}.** {}\n", lines.join(" "));
    }
    text += &format!("\n## Schedulers\n{}\n## Tasks\n", schedulers.to_markdown());
    text += &tasks.to_markdown();
    let mut run = Table::new(["what was run", ""]);
    facts
        .facts
        .iter()
        .for_each(|(name, value)| run.row([name, value]));
    text += &format!("\n## What was run\n{}", run.to_markdown());
    if !facts.notes.is_empty() {
        text += "\n## Notes\n";
        for note in &facts.notes {
            text += &format!("- {}\n", note.replace("\n    ", " "));
        }
    }
    text
}
