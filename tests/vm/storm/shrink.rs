//! Delta debugging (Zeller and Hildebrandt, 2002) over the tasks and the events of a story
//! that fails: leaves out halves, quarters and so on for as long as it goes on failing.
use crate::sets::to_list;
use crate::story::Story;
use anyhow::{Context, Result};
use std::process::{Command, ExitCode};

pub fn shrink(story: &Story, most_runs: usize, command: &[String]) -> Result<ExitCode> {
    let mut runs = 0;
    let mut fails = |tasks: &[usize], events: &[usize]| -> Result<bool> {
        if runs == most_runs {
            return Ok(false);
        }
        runs += 1;
        let filter = filter(tasks, events);
        let status = Command::new(&command[0])
            .args(&command[1..])
            .args(&filter)
            .stdout(std::process::Stdio::null())
            .status()
            .with_context(|| format!("cannot run {}", command[0]))?;
        let failed = status.code() == Some(1);
        eprintln!(
            "storm: run {runs}: {} tasks, {} events: {}",
            tasks.len(),
            events.len(),
            if failed { "still fails" } else { "passes" }
        );
        Ok(failed)
    };
    let (mut tasks, mut events) = (story.tasks(), story.events_left());
    // Tasks first: without them their events go too.
    tasks = smallest(tasks, |some| fails(some, &events))?;
    let kept = |event: &usize| {
        let task = story.events[*event].what.task();
        task.is_none_or(|task| tasks.contains(&task))
    };
    events.retain(kept);
    events = smallest(events, |some| fails(&tasks, some))?;
    println!(
        "{} {}",
        command.join(" "),
        filter(&tasks, &events).join(" ")
    );
    Ok(ExitCode::SUCCESS)
}

fn filter(tasks: &[usize], events: &[usize]) -> [String; 4] {
    let list = |numbers: &[usize]| match numbers.is_empty() {
        true => "none".into(),
        false => to_list(numbers.iter().copied()),
    };
    [
        "--tasks".into(),
        list(tasks),
        "--events".into(),
        list(events),
    ]
}

/// A subset that still fails and of which no single part of the last, finest division can
/// be left out. `whole` is known to fail.
fn smallest(
    mut whole: Vec<usize>,
    mut fails: impl FnMut(&[usize]) -> Result<bool>,
) -> Result<Vec<usize>> {
    let mut parts = 2;
    while whole.len() > 1 && parts <= whole.len() {
        let size = whole.len().div_ceil(parts);
        let mut smaller = None;
        for from in (0..whole.len()).step_by(size) {
            let mut rest = whole.clone();
            rest.drain(from..(from + size).min(whole.len()));
            if fails(&rest)? {
                smaller = Some(rest);
                break;
            }
        }
        match smaller {
            Some(rest) => {
                whole = rest;
                parts = (parts - 1).max(2);
            }
            None if parts == whole.len() => break,
            None => parts = (parts * 2).min(whole.len()),
        }
    }
    Ok(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_failure_needs_is_all_that_is_left() {
        for needed in [vec![3], vec![0, 19], vec![4, 5, 13]] {
            let left = smallest((0..20).collect(), |some| {
                Ok(needed.iter().all(|n| some.contains(n)))
            });
            assert_eq!(left.unwrap(), needed);
        }
    }
}
