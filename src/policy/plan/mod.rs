//! Which tasks to keep where late jobs go on, as on Linux.
//!
//! A task that falls behind delays its own next job. So overload is about tasks, not jobs: some
//! are kept on time, and the others get what is left. Every task has one of three terms:
//!
//! - **on time**: all its jobs are to meet their deadlines;
//! - **on time from a date**: it is behind, and the jobs up to that date are a loan. Their work
//!   is due together with the first job that is on time again;
//! - **given up**.
//!
//! **No task is given up without a proof.** The demand of all tasks is compared with what the
//! CPUs can give by a number of dates ([`demand`]), with the least that the work seen so far
//! lets expect, and with the share of the CPUs that declared jobs really got on this machine
//! ([`Situation::share`]). Where that fits, all are kept.
//!
//! Otherwise a few plans are compared by the jobs that they promise on time within
//! [`HORIZON_NS`]. A plan is an order in which tasks are admitted ([`members`]). Room is then
//! given by period, the shortest first: a loan costs its holder every job, so it costs the most
//! where jobs are frequent. The plan that keeps the kept tasks goes first, and another one must
//! promise [`WORTH_IT`] jobs more.

mod claim;
mod demand;
mod members;

use super::job::{Situation, Standing};
use claim::{Claim, Doubt};
use demand::Demand;
use members::Order;

/// A plan looks so far ahead, and a loan is repaid within this.
const HORIZON_NS: f64 = 4e9;
/// Another plan must promise so many jobs more than the one that keeps the kept tasks.
const WORTH_IT: f64 = 2.0;
/// Up to so many tasks every decision makes a plan.
const FEW: usize = 16;
/// With more tasks a plan stands for this long per task. That bounds what planning costs.
const STANDS_NS_PER_TASK: i64 = 250_000;

/// What was decided for a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Term {
    #[default]
    OnTime,
    /// The first so many jobs, the pending one included, will be late.
    From(u32),
    GivenUp,
}

/// The plan with its working memory. After the first few calls it allocates nothing.
#[derive(Debug, Clone, Default)]
pub(super) struct Plan {
    claims: Vec<Claim>,
    demand: Demand,
    orders: members::Members,
    terms: Vec<Term>,
    trial: Vec<Term>,
    /// When the last plan was made, and for how many tasks.
    made_ns: i64,
    tasks: usize,
    /// By task.
    standings: Vec<Standing>,
}

impl Plan {
    /// What to do with each task, in the order of [`Situation::upcoming`]. `fill` of what the
    /// CPUs can give may be planned.
    pub fn make(&mut self, situation: &Situation<'_>, fill: f64) -> &[Standing] {
        let tasks = situation.upcoming.len();
        let stands_ns = STANDS_NS_PER_TASK * tasks as i64;
        let age_ns = situation.now_ns.saturating_sub(self.made_ns);
        // A clock that was set back makes no plan stand for longer.
        let recent = (0..stands_ns).contains(&age_ns);
        let stands = tasks > FEW && tasks == self.tasks && recent;
        self.standings.clear();
        self.standings.reserve(tasks);
        if stands {
            let before = situation.upcoming.iter().map(|task| task.standing);
            self.standings.extend(before);
            return &self.standings;
        }
        self.made_ns = situation.now_ns;
        self.tasks = tasks;
        claim::collect(situation, &mut self.claims);
        self.terms.clear();
        self.terms.resize(tasks, Term::OnTime);
        self.trial.clear();
        self.trial.resize(tasks, Term::OnTime);
        self.demand.start(situation, &self.claims, fill);
        if self.may_all_fit() {
            self.keep_all();
        } else {
            self.compare_plans();
        }
        for (claim, &term) in self.claims.iter().zip(&self.terms) {
            self.standings.push(Standing {
                kept: term != Term::GivenUp,
                due_ns: claim.due_ns(term, situation.now_ns),
            });
        }
        &self.standings
    }

    /// Is there no proof that some task must be given up?
    fn may_all_fit(&mut self) -> bool {
        self.demand.clear();
        let claims = self.claims.iter();
        claims.filter(|claim| claim.asks()).all(|claim| {
            self.demand
                .add(claim, claim.alone(Doubt::Least), Doubt::Least)
        })
    }

    /// No task is given up, and none waits that may still be on time. One that is behind for certain
    /// gets its room from what the others are expected to leave, by period; where they leave
    /// none, it goes on as if it were alone.
    fn keep_all(&mut self) {
        self.demand.clear();
        let all = self.claims.iter().zip(&mut self.terms);
        for (claim, term) in all.filter(|(claim, _)| claim.asks()) {
            *term = claim.alone(Doubt::Least);
            if *term == Term::OnTime {
                self.demand.add_anyhow(claim);
            }
        }
        for &at in self.orders.by_period(&self.claims) {
            let (claim, term) = (&self.claims[at as usize], &mut self.terms[at as usize]);
            if *term != Term::OnTime {
                let found = self.demand.add_soonest(claim);
                *term = found.unwrap_or(claim.alone(Doubt::Expected));
            }
        }
    }

    fn compare_plans(&mut self) {
        let mut best = f64::MIN;
        for order in Order::ALL {
            let Plan {
                claims,
                demand,
                orders,
                trial,
                ..
            } = self;
            if !orders.admit(order, claims, demand) {
                continue;
            }
            for (term, claim) in trial.iter_mut().zip(&*claims) {
                *term = if claim.asks() {
                    Term::GivenUp
                } else {
                    Term::OnTime
                };
            }
            demand.clear();
            let mut promise = 0.0;
            // Members first, by period; then all others that still find room.
            for &at in orders.members() {
                let claim = &claims[at as usize];
                if let Some(term) = demand.add_soonest(claim) {
                    trial[at as usize] = term;
                    promise += claim.promise(term);
                }
            }
            let needed = match order {
                Order::Kept => f64::MIN,
                _ => best + WORTH_IT,
            };
            if promise > needed {
                best = promise;
                std::mem::swap(&mut self.terms, &mut self.trial);
            }
        }
    }
}
