//! What decides at this moment, in words.

use crate::agent::stats::Metrics;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mood {
    Good,
    Calm,
    Poor,
}

/// One sentence, and how good the news is.
pub fn verdict(metrics: &Metrics) -> (String, Mood) {
    let agent = &metrics.agent;
    if agent.level.is_empty() {
        return ("the scheduler does not say what decides".into(), Mood::Calm);
    }
    // Without an agent nobody fell back.
    if agent.backend.is_empty() {
        let rule = match agent.level.as_str() {
            "distilled" => "the distilled rule decides",
            _ => "earliest deadline first decides",
        };
        return (format!("{rule}; no agent runs"), Mood::Calm);
    }
    let poor = |what: &str| (what.to_owned(), Mood::Poor);
    match agent.level.as_str() {
        "q-table" => return poor("the agent is late: its last table decides"),
        "distilled" => return poor("the agent is silent: the distilled rule decides"),
        "agent" => {}
        _ => return poor("the agent is silent: earliest deadline first decides"),
    }
    // While a kept task is late the agent publishes verdicts and no decisions.
    if agent.given_up > 0 && agent.decisions + agent.told > 0 {
        let text = format!(
            "overload: the agent gave up {} of {} tasks",
            agent.given_up, agent.tasks
        );
        return (text, Mood::Poor);
    }
    if agent.decisions == 0 {
        return (format!("agent idle: {}", why_idle(metrics)), Mood::Calm);
    }
    ("the agent decides".into(), Mood::Good)
}

/// The agent is told of jobs while they compete, and rung for where their order matters
/// (docs/agent.md).
fn why_idle(metrics: &Metrics) -> &'static str {
    let declared_ran = metrics
        .classes
        .get("declared")
        .is_some_and(|class| class.runs > 0);
    match (declared_ran, metrics.agent.told > 0) {
        (_, true) => "deadlines alone settle what runs",
        (true, false) => "nothing competes",
        (false, false) => "no declared task ran",
    }
}
