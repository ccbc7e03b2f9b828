use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant, SystemTime};

use super::super::{counters, ClassMetrics, Metrics, OffenderMetrics, Snapshot};
use super::Dialect;
use crate::agent::agent_stats::{AgentTotals, CpuMetrics};
use crate::agent::bpf::types::{temponet_class_stats, temponet_cpu_stats};
use crate::intf;

/// A scheduler that has counted 3 of everything on each of two CPUs, with an agent.
fn snapshot() -> Snapshot {
    let mut totals = temponet_cpu_stats::default();
    counters::words(&mut totals).fill(3);
    let mut agent = AgentTotals::default();
    agent.now.policy = "temponet".into();
    agent.now.level = "agent".into();
    agent.now.model = "temponet".into();
    agent.now.backend = "native".into();
    agent.now.decisions = 17;
    agent.inference = [2; crate::agent::gauges::BUCKETS];
    let offender = |missed: u64, class: &str| OffenderMetrics {
        missed,
        class: class.into(),
        ..OffenderMetrics::default()
    };
    Snapshot {
        totals,
        ran_ns: vec![1_500_000_000, 7],
        cpus: [(0, CpuMetrics::default()), (1, CpuMetrics::default())].into(),
        offenders: [
            ("audio[7]".into(), offender(3, "declared")),
            ("audio[8]".into(), offender(4, "declared")),
            ("\"evil\\\n{}[9]".into(), offender(1, "inferred")),
        ]
        .into(),
        agent,
        ..Snapshot::empty(Instant::now())
    }
}

fn page(snapshot: &Snapshot, dialect: Dialect) -> String {
    let loaded_at = SystemTime::UNIX_EPOCH + Duration::from_millis(1_800_000_000_500);
    snapshot.openmetrics(dialect, loaded_at)
}

/// The samples of a page by name and labels, read as strictly as its format is defined.
fn samples(text: &str, dialect: Dialect) -> BTreeMap<String, f64> {
    let mut samples = BTreeMap::new();
    let mut families = BTreeSet::new();
    let mut family: Option<(String, String)> = None;
    let mut lines: Vec<&str> = text.lines().collect();
    assert!(text.ends_with('\n') && !text.contains("\n\n") && !text.contains('\r'));
    if dialect == Dialect::OpenMetrics {
        assert_eq!(lines.pop(), Some("# EOF"));
    }
    let (mut described, mut has_samples) = (true, true);
    for line in lines {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            assert!(described, "no HELP before {line}");
            let (name, kind) = rest.split_once(' ').unwrap();
            assert_name(name);
            assert!(families.insert(name.to_owned()), "twice: {line}");
            family = Some((name.into(), kind.into()));
            (described, has_samples) = (false, false);
        } else if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').unwrap();
            assert_eq!(Some(name), family.as_ref().map(|(name, _)| name.as_str()));
            assert!(help.ends_with('.') && help.len() > 5, "{line}");
            described = true;
        } else if let Some(rest) = line.strip_prefix("# UNIT ") {
            let (name, unit) = rest.split_once(' ').unwrap();
            assert_eq!(dialect, Dialect::OpenMetrics);
            assert!(name.ends_with(&format!("_{unit}")), "{line}");
        } else {
            assert!(!line.starts_with('#'), "{line}");
            let (series, value) = line.rsplit_once(' ').unwrap();
            let value: f64 = value.parse().unwrap_or_else(|_| panic!("{line}"));
            assert!(value >= 0.0 && value.is_finite(), "{line}");
            let name = series.split_once('{').map_or(series, |(name, labels)| {
                assert_labels(labels.strip_suffix('}').unwrap());
                name
            });
            let (described_name, kind) = family.as_ref().expect("a family first");
            assert_belongs(name, described_name, kind, dialect);
            let before = samples.insert(series.to_owned(), value);
            assert!(before.is_none(), "twice: {series}");
            has_samples = true;
        }
    }
    assert!(described && has_samples);
    samples
}

