//! What came of an attack, and what must hold whatever it was.
use serde::{Deserialize, Serialize};
use std::fmt;

/// Percent of the honest user's jobs.
pub const ON_TIME: f64 = 95.0;
/// Percent of one CPU.
pub const HOG: f64 = 5.0;
/// By which the daemon's memory may grow.
pub const GROWTH_KIB: u64 = 16 * 1024;

#[derive(Serialize, Deserialize, Clone, Debug, Default)]
pub struct Record {
    pub attack: String,
    pub cpus: usize,
    pub seconds: f64,
    /// Jobs of the honest user that were due, and the percent of them that were on time.
    pub jobs: u64,
    pub on_time: f64,
    /// Percent of one CPU.
    pub honest: f64,
    pub hog: f64,
    /// Of all who attack.
    pub evil: f64,
    /// What the attackers were told.
    pub granted: u64,
    pub refused: u64,
    pub unanswered: u64,
    /// Of the declarations of root, and of a user who does no harm.
    pub root: Asked,
    pub user: Asked,
    /// Resident memory of the daemon: at first, and the most.
    pub memory_kib: (u64, u64),
    pub claims: Vec<Claim>,
}

#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default)]
pub struct Asked {
    pub asked: u64,
    pub answered: u64,
    pub slowest_ms: f64,
}

#[derive(Serialize, Deserialize, Clone, Debug)]
pub struct Claim {
    pub holds: bool,
    pub text: String,
}

impl Record {
    pub fn claim(&mut self, holds: bool, text: impl Into<String>) {
        let text = text.into();
        self.claims.push(Claim { holds, text });
    }

    /// What must hold whatever the attack was.
    pub fn judge(&mut self) {
        let (on_time, jobs, hog, root) = (self.on_time, self.jobs, self.hog, self.root);
        self.claim(
            on_time >= ON_TIME,
            format!("{on_time:.1} % of {jobs} jobs of the honest user on time, at least {ON_TIME}"),
        );
        self.claim(
            hog >= HOG,
            format!("the hog has {hog:.1} % of a CPU, at least {HOG}"),
        );
        self.claim(
            root.asked > 0 && root.answered == root.asked,
            format!(
                "root declared {} times of {}, in at most {:.1} ms",
                root.answered, root.asked, root.slowest_ms
            ),
        );
        let (first, most) = self.memory_kib;
        self.claim(
            first > 0 && most <= first + GROWTH_KIB,
            format!(
                "the daemon has {most} KiB at most, {first} at first, {GROWTH_KIB} more allowed"
            ),
        );
    }

    pub fn holds(&self) -> bool {
        !self.claims.is_empty() && self.claims.iter().all(|claim| claim.holds)
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        for claim in &self.claims {
            let word = match claim.holds {
                true => "holds         ",
                false => "does not hold ",
            };
            writeln!(f, "{word} {}: {}", self.attack, claim.text)?;
        }
        writeln!(
            f,
            "               {}: attackers had {:.1} % of a CPU; {} declarations granted, {} refused, {} not answered; another user was answered {} times of {}, in at most {:.0} ms",
            self.attack,
            self.evil,
            self.granted,
            self.refused,
            self.unanswered,
            self.user.answered,
            self.user.asked,
            self.user.slowest_ms
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> Record {
        Record {
            attack: "leeway".into(),
            jobs: 300,
            on_time: 95.0,
            hog: 5.0,
            root: Asked {
                asked: 9,
                answered: 9,
                slowest_ms: 1.0,
            },
            memory_kib: (60_000, 60_000 + GROWTH_KIB),
            ..Record::default()
        }
    }

    fn holds(change: impl FnOnce(&mut Record)) -> bool {
        let mut record = good();
        change(&mut record);
        record.judge();
        record.holds()
    }

    #[test]
    fn each_loss_is_noticed() {
        assert!(holds(|_| {}));
        assert!(!holds(|record| record.on_time = 94.9));
        assert!(!holds(|record| record.hog = 4.9));
        assert!(!holds(|record| record.root.answered = 8));
        assert!(!holds(|record| record.memory_kib.1 += 1));
        assert!(!holds(|record| record.claim(false, "more")));
    }

    #[test]
    fn what_was_not_measured_does_not_hold() {
        assert!(!Record::default().holds(), "nobody judged");
        assert!(!holds(|record| record.on_time = f64::NAN));
        assert!(!holds(|record| record.root = Asked::default()));
        assert!(!holds(|record| record.memory_kib = (0, 0)));
    }
}
