//! What the machine, and each user, may declare.
//!
//! Every declaration costs its density (runtime / deadline). The sum over all
//! declarations is bounded, root's included, because beyond it nobody's
//! deadlines mean anything; the sum over one user's is bounded below that, so
//! that one user cannot declare the others away, and all users together leave a part
//! to root, who has to be able to declare whatever they do. The bounds are given per
//! online CPU and can be raised above 1, because an overload declared on
//! purpose (a test, a graceful-degradation set-up) is legitimate.
//!
//! Tasks that are confined to some of the CPUs share those only, which the sums do not
//! see: when an ordinary user declares, their density there may not pass the number of
//! these CPUs. Root is spared: root can confine what it likes anyway, and overloading one
//! CPU is how overload is tested.

use super::cpus::CpuSet;
use super::Hint;
use thiserror::Error;

/// Rounding slack: nobody is refused for 0.1 + 0.2.
const EPSILON: f64 = 1e-9;

#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// Declared density in all, in CPUs per online CPU.
    pub util_max: f64,
    /// The same for each user but root; never more than `util_max`.
    pub util_user: f64,
    /// Of `util_max`, what only root may declare: users together cannot keep root out.
    pub util_root: f64,
    /// Number of declarations per user but root. Each costs the daemon a file
    /// descriptor, so `hints_max` bounds root as well.
    pub hints_user: usize,
    pub hints_max: usize,
    /// Of `hints_max`, those that only root may make; never more than half of them.
    pub hints_root: usize,
    /// Highest criticality a user other than root may claim. Criticality says
    /// who is kept when not all can be, so without a bound everybody would be
    /// mission critical.
    pub criticality_user: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            // The rest is for what declares nothing: EDF needs none of it, the
            // shell one wants to type `kill` into does.
            util_max: 0.95,
            // Half, so that a second user finds room.
            util_user: 0.5,
            util_root: 0.1,
            hints_user: 256,
            hints_max: 4096,
            hints_root: 256,
            criticality_user: 1,
        }
    }
}

/// What one declaration costs, and whom.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Charge {
    /// Who declared, which is not always whose task it is; of a subordinate id its owner.
    pub uid: u32,
    pub density: f64,
    /// The CPUs that the task could use when it was declared.
    pub cpus: CpuSet,
}

impl Charge {
    pub fn new(uid: u32, hint: &Hint, cpus: CpuSet) -> Self {
        Self {
            uid,
            density: hint.density(),
            cpus,
        }
    }
}

#[derive(Clone, Debug, Error, PartialEq)]
pub enum Refusal {
    #[error("all users together have declared {declared:.2} of {limit:.2} CPUs; this hint would add {added:.2}")]
    Machine {
        declared: f64,
        limit: f64,
        added: f64,
    },
    #[error("all users but root together have declared {declared:.2} of {limit:.2} CPUs; this hint would add {added:.2}")]
    Users {
        declared: f64,
        limit: f64,
        added: f64,
    },
    #[error(
        "user {uid} has declared {declared:.2} of {limit:.2} CPUs; this hint would add {added:.2}"
    )]
    User {
        uid: u32,
        declared: f64,
        limit: f64,
        added: f64,
    },
    #[error("tasks confined to CPU {cpus} have declared {declared:.2} of {}; this hint would add {added:.2}", .cpus.len())]
    Cpus {
        /// Boxed: a set is larger than all the rest.
        cpus: Box<CpuSet>,
        declared: f64,
        added: f64,
    },
    #[error("user {uid} has declared {limit} tasks, the most allowed")]
    UserCount { uid: u32, limit: usize },
    #[error("all users but root together have declared {limit} tasks, the most allowed")]
    UsersCount { limit: usize },
    #[error("{limit} tasks have been declared, the most allowed")]
    Count { limit: usize },
    #[error("criticality {asked} is for root; user {uid} may declare at most {limit}")]
    Criticality { uid: u32, asked: u32, limit: u32 },
}