fn assert_name(name: &str) {
    assert!(name.starts_with("scx_temponet_"), "{name}");
    assert!(
        name.chars().all(|c| c.is_ascii_lowercase() || c == '_'),
        "{name}"
    );
    // As promtool has it: base units, no abbreviations, no types.
    for part in name.split('_') {
        let avoided = [
            "ms",
            "us",
            "ns",
            "s",
            "sec",
            "m",
            "h",
            "d",
            "b",
            "kb",
            "mb",
            "milliseconds",
            "microseconds",
            "gauge",
            "counter",
            "histogram",
            "summary",
            "percent",
        ];
        assert!(!avoided.contains(&part), "{name}");
    }
}

fn assert_belongs(sample: &str, family: &str, kind: &str, dialect: Dialect) {
    let ending = sample.strip_prefix(family);
    let ending = ending.unwrap_or_else(|| panic!("{sample} among {family}"));
    let counts = sample.ends_with("_total");
    match (kind, dialect) {
        ("counter", Dialect::Prometheus) => assert!(ending.is_empty() && counts, "{sample}"),
        ("counter", Dialect::OpenMetrics) => assert_eq!(ending, "_total", "{sample}"),
        ("info", Dialect::OpenMetrics) => assert_eq!(ending, "_info", "{sample}"),
        ("gauge", _) => assert!(ending.is_empty() && !counts, "{sample}"),
        ("histogram", _) => assert!(["_bucket", "_count"].contains(&ending), "{sample}"),
        _ => panic!("{sample} is a {kind}"),
    }
}

fn assert_labels(labels: &str) {
    let mut rest = labels;
    let mut names = BTreeSet::new();
    while !rest.is_empty() {
        let (name, value) = rest.split_once("=\"").unwrap_or_else(|| panic!("{labels}"));
        assert!(name.chars().all(|c| c.is_ascii_lowercase()), "{labels}");
        assert!(names.insert(name), "{labels}");
        let mut escaped = false;
        let end = value.find(|c| {
            let ends = c == '"' && !escaped;
            escaped = c == '\\' && !escaped;
            assert!(c != '\n');
            ends
        });
        let after = &value[end.unwrap_or_else(|| panic!("{labels}")) + 1..];
        rest = after.strip_prefix(',').unwrap_or(after);
        assert!(after.is_empty() || after.starts_with(','), "{labels}");
    }
}

#[test]
fn both_formats_are_what_their_definitions_ask_for_and_say_the_same() {
    let snapshot = snapshot();
    let read = |dialect| samples(&page(&snapshot, dialect), dialect);
    let (prometheus, openmetrics) = (read(Dialect::Prometheus), read(Dialect::OpenMetrics));
    assert_eq!(prometheus, openmetrics);
    let value = |series: &str| prometheus[&format!("scx_temponet_{series}")];
    assert_eq!(value("load_time_seconds"), 1_800_000_000.5);
    assert_eq!(value("deciding{level=\"agent\"}"), 1.0);
    assert_eq!(value("deciding{level=\"edf\"}"), 0.0);
    assert_eq!(value("cpu_run_seconds_total{cpu=\"0\"}"), 1.5);
    assert_eq!(value("run_seconds_total{class=\"late\"}"), 3e-9);
    assert_eq!(value("agent_decisions_total"), 17.0);
    assert_eq!(
        value("agent_inference_seconds_bucket{le=\"0.000002\"}"),
        2.0
    );
    assert_eq!(
        value("agent_inference_seconds_bucket{le=\"0.000004\"}"),
        4.0
    );
    assert_eq!(value("agent_inference_seconds_bucket{le=\"+Inf\"}"), 64.0);
    assert_eq!(value("agent_inference_seconds_count"), 64.0);
}

