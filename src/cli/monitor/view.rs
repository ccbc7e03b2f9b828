//! The screen: panels of lines, in two columns where there is room.

use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph, Wrap};
use ratatui::Frame;

use super::scene::{Bucket, Class, Endangered, Lane, Percentiles, Scene};
use super::text::{bar, clean, count, duration, percent, rate};

/// From here on two columns read better than one.
const WIDE: u16 = 76;
/// A task with less slack than this may be late because of one other job.
const TIGHT_US: f64 = 5_000.0;

struct Panel {
    title: &'static str,
    lines: Vec<Line<'static>>,
}

impl Panel {
    fn new(title: &'static str, lines: Vec<Line<'static>>) -> Self {
        Self { title, lines }
    }

    /// With its border.
    fn height(&self) -> u16 {
        u16::try_from(self.lines.len()).map_or(u16::MAX, |n| n.saturating_add(2))
    }

    fn draw(self, frame: &mut Frame, area: Rect) {
        let block = Block::bordered()
            .border_style(Style::new().dim())
            .title(Span::from(format!(" {} ", self.title)).bold());
        frame.render_widget(Paragraph::new(self.lines).block(block), area);
    }
}

pub fn draw(frame: &mut Frame, scene: &Scene) {
    let [header, body, footer] = Layout::vertical([
        Constraint::Length(2),
        Constraint::Min(0),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    frame.render_widget(Paragraph::new(heading(scene)), header);
    frame.render_widget(Line::from(" q quits").dim(), footer);
    if let Some(trouble) = &scene.trouble {
        let text = Paragraph::new(format!("{trouble}\n\nTrying again."))
            .wrap(Wrap { trim: true })
            .block(Block::bordered().border_style(Style::new().dim()));
        frame.render_widget(text, body);
        return;
    }
    if body.width >= WIDE {
        let [left, right] =
            Layout::horizontal([Constraint::Percentage(54), Constraint::Percentage(46)])
                .areas(body);
        let state = Panel::new("state", state(scene));
        stack(
            frame,
            left,
            vec![
                classes(scene, left),
                lanes(scene, left),
                endangered(scene, left),
            ],
        );
        stack(
            frame,
            right,
            vec![
                sources(scene, right),
                timing(scene),
                state,
                ages(scene, right),
            ],
        );
    } else {
        let state = Panel::new("state", state(scene));
        stack(
            frame,
            body,
            vec![
                classes(scene, body),
                lanes(scene, body),
                timing(scene),
                endangered(scene, body),
                sources(scene, body),
                state,
                ages(scene, body),
            ],
        );
    }
}

/// One below the other: each as high as it would like while there is room, so
/// what matters most comes first.
fn stack(frame: &mut Frame, area: Rect, panels: Vec<Panel>) {
    let mut top = area.top();
    for panel in panels {
        let height = panel.height().min(area.bottom().saturating_sub(top));
        // A border without a line in it says nothing.
        if height < 3 {
            return;
        }
        panel.draw(
            frame,
            Rect {
                y: top,
                height,
                ..area
            },
        );
        top += height;
    }
}

fn heading(scene: &Scene) -> Vec<Line<'static>> {
    let agent = &scene.agent;
    let mut first = vec![Span::from("scx_temponet").bold()];
    let mut second = Vec::new();
    let pair = |spans: &mut Vec<Span<'static>>, name: &'static str, value: String| {
        spans.push(Span::from(format!("  {name} ")).dim());
        spans.push(Span::from(value));
    };
    if let Some(policy) = &agent.policy {
        pair(&mut first, "policy", policy.clone());
    }
    if agent.idle {
        first.push(Span::from("  agent idle: nothing competes").dim());
    } else if let Some(level) = &agent.level {
        first.push(Span::from("  decides ").dim());
        let lively = level == "agent";
        let colour = if lively { Color::Green } else { Color::Yellow };
        first.push(Span::styled(level.clone(), Style::new().fg(colour)));
    }
    let runs_on: Vec<String> = [&agent.backend, &agent.provider]
        .into_iter()
        .flatten()
        .cloned()
        .collect();
    if !runs_on.is_empty() {
        pair(&mut second, "runs on", runs_on.join(" "));
    }
    if let Some(model) = &agent.model {
        pair(&mut second, "model", model.clone());
    }
    vec![Line::from(first), Line::from(second)]
}

fn classes(scene: &Scene, area: Rect) -> Panel {
    let wide = area.width >= 58;
    let mut titles = format!("{:<11}{:>8}{:>8}{:>8}", "class", "met", "missed", "%");
    if wide {
        titles += &format!("{:>10}{:>10}", "response", "max wait");
    }
    let mut lines = vec![Line::from(titles).dim()];
    lines.extend(scene.classes.iter().map(|class| class_line(class, wide)));
    if scene.classes.is_empty() {
        lines.push(Line::from("no figures").dim());
    }
    Panel::new("deadlines", lines)
}

fn class_line(class: &Class, wide: bool) -> Line<'static> {
    let jobs = |n: Option<u64>| n.map_or("-".into(), count);
    let met = class.met.zip(class.missed).and_then(|(met, missed)| {
        let all = met.checked_add(missed)?;
        (all > 0).then(|| met as f64 / all as f64)
    });
    let share = met.map_or("-".into(), |share| format!("{:.1}", 100.0 * share));
    let mut text = format!(
        "{:<11}{:>8}{:>8}{:>8}",
        clean(&class.name, 10),
        jobs(class.met),
        jobs(class.missed),
        share
    );
    if wide {
        text += &format!(
            "{:>10}{:>10}",
            duration(class.response_us),
            duration(class.wait_max_us)
        );
    }
    let style = match class.missed {
        Some(missed) if missed > 0 => Style::new().fg(Color::Red),
        _ => Style::new(),
    };
    Line::styled(text, style)
}

