//! Lines of the text formats of Prometheus and OpenMetrics, which differ in little.

use std::fmt::Write;

use crate::agent::gauges::BUCKETS;

/// Before every name.
const PREFIX: &str = "scx_temponet_";

/// The last finite bucket of a histogram: two seconds. All longer times are one more.
const LAST_BUCKET: usize = 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Version 0.0.4: node_exporter's textfile collector, promtool.
    Prometheus,
    /// Version 1.0.0.
    OpenMetrics,
}

impl Dialect {
    /// By which the stats socket serves it.
    pub fn target(self) -> &'static str {
        match self {
            Dialect::Prometheus => "prometheus",
            Dialect::OpenMetrics => "openmetrics",
        }
    }

    /// As in a header of HTTP.
    pub fn content_type(self) -> &'static str {
        match self {
            Dialect::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Dialect::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Counter,
    Gauge,
    Histogram,
    /// Always 1: what counts are the labels.
    Info,
}

pub(super) struct Page {
    dialect: Dialect,
    text: String,
}

/// A metric of one name; its samples differ in their labels.
pub(super) struct Family<'a> {
    page: &'a mut Page,
    sample: String,
}

impl Page {
    pub fn new(dialect: Dialect) -> Page {
        Page {
            dialect,
            text: String::with_capacity(24 << 10),
        }
    }

    /// `name` is without the ending that its kind asks for.
    pub fn family(&mut self, kind: Kind, name: &str, help: &str) -> Family<'_> {
        let suffix = match kind {
            Kind::Counter => "_total",
            Kind::Info => "_info",
            Kind::Gauge | Kind::Histogram => "",
        };
        let family = format!("{PREFIX}{name}");
        let sample = format!("{family}{suffix}");
        let (described, kind_name) = match (self.dialect, kind) {
            (Dialect::OpenMetrics, Kind::Info) => (&family, "info"),
            (Dialect::Prometheus, Kind::Info) => (&sample, "gauge"),
            (Dialect::OpenMetrics, Kind::Counter) => (&family, "counter"),
            (Dialect::Prometheus, Kind::Counter) => (&sample, "counter"),
            (_, Kind::Gauge) => (&family, "gauge"),
            (_, Kind::Histogram) => (&family, "histogram"),
        };
        self.line(format_args!("# TYPE {described} {kind_name}"));
        if self.dialect == Dialect::OpenMetrics && name.ends_with("_seconds") {
            self.line(format_args!("# UNIT {described} seconds"));
        }
        self.line(format_args!("# HELP {described} {}", escaped(help)));
        Family { page: self, sample }
    }

    pub fn finish(mut self) -> String {
        if self.dialect == Dialect::OpenMetrics {
            self.text += "# EOF\n";
        }
        self.text
    }

    fn line(&mut self, line: std::fmt::Arguments) {
        // Writing to a string does not fail.
        let _ = writeln!(self.text, "{line}");
    }
}

impl Family<'_> {
    pub fn plain(&mut self, value: f64) {
        self.labels(&[], value);
    }

    pub fn label(&mut self, name: &str, value: &str, figure: f64) {
        self.labels(&[(name, value)], figure);
    }

    pub fn labels(&mut self, labels: &[(&str, &str)], figure: f64) {
        let labels: Vec<String> = labels
            .iter()
            .map(|(name, value)| format!("{name}=\"{}\"", escaped(value)))
            .collect();
        let labels = match labels.is_empty() {
            true => String::new(),
            false => format!("{{{}}}", labels.join(",")),
        };
        self.page
            .line(format_args!("{}{labels} {figure}", self.sample));
    }

    /// Counts by power of two of a microsecond. Nobody keeps the sum of the times.
    pub fn histogram(&mut self, counts: &[u64; BUCKETS]) {
        let all: u64 = counts.iter().sum();
        let mut below = 0;
        for (bucket, count) in counts.iter().enumerate().take(LAST_BUCKET + 1) {
            below += count;
            let edge = (2u64 << bucket) as f64 / 1e6;
            self.page.line(format_args!(
                "{}_bucket{{le=\"{edge}\"}} {below}",
                self.sample
            ));
        }
        self.page
            .line(format_args!("{}_bucket{{le=\"+Inf\"}} {all}", self.sample));
        self.page.line(format_args!("{}_count {all}", self.sample));
    }
}

/// Any program may call its threads what it likes.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\\' => escaped += "\\\\",
            '"' => escaped += "\\\"",
            letter if letter.is_control() => escaped.push('?'),
            letter => escaped.push(letter),
        }
    }
    escaped
}
