//! Shows the records of a folder: a table, as docs/measurements/security.md has it, and what
//! does not hold.
use crate::attack::Attack;
use crate::record::Record;
use anyhow::{Context, Result};
use clap::ValueEnum;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

const HEAD: &str = "| attack | honest: jobs, on time | hog | attackers | granted, refused, unanswered | root: asked, slowest | user: asked, answered, slowest | memory | |\n|---|---|---|---|---|---|---|---|---|";

pub fn tell(folder: &Path, attacks: &[Attack]) -> Result<ExitCode> {
    let attacks = match attacks {
        [] => Attack::value_variants(),
        some => some,
    };
    let mut bad = Vec::new();
    println!("{HEAD}");
    for attack in attacks {
        let file = folder.join(format!("{}.json", attack.name()));
        match fs::read_to_string(&file).ok() {
            Some(text) => {
                let record: Record = serde_json::from_str(&text)
                    .with_context(|| format!("no record: {}", file.display()))?;
                println!("{}", row(&record));
                let lost = record.claims.iter().filter(|claim| !claim.holds);
                bad.extend(lost.map(|claim| format!("{}: {}", record.attack, claim.text)));
            }
            None => {
                println!("| {} | | | | | | | | failed |", attack.name());
                bad.push(format!("{}: it was not played to the end", attack.name()));
            }
        }
    }
    for line in &bad {
        println!("does not hold  {line}");
    }
    Ok(ExitCode::from(u8::from(!bad.is_empty())))
}

fn row(record: &Record) -> String {
    let Record { root, user, .. } = record;
    let (first, most) = record.memory_kib;
    format!(
        "| {} | {}, {:.1} % | {:.1} % | {:.1} % | {}, {}, {} | {}, {:.1} ms | {}, {}, {:.0} ms | +{:.1} MiB | {} |",
        record.attack,
        record.jobs,
        record.on_time,
        record.hog,
        record.evil,
        record.granted,
        record.refused,
        record.unanswered,
        root.asked,
        root.slowest_ms,
        user.asked,
        user.answered,
        user.slowest_ms,
        most.saturating_sub(first) as f64 / 1024.0,
        if record.holds() { "holds" } else { "**does not hold**" }
    )
}
