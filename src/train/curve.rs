//! The learning curve.

use super::trainer::Round;
use super::validate::Standing;
use anyhow::{Context, Result};
use std::fmt::Write as _;
use std::path::Path;

#[derive(Clone, Debug, Default)]
pub struct Curve {
    rows: Vec<(Round, Standing)>,
}

impl Curve {
    pub fn push(&mut self, round: &Round, standing: &Standing) {
        self.rows.push((*round, *standing));
    }

    /// The last row in words.
    pub fn last(&self) -> String {
        self.rows.last().map_or(String::new(), |(round, s)| {
            format!(
                "round {} ({:?}): loss {:.4}, {} seen; shield {:.2}, bare {:.2}; \
                 best classics {:.2}, mh {:.2}, edf-drop {:.2}",
                round.number,
                round.phase,
                round.loss,
                round.seen,
                s.shielded,
                s.bare,
                s.best,
                s.mh,
                s.edf_drop
            )
        })
    }

    pub fn to_csv(&self) -> String {
        let mut text = String::from("round,phase,loss,seen,shielded,bare,best,mh,edf_drop\n");
        for (round, s) in &self.rows {
            let phase = format!("{:?}", round.phase).to_lowercase();
            let _ = writeln!(
                text,
                "{},{phase},{:.6},{},{:.4},{:.4},{:.4},{:.4},{:.4}",
                round.number, round.loss, round.seen, s.shielded, s.bare, s.best, s.mh, s.edf_drop
            );
        }
        text
    }

    /// Writes all of it or leaves what was there.
    pub fn save(&self, path: &Path) -> Result<()> {
        let partial = path.with_extension("csv.partial");
        std::fs::write(&partial, self.to_csv())
            .and_then(|()| std::fs::rename(&partial, path))
            .with_context(|| format!("cannot write {}", path.display()))
    }
}
