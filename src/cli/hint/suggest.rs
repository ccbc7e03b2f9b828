//! `hint --suggest`: watch a task, and say what to declare for it.

use std::collections::BTreeMap;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::{bad, chosen, print, Failure, HintArgs};
use crate::cli::out;
use crate::hint::duration::Pretty;
use crate::proc;
use crate::record::rhythm::{propose, NoRhythm, Proposal};
use crate::record::{now_ns, Recorder, TaskRecord};

/// Long enough for a rhythm of a second.
const USUAL_WATCH_NS: u64 = 10_000_000_000;
/// The buffer holds tens of thousands of records: this is often enough.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A task, and what it may declare.
struct Watched {
    tid: i32,
    comm: String,
    found: Result<Proposal, NoRhythm>,
}

pub fn run(args: &HintArgs, pid: i32) -> Result<(), Failure> {
    let asked = args.watch.unwrap_or(USUAL_WATCH_NS);
    if !(100_000_000..=3_600_000_000_000).contains(&asked) {
        return bad("--watch: between 100ms and an hour can be watched");
    }
    let tids = chosen(args, pid)?;
    let (records, lasted) = match watch(&tids, asked) {
        Ok(seen) => seen,
        Err(error) => return bad(format!("{error:#}")),
    };
    let tasks: Vec<Watched> = tids
        .iter()
        .map(|&tid| Watched {
            tid,
            comm: proc::printable_comm(tid),
            found: propose(records.get(&tid).map_or(&[], Vec::as_slice)),
        })
        .collect();
    let text = match args.json {
        true => format!("{}\n", as_json(pid, lasted, &tasks)),
        false => as_text(lasted, &tasks),
    };
    print(&text)?;
    if tasks.iter().any(|task| task.found.is_ok()) {
        return Ok(());
    }
    let others = match args.threads {
        true => "",
        false => "; --threads watches all threads of the process",
    };
    Err(Failure {
        status: 1,
        sentence: format!("no rhythm was found{others}"),
    })
}

/// Everything on the machine is recorded, because the recorder tells jobs from stretches only
/// then; what others did is dropped at once.
fn watch(tids: &[i32], asked: u64) -> anyhow::Result<(BTreeMap<i32, Vec<TaskRecord>>, u64)> {
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = stop.clone();
    ctrlc::set_handler(move || stopped.store(true, Ordering::Relaxed))?;
    let mut storage = MaybeUninit::uninit();
    let mut recorder = Recorder::start(None, &mut storage)?;
    let start = recorder.start_ns;
    out::errln!("watching for {}; Ctrl-C ends it early", Pretty(asked));
    let mut records: BTreeMap<i32, Vec<TaskRecord>> = BTreeMap::new();
    let mut keep = |seen: Vec<TaskRecord>| {
        for record in seen {
            let tid = record.tid as i32;
            if tids.contains(&tid) {
                records.entry(tid).or_default().push(record);
            }
        }
    };
    while !stop.load(Ordering::Relaxed) {
        let passed = now_ns() - start;
        if passed >= asked {
            break;
        }
        std::thread::sleep(LOOK_EVERY.min(Duration::from_nanos(asked - passed)));
        keep(recorder.drain()?);
    }
    let (rest, end, _) = recorder.finish()?;
    keep(rest);
    Ok((records, end - start))
}

/// What declares it.
fn command(tid: i32, proposal: &Proposal) -> String {
    format!(
        "scx_temponet hint --runtime {} --period {} --pid {tid}",
        Pretty(proposal.hint.runtime_ns()),
        Pretty(proposal.hint.period_ns())
    )
}

fn as_json(pid: i32, lasted: u64, tasks: &[Watched]) -> serde_json::Value {
    let tasks: Vec<_> = tasks
        .iter()
        .map(|task| match &task.found {
            Ok(p) => json!({
                "tid": task.tid,
                "comm": task.comm,
                "jobs": p.jobs,
                "steady": p.steady,
                "hint": {
                    "runtime_ns": p.hint.runtime_ns(),
                    "deadline_ns": p.hint.deadline_ns(),
                    "period_ns": p.hint.period_ns(),
                },
                "run_median_ns": p.run_median_ns,
                "run_longest_ns": p.run_longest_ns,
                "response_median_ns": p.response_median_ns,
                "response_longest_ns": p.response_longest_ns,
                "command": command(task.tid, p),
            }),
            Err(why) => json!({
                "tid": task.tid,
                "comm": task.comm,
                "hint": null,
                "reason": why.to_string(),
            }),
        })
        .collect();
    json!({ "pid": pid, "watched_ns": lasted, "tasks": tasks })
}

