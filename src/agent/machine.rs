//! The machine's shape as the BPF half wants it: which CPUs share a last-level
//! cache, and all CPUs listed domain by domain.

use std::collections::BTreeMap;

use anyhow::{ensure, Result};
use scx_utils::Topology;

use super::scheduler::Policy;
use crate::intf;
use crate::policy::MAX_CPUS as POLICY_CPUS;

const MAX_CPUS: usize = intf::temponet_consts_TN_MAX_CPUS as usize;
const MAX_DOMS: usize = intf::temponet_consts_TN_MAX_DOMS as usize;

#[derive(Debug, PartialEq)]
pub struct Machine {
    /// Domain of each CPU, indexed by CPU id.
    pub cpu_dom: Vec<u32>,
    /// CPU ids, domain by domain.
    pub cpu_order: Vec<u32>,
    pub dom_start: Vec<u32>,
    pub dom_len: Vec<u32>,
}

impl Machine {
    pub fn detect() -> Result<Self> {
        let topology = Topology::new()?;
        Self::from_llcs(topology.all_cpus.values().map(|cpu| (cpu.id, cpu.llc_id)))
    }

    /// From (CPU id, LLC id) pairs. LLC ids need not be dense.
    fn from_llcs(cpus: impl Iterator<Item = (usize, usize)>) -> Result<Self> {
        let mut by_llc = BTreeMap::<usize, Vec<usize>>::new();
        for (cpu, llc) in cpus {
            ensure!(
                cpu < MAX_CPUS,
                "CPU {cpu} is beyond the {MAX_CPUS} CPUs this build supports"
            );
            by_llc.entry(llc).or_default().push(cpu);
        }
        ensure!(
            !by_llc.is_empty(),
            "found no CPUs in this machine's topology"
        );

        // More caches than domains: neighbours share one. Worse locality, same
        // schedule.
        let per_dom = by_llc.len().div_ceil(MAX_DOMS);
        let groups: Vec<Vec<usize>> = by_llc.into_values().collect();
        let mut machine = Machine {
            cpu_dom: Vec::new(),
            cpu_order: Vec::new(),
            dom_start: Vec::new(),
            dom_len: Vec::new(),
        };
        for (dom, group) in groups.chunks(per_dom).enumerate() {
            let start = machine.cpu_order.len();
            for &cpu in group.iter().flatten() {
                if machine.cpu_dom.len() <= cpu {
                    machine.cpu_dom.resize(cpu + 1, 0);
                }
                machine.cpu_dom[cpu] = dom as u32;
                machine.cpu_order.push(cpu as u32);
            }
            machine.dom_start.push(start as u32);
            machine
                .dom_len
                .push((machine.cpu_order.len() - start) as u32);
        }
        Ok(machine)
    }

    /// The network decides for fewer CPUs than the BPF half schedules.
    pub fn check_room(&self, policy: Policy) -> Result<()> {
        let highest = self.cpu_dom.len() - 1;
        ensure!(
            policy != Policy::Temponet || highest < POLICY_CPUS,
            "CPU {highest} is beyond the {POLICY_CPUS} CPUs that policy temponet decides for: use --policy edf"
        );
        Ok(())
    }

    pub fn nr_cpus(&self) -> usize {
        self.cpu_order.len()
    }

    pub fn nr_doms(&self) -> usize {
        self.dom_len.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_are_listed_domain_by_domain() {
        // SMT siblings are often numbered far apart.
        let m = Machine::from_llcs([(0, 7), (1, 9), (2, 7), (3, 9)].into_iter()).unwrap();
        assert_eq!(m.cpu_dom, [0, 1, 0, 1]);
        assert_eq!(m.cpu_order, [0, 2, 1, 3]);
        assert_eq!(m.dom_start, [0, 2]);
        assert_eq!(m.dom_len, [2, 2]);
    }

    #[test]
    fn more_caches_than_domains_share() {
        let m = Machine::from_llcs((0..200).map(|cpu| (cpu, cpu))).unwrap();
        assert!(m.nr_doms() <= MAX_DOMS);
        assert_eq!(m.nr_cpus(), 200);
        assert_eq!(m.dom_len.iter().sum::<u32>(), 200);
    }

    #[test]
    fn only_the_agent_needs_cpus_that_the_network_can_name() {
        let machine = |highest: usize| {
            let cpus = [(0, 0), (highest, 0)];
            Machine::from_llcs(cpus.into_iter()).unwrap()
        };
        assert!(machine(511).check_room(Policy::Temponet).is_ok());
        let refused = machine(512).check_room(Policy::Temponet).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "CPU 512 is beyond the 512 CPUs that policy temponet decides for: use --policy edf"
        );
        for policy in [Policy::Distilled, Policy::Edf, Policy::PlainEdf] {
            assert!(machine(MAX_CPUS - 1).check_room(policy).is_ok());
        }
    }

    #[test]
    fn too_many_cpus_is_an_error() {
        assert!(Machine::from_llcs([(MAX_CPUS, 0)].into_iter()).is_err());
    }
}
