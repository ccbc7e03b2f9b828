//! The figures at the stats socket.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use anyhow::Result;
use scx_stats::prelude::*;
use scx_stats::{StatsData, StatsKind, StatsMeta};
use serde_json::Value;

use super::{ClassMetrics, Dialect, Metrics, OffenderMetrics, Snapshot};
use crate::agent::agent_stats::{AgentMetrics, CpuMetrics, EndangeredMetrics, Flags, Spread};

/// The target that serves all figures since the connection's last look.
pub const RECENT: &str = "recent";
/// The target that serves all figures since load.
pub const SINCE_LOAD: &str = "since_load";
/// What scx_stats serves to who names no target: the figures since the last look, in the form
/// that readers of any scheduler's figures take.
const GENERIC: &str = "top";

type Reader = Box<dyn StatsReader<(), Snapshot>>;

/// To be called when the scheduler is loaded: totals count from here.
pub fn server_data() -> StatsServerData<(), Snapshot> {
    let (nothing, loaded_at) = (Snapshot::empty(Instant::now()), SystemTime::now());
    let mut data = [
        ClassMetrics::meta(),
        OffenderMetrics::meta(),
        EndangeredMetrics::meta(),
        CpuMetrics::meta(),
        Spread::meta(),
        Flags::meta(),
        AgentMetrics::meta(),
        generic_meta(),
    ]
    .into_iter()
    .fold(StatsServerData::new(), StatsServerData::add_meta);
    for dialect in [Dialect::Prometheus, Dialect::OpenMetrics] {
        let text: Box<dyn StatsReaderSend<(), Snapshot>> =
            Box::new(move |_args, (requests, answers)| {
                requests.send(())?;
                let snapshot = answers.recv()?;
                Ok(Value::String(snapshot.openmetrics(dialect, loaded_at)))
            });
        data = data.add_stats(dialect.target(), text);
    }
    let since_load: Box<dyn StatsReaderSend<(), Snapshot>> =
        Box::new(move |_args, (requests, answers)| {
            requests.send(())?;
            answers.recv()?.since(&nothing).to_json()
        });
    data.add_stats(SINCE_LOAD, since_load)
        .add_ops(RECENT, since_last_look(|metrics| metrics.to_json()))
        .add_ops(GENERIC, since_last_look(generic))
}

/// `form` makes of the figures what is served.
fn since_last_look(form: fn(&Metrics) -> Result<Value>) -> StatsOps<(), Snapshot> {
    let open: Box<dyn StatsOpener<(), Snapshot>> = Box::new(move |(requests, answers)| {
        requests.send(())?;
        let mut before = answers.recv()?;
        let read: Reader = Box::new(move |_args, (requests, answers)| {
            requests.send(())?;
            let now = answers.recv()?;
            let metrics = now.since(&before);
            before = now;
            form(&metrics)
        });
        Ok(read)
    });
    StatsOps { open, close: None }
}

/// The exporter that comes with scx_stats takes numbers, and numbers by one name. So the agent's
/// figures are by its policy here, and what is marked `_om_skip` is left out.
fn generic(metrics: &Metrics) -> Result<Value> {
    let mut all = metrics.to_json()?;
    leave_out_skipped(&mut all, &Metrics::meta());
    if let Some(parts) = all.as_object_mut() {
        let mut agent = parts.remove("agent").unwrap_or_default();
        leave_out_skipped(&mut agent, &AgentMetrics::meta());
        let by_policy = [(metrics.agent.policy.clone(), agent)];
        parts.insert(
            "agent".into(),
            Value::Object(by_policy.into_iter().collect()),
        );
        for (name, meta) in [
            ("classes", ClassMetrics::meta()),
            ("cpus", CpuMetrics::meta()),
        ] {
            let rows = parts.get_mut(name).and_then(Value::as_object_mut);
            for row in rows.into_iter().flat_map(|rows| rows.values_mut()) {
                leave_out_skipped(row, &meta);
            }
        }
    }
    Ok(all)
}

fn leave_out_skipped(figures: &mut Value, meta: &StatsMeta) {
    if let Some(figures) = figures.as_object_mut() {
        figures.retain(|name, _| {
            let field = meta.fields.get(name);
            field.is_none_or(|field| !field.attrs.user.contains_key("_om_skip"))
        });
    }
}

/// What [`generic`] serves, described.
fn generic_meta() -> StatsMeta {
    let mut meta = Metrics::meta();
    if let Some(agent) = meta.fields.get_mut("agent") {
        agent.data = StatsData::Dict {
            key: StatsKind::String,
            datum: StatsKind::Struct(AgentMetrics::meta().name),
        };
    }
    meta
}

/// What every figure means. scx_stats finds the parts that stand in a dictionary by itself.
pub fn explain(out: &mut impl Write) -> Result<()> {
    let data = StatsServerData::<(), ()>::new()
        .add_meta(Metrics::meta())
        .add_meta(ClassMetrics::meta())
        .add_meta(OffenderMetrics::meta())
        .add_meta(AgentMetrics::meta())
        .add_meta(EndangeredMetrics::meta())
        .add_meta(CpuMetrics::meta())
        .add_meta(Spread::meta())
        .add_meta(Flags::meta());
    data.describe_meta(out, None)?;
    for part in ["AgentMetrics", "Spread", "Flags"] {
        writeln!(out)?;
        data.describe_meta(out, Some(&[part]))?;
    }
    Ok(())
}

