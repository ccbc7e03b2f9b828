//! What a comparison comes to: who wins, who loses which thread, why, and what to change.
//!
//! Computed once, from what the jobs ask for (`load`) and from what became of every
//! thread's jobs; `words` says it. Terminal, page, JSON and Markdown show the same.
//!
//! A job that was never finished counts as missed. Critical threads count first, then all
//! jobs; among schedulers that are level, those with the fewest lost threads win.

mod load;
mod slowness;
mod words;

#[cfg(test)]
mod tests;

use serde::Serialize;

pub use self::load::{work_of, Feasible, Load, Obstacle};
use super::outcome::{Means, Needs, Outcome, Source};
use crate::sim::engine::Fate;
use crate::sim::task::TaskSet;
use crate::sim::time::{to_ms, Ns};

/// Where every live run took so many times the CPU time that its jobs ask for, the machine did
/// not give what the file counts on.
const SLOW: f64 = 1.1;
/// Schedulers that differ by less of the jobs are level, unless one misses nothing.
const LEVEL: f64 = 0.005;
/// A thread is kept when at least this share of its jobs is on time, and lost when fewer
/// than `LOST` are.
const KEPT: f64 = 0.99;
const LOST: f64 = 0.5;

#[derive(Clone, Debug, Serialize)]
pub struct ReplayVerdict {
    /// One sentence: who wins.
    pub headline: String,
    pub why: Vec<String>,
    /// A sentence for each scheduler that misses something.
    pub losses: Vec<String>,
    pub change: Vec<String>,
    /// What would do as well and needs less, or what wins and cannot be loaded.
    pub enough: Option<String>,
    /// Names of the best, in the order of the table; empty where nothing is compared.
    pub winners: Vec<String>,
    pub load: Load,
    pub changes: Vec<Change>,
    pub schedulers: Vec<Standing>,
}

/// How one scheduler did.
#[derive(Clone, Debug, Serialize)]
pub struct Standing {
    pub scheduler: String,
    /// Among the winners of a comparison.
    pub best: bool,
    pub jobs: u64,
    pub met: u64,
    pub unfinished: u64,
    pub compliance: f64,
    pub critical_compliance: Option<f64>,
    /// Threads that are judged, and how many of them have 99 % of their jobs on time.
    pub threads: usize,
    pub kept: usize,
    /// The other threads, the worst first.
    pub late: Vec<LateThread>,
    /// CPUs spent on jobs that came too late, and on threads without deadlines; known
    /// where it is known who ran when.
    pub late_cpus: Option<f64>,
    pub background_cpus: Option<f64>,
    /// CPU time that finished jobs took, by what they ask for; known of live runs.
    pub slowness: Option<f64>,
    pub needs: Needs,
    #[serde(skip)]
    means: Means,
    #[serde(skip)]
    source: Source,
}

#[derive(Clone, Debug, Serialize)]
pub struct LateThread {
    pub name: String,
    pub critical: bool,
    pub jobs: u64,
    pub met: u64,
    pub unfinished: u64,
    /// Fewer than half of its jobs were on time.
    pub lost: bool,
    #[serde(skip)]
    task: usize,
}

/// What would help, as figures.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Change {
    /// Fewer than these cannot do it.
    Cores { at_least: usize },
    /// A longer period for one thread, with which all would fit.
    Period {
        thread: String,
        from_ms: f64,
        to_ms: f64,
    },
    /// Less work, or less often, for one thread.
    Demand {
        thread: String,
        from_cpus: f64,
        to_cpus: f64,
    },
    /// A thread whose jobs need more time than they have.
    Shorten {
        thread: String,
        work_ms: f64,
        time_ms: f64,
    },
    /// Say which threads have to be kept.
    Critical,
    /// Deadlines that were declared made the difference.
    Declare { with: f64, without: f64 },
}

