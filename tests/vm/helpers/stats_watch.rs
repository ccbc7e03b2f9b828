//! Adds up the figures of a running scheduler until it is told to stop (SIGTERM),
//! across restarts of the scheduler, and leaves the totals as `name=value` lines.
//!
//!     stats_watch FILE
//!
//! scripts/stress.sh and scripts/soak.sh run it in the guest. It asks the stats
//! socket as any other client would, and needs nothing of the scheduler's code.
use anyhow::{bail, Context, Result};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{channel, RecvTimeoutError};
use std::time::{Duration, Instant};

const SOCKET: &str = "/var/run/scx/root/stats";
const INTERVAL: Duration = Duration::from_secs(1);
/// No counter of a run comes near; a difference that went below zero does.
const IMPOSSIBLE: f64 = (1u64 << 60) as f64;

/// What is counted of the agent; the rest of its figures are true for a moment only.
const OF_THE_AGENT: [&str; 8] = [
    "decisions",
    "inferences",
    "wakeups",
    "rung",
    "ring_drops",
    "bad_records",
    "swaps",
    "swaps_refused",
];

/// Figures since load, of which the largest counts, and means, which do not add up.
fn is_maximum(name: &str) -> bool {
    name.ends_with("_max_us")
}

fn is_mean(name: &str) -> bool {
    name.ends_with("_us") && !is_maximum(name)
}

#[derive(Default)]
struct Totals {
    values: BTreeMap<String, f64>,
    samples: u64,
    connections: u64,
    impossible: Vec<String>,
}

impl Totals {
    fn add(&mut self, sample: &Value) {
        self.samples += 1;
        let Some(top) = sample.as_object() else {
            return;
        };
        for (name, value) in top {
            if let Some(number) = value.as_f64() {
                self.note(name.clone(), number);
            }
        }
        if let Some(classes) = top.get("classes").and_then(Value::as_object) {
            for (class, figures) in classes {
                for (name, value) in figures.as_object().into_iter().flatten() {
                    if let Some(number) = value.as_f64() {
                        self.note(format!("{class}_{name}"), number);
                    }
                }
            }
        }
        for name in OF_THE_AGENT {
            if let Some(number) = sample["agent"][name].as_f64() {
                self.note(format!("agent_{name}"), number);
            }
        }
    }

    fn note(&mut self, name: String, number: f64) {
        if is_mean(&name) {
            return;
        }
        if !(0.0..IMPOSSIBLE).contains(&number) {
            self.impossible.push(format!("{name}:{number}"));
            return;
        }
        let largest = is_maximum(&name);
        let value = self.values.entry(name).or_insert(0.0);
        *value = if largest {
            value.max(number)
        } else {
            *value + number
        };
    }

    fn lines(&self, started: Instant) -> String {
        let impossible = match self.impossible.is_empty() {
            true => "none".into(),
            false => self.impossible.join(","),
        };
        let mut text = format!(
            "seconds={:.3}\nsamples={}\nconnections={}\nimpossible={}\n",
            started.elapsed().as_secs_f64(),
            self.samples,
            self.connections,
            impossible,
        );
        for (name, value) in &self.values {
            text += &format!("{name}={value:.0}\n");
        }
        text
    }
}

struct Connection {
    stream: UnixStream,
    replies: BufReader<UnixStream>,
}

impl Connection {
    fn open() -> Result<Connection> {
        let stream = UnixStream::connect(SOCKET)?;
        // A scheduler that is stopped answers when it goes on, or not at all.
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        let replies = BufReader::new(stream.try_clone()?);
        Ok(Connection { stream, replies })
    }

    /// The figures since the last call.
    fn figures(&mut self) -> Result<Value> {
        self.stream
            .write_all(b"{\"req\":\"stats\",\"args\":{\"target\":\"recent\"}}\n")?;
        let mut line = String::new();
        if self.replies.read_line(&mut line)? == 0 {
            bail!("the scheduler hung up");
        }
        let mut reply: Value = serde_json::from_str(&line)?;
        if reply["errno"] != 0 {
            bail!("refused: {reply}");
        }
        Ok(reply["args"]["resp"].take())
    }
}

fn main() -> Result<()> {
    let file = std::env::args_os()
        .nth(1)
        .context("usage: stats_watch FILE")?;
    let (stop, stopped) = channel();
    ctrlc::set_handler(move || {
        let _ = stop.send(());
    })?;
    let started = Instant::now();
    let mut totals = Totals::default();
    let mut connection = None;
    let mut told = false;
    loop {
        if connection.is_none() {
            connection = Connection::open().ok();
            totals.connections += u64::from(connection.is_some());
        }
        // A scheduler that restarts begins again at zero; so does the connection.
        match connection.as_mut().map(Connection::figures) {
            Some(Ok(sample)) => totals.add(&sample),
            Some(Err(_)) => connection = None,
            None => {}
        }
        if told {
            return Ok(std::fs::write(&file, totals.lines(started))?);
        }
        told = !matches!(
            stopped.recv_timeout(INTERVAL),
            Err(RecvTimeoutError::Timeout)
        );
    }
}
