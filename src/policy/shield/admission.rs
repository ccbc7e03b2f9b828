//! Whom to give up when not everybody can be on time (Moore and Hodgson): take
//! jobs in deadline order, and whenever the last one no longer fits, drop the
//! longest taken so far. Among jobs of one criticality and on one CPU, no
//! choice keeps more. The less critical go first, whatever their length.

use super::super::job::Situation;
use super::lanes::Lanes;
use super::pool::Pool;
use super::{Pending, Standing};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

#[derive(Debug, Clone, Default)]
pub(super) struct Admission {
    /// Least critical, then longest, then last in deadline order on top.
    taken: BinaryHeap<(Reverse<u8>, i64, usize)>,
}

impl Admission {
    /// Drops jobs from every CPU whose bound jobs do not fit, then from the
    /// pool if that does not fit.
    pub fn drop_some(
        &mut self,
        situation: &Situation<'_>,
        timely: &[Pending],
        lanes: &Lanes,
        pool: &Pool,
        standing: &mut [Standing],
    ) {
        for cpu in lanes.overloaded() {
            let bound = |pending: &Pending| pending.lane == Some(cpu);
            self.thin_out(situation, timely, 1, bound, bound, standing);
        }
        if !pool.fits() {
            // What is bound to a CPU fits there by now; it counts and stays.
            let unbound = |pending: &Pending| pending.lane.is_none();
            let cpus = pool.cpus() as i64;
            self.thin_out(situation, timely, cpus, |_| true, unbound, standing);
        }
    }

    fn thin_out(
        &mut self,
        situation: &Situation<'_>,
        timely: &[Pending],
        cpus: i64,
        counts: impl Fn(&Pending) -> bool,
        may_drop: impl Fn(&Pending) -> bool,
        standing: &mut [Standing],
    ) {
        self.taken.clear();
        let mut work_ns = 0i64;
        for (at, pending) in timely.iter().enumerate() {
            if standing[at] == Standing::Dropped || !counts(pending) {
                continue;
            }
            if may_drop(pending) {
                let criticality = situation.jobs[pending.job as usize].criticality;
                self.taken.push((Reverse(criticality), pending.work_ns, at));
            }
            work_ns = work_ns.saturating_add(pending.work_ns);
            let room_ns = pending.deadline_ns.saturating_sub(situation.now_ns);
            while work_ns > room_ns.saturating_mul(cpus) {
                let Some((_, dropped_ns, dropped)) = self.taken.pop() else {
                    break;
                };
                work_ns -= dropped_ns;
                standing[dropped] = Standing::Dropped;
            }
        }
    }
}
