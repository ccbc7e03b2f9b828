//! Which tasks a plan admits: as many as the CPUs can bear in the long run.

use super::claim::{Claim, Doubt};
use super::demand::Demand;

/// Up to so many tasks, and by looking at no more than so many combinations, the best choice
/// is searched for.
const FEW: usize = 64;
const LOOKS: u32 = 300;

/// In which order tasks are admitted. The critical always go first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// The kept tasks, then the others.
    Kept,
    /// The choice with the most jobs a second.
    Best,
    /// The shortest period first.
    Frequent,
    /// The shortest job first: the most jobs for the work.
    Short,
}

impl Order {
    /// The one to beat goes first.
    pub const ALL: [Order; 4] = [Order::Kept, Order::Best, Order::Frequent, Order::Short];
}

#[derive(Debug, Clone, Default)]
pub struct Members {
    order: Vec<u32>,
    members: Vec<u32>,
    items: Vec<Item>,
}

#[derive(Debug, Clone, Copy)]
struct Item {
    task: u32,
    load: f64,
    worth: f64,
}

impl Members {
    /// All tasks, the critical first, then by period.
    pub fn by_period(&mut self, claims: &[Claim]) -> &[u32] {
        self.members.clear();
        self.members.extend(0..claims.len() as u32);
        self.members.retain(|&at| claims[at as usize].asks());
        sort(&mut self.members, claims, |claim| claim.period);
        &self.members
    }

    /// Those admitted, the critical first, then by period; then those that were not, in the
    /// order of the choice.
    pub fn members(&self) -> &[u32] {
        &self.members
    }

    /// False where the order has nothing to offer.
    pub fn admit(&mut self, order: Order, claims: &[Claim], demand: &mut Demand) -> bool {
        self.order.clear();
        self.order.extend(0..claims.len() as u32);
        self.order.retain(|&at| claims[at as usize].asks());
        match order {
            Order::Kept => sort(&mut self.order, claims, |claim| {
                (f64::from(u8::from(!claim.kept))) * 1e15 + claim.period
            }),
            Order::Frequent => sort(&mut self.order, claims, |claim| claim.period),
            Order::Short | Order::Best => sort(&mut self.order, claims, Claim::cost),
        }
        if order == Order::Best && !self.search(claims, demand) {
            return false;
        }
        demand.clear();
        self.members.clear();
        let mut left = 0;
        for from in 0..self.order.len() {
            let at = self.order[from];
            let claim = &claims[at as usize];
            if demand.bears(claim, Doubt::Expected) {
                demand.bear(claim, Doubt::Expected);
                self.members.push(at);
            } else {
                self.order[left] = at;
                left += 1;
            }
        }
        sort(&mut self.members, claims, |claim| claim.period);
        self.members.extend_from_slice(&self.order[..left]);
        true
    }

    /// Puts the best choice of unbound tasks in front.
    fn search(&mut self, claims: &[Claim], demand: &Demand) -> bool {
        let claim_of = |at: u32| &claims[at as usize];
        if self.order.len() > FEW || claims.iter().any(|claim| claim.lane.is_some()) {
            return false;
        }
        self.items.clear();
        self.items.extend(self.order.iter().map(|&task| Item {
            task,
            load: claim_of(task).load(Doubt::Expected),
            worth: (1.0 + f64::from(claim_of(task).criticality) * 1e6) / claim_of(task).period,
        }));
        let value = |item: &Item| item.worth / item.load.max(1e-12);
        self.items.sort_unstable_by(|a, b| {
            let by_value = value(b).total_cmp(&value(a));
            by_value.then(a.task.cmp(&b.task))
        });
        let mut search = Search {
            items: &self.items,
            best: (0.0, 0),
            looks: LOOKS,
        };
        search.descend(0, demand.room(), 0.0, 0);
        let taken = search.best.1;
        let chosen = |at: usize| taken & (1 << at) != 0;
        self.order.clear();
        let items = || self.items.iter().enumerate();
        let ins = items().filter(|&(at, _)| chosen(at));
        self.order.extend(ins.map(|(_, item)| item.task));
        let outs = items().filter(|&(at, _)| !chosen(at));
        self.order.extend(outs.map(|(_, item)| item.task));
        true
    }
}

fn sort(order: &mut [u32], claims: &[Claim], key: impl Fn(&Claim) -> f64) {
    order.sort_unstable_by(|&a, &b| {
        let (one, other) = (&claims[a as usize], &claims[b as usize]);
        let critical = other.criticality.cmp(&one.criticality);
        let by_key = || key(one).total_cmp(&key(other));
        critical.then_with(by_key).then(a.cmp(&b))
    });
}

/// Every combination that may still beat the best, the dearest for its share last.
struct Search<'a> {
    items: &'a [Item],
    best: (f64, u64),
    looks: u32,
}

impl Search<'_> {
    fn descend(&mut self, at: usize, room: f64, worth: f64, taken: u64) {
        if worth > self.best.0 {
            self.best = (worth, taken);
        }
        let Some(item) = self.items.get(at) else {
            return;
        };
        if self.looks == 0 || worth + self.at_most(at, room) <= self.best.0 {
            return;
        }
        self.looks -= 1;
        if item.load <= room {
            let with = (room - item.load, worth + item.worth, taken | 1 << at);
            self.descend(at + 1, with.0, with.1, with.2);
        }
        self.descend(at + 1, room, worth, taken);
    }

    /// What the rest could add if the last of them could be taken in part.
    fn at_most(&self, at: usize, mut room: f64) -> f64 {
        let mut sum = 0.0;
        for item in &self.items[at..] {
            if item.load > room {
                return sum + item.worth * room / item.load;
            }
            sum += item.worth;
            room -= item.load;
        }
        sum
    }
}
