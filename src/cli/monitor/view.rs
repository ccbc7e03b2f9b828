//! The screen: a heading, panels of lines in one to three columns, and the keys.

use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Clear, Paragraph, Wrap};
use ratatui::Frame;

use super::app::App;
use super::source::Look;
use super::text::{clean, lasted};
use super::verdict::{verdict, Mood};
use super::{panels, tasks};

/// From so many columns on, two columns of panels, and three.
const TWO: u16 = 92;
const THREE: u16 = 168;

pub struct Panel {
    pub title: String,
    pub lines: Vec<Line<'static>>,
    /// Fewer lines than this say nothing.
    pub least: usize,
}

impl Panel {
    /// What does not fit is counted in the title.
    fn draw(self, frame: &mut Frame, area: Rect) {
        let room = usize::from(area.height.saturating_sub(1));
        let mut rule = Block::new()
            .borders(Borders::TOP)
            .border_style(Style::new().dim())
            .title(Span::from(format!(" {} ", self.title)).bold());
        if self.lines.len() > room {
            let hidden = format!(" {} more ↓ ", self.lines.len() - room);
            rule = rule.title(Line::from(hidden).right_aligned());
        }
        frame.render_widget(Paragraph::new(self.lines).block(rule), area);
    }
}

pub fn draw(frame: &mut Frame, app: &App) {
    let [header, body, footer] = Layout::vertical([
        Constraint::Length(2),
        Constraint::Min(0),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    frame.render_widget(keys(app), footer);
    match &app.look {
        None => frame.render_widget(Line::from("looking for a scheduler").dim(), header),
        Some(Err(trouble)) => {
            frame.render_widget(Line::from("scx_temponet").bold(), header);
            let text = Paragraph::new(format!("{trouble}\n\nTrying again."))
                .wrap(Wrap { trim: true })
                .block(Block::bordered().border_style(Style::new().dim()));
            frame.render_widget(text, body);
        }
        Some(Ok(look)) => {
            frame.render_widget(Paragraph::new(heading(app, look)), header);
            panels_in_columns(frame, body, app, look);
        }
    }
    if app.is_helping {
        help(frame, body);
    }
}

/// Beside the deadlines there is room for their history from here on.
const BESIDE: u16 = 140;
/// What the widest form of the deadlines needs.
const DEADLINES: u16 = 80;

fn panels_in_columns(frame: &mut Frame, body: Rect, app: &App, look: &Look) {
    let columns = match body.width {
        0..TWO => 1,
        TWO..THREE => 2,
        _ => 3,
    };
    let mut body = body;
    let mut top = Vec::new();
    if columns > 1 {
        let height = (panels::deadlines(look, body.width).lines.len() + 1) as u16;
        let [above, below] =
            Layout::vertical([Constraint::Length(height), Constraint::Fill(1)]).areas(body);
        body = below;
        top = match above.width >= BESIDE {
            true => Layout::horizontal([Constraint::Length(DEADLINES), Constraint::Fill(1)])
                .spacing(2)
                .split(above)
                .to_vec(),
            false => vec![above],
        };
    }
    let areas = Layout::horizontal(vec![Constraint::Fill(1); columns])
        .spacing(2)
        .split(body);
    let width = areas[0].width;
    let in_trouble = tasks::tasks(app, look, width);
    let cpus = panels::cpus(app, look, width);
    let agent = panels::agent(look);
    let sources = panels::sources(look, width);
    let events = panels::events(look);
    let ages = panels::ages(look, width);
    let mut first = match top.as_slice() {
        [] => vec![panels::deadlines(look, width), panels::history(app, width)],
        [only] => {
            draw_stack(frame, *only, vec![panels::deadlines(look, only.width)]);
            vec![panels::history(app, width)]
        }
        [left, right, ..] => {
            draw_stack(frame, *left, vec![panels::deadlines(look, left.width)]);
            draw_stack(frame, *right, vec![panels::history(app, right.width)]);
            Vec::new()
        }
    };
    let stacks: Vec<Vec<Panel>> = match columns {
        1 => vec![[in_trouble, cpus, agent, sources, events, ages].into()],
        2 => vec![
            [in_trouble, cpus].into(),
            [agent, sources, events, ages].into(),
        ],
        _ => vec![
            vec![cpus],
            [in_trouble, sources].into(),
            [agent, events, ages].into(),
        ],
    };
    for (area, stack) in areas.iter().zip(stacks) {
        first.extend(stack);
        draw_stack(frame, *area, std::mem::take(&mut first));
    }
}

/// One below the other. Each has its least while there is room, so what stands first is seen
/// first; what is left goes to those who have more to show, in the same order.
fn draw_stack(frame: &mut Frame, area: Rect, panels: Vec<Panel>) {
    let wishes: Vec<(usize, usize)> = panels
        .iter()
        .map(|panel| (panel.least.min(panel.lines.len()), panel.lines.len()))
        .collect();
    let heights = share(&wishes, usize::from(area.height));
    let mut top = area.top();
    for (panel, height) in panels.into_iter().zip(heights) {
        if height == 0 {
            continue;
        }
        let height = height as u16;
        let place = Rect {
            y: top,
            height,
            ..area
        };
        panel.draw(frame, place);
        top += height;
    }
}

/// Heights with their title lines, of panels that want (least, most) lines.
pub fn share(wishes: &[(usize, usize)], room: usize) -> Vec<usize> {
    let mut left = room;
    let mut heights = vec![0; wishes.len()];
    for (height, &(least, _)) in heights.iter_mut().zip(wishes) {
        // A title without a line below it says nothing.
        let wanted = (least + 1).max(2);
        if wanted <= left {
            *height = wanted;
            left -= wanted;
        }
    }
    for (height, &(_, most)) in heights.iter_mut().zip(wishes) {
        if *height > 0 {
            let more = (most + 1).saturating_sub(*height).min(left);
            *height += more;
            left -= more;
        }
    }
    heights
}

fn heading(app: &App, look: &Look) -> Vec<Line<'static>> {
    let agent = &look.recent.agent;
    let (sentence, mood) = verdict(&look.recent);
    let colour = match mood {
        Mood::Good => Style::new().fg(Color::Green),
        Mood::Calm => Style::new(),
        Mood::Poor => Style::new().fg(Color::Yellow),
    };
    let policy = match agent.policy.is_empty() {
        true => String::new(),
        false => format!("  {}", clean(&agent.policy, 16)),
    };
    let first = vec![
        Span::from("scx_temponet").bold(),
        Span::from(policy),
        Span::from("  "),
        Span::styled(sentence, colour),
    ];
    let mut second = vec![format!(
        "figures of {:.1} s",
        look.recent.interval_s.min(1e6)
    )];
    if let Some(total) = &look.total {
        second.push(format!("loaded for {}", lasted(total.interval_s)));
    }
    if !agent.backend.is_empty() {
        second.push(format!(
            "{} on {} {}",
            clean(&agent.model, 40),
            clean(&agent.backend, 12),
            clean(&agent.provider, 12)
        ));
    }
    let mut below = Vec::new();
    if app.is_paused {
        below.extend([Span::from("PAUSED").reversed(), Span::from("  ")]);
    }
    below.push(Span::from(second.join("  ·  ")).dim());
    vec![Line::from(first), Line::from(below)]
}

fn keys(app: &App) -> Line<'static> {
    if app.is_typing {
        return Line::from(format!(
            " filter: {}▏  Enter keeps it, Esc clears it",
            app.filter
        ));
    }
    let mut text = format!(
        " q quit  p {}  s sort: {}  / filter  ? help",
        if app.is_paused { "go on" } else { "pause" },
        app.sort.name()
    );
    if !app.filter.is_empty() {
        text += &format!("  only \"{}\" (Esc: all)", app.filter);
    }
    Line::from(text).dim()
}

