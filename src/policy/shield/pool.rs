//! The test for several CPUs that share their jobs (Horn's condition), and the
//! mask that follows from it. A single CPU is a lane and needs none of this.

use super::super::job::Situation;
use super::future::{Demand, Future};
use super::{Pending, Standing};

#[derive(Debug, Clone, Default)]
pub(super) struct Pool {
    cpus: usize,
    fits: bool,
    /// Latest starts from now, ascending.
    latest_starts: Vec<i64>,
    checkpoints: Vec<Checkpoint>,
}

#[derive(Debug, Clone, Copy)]
struct Checkpoint {
    ahead_ns: i64,
    /// Least margin here and at all earlier checkpoints.
    margin_ns: i64,
}

impl Pool {
    pub fn fits(&self) -> bool {
        self.fits
    }

    pub fn cpus(&self) -> usize {
        self.cpus
    }

    /// Can all pending jobs be on time, if they may run anywhere?
    pub fn test(&mut self, situation: &Situation<'_>, timely: &[Pending]) -> bool {
        self.cpus = situation.cpus.count();
        self.checkpoints.clear();
        self.fits = true;
        if self.cpus > 1 {
            self.latest_starts.clear();
            self.latest_starts.extend(timely.iter().map(|pending| {
                let latest = pending.deadline_ns.saturating_sub(pending.work_ns);
                latest.saturating_sub(situation.now_ns)
            }));
            self.latest_starts.sort_unstable();
            self.sweep(situation.now_ns, timely, &Future::default());
            self.fits = self.least_margin_ns() >= 0;
        }
        self.fits
    }

    /// Marks unbound jobs that must run, or must not. Says whether every CPU
    /// could idle until the next decision.
    pub fn mask(
        &mut self,
        situation: &Situation<'_>,
        timely: &[Pending],
        future: &Future,
        standing: &mut [Standing],
    ) -> bool {
        let Situation {
            now_ns,
            jobs,
            hold_ns,
            ..
        } = *situation;
        if self.cpus <= 1 {
            return true;
        }
        if !self.fits {
            return false;
        }
        if !future.releases.is_empty() && future.fits_pool(self.cpus) {
            self.sweep(now_ns, timely, future);
        }
        let cpus = self.cpus as i64;
        let least_ns = self.least_margin_ns();
        let mut may_idle = least_ns >= cpus.saturating_mul(hold_ns);
        let mut first_ns = None;
        for (pending, standing) in timely.iter().zip(standing) {
            if pending.lane.is_some() || *standing != Standing::Open {
                continue;
            }
            let is_first = *first_ns.get_or_insert(pending.deadline_ns) == pending.deadline_ns;
            let job = &jobs[pending.job as usize];
            let slack_ns = job.slack(now_ns).0;
            if slack_ns < hold_ns {
                *standing = Standing::Must;
                may_idle = false;
                continue;
            }
            let occupancy_ns = job.occupancy_ns(hold_ns);
            let wasted_before = slack_ns.saturating_add(occupancy_ns);
            let needed_ns = cpus.saturating_mul(occupancy_ns);
            // Pending jobs alone never mask the EDF choice; nor may those to come.
            if !is_first && least_ns < needed_ns && self.margin_before(wasted_before) < needed_ns {
                *standing = Standing::Masked;
            }
        }
        may_idle
    }

    /// Margins m·D − forced(D) − upcoming(D) at every deadline D, from now.
    /// forced(D) = Σ clamp(D − z_i, 0, c_i): it grows by one for every job between
    /// its latest start and its deadline.
    fn sweep(&mut self, now_ns: i64, timely: &[Pending], future: &Future) {
        self.checkpoints.clear();
        self.checkpoints
            .reserve(timely.len() + future.releases.len());
        let mut upcoming = Demand::default();
        let (mut releases, mut jobs) = (&future.releases[..], timely);
        let mut starts = &self.latest_starts[..];
        let (mut forced_ns, mut growing, mut last_ns) = (0i64, 0i64, 0i64);
        let mut least = i64::MAX;
        loop {
            let next_job = jobs.first().map_or(i64::MAX, |job| job.deadline_ns);
            let next_release = releases.first().map_or(i64::MAX, |release| release.at_ns);
            if jobs.is_empty() && releases.is_empty() {
                break;
            }
            let at_ns = next_job.min(next_release);
            let ahead_ns = at_ns.saturating_sub(now_ns);
            while let Some((release, rest)) = releases.split_first() {
                if release.at_ns != at_ns {
                    break;
                }
                upcoming.add(release, now_ns);
                releases = rest;
            }
            let passed_ns = ahead_ns.saturating_sub(last_ns);
            forced_ns = forced_ns.saturating_add(growing.saturating_mul(passed_ns));
            while let Some((&start, rest)) = starts.split_first() {
                if start >= ahead_ns {
                    break;
                }
                forced_ns = forced_ns.saturating_add(ahead_ns.saturating_sub(start));
                growing += 1;
                starts = rest;
            }
            while let Some((job, rest)) = jobs.split_first() {
                if job.deadline_ns != at_ns {
                    break;
                }
                // Without any work it never began to grow.
                growing -= i64::from(job.work_ns > 0);
                jobs = rest;
            }
            last_ns = ahead_ns;
            let demand_ns = forced_ns.saturating_add(upcoming.by(ahead_ns));
            let capacity_ns = (self.cpus as i64).saturating_mul(ahead_ns);
            least = least.min(capacity_ns.saturating_sub(demand_ns));
            self.checkpoints.push(Checkpoint {
                ahead_ns,
                margin_ns: least,
            });
        }
    }

    fn least_margin_ns(&self) -> i64 {
        self.checkpoints.last().map_or(i64::MAX, |c| c.margin_ns)
    }

    /// Least margin over the deadlines before now + `ahead_ns`.
    fn margin_before(&self, ahead_ns: i64) -> i64 {
        let passed = self.checkpoints.partition_point(|c| c.ahead_ns < ahead_ns);
        match passed.checked_sub(1) {
            Some(last) => self.checkpoints[last].margin_ns,
            None => i64::MAX,
        }
    }
}
