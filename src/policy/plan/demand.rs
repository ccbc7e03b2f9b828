//! The demand test: work due by a date, against what the CPUs can give until then.
//!
//! The dates are on a logarithmic grid, and where tasks are few their first deadlines stand
//! between. What falls due between two dates is counted at the second. The load in the long
//! run is compared as well.

use super::super::job::Situation;
use super::claim::{Claim, Doubt};
use super::{Term, HORIZON_NS};

const SHORTEST_NS: f64 = 1e6;
/// Dates of the grid; fewer where many tasks have to be added up.
const DATES: usize = 40;
const DATES_OF_MANY: usize = 20;
const MOST_DATES: usize = DATES + 2 * FEW;
/// Up to so many tasks, their first deadlines are dates, too.
const FEW: usize = 24;
/// So much more than there is counts as rounding.
pub const FULL: f64 = 1.0 + 1e-3;

#[derive(Debug, Clone, Default)]
pub struct Demand {
    dates: Vec<f64>,
    cpus: f64,
    share: f64,
    fill: f64,
    /// Work by date, of all tasks and then of those bound to each CPU.
    used: Vec<Vec<f64>>,
    loads: Vec<f64>,
    /// How many of these rows are in use.
    rows: usize,
    work: Vec<f64>,
}

impl Demand {
    pub fn start(&mut self, situation: &Situation<'_>, claims: &[Claim], fill: f64) {
        self.cpus = situation.cpus.count() as f64;
        self.share = situation.share;
        self.fill = fill;
        self.dates.clear();
        self.dates.reserve(MOST_DATES);
        self.work.reserve(MOST_DATES);
        let few = claims.len() <= FEW;
        let dates = if few { DATES } else { DATES_OF_MANY };
        let step = (HORIZON_NS / SHORTEST_NS).powf(1.0 / (dates - 1) as f64);
        let mut at = SHORTEST_NS;
        for _ in 0..dates {
            self.dates.push(at);
            at *= step;
        }
        if few {
            let first = claims.iter().flat_map(Claim::first_dates);
            let ahead = first.filter(|&at| at > 0.0 && at < HORIZON_NS);
            self.dates.extend(ahead);
            self.dates.sort_unstable_by(f64::total_cmp);
        }
        // Room for tasks that are bound to any CPU, and rows for those that are.
        let last = situation.cpus.iter().last().map_or(0, usize::from);
        let row = || Vec::with_capacity(MOST_DATES);
        self.used.resize_with(self.used.len().max(last + 2), row);
        self.loads.resize(self.used.len(), 0.0);
        let lanes = claims.iter().filter_map(|claim| claim.lane);
        self.rows = 1 + lanes.map(|lane| usize::from(lane) + 1).max().unwrap_or(0);
        self.work.clear();
        self.work.resize(self.dates.len(), 0.0);
        self.clear();
    }

    pub fn clear(&mut self) {
        for row in &mut self.used[..self.rows] {
            row.clear();
            row.resize(self.dates.len(), 0.0);
        }
        self.loads[..self.rows].fill(0.0);
    }

    /// What the CPUs can give to all, or one of them to those bound to it, per time. Against
    /// a proof every bit counts; a plan leaves what several CPUs cannot share out.
    fn rate(&self, lane: bool, doubt: Doubt) -> f64 {
        let fill = match (lane, doubt) {
            (false, Doubt::Expected) => self.fill,
            _ => 1.0,
        };
        let cpus = if lane { 1.0 } else { self.cpus };
        cpus * self.share * fill * FULL
    }

    /// What all CPUs can give per time.
    pub fn room(&self) -> f64 {
        self.rate(false, Doubt::Expected)
    }

    /// Does the load fit in the long run beside those that were added?
    pub fn bears(&self, claim: &Claim, doubt: Doubt) -> bool {
        let load = claim.load(doubt);
        let fits = |row: usize| self.loads[row] + load <= self.rate(row > 0, doubt);
        fits(0) && row_of(claim).is_none_or(fits)
    }

    pub fn bear(&mut self, claim: &Claim, doubt: Doubt) {
        let load = claim.load(doubt);
        self.loads[0] += load;
        if let Some(row) = row_of(claim) {
            self.loads[row] += load;
        }
    }

    /// Adds the task if it fits on these terms.
    pub fn add(&mut self, claim: &Claim, term: Term, doubt: Doubt) -> bool {
        let fits = self.bears(claim, doubt) && self.fits(claim, term, doubt);
        if fits {
            self.book(claim, doubt);
        }
        fits
    }

    /// Adds all jobs of the task as they are due, whether they fit or not.
    pub fn add_anyhow(&mut self, claim: &Claim) {
        self.ask(claim, 0, Doubt::Expected);
        self.book(claim, Doubt::Expected);
    }

    /// Adds what was asked for last.
    fn book(&mut self, claim: &Claim, doubt: Doubt) {
        self.bear(claim, doubt);
        for row in [Some(0), row_of(claim)].into_iter().flatten() {
            for (used, work) in self.used[row].iter_mut().zip(&self.work) {
                *used += work;
            }
        }
    }

    fn ask(&mut self, claim: &Claim, from: u32, doubt: Doubt) {
        let works = claim.works(doubt);
        for (work, &date) in self.work.iter_mut().zip(&self.dates) {
            *work = claim.due_by(date, from, works);
        }
    }

    /// Adds the task with the shortest loan that fits. A longer one asks for less by any
    /// date, so it is found by halving.
    pub fn add_soonest(&mut self, claim: &Claim) -> Option<Term> {
        const DOUBT: Doubt = Doubt::Expected;
        if !self.bears(claim, DOUBT) {
            return None;
        }
        let alone = claim.alone(DOUBT);
        if self.add(claim, alone, DOUBT) {
            return Some(alone);
        }
        let mut short = match alone {
            Term::From(job) => job,
            _ => 0,
        };
        let mut long = claim.last();
        if long <= short || !self.fits(claim, Term::From(long), DOUBT) {
            return None;
        }
        while long - short > 1 {
            let middle = short + (long - short) / 2;
            match self.fits(claim, Term::From(middle), DOUBT) {
                true => long = middle,
                false => short = middle,
            }
        }
        let term = Term::From(long);
        self.add(claim, term, DOUBT).then_some(term)
    }

    fn fits(&mut self, claim: &Claim, term: Term, doubt: Doubt) -> bool {
        let from = match term {
            Term::From(job) => job,
            _ => 0,
        };
        self.ask(claim, from, doubt);
        let fits = |row: usize| {
            let rate = self.rate(row > 0, doubt);
            let room = self.used[row].iter().zip(&self.dates);
            let mut all = self.work.iter().zip(room);
            all.all(|(&work, (&used, &date))| work <= 0.0 || used + work <= date * rate)
        };
        fits(0) && row_of(claim).is_none_or(fits)
    }
}

fn row_of(claim: &Claim) -> Option<usize> {
    claim.lane.map(|lane| usize::from(lane) + 1)
}
