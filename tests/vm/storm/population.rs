//! Who lives on the machine: the tasks of a story and the cgroups they live in.
use crate::machine::Machine;
use crate::rng::Rng;
use crate::sets::Cpus;
pub use crate::sys::Class;
use std::fmt;

pub const MOST_TASKS: usize = 40;
/// The bound holds for fifty waiting tasks per CPU; with everybody on one CPU, and each of
/// the pairs and fork streams as two, we stay below.
const MOST_PER_CPU: usize = 10;

#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Kind {
    /// Never sleeps.
    Hog,
    /// Works for long, and sleeps now and then.
    Napper,
    /// Works a little in every period.
    Periodic,
    /// Starts one short process after the other.
    Forks,
    /// Passes a byte to a partner and back.
    Pair,
    /// Real-time, in short bursts.
    Fifo,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    pub kind: Kind,
    pub class: Class,
    pub nice: i64,
    pub cpus: Cpus,
    /// A leaf of `Population::groups`.
    pub group: Option<usize>,
    pub period_us: u64,
    pub work_us: u64,
    pub declared: bool,
    /// Sent to the background by a rule, whatever its rhythm.
    pub background: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    pub path: String,
    /// Only these hold tasks: the kernel allows none beside groups.
    pub leaf: bool,
    pub weight: u64,
    pub cpus: Option<Cpus>,
    /// Of `cpu.max`, per 100 ms.
    pub quota_us: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Population {
    pub groups: Vec<Group>,
    pub tasks: Vec<Task>,
}

/// Where a task may run: anywhere, in one cache, on one CPU, or on some.
pub fn some_cpus(rng: &mut Rng, machine: &Machine) -> Cpus {
    match rng.weighted(&[(0, 30), (1, 35), (2, 15), (3, 20)]) {
        0 => machine.all(),
        1 => machine.socket(rng.below(machine.sockets as u64) as usize),
        2 => Cpus::one(rng.below(machine.cpus() as u64) as usize),
        _ => match rng.next() & machine.all().0 {
            0 => machine.all(),
            some => Cpus(some),
        },
    }
}

pub fn some_weight(rng: &mut Rng) -> u64 {
    rng.pick(&[1, 10, 50, 100, 100, 500, 2000, 10000])
}

pub fn some_quota(rng: &mut Rng) -> u64 {
    rng.range(20_000, 200_000)
}

impl Population {
    pub fn generate(seed: u64, machine: &Machine) -> Population {
        let mut rng = Rng::stream(seed, "population");
        let groups = some_groups(&mut rng, machine);
        let leaves: Vec<usize> = (0..groups.len()).filter(|&g| groups[g].leaf).collect();
        let most = MOST_TASKS.min(machine.cpus() * MOST_PER_CPU);
        let count = rng.range(4, most as u64);
        let mut tasks: Vec<Task> = (0..count)
            .map(|_| some_task(&mut rng, machine, &leaves))
            .collect();
        // Each cache has work of its own that never ends, and no reason to look elsewhere.
        if machine.sockets > 1 && rng.chance(50) {
            keep_sockets_busy(&mut tasks, machine);
            tasks.push(nice_napper(&mut rng, machine));
        }
        if rng.chance(30) {
            tasks.push(fifo_task(&mut rng, machine));
        }
        Population { groups, tasks }
    }

    pub fn summary(&self, kept: impl Fn(usize) -> bool) -> String {
        let kinds = [
            Kind::Hog,
            Kind::Napper,
            Kind::Periodic,
            Kind::Forks,
            Kind::Pair,
            Kind::Fifo,
        ];
        let count = |kind| {
            let of_it = |&(at, task): &(usize, &Task)| task.kind == kind && kept(at);
            self.tasks.iter().enumerate().filter(of_it).count()
        };
        let counts = kinds.map(|kind| format!("{kind:?}:{}", count(kind)));
        format!(
            "{} groups:{}",
            counts.join(" ").to_lowercase(),
            self.groups.len()
        )
    }
}

