//! Who runs in a case: a tree of cgroups, and tasks in its leaves.
use crate::sys::Class;

/// What a task does.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Work {
    /// Never sleeps.
    Hog,
    /// Runs for so long, then sleeps for so long from the moment it is done: one that is
    /// behind does not sleep less.
    Nap { run_us: u64, sleep_us: u64 },
    /// Forks processes that run for so long, one after the other.
    Forks { run_us: u64 },
    /// A command of the shell.
    Shell(&'static str),
    /// A thread with deadlines and a hog of nice 19, which share a mutex.
    Mutex { inherits: bool },
}

impl Work {
    /// The share of a CPU that it would use alone.
    pub fn demand(self) -> f64 {
        match self {
            Work::Nap { run_us, sleep_us } => run_us as f64 / (run_us + sleep_us) as f64,
            _ => 1.0,
        }
    }
}

/// A cgroup.
#[derive(Clone, PartialEq, Debug)]
pub struct Group {
    /// The index of another group of the scene; None: directly below the scene's own cgroup.
    pub parent: Option<usize>,
    /// cpu.weight.
    pub weight: u64,
    /// cpu.max, of 100 ms.
    pub quota_us: Option<u64>,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Member {
    pub name: String,
    /// A group that is nobody's parent: the kernel allows no tasks beside groups.
    pub group: usize,
    pub nice: i64,
    pub class: Class,
    /// None: root.
    pub uid: Option<u32>,
    pub work: Work,
    /// Declared to our scheduler: runtime and period in µs.
    pub hint_us: Option<(u64, u64)>,
}

#[derive(Clone, Default, PartialEq, Debug)]
pub struct Scene {
    pub groups: Vec<Group>,
    pub members: Vec<Member>,
    /// Whether cyclictest measures wake-ups, and in which group.
    pub interactive: Option<usize>,
    /// A member that must end by itself before the run does.
    pub awaited: Option<usize>,
}

impl Scene {
    /// A group of cpu.weight 100 where nothing else is said; its index.
    pub fn group(&mut self, parent: Option<usize>, weight: u64) -> usize {
        self.groups.push(Group {
            parent,
            weight,
            quota_us: None,
        });
        self.groups.len() - 1
    }

    /// A task of root, nice 0 and SCHED_OTHER.
    pub fn member(&mut self, name: &str, group: usize, work: Work) -> &mut Member {
        self.members.push(Member {
            name: name.to_string(),
            group,
            nice: 0,
            class: Class::Other,
            uid: None,
            work,
            hint_us: None,
        });
        self.members.last_mut().expect("one was added")
    }

    /// The cgroup's path below the scene's own.
    pub fn path(&self, group: usize) -> String {
        match self.groups[group].parent {
            Some(parent) => format!("{}/g{group}", self.path(parent)),
            None => format!("g{group}"),
        }
    }

    /// Whether the first group is the second, or below it.
    pub fn is_inside(&self, group: usize, outer: usize) -> bool {
        let parent = self.groups[group].parent;
        group == outer || parent.is_some_and(|parent| self.is_inside(parent, outer))
    }

    /// Whether tasks of the group are limited by cpu.max, its own or a parent's.
    pub fn is_limited(&self, group: usize) -> bool {
        let group = &self.groups[group];
        group.quota_us.is_some() || group.parent.is_some_and(|parent| self.is_limited(parent))
    }
}
