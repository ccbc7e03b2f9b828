//! A comparison as one page without scripts: a dot for every set, leading to its figures.

use std::fmt::Write as _;

use super::print::Told;
use crate::report::scatter::{escaped, svg, Dot};

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:72rem;margin:auto;padding:1rem}\
table{border-collapse:collapse;margin:.5rem 0}td,th{padding:.1rem .7rem;text-align:right;border-bottom:1px solid #8884}\
td:first-child,th:first-child{text-align:left}.plots{display:flex;flex-wrap:wrap;gap:1rem}\
.scatter{width:22rem;max-width:100%;font-size:11px}.scatter text{fill:currentColor}\
.grid{stroke:#8884;fill:none}.equal{stroke:#888;stroke-dasharray:4 3}circle{fill:#06c9}a:hover circle{fill:#c30}\
section{border-top:1px solid #8884;padding:.3rem 0}section:target{background:#ff03}\
code{overflow-wrap:anywhere}pre{overflow-x:auto}@media(prefers-color-scheme:dark){body{background:#181818;color:#ddd}a{color:#8bf}}";

pub fn of(told: &Told) -> String {
    let of = told.results.of;
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\
         <meta name=\"viewport\" content=\"width=device-width\">\
         <title>Schedulers compared</title><style>{STYLE}</style></head><body>\n\
         <h1>Schedulers compared</h1>\n\
         <p>Per cent of all jobs on time; every dot is a set and leads to its figures. \
         Above the line the scheduler on the left does better.</p>\n"
    );
    for machine in 0..of.machines.len() {
        for case in &of.cases {
            let title = format!("{}: {}", case.name, of.machines[machine].name());
            let _ = writeln!(page, "<h2>{}</h2>\n<div class=\"plots\">", escaped(&title));
            for (x, y) in pairs(told, &case.name) {
                page += &svg(
                    &x,
                    &y,
                    &dots(told, &case.name, (machine, &x), (machine, &y)),
                );
            }
            page += "</div>\n";
        }
    }
    page += &simulated_against_kernel(told);
    let _ = writeln!(
        page,
        "<h2>In figures</h2>\n<pre>{}</pre>\n<h2>Sets</h2>",
        escaped(&told.text())
    );
    for subject in 0..of.subjects.len() {
        page += &section(told, subject);
    }
    page + "</body></html>\n"
}

/// The candidate against everybody, and who comes before it against the one before that.
fn pairs(told: &Told, case: &str) -> Vec<(String, String)> {
    let of = told.results.of;
    let Some(case) = of.cases.iter().find(|other| other.name == case) else {
        return Vec::new();
    };
    let others = case.schedulers.iter().map(|s| s.name.clone());
    let others: Vec<String> = others.filter(|name| *name != of.candidate).collect();
    let candidate = others.iter().map(|x| (x.clone(), of.candidate.clone()));
    let neighbours = others.windows(2).map(|w| (w[0].clone(), w[1].clone()));
    candidate.chain(neighbours).collect()
}

fn simulated_against_kernel(told: &Told) -> String {
    let of = told.results.of;
    let Some(simulator) = of.machines.iter().position(|m| !m.is_kernel()) else {
        return String::new();
    };
    let mut text = String::new();
    for (machine, kernel) in of
        .machines
        .iter()
        .enumerate()
        .filter(|(_, m)| m.is_kernel())
    {
        for case in &of.cases {
            let _ = writeln!(
                text,
                "<h2>{}: simulated against {}</h2>\n<div class=\"plots\">",
                escaped(&case.name),
                escaped(&kernel.name())
            );
            for scheduler in &case.schedulers {
                let name = &scheduler.name;
                let dots = dots(told, &case.name, (simulator, name), (machine, name));
                text += &svg(
                    &format!("{name}, simulated"),
                    &format!("{name}, kernel"),
                    &dots,
                );
            }
            text += "</div>\n";
        }
    }
    text
}

fn dots(told: &Told, case: &str, x: (usize, &str), y: (usize, &str)) -> Vec<Dot> {
    let subjects = told.results.of.subjects.iter().enumerate();
    subjects
        .filter(|(_, subject)| subject.case == case)
        .filter_map(|(i, subject)| {
            let share = |(machine, name): (usize, &str)| told.results.compliance(machine, i, name);
            let (x, y) = (share(x)?, share(y)?);
            Some(Dot {
                x,
                y,
                title: format!(
                    "{}: {y:.1} and {x:.1}; {}",
                    subject.label(),
                    subject.describe()
                ),
                anchor: format!("set-{i}"),
            })
        })
        .collect()
}

fn section(told: &Told, subject: usize) -> String {
    let of = told.results.of;
    let set = &of.subjects[subject];
    let mut text = format!(
        "<section id=\"set-{subject}\"><h3>{}</h3><p>{}</p>\n<table><tr><th>scheduler</th>\
         <th>on</th><th>on time %</th><th>settled</th><th>unfinished</th><th>response ms</th></tr>\n",
        escaped(&set.label()),
        escaped(&set.describe())
    );
    for (machine, on) in of.machines.iter().enumerate() {
        for scheduler in &of.case_of(subject).schedulers {
            let Some(cell) = told.results.cell(machine, subject, &scheduler.name) else {
                continue;
            };
            let _ = write!(
                text,
                "<tr><td>{}</td><td>{}</td>",
                escaped(&scheduler.name),
                escaped(&on.name())
            );
            let share = |share: Option<f64>| share.map_or("-".into(), |s| format!("{s:.2}"));
            let _ = match (&cell.failed, cell.repeats) {
                (Some(why), 0) => writeln!(text, "<td colspan=\"4\">{}</td></tr>", escaped(why)),
                _ => writeln!(
                    text,
                    "<td>{}</td><td>{}</td><td>{}</td><td>{:.2}</td></tr>",
                    share(cell.whole.compliance()),
                    share(cell.settled.compliance()),
                    cell.whole.unfinished,
                    cell.whole.response_ms
                ),
            };
        }
    }
    let best = &told.results.best[subject];
    let names = best
        .chosen
        .iter()
        .map(|&task| set.set.tasks[task].name.as_str());
    let names: Vec<&str> = names.collect();
    let _ = writeln!(
        text,
        "</table><p>Best choice of tasks: {} of {} jobs, with {}.</p><p><code>{}</code></p></section>",
        best.met,
        best.jobs,
        escaped(&names.join(", ")),
        escaped(&(told.command)(set))
    );
    text
}