fn lanes(scene: &Scene, area: Rect) -> Panel {
    let lines = scene
        .lanes
        .iter()
        .map(|lane| lane_line(lane, area))
        .collect();
    Panel::new("CPUs", or_none(lines, "not reported"))
}

fn lane_line(lane: &Lane, area: Rect) -> Line<'static> {
    let Some(task) = &lane.task else {
        return Line::from(format!("{:>3} idle", lane.cpu)).dim();
    };
    let name = if area.width >= 50 { 24 } else { 16 };
    let class = lane.class.as_deref();
    Line::from(vec![
        Span::from(format!("{:>3} ", lane.cpu)).dim(),
        Span::from(format!("{:<name$} ", clean(task, name))),
        Span::styled(
            format!("{:<10} ", clean(class.unwrap_or("-"), 10)),
            class_style(class),
        ),
    ])
}

fn endangered(scene: &Scene, area: Rect) -> Panel {
    // Three times beside the name.
    let name = usize::from(area.width.saturating_sub(2 + 27)).clamp(12, 24);
    let mut lines = Vec::new();
    if !scene.endangered.is_empty() {
        let titles = format!(
            "{:<name$}{:>9}{:>9}{:>9}",
            "task", "slack", "left", "due in"
        );
        lines.push(Line::from(titles).dim());
        lines.extend(scene.endangered.iter().map(|t| endangered_line(t, name)));
    }
    Panel::new("most endangered", or_none(lines, "nobody"))
}

fn endangered_line(task: &Endangered, name: usize) -> Line<'static> {
    let critical = match task.criticality {
        level @ 1.. => format!("!{} ", count(level)),
        0 => String::new(),
    };
    let text = format!(
        "{:<name$}{:>9}{:>9}{:>9}",
        clean(&format!("{critical}{}", task.task), name),
        duration(Some(task.slack_us)),
        duration(Some(task.remaining_us)),
        duration(Some(task.deadline_us))
    );
    Line::styled(text, slack_style(task.slack_us))
}

fn sources(scene: &Scene, area: Rect) -> Panel {
    let all = scene.dispatches();
    let width = usize::from(area.width.saturating_sub(34)).min(30);
    let lines = scene
        .sources
        .iter()
        .map(|(name, n)| {
            let share = *n as f64 / all.max(1) as f64;
            Line::from(format!(
                "{name:<15}{:>7}{:>8} {}",
                count(*n),
                percent(share),
                bar(share, width)
            ))
        })
        .collect();
    Panel::new("dispatches by source", or_none(lines, "not reported"))
}