impl Refusal {
    /// EBUSY is what sched_setattr says when SCHED_DEADLINE admission fails.
    pub fn errno(&self) -> i32 {
        match self {
            Self::Criticality { .. } => libc::EPERM,
            _ => libc::EBUSY,
        }
    }
}

impl Limits {
    /// May `hint` be added to the charges of all other declared tasks?
    pub fn admit<'a>(
        &self,
        online: &CpuSet,
        others: impl Iterator<Item = &'a Charge> + Clone,
        hint: &Hint,
        charge: &Charge,
    ) -> Result<(), Refusal> {
        let root = charge.uid == 0;
        let [mut all, mut users, mut user] = [Sum::default(); 3];
        for other in others.clone() {
            all.add(other);
            if other.uid != 0 {
                users.add(other);
            }
            if other.uid == charge.uid {
                user.add(other);
            }
        }

        if !root && hint.criticality() > self.criticality_user {
            return Err(Refusal::Criticality {
                uid: charge.uid,
                asked: hint.criticality(),
                limit: self.criticality_user,
            });
        }
        if !root && user.count >= self.hints_user {
            return Err(Refusal::UserCount {
                uid: charge.uid,
                limit: self.hints_user,
            });
        }
        let limit = self.hints_max - self.hints_root.min(self.hints_max / 2);
        if !root && users.count >= limit {
            return Err(Refusal::UsersCount { limit });
        }
        if all.count >= self.hints_max {
            return Err(Refusal::Count {
                limit: self.hints_max,
            });
        }

        let cpus = online.len().max(1) as f64;
        let added = charge.density;
        let limit = self.util_user.min(self.util_max) * cpus;
        if !root && user.density + added > limit + EPSILON {
            return Err(Refusal::User {
                uid: charge.uid,
                declared: user.density,
                limit,
                added,
            });
        }
        let limit = (self.util_max - self.util_root).max(0.0) * cpus;
        if !root && users.density + added > limit + EPSILON {
            return Err(Refusal::Users {
                declared: users.density,
                limit,
                added,
            });
        }
        let limit = self.util_max * cpus;
        if all.density + added > limit + EPSILON {
            return Err(Refusal::Machine {
                declared: all.density,
                limit,
                added,
            });
        }
        match root {
            true => Ok(()),
            false => check_confined(online, others, charge),
        }
    }
}

/// Tasks that may use only some of the CPUs that are online must fit there. Looked at are
/// the CPUs of the new task, then those of all tasks that can meet it there, and so on: so
/// a ring of overlapping sets is seen as well.
fn check_confined<'a>(
    online: &CpuSet,
    others: impl Iterator<Item = &'a Charge> + Clone,
    charge: &Charge,
) -> Result<(), Refusal> {
    let confined = others
        .map(|other| (other.cpus.and(online), other.density))
        .filter(|(cpus, _)| !cpus.is_empty() && cpus != online);
    let mut region = charge.cpus.and(online);
    while !region.is_empty() && region != *online {
        let within = confined.clone().filter(|(cpus, _)| cpus.is_within(&region));
        let declared: f64 = within.map(|(_, density)| density).sum();
        if declared + charge.density > region.len() as f64 + EPSILON {
            return Err(Refusal::Cpus {
                cpus: Box::new(region),
                declared,
                added: charge.density,
            });
        }
        let meeting = confined
            .clone()
            .filter(|(cpus, _)| !cpus.and(&region).is_empty());
        let wider = meeting.fold(region, |all, (cpus, _)| all.or(&cpus));
        if wider == region {
            break;
        }
        region = wider;
    }
    Ok(())
}

/// Summed anew for every request: a few thousand additions at most, and no
/// rounding error that would pile up over months of declaring and clearing.
#[derive(Clone, Copy, Default)]
struct Sum {
    density: f64,
    count: usize,
}

