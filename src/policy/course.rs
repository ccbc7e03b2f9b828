//! What the shield and the network are told where late jobs go on: the plan applied to the
//! situation, and work overstated by the margins.

use super::job::{Job, Situation, Standing, Upcoming};
use super::plan::Plan;
use super::shield::ShieldConfig;

#[derive(Debug, Clone, Default)]
pub(super) struct Course {
    plan: Plan,
    jobs: Vec<Job>,
    upcoming: Vec<Upcoming>,
}

impl Course {
    /// The situation as the plan has it: jobs that are a loan are one, due when the loan is.
    pub fn plot(&mut self, told: &Situation<'_>, config: &ShieldConfig) -> Situation<'_> {
        let fill = match told.cpus.count() {
            0 | 1 => 1.0,
            _ => f64::from(config.kept_permille) / 1000.0,
        };
        let standings = self.plan.make(told, fill);
        self.jobs.clear();
        self.jobs.extend_from_slice(told.jobs);
        self.upcoming.clear();
        self.upcoming.extend_from_slice(told.upcoming);
        for (next, &standing) in self.upcoming.iter_mut().zip(standings) {
            next.standing = standing;
            let job = next.pending.and_then(|at| self.jobs.get_mut(at as usize));
            if let Some(job) = job {
                queue_behind(next, job, told.now_ns);
            }
        }
        let margins = config.margins;
        for job in &mut self.jobs {
            job.remaining_ns = margins.pending(job.remaining_ns);
        }
        for next in &mut self.upcoming {
            next.runtime_ns = margins.upcoming(next.runtime_ns);
        }
        Situation {
            jobs: &self.jobs,
            upcoming: &self.upcoming,
            ..*told
        }
    }

    /// What was decided for the task at this place of [`Situation::upcoming`].
    pub fn standing(&self, task: usize) -> Standing {
        self.upcoming
            .get(task)
            .map_or(Standing::default(), |task| task.standing)
    }
}

/// The next job comes behind the loan, or behind the pending job, and keeps its deadline.
fn queue_behind(next: &mut Upcoming, job: &mut Job, now_ns: i64) {
    let period_ns = next.period_ns.max(1);
    if next.outlived {
        job.remaining_ns = job.work_ns().min(next.spread_ns.max(1));
    }
    let first_due_ns = next.release_ns.saturating_add(next.deadline_ns);
    let no_loan = next.standing.due_ns <= job.deadline_ns;
    if next.standing.kept && no_loan && job.deadline_ns > now_ns {
        // It may take less than expected: the plan found no proof that it will be late.
        job.remaining_ns = job.work_ns().min(job.deadline_ns.saturating_sub(now_ns));
    } else if next.standing.kept {
        if no_loan {
            next.standing.due_ns = soonest_ns(next, job, now_ns);
        }
        let behind = next.standing.due_ns.saturating_sub(first_due_ns);
        if behind >= 0 {
            let jobs = (behind / period_ns).saturating_add(1);
            let work_ns = next.runtime_ns.max(0).saturating_mul(jobs);
            job.remaining_ns = job.work_ns().saturating_add(work_ns);
            job.deadline_ns = next.standing.due_ns;
            next.release_ns = next
                .release_ns
                .saturating_add(jobs.saturating_mul(period_ns));
        }
    }
    if next.release_ns < now_ns {
        let due_ns = next.release_ns.saturating_add(next.deadline_ns);
        next.release_ns = now_ns;
        next.deadline_ns = due_ns.saturating_sub(now_ns).max(0);
    }
}

/// When its first job is due that could be on time if nobody else ran.
fn soonest_ns(next: &Upcoming, job: &Job, now_ns: i64) -> i64 {
    let first_due_ns = next.release_ns.saturating_add(next.deadline_ns);
    let gain_ns = next.period_ns.saturating_sub(next.runtime_ns).max(1);
    let needed_ns = job.work_ns().saturating_add(next.runtime_ns.max(0));
    let missing_ns = now_ns
        .saturating_add(needed_ns)
        .saturating_sub(first_due_ns);
    let jobs = missing_ns.max(0) / gain_ns + 1;
    first_due_ns.saturating_add(jobs.saturating_mul(next.period_ns.max(1)))
}
