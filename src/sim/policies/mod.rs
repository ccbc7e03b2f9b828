//! The classic schedulers, one file each, behind one trait.

mod decided;
mod distilled;
mod dm;
mod dover;
mod dp_wrap;
mod edf;
mod edf_drop;
mod edzl;
mod eevdf;
mod fcfs;
mod llf;
mod moore_hodgson;
mod partitioned;
mod random;
mod rm;
mod shedding;
mod srpt;
mod waiting;

pub use decided::{ask_again, carry_out, overload_rule, run_all, Decided};
pub use distilled::Distilled;
pub use dm::DeadlineMonotonic;
pub use dover::Dover;
pub use dp_wrap::DpWrap;
pub use edf::Edf;
pub use edf_drop::EdfDrop;
pub use edzl::Edzl;
pub use eevdf::Eevdf;
pub use fcfs::Fcfs;
pub use llf::Llf;
pub use moore_hodgson::{MooreHodgson, Order};
pub use partitioned::Partitioned;
pub use random::Random;
pub use rm::RateMonotonic;
pub use shedding::Shedding;
pub use srpt::Srpt;
pub use waiting::Hopeless;

use super::engine::{Plan, ReadyJob, TaskId, View};
use super::task::{Task, TaskSet};
use super::time::Ns;
use crate::policy::network::{Model, Native, Precision};
use crate::policy::{self, DistilledRule, PolicyConfig};
use crate::spelling;
use std::sync::LazyLock;

/// Decides which jobs run whenever something has happened.
pub trait Policy {
    /// Called once before a run; forget the last one.
    fn start(&mut self, _set: &TaskSet, _cores: usize) {}

    /// The order of this policy, if it never changes while a job lives: the
    /// engine then needs no decisions at all.
    fn key(&self) -> Option<Key> {
        None
    }

    fn decide(&mut self, view: &View, plan: &mut Plan);
}

/// An order that is fixed for the life of a job; the least runs first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    Release,
    Period,
    RelativeDeadline,
    Deadline,
}

impl Key {
    pub(super) fn of(self, job: &ReadyJob, task: &Task) -> Ns {
        match self {
            Key::Release => job.release,
            Key::Period => task.period_ns,
            Key::RelativeDeadline => task.deadline_ns,
            Key::Deadline => job.deadline,
        }
    }
}

fn decide_by_key(view: &View, plan: &mut Plan, key: Key) {
    Best::default().run_least(view, plan, |job| key.of(job, view.task(job)));
}

/// Picks the least m jobs; keeps its buffer between decisions.
pub struct Best<K> {
    /// The least so far, in order, never more than m: nearly all jobs of a long
    /// queue are turned away by one comparison with the last of them.
    least: Vec<(K, bool, TaskId)>,
}

impl<K> Default for Best<K> {
    fn default() -> Self {
        Self { least: Vec::new() }
    }
}

impl<K: Ord + Copy> Best<K> {
    /// Runs the m jobs of least rank; on a tie a running job stays, then the
    /// lower task number.
    fn run_least(&mut self, view: &View, plan: &mut Plan, mut rank: impl FnMut(&ReadyJob) -> K) {
        self.clear();
        for job in view.jobs {
            let rank = rank(job);
            // Most need no closer look.
            if self.worst(view.cores).is_none_or(|worst| rank <= worst.0) {
                self.offer(view.cores, (rank, !job.is_running(), job.task));
            }
        }
        self.run(plan);
    }

    pub fn clear(&mut self) {
        self.least.clear();
    }

    /// The last of m, if there are that many.
    fn worst(&self, cores: usize) -> Option<&(K, bool, TaskId)> {
        self.least.last().filter(|_| self.least.len() == cores)
    }

    /// False if there are m better ones.
    #[inline]
    fn offer(&mut self, cores: usize, rank: (K, bool, TaskId)) -> bool {
        let is_in = self.worst(cores).is_none_or(|worst| rank < *worst);
        if is_in {
            self.least.truncate(cores - 1);
            let place = self.least.partition_point(|better| *better < rank);
            self.least.insert(place, rank);
        }
        is_in
    }

    /// Those that are in, the best first.
    pub fn tasks(&self) -> impl Iterator<Item = TaskId> + '_ {
        self.least.iter().map(|&(_, _, task)| task)
    }

    pub fn run(&self, plan: &mut Plan) {
        self.tasks().for_each(|task| plan.run(task));
    }
}