fn some_groups(rng: &mut Rng, machine: &Machine) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for top in 0..rng.range(1, 3) {
        let mut path = format!("g{top}");
        // Two to three levels with the storm's own.
        for level in 0..rng.range(1, 2) {
            if level > 0 {
                groups.last_mut().expect("its parent").leaf = false;
                path += &format!("/g{level}");
            }
            groups.push(Group {
                path: path.clone(),
                leaf: true,
                weight: some_weight(rng),
                cpus: rng.chance(30).then(|| some_cpus(rng, machine)),
                quota_us: rng.chance(15).then(|| some_quota(rng)),
            });
        }
    }
    groups
}

fn some_task(rng: &mut Rng, machine: &Machine, leaves: &[usize]) -> Task {
    let kind = rng.weighted(&[
        (Kind::Hog, 35),
        (Kind::Napper, 20),
        (Kind::Periodic, 25),
        (Kind::Forks, 8),
        (Kind::Pair, 12),
    ]);
    let period_us = match kind {
        Kind::Periodic => rng.pick(&[5, 10, 16, 20, 33, 40, 50, 100]) * 1000,
        Kind::Napper => rng.pick(&[5, 20, 50, 200, 900]) * 1000,
        _ => 10_000,
    };
    let work_us = match kind {
        // A tenth of its period or less: the guest's CPUs are slow, and shared.
        Kind::Periodic => period_us * rng.range(2, 10) / 100,
        Kind::Napper => rng.range(10, 800) * 1000,
        Kind::Forks => rng.range(100, 5000),
        _ => 0,
    };
    Task {
        kind,
        class: rng.weighted(&[
            (Class::Other, 70),
            (Class::Batch, 12),
            (Class::Idle, 10),
            (Class::Ext, 8),
        ]),
        nice: match kind {
            Kind::Napper if rng.chance(50) => rng.range(1, 19) as i64,
            _ if rng.chance(40) => rng.range(0, 39) as i64 - 20,
            _ => 0,
        },
        cpus: some_cpus(rng, machine),
        group: rng.chance(50).then(|| rng.pick(leaves)),
        period_us,
        work_us,
        declared: kind == Kind::Periodic && rng.chance(50),
        background: rng.chance(if kind == Kind::Napper { 50 } else { 15 }),
    }
}

/// The first tasks become hogs that stay in one socket each, one more than it has CPUs, but
/// in the first, where some CPUs are left.
fn keep_sockets_busy(tasks: &mut [Task], machine: &Machine) {
    let each = machine.cpus() / machine.sockets;
    let homes = (0..machine.sockets).flat_map(|socket| {
        let hogs = if socket == 0 { each / 2 } else { each + 1 };
        std::iter::repeat_n(socket, hogs)
    });
    for (task, socket) in tasks.iter_mut().zip(homes) {
        *task = Task {
            kind: Kind::Hog,
            cpus: machine.socket(socket),
            group: None,
            work_us: 0,
            declared: false,
            ..task.clone()
        };
    }
}

/// Long work and short naps, where CPUs are left, of little weight: it still counts as a hog
/// when it wakes up from a long nap.
fn nice_napper(rng: &mut Rng, machine: &Machine) -> Task {
    Task {
        kind: Kind::Napper,
        class: rng.pick(&[Class::Other, Class::Batch, Class::Idle]),
        nice: rng.range(10, 19) as i64,
        cpus: machine.socket(0),
        group: None,
        period_us: rng.range(5, 50) * 1000,
        work_us: rng.range(10, 100) * 1000,
        declared: false,
        background: rng.chance(50),
    }
}

/// At most 30 ms in 500: the real-time class never owns a CPU.
fn fifo_task(rng: &mut Rng, machine: &Machine) -> Task {
    Task {
        kind: Kind::Fifo,
        class: Class::Fifo,
        nice: 0,
        cpus: some_cpus(rng, machine),
        group: None,
        period_us: rng.range(500, 1500) * 1000,
        work_us: rng.range(1, 30) * 1000,
        declared: false,
        background: false,
    }
}

impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(
            f,
            "{:?}, {:?}, nice {}, on CPUs {}",
            self.kind, self.class, self.nice, self.cpus
        )?;
        if let Some(group) = self.group {
            write!(f, ", in group {group}")?;
        }
        if self.work_us > 0 {
            write!(f, ", {} us of {} us", self.work_us, self.period_us)?;
        }
        f.write_str(if self.declared { ", declared" } else { "" })?;
        f.write_str(if self.background { ", background" } else { "" })
    }
}
