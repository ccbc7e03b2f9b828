//! The shield: who may run until the next decision without costing anybody a
//! deadline.
//!
//! # One core: exact
//!
//! Pending jobs are feasible iff in deadline order every prefix of the work
//! fits: W(D) ≤ D − t for each deadline D, with W(D) the work due by D. Let
//! margin(D) = D − t − W(D). Running job j for q leaves margin(D) alone for
//! D ≥ d_j (time and work shrink together) and takes q from it for D < d_j. So
//!
//! > j may run for q  ⇔  margin(D) ≥ q for all D < d_j.
//!
//! Nobody stands before the EDF choice, so it is never masked; and whichever
//! unmasked job is run, the rest stays feasible.
//!
//! **Arrivals.** That alone is not "no deadline is lost that EDF would have
//! met": work put off for later-deadline work is still there when the next
//! short job arrives, and EDF would have had it done. So W(D) also counts what
//! [`Upcoming`] tasks may release and have due by D. By the busy-interval
//! argument this is again exact in the inductive sense: if pending jobs and
//! all future releases can be met now, they still can after any unmasked
//! choice. (Intervals that start later hold only future jobs; no choice
//! changes those.) The demand of a task's first few jobs is counted exactly
//! and bounded by a line after that, which can only mask too much. Tasks that
//! are not in `upcoming` are not protected. When the known tasks ask for more
//! than the whole core somebody must lose: whom, [`OverloadRule`] says, and the
//! promise is then to those it keeps.
//!
//! # Several cores: a test that is exact, a mask that is sufficient
//!
//! For jobs that may run anywhere, the pending set is feasible iff for every
//! deadline D the work that cannot be put off beyond D,
//! Σ clamp(D − (d_i − c_i), 0, c_i), is at most m·(D − t) (Horn 1974; necessary
//! and sufficient with free migration; plain prefix sums are only necessary),
//! and no slack is negative. The mask lets j run if the margin against every
//! D < d_j − c_j + q is at least m·q, so that any m unmasked jobs together
//! keep the set feasible; jobs whose slack is below q *must* run. Where fewer
//! than m jobs pass, the free CPUs go to the masked ones with the earliest
//! latest start (LLF; under [`OverloadRule::Keep`] the earliest deadline): work is
//! conserved, but the promise is then that order's, not the shield's. No online policy is optimal on several cores once jobs
//! arrive (Dertouzos and Mok), so arrivals only make the mask more careful.
//!
//! Jobs that may use one CPU only are held to the exact test of that CPU, and
//! others may borrow it only within its least margin: a partitioned machine gets the
//! one-core promise on every core.
//!
//! # Overload
//!
//! If the pending jobs cannot all be met, [`OverloadRule`] says who are the
//! candidates. Jobs with negative slack never are; see [`super::LateRule`].

mod admission;
mod future;
mod lanes;
mod order;
mod pool;

use super::cpumask::CpuMask;
use super::job::{Job, Situation};
use super::linux::{Margins, KEPT_PERMILLE};
use serde::{Deserialize, Serialize};

/// Who may be picked when somebody must be sacrificed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OverloadRule {
    /// Everybody who could still be on time: the scores alone decide whom to
    /// keep. For scorers that have learned to.
    Fit,
    /// Those Moore–Hodgson would keep (least critical, then longest, dropped
    /// first), under the mask that keeps all of them on time. On one core and
    /// with equal criticality that is as many as can be. The default: with the
    /// distilled rule on random 5-task sets at U = 1.5 it meets 85 % of the
    /// deadlines where `Fit` meets 75 (late jobs aborted; 80 and 76 if not).
    #[default]
    Admit,
    /// Whole tasks are given up, before the shield looks at their jobs; see
    /// [`super::plan`]. Where the jobs of the others do not fit with the margins, they run
    /// by deadline. For machines where late jobs go on, as on Linux.
    Keep,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ShieldConfig {
    pub overload: OverloadRule,
    /// Overload is declared at once and called off after this long without.
    pub calm_ns: i64,
    /// By how much work is overstated to the tests, because others use the CPUs too: the
    /// mask keeps room for them, but no task is given up for that.
    pub margins: Margins,
    /// What is kept may fill so many thousandths of several CPUs. A job runs on one CPU at a
    /// time: a set that fills two is late on both (docs/measurements/tournament.md).
    pub kept_permille: u32,
}

