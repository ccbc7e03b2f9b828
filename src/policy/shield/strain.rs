//! Whether those who are kept fit after all.
//!
//! Loads are estimates, and interrupts, turns by the starvation bound and the agent itself
//! take what they take. A crowd that asks for a little more than there is stays a little late,
//! all of it, for good: with nothing to spare nobody catches up. So where many of those who
//! are kept are late for long, fewer are kept.

/// The mean follows for about so long.
const FOLLOWS_NS: f64 = 500e6;
/// No two changes are closer, and room is given back much more slowly than it is taken.
const TAKE_EVERY_NS: i64 = 750_000_000;
const GIVE_EVERY_NS: i64 = 2_000_000_000;
/// Strained is who has so many late ones on average, and such a part of those who are kept: a
/// few that are late catch up, and where few are kept each of them counts for much.
const MANY: f64 = 3.0;
const PART: f64 = 0.08;
/// One that is late now and then is no reason not to try more.
const FEW: f64 = 1.0;
/// Who was given less has a backlog to work off first: while that goes down to this part in
/// the time between two changes, it is enough.
const FALLS: f64 = 0.8;
const TAKE: f64 = 0.95;
const GIVE: f64 = 0.01;
const LEAST: f64 = 0.5;

#[derive(Debug, Clone, Copy)]
pub(super) struct Strain {
    late: f64,
    seen_ns: i64,
    changed_ns: i64,
    /// How many were late when room was last taken, or could have been.
    late_then: f64,
    room: f64,
}

impl Default for Strain {
    fn default() -> Strain {
        Strain {
            late: 0.0,
            seen_ns: 0,
            changed_ns: 0,
            late_then: 0.0,
            room: 1.0,
        }
    }
}

impl Strain {
    /// `late` of those `kept` are late at `now_ns`.
    pub fn note(&mut self, late: usize, kept: usize, now_ns: i64) {
        let since = now_ns.saturating_sub(self.seen_ns).max(0) as f64;
        self.late += (late as f64 - self.late) * since / (since + FOLLOWS_NS);
        self.seen_ns = now_ns;
        let unchanged = now_ns.saturating_sub(self.changed_ns);
        if self.late >= MANY.max(PART * kept as f64) && unchanged >= TAKE_EVERY_NS {
            if self.late > self.late_then * FALLS {
                self.room = (self.room * TAKE).max(LEAST);
            }
        } else if self.late < FEW && unchanged >= GIVE_EVERY_NS {
            self.room = (self.room + GIVE).min(1.0);
        } else {
            return;
        }
        self.late_then = self.late;
        self.changed_ns = now_ns;
    }

    /// Of what may be filled, this part.
    pub fn room(&self) -> f64 {
        self.room
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    #[test]
    fn who_stays_late_gets_less_room_and_has_it_back_little_by_little() {
        let mut strain = Strain::default();
        let mut at = 0;
        let mut go_on = |strain: &mut Strain, late, kept, ms| {
            for _ in 0..ms / 10 {
                at += 10 * MS;
                strain.note(late, kept, at);
            }
            strain.room()
        };
        assert_eq!(go_on(&mut strain, 2, 3, 5000), 1.0, "few are kept");
        assert_eq!(go_on(&mut strain, 4, 60, 5000), 1.0, "few are late");
        assert_eq!(go_on(&mut strain, 0, 60, 2000), 1.0);
        assert_eq!(go_on(&mut strain, 10, 60, 200), 1.0, "not for long");
        let less = go_on(&mut strain, 10, 60, 1800);
        assert!((0.8..0.96).contains(&less), "{less}");
        assert!(go_on(&mut strain, 10, 60, 60_000) >= LEAST);
        let back = go_on(&mut strain, 0, 60, 10_000);
        assert!((0.52..0.56).contains(&back), "{back}");
    }

    #[test]
    fn a_backlog_that_goes_down_is_left_alone() {
        let mut strain = Strain::default();
        let mut at = 0;
        for late in [60, 60, 60, 60, 40, 25, 15, 10, 6] {
            for _ in 0..50 {
                at += 10 * MS;
                strain.note(late, 60, at);
            }
        }
        assert!((0.85..0.96).contains(&strain.room()), "{}", strain.room());
    }
}