const HELP: &[(&str, &str)] = &[
    ("q, Ctrl-C", "quit"),
    (
        "p, space",
        "pause; the next figures are of the whole time since",
    ),
    ("s", "sort tasks: misses, lateness, slack, name"),
    ("/", "show only tasks whose names have what you type"),
    ("Esc", "close this, then take the filter back, then quit"),
    ("", ""),
    ("/s, %", "of the last interval; \"since load\" is a total"),
    ("load", "share of the time that tasks of this scheduler ran"),
    ("slack", "how long a job can still wait and be on time"),
    ("left", "work that the job still has, as estimated"),
    ("!1 to !3", "criticality of the task"),
    ("given up", "not all can be on time, and this one will not"),
];

fn help(frame: &mut Frame, body: Rect) {
    let lines: Vec<Line> = HELP
        .iter()
        .map(|(key, meaning)| {
            Line::from(vec![
                Span::from(format!(" {key:<10} ")).bold(),
                Span::from(*meaning),
            ])
        })
        .collect();
    let [across] = Layout::horizontal([Constraint::Max(68)])
        .flex(ratatui::layout::Flex::Center)
        .areas(body);
    let [area] = Layout::vertical([Constraint::Max(lines.len() as u16 + 2)])
        .flex(ratatui::layout::Flex::Center)
        .areas(across);
    frame.render_widget(Clear, area);
    let block = Block::bordered().title(" help ");
    frame.render_widget(Paragraph::new(lines).block(block), area);
}
