//! The cases `rhythm` and `small-declarations`: periodic tasks drawn from a seed, which rt-app
//! plays, and what of it was on time.
use crate::cases::{chance, Case};
use crate::record::Record;
use crate::rng::Rng;
use crate::scene::{Scene, Work};
use anyhow::{Context, Result};
use serde_json::{json, Map, Value};
use std::fs;
use std::path::Path;

pub const WORKLOAD: &str = "/tmp/workload.json";
pub const LOGS: &str = "/tmp/rt-app";
/// What rt-app has to know of the machine, ns per loop; the guest's script measures it.
const CALIBRATION: &str = "/out/calibration";
/// Every thread sleeps for so long before its first job, s.
const DELAY_S: u64 = 1;
/// A declared runtime is a worst case; calibrated loops vary by a few per cent.
const HEADROOM: f64 = 1.03;

#[derive(Clone, Debug)]
pub struct Task {
    pub run_us: u64,
    pub period_us: u64,
}

pub struct Set {
    pub tasks: Vec<Task>,
    pub hogs: u64,
    /// By how much declarations of each task are too small, in the two columns that have it.
    pub factor: f64,
    pub factors: Vec<f64>,
}

/// Who declares what; a letter of the threads' names, by which rules go.
#[derive(Clone, Copy, PartialEq)]
pub enum Declared {
    Nothing,
    Right,
    /// Too small, all by the same factor.
    Small,
    /// By factors that differ by a tenth.
    Uneven,
}

impl Declared {
    pub fn of(column: &str) -> Declared {
        match column.split_once('+') {
            Some((_, "declared")) => Declared::Right,
            Some((_, "small")) => Declared::Small,
            Some((_, "uneven")) => Declared::Uneven,
            _ => Declared::Nothing,
        }
    }

    fn letter(self) -> char {
        match self {
            Declared::Nothing => 'u',
            Declared::Right => 'd',
            Declared::Small => 's',
            Declared::Uneven => 'v',
        }
    }
}

/// Set so-and-so of a seed: `seed-3-set-0`.
pub fn variants(seeds: &[u64], sets: u64) -> Vec<String> {
    let of_seed = |seed: &u64| (0..sets).map(move |set| (*seed, set)).collect::<Vec<_>>();
    let all = seeds.iter().flat_map(of_seed);
    all.map(|(seed, set)| format!("seed-{seed}-set-{set}"))
        .collect()
}

fn numbers_of(variant: &str) -> (u64, u64) {
    let mut words = variant.split('-').skip(1).step_by(2);
    let mut number = || words.next().and_then(|word| word.parse().ok());
    (number().unwrap_or(0), number().unwrap_or(0))
}

impl Set {
    pub fn draw(case: Case, variant: &str) -> Set {
        let (seed, set) = numbers_of(variant);
        let mut rng = chance(case, seed * 1000 + set);
        let load = 0.6 + 0.3 * unit(&mut rng);
        let tasks = draw_tasks(&mut rng, load);
        let hogs = if case == Case::Rhythm {
            rng.range(1, 3)
        } else {
            0
        };
        let factor = 1.5 + 1.5 * unit(&mut rng);
        let factors = tasks
            .iter()
            .map(|_| factor * (0.9 + 0.2 * unit(&mut rng)))
            .collect();
        Set {
            tasks,
            hogs,
            factor,
            factors,
        }
    }

    pub fn load(&self) -> f64 {
        let shares = self
            .tasks
            .iter()
            .map(|task| task.run_us as f64 / task.period_us as f64);
        shares.sum()
    }

    pub fn scene(&self) -> Scene {
        let mut scene = Scene::default();
        let all = scene.group(None, 100);
        for at in 0..self.hogs {
            scene.member(&format!("hog{at}"), all, Work::Hog);
        }
        scene.awaited = Some(scene.members.len());
        let line = "exec rt-app /tmp/workload.json >/tmp/rt-app.txt 2>&1";
        scene.member("rt-app", all, Work::Shell(line));
        scene
    }

