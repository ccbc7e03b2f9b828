//! The policy for Linux: what the agent decides by. All numbers that a machine with a
//! kernel on it asks for stand here, and the rule for how long a decision stands, which the
//! simulator takes too.

use super::shield::{OverloadRule, ShieldConfig};
use serde::{Deserialize, Serialize};

/// A CPU looks at what runs this often (HZ=1000).
pub const TICK_NS: i64 = 1_000_000;
/// A decision on one CPU stands for this long where nothing happens.
const LONGEST_HOLD_NS: i64 = 100_000_000;
/// Interrupts, the agent and turns by the starvation bound need the rest of several CPUs.
pub(super) const KEPT_PERMILLE: u32 = 960;

/// By how much work is overstated, in thousandths of what it is: interrupts, kernel threads
/// and the agent itself use the CPUs too, tasks without deadlines have their turns by the
/// starvation bound, and what a job takes is an estimate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Margins {
    /// Of jobs that are there.
    pub pending_permille: u32,
    /// Of releases to come.
    pub upcoming_permille: u32,
}

impl Margins {
    pub const NONE: Margins = Margins {
        pending_permille: 1000,
        upcoming_permille: 1000,
    };

    /// With 8 % for the releases to come, as for the pending jobs, 1 % of the deadlines at
    /// a load of 0.91 were lost that EDF met: the network had spent slack that a turn of
    /// 4 ms then needed.
    pub const LINUX: Margins = Margins {
        pending_permille: 1080,
        upcoming_permille: 1250,
    };

    pub fn pending(self, work_ns: i64) -> i64 {
        stated(work_ns, self.pending_permille)
    }

    pub fn upcoming(self, work_ns: i64) -> i64 {
        stated(work_ns, self.upcoming_permille)
    }
}

fn stated(work_ns: i64, permille: u32) -> i64 {
    match permille {
        1000 => work_ns,
        _ => work_ns / 1000 * i64::from(permille),
    }
}

/// Linux has no abort: a late job goes on, so whole tasks are given up.
pub fn shield_config() -> ShieldConfig {
    ShieldConfig {
        overload: OverloadRule::Keep,
        margins: Margins::LINUX,
        kept_permille: KEPT_PERMILLE,
        ..ShieldConfig::default()
    }
}

/// How long a decision stands. On one CPU to the next known event, which calls for a new
/// one anyway: a shorter hold would ask more often and, where times are hidden, give up
/// jobs that have just outlived their estimate. On several to the next decision, which
/// comes within `interval_ns` or at the tick: whoever has less slack must run.
pub fn hold_ns(event_ns: Option<i64>, cpus: usize, interval_ns: i64) -> i64 {
    let event = event_ns
        .unwrap_or(LONGEST_HOLD_NS)
        .clamp(1, LONGEST_HOLD_NS);
    match cpus {
        0 | 1 => event,
        _ => event.min(interval_ns.max(TICK_NS)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_to_come_are_overstated_more_than_jobs_that_are_there() {
        assert_eq!(Margins::LINUX.pending(1_000_000), 1_080_000);
        assert_eq!(Margins::LINUX.upcoming(1_000_000), 1_250_000);
    }

    #[test]
    fn a_decision_stands_to_the_event_on_one_cpu_and_to_the_next_one_on_several() {
        assert_eq!(hold_ns(Some(7 * TICK_NS), 1, TICK_NS), 7 * TICK_NS);
        assert_eq!(hold_ns(None, 1, TICK_NS), LONGEST_HOLD_NS);
        assert_eq!(hold_ns(Some(-5), 1, TICK_NS), 1);
        assert_eq!(hold_ns(Some(7 * TICK_NS), 4, 0), TICK_NS);
        assert_eq!(hold_ns(Some(7 * TICK_NS), 4, 3 * TICK_NS), 3 * TICK_NS);
        assert_eq!(hold_ns(Some(TICK_NS / 2), 4, TICK_NS), TICK_NS / 2);
    }
}
