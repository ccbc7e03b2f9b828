//! What happens to the machine and its population, and when. Every story leaves out some
//! kinds of events and stresses others (swarm testing), because a fault that needs two
//! kinds often hides where all kinds come at once.
use crate::machine::Machine;
use crate::population::{some_cpus, some_quota, some_weight, Class, Kind, Population};
use crate::rng::Rng;
use crate::sets::Cpus;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    Affinity {
        task: usize,
        cpus: Cpus,
    },
    /// The task is told to sleep for so long, and moved meanwhile to CPUs that it could not
    /// use before.
    MoveAsleep {
        task: usize,
        cpus: Cpus,
        nap_ms: u64,
    },
    Cpuset {
        group: usize,
        cpus: Cpus,
    },
    Regroup {
        task: usize,
        group: Option<usize>,
    },
    Weight {
        group: usize,
        weight: u64,
    },
    Limit {
        group: usize,
        quota_us: Option<u64>,
    },
    Nice {
        task: usize,
        nice: i64,
    },
    Class {
        task: usize,
        class: Class,
    },
    /// SCHED_FIFO for so long, and back.
    BrieflyFifo {
        task: usize,
        for_ms: u64,
    },
    Stop {
        task: usize,
        for_ms: u64,
    },
    Declare {
        task: usize,
        runtime_us: u64,
        period_us: u64,
    },
    Clear {
        task: usize,
    },
    Yields {
        task: usize,
        count: u64,
    },
    Exec {
        task: usize,
    },
    Respawn {
        task: usize,
    },
    Offline {
        cpus: Cpus,
        for_ms: u64,
    },
    DaemonStop {
        for_ms: u64,
    },
    DaemonKill,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Event {
    pub at_ms: u64,
    pub what: What,
}

/// Nothing happens in the first moments, and nothing that takes long near the end.
const QUIET_START_MS: u64 = 1000;
/// Many an event helps somebody whom an earlier one got stuck. So most storms come in gusts,
/// and all end early, with lulls that are longer than anybody may wait.
const LULL_MS: u64 = 6000;
const LONG_END_MS: u64 = 10_000;
/// A reload takes seconds in an emulator, during which the kernel's own scheduler is in
/// charge and nothing of ours is tested.
const BETWEEN_RELOADS_MS: u64 = 12_000;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Sort {
    Affinity,
    MoveAsleep,
    Cpuset,
    Regroup,
    Weight,
    Limit,
    Nice,
    Class,
    BrieflyFifo,
    Stop,
    Declare,
    Clear,
    Yields,
    Exec,
    Respawn,
    Offline,
    DaemonStop,
    DaemonKill,
}

/// Each kind with its weight, and in how many of a hundred stories it comes at all.
const SORTS: [(Sort, u64, u64); 18] = [
    (Sort::Affinity, 20, 75),
    (Sort::MoveAsleep, 15, 75),
    (Sort::Cpuset, 8, 60),
    (Sort::Regroup, 10, 60),
    (Sort::Weight, 6, 60),
    (Sort::Limit, 3, 25),
    (Sort::Nice, 8, 60),
    (Sort::Class, 8, 60),
    (Sort::BrieflyFifo, 6, 50),
    (Sort::Stop, 8, 60),
    (Sort::Declare, 8, 60),
    (Sort::Clear, 4, 50),
    (Sort::Yields, 5, 60),
    (Sort::Exec, 5, 60),
    (Sort::Respawn, 5, 60),
    (Sort::Offline, 4, 30),
    (Sort::DaemonStop, 3, 40),
    (Sort::DaemonKill, 3, 25),
];

pub fn generate(seed: u64, seconds: u64, machine: &Machine, people: &Population) -> Vec<Event> {
    let mut rng = Rng::stream(seed, "events");
    let mut sorts: Vec<(Sort, u64)> = Vec::new();
    for (sort, weight, percent) in SORTS {
        let weight = weight * rng.pick(&[1, 1, 2, 5]);
        if rng.chance(percent) {
            sorts.push((sort, weight));
        }
    }
    if sorts.is_empty() {
        sorts.push((Sort::Affinity, 1));
    }
    let pause = 1000 / rng.range(2, 8);
    let gust_ms = rng.range(1, 8) * 1000;
    let lull_ms = rng.weighted(&[(0, 30), (LULL_MS, 70)]);
    let mut lull_at = QUIET_START_MS + gust_ms;
    let (mut at_ms, mut reload_at) = (QUIET_START_MS, 0);
    let mut events = Vec::new();
    loop {
        at_ms += rng.range(1, 2 * pause);
        if at_ms >= lull_at {
            at_ms += lull_ms;
            lull_at = at_ms + gust_ms;
        }
        if at_ms + LULL_MS >= seconds * 1000 {
            return events;
        }
        let sort = rng.weighted(&sorts);
        let what = some_event(&mut rng, sort, machine, people);
        let long = matches!(
            sort,
            Sort::Offline | Sort::DaemonKill | Sort::DaemonStop | Sort::Stop
        );
        if long && at_ms + LONG_END_MS > seconds * 1000 {
            continue;
        }
        if matches!(sort, Sort::Offline | Sort::DaemonKill) {
            if at_ms < reload_at {
                continue;
            }
            reload_at = at_ms + BETWEEN_RELOADS_MS;
        }
        events.extend(what.map(|what| Event { at_ms, what }));
    }
}

