//! What `status` says, from what the kernel and the scheduler say.

use std::path::Path;
use std::time::{Duration, SystemTime};

use serde_json::{json, Value};

use crate::agent::stats::{ClassMetrics, Metrics};
use crate::cli::monitor::source::Look;
use crate::cli::monitor::text::{clean, lasted, on_time};
use crate::cli::monitor::verdict::{verdict, Mood};
use crate::cli::time::local_time;

/// What is loaded, as the kernel has it in sysfs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kernel {
    WithoutSchedExt,
    NothingLoaded,
    Loaded { name: String, takes_all: bool },
}

impl Kernel {
    /// The version of ours that is loaded, from a name such as
    /// `temponet_0.2.0_x86_64_unknown_linux_gnu`.
    fn version(&self) -> Option<&str> {
        let Kernel::Loaded { name, .. } = self else {
            return None;
        };
        name.strip_prefix("temponet_")?.split('_').next()
    }

    fn is_ours(&self) -> bool {
        matches!(self, Kernel::Loaded { name, .. } if name.starts_with("temponet"))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    Well,
    Trouble,
    Unknown,
    NotLoaded,
}

impl Standing {
    pub fn exit_status(self) -> u8 {
        match self {
            Standing::Well => 0,
            Standing::Trouble => 1,
            Standing::Unknown => 2,
            Standing::NotLoaded => 3,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Standing::Well => "well",
            Standing::Trouble => "trouble",
            Standing::Unknown => "unknown",
            Standing::NotLoaded => "not loaded",
        }
    }
}

/// Five lines, and the figures in them.
#[derive(Debug)]
pub struct Report {
    pub standing: Standing,
    runs: String,
    since: String,
    decides: String,
    deadlines: String,
    look_at: String,
    figures: Value,
}

impl Report {
    pub fn of(kernel: &Kernel, look: &Look, now: SystemTime) -> Report {
        let recent = &look.recent;
        let total = look.total.as_ref().unwrap_or(recent);
        let loaded_for = Duration::try_from_secs_f64(total.interval_s).unwrap_or_default();
        let loaded_at = now.checked_sub(loaded_for).unwrap_or(now);
        let (decides, mood) = verdict(recent);
        let (standing, look_at) = what_to_look_at(kernel, recent, total, mood);
        let class = |name: &str| total.classes.get(name).cloned().unwrap_or_default();
        let (declared, inferred) = (class("declared"), class("inferred"));
        Report {
            standing,
            runs: what_runs(kernel, recent),
            since: format!(
                "{}, for {}",
                local_time(loaded_at),
                lasted(total.interval_s)
            ),
            decides: with_model(decides, recent),
            deadlines: format!(
                "declared: {}; estimated: {}",
                met(&declared),
                met(&inferred)
            ),
            look_at: look_at.clone().unwrap_or_else(|| "nothing is wrong".into()),
            figures: json!({
                "version": kernel.version(),
                "policy": recent.agent.policy,
                "loaded_at": seconds_since_epoch(loaded_at),
                "loaded_s": total.interval_s,
                "level": recent.agent.level,
                "model": recent.agent.model,
                "backend": recent.agent.backend,
                "declared": { "met": declared.met, "missed": declared.missed },
                "inferred": { "met": inferred.met, "missed": inferred.missed },
                "tasks": recent.agent.tasks,
                "given_up": recent.agent.given_up,
                "look_at": look_at,
            }),
        }
    }

    /// Nobody answered at the socket; the kernel says why.
    pub fn without_figures(kernel: &Kernel, reason: String, socket: &Path) -> Report {
        let why = "`journalctl -u scx_temponet` and `dmesg | grep sched_ext` say why, \
                   `scx_temponet doctor` what is missing";
        let (standing, runs, look_at) = match kernel {
            Kernel::WithoutSchedExt => (
                Standing::NotLoaded,
                "the kernel's own scheduler; this kernel has no sched_ext".to_owned(),
                "`scx_temponet doctor`: what is missing".to_owned(),
            ),
            Kernel::NothingLoaded => (
                Standing::NotLoaded,
                "the kernel's own scheduler".to_owned(),
                why.to_owned(),
            ),
            Kernel::Loaded { name, .. } if !kernel.is_ours() => (
                Standing::NotLoaded,
                format!("another sched_ext scheduler, {}", clean(name, 60)),
                "end it with its service before loading scx_temponet".to_owned(),
            ),
            Kernel::Loaded { .. } => (
                Standing::Unknown,
                named(kernel),
                match may_connect(socket) {
                    true => reason,
                    false => {
                        "only root may read the figures: `sudo scx_temponet status`".to_owned()
                    }
                },
            ),
        };
        let unknown = match standing {
            Standing::Unknown => "not known",
            _ => "-",
        };
        Report {
            standing,
            runs,
            since: unknown.into(),
            decides: unknown.into(),
            deadlines: unknown.into(),
            figures: json!({ "version": kernel.version(), "look_at": look_at }),
            look_at,
        }
    }

