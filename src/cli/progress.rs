//! Bars on a terminal, for what takes long enough to see; nothing elsewhere.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// Runs that take about as long as each other.
pub fn runs(count: u64) -> ProgressBar {
    let bar = bar(count, "{wide_bar} {pos}/{len} runs, {eta} left");
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// So many units of work, of which nobody needs to know the size.
pub fn work(units: u64) -> ProgressBar {
    let bar = bar(units, "{msg} {wide_bar} {percent} %, {eta} left");
    bar.enable_steady_tick(Duration::from_millis(500));
    bar
}

/// Measurements that a bar must not disturb: it is drawn between them only.
pub fn measurements(count: u64) -> ProgressBar {
    bar(
        count,
        "{msg} {wide_bar} {pos}/{len} measurements, {eta} left",
    )
}

fn bar(length: u64, template: &str) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(length);
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar
}