/// `failed`: schedulers that did not run, and why.
pub fn judge(set: &TaskSet, outcomes: &[Outcome], failed: &[(&str, &str)]) -> ReplayVerdict {
    let mut load = Load::of(set);
    let mut standings: Vec<Standing> = outcomes
        .iter()
        .map(|outcome| Standing::of(outcome, &load, set))
        .collect();
    let served = standings.iter().any(|s| s.jobs > 0 && s.all_met());
    if served && load.obstacle.is_none() {
        load.feasible = Feasible::Yes;
    }
    let winners = winners(&standings);
    for (i, standing) in standings.iter_mut().enumerate() {
        standing.best = winners.contains(&i);
    }
    let mut verdict = ReplayVerdict {
        headline: String::new(),
        why: Vec::new(),
        losses: Vec::new(),
        change: Vec::new(),
        enough: None,
        winners: winners
            .iter()
            .map(|&i| standings[i].scheduler.clone())
            .collect(),
        load,
        changes: Vec::new(),
        schedulers: standings,
    };
    verdict.changes = changes(set, &verdict);
    words::write(&mut verdict, failed);
    verdict
}

impl Standing {
    fn of(outcome: &Outcome, load: &Load, set: &TaskSet) -> Standing {
        let metrics = &outcome.total.metrics;
        let judged = outcome.tasks.iter().enumerate();
        let judged = judged.filter(|(_, task)| task.figures.metrics.jobs > 0);
        let mut late: Vec<LateThread> = judged
            .clone()
            .filter(|(_, task)| task.figures.metrics.compliance < KEPT)
            .map(|(id, task)| {
                let own = &task.figures.metrics;
                LateThread {
                    name: task.name.clone(),
                    critical: task.critical,
                    jobs: own.jobs,
                    met: own.met,
                    unfinished: own.unfinished,
                    lost: own.compliance < LOST,
                    task: id,
                }
            })
            .collect();
        late.sort_by(|a, b| (a.met * b.jobs).cmp(&(b.met * a.jobs)));
        let threads = judged.count();
        let spent = spent(outcome, load, set.horizon_ns);
        Standing {
            scheduler: outcome.scheduler.clone(),
            best: false,
            jobs: metrics.jobs,
            met: metrics.met,
            unfinished: metrics.unfinished,
            compliance: metrics.compliance,
            critical_compliance: metrics.pitmd,
            threads,
            kept: threads - late.len(),
            late,
            late_cpus: spent.map(|spent| spent.0),
            background_cpus: spent.map(|spent| spent.1),
            slowness: slowness::of(outcome, set),
            needs: outcome.means.needs,
            means: outcome.means.clone(),
            source: outcome.source,
        }
    }

    fn all_met(&self) -> bool {
        self.met == self.jobs
    }

    fn lost(&self) -> usize {
        self.late.iter().filter(|thread| thread.lost).count()
    }

    fn misses(&self) -> u64 {
        self.jobs - self.met
    }
}

/// CPUs that went to jobs which came too late, and to threads without deadlines.
fn spent(outcome: &Outcome, load: &Load, horizon: Ns) -> Option<(f64, f64)> {
    if outcome.segments.is_empty() {
        return None;
    }
    let jobs = &outcome.jobs;
    let missed = |task: u32, index: u32| {
        let place = jobs.binary_search_by_key(&(task, index), |job| (job.task, job.index));
        place.is_ok_and(|place| jobs[place].fate != Fate::OnTime)
    };
    let (mut late, mut background) = (0u64, 0u64);
    for s in &outcome.segments {
        let time = s.end.min(horizon).saturating_sub(s.start);
        if load.tasks[s.task as usize].is_none() {
            background += time;
        } else if missed(s.task, s.index) {
            late += time;
        }
    }
    let cpus = |time: u64| time as f64 / horizon as f64;
    Some((cpus(late), cpus(background)))
}

/// Level in one share of the jobs: none missed is better than any number missed.
fn level(a: f64, b: f64) -> bool {
    (a < 1.0) == (b < 1.0) && (a - b).abs() < LEVEL
}

/// Nobody wins where nothing was judged.
fn winners(all: &[Standing]) -> Vec<usize> {
    let judged = |i: &usize| all[*i].jobs > 0;
    let mut best: Vec<usize> = (0..all.len()).filter(judged).collect();
    let critical = |i: usize| all[i].critical_compliance.unwrap_or(1.0);
    keep_level(&mut best, critical);
    keep_level(&mut best, |i| all[i].compliance);
    let fewest = best.iter().map(|&i| all[i].lost()).min();
    best.retain(|&i| Some(all[i].lost()) == fewest);
    best
}

fn keep_level(best: &mut Vec<usize>, share: impl Fn(usize) -> f64) {
    let most = best.iter().map(|&i| share(i)).fold(0.0, f64::max);
    best.retain(|&i| level(share(i), most));
}

