//! The exact test of one CPU, for every CPU that has jobs bound to it. With a
//! single CPU at hand that is every job.

use super::super::cpumask::{CpuId, CpuMask};
use super::super::job::Situation;
use super::future::{Demand, Future, Release};
use super::{OverloadRule, Pending, Standing};

#[derive(Debug, Clone, Default)]
pub(super) struct Lanes {
    /// By CPU.
    lanes: Vec<Lane>,
    /// CPUs that have bound jobs, pending or upcoming.
    in_use: CpuMask,
}

#[derive(Debug, Clone, Copy)]
struct Lane {
    /// Its pending jobs can all be on time.
    fits: bool,
    /// Its upcoming jobs count, too.
    keeps_room: bool,
    work_ns: i64,
    upcoming: Demand,
    /// Least margin over the deadlines the sweep has passed.
    margin_ns: i64,
    /// The sweep has passed its first pending job.
    headed: bool,
}

impl Default for Lane {
    fn default() -> Lane {
        Lane {
            fits: true,
            keeps_room: false,
            work_ns: 0,
            upcoming: Demand::default(),
            margin_ns: i64::MAX,
            headed: false,
        }
    }
}

impl Lanes {
    pub fn reset(&mut self) {
        self.lanes.clear();
        self.in_use = CpuMask::EMPTY;
    }

    /// CPUs that have bound jobs.
    pub fn in_use(&self) -> impl Iterator<Item = CpuId> + '_ {
        self.in_use.iter()
    }

    /// Can the pending jobs bound to this CPU all be on time?
    pub fn fits(&self, cpu: CpuId) -> bool {
        self.lanes[cpu as usize].fits
    }

    /// Do the pending jobs bound to each CPU fit it? What is to come does not
    /// count: overload is now.
    pub fn test(&mut self, situation: &Situation<'_>, timely: &[Pending]) -> bool {
        for pending in timely {
            let Some(cpu) = pending.lane else { continue };
            let lane = self.lane(cpu);
            lane.work_ns = lane.work_ns.saturating_add(pending.work_ns);
            lane.fits &= lane.work_ns <= pending.deadline_ns.saturating_sub(situation.now_ns);
        }
        self.in_use().all(|cpu| self.fits(cpu))
    }

    fn lane(&mut self, cpu: CpuId) -> &mut Lane {
        let at = cpu as usize;
        if self.lanes.len() <= at {
            self.lanes.resize(at + 1, Lane::default());
        }
        self.in_use.insert(cpu);
        &mut self.lanes[at]
    }

    /// Masks bound jobs that would take more than the margin of those before
    /// them, and takes CPUs without that margin from the other jobs. Says
    /// whether every lane could idle until the next decision.
    ///
    /// One sweep in deadline order. A lane that is overloaded guards nothing,
    /// unless admission has made the rest fit.
    pub fn mask(
        &mut self,
        situation: &Situation<'_>,
        timely: &[Pending],
        future: &Future,
        overload: OverloadRule,
        standing: &mut [Standing],
        permitted: &mut [CpuMask],
    ) -> bool {
        let Situation {
            now_ns,
            jobs,
            hold_ns,
            ..
        } = *situation;
        for cpu in future.releases.iter().filter_map(|release| release.lane) {
            self.lane(cpu);
        }
        for cpu in self.in_use.iter() {
            let lane = &mut self.lanes[cpu as usize];
            let fits = lane.fits || overload != OverloadRule::Fit;
            *lane = Lane {
                fits,
                keeps_room: fits && future.deserves_room(cpu),
                ..Lane::default()
            };
        }

        let mut releases = future.releases.iter().peekable();
        let mut from = 0;
        while from < timely.len() && !self.in_use.is_empty() {
            let deadline_ns = timely[from].deadline_ns;
            let equal = timely[from..].iter();
            let to = from + equal.take_while(|p| p.deadline_ns == deadline_ns).count();
            while let Some(release) = releases.next_if(|r| r.at_ns < deadline_ns) {
                self.add_release(release, now_ns);
            }
            for at in from..to {
                let Some(cpu) = timely[at].lane else { continue };
                let lane = &self.lanes[cpu as usize];
                let occupancy_ns = jobs[timely[at].job as usize].occupancy_ns(hold_ns);
                // Nobody waits before the first: not to run it would only be
                // to idle.
                let short = lane.headed && lane.margin_ns < occupancy_ns;
                if short && standing[at] == Standing::Open {
                    standing[at] = Standing::Masked;
                }
            }
            for at in from..to {
                if let (Some(cpu), true) = (timely[at].lane, standing[at] != Standing::Dropped) {
                    let lane = &mut self.lanes[cpu as usize];
                    lane.work_ns = lane.work_ns.saturating_add(timely[at].work_ns);
                    lane.headed = true;
                }
            }
            for cpu in timely[from..to].iter().filter_map(|pending| pending.lane) {
                self.lanes[cpu as usize].pass(deadline_ns, now_ns);
            }
            from = to;
        }
        for release in releases {
            self.add_release(release, now_ns);
        }
        // An unbound job is not part of a lane's demand: running it there takes
        // from every margin, whatever its own deadline.
        let margin_of = |cpu: CpuId| self.lanes[cpu as usize].margin_ns;
        let tight: CpuMask = self
            .in_use
            .iter()
            .filter(|&c| margin_of(c) < hold_ns)
            .collect();
        if tight.is_empty() {
            return true;
        }
        for pending in timely.iter().filter(|pending| pending.lane.is_none()) {
            let occupancy_ns = jobs[pending.job as usize].occupancy_ns(hold_ns);
            for cpu in tight.iter().filter(|&cpu| margin_of(cpu) < occupancy_ns) {
                permitted[pending.job as usize].remove(cpu);
            }
        }
        false
    }

    fn add_release(&mut self, release: &Release, now_ns: i64) {
        let Some(cpu) = release.lane else { return };
        let lane = &mut self.lanes[cpu as usize];
        if lane.keeps_room {
            lane.upcoming.add(release, now_ns);
            lane.pass(release.at_ns, now_ns);
        }
    }
}

impl Lane {
    /// Takes note of the margin at a deadline whose work is all counted.
    fn pass(&mut self, deadline_ns: i64, now_ns: i64) {
        if !self.fits {
            return;
        }
        let ahead_ns = deadline_ns.saturating_sub(now_ns);
        let demand_ns = self.work_ns.saturating_add(self.upcoming.by(ahead_ns));
        self.margin_ns = self.margin_ns.min(ahead_ns.saturating_sub(demand_ns));
    }
}