fn as_text(lasted: u64, tasks: &[Watched]) -> String {
    let seconds = lasted as f64 / 1e9;
    let mut text = String::new();
    for task in tasks {
        let name = format!("{}[{}]", task.comm, task.tid);
        text += &match &task.found {
            Err(why) => format!("{name}, watched for {seconds:.1} s: {why}\n"),
            Ok(proposal) => format!(
                "{name}, watched for {seconds:.1} s: {} jobs\n{}",
                proposal.jobs,
                told(task, proposal)
            ),
        };
    }
    text
}

/// Three digits of a measured time: more would be noise.
fn about(ns: u64) -> Pretty {
    let unit = 10u64.pow(ns.max(1).ilog10().saturating_sub(2));
    Pretty((ns + unit / 2) / unit * unit)
}

fn told(task: &Watched, p: &Proposal) -> String {
    let hint = &p.hint;
    let line = |name: &str, value: String, why: String| format!("  {name:<9} {value:<9} {why}\n");
    let mut text = line(
        "period",
        Pretty(hint.period_ns()).to_string(),
        format!(
            "{:.0} % of the jobs began one period after the last",
            (100.0 * p.steady).floor()
        ),
    );
    text += &line(
        "runtime",
        Pretty(hint.runtime_ns()).to_string(),
        format!(
            "CPU time of a job: {} median, {} longest; a tenth is added",
            about(p.run_median_ns),
            about(p.run_longest_ns)
        ),
    );
    if let Some(longest) = p.outlier_ns {
        text += &line(
            "",
            String::new(),
            format!(
                "one job took {}: declare that if it has to be on time, too",
                about(longest)
            ),
        );
    }
    text += &line(
        "deadline",
        Pretty(hint.deadline_ns()).to_string(),
        format!(
            "the period; jobs were done after {} median, {} longest",
            about(p.response_median_ns),
            about(p.response_longest_ns)
        ),
    );
    text += &line(
        "load",
        format!("{:.2}", hint.density()),
        "of a CPU".to_owned(),
    );
    text += &format!("declare it:\n  {}\n", command(task.tid, p));
    text += "Add --deadline where the result is needed before the period ends.\n";
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hint::Hint;

    #[test]
    fn the_proposal_comes_with_the_command_that_declares_it() {
        let ms = 1_000_000;
        let found = Proposal {
            hint: Hint::new(9_800_000, 40 * ms, 40 * ms, 0).unwrap(),
            jobs: 250,
            steady: 0.996,
            run_median_ns: 8_123_456,
            run_longest_ns: 8_900_000,
            response_median_ns: 8_400_000,
            response_longest_ns: 12_000_000,
            outlier_ns: Some(31 * ms),
        };
        let tasks = [
            Watched {
                tid: 4711,
                comm: "camera".into(),
                found: Ok(found),
            },
            Watched {
                tid: 4712,
                comm: "logger".into(),
                found: Err(NoRhythm::TooFew(3)),
            },
        ];
        let text = as_text(10_000_000_000, &tasks);
        for said in [
            "camera[4711], watched for 10.0 s: 250 jobs",
            "99 % of the jobs",
            "8.12ms median, 8.9ms longest",
            "one job took 31ms",
            "scx_temponet hint --runtime 9.8ms --period 40ms --pid 4711\n",
            "logger[4712], watched for 10.0 s: it woke up 3 times, and a rhythm needs 8",
        ] {
            assert!(text.contains(said), "no '{said}' in\n{text}");
        }
        let json = as_json(4711, 1, &tasks);
        assert_eq!(json["tasks"][0]["hint"]["runtime_ns"], 9_800_000);
        assert!(json["tasks"][1]["hint"].is_null());
    }
}