    fn declared_us(&self, at: usize, declared: Declared) -> u64 {
        let factor = match declared {
            Declared::Nothing | Declared::Right => 1.0,
            Declared::Small => self.factor,
            Declared::Uneven => self.factors[at],
        };
        (self.tasks[at].run_us as f64 * HEADROOM / factor).round() as u64
    }
}

fn unit(rng: &mut Rng) -> f64 {
    rng.below(1 << 30) as f64 / f64::from(1 << 30)
}

/// Three to six, of log-uniform periods from 5 to 100 ms; the load is split by UUniFast.
fn draw_tasks(rng: &mut Rng, load: f64) -> Vec<Task> {
    loop {
        let count = rng.range(3, 6);
        let mut left = load;
        let tasks: Vec<Task> = (0..count)
            .map(|at| {
                let others = count - 1 - at;
                let rest = match others {
                    0 => 0.0,
                    _ => left * unit(rng).powf(1.0 / others as f64),
                };
                let share = left - rest;
                left = rest;
                let period_us = (5_000.0 * 20_f64.powf(unit(rng)) / 100.0).round() as u64 * 100;
                Task {
                    run_us: (share * period_us as f64).round() as u64,
                    period_us,
                }
            })
            .collect();
        // Shorter runs are all overhead of rt-app.
        if tasks
            .iter()
            .all(|task| task.run_us >= 300 && task.run_us * 10 <= task.period_us * 6)
        {
            return tasks;
        }
    }
}

/// At most 15 bytes. The number tells sets apart, so that one file of rules serves all.
fn thread_name(case: Case, variant: &str, declared: Declared, at: usize) -> String {
    let (seed, set) = numbers_of(variant);
    let case = if case == Case::Rhythm { 'r' } else { 's' };
    format!("{case}{}{:x}_{at}", declared.letter(), seed * 16 + set)
}

/// The workload in rt-app's own words.
pub fn write_workload(case: Case, variant: &str, column: &str, seconds: u64) -> Result<()> {
    let set = Set::draw(case, variant);
    let mut rates: Vec<u64> = set.tasks.iter().map(|task| task.period_us).collect();
    rates.sort_unstable();
    let calibration = fs::read_to_string(CALIBRATION).context("rt-app was not calibrated")?;
    let mut threads = Map::new();
    for (at, task) in set.tasks.iter().enumerate() {
        let mut thread = json!({
            "policy": "SCHED_OTHER",
            "delay": DELAY_S * 1_000_000,
            "loop": -1,
            "run": task.run_us,
            // A job that is late does not move those after it.
            "timer": { "ref": "unique", "period": task.period_us, "mode": "absolute" },
        });
        if column == "fifo-rm" {
            let rank = rates.iter().position(|&period| period == task.period_us);
            thread["policy"] = "SCHED_FIFO".into();
            thread["priority"] = (30 - rank.unwrap_or(0)).into();
        }
        threads.insert(thread_name(case, variant, Declared::of(column), at), thread);
    }
    let global = json!({
        // One more, in which the last of the jobs that count may end.
        "duration": DELAY_S + seconds + 1,
        "calibration": calibration.trim().parse::<u64>()?,
        "lock_pages": false,
        "log_size": 2,
        "logdir": LOGS,
        "log_basename": "log",
    });
    let _ = fs::remove_dir_all(LOGS);
    fs::create_dir(LOGS)?;
    let whole = Value::Object(Map::from_iter([
        ("global".to_string(), global),
        ("tasks".to_string(), Value::Object(threads)),
    ]));
    Ok(fs::write(WORKLOAD, serde_json::to_string(&whole)?)?)
}

