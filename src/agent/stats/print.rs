//! The figures as the table of `--stats` and `--monitor`.

use std::io::Write;

use anyhow::Result;

use super::{Metrics, CLASSES};

impl Metrics {
    pub(super) fn print(&self, out: &mut impl Write) -> Result<()> {
        writeln!(
            out,
            "dispatch: idle {} queue {} bound {} kthread {} agent {} table {} distilled {} | preempted {} stolen {} | hopeless {} rolled over {} demoted {}",
            self.idle, self.queue, self.bound, self.kthread, self.decision, self.q_table, self.distilled, self.preemptions, self.steals,
            self.hopeless, self.rollovers, self.demotions,
        )?;
        writeln!(
            out,
            "{:<11}{:>9}{:>8}{:>13}{:>13}{:>13}{:>11}{:>11}{:>12}",
            "class",
            "met",
            "missed",
            "response ms",
            "lateness ms",
            "run ms",
            "runs",
            "wait ms",
            "max wait ms"
        )?;
        for (name, _) in CLASSES {
            let Some(c) = self.classes.get(*name) else {
                continue;
            };
            let jobs = |n: u64| {
                if has_jobs(name) {
                    n.to_string()
                } else {
                    "-".into()
                }
            };
            let ms = |us: f64| {
                if has_jobs(name) {
                    format!("{:.3}", us / 1000.0)
                } else {
                    "-".into()
                }
            };
            writeln!(
                out,
                "{:<11}{:>9}{:>8}{:>13}{:>13}{:>13.1}{:>11}{:>11.3}{:>12.1}",
                name,
                jobs(c.met),
                jobs(c.missed),
                ms(c.response_us),
                ms(c.lateness_us),
                c.run_ms,
                c.runs,
                c.wait_us / 1000.0,
                c.wait_max_us / 1000.0,
            )?;
        }
        if self.misplaced + self.drifted > 0 {
            writeln!(
                out,
                "mended: {} misplaced tasks, {} counts of waiting tasks",
                self.misplaced, self.drifted
            )?;
        }
        if !self.offenders.is_empty() {
            let mut rows: Vec<_> = self.offenders.iter().collect();
            rows.sort_by_key(|(_, row)| (row.class != "declared", std::cmp::Reverse(row.missed)));
            let rows: Vec<String> = rows
                .iter()
                .map(|(name, row)| {
                    format!(
                        "{name} {}/{} missed, worst by {:.1} ms",
                        row.missed,
                        row.missed + row.met,
                        row.lateness_max_us / 1000.0
                    )
                })
                .collect();
            writeln!(out, "most misses since load: {}", rows.join("; "))?;
        }
        self.agent.print(out)?;
        writeln!(out)?;
        Ok(())
    }
}

fn has_jobs(class: &str) -> bool {
    class == "declared" || class == "inferred"
}
