//! One self-contained page: figures, distributions and a schedule to zoom into.
//!
//! Script and style are embedded and nothing is ever requested: the page's own
//! policy forbids it, and `scripts/check-report.sh` looks in a real browser.

use serde::Serialize;

use super::table::Table;

const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const CHARTS: &str = include_str!("charts.js");
const GANTT: &str = include_str!("gantt.js");
const SCRIPT: &str = include_str!("page.js");

/// Times are in milliseconds.
#[derive(Clone, Debug, Serialize)]
pub struct Page {
    pub title: String,
    /// What it all comes to, in a sentence, and what follows it: titles and sentences. It
    /// is part of the page itself, for readers without scripts.
    #[serde(skip)]
    pub headline: String,
    #[serde(skip)]
    pub verdict: Vec<(String, Vec<String>)>,
    /// What was run, as names and values.
    pub facts: Vec<(String, String)>,
    pub notes: Vec<String>,
    pub schedulers: PageTable,
    /// Rows of that table to be marked.
    pub best: Vec<usize>,
    pub tasks: PageTable,
    /// Of the tasks.
    pub names: Vec<String>,
    pub runs: Vec<PageRun>,
    pub stretch: Option<Stretch>,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct PageTable {
    #[serde(flatten)]
    pub table: Table,
    /// Columns that are shares, in percent.
    pub shares: Vec<usize>,
}

/// The curves of one scheduler.
#[derive(Clone, Debug, Serialize)]
pub struct PageRun {
    pub name: String,
    pub all: PageCurves,
    pub tasks: Vec<PageCurves>,
}

/// Quantiles from the least to the greatest, as shares and values; empty without jobs.
#[derive(Clone, Debug, Serialize)]
pub struct PageCurves {
    pub response: Vec<(f64, f64)>,
    pub lateness: Vec<(f64, f64)>,
}

/// A part of the schedule, under every scheduler that was simulated.
#[derive(Clone, Debug, Serialize)]
pub struct Stretch {
    pub why: String,
    pub start: f64,
    pub end: f64,
    pub cores: usize,
    pub runs: Vec<StretchRun>,
    /// The runs to show first, side by side.
    pub shown: Vec<usize>,
}

#[derive(Clone, Debug, Serialize)]
pub struct StretchRun {
    pub scheduler: String,
    /// Core, task, job, start, end.
    pub segments: Vec<(u32, u32, u32, f64, f64)>,
    /// Task, job, release, deadline, finish if any, whether it was met.
    pub jobs: Vec<(u32, u32, f64, f64, Option<f64>, bool)>,
    /// More happened than is shown.
    pub cut: bool,
}

impl Page {
    pub fn render(&self) -> serde_json::Result<String> {
        // Data inside a script element ends at the first "</", whoever wrote it.
        let data = serde_json::to_string(self)?.replace('<', "\\u003c");
        let title = escaped(&self.title);
        let verdict = self.spoken();
        let parts = [
            ("{{title}}", title.as_str()),
            ("{{verdict}}", verdict.as_str()),
            ("{{style}}", STYLE),
            ("{{charts}}", CHARTS),
            ("{{gantt}}", GANTT),
            ("{{script}}", SCRIPT),
            ("{{data}}", data.as_str()),
        ];
        // In one pass, so that data which looks like a placeholder stays data.
        let mut rest = PAGE;
        let mut page = String::with_capacity(PAGE.len() + data.len() + 32_768);
        while let Some((at, (mark, part))) = parts
            .iter()
            .filter_map(|part| Some((rest.find(part.0)?, part)))
            .min_by_key(|found| found.0)
        {
            page.push_str(&rest[..at]);
            page.push_str(part);
            rest = &rest[at + mark.len()..];
        }
        page.push_str(rest);
        Ok(page)
    }

    fn spoken(&self) -> String {
        let mut text = format!("<p id=\"headline\">{}</p>\n<dl>", escaped(&self.headline));
        for (title, lines) in &self.verdict {
            text += &format!("<dt>{}</dt>", escaped(title));
            for line in lines {
                text += &format!("<dd>{}</dd>", escaped(line));
            }
        }
        text + "</dl>"
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// Quantiles of sorted values as shares and values, evenly spaced, and three more for the
/// tail; fewer values than that stay themselves.
pub fn quantiles(sorted: &[f64]) -> Vec<(f64, f64)> {
    const STEPS: usize = 50;
    const TAIL: [f64; 3] = [0.99, 0.995, 0.999];
    let rounded = |value: f64| (value * 1e4).round() / 1e4;
    let last = sorted.len().saturating_sub(1);
    if last <= STEPS {
        let share = |i: usize| rounded(i as f64 / last.max(1) as f64);
        let values = sorted.iter().enumerate();
        return values
            .map(|(i, &value)| (share(i), rounded(value)))
            .collect();
    }
    let even = (0..=STEPS).map(|step| step as f64 / STEPS as f64);
    let mut shares: Vec<f64> = even.chain(TAIL).collect();
    shares.sort_by(f64::total_cmp);
    let at = |share: f64| sorted[(share * last as f64).round() as usize];
    shares
        .into_iter()
        .map(|share| (share, rounded(at(share))))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_a_file_calls_its_threads_stays_data() {
        let name = "</script><script>alert('{{script}}')";
        let page = Page {
            title: name.into(),
            headline: name.into(),
            verdict: vec![(name.into(), vec![name.into()])],
            facts: Vec::new(),
            notes: vec![name.into()],
            schedulers: PageTable::default(),
            best: Vec::new(),
            tasks: PageTable::default(),
            names: Vec::new(),
            runs: Vec::new(),
            stretch: None,
        };
        let text = page.render().unwrap();
        assert!(!text.contains("<script>alert"));
        assert_eq!(text.matches("alert('{{script}}')").count(), 7);
        assert!(!text.contains("{{data}}"));
    }

    #[test]
    fn quantiles_run_from_the_least_to_the_greatest() {
        let values: Vec<f64> = (0..1000).map(f64::from).collect();
        let q = quantiles(&values);
        assert_eq!((q.len(), q[0], q[25]), (54, (0.0, 0.0), (0.5, 500.0)));
        assert_eq!(
            q[50..],
            [(0.99, 989.0), (0.995, 994.0), (0.999, 998.0), (1.0, 999.0)]
        );
        assert_eq!(
            quantiles(&[1.0, 2.0, 4.0]),
            [(0.0, 1.0), (0.5, 2.0), (1.0, 4.0)]
        );
        assert!(quantiles(&[]).is_empty());
    }
}
