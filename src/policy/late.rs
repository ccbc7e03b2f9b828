//! Hopeless jobs: served from what is left over, and at least once per bound.
//!
//! A job with negative slack will be late whatever anybody does. Serving it
//! first, as EDF does, makes the next one late too. So late jobs wait until a
//! CPU is free; when none has been for `bound_ns`, the one whose deadline
//! passed first gets a CPU for one decision. The share of late work is then
//! at most hold/bound of one CPU where there is nothing to spare, and no late
//! job waits longer than the bound times the number of those before it.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LateConfig {
    pub bound_ns: i64,
}

impl Default for LateConfig {
    /// Far below the 30 s after which the kernel ejects a scheduler that
    /// starves a task, and a 1 ms slice in a second costs the others 0.1 %.
    fn default() -> LateConfig {
        LateConfig {
            bound_ns: 1_000_000_000,
        }
    }
}

#[derive(Debug, Clone, Default)]
pub struct LateRule {
    config: LateConfig,
    /// Since when late jobs have been waiting without any of them running.
    waiting_since_ns: Option<i64>,
}

impl LateRule {
    pub fn new(config: LateConfig) -> LateRule {
        LateRule {
            config,
            waiting_since_ns: None,
        }
    }

    /// Must a late job run now? From half the bound on it goes when that
    /// costs nobody a deadline (`affordable`), at the bound in any case.
    pub fn is_due(&mut self, now_ns: i64, any_late: bool, affordable: bool) -> bool {
        if !any_late {
            self.waiting_since_ns = None;
            return false;
        }
        let since = *self.waiting_since_ns.get_or_insert(now_ns);
        let waited = now_ns.saturating_sub(since);
        waited >= self.config.bound_ns || affordable && waited >= self.config.bound_ns / 2
    }

    /// A late job got a CPU at `now_ns`.
    pub fn served(&mut self, now_ns: i64) {
        self.waiting_since_ns = Some(now_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_job_is_due_at_the_bound_and_earlier_where_it_costs_nothing() {
        let mut rule = LateRule::new(LateConfig { bound_ns: 100 });
        assert!(!rule.is_due(1000, true, true));
        assert!(!rule.is_due(1050, true, false));
        assert!(rule.is_due(1050, true, true));
        assert!(rule.is_due(1100, true, false));
        rule.served(1100);
        assert!(!rule.is_due(1149, true, true));
        assert!(rule.is_due(1200, true, false));
    }

    #[test]
    fn an_empty_late_queue_forgets_how_long_it_waited() {
        let mut rule = LateRule::new(LateConfig { bound_ns: 100 });
        assert!(!rule.is_due(0, true, false));
        assert!(!rule.is_due(90, false, false));
        assert!(!rule.is_due(150, true, false));
    }
}