fn timing(scene: &Scene) -> Panel {
    let agent = &scene.agent;
    let mut lines = Vec::new();
    if let Some(per_s) = agent.decisions_per_s {
        lines.push(Line::from(format!(
            "{:<13}{:>7}/s",
            "decisions",
            rate(per_s)
        )));
    }
    if let Some(share) = agent.cpu_share {
        let budget = agent
            .budget
            .map_or(String::new(), |budget| format!(" of {}", percent(budget)));
        lines.push(Line::from(format!(
            "{:<13}{:>9}{budget}",
            "CPU",
            percent(share)
        )));
    }
    let times = [
        ("inference", agent.inference_us),
        ("latency", agent.latency_us),
        ("decision age", agent.age_us),
    ];
    let known = |(_, times): &(&str, Percentiles)| *times != Percentiles::default();
    if times.iter().any(known) {
        lines.push(Line::from(format!("{:<13}{:>9}{:>9}", "", "median", "p99")).dim());
    }
    lines.extend(times.into_iter().filter(known).map(|(name, times)| {
        Line::from(format!(
            "{name:<13}{:>9}{:>9}",
            duration(times.p50),
            duration(times.p99)
        ))
    }));
    Panel::new("agent", or_none(lines, "no agent decides"))
}

fn ages(scene: &Scene, area: Rect) -> Panel {
    let buckets = trimmed(&scene.agent.ages);
    let most = buckets.iter().map(|b| b.count).max().unwrap_or(0).max(1);
    let width = usize::from(area.width.saturating_sub(22)).min(40);
    let lines = buckets
        .iter()
        .map(|bucket| {
            let bound = format!("≤ {}", duration(Some(bucket.le_us)));
            Line::from(format!(
                "{bound:>10} {} {}",
                bar(bucket.count as f64 / most as f64, width),
                count(bucket.count)
            ))
        })
        .collect();
    Panel::new("age of decisions used", or_none(lines, "none used"))
}

/// Without the empty ones at both ends.
fn trimmed(buckets: &[Bucket]) -> &[Bucket] {
    let used = |bucket: &Bucket| bucket.count > 0;
    let Some(first) = buckets.iter().position(used) else {
        return &[];
    };
    let last = buckets.iter().rposition(used).unwrap_or(first);
    &buckets[first..=last]
}

fn state(scene: &Scene) -> Vec<Line<'static>> {
    let agent = &scene.agent;
    let words = |pairs: &[(String, String)]| {
        let each: Vec<_> = pairs
            .iter()
            .map(|(name, value)| format!("{name} {value}").trim().to_string())
            .collect();
        each.join(", ")
    };
    let counts = |pairs: &[(String, u64)]| {
        let seen: Vec<_> = pairs
            .iter()
            .filter(|(_, n)| *n > 0)
            .map(|(name, n)| format!("{name} {}", count(*n)))
            .collect();
        if seen.is_empty() {
            "none".into()
        } else {
            seen.join(", ")
        }
    };
    let mut lines = Vec::new();
    let mut add = |name: &str, text: String, style: Style| {
        lines.push(Line::from(vec![
            Span::from(format!("{name:<12}")).dim(),
            Span::styled(text, style),
        ]));
    };
    if !agent.shield.is_empty() {
        add("shield", words(&agent.shield), Style::new());
    }
    if !agent.faults.is_empty() {
        let wrong = agent.faults.iter().any(|(_, n)| *n > 0);
        let style = if wrong {
            Style::new().fg(Color::Yellow)
        } else {
            Style::new()
        };
        add("faults", counts(&agent.faults), style);
    }
    if !agent.transitions.is_empty() {
        add(
            "fell back",
            counts(&agent.transitions),
            Style::new().fg(Color::Yellow),
        );
    }
    if !scene.events.is_empty() {
        add("events", counts(&scene.events), Style::new());
    }
    or_none(lines, "not reported")
}

fn or_none(lines: Vec<Line<'static>>, none: &'static str) -> Vec<Line<'static>> {
    if lines.is_empty() {
        return vec![Line::from(none).dim()];
    }
    lines
}

fn slack_style(us: f64) -> Style {
    if us < 0.0 {
        Style::new().fg(Color::Red).add_modifier(Modifier::BOLD)
    } else if us < TIGHT_US {
        Style::new().fg(Color::Yellow)
    } else {
        Style::new()
    }
}

fn class_style(class: Option<&str>) -> Style {
    match class {
        Some("declared") => Style::new().fg(Color::Green),
        Some("inferred") => Style::new().fg(Color::Cyan),
        Some("late") => Style::new().fg(Color::Red),
        _ => Style::new().dim(),
    }
}
