//! What each panel says, straight from the figures that the scheduler serves.

use ratatui::style::{Color, Style, Stylize};
use ratatui::text::{Line, Span};

use crate::agent::agent_stats::{AgentMetrics, CpuMetrics, Spread};
use crate::agent::stats::{ClassMetrics, Metrics};

use super::app::App;
use super::history::{load, spark, Sample};
use super::source::Look;
use super::text::{
    bar, clean, count, duration, lasted, on_time, per_second, percent, rate, task_name,
};
use super::view::Panel;

/// The order in which classes are shown; others follow.
const CLASSES: &[&str] = &["declared", "inferred", "background", "late"];

pub fn panel(title: impl Into<String>, lines: Vec<Line<'static>>, least: usize) -> Panel {
    Panel {
        title: title.into(),
        lines,
        least,
    }
}

pub fn dim(text: impl Into<String>) -> Line<'static> {
    Line::from(text.into()).dim()
}

fn since_load(look: &Look) -> String {
    let total = look.total.as_ref();
    total.map_or("since load: not served".into(), |total| {
        format!("since load, {}", lasted(total.interval_s))
    })
}

fn rate_of(n: u64, metrics: &Metrics) -> String {
    per_second(n, metrics.interval_s).map_or("-".into(), rate)
}

pub fn deadlines(look: &Look, width: u16) -> Panel {
    let wide = width >= 80;
    let mut groups = format!("{:<10}{:<26}", "", "  now");
    let mut titles = format!(
        "{:<10}{:>7}{:>10}{:>9}",
        "class", "met/s", "missed/s", "response"
    );
    if wide {
        titles += &format!("{:>8}", "wait");
        groups += &" ".repeat(8);
    }
    groups += &format!("   {}", since_load(look));
    titles += &format!("  {:>8}{:>8}{:>7}{:>9}", "met", "missed", "%", "max wait");
    let mut lines = vec![dim(groups), dim(titles)];
    let mut names: Vec<&String> = look.recent.classes.keys().collect();
    let place = |name: &str| CLASSES.iter().position(|known| *known == name);
    names.sort_by_key(|name| place(name).unwrap_or(CLASSES.len()));
    for name in names {
        let total = look.total.as_ref().and_then(|t| t.classes.get(name));
        lines.push(class_line(name, &look.recent, total, wide));
    }
    if look.recent.classes.is_empty() {
        lines.push(dim("no figures"));
    }
    panel("deadlines", lines, 6)
}

fn class_line(
    name: &str,
    recent: &Metrics,
    total: Option<&ClassMetrics>,
    wide: bool,
) -> Line<'static> {
    let now = recent.classes.get(name).cloned().unwrap_or_default();
    // Only these have jobs; the others' zeros would read as perfect.
    let has_jobs = name != "background" && name != "late";
    let job = |text: String| if has_jobs { text } else { "-".into() };
    let mut text = format!(
        "{:<10}{:>7}{:>10}{:>9}",
        clean(name, 10),
        job(rate_of(now.met, recent)),
        job(rate_of(now.missed, recent)),
        duration((has_jobs && now.met.saturating_add(now.missed) > 0).then_some(now.response_us)),
    );
    if wide {
        text += &format!("{:>8}", duration((now.runs > 0).then_some(now.wait_us)));
    }
    text += &match total {
        None => format!("  {:>8}{:>8}{:>7}{:>9}", "-", "-", "-", "-"),
        Some(total) => format!(
            "  {:>8}{:>8}{:>7}{:>9}",
            job(count(total.met)),
            job(count(total.missed)),
            job(on_time(total.met, total.missed)),
            duration(Some(total.wait_max_us))
        ),
    };
    let style = match now.missed {
        1.. if has_jobs => Style::new().fg(Color::Red),
        _ => Style::new(),
    };
    Line::styled(text, style)
}

pub fn history(app: &App, width: u16) -> Panel {
    const NAME: usize = 13;
    const FIGURES: usize = 17;
    let room = usize::from(width).saturating_sub(NAME + FIGURES).max(8);
    let shown = |of: fn(&Sample) -> Option<f64>| app.history.last(room, of);
    let mut lines = Vec::new();
    let mut add = |name: &str, values: Vec<Option<f64>>, full: Option<f64>, written: Written| {
        let Some(last) = values.iter().rev().find_map(|value| *value) else {
            return;
        };
        let peak = values.iter().flatten().copied().fold(0.0, f64::max);
        let bars = spark(&values, full.unwrap_or(peak));
        lines.push(Line::from(vec![
            Span::from(format!("{name:<NAME$}")).dim(),
            Span::from(format!("{bars:>room$}")),
            Span::from(format!(
                "{:>8}{:>9}",
                written(last),
                format!("≤{}", written(peak))
            )),
        ]));
    };
    add("missed/s", shown(|s| s.missed), None, rate);
    add("CPU load", shown(|s| s.load), Some(1.0), whole_percent);
    add("met/s", shown(|s| s.met), None, rate);
    add("decisions/s", shown(|s| s.decisions), None, rate);
    if lines.is_empty() {
        lines.push(dim("nothing seen yet"));
    }
    panel("history: now and peak", lines, 3)
}

