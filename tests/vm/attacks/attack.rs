//! The attacks: who does what, how many of them, and what must hold beyond what always must.
use clap::ValueEnum;

/// Who is who in the guest. The ids of `SUBORDINATE` belong to `EVIL` (/etc/subuid).
pub const HONEST: u32 = 1001;
pub const THIRD: u32 = 1003;
pub const EVIL: u32 = 65534;
pub const SECOND_EVIL: u32 = 1004;
pub const SUBORDINATE: u32 = 200_000;
/// Users who only declare.
const CROWD: u32 = 3_000;
const CROWD_USERS: u32 = 15;

/// In the order of the manual in tests/vm/adversary.sh.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Attack {
    Nothing,
    Leeway,
    BeforeEnd,
    Yield,
    Split,
    Fork,
    Stuck,
    Exec,
    SetUid,
    Redeclare,
    Names,
    Cgroups,
    Subordinate,
    Container,
    Foreign,
    Masks,
    Pile,
    WakeUps,
    Many,
    Forks,
    Connects,
    Silence,
    Requests,
    Churn,
    All,
}

/// What a thread of a band does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Act {
    Leeway,
    BeforeEnd,
    Yield,
    Split,
    Fork,
    Stuck,
    Exec,
    SetUid,
    Redeclare,
    Rename,
    Hog,
    Subordinate,
    Ask,
    Foreign,
    Masks,
    Pile,
    WakeUp,
    Many,
    ForkBomb,
    Connect,
    Silence,
    Request,
    Churn,
}

/// From where a band asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    Host,
    /// A cgroup of its user's own making, with the name that a rule has.
    NamedCgroup,
    PidNamespace,
    UserNamespace,
}

/// Processes of one user that do the same.
#[derive(Clone, Copy, Debug)]
pub struct Band {
    pub uid: u32,
    pub act: Act,
    pub place: Place,
    pub processes: u32,
    pub threads: usize,
}

impl Band {
    fn threads(uid: u32, act: Act, threads: usize) -> Band {
        Band {
            uid,
            act,
            place: Place::Host,
            processes: 1,
            threads,
        }
    }

    fn processes(uid: u32, act: Act, processes: u32) -> Band {
        Band {
            processes,
            ..Band::threads(uid, act, 1)
        }
    }

    fn at(place: Place, act: Act, threads: usize) -> Band {
        Band {
            place,
            ..Band::threads(EVIL, act, threads)
        }
    }
}

impl Attack {
    pub fn name(self) -> String {
        let value = self.to_possible_value().expect("none is skipped");
        value.get_name().to_string()
    }

    /// About a minute in all, and some of each kind.
    pub fn is_short(self) -> bool {
        use Attack::*;
        matches!(
            self,
            Split | Names | Subordinate | Foreign | Redeclare | All
        )
    }

    /// On a machine of so many CPUs.
    pub fn bands(self, cpus: usize) -> Vec<Band> {
        let full = 8 * cpus;
        let one = |act, threads| vec![Band::threads(EVIL, act, threads)];
        match self {
            Attack::Nothing => Vec::new(),
            Attack::Leeway => one(Act::Leeway, full),
            Attack::BeforeEnd => one(Act::BeforeEnd, full),
            Attack::Yield => one(Act::Yield, full),
            Attack::Split => one(Act::Split, 240),
            Attack::Fork => one(Act::Fork, full),
            // Its siblings gain what is given for whoever is stuck.
            Attack::Stuck => one(Act::Stuck, full),
            Attack::Exec => vec![Band::processes(EVIL, Act::Exec, full as u32)],
            Attack::SetUid => vec![Band::processes(EVIL, Act::SetUid, 4)],
            Attack::Redeclare => one(Act::Redeclare, full),
            Attack::Names => one(Act::Rename, 64),
            Attack::Cgroups => vec![Band::at(Place::NamedCgroup, Act::Hog, 16)],
            Attack::Subordinate => (0..20)
                .map(|i| Band::threads(SUBORDINATE + i, Act::Subordinate, 1))
                .collect(),
            Attack::Container => vec![
                Band::at(Place::PidNamespace, Act::Ask, 2),
                Band::at(Place::UserNamespace, Act::Ask, 2),
            ],
            Attack::Foreign => one(Act::Foreign, 4),
            Attack::Masks => one(Act::Masks, full),
            Attack::Pile => one(Act::Pile, full),
            Attack::WakeUps => one(Act::WakeUp, 120 * cpus),
            Attack::Many => (0..CROWD_USERS)
                .map(|i| Band::threads(CROWD + i, Act::Many, 256))
                .collect(),
            Attack::Forks => vec![Band::processes(EVIL, Act::ForkBomb, 8)],
            Attack::Connects => one(Act::Connect, 200),
            Attack::Silence => (0..10)
                .map(|i| Band::threads(CROWD + i, Act::Silence, 1))
                .collect(),
            Attack::Requests => one(Act::Request, 16),
            Attack::Churn => vec![Band::processes(EVIL, Act::Churn, 8)],
            Attack::All => vec![
                Band::threads(EVIL, Act::Leeway, full / 2),
                Band::threads(EVIL, Act::Split, 60),
                Band::threads(EVIL, Act::Fork, full / 4),
                Band::threads(EVIL, Act::Rename, 16),
                Band::threads(EVIL, Act::Foreign, 1),
                Band::threads(SECOND_EVIL, Act::Masks, full / 4),
                Band::threads(SECOND_EVIL, Act::Connect, 50),
                Band::threads(SECOND_EVIL, Act::Request, 4),
                Band::processes(SECOND_EVIL, Act::ForkBomb, 2),
                Band::threads(SUBORDINATE + 1, Act::Subordinate, 1),
                Band::threads(CROWD, Act::Many, 256),
            ],
        }
    }

    /// No more declarations than these may be granted.
    pub fn most_granted(self, cpus: usize) -> Option<u64> {
        match self {
            Attack::Names | Attack::Cgroups | Attack::Container | Attack::Foreign => Some(0),
            // A user's share is half of each CPU, and each of them wants a tenth of one.
            Attack::Subordinate => Some(5 * cpus as u64),
            Attack::Many => Some(4096 - 256),
            _ => None,
        }
    }
}
