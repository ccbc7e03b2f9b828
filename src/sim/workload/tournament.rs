//! Task sets that nobody chose: every property is drawn from a seed, so that a rule
//! cannot have been tuned on them. Whatever is not asked for is drawn.
//!
//! Every property has a random stream of its own: fixing one leaves the others of
//! that seed as they are.

mod times;

use std::fmt;

use serde::{Deserialize, Serialize};

use self::times::vary;
use super::{uunifast, Shape, Workload};
use crate::sim::rng::{child_seed, Rng};
use crate::sim::task::{Declaration, Task, TaskSet};
use crate::sim::time::{Ns, MS, SECOND, US};

pub const TOURNAMENT: Workload = Workload {
    name: "tournament",
    about: "sets nobody chose: 3 to 64 tasks, load 0.5 to 2.0, all else drawn, too",
    cores: 1,
    tasks: 0,
    load: (0.5, 2.0),
    horizon_ns: HORIZON,
    draw: draw_shape,
};

const HORIZON: Ns = 4 * SECOND;
const FEWEST: usize = 3;
const MOST: usize = 64;
const PERIODS_MS: (f64, f64) = (2.0, 500.0);
/// Periods and first releases are multiples of it; rt-app counts in microseconds.
const GRAIN: Ns = 10 * US;
/// Shorter jobs are mostly the machine's overhead: tasks of little load have longer
/// periods instead.
const SHORTEST_JOB: Ns = 100 * US;

/// What a caller fixes; the rest is drawn.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct Options {
    pub cores: Option<usize>,
    pub tasks: Option<usize>,
    /// Per CPU, drawn from this range.
    pub load: Option<(f64, f64)>,
    pub periods: Option<Periods>,
    pub times: Option<Times>,
    pub deadlines: Option<Deadlines>,
    pub start: Option<Start>,
    pub hogs: Option<usize>,
    pub change: Option<Change>,
    pub critical: Option<bool>,
    pub declared: Option<Declared>,
    pub horizon_ns: Option<Ns>,
}

macro_rules! choices {
    ($(#[$about:meta])* $name:ident { $($(#[$said:meta])* $choice:ident => $word:literal,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum $name { $($(#[$said])* $choice,)* }

        impl $name {
            pub const ALL: &[$name] = &[$($name::$choice,)*];
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str(match self { $($name::$choice => $word,)* })
            }
        }
    };
}

choices!(Periods {
    LogUniform => "periods log-uniform",
    /// A base of 2 to 16 ms and its doubles.
    Harmonic => "periods harmonic",
});
choices!(
    /// How long jobs run.
    Times {
        Constant => "times constant",
        Uniform => "times uniform",
        OneInK => "one job in k long",
        HeavyTail => "times heavy-tailed",
        Drifting => "times drifting",
        /// Each task one of the others.
        Mixed => "times of every kind",
    }
);
choices!(Deadlines {
    Period => "D = P",
    BeforePeriod => "D < P",
});
choices!(Start {
    Together => "started together",
    Apart => "started apart",
});
choices!(
    /// What happens half-way. The load is that of the half that has more.
    Change {
        None => "no change",
        SomeEnd => "some end half-way",
        SomeBegin => "some begin half-way",
        Exchange => "some end half-way and others begin",
    }
);
choices!(
    /// The worst case that is declared, beside the true one.
    Declared {
        Exactly => "declared exactly",
        /// Every task up to half as much again.
        Generously => "declared generously",
        /// All by the same factor, as on a slower CPU.
        TooSmall => "declared too small",
        /// A third of them by up to 3 either way.
        SomeWrong => "some declared wrong",
        Nothing => "nothing declared",
    }
);

/// What was drawn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Knobs {
    pub cores: usize,
    pub tasks: usize,
    /// Per CPU, of what really runs on average, hogs aside.
    pub load: f64,
    pub periods: Periods,
    pub times: Times,
    pub deadlines: Deadlines,
    pub start: Start,
    pub hogs: usize,
    pub change: Change,
    pub critical: bool,
    pub declared: Declared,
    /// Declared over true worst case, of all tasks together.
    pub declared_share: f64,
}