/// Nothing where the machine or the population does not allow it.
fn some_event(rng: &mut Rng, sort: Sort, machine: &Machine, people: &Population) -> Option<What> {
    let task = rng.below(people.tasks.len() as u64) as usize;
    let group = rng.below(people.groups.len() as u64) as usize;
    let leaves: Vec<usize> = (0..people.groups.len())
        .filter(|&g| people.groups[g].leaf)
        .collect();
    let cpus = some_cpus(rng, machine);
    let kind = people.tasks[task].kind;
    // Who is real-time stays so: its bursts are what keeps it harmless.
    let is_fifo = kind == Kind::Fifo;
    Some(match sort {
        Sort::Affinity => What::Affinity { task, cpus },
        Sort::MoveAsleep => {
            // Who naps between long pieces of work is what schedulers are least sure of.
            let nappers: Vec<usize> = (0..people.tasks.len())
                .filter(|&t| people.tasks[t].kind == Kind::Napper)
                .collect();
            let task = match nappers.is_empty() || rng.chance(30) {
                true => task,
                false => rng.pick(&nappers),
            };
            let socket = machine.socket(rng.below(machine.sockets as u64) as usize).0;
            let elsewhere = machine.all().0 & !people.tasks[task].cpus.0;
            let there = match rng.chance(70) {
                true => socket & elsewhere,
                false => elsewhere,
            };
            let target = Cpus(if there == 0 { socket } else { there });
            What::MoveAsleep {
                task,
                cpus: target,
                nap_ms: rng.range(100, 800),
            }
        }
        Sort::Cpuset => What::Cpuset { group, cpus },
        Sort::Regroup => What::Regroup {
            task,
            group: rng.chance(80).then(|| rng.pick(&leaves)),
        },
        Sort::Weight => What::Weight {
            group,
            weight: some_weight(rng),
        },
        Sort::Limit => What::Limit {
            group,
            quota_us: rng.chance(50).then(|| some_quota(rng)),
        },
        Sort::Nice => What::Nice {
            task,
            nice: rng.range(0, 39) as i64 - 20,
        },
        Sort::Class if !is_fifo => What::Class {
            task,
            class: rng.pick(&[Class::Other, Class::Batch, Class::Idle, Class::Ext]),
        },
        Sort::BrieflyFifo if !is_fifo => What::BrieflyFifo {
            task,
            for_ms: rng.range(1, 40),
        },
        Sort::Stop => What::Stop {
            task,
            for_ms: rng.range(1, 1500),
        },
        Sort::Declare if !is_fifo => {
            let period_us = rng.pick(&[5, 10, 20, 40, 100]) * 1000;
            // Hogs are declared too: for less than they use, as a liar would, or for most of a
            // CPU, so that hardly anything is left for others.
            let percent = match rng.range(2, 30) {
                large @ 26.. => 50 + 10 * (large - 26),
                small => small,
            };
            What::Declare {
                task,
                runtime_us: period_us * percent / 100,
                period_us,
            }
        }
        Sort::Clear => What::Clear { task },
        Sort::Yields if !is_fifo => What::Yields {
            task,
            count: rng.range(100, 20_000),
        },
        Sort::Exec => What::Exec { task },
        Sort::Respawn => What::Respawn { task },
        Sort::Offline => {
            // CPU 0 of a PC cannot go.
            let socket = machine.socket(rng.below(machine.sockets as u64) as usize);
            let one = rng.below(machine.cpus() as u64) as usize;
            let cpus = if rng.chance(40) { socket.0 } else { 1 << one } & !1;
            if cpus == 0 {
                return None;
            }
            What::Offline {
                cpus: Cpus(cpus),
                for_ms: rng.range(200, 4000),
            }
        }
        Sort::DaemonStop => What::DaemonStop {
            for_ms: rng.range(50, 3000),
        },
        Sort::DaemonKill => What::DaemonKill,
        _ => return None,
    })
}

impl What {
    /// Without that task there is no event.
    pub fn task(&self) -> Option<usize> {
        match *self {
            What::Affinity { task, .. }
            | What::MoveAsleep { task, .. }
            | What::Regroup { task, .. }
            | What::Nice { task, .. }
            | What::Class { task, .. }
            | What::BrieflyFifo { task, .. }
            | What::Stop { task, .. }
            | What::Declare { task, .. }
            | What::Clear { task }
            | What::Yields { task, .. }
            | What::Exec { task }
            | What::Respawn { task } => Some(task),
            _ => None,
        }
    }
}