fn changes(set: &TaskSet, verdict: &ReplayVerdict) -> Vec<Change> {
    let mut changes = Vec::new();
    let contradicted = verdict.beyond_the_ceiling().is_some();
    match verdict.load.obstacle.as_ref().filter(|_| !contradicted) {
        None => {}
        Some(Obstacle::TooLong {
            task,
            work_ms,
            time_ms,
        }) => changes.push(Change::Shorten {
            thread: task.clone(),
            work_ms: *work_ms,
            time_ms: *time_ms,
        }),
        Some(Obstacle::Overload | Obstacle::Peak { .. }) => {
            let needed = verdict.load.cpus_needed;
            changes.extend(needed.map(|at_least| Change::Cores { at_least }));
            changes.extend(smaller_thread(set, verdict));
        }
    }
    let impossible = verdict.load.feasible == Feasible::No && !contradicted;
    let several = verdict.schedulers.iter().any(|s| s.threads > 1);
    let marked = verdict
        .schedulers
        .iter()
        .any(|s| s.critical_compliance.is_some());
    if impossible && several && !marked {
        changes.push(Change::Critical);
    }
    changes.extend(declaring(&verdict.schedulers));
    changes
}

/// Which thread to make smaller: the one that the winner serves worst, or else the one that
/// asks for most.
fn smaller_thread(set: &TaskSet, verdict: &ReplayVerdict) -> Option<Change> {
    let load = &verdict.load;
    if load.asked_cpus <= load.cpus as f64 {
        return None;
    }
    let winner = verdict.schedulers.iter().find(|s| s.best);
    let worst = winner.into_iter().flat_map(|s| &s.late).map(|t| t.task);
    let mut by_demand: Vec<usize> = (0..set.tasks.len()).collect();
    by_demand.sort_by(|&a, &b| load.tasks[b].partial_cmp(&load.tasks[a]).expect("no NaN"));
    let task = worst
        .chain(by_demand)
        .find(|&task| load::room_for(load, task).is_some())?;
    let thread = set.tasks[task].name.clone();
    Some(match load::fitting_period(set, load, task) {
        Some(period) => Change::Period {
            thread,
            from_ms: to_ms(set.tasks[task].period_ns),
            to_ms: to_ms(period),
        },
        None => Change::Demand {
            thread,
            from_cpus: load.tasks[task]?,
            to_cpus: load::room_for(load, task)?,
        },
    })
}

/// Live only: the best with declared deadlines against the best without.
fn declaring(all: &[Standing]) -> Option<Change> {
    let live = |s: &&Standing| s.source == Source::Live && s.jobs > 0;
    let best = |declares: bool| {
        let shares = all.iter().filter(live);
        let shares = shares.filter(|s| s.means.declares == declares);
        shares.map(|s| s.compliance).max_by(f64::total_cmp)
    };
    let (with, without) = (best(true)?, best(false)?);
    (with > without && !level(with, without)).then_some(Change::Declare { with, without })
}

impl ReplayVerdict {
    /// What follows the headline, under these titles.
    pub fn parts(&self) -> Vec<(&'static str, Vec<&str>)> {
        fn all(lines: &[String]) -> Vec<&str> {
            lines.iter().map(String::as_str).collect()
        }
        let parts = [
            ("Why", all(&self.why)),
            ("Losses", all(&self.losses)),
            ("Change", all(&self.change)),
            ("Enough", self.enough.as_deref().into_iter().collect()),
        ];
        let told = parts.into_iter().filter(|part| !part.1.is_empty());
        told.collect()
    }

    /// Whether rows are worth marking: with one scheduler there is no best.
    pub fn is_contest(&self) -> bool {
        self.schedulers.len() > 1 && !self.winners.is_empty()
    }

    /// By how much all live runs were slower than the file counts on, where that is much.
    fn slowness(&self) -> Option<f64> {
        let all = self.schedulers.iter().filter_map(|s| s.slowness);
        all.min_by(f64::total_cmp).filter(|&least| least >= SLOW)
    }

    /// One that met more than the CPUs can do: it cannot have run on these.
    fn beyond_the_ceiling(&self) -> Option<&Standing> {
        let most = self.load.ceiling + 1e-9;
        let mut all = self.schedulers.iter();
        all.find(|s| s.jobs > 0 && s.compliance > most)
    }
}