/// Prints the figures of a running scheduler until `shutdown`.
pub fn monitor(interval: Duration, shutdown: Arc<AtomicBool>) -> Result<()> {
    scx_utils::monitor_stats::<Metrics>(
        &[("target".to_owned(), RECENT.to_owned())],
        interval,
        || shutdown.load(Ordering::Relaxed),
        |metrics| metrics.print(&mut std::io::stdout()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures() -> Metrics {
        let mut metrics = Snapshot::empty(Instant::now()).since(&Snapshot::empty(Instant::now()));
        metrics.agent.policy = "temponet".into();
        metrics.cpus.entry(3).or_default().busy = 0.5;
        metrics.offenders.entry("a[1]".into()).or_default().missed = 1;
        metrics
    }

    /// What scxstats_to_openmetrics.py does with a field of the metadata: the gauges by their
    /// place, with the number of labels.
    fn gauges(
        data: &[StatsMeta],
        of: &StatsMeta,
        path: &str,
        labels: usize,
        found: &mut Vec<(String, String, usize)>,
    ) {
        let empty = String::new();
        let prefix = of.attrs.user.get("_om_prefix").unwrap_or(&empty);
        for (name, field) in &of.fields {
            let place = format!("{path}.{name}");
            if field.attrs.user.contains_key("_om_skip") {
                continue;
            }
            match &field.data {
                StatsData::Datum(StatsKind::I64 | StatsKind::U64 | StatsKind::Float) => {
                    found.push((place, format!("{prefix}{name}"), labels));
                }
                StatsData::Dict {
                    datum: StatsKind::Struct(part),
                    ..
                } => {
                    let part = data.iter().find(|meta| &meta.name == part).unwrap();
                    assert!(part.attrs.user.contains_key("_om_label"), "{place}");
                    gauges(data, part, &place, labels + 1, found);
                }
                other => panic!("the exporter does not take {place}: {other}"),
            }
        }
    }

    /// What it does with an answer: values by their place, with the number of labels.
    fn values(of: &Value, path: &str, labels: usize, found: &mut Vec<(String, usize)>) {
        for (name, value) in of.as_object().expect("the exporter iterates over it") {
            let place = format!("{path}.{name}");
            match value {
                Value::Object(rows) => {
                    for row in rows.values() {
                        values(row, &place, labels + 1, found);
                    }
                }
                _ => found.push((place, labels)),
            }
        }
    }

    #[test]
    fn upstreams_exporter_can_take_every_figure_that_it_is_served() {
        let data = [
            generic_meta(),
            ClassMetrics::meta(),
            CpuMetrics::meta(),
            AgentMetrics::meta(),
        ];
        let mut known = Vec::new();
        gauges(&data, &data[0], "", 0, &mut known);
        let mut names: Vec<&String> = known.iter().map(|(_, name, _)| name).collect();
        names.sort();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count, "a name is used twice");
        assert!(names.iter().all(|name| name.starts_with("scx_temponet_")));
        let mut served = Vec::new();
        values(&generic(&figures()).unwrap(), "", 0, &mut served);
        for (place, labels) in &served {
            let (_, name, declared) = known
                .iter()
                .find(|(other, ..)| other == place)
                .unwrap_or_else(|| panic!("{place} is served and not described"));
            assert_eq!(labels, declared, "{name}");
        }
        for wanted in [".classes.missed", ".agent.decisions", ".cpus.busy", ".idle"] {
            assert!(served.iter().any(|(place, _)| place == wanted), "{wanted}");
        }
        // It never forgets a label, so there must be no names of tasks among them.
        assert!(!served.iter().any(|(place, _)| place.contains("offenders")));
    }

    #[test]
    fn all_figures_have_a_target_of_their_own() {
        let whole = figures().to_json().unwrap();
        let back: Metrics = serde_json::from_value(whole.clone()).unwrap();
        assert_eq!(back.to_json().unwrap(), whole);
        assert_eq!(whole["offenders"]["a[1]"]["missed"], 1);
        assert!(whole["agent"]["inference_us"]["counts"].is_array());
    }

    #[test]
    fn every_target_is_served() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("stats");
        let server = StatsServer::new(server_data()).set_path(&path);
        let server = server.launch().unwrap();
        let (answers, requests) = server.channels();
        std::thread::spawn(move || {
            for () in requests {
                answers.send(Snapshot::empty(Instant::now())).unwrap();
            }
        });
        let client = StatsClient::new().set_path(&path);
        let mut client = client.connect(Some(5000)).unwrap();
        let mut ask = |target: &str| -> Value {
            let target = ("target".to_owned(), target.to_owned());
            client.request("stats", vec![target]).unwrap()
        };
        for target in [RECENT, SINCE_LOAD] {
            assert!(ask(target)["agent"]["inference_us"].is_object(), "{target}");
        }
        assert!(ask(GENERIC)["agent"][""]["decisions"].is_u64());
        let text = ask(Dialect::OpenMetrics.target());
        assert!(text.as_str().unwrap().ends_with("# EOF\n"));
        let plain: Value = client.request("stats", Vec::new()).unwrap();
        assert!(plain["resched"].is_null() && plain["idle"].is_u64());
    }
}