impl Sum {
    fn add(&mut self, charge: &Charge) {
        self.density += charge.density;
        self.count += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn hint(runtime_ms: u64, deadline_ms: u64) -> Hint {
        Hint::new(runtime_ms * MS, deadline_ms * MS, deadline_ms * MS, 0).unwrap()
    }

    /// On one CPU, or on any.
    fn set(pinned: Option<u32>) -> CpuSet {
        pinned.map_or(CpuSet::ALL, |cpu| [cpu].into_iter().collect())
    }

    fn charge(uid: u32, density: f64, pinned: Option<u32>) -> Charge {
        Charge {
            uid,
            density,
            cpus: set(pinned),
        }
    }

    fn ask(
        limits: &Limits,
        cpus: usize,
        others: &[Charge],
        uid: u32,
        hint: Hint,
        pinned: Option<u32>,
    ) -> Result<(), Refusal> {
        let charge = Charge::new(uid, &hint, set(pinned));
        limits.admit(&CpuSet::first(cpus), others.iter(), &hint, &charge)
    }

    #[test]
    fn one_user_cannot_declare_the_machine() {
        let limits = Limits::default();
        let others = [charge(1000, 0.92, None)];
        let refusal = ask(&limits, 2, &others, 1000, hint(33, 100), None).unwrap_err();
        assert_eq!(
            refusal.to_string(),
            "user 1000 has declared 0.92 of 1.00 CPUs; this hint would add 0.33"
        );
        assert_eq!(refusal.errno(), libc::EBUSY);
        ask(&limits, 2, &others, 1001, hint(33, 100), None).unwrap();
    }

    #[test]
    fn the_machine_is_bounded_for_root_as_well() {
        let limits = Limits::default();
        let others = [charge(1000, 0.5, None), charge(0, 0.4, None)];
        let refusal = ask(&limits, 1, &others, 0, hint(10, 100), None).unwrap_err();
        assert_eq!(
            refusal.to_string(),
            "all users together have declared 0.90 of 0.95 CPUs; this hint would add 0.10"
        );
    }

    #[test]
    fn many_users_together_leave_root_its_part() {
        let limits = Limits::default();
        let others: Vec<_> = (1000..1008).map(|uid| charge(uid, 0.2, None)).collect();
        let refusal = ask(&limits, 2, &others, 2000, hint(11, 100), None).unwrap_err();
        assert_eq!(
            refusal.to_string(),
            "all users but root together have declared 1.60 of 1.70 CPUs; this hint would add 0.11"
        );
        ask(&limits, 2, &others, 2000, hint(10, 100), None).unwrap();
        ask(&limits, 2, &others, 0, hint(30, 100), None).unwrap();
        let limits = Limits {
            hints_max: 8,
            hints_root: 2,
            ..limits
        };
        let six = &others[..6];
        let refusal = ask(&limits, 2, six, 2000, hint(1, 100), None).unwrap_err();
        assert_eq!(refusal, Refusal::UsersCount { limit: 6 });
        ask(&limits, 2, six, 0, hint(1, 100), None).unwrap();
    }

    #[test]
    fn exactly_full_is_admitted_despite_rounding() {
        let limits = Limits {
            util_max: 0.6,
            ..Limits::default()
        };
        let others = [charge(0, 0.1, None), charge(0, 0.2, None)];
        ask(&limits, 1, &others, 0, hint(3, 10), None).unwrap();
    }

    /// Issue tests: U = 1.3 and U = 1.5 on one CPU of a two-CPU guest.
    #[test]
    fn root_may_overload_one_cpu_of_two_by_default() {
        let pinned: Vec<_> = (0..4).map(|_| charge(0, 0.3, Some(0))).collect();
        ask(&Limits::default(), 2, &pinned, 0, hint(30, 100), Some(0)).unwrap();
    }

    #[test]
    fn overload_can_be_allowed_on_a_single_cpu() {
        let others = [charge(0, 1.2, None)];
        ask(&Limits::default(), 1, &others, 0, hint(30, 100), None).unwrap_err();
        let limits = Limits {
            util_max: 2.0,
            ..Limits::default()
        };
        ask(&limits, 1, &others, 0, hint(30, 100), None).unwrap();
    }

    #[test]
    fn a_user_cannot_pile_onto_one_cpu() {
        let limits = Limits::default();
        let others = [charge(0, 0.5, Some(3)), charge(1000, 0.4, Some(3))];
        let refusal = ask(&limits, 8, &others, 1000, hint(20, 100), Some(3)).unwrap_err();
        assert_eq!(
            refusal.to_string(),
            "tasks confined to CPU 3 have declared 0.90 of 1; this hint would add 0.20"
        );
        ask(&limits, 8, &others, 1000, hint(20, 100), Some(2)).unwrap();
        ask(&limits, 8, &others, 1000, hint(20, 100), None).unwrap();
    }

    #[test]
    fn a_user_cannot_pile_onto_a_few_cpus() {
        let limits = Limits {
            util_user: 1.0,
            ..Limits::default()
        };
        let on = |cpus: &[u32], density| Charge {
            cpus: cpus.iter().copied().collect(),
            ..charge(1000, density, None)
        };
        let refused = |others: &[Charge], new: Charge| {
            let admitted = limits.admit(&CpuSet::first(8), others.iter(), &hint(1, 100), &new);
            admitted.err().map(|refusal| refusal.to_string())
        };
        let pair = [on(&[2, 3], 0.9), on(&[2], 0.6), on(&[4], 1.0)];
        assert_eq!(refused(&pair, on(&[2, 3], 0.5)), None);
        assert_eq!(
            refused(&pair, on(&[3, 2], 0.6)).unwrap(),
            "tasks confined to CPU 2-3 have declared 1.50 of 2; this hint would add 0.60"
        );
        // No two of them are too much for their CPUs, all three are.
        let ring = [on(&[0, 1], 1.4), on(&[1, 2], 1.4)];
        let said = refused(&ring, on(&[0, 2], 0.4)).unwrap();
        assert!(said.contains("CPU 0-2 have declared 2.80 of 3"), "{said}");
        assert_eq!(refused(&ring, on(&[0, 2], 0.2)), None);
        // Offline CPUs confine nobody, and bear nothing.
        assert!(refused(&[on(&[7, 8], 0.9)], on(&[7], 0.2)).is_some());
        assert_eq!(refused(&[on(&[9], 5.0)], on(&[9], 0.5)), None);
    }

    #[test]
    fn a_short_deadline_costs_more_than_its_utilisation() {
        let hint = Hint::new(10 * MS, 10 * MS, 1000 * MS, 0).unwrap();
        let refusal = ask(&Limits::default(), 1, &[], 1000, hint, None).unwrap_err();
        assert!(matches!(refusal, Refusal::User { added: 1.0, .. }));
    }

    #[test]
    fn counts_and_criticality_are_bounded() {
        let limits = Limits {
            hints_user: 2,
            hints_max: 3,
            ..Limits::default()
        };
        let two = [charge(1000, 0.0, None); 2];
        assert!(matches!(
            ask(&limits, 1, &two, 1000, hint(1, 100), None),
            Err(Refusal::UserCount { uid: 1000, .. })
        ));
        let three = [charge(0, 0.0, None); 3];
        assert!(matches!(
            ask(&limits, 1, &three, 0, hint(1, 100), None),
            Err(Refusal::Count { limit: 3 })
        ));
        let critical = Hint::new(MS, 100 * MS, 100 * MS, 3).unwrap();
        let refusal = ask(&limits, 1, &[], 1000, critical, None).unwrap_err();
        assert_eq!(refusal.errno(), libc::EPERM);
        ask(&limits, 1, &[], 0, critical, None).unwrap();
    }
}
