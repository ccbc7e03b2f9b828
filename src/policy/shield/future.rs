//! What the tasks we know of may still release: their demand as a function of
//! the deadline D, in deadline order.

use super::super::cpumask::{CpuId, CpuMask};
use super::super::job::Situation;
use super::order::DeadlineOrder;

/// Jobs of a task counted one by one before its demand becomes a line. More
/// is sharper and slower; few tasks are where sharpness pays.
const EXACT_JOBS_FEW: i64 = 8;
const FEW: usize = 64;

/// At `at_ns` another job of `work_ns` falls due, and from here on
/// `per_ns` more work per nanosecond.
#[derive(Debug, Clone, Copy)]
pub(super) struct Release {
    pub at_ns: i64,
    pub work_ns: i64,
    pub per_ns: f64,
    pub criticality: u8,
    pub lane: Option<u16>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Future {
    /// By deadline.
    pub releases: Vec<Release>,
    by_task: Vec<Release>,
    order: DeadlineOrder,
    /// Utilisation of all known tasks, and (below) by the CPU they are bound to.
    total: f64,
    by_lane: Vec<f64>,
    /// CPUs for which `releases` holds what will be served, not all that comes.
    planned: CpuMask,
}

/// So much more than there is counts as rounding, not overload.
pub(super) const FULL: f64 = 1.0 + 1e-3;

impl Future {
    /// What is to come of the tasks that are kept.
    pub fn gather(&mut self, situation: &Situation<'_>, kept_only: bool) {
        self.releases.clear();
        self.by_task.clear();
        self.by_lane.clear();
        self.total = 0.0;
        self.planned = CpuMask::EMPTY;
        let exact = match situation.upcoming.len() {
            n if n <= FEW => EXACT_JOBS_FEW,
            _ => 1,
        };
        let only_cpu = situation.cpus.single();
        for task in situation.upcoming {
            if kept_only && !task.standing.kept {
                continue;
            }
            if task.runtime_ns <= 0 || !task.allowed.intersects(&situation.cpus) {
                continue;
            }
            let lane = match situation.cpus.is_subset(&task.allowed) {
                true => only_cpu,
                false => task.allowed.and(&situation.cpus).single(),
            };
            let utilisation = task.utilisation();
            self.total += utilisation;
            if let Some(lane) = lane {
                let lane = lane as usize;
                if self.by_lane.len() <= lane {
                    self.by_lane.resize(lane + 1, 0.0);
                }
                self.by_lane[lane] += utilisation;
            }
            let first = task.first_deadline_ns(situation.now_ns);
            for k in 0..exact {
                self.by_task.push(Release {
                    at_ns: first.saturating_add(task.period_ns.max(1).saturating_mul(k)),
                    work_ns: task.runtime_ns,
                    per_ns: if k + 1 == exact { utilisation } else { 0.0 },
                    criticality: task.criticality,
                    lane,
                });
            }
        }
        self.order
            .sort(&self.by_task, |release| release.at_ns, situation.now_ns);
        let in_order = self.order.indices().iter();
        self.releases
            .extend(in_order.map(|&index| self.by_task[index as usize]));
    }

    /// Can the tasks bound to a CPU be served by it in the long run?
    pub fn fits_lane(&self, lane: u16) -> bool {
        self.by_lane.get(lane as usize).is_none_or(|&u| u <= FULL)
    }

    /// Admission has taken out what the CPU cannot serve, as far as the last
    /// pending deadline; what comes after that concerns nobody.
    pub fn plan_lane(&mut self, lane: CpuId) {
        if self.fits_lane(lane) {
            return;
        }
        for release in &mut self.releases {
            if release.lane == Some(lane) {
                release.per_ns = 0.0;
            }
        }
        self.planned.insert(lane);
    }

    /// Is there anything to be gained by keeping room on this CPU for what is to
    /// come? Not where it is more than can be served.
    pub fn deserves_room(&self, lane: CpuId) -> bool {
        self.fits_lane(lane) || self.planned.contains(lane)
    }

    pub fn fits_pool(&self, cpus: usize) -> bool {
        self.total <= cpus as f64 * FULL
    }
}

/// Demand of the releases added so far.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Demand {
    work_ns: i64,
    per_ns: f64,
    /// Σ per_ns · (at − now): where the lines start.
    offset: f64,
}

impl Demand {
    pub fn add(&mut self, release: &Release, now_ns: i64) {
        let at = release.at_ns.saturating_sub(now_ns);
        self.work_ns = self.work_ns.saturating_add(release.work_ns);
        self.per_ns += release.per_ns;
        self.offset += release.per_ns * at as f64;
    }

    /// Work due by now + `ahead_ns`, rounded up.
    pub fn by(&self, ahead_ns: i64) -> i64 {
        if self.per_ns == 0.0 {
            return self.work_ns;
        }
        let line = (self.per_ns * ahead_ns as f64 - self.offset).max(0.0);
        // Of what ceil() does only this is needed, and not every CPU has it built in.
        let below = line as i64;
        let up = i64::from((below as f64) < line);
        self.work_ns.saturating_add(below.saturating_add(up))
    }
}
