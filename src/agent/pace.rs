//! How often the agent decides: as often as its share of a CPU pays for.

const MS: i64 = 1_000_000;
/// No decision follows another sooner.
pub const LEAST_INTERVAL: i64 = MS;
/// With jobs waiting, none follows later, unless more than the budget were spent: what was
/// said of tasks would expire.
pub const MOST_INTERVAL: i64 = 400 * MS;
/// What it decides about needs the CPUs too: of what those tasks leave, it takes
/// no more than this part, but always a little.
const OF_SPARE: f64 = 0.1;
const LEAST_SHARE: f64 = 0.001;
/// What takes this long is dear.
const DEAR: i64 = 5 * MS;

pub struct Pace {
    /// Shares of one CPU: what it may use, and what it takes for now.
    budget: f64,
    share: f64,
    /// What was spent since the last decision began, and a running mean of what is from
    /// one to the next.
    spent_ns: i64,
    mean_ns: i64,
}

impl Pace {
    pub fn new(budget: f64) -> Pace {
        Pace {
            budget,
            share: budget,
            spent_ns: 0,
            mean_ns: 0,
        }
    }

    /// Those tasks leave `spare` CPUs. `None`: not all of them were seen at work yet, and who
    /// is kept then is soon found out to be wrong, so it takes all it may.
    pub fn leave_room(&mut self, spare: Option<f64>) {
        self.share = match spare {
            Some(spare) => (spare * OF_SPARE).clamp(LEAST_SHARE.min(self.budget), self.budget),
            None => self.budget,
        };
    }

    /// A decision is being made; what is spent from here on counts for it.
    pub fn begin(&mut self) {
        self.mean_ns = mean_cost(self.mean_ns, self.spent_ns);
        self.spent_ns = 0;
    }

    /// A round took so much of a CPU, whether or not it decided.
    pub fn spend(&mut self, cost_ns: i64) {
        self.spent_ns += cost_ns.max(0);
    }

    /// Time from the beginning of the last decision to the next one.
    pub fn interval(&self) -> i64 {
        let cost = self.spent_ns.max(self.mean_ns) as f64;
        let wanted = ((cost / self.share) as i64).clamp(LEAST_INTERVAL, MOST_INTERVAL);
        wanted.max((cost / self.budget) as i64)
    }
}

/// The mean after one that took `cost`. Dear ones that come as a surprise count at once: a few
/// of them spend all that the BPF half lets pass, and then it waits.
fn mean_cost(mean: i64, cost: i64) -> i64 {
    match cost > DEAR && cost > 4 * mean {
        true => cost,
        false => mean + (cost - mean) / 8,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is used of a CPU when decisions cost so much each, with so many cheap rounds
    /// between two of them.
    fn used(pace: &mut Pace, decision_ns: i64, rounds: i64, round_ns: i64) -> f64 {
        let (mut spent, mut time) = (0, 0);
        for _ in 0..200 {
            pace.begin();
            pace.spend(decision_ns);
            for _ in 0..rounds {
                pace.spend(round_ns);
            }
            spent += decision_ns + rounds * round_ns;
            time += pace.interval();
        }
        spent as f64 / time as f64
    }

    #[test]
    fn dear_ones_count_at_once_and_others_little_by_little() {
        assert_eq!(mean_cost(0, MS), MS / 8);
        assert_eq!(mean_cost(MS, 6 * MS), 6 * MS);
        assert_eq!(mean_cost(2 * MS, 6 * MS), 2 * MS + MS / 2);
        assert_eq!(mean_cost(16 * MS, 0), 14 * MS);
    }

    #[test]
    fn the_budget_holds_however_slow_decisions_are() {
        for decision_ns in [MS / 10, MS, 25 * MS, 400 * MS] {
            for rounds in [0, 1, 20] {
                let mut pace = Pace::new(0.05);
                assert!(used(&mut pace, decision_ns, rounds, MS / 20) <= 0.0501);
                // However little is left for it.
                pace.leave_room(Some(0.0));
                assert!(used(&mut pace, decision_ns, rounds, MS / 20) <= 0.0501);
            }
        }
    }

    #[test]
    fn decisions_go_on_where_little_room_is_left() {
        let mut pace = Pace::new(0.05);
        pace.leave_room(Some(0.0));
        pace.begin();
        pace.spend(10 * MS);
        assert_eq!(pace.interval(), MOST_INTERVAL);
        pace.leave_room(Some(0.2));
        assert_eq!(pace.interval(), MOST_INTERVAL);
        pace.leave_room(None);
        assert_eq!(pace.interval(), 200 * MS);
        // A budget below what is always taken is kept to as well.
        let mut pace = Pace::new(0.0005);
        pace.leave_room(Some(1.0));
        pace.begin();
        pace.spend(MS);
        assert_eq!(pace.interval(), 2000 * MS);
    }
}