    pub fn lines(&self) -> String {
        format!(
            "runs       {}\nsince      {}\ndecides    {}\ndeadlines  {}\nlook at    {}\n",
            self.runs, self.since, self.decides, self.deadlines, self.look_at
        )
    }

    pub fn json(&self) -> Value {
        let mut all = json!({ "state": self.standing.name(), "runs": self.runs });
        if let (Value::Object(all), Value::Object(figures)) = (&mut all, &self.figures) {
            all.extend(figures.clone());
        }
        all
    }
}

/// Root's socket looks to others as if nobody listened.
fn may_connect(socket: &Path) -> bool {
    use std::io::ErrorKind;
    use std::os::unix::net::UnixStream;
    !UnixStream::connect(socket).is_err_and(|error| error.kind() == ErrorKind::PermissionDenied)
}

fn named(kernel: &Kernel) -> String {
    let version = kernel.version().map(|version| clean(version, 30));
    match version {
        Some(version) => format!("scx_temponet {version}"),
        None => "scx_temponet".into(),
    }
}

fn what_runs(kernel: &Kernel, recent: &Metrics) -> String {
    let of_whom = match kernel {
        Kernel::Loaded {
            takes_all: false, ..
        } => "tasks of policy SCHED_EXT only",
        _ => "all tasks",
    };
    let policy = clean(&recent.agent.policy, 20);
    format!("{}, policy {policy}, {of_whom}", named(kernel))
}

fn with_model(decides: String, recent: &Metrics) -> String {
    let agent = &recent.agent;
    match agent.model.is_empty() {
        true => decides,
        false => format!(
            "{decides} (model {}, {})",
            clean(&agent.model, 30),
            clean(&agent.backend, 12)
        ),
    }
}

fn met(class: &ClassMetrics) -> String {
    let all = class.met.saturating_add(class.missed);
    match all {
        0 => "none".into(),
        all => format!(
            "{} of {all} met ({} %)",
            class.met,
            on_time(class.met, class.missed)
        ),
    }
}

fn seconds_since_epoch(at: SystemTime) -> f64 {
    let since = at.duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0.0, |since| since.as_secs_f64())
}

/// The worst first. What is over and done with is said, and is no trouble.
fn what_to_look_at(
    kernel: &Kernel,
    recent: &Metrics,
    total: &Metrics,
    mood: Mood,
) -> (Standing, Option<String>) {
    let agent = &recent.agent;
    let trouble = |text: String| (Standing::Trouble, Some(text));
    if mood == Mood::Poor && agent.level != "agent" {
        return trouble(
            "the agent does not answer in time: `journalctl -u scx_temponet`, then \
             `scx_temponet monitor`, panel agent"
                .into(),
        );
    }
    if mood == Mood::Poor {
        return trouble(format!(
            "not all that was declared fits: `scx_temponet monitor` shows which {} of {} tasks \
             are given up",
            agent.given_up, agent.tasks
        ));
    }
    let missed = |metrics: &Metrics| metrics.classes.get("declared").map_or(0, |c| c.missed);
    let worst = worst_declared(recent);
    match (missed(recent), &worst) {
        (0, _) => {}
        (now, None) => {
            return trouble(format!(
                "{now} declared deadlines were missed just now: `scx_temponet monitor`"
            ))
        }
        (now, Some((name, tid))) => {
            return trouble(format!(
                "{now} declared deadlines were missed just now, and most since load by {name}: \
                 `scx_temponet hint --suggest {tid}` measures what it needs"
            ))
        }
    }
    if recent.hints_invalid > 0 {
        return trouble(
            "the pinned map has hints that make no sense: who writes to it past the daemon?".into(),
        );
    }
    if let Some(version) = kernel.version() {
        if version != env!("CARGO_PKG_VERSION") {
            let text = format!(
                "nothing is wrong; version {} is installed: `systemctl restart scx_temponet` \
                 loads it",
                env!("CARGO_PKG_VERSION")
            );
            return (Standing::Well, Some(text));
        }
    }
    let text = match (missed(total), worst) {
        (0, _) | (_, None) => None,
        (_, Some((name, _))) => Some(format!(
            "nothing is wrong now; most deadlines were missed by {name}"
        )),
    };
    (Standing::Well, text)
}

/// Name and number of the declared task that missed most since load.
fn worst_declared(metrics: &Metrics) -> Option<(String, String)> {
    let declared = metrics
        .offenders
        .iter()
        .filter(|(_, row)| row.class == "declared");
    let (name, _) = declared.max_by_key(|(_, row)| row.missed)?;
    let tid = name.rsplit_once('[')?.1.trim_end_matches(']');
    Some((clean(name, 40), clean(tid, 12)))
}