/// A policy by name.
#[derive(Clone, Copy)]
pub struct Entry {
    pub name: &'static str,
    pub about: &'static str,
    pub make: fn() -> Box<dyn Policy>,
    /// Where it belongs in a comparison: on one core, on several, or both.
    pub one_core: bool,
    pub many_cores: bool,
}

macro_rules! entry {
    ($name:literal, $about:literal, $one:literal, $many:literal, $make:expr) => {
        Entry {
            name: $name,
            about: $about,
            make: || Box::new($make),
            one_core: $one,
            many_cores: $many,
        }
    };
}

/// Every policy `sim` knows.
pub const POLICIES: &[Entry] = &[
    entry!("fcfs", "first come, first served", true, true, Fcfs),
    entry!("rm", "rate monotonic", true, true, RateMonotonic),
    entry!("dm", "deadline monotonic", true, true, DeadlineMonotonic),
    entry!(
        "plain-edf",
        "earliest deadline first and nothing else",
        true,
        true,
        Edf
    ),
    entry!(
        "eevdf",
        "Linux's own scheduler (6.12): shares by nice level, no deadlines",
        true,
        true,
        Eevdf::default()
    ),
    entry!(
        "llf",
        "least laxity first",
        true,
        true,
        Llf::new(Hopeless::Keep)
    ),
    entry!(
        "srpt",
        "shortest remaining processing time",
        true,
        true,
        Srpt::default()
    ),
    entry!(
        "edf-drop",
        "EDF without hopeless jobs",
        true,
        true,
        EdfDrop::default()
    ),
    entry!(
        "edf",
        "what the scheduler's own --policy edf does: some are given up in overload",
        false,
        false,
        Shedding::default()
    ),
    entry!(
        "llf-drop",
        "LLF without hopeless jobs",
        true,
        true,
        Llf::new(Hopeless::Drop)
    ),
    entry!(
        "mh",
        "Moore-Hodgson admission, then EDF",
        true,
        true,
        MooreHodgson::new(Order::Deadline)
    ),
    entry!(
        "mh-llf",
        "Moore-Hodgson admission, then LLF",
        false,
        true,
        MooreHodgson::new(Order::Laxity)
    ),
    entry!(
        "dover",
        "D-over; one copy per core",
        true,
        true,
        Partitioned::new(|| Box::new(Dover::default()))
    ),
    entry!(
        "edzl",
        "EDF until zero laxity",
        false,
        true,
        Edzl::default()
    ),
    entry!(
        "dp-wrap",
        "optimal on m cores up to U = m",
        false,
        true,
        DpWrap::default()
    ),
    entry!(
        "p-rm",
        "partitioned RM",
        false,
        true,
        Partitioned::new(|| Box::new(RateMonotonic))
    ),
    entry!(
        "p-edf",
        "partitioned EDF",
        false,
        true,
        Partitioned::new(|| Box::new(Edf))
    ),
    entry!(
        "distilled",
        "the paper's distilled rule",
        true,
        true,
        Distilled::default()
    ),
    entry!(
        "distilled-shield",
        "the distilled rule under the shield",
        true,
        false,
        Decided::shielded(DistilledRule::default())
    ),
    entry!(
        "srpt-shield",
        "shortest remaining work under the shield",
        true,
        false,
        Decided::shielded(policy::Srpt)
    ),
    entry!(
        "temponet",
        "the shipped network under the shield",
        false,
        false,
        temponet()
    ),
    entry!("random", "any ready job", true, true, Random::default()),
];

fn temponet() -> Decided<Native> {
    static SHIPPED: LazyLock<(PolicyConfig, Native)> = LazyLock::new(|| {
        let model = Model::shipped();
        let config = PolicyConfig {
            tokenizer: model.tokenizer().clone(),
            ..PolicyConfig::default()
        };
        (config, Native::new(model.weights(), Precision::Float))
    });
    let (config, native) = &*SHIPPED;
    Decided::for_machine(config.clone(), native.clone())
}

pub fn find(name: &str) -> Option<&'static Entry> {
    POLICIES.iter().find(|entry| entry.name == name)
}

/// What to say of a name that no policy has.
pub fn unknown(name: &str) -> String {
    if name == "edf-kernel" {
        return "edf-kernel is called edf, as everywhere else".into();
    }
    let known: Vec<&str> = POLICIES.iter().map(|entry| entry.name).collect();
    format!(
        "there is no policy called {name:?}{}; policies are {}",
        spelling::did_you_mean(name, &known),
        known.join(", ")
    )
}