#[test]
fn met_and_missed_are_those_of_the_stats_to_the_job() {
    let mut earlier = snapshot();
    let declared = &mut earlier.totals.class[super::CLASSES[0].1];
    (declared.met, declared.missed) = ((1 << 53) - 1, 12_345_678_901);
    let mut later = earlier.clone();
    let declared = &mut later.totals.class[super::CLASSES[0].1];
    declared.met -= 1_000_000;
    declared.missed += 7;
    let nothing = Snapshot::empty(Instant::now());
    for snapshot in [&earlier, &later] {
        let stats: Metrics = snapshot.since(&nothing);
        let samples = samples(&page(snapshot, Dialect::Prometheus), Dialect::Prometheus);
        for class in ["declared", "inferred"] {
            let ClassMetrics {
                met,
                missed,
                released,
                ..
            } = stats.classes[class];
            for (name, jobs) in [
                ("deadlines_met", met),
                ("deadlines_missed", missed),
                ("jobs_released", released),
            ] {
                let series = format!("scx_temponet_{name}_total{{class=\"{class}\"}}");
                assert_eq!(samples[&series] as u64, jobs, "{series}");
            }
        }
    }
}

/// Words of the counters that have no meaning: jobs of tiers whose tasks have none, and the room
/// behind the reasons for ended slices.
fn meaningless() -> temponet_cpu_stats {
    let mut words = temponet_cpu_stats::default();
    for &(_, tier) in &super::CLASSES[super::WITH_JOBS..] {
        words.class[tier] = temponet_class_stats {
            runs: 0,
            run_ns: 0,
            wait_ns: 0,
            wait_max_ns: 0,
            released: 1,
            met: 1,
            missed: 1,
            response_ns: 1,
            response_max_ns: 1,
            lateness_ns: 1,
            lateness_max_ns: 1,
        };
    }
    words.resched = [1; intf::temponet_resched_TN_NR_RESCHEDS as usize];
    for &(_, reason) in super::RESCHEDS {
        words.resched[reason] = 0;
    }
    words
}

#[test]
fn no_counter_of_the_kernels_half_is_forgotten() {
    let before = snapshot();
    let mut meaningless = meaningless();
    let meaningless = counters::words(&mut meaningless);
    for (word, &without_meaning) in meaningless.iter().enumerate() {
        let mut after = before.clone();
        counters::words(&mut after.totals)[word] += 5;
        let shown = page(&after, Dialect::Prometheus) != page(&before, Dialect::Prometheus);
        assert_eq!(shown, without_meaning == 0, "word {word} of the counters");
    }
}

#[test]
fn tasks_that_missed_are_few_and_may_have_any_name() {
    let text = page(&snapshot(), Dialect::Prometheus);
    let worst: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("scx_temponet_worst_tasks_missed_deadlines{"))
        .collect();
    assert_eq!(
        worst,
        [
            r#"scx_temponet_worst_tasks_missed_deadlines{task="\"evil\\?{}",class="inferred"} 1"#,
            r#"scx_temponet_worst_tasks_missed_deadlines{task="audio",class="declared"} 7"#,
        ]
    );
}

#[test]
fn the_number_of_lines_depends_on_the_cpus_only() {
    let count = |snapshot: &Snapshot| {
        samples(&page(snapshot, Dialect::Prometheus), Dialect::Prometheus).len()
    };
    let mut more = snapshot();
    more.cpus = (0..64).map(|cpu| (cpu, CpuMetrics::default())).collect();
    assert_eq!(count(&more), count(&snapshot()) + 62);
    assert!(count(&snapshot()) < 250, "{}", count(&snapshot()));
}

#[test]
fn without_an_agent_its_figures_are_left_out() {
    let mut without = snapshot();
    without.agent.now = Default::default();
    without.offenders.clear();
    for dialect in [Dialect::Prometheus, Dialect::OpenMetrics] {
        let text = page(&without, dialect);
        assert!(!text.contains("agent_decisions"), "{text}");
        assert!(text.contains("deadlines_missed"), "{text}");
    }
}
