//! What declared jobs get of this machine's CPUs while they want all of them: less than all,
//! because of switches, of the agent, of turns by the starvation bound and of real-time tasks.

use super::board::Board;
use crate::policy::CpuMask;

/// A look is taken when the CPUs were wanted for so long.
const LOOK_NS: u64 = 50_000_000;
/// The mean follows for about so long of that.
const FOLLOWS_NS: f64 = 500e6;
/// Where it is less than this, something is wrong with the figures, not with the machine.
const LEAST: f64 = 0.5;

#[derive(Debug, Clone, Copy)]
pub(super) struct Supply {
    wanted_ns: u64,
    ran_ns: u64,
    /// How much of the mean was seen.
    seen_ns: f64,
    share: f64,
}

impl Default for Supply {
    /// Until something was seen, no task is given up for what the machine itself may take.
    fn default() -> Supply {
        Supply {
            wanted_ns: 0,
            ran_ns: 0,
            seen_ns: 0.0,
            share: 1.0,
        }
    }
}

impl Supply {
    /// Of one CPU.
    pub fn share(&mut self, board: &Board, cpus: CpuMask) -> f64 {
        let all = cpus.iter().map(|cpu| board.supply(cpu));
        let (wanted, ran) = all.fold((0u64, 0u64), |(wanted, ran), (more, part)| {
            (wanted.wrapping_add(more), ran.wrapping_add(part))
        });
        self.note(wanted, ran)
    }

    fn note(&mut self, wanted_ns: u64, ran_ns: u64) -> f64 {
        if wanted_ns < self.wanted_ns || ran_ns < self.ran_ns {
            // Other CPUs than the last time.
            (self.wanted_ns, self.ran_ns) = (wanted_ns, ran_ns);
        }
        let wanted = wanted_ns - self.wanted_ns;
        if wanted >= LOOK_NS {
            let ran = (ran_ns - self.ran_ns) as f64 / wanted as f64;
            self.seen_ns = (self.seen_ns + wanted as f64).min(FOLLOWS_NS);
            let weight = (wanted as f64 / self.seen_ns).min(1.0);
            self.share += (ran.clamp(LEAST, 1.0) - self.share) * weight;
            (self.wanted_ns, self.ran_ns) = (wanted_ns, ran_ns);
        }
        self.share
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn the_share_is_what_ran_of_what_was_wanted() {
        let mut supply = Supply::default();
        assert_eq!(supply.note(10 * MS, 9 * MS), 1.0, "too little was seen");
        assert!((supply.note(100 * MS, 95 * MS) - 0.95).abs() < 1e-9);
        let mut share = 1.0;
        for round in 2..40 {
            share = supply.note(round * 100 * MS, 95 * MS + (round - 1) * 90 * MS);
        }
        assert!((share - 0.9).abs() < 1e-3, "{share}");
    }

    #[test]
    fn counters_that_make_no_sense_change_little() {
        let mut supply = Supply::default();
        supply.note(100 * MS, 95 * MS);
        assert!(
            (supply.note(50 * MS, 10 * MS) - 0.95).abs() < 1e-9,
            "a CPU has gone"
        );
        assert!(supply.note(200 * MS, 10 * MS) >= LEAST);
        assert!(supply.note(400 * MS, 9000 * MS) <= 1.0);
    }
}
