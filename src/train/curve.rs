//! The learning curve.

use super::trainer::Round;
use super::validate::Standing;
use crate::report::file::write_whole;
use crate::report::plot::{self, Line};
use anyhow::Result;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::path::Path;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    rows: Vec<(Round, Standing)>,
}

impl Curve {
    pub fn push(&mut self, round: &Round, standing: &Standing) {
        self.rows.push((*round, *standing));
    }

    /// The standing of the best round.
    pub fn best(&self) -> Option<Standing> {
        let standings = self.rows.iter().map(|(_, standing)| *standing);
        standings.max_by(|a, b| a.score().total_cmp(&b.score()))
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

    pub fn to_svg(&self) -> Result<String> {
        let line = |name: &str, of: fn(&Standing) -> f64| Line {
            name: name.into(),
            points: self
                .rows
                .iter()
                .map(|(round, standing)| (f64::from(round.number), of(standing)))
                .collect(),
        };
        plot::lines(
            "Deadlines met on the validation sets",
            "round",
            "%",
            &[
                line("under the shield", |s| s.shielded),
                line("network alone", |s| s.bare),
                line("best classic of each kind", |s| s.best),
                line("Moore-Hodgson", |s| s.mh),
                line("EDF without hopeless jobs", |s| s.edf_drop),
            ],
        )
    }

    /// As .csv and .svg beside the model.
    pub fn save(&self, model: &Path) -> Result<()> {
        write_whole(&model.with_extension("csv"), self.to_csv().as_bytes())?;
        write_whole(&model.with_extension("svg"), self.to_svg()?.as_bytes())
    }
}
