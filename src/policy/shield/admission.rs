//! Whom to give up when not everybody can be on time (Moore and Hodgson): take
//! jobs in deadline order, and whenever the last one no longer fits, drop the
//! longest taken so far. Among jobs of one criticality and on one CPU, no
//! choice keeps more. The less critical go first, whatever their length.
//!
//! Where the known tasks ask for more than there is, their jobs to come are
//! taken in line with the pending ones, as far as the last pending deadline: a
//! long job is then given up before it has wasted the time that shorter ones
//! will need, and what is planned for them is kept free by the mask. On random
//! five-task sets at U = 1.1 to 1.5 that is 0.3 to 0.4 points more.

use super::super::job::Situation;
use super::future::Future;
use super::lanes::Lanes;
use super::pool::Pool;
use super::{Pending, Standing};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

#[derive(Debug, Clone, Default)]
pub(super) struct Admission {
    /// Least critical, then longest, then last in deadline order on top; those to
    /// come stand behind the pending.
    taken: BinaryHeap<(Reverse<u8>, i64, usize)>,
}

impl Admission {
    /// Drops jobs from every CPU whose bound jobs do not fit, then from the
    /// pool if that does not fit; and with them what is to come and must go.
    pub fn drop_some(
        &mut self,
        situation: &Situation<'_>,
        timely: &[Pending],
        lanes: &Lanes,
        pool: &Pool,
        future: &mut Future,
        standing: &mut [Standing],
    ) {
        for cpu in lanes.in_use() {
            let too_much_to_come = !future.fits_lane(cpu);
            if lanes.fits(cpu) && !too_much_to_come {
                continue;
            }
            let bound = |lane: Option<u16>| lane == Some(cpu);
            let queue = Queue {
                timely,
                cpus: 1,
                counts: &bound,
                may_drop: &bound,
                looks_ahead: too_much_to_come,
            };
            self.thin_out(situation, &queue, future, standing);
            future.plan_lane(cpu);
        }
        if !pool.fits() {
            // What is bound to a CPU fits there by now; it counts and stays.
            let queue = Queue {
                timely,
                cpus: pool.cpus() as i64,
                counts: &|_| true,
                may_drop: &|lane| lane.is_none(),
                looks_ahead: !future.fits_pool(pool.cpus()),
            };
            self.thin_out(situation, &queue, future, standing);
        }
    }

    fn thin_out(
        &mut self,
        situation: &Situation<'_>,
        queue: &Queue<'_>,
        future: &mut Future,
        standing: &mut [Standing],
    ) {
        let Queue { timely, cpus, .. } = *queue;
        self.taken.clear();
        self.taken.reserve(timely.len() + future.releases.len());
        let mut work_ns = 0i64;
        let mut next = 0;
        for (at, pending) in timely.iter().enumerate() {
            while queue.looks_ahead && next < future.releases.len() {
                let release = future.releases[next];
                if release.at_ns > pending.deadline_ns {
                    break;
                }
                if (queue.counts)(release.lane) {
                    if (queue.may_drop)(release.lane) {
                        let place = timely.len() + next;
                        let rank = Reverse(release.criticality);
                        self.taken.push((rank, release.work_ns, place));
                    }
                    work_ns = work_ns.saturating_add(release.work_ns);
                    let room_ns = release.at_ns.saturating_sub(situation.now_ns);
                    self.fit(room_ns.saturating_mul(cpus), &mut work_ns, future, standing);
                }
                next += 1;
            }
            if standing[at] == Standing::Dropped || !(queue.counts)(pending.lane) {
                continue;
            }
            if (queue.may_drop)(pending.lane) {
                let criticality = situation.jobs[pending.job as usize].criticality;
                self.taken.push((Reverse(criticality), pending.work_ns, at));
            }
            work_ns = work_ns.saturating_add(pending.work_ns);
            let room_ns = pending.deadline_ns.saturating_sub(situation.now_ns);
            self.fit(room_ns.saturating_mul(cpus), &mut work_ns, future, standing);
        }
    }

    /// Drops until the work fits the room.
    fn fit(
        &mut self,
        room_ns: i64,
        work_ns: &mut i64,
        future: &mut Future,
        standing: &mut [Standing],
    ) {
        while *work_ns > room_ns {
            let Some((_, dropped_ns, dropped)) = self.taken.pop() else {
                break;
            };
            *work_ns -= dropped_ns;
            match dropped.checked_sub(standing.len()) {
                None => standing[dropped] = Standing::Dropped,
                Some(release) => future.releases[release].work_ns = 0,
            }
        }
    }
}

/// Who stands in line, by the CPU they are bound to.
struct Queue<'a> {
    timely: &'a [Pending],
    cpus: i64,
    counts: &'a dyn Fn(Option<u16>) -> bool,
    may_drop: &'a dyn Fn(Option<u16>) -> bool,
    looks_ahead: bool,
}