/// The rules that a run's threads go by.
pub fn rules(case: Case, variant: &str, column: &str) -> String {
    let declared = Declared::of(column);
    if declared == Declared::Nothing {
        return String::new();
    }
    let set = Set::draw(case, variant);
    let rule = |(at, task): (usize, &Task)| {
        let name = thread_name(case, variant, declared, at);
        let (runtime, period) = (set.declared_us(at, declared), task.period_us);
        format!(
            "[[rule]]\ncomm = \"{name}\"\nruntime = \"{runtime}us\"\nperiod = \"{period}us\"\n\n"
        )
    };
    set.tasks.iter().enumerate().map(rule).collect()
}

/// Jobs that were released, and those done in time, of one thread, from the second `from` on.
///
/// Job k is released k periods after the first. The eighth column of its line is what was left
/// of its period when it ended. A starved thread leaves no lines.
fn count(log: &str, task: &Task, from: u64, seconds: u64) -> (u64, u64) {
    let released = seconds * 1_000_000 / task.period_us;
    let first = (from * 1_000_000).div_ceil(task.period_us);
    let lines = log
        .lines()
        .filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    let left = lines.map(|line| {
        line.split_whitespace()
            .nth(7)
            .and_then(|word| word.parse::<i64>().ok())
    });
    let met = left
        .take(released as usize)
        .skip(first as usize)
        .filter(|left| left.is_some_and(|left| left >= 0))
        .count();
    (released - first, met as u64)
}

pub fn add_jobs(
    record: &mut Record,
    case: Case,
    variant: &str,
    column: &str,
    seconds: u64,
) -> Result<()> {
    let set = Set::draw(case, variant);
    let (mut all, mut settled) = ((0, 0), (0, 0));
    for (at, task) in set.tasks.iter().enumerate() {
        let name = thread_name(case, variant, Declared::of(column), at);
        let file = Path::new(LOGS).join(format!("log-{name}-{at}.log"));
        let log = fs::read_to_string(&file).with_context(|| format!("no {}", file.display()))?;
        let whole = count(&log, task, 0, seconds);
        let later = count(&log, task, 1, seconds);
        all = (all.0 + whole.0, all.1 + whole.1);
        settled = (settled.0 + later.0, settled.1 + later.1);
        let percent = 100.0 * later.1 as f64 / later.0 as f64;
        let what = format!(
            "{:.1}/{:.1} ms",
            task.run_us as f64 / 1000.0,
            task.period_us as f64 / 1000.0
        );
        record.set(&format!("task {at} {what}"), percent);
    }
    record.set("load", set.load());
    record.set("hogs", set.hogs as f64);
    if case == Case::SmallDeclarations {
        record.set("too small by", set.factor);
    }
    record.set("jobs", settled.0 as f64);
    record.set("on time %", 100.0 * settled.1 as f64 / settled.0 as f64);
    record.set("from the start %", 100.0 * all.1 as f64 / all.0 as f64);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_ask_for_what_they_should_and_their_threads_have_short_names() {
        for case in [Case::Rhythm, Case::SmallDeclarations] {
            for variant in variants(&[1, 99_999_999], 10) {
                let set = Set::draw(case, &variant);
                assert!((0.59..0.91).contains(&set.load()), "{}", set.load());
                assert!((3..=6).contains(&set.tasks.len()));
                assert!((1.5..3.0).contains(&set.factor));
                assert!(thread_name(case, &variant, Declared::Right, 5).len() <= 15);
            }
        }
    }

    #[test]
    fn jobs_that_never_ended_are_late() {
        let task = Task {
            run_us: 1,
            period_us: 500_000,
        };
        let line = |left: i64| format!("0 0 0 0 0 0 0 {left} 0 0 0\n");
        let log = format!("#idx\n{}{}{}{}", line(-5), line(5), line(5), line(-1));
        assert_eq!(count(&log, &task, 0, 3), (6, 2));
        assert_eq!(count(&log, &task, 1, 3), (4, 1));
    }
}
