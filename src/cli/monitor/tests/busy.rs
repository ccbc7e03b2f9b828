use std::collections::BTreeMap;

use super::super::source::Look;
use crate::agent::agent_stats::{AgentMetrics, CpuMetrics, EndangeredMetrics, Flags, Spread};
use crate::agent::stats::{ClassMetrics, Metrics, OffenderMetrics};

/// What a scheduler would serve: of its own type, so that no figure is shown here that
/// is never sent.
pub fn busy() -> Look {
    let spread = |p50, p99, counts: &[u64]| Spread {
        p50,
        p99,
        counts: counts.to_vec(),
    };
    let class = |met, missed, response_us, wait_max_us| ClassMetrics {
        met,
        missed,
        response_us,
        wait_us: 310.0,
        wait_max_us,
        runs: 100,
        ..Default::default()
    };
    let runs = |pid, comm: &str, tier: &str, busy| CpuMetrics {
        pid,
        comm: comm.into(),
        tier: tier.into(),
        busy,
    };
    let danger = |slack_us, remaining_us, criticality, kept| EndangeredMetrics {
        slack_us,
        remaining_us,
        deadline_us: slack_us + remaining_us,
        criticality,
        kept,
    };
    let offender = |missed, met, lateness_max_us| OffenderMetrics {
        missed,
        met,
        lateness_max_us,
        class: "declared".into(),
    };
    let ages = [0, 0, 0, 0, 0, 0, 0, 0, 0, 300, 0, 0, 150, 2, 0, 0];
    let classes = |times: u64| -> BTreeMap<String, ClassMetrics> {
        [
            ("late".into(), class(0, 0, 0.0, 1_500_000.0)),
            (
                "declared".into(),
                class(150 * times, 50 * times, 12_000.0, 20_000.0),
            ),
            ("background".into(), class(0, 0, 0.0, 2_000.0)),
            ("inferred".into(), class(80 * times, 0, 900.0, 31_000.0)),
        ]
        .into()
    };
    let recent = Metrics {
        interval_s: 2.0,
        agent: AgentMetrics {
            policy: "temponet".into(),
            level: "agent".into(),
            backend: "ort".into(),
            provider: "CPU".into(),
            model: "temponet-6d1f".into(),
            decisions: 824,
            decisions_per_s: 412.0,
            inferences: 200,
            told: 2000,
            tasks: 12,
            given_up: 3,
            cpu_share: 0.031,
            budget: 0.05,
            inference_us: spread(180, 950, &[1]),
            latency_us: spread(240, 1300, &[1]),
            decision_age_us: spread(700, 4200, &ages),
            resyncs: 1,
            stale: 7,
            transitions: [
                ("q-table".into(), 2),
                ("agent".into(), 1),
                ("edf".into(), 0),
            ]
            .into(),
            shield: Flags {
                feasible: 0,
                overload: 1,
                burst: 0,
            },
            ..Default::default()
        },
        decision: 600,
        q_table: 200,
        queue: 100,
        idle: 100,
        preemptions: 12,
        classes: classes(1),
        cpus: [
            (1, runs(0, "swapper/1", "idle", 0.25)),
            (0, runs(4711, "camera", "declared", 0.97)),
            (2, runs(812, "cc1plus", "background", 1.0)),
            (3, runs(99, "planner", "late", 0.5)),
        ]
        .into(),
        endangered: [
            ("calm[9]".into(), danger(30_000.0, 1000.0, 0, 1)),
            ("doomed[8]".into(), danger(-1500.0, 2000.0, 3, 1)),
            ("planner[99]".into(), danger(-9000.0, 7000.0, 0, 0)),
        ]
        .into(),
        offenders: [
            ("planner[99]".into(), offender(4100, 12, 250_000.0)),
            ("camera[4711]".into(), offender(3, 29_997, 800_000.0)),
        ]
        .into(),
        ..Default::default()
    };
    let total = Metrics {
        interval_s: 3900.0,
        preemptions: 44_000,
        decision: 1_200_000,
        q_table: 9_000,
        queue: 810_000,
        idle: 4_100_000,
        classes: classes(1950),
        agent: AgentMetrics {
            transitions: [("q-table".into(), 9)].into(),
            ..Default::default()
        },
        ..Default::default()
    };
    Look {
        recent,
        total: Some(total),
    }
}
