//! One self-contained page: figures, distributions and a schedule to zoom into.
//!
//! Script and style are embedded and nothing is ever requested: the page's own
//! policy forbids it, and `scripts/check-report.sh` looks in a real browser.

use serde::Serialize;

const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const CHARTS: &str = include_str!("charts.js");
const GANTT: &str = include_str!("gantt.js");
const SCRIPT: &str = include_str!("page.js");

/// Shares are in 0..=1, times in milliseconds.
#[derive(Clone, Debug, Serialize)]
pub struct Page {
    pub title: String,
    /// What was run, as names and values.
    pub facts: Vec<(String, String)>,
    pub notes: Vec<String>,
    pub tasks: Vec<PageTask>,
    pub schedulers: Vec<PageScheduler>,
    pub stretch: Option<Stretch>,
}

#[derive(Clone, Debug, Serialize)]
pub struct PageTask {
    pub name: String,
    pub critical: bool,
}

#[derive(Clone, Debug, Serialize)]
pub struct PageScheduler {
    pub name: String,
    /// "simulated" or where else the figures come from.
    pub source: String,
    pub total: PageFigures,
    pub tasks: Vec<PageFigures>,
}

#[derive(Clone, Debug, Serialize)]
pub struct PageFigures {
    pub jobs: u64,
    pub met: u64,
    /// Aborted, or not done at the end: response times are lower bounds then.
    pub unfinished: u64,
    pub pitmd: Option<f64>,
    pub art: Option<f64>,
    /// Quantiles, evenly spaced from the least to the greatest; empty without jobs.
    pub response: Vec<f64>,
    pub lateness: Vec<f64>,
    /// rt-app's slack: mean and least.
    pub slack: Option<(f64, f64)>,
}

/// A part of the schedule, under every scheduler that was simulated.
#[derive(Clone, Debug, Serialize)]
pub struct Stretch {
    pub why: String,
    pub start: f64,
    pub end: f64,
    pub cores: usize,
    pub runs: Vec<StretchRun>,
    /// The run to show first.
    pub first: usize,
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
        let parts = [
            ("{{title}}", title.as_str()),
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
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// Evenly spaced quantiles of sorted values; fewer values than that stay themselves.
pub fn quantiles(sorted: &[f64]) -> Vec<f64> {
    const STEPS: usize = 50;
    let rounded = |value: f64| (value * 1e4).round() / 1e4;
    let last = sorted.len().saturating_sub(1);
    if last <= STEPS {
        return sorted.iter().map(|&value| rounded(value)).collect();
    }
    let at = |step: usize| sorted[(step * last + STEPS / 2) / STEPS];
    (0..=STEPS).map(|step| rounded(at(step))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_a_file_calls_its_threads_stays_data() {
        let name = "</script><script>alert('{{script}}')";
        let page = Page {
            title: name.into(),
            facts: Vec::new(),
            notes: vec![name.into()],
            tasks: Vec::new(),
            schedulers: Vec::new(),
            stretch: None,
        };
        let text = page.render().unwrap();
        assert!(!text.contains("<script>alert"));
        assert_eq!(text.matches("alert('{{script}}')").count(), 4);
        assert!(!text.contains("{{data}}"));
    }

    #[test]
    fn quantiles_run_from_the_least_to_the_greatest() {
        let values: Vec<f64> = (0..1000).map(f64::from).collect();
        let q = quantiles(&values);
        assert_eq!((q.len(), q[0], q[25], q[50]), (51, 0.0, 500.0, 999.0));
        assert_eq!(quantiles(&[1.0, 2.0]), [1.0, 2.0]);
        assert!(quantiles(&[]).is_empty());
    }
}