type Written = fn(f64) -> String;

fn whole_percent(share: f64) -> String {
    match (0.0..=10.0).contains(&share) {
        true => format!("{:.0} %", 100.0 * share),
        false => "? %".into(),
    }
}

/// One lane needs so many columns.
const LANE: usize = 44;

pub fn cpus(app: &App, look: &Look, width: u16) -> Panel {
    let metrics = &look.recent;
    let Some(share) = load(metrics) else {
        return panel("CPUs", vec![dim("not reported")], 1);
    };
    let width = usize::from(width);
    let busy: Vec<Option<f64>> = metrics.cpus.values().map(|cpu| Some(cpu.busy)).collect();
    let lead = format!(
        "load {}, {:.1} of {}  ",
        whole_percent(share),
        share * busy.len() as f64,
        match busy.len() {
            1 => "1 CPU".to_owned(),
            n => format!("{n} CPUs"),
        }
    );
    let bars = busy.len().min(width.saturating_sub(lead.chars().count()));
    let mut lines = vec![Line::from(lead + &spark(&busy[..bars], 1.0))];
    let per_line = (width / LANE).max(1);
    let lanes: Vec<(&u32, &CpuMetrics)> = metrics
        .cpus
        .iter()
        .filter(|(_, cpu)| app.filter.is_empty() || app.shows(&cpu.comm))
        .collect();
    let lane_width = width / per_line;
    for line in lanes.chunks(per_line) {
        let spans = line
            .iter()
            .flat_map(|(cpu, runs)| lane(**cpu, runs, lane_width));
        lines.push(Line::from(spans.collect::<Vec<_>>()));
    }
    panel("CPUs: load and what runs", lines, 1)
}

fn lane(cpu: u32, runs: &CpuMetrics, width: usize) -> Vec<Span<'static>> {
    let lead = format!(
        "{cpu:>4} {} {:>5} ",
        bar(runs.busy, 6),
        whole_percent(runs.busy)
    );
    // The class and a space behind it.
    let name = width.saturating_sub(lead.chars().count() + 11).clamp(8, 26);
    // A pid of 0 is the idle task.
    if runs.pid == 0 {
        return vec![
            Span::from(lead),
            Span::from(format!("{:<1$}", "idle", name + 11)).dim(),
        ];
    }
    let task = format!("{}[{}]", clean(&runs.comm, 16), runs.pid);
    vec![
        Span::from(lead),
        Span::from(format!("{:<name$}", task_name(&task, name - 1))),
        Span::styled(
            format!("{:<11}", clean(&runs.tier, 10)),
            class_style(&runs.tier),
        ),
    ]
}

pub fn agent(look: &Look) -> Panel {
    let agent = &look.recent.agent;
    if agent.backend.is_empty() {
        return panel("agent", vec![dim("no agent runs under this policy")], 1);
    }
    let mut lines = vec![
        Line::from(format!(
            "{:<13}{:>9}/s, {}/s by the network",
            "decisions",
            rate(agent.decisions_per_s),
            rate_of(agent.inferences, &look.recent)
        )),
        Line::from(format!(
            "{:<13}{:>9}    of {} allowed",
            "CPU",
            percent(agent.cpu_share),
            percent(agent.budget)
        )),
        Line::from(format!(
            "{:<13}{:>9}    {} given up",
            "tasks",
            count(agent.tasks),
            count(agent.given_up)
        )),
        dim(format!("{:<13}{:>9}{:>9}", "", "median", "p99")),
    ];
    for (name, spread) in [
        ("inference", &agent.inference_us),
        ("latency", &agent.latency_us),
        ("decision age", &agent.decision_age_us),
    ] {
        let of = |us: u64| duration(has_any(spread).then_some(us as f64));
        lines.push(Line::from(format!(
            "{name:<13}{:>9}{:>9}",
            of(spread.p50),
            of(spread.p99)
        )));
    }
    lines.push(shield_line(agent));
    panel("agent", lines, 2)
}

fn has_any(spread: &Spread) -> bool {
    spread.counts.iter().any(|&count| count > 0)
}

fn shield_line(agent: &AgentMetrics) -> Line<'static> {
    let shield = &agent.shield;
    let mut found = vec![match shield.feasible {
        0 => "not all can be on time",
        _ => "all can be on time",
    }];
    if shield.overload > 0 {
        found.push("overload");
    }
    if shield.burst > 0 {
        found.push("burst");
    }
    let style = match shield.overload {
        0 => Style::new(),
        _ => Style::new().fg(Color::Yellow),
    };
    Line::from(vec![
        Span::from(format!("{:<13}", "shield")).dim(),
        Span::styled(found.join(", "), style),
    ])
}