impl Default for ShieldConfig {
    fn default() -> ShieldConfig {
        ShieldConfig {
            overload: OverloadRule::default(),
            calm_ns: 50_000_000,
            margins: Margins::NONE,
            kept_permille: KEPT_PERMILLE,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Verdict {
    /// All pending jobs that are not late already can be on time.
    pub feasible: bool,
    /// The machine is in overload: `!feasible`, with hysteresis. For those who
    /// act on it (mitigations, the kernel side); the mask follows `feasible`.
    pub overloaded: bool,
    /// Leaving every CPU idle until the next decision costs no deadline.
    pub may_idle: bool,
}

/// The shield with its state and working memory. After [`Shield::assess`] it
/// answers questions about that situation.
#[derive(Debug, Clone, Default)]
pub struct Shield {
    config: ShieldConfig,
    overload: Hysteresis,
    /// Where each job may run at all, and where it may run now.
    open: Vec<CpuMask>,
    permitted: Vec<CpuMask>,
    candidates: Vec<u32>,
    masked: Vec<u32>,
    /// How many of the masked were not given up.
    kept: usize,
    late: Vec<u32>,
    given_up: Vec<u32>,
    /// By job: its task was given up.
    gone: Vec<bool>,
    must: Vec<u32>,
    order: order::DeadlineOrder,
    timely: Vec<Pending>,
    standing: Vec<Standing>,
    future: future::Future,
    lanes: lanes::Lanes,
    pool: pool::Pool,
    admission: admission::Admission,
}

/// A job that can still be on time, as the tests see it.
#[derive(Debug, Clone, Copy)]
struct Pending {
    deadline_ns: i64,
    work_ns: i64,
    job: u32,
    /// The one CPU it may use, if there is only one.
    lane: Option<u16>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    Open,
    Must,
    /// Would cost somebody a deadline if it ran now.
    Masked,
    /// Given up in overload.
    Dropped,
}

impl Shield {
    pub fn new(config: ShieldConfig) -> Shield {
        Shield {
            config,
            ..Shield::default()
        }
    }

    /// The demand test and the mask. O(N log N).
    pub fn assess(&mut self, situation: &Situation<'_>) -> Verdict {
        let keeps = self.config.overload == OverloadRule::Keep;
        self.sort_out(situation, true);
        let lanes_fit = self.lanes.test(situation, &self.timely);
        let pool_fits = self.pool.test(situation, &self.timely);
        let feasible = lanes_fit && pool_fits;

        self.clear_standing();
        self.future.gather(situation, keeps);
        match self.config.overload {
            OverloadRule::Fit => {}
            OverloadRule::Admit => self.admission.drop_some(
                situation,
                &self.timely,
                &self.lanes,
                &self.pool,
                &mut self.future,
                &mut self.standing,
            ),
            OverloadRule::Keep => {
                if !self.all_fits(situation) {
                    return self.by_deadline(situation, feasible);
                }
            }
        }
        let idle_in_lanes = self.lanes.mask(
            situation,
            &self.timely,
            &self.future,
            self.config.overload,
            &mut self.standing,
            &mut self.permitted,
        );
        let idle_in_pool =
            self.pool
                .mask(situation, &self.timely, &self.future, &mut self.standing);
        self.hand_out(situation.jobs);

        self.verdict(situation, feasible, idle_in_lanes && idle_in_pool)
    }

    fn verdict(&mut self, situation: &Situation<'_>, feasible: bool, may_idle: bool) -> Verdict {
        Verdict {
            feasible,
            overloaded: self
                .overload
                .update(!feasible, situation.now_ns, self.config.calm_ns),
            may_idle: feasible && may_idle,
        }
    }

    /// Do the kept jobs, pending and to come, fit with their margins?
    fn all_fits(&self, situation: &Situation<'_>) -> bool {
        let cpus = situation.cpus.count();
        let lane_fits = |cpu| self.lanes.fits(cpu) && self.future.fits_lane(cpu);
        let pool_fits = cpus <= 1 || self.pool.fits() && self.future.fits_pool(cpus);
        pool_fits && self.lanes.in_use().all(lane_fits)
    }

    /// No order but EDF's is known to cost nobody a deadline: each CPU's first bound job may
    /// run, and as many others as there are CPUs, in the order of their deadlines.
    fn by_deadline(&mut self, situation: &Situation<'_>, feasible: bool) -> Verdict {
        let cpus = situation.cpus.count();
        let mut ahead = 0;
        let mut led = CpuMask::EMPTY;
        for (pending, standing) in self.timely.iter().zip(&mut self.standing) {
            let leads = ahead < cpus && pending.lane.is_none_or(|cpu| !led.contains(cpu));
            if leads {
                ahead += 1;
                pending.lane.into_iter().for_each(|cpu| led.insert(cpu));
            } else {
                *standing = Standing::Masked;
            }
        }
        self.hand_out(situation.jobs);
        self.verdict(situation, feasible, false)
    }

    /// No test, no mask: every job is a candidate, the late ones too.
    pub fn wave_through(&mut self, situation: &Situation<'_>) -> Verdict {
        self.sort_out(situation, false);
        self.permitted.clone_from(&self.open);
        self.must.clear();
        self.masked.clear();
        self.kept = 0;
        self.candidates.clear();
        self.candidates
            .extend(self.timely.iter().map(|pending| pending.job));
        Verdict {
            feasible: true,
            overloaded: false,
            may_idle: true,
        }
    }

    /// Jobs that may run: those that must, by latest start, then the others
    /// in deadline order.
    pub fn candidates(&self) -> &[u32] {
        &self.candidates
    }

    /// Candidates that must run now or be late.
    pub fn must(&self) -> &[u32] {
        &self.must
    }

    /// Jobs held back: they may have CPUs that no candidate wants.
    pub fn masked(&self) -> &[u32] {
        &self.masked
    }

    /// Puts the masked into the order in which to run them after all: by
    /// latest start (by deadline where tasks are kept), and last those given up in overload. Few decisions have a
    /// CPU left for them, so this is not done before it is needed.
    pub fn rank_masked(&mut self, jobs: &[Job]) {
        let by_latest_start = |&job: &u32| (jobs[job as usize].latest_start_ns(), job);
        let (kept, dropped) = self.masked.split_at_mut(self.kept);
        match self.config.overload {
            OverloadRule::Keep => {
                kept.sort_unstable_by_key(|&job| (jobs[job as usize].deadline_ns, job))
            }
            _ => kept.sort_unstable_by_key(by_latest_start),
        }
        dropped.sort_unstable_by_key(by_latest_start);
    }

    /// Hopeless jobs, by deadline.
    pub fn late(&self) -> &[u32] {
        &self.late
    }

    /// Jobs of tasks that were given up, by deadline.
    pub fn given_up(&self) -> &[u32] {
        &self.given_up
    }

    /// Where each job may run now, by job: not on CPUs whose bound jobs have
    /// no room for it.
    pub fn permitted(&self) -> &[CpuMask] {
        &self.permitted
    }

    /// Where each job may run if the CPU would idle otherwise.
    pub fn open(&self) -> &[CpuMask] {
        &self.open
    }

    /// Splits jobs into timely and late, both in deadline order. Jobs that may
    /// use none of the CPUs at hand are somebody else's.
    fn sort_out(&mut self, situation: &Situation<'_>, set_late_apart: bool) {
        let Situation {
            now_ns, jobs, cpus, ..
        } = *situation;
        self.lanes.reset();
        self.open.clear();
        self.timely.clear();
        self.late.clear();
        self.given_up.clear();
        // Any of these may have to take all jobs, for the first time in the middle of
        // an overload.
        for list in [
            &mut self.late,
            &mut self.given_up,
            &mut self.must,
            &mut self.candidates,
            &mut self.masked,
        ] {
            list.reserve(jobs.len().saturating_sub(list.len()));
        }
        let keeps = set_late_apart && self.config.overload == OverloadRule::Keep;
        self.gone.clear();
        self.gone.resize(jobs.len(), false);
        for task in situation.upcoming.iter().filter(|_| keeps) {
            let job = task.pending.filter(|_| !task.standing.kept);
            if let Some(gone) = job.and_then(|job| self.gone.get_mut(job as usize)) {
                *gone = true;
            }
        }
        self.order.sort(jobs, |job| job.deadline_ns, now_ns);
        self.open
            .extend(jobs.iter().map(|job| job.allowed.and(&cpus)));
        let only_cpu = cpus.single();
        for &index in self.order.indices() {
            let job = &jobs[index as usize];
            let open = &self.open[index as usize];
            let lane = match cpus.is_subset(open) {
                true => only_cpu,
                false => open.single(),
            };
            if lane.is_none() && open.is_empty() {
                continue;
            }
            if self.gone[index as usize] {
                self.given_up.push(index);
            } else if set_late_apart && job.slack(now_ns).is_hopeless() {
                self.late.push(index);
            } else {
                self.timely.push(Pending {
                    deadline_ns: job.deadline_ns,
                    work_ns: job.work_ns(),
                    job: index,
                    lane,
                });
            }
        }
    }

    fn clear_standing(&mut self) {
        self.permitted.clone_from(&self.open);
        self.standing.clear();
        self.standing.resize(self.timely.len(), Standing::Open);
    }

    fn hand_out(&mut self, jobs: &[Job]) {
        let by_standing = |wanted: Standing| {
            let all = self.timely.iter().zip(&self.standing);
            all.filter(move |(_, &standing)| standing == wanted)
                .map(|(pending, _)| pending.job)
        };
        let by_latest_start = |&job: &u32| (jobs[job as usize].latest_start_ns(), job);
        self.must.clear();
        self.must.extend(by_standing(Standing::Must));
        self.must.sort_unstable_by_key(by_latest_start);
        self.candidates.clear();
        self.candidates.extend_from_slice(&self.must);
        self.candidates.extend(by_standing(Standing::Open));
        self.masked.clear();
        self.masked.extend(by_standing(Standing::Masked));
        self.kept = self.masked.len();
        self.masked.extend(by_standing(Standing::Dropped));
    }
}

/// On at once, off after a while without cause.
#[derive(Debug, Clone, Default)]
struct Hysteresis {
    last_cause_ns: Option<i64>,
}

impl Hysteresis {
    fn update(&mut self, cause: bool, now_ns: i64, calm_ns: i64) -> bool {
        if cause {
            self.last_cause_ns = Some(now_ns);
        }
        let calm = |last: i64| now_ns.saturating_sub(last) >= calm_ns;
        self.last_cause_ns = self.last_cause_ns.filter(|&last| cause || !calm(last));
        self.last_cause_ns.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overload_is_declared_at_once_and_called_off_after_calm() {
        let mut overload = Hysteresis::default();
        let seen: Vec<bool> = [
            (true, 0),
            (false, 10),
            (false, 49),
            (true, 60),
            (false, 109),
            (false, 110),
            (false, 111),
        ]
        .map(|(cause, now)| overload.update(cause, now, 50))
        .to_vec();
        assert_eq!(seen, [true, true, true, true, true, false, false]);
    }
}
