//! Which CPUs are online, as the BPF half has it.

use std::collections::BTreeSet;

use crate::policy::{CpuId, CpuMask};

/// The CPUs known at load, and those of them that are online. A CPU that was
/// unknown at load is none of these: the scheduler is loaded anew for it.
pub struct OnlineCpus {
    known: BTreeSet<u32>,
    online: BTreeSet<u32>,
    /// The BPF half's count of changes when it was last looked at.
    hotplugs: u32,
}

/// One CPU came or went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    pub cpu: u32,
    pub online: bool,
}

impl OnlineCpus {
    /// All of `cpus` are known and online.
    pub fn new(cpus: impl IntoIterator<Item = u32>) -> OnlineCpus {
        let known: BTreeSet<u32> = cpus.into_iter().collect();
        OnlineCpus {
            online: known.clone(),
            known,
            hotplugs: 0,
        }
    }

    /// Follows the BPF half's `hotplugs` and `cpu_online`, and says what changed. The BPF half
    /// writes the count last, so `flags` are never older than the `hotplugs` that was read
    /// before them.
    pub fn follow(&mut self, hotplugs: u32, flags: &[u8]) -> Vec<Change> {
        if hotplugs == self.hotplugs {
            return Vec::new();
        }
        self.hotplugs = hotplugs;
        let mut changes = Vec::new();
        for &cpu in &self.known {
            let online = flags.get(cpu as usize).is_some_and(|&flag| flag != 0);
            let changed = match online {
                true => self.online.insert(cpu),
                false => self.online.remove(&cpu),
            };
            if changed {
                changes.push(Change { cpu, online });
            }
        }
        changes
    }

    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.online.iter().copied()
    }

    pub fn count(&self) -> usize {
        self.online.len()
    }

    /// Those online, as far as the policy can name them.
    pub fn mask(&self) -> CpuMask {
        mask(&self.online)
    }

    /// All known at load: what the agent must be prepared for.
    pub fn known_mask(&self) -> CpuMask {
        mask(&self.known)
    }
}

fn mask(cpus: &BTreeSet<u32>) -> CpuMask {
    cpus.iter()
        .filter_map(|&cpu| CpuId::try_from(cpu).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GONE: Change = Change {
        cpu: 3,
        online: false,
    };
    const BACK: Change = Change {
        cpu: 3,
        online: true,
    };

    #[test]
    fn a_cpu_that_goes_leaves_the_set_and_one_that_comes_back_joins_it() {
        let mut cpus = OnlineCpus::new([0, 2, 3, 1]);
        assert_eq!(cpus.follow(1, &[1, 1, 1, 0]), [GONE]);
        assert_eq!(cpus.iter().collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(cpus.mask(), CpuMask::first(3));
        assert_eq!(cpus.known_mask(), CpuMask::first(4));
        assert_eq!(cpus.follow(2, &[1, 1, 1, 1]), [BACK]);
        assert_eq!(cpus.count(), 4);
        assert_eq!(cpus.mask(), CpuMask::first(4));
    }

    #[test]
    fn the_flags_are_read_only_when_the_count_says_that_they_changed() {
        let mut cpus = OnlineCpus::new(0..4);
        assert_eq!(cpus.follow(0, &[0; 4]), []);
        assert_eq!(cpus.count(), 4);
    }

    #[test]
    fn a_cpu_that_went_and_came_back_unseen_is_no_change() {
        let mut cpus = OnlineCpus::new(0..4);
        assert_eq!(cpus.follow(2, &[1; 4]), []);
        assert_eq!(cpus.follow(3, &[1, 1, 1, 0]), [GONE]);
    }

    #[test]
    fn a_cpu_unknown_at_load_does_not_join() {
        let mut cpus = OnlineCpus::new([0, 1]);
        assert_eq!(cpus.follow(1, &[1, 1, 1]), []);
        assert_eq!(cpus.iter().collect::<Vec<_>>(), [0, 1]);
    }

    #[test]
    fn cpus_that_the_policy_cannot_name_are_still_counted() {
        let mut cpus = OnlineCpus::new([0, 700]);
        assert_eq!(cpus.mask(), CpuMask::only(0));
        let mut flags = [0; 1024];
        flags[700] = 1;
        assert_eq!(cpus.follow(1, &flags).len(), 1);
        assert_eq!(cpus.iter().collect::<Vec<_>>(), [700]);
    }
}