/// A source of dispatches: its name, its count, and whether it is worth a line where it does
/// not occur.
type Named = (&'static str, fn(&Metrics) -> u64, bool);

const SOURCES: [Named; 8] = [
    ("agent", |m| m.decision, true),
    ("Q-table", |m| m.q_table, true),
    ("distilled", |m| m.distilled, false),
    ("deadline order", |m| m.queue, true),
    ("idle CPU", |m| m.idle, true),
    ("bound", |m| m.bound, false),
    ("kthread", |m| m.kthread, false),
    ("agent's own", |m| m.agent_thread, false),
];

pub fn sources(look: &Look, width: u16) -> Panel {
    let recent = &look.recent;
    let all = SOURCES
        .iter()
        .fold(0u64, |sum, (_, of, _)| sum.saturating_add(of(recent)));
    let room = usize::from(width).saturating_sub(44).min(30);
    let mut lines = vec![dim(format!(
        "{:<15}{:>8}{:>9}{:>12}",
        "source", "/s", "share", "since load"
    ))];
    for (name, of, always) in SOURCES {
        let (n, total) = (of(recent), look.total.as_ref().map(of));
        if !always && n == 0 && total.unwrap_or(0) == 0 {
            continue;
        }
        let share = n as f64 / all.max(1) as f64;
        lines.push(Line::from(format!(
            "{name:<15}{:>8}{:>9}{:>12}  {}",
            rate_of(n, recent),
            percent(share),
            total.map_or("-".into(), count),
            bar(share, room)
        )));
    }
    panel("dispatches by source", lines, 3)
}

/// What BPF and the agent counted; the flag marks what went wrong and was survived.
const EVENTS: [Named; 16] = [
    ("preemptions", |m| m.preemptions, false),
    ("steals", |m| m.steals, false),
    ("hopeless", |m| m.hopeless, false),
    ("rollovers", |m| m.rollovers, false),
    ("demotions", |m| m.demotions, false),
    ("stale", |m| m.agent.stale, false),
    ("duplicate", |m| m.agent.duplicate, false),
    ("impossible", |m| m.agent.impossible, true),
    ("hints invalid", |m| m.hints_invalid, true),
    ("misplaced", |m| m.misplaced, true),
    ("drifted", |m| m.drifted, true),
    ("ring drops", |m| m.agent.ring_drops, true),
    ("bad records", |m| m.agent.bad_records, true),
    ("resyncs", |m| m.agent.resyncs, true),
    ("overflow", |m| m.agent.overflow, true),
    ("swaps refused", |m| m.agent.swaps_refused, true),
];

pub fn events(look: &Look) -> Panel {
    let recent = &look.recent;
    let mut lines = vec![dim(format!(
        "{:<20}{:>8}{:>12}",
        "event", "/s", "since load"
    ))];
    let line = |name: String, n: u64, total: Option<u64>, is_fault: bool| {
        let style = match is_fault && n > 0 {
            true => Style::new().fg(Color::Yellow),
            false => Style::new(),
        };
        let text = format!(
            "{name:<20}{:>8}{:>12}",
            rate_of(n, recent),
            total.map_or("-".into(), count)
        );
        Line::styled(text, style)
    };
    for (name, of, is_fault) in EVENTS {
        let (n, total) = (of(recent), look.total.as_ref().map(of));
        if n > 0 || total.unwrap_or(0) > 0 {
            lines.push(line(name.into(), n, total, is_fault));
        }
    }
    let totals = look.total.as_ref().map(|total| &total.agent.transitions);
    for (name, &n) in &recent.agent.transitions {
        let total = totals.map(|totals| totals.get(name).copied().unwrap_or(0));
        // Back to the agent is no fall.
        if name != "agent" && (n > 0 || total.unwrap_or(0) > 0) {
            lines.push(line(format!("fell to {}", clean(name, 10)), n, total, true));
        }
    }
    if lines.len() == 1 {
        lines = vec![dim("none")];
    }
    panel("events and faults", lines, 2)
}

/// Counts by power of two of a microsecond; empty ones at both ends are left out.
pub fn ages(look: &Look, width: u16) -> Panel {
    let counts = &look.recent.agent.decision_age_us.counts;
    let counts = &counts[..counts.len().min(64)];
    let first = counts.iter().position(|&n| n > 0);
    let last = counts.iter().rposition(|&n| n > 0);
    let most = counts.iter().max().copied().unwrap_or(0).max(1);
    let room = usize::from(width).saturating_sub(22).min(40);
    let mut lines = Vec::new();
    if let Some((first, last)) = first.zip(last) {
        for (i, n) in counts.iter().enumerate().take(last + 1).skip(first) {
            let bound = format!("≤ {}", duration(Some((2.0f64).powi(i as i32 + 1))));
            lines.push(Line::from(format!(
                "{bound:>10} {} {}",
                bar(*n as f64 / most as f64, room),
                count(*n)
            )));
        }
    }
    if lines.is_empty() {
        lines.push(dim("none used"));
    }
    panel("age of decisions used, last interval", lines, 1)
}

fn class_style(class: &str) -> Style {
    match class {
        "declared" => Style::new().fg(Color::Green),
        "inferred" => Style::new().fg(Color::Cyan),
        "late" => Style::new().fg(Color::Red),
        _ => Style::new().dim(),
    }
}
