//! The machine of a story: sockets (a last-level cache each), cores, hyperthreads and
//! memory nodes, as options of scripts/vm. Most faults need few CPUs and more than one
//! cache, so these are the likeliest.
use crate::rng::Rng;
use crate::sets::Cpus;
use std::fmt;

#[cfg(test)]
const MOST_CPUS: usize = 16;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Machine {
    pub nodes: usize,
    pub sockets: usize,
    pub cores: usize,
    pub threads: usize,
}

impl Machine {
    pub fn generate(seed: u64) -> Machine {
        let mut rng = Rng::stream(seed, "machine");
        let wanted: usize = rng.weighted(&[
            (1, 6),
            (2, 16),
            (3, 8),
            (4, 28),
            (6, 14),
            (8, 18),
            (12, 5),
            (16, 5),
        ]);
        let sockets: usize = rng.weighted(&[(1, 35), (2, 40), (3, 10), (4, 15)]);
        let threads: usize = rng.weighted(&[(1, 70), (2, 30)]);
        // Few CPUs have fewer sockets, not more CPUs.
        let sockets = sockets.min(wanted);
        let threads = if wanted / sockets >= 2 { threads } else { 1 };
        let nodes = if sockets > 1 && rng.chance(40) { 2 } else { 1 };
        Machine {
            nodes,
            sockets,
            cores: (wanted / (sockets * threads)).max(1),
            threads,
        }
    }

    pub fn cpus(&self) -> usize {
        self.sockets * self.cores * self.threads
    }

    pub fn all(&self) -> Cpus {
        Cpus::first(self.cpus())
    }

    /// The CPUs of a socket: QEMU and Linux number them one socket after the other.
    pub fn socket(&self, socket: usize) -> Cpus {
        let each = self.cores * self.threads;
        Cpus(Cpus::first(each).0 << (socket * each))
    }

    pub fn vm_options(&self) -> String {
        format!(
            "--topology sockets={},cores={},threads={} --nodes {} --mem 2G",
            self.sockets, self.cores, self.threads, self.nodes
        )
    }

    /// What the guest must be able to see of it, or the story is not the one it tells: each
    /// CPU's last-level cache is shared by its socket, and sockets lie on their nodes.
    pub fn seen_wrong(&self) -> Option<String> {
        let read = |path: String| std::fs::read_to_string(path).map(|text| text.trim().to_string());
        for socket in 0..self.sockets {
            let wanted = self.socket(socket).to_string();
            let cpu = self.socket(socket).iter().next().unwrap_or(0);
            let shared = read(format!(
                "/sys/devices/system/cpu/cpu{cpu}/cache/index3/shared_cpu_list"
            ));
            if shared.as_deref().ok() != Some(wanted.as_str()) {
                return Some(format!("cache of CPU {cpu}: {shared:?}, not {wanted}"));
            }
            let node = socket % self.nodes;
            let there =
                std::path::Path::new(&format!("/sys/devices/system/node/node{node}/cpu{cpu}"))
                    .exists();
            if self.nodes > 1 && !there {
                return Some(format!("CPU {cpu} is not on node {node}"));
            }
        }
        None
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(
            f,
            "{} CPUs: {} sockets x {} cores x {} threads, {} nodes",
            self.cpus(),
            self.sockets,
            self.cores,
            self.threads,
            self.nodes
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_machine_can_be_built() {
        for seed in 0..5000 {
            let m = Machine::generate(seed);
            assert!((1..=MOST_CPUS).contains(&m.cpus()), "{m}");
            assert!((1..=4).contains(&m.sockets) && m.nodes <= m.sockets, "{m}");
            let together = (0..m.sockets).fold(0, |all, s| all | m.socket(s).0);
            assert_eq!(together, m.all().0, "{m}");
        }
    }

    #[test]
    fn machines_of_every_shape_come() {
        let all: Vec<Machine> = (0..500).map(Machine::generate).collect();
        for sockets in 1..=4 {
            assert!(all.iter().any(|m| m.sockets == sockets));
        }
        assert!(all.iter().any(|m| m.nodes == 2) && all.iter().any(|m| m.threads == 2));
        assert!(all.iter().filter(|m| (2..=8).contains(&m.cpus())).count() > 350);
    }
}
