use std::time::{Duration, Instant};

use super::*;

#[test]
fn every_struct_that_is_served_is_explained() {
    let mut text = Vec::new();
    explain(&mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    for part in [
        "Metrics",
        "ClassMetrics",
        "OffenderMetrics",
        "AgentMetrics",
        "EndangeredMetrics",
        "CpuMetrics",
        "Spread",
        "Flags",
    ] {
        let heads = text.lines().filter(|line| {
            line.strip_prefix('[')
                .is_some_and(|l| l.trim_end_matches(']').trim_end() == part)
        });
        assert_eq!(heads.count(), 1, "{part} in\n{text}");
    }
    assert!(text.contains("decisions not followed: too old"), "{text}");
}

#[test]
fn a_cpu_s_load_is_its_own_and_of_the_interval() {
    let begin = Instant::now();
    let at = |seconds: u64, ran_ns: &[u64]| Snapshot {
        at: begin + Duration::from_secs(seconds),
        ran_ns: ran_ns.to_vec(),
        cpus: [(0, CpuMetrics::default()), (1, CpuMetrics::default())].into(),
        ..Snapshot::empty(begin)
    };
    const S: u64 = 1_000_000_000;
    let (earlier, later) = (at(1, &[S, 0]), at(3, &[2 * S, 3 * S]));
    let metrics = later.since(&earlier);
    assert_eq!(metrics.interval_s, 2.0);
    assert_eq!((metrics.cpus[&0].busy, metrics.cpus[&1].busy), (0.5, 1.0));
    let total = later.since(&Snapshot::empty(begin));
    assert_eq!(total.interval_s, 3.0);
    assert!((total.cpus[&0].busy - 2.0 / 3.0).abs() < 1e-9);
}

#[test]
fn counters_are_of_the_interval_and_the_longest_times_since_load() {
    let at = |value: u64| {
        let mut totals = temponet_cpu_stats::default();
        counters::words(&mut totals).fill(value);
        Snapshot {
            totals,
            ..Snapshot::empty(Instant::now())
        }
    };
    let metrics = at(1_007_000).since(&at(7_000));
    let Metrics {
        idle,
        drifted,
        lent,
        ..
    } = metrics;
    assert_eq!([idle, drifted, lent], [1_000_000; 3]);
    assert_eq!(metrics.parked_ms, 1.0);
    assert!(metrics.resched.values().all(|&count| count == 1_000_000));
    assert_eq!(metrics.agent.told, 1_000_000);
    let class = &metrics.classes["late"];
    assert_eq!((class.met, class.run_ms), (1_000_000, 1.0));
    assert_eq!((class.wait_max_us, class.response_us), (1007.0, 0.0005));
}
