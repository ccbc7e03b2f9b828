//! What a run leaves behind: one JSON object.
use crate::cases::Case;
use crate::due;
use crate::scene::Scene;
use crate::stage::Seen;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Who counts as having its share: within this part of what is due.
pub const TOLERANCE: f64 = 0.10;
/// Or within so much of the CPU, where little is due: a few slices in ten seconds.
pub const FLOOR: f64 = 0.005;

#[derive(Serialize, Deserialize, Clone, Debug)]
pub struct Share {
    pub name: String,
    pub group: String,
    pub nice: i64,
    pub share: f64,
    /// The least and the most that is due (due.rs), where shares are judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub due: Option<(f64, f64)>,
    pub longest_wait_ms: f64,
}

#[derive(Serialize, Deserialize, Clone, Debug)]
pub struct Record {
    pub case: String,
    pub variant: String,
    pub column: String,
    /// By name; the report shows them.
    pub figures: BTreeMap<String, f64>,
    /// What a figure is of, such as who is furthest from its share.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub words: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shares: Vec<Share>,
}

impl Record {
    pub fn new(case: Case, variant: &str, column: &str) -> Record {
        Record {
            case: case.name(),
            variant: variant.to_string(),
            column: column.to_string(),
            figures: BTreeMap::new(),
            words: BTreeMap::new(),
            shares: Vec::new(),
        }
    }

    pub fn set(&mut self, figure: &str, value: f64) {
        self.figures.insert(figure.to_string(), value);
    }

    pub fn add_seen(&mut self, scene: &Scene, seen: &Seen) {
        for (at, member) in scene.members.iter().enumerate() {
            self.shares.push(Share {
                name: member.name.clone(),
                group: scene.path(member.group),
                nice: member.nice,
                share: seen.members[at],
                due: None,
                longest_wait_ms: seen.waits_ms[at],
            });
        }
        if let Some(latency) = &seen.latency {
            self.set("latency p50 µs", latency.p50_us);
            self.set("latency p99 µs", latency.p99_us);
            self.set("latency max µs", latency.max_us);
            self.set("latency samples", latency.samples as f64);
        }
    }

    /// Of tasks that count their jobs themselves, from their first on.
    pub fn add_own_jobs(&mut self, seen: &Seen) {
        let (jobs, on_time) = seen.jobs;
        self.set("jobs", jobs as f64);
        self.set("on time %", 100.0 * on_time as f64 / jobs.max(1) as f64);
        if let Some(reason) = seen.refusals.first() {
            self.words.insert("declaration".into(), reason.clone());
        }
    }

    /// What each group with a limit had, and what it should have had; and how long anybody
    /// waited whom nothing limits.
    pub fn add_limits(&mut self, scene: &Scene, seen: &Seen) {
        let demands: Vec<f64> = scene.members.iter().map(|m| m.work.demand()).collect();
        let due = due::divide(scene, &demands);
        for at in (0..scene.groups.len()).filter(|&at| scene.groups[at].quota_us.is_some()) {
            let inside = |member: usize| scene.is_inside(scene.members[member].group, at);
            let sum: f64 = (0..due.len()).filter(|&m| inside(m)).map(|m| due[m]).sum();
            self.set(&format!("g{at} %"), seen.groups[at] * 100.0);
            self.set(&format!("g{at} due"), sum * 100.0);
        }
        let free = (0..due.len()).filter(|&at| !scene.is_limited(scene.members[at].group));
        let waits = free.map(|at| seen.waits_ms[at]);
        self.set("free wait ms", waits.fold(0.0, f64::max));
        if let Some(reason) = seen.refusals.first() {
            self.words.insert("declaration".into(), reason.clone());
        }
    }

    /// Holds each share against what is due to it.
    pub fn judge_shares(&mut self, scene: &Scene, seen: &Seen) {
        let bounds = due::bounds(scene, &seen.members);
        let mut worst = (0.0, String::from("nobody"), 1.0);
        let mut outside = 0;
        for (share, (least, most)) in self.shares.iter_mut().zip(bounds) {
            share.due = Some((least, most));
            let excess = excess(share.share, least, most);
            outside += usize::from(excess > 1.0);
            let nearest = share.share.clamp(least, most);
            if excess > worst.0 {
                worst = (excess, describe(share, least, most), share.share / nearest);
            }
        }
        self.set("tasks", scene.members.len() as f64);
        self.set("groups", scene.groups.len() as f64);
        self.set("outside", outside as f64);
        self.set("worst ratio", worst.2);
        self.words.insert("worst".into(), worst.1);
    }
}

fn describe(share: &Share, least: f64, most: f64) -> String {
    let due = match most - least > 0.0005 {
        true => format!("{:.2} to {:.2} %", least * 100.0, most * 100.0),
        false => format!("{:.2} %", most * 100.0),
    };
    let (name, group, nice) = (&share.name, &share.group, share.nice);
    format!(
        "{name} in {group}, nice {nice}: {:.2} %, due {due}",
        share.share * 100.0
    )
}

/// How far a share is from what is due, as a part of what is tolerated.
fn excess(share: f64, least: f64, most: f64) -> f64 {
    let (distance, of) = match share < least {
        true => (least - share, least),
        false => ((share - most).max(0.0), most),
    };
    distance / (TOLERANCE * of).max(FLOOR)
}