impl Knobs {
    /// Everything in a line.
    pub fn describe(&self) -> String {
        let many = |n: usize, what: &str| match n {
            1 => format!("1 {what}"),
            n => format!("{n} {what}s"),
        };
        let declared = match self.declared {
            Declared::Exactly | Declared::Nothing => self.declared.to_string(),
            _ => format!("{} ({:.2} in all)", self.declared, self.declared_share),
        };
        format!(
            "{}, {}, load {:.2} a CPU, {}, {}, {}, {}, {}, {}, {}, {declared}",
            many(self.cores, "CPU"),
            many(self.tasks, "task"),
            self.load,
            self.periods,
            self.times,
            self.deadlines,
            self.start,
            many(self.hogs, "hog"),
            self.change,
            match self.critical {
                true => "some critical",
                false => "none critical",
            },
        )
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Drawn {
    pub set: TaskSet,
    pub knobs: Knobs,
}

/// The set of this seed.
pub fn draw(options: &Options, seed: u64) -> Drawn {
    let stream = |number: u64| Rng::new(child_seed(seed, number));
    let cores = options.cores.unwrap_or([1, 2, 4][stream(1).below(3)]);
    let (low, high) = options.load.unwrap_or(TOURNAMENT.load);
    let load = stream(2).uniform(low, high);
    let total = load * cores as f64;
    let tasks = options
        .tasks
        .unwrap_or_else(|| some_tasks(&mut stream(3), total));
    let horizon_ns = options.horizon_ns.unwrap_or(HORIZON);
    let mut knobs = Knobs {
        cores,
        tasks,
        load,
        periods: chosen(options.periods, Periods::ALL, &mut stream(4)),
        times: chosen(options.times, Times::ALL, &mut stream(5)),
        deadlines: chosen(options.deadlines, Deadlines::ALL, &mut stream(6)),
        start: chosen(options.start, Start::ALL, &mut stream(7)),
        hogs: options
            .hogs
            .unwrap_or_else(|| some_hogs(&mut stream(8), cores)),
        change: options
            .change
            .unwrap_or_else(|| some_change(&mut stream(9))),
        critical: options.critical.unwrap_or_else(|| stream(10).chance(0.5)),
        declared: chosen(options.declared, Declared::ALL, &mut stream(11)),
        declared_share: 1.0,
    };
    let mut all = drawn_tasks(&knobs, total, horizon_ns, stream);
    knobs.declared_share = declare(&mut all, knobs.declared, &mut stream(18));
    for i in 0..knobs.hogs {
        all.push(Task::hog(format!("hog{}", i + 1), horizon_ns));
    }
    let set = TaskSet {
        name: format!("tournament-{seed}"),
        cores,
        horizon_ns,
        seed: child_seed(seed, 0),
        modes: Vec::new(),
        tasks: all,
    };
    Drawn { set, knobs }
}

/// As `sim` asks for it.
fn draw_shape(shape: &Shape, rng: &mut Rng) -> TaskSet {
    let options = Options {
        cores: Some(shape.cores),
        tasks: (shape.tasks > 0).then_some(shape.tasks),
        load: Some((shape.load, shape.load)),
        horizon_ns: Some(shape.horizon_ns),
        ..Options::default()
    };
    draw(&options, rng.next_u64()).set
}

fn chosen<T: Copy>(fixed: Option<T>, all: &[T], rng: &mut Rng) -> T {
    fixed.unwrap_or_else(|| all[rng.below(all.len())])
}

/// Rather few than many, and enough for none to need more than one CPU.
fn some_tasks(rng: &mut Rng, total: f64) -> usize {
    let fewest = FEWEST.max((1.5 * total).ceil() as usize);
    let drawn = rng.log_uniform(fewest as f64, (MOST + 1) as f64) as usize;
    drawn.clamp(fewest.min(MOST), MOST)
}

fn some_hogs(rng: &mut Rng, cores: usize) -> usize {
    match rng.chance(0.5) {
        true => 1 + rng.below(2 * cores),
        false => 0,
    }
}

fn some_change(rng: &mut Rng) -> Change {
    match rng.chance(0.5) {
        true => Change::ALL[1 + rng.below(Change::ALL.len() - 1)],
        false => Change::None,
    }
}

/// Part of the tasks of a set.
#[derive(Clone, Copy, PartialEq)]
enum Life {
    Whole,
    /// To the middle.
    Ends,
    /// From the middle on.
    Begins,
}

/// Lives and loads of all tasks.
fn lives(knobs: &Knobs, total: f64, rng: &mut Rng) -> Vec<(Life, f64)> {
    let n = knobs.tasks;
    let some = (n / 3).max(1);
    let of = |life: Life, loads: &[f64]| -> Vec<(Life, f64)> {
        loads.iter().map(|&load| (life, load)).collect()
    };
    let part = |life: Life, rng: &mut Rng| {
        let loads = uunifast(rng, n, total);
        let mut all = of(life, &loads[..some.min(n - 1)]);
        all.extend(of(Life::Whole, &loads[some.min(n - 1)..]));
        all
    };
    match knobs.change {
        Change::None => of(Life::Whole, &uunifast(rng, n, total)),
        Change::SomeEnd => part(Life::Ends, rng),
        Change::SomeBegin => part(Life::Begins, rng),
        // Who begins has the loads of those who end.
        Change::Exchange => {
            let loads = uunifast(rng, n - some.min(n / 2), total);
            let (going, staying) = loads.split_at(some.min(n / 2));
            let mut all = of(Life::Ends, going);
            all.extend(of(Life::Begins, going));
            all.extend(of(Life::Whole, staying));
            all
        }
    }
}

fn drawn_tasks(
    knobs: &Knobs,
    total: f64,
    horizon_ns: Ns,
    stream: impl Fn(u64) -> Rng,
) -> Vec<Task> {
    let (mut periods, mut starts) = (stream(12), stream(13));
    let (mut times, mut deadlines, mut critical) = (stream(14), stream(15), stream(16));
    let base = periods.log_uniform(PERIODS_MS.0, 16.0);
    let half = horizon_ns / 2;
    let lives = lives(knobs, total, &mut stream(17)).into_iter().enumerate();
    lives
        .map(|(i, (life, load))| {
            let (worst, execution) = vary(knobs.times, load, &mut times);
            let least = SHORTEST_JOB as f64 / (load * MS as f64);
            let period = match knobs.periods {
                Periods::LogUniform => log_uniform(&mut periods, least),
                Periods::Harmonic => harmonic(&mut periods, base, least),
            };
            let wcet = ((period as f64 * worst).round() as Ns).clamp(1, period);
            let mut task = Task::periodic(format!("T{}", i + 1), period, wcet);
            task.execution = execution;
            if knobs.deadlines == Deadlines::BeforePeriod {
                let share = deadlines.uniform(0.25, 1.0);
                task.deadline_ns = grained(wcet as f64 + (period - wcet) as f64 * share)
                    .clamp(wcet.next_multiple_of(GRAIN).min(period), period);
            }
            let apart = starts.below((period / GRAIN) as usize) as Ns * GRAIN;
            if knobs.start == Start::Apart {
                task.offset_ns = apart;
            }
            match life {
                Life::Whole => {}
                Life::Ends => task.end_ns = Some(half),
                Life::Begins => task.offset_ns += half,
            }
            let counts = critical.chance(0.2);
            task.criticality = u8::from(knobs.critical && counts);
            task
        })
        .collect()
}

fn grained(ns: f64) -> Ns {
    (ns / GRAIN as f64).round().max(1.0) as Ns * GRAIN
}

fn log_uniform(rng: &mut Rng, least_ms: f64) -> Ns {
    let (low, high) = PERIODS_MS;
    grained(rng.log_uniform(least_ms.clamp(low, high), high) * MS as f64)
}

/// The base doubled some times, so that the longest is no longer than allowed.
fn harmonic(rng: &mut Rng, base_ms: f64, least_ms: f64) -> Ns {
    let most = (PERIODS_MS.1 / base_ms).log2().floor() as u32;
    let least = (least_ms / base_ms)
        .max(1.0)
        .log2()
        .ceil()
        .min(f64::from(most)) as u32;
    let doubled = least + rng.below((most - least + 1) as usize) as u32;
    grained(base_ms * MS as f64) << doubled
}

/// Declares as asked for; returns the sum of what is declared over the true one.
/// Nobody declares more than the deadline, which the kernel would refuse.
fn declare(tasks: &mut [Task], kind: Declared, rng: &mut Rng) -> f64 {
    let common = rng.uniform(0.4, 0.9);
    let surely_wrong = rng.below(tasks.len());
    let (mut told, mut real) = (0.0, 0.0);
    for (i, task) in tasks.iter_mut().enumerate() {
        let (generous, wrong) = (rng.uniform(1.0, 1.5), rng.log_uniform(1.0 / 3.0, 3.0));
        let is_wrong = rng.chance(1.0 / 3.0) || i == surely_wrong;
        let factor = match kind {
            Declared::Exactly | Declared::Nothing => 1.0,
            Declared::Generously => generous,
            Declared::TooSmall => common,
            Declared::SomeWrong if is_wrong => wrong,
            Declared::SomeWrong => 1.0,
        };
        let runtime = (task.wcet_ns as f64 * factor).round() as Ns;
        let runtime = runtime.clamp(1, task.deadline_ns.max(task.wcet_ns));
        task.declared = match kind {
            Declared::Nothing => Declaration::Nothing,
            _ if runtime == task.wcet_ns => Declaration::Wcet,
            _ => Declaration::Runtime(runtime),
        };
        told += runtime as f64 / task.period_ns as f64;
        real += task.utilisation();
    }
    told / real
}

#[cfg(test)]
mod tests;
