//! What became of every job of a live run, from rt-app's logs.
//!
//! A thread whose every turn is work and then an absolute timer of its own has jobs
//! that are known before it runs: the k-th row of its log is its k-th job, and a row
//! that is missing is a job that was not served. Other threads decide on the way when
//! they go on, so there each row is a job by itself, due when its timer expires, or
//! as declared; what is due at no time is not judged.

use anyhow::Result;

use crate::record::TaskRecord;
use crate::rtapp::convert::{Converted, Origin};
use crate::rtapp::log::{Log, Row, RunTimes};
use crate::rtapp::workload::{Action, Thread, Workload};
use crate::sim::arrivals::JobStream;
use crate::sim::engine::{Fate, JobRecord, Segment, TaskId};
use crate::sim::time::{Ns, US};

/// Number of the log and of the thread, in the order rt-app starts them; forked
/// threads have none.
pub fn number_of(workload: &Workload, origin: &Origin) -> Option<usize> {
    let before = &workload.threads[..origin.thread];
    let before: usize = before.iter().map(|thread| thread.instances as usize).sum();
    (!origin.forked).then_some(before + origin.instance as usize)
}

/// Jobs that are judged, and what a user should know about them.
pub struct Judged {
    pub jobs: Vec<JobRecord>,
    /// Microseconds of the clock at which the workload began.
    pub origin_us: u64,
    pub notes: Vec<String>,
}

/// `logs` by number, of those that were written.
pub fn judge(
    workload: &Workload,
    converted: &Converted,
    logs: &[Option<Log>],
    lead_us: u64,
) -> Result<Judged> {
    let set = &converted.set;
    let threads: Vec<Option<(&Thread, &[Row])>> = converted
        .origins
        .iter()
        .map(|origin| {
            let log = logs.get(number_of(workload, origin)?)?.as_ref()?;
            Some((&workload.threads[origin.thread], log.rows.as_slice()))
        })
        .collect();
    let starts = threads.iter().flatten().filter_map(|(thread, rows)| {
        let first = rows.first()?;
        // A timer's grid begins when the thread does, to the microsecond.
        let start = match is_regular(thread) {
            true => first.job(RunTimes::Configured).release,
            false => first.start,
        };
        Some(start.saturating_sub(thread.delay_us + lead_us))
    });
    let origin_us = starts.min().unwrap_or(0) + lead_us;
    let ns = |us: u64| us.saturating_sub(origin_us) * US;
    let (mut jobs, mut notes) = (Vec::new(), Vec::new());
    for (task, thread) in threads.iter().enumerate() {
        let name = &set.tasks[task].name;
        let Some((thread, rows)) = thread else {
            notes.push(format!(
                "{name} is forked while the workload runs, so its log is not read"
            ));
            continue;
        };
        let own = if is_regular(thread) {
            expected(converted, task, rows, &ns)
        } else {
            as_logged(converted, task, thread, rows, &ns)
        };
        if own.is_empty() && !rows.is_empty() {
            notes.push(format!(
                "{name} has neither a timer nor a declared deadline: it runs, but is not judged"
            ));
        } else if !is_regular(thread) {
            notes.push(format!(
                "{name} is judged by what it logged: when it falls behind, it releases fewer jobs"
            ));
        }
        jobs.extend(own);
    }
    Ok(Judged {
        jobs,
        origin_us,
        notes,
    })
}

/// Every turn is work and then an absolute timer that nobody shares.
fn is_regular(thread: &Thread) -> bool {
    let works = |action: &Action| {
        matches!(
            action,
            Action::Run { .. }
                | Action::Runtime { .. }
                | Action::Mem { .. }
                | Action::Yield
                | Action::Resume(_)
                | Action::Signal(_)
                | Action::Broadcast(_)
                | Action::SemPost(_)
        )
    };
    thread.phases.iter().all(|phase| {
        let Some((last, before)) = phase.events.split_last() else {
            return false;
        };
        let timer = matches!(&last.action, Action::Timer(t) if t.unique && t.absolute);
        timer && before.iter().all(|event| works(&event.action))
    })
}

fn expected(
    converted: &Converted,
    task: usize,
    rows: &[Row],
    ns: &dyn Fn(u64) -> Ns,
) -> Vec<JobRecord> {
    let set = &converted.set;
    let mut stream = JobStream::new(set, task);
    let jobs = std::iter::from_fn(|| stream.next_job(set, &set.tasks[task]));
    let mut rows = rows.iter().filter(|row| row.c_duration > 0);
    jobs.take_while(|job| job.release < set.horizon_ns)
        .enumerate()
        .map(|(index, job)| (index, job, rows.next()))
        .filter(|(_, job, _)| job.deadline <= set.horizon_ns)
        .map(|(index, job, row)| {
            let finish = row.map(|row| ns(row.job(RunTimes::Configured).finish));
            record(task, index, job.release, job.deadline, finish)
        })
        .collect()
}

fn as_logged(
    converted: &Converted,
    task: usize,
    thread: &Thread,
    rows: &[Row],
    ns: &dyn Fn(u64) -> Ns,
) -> Vec<JobRecord> {
    let horizon = converted.set.horizon_ns;
    let declared = (0..thread.phases.len()).find_map(|i| thread.declared_deadline_us(i));
    let jobs = rows.iter().map(|row| row.job(RunTimes::Measured));
    jobs.filter(|job| job.work > 0 && (job.timed || declared.is_some()))
        .map(|job| {
            let due = declared.map_or(job.due, |us| job.release + us);
            (ns(job.release), ns(due), ns(job.finish))
        })
        .filter(|&(_, due, _)| due <= horizon)
        .enumerate()
        .map(|(index, (release, due, finish))| {
            record(task, index, release, due.max(release + 1), Some(finish))
        })
        .collect()
}

fn record(task: usize, index: usize, release: Ns, deadline: Ns, finish: Option<Ns>) -> JobRecord {
    let finish = finish.map(|finish| finish.max(release));
    JobRecord {
        task: task as TaskId,
        index: index as u32,
        release,
        deadline,
        finish,
        fate: match finish {
            Some(finish) if finish <= deadline => Fate::OnTime,
            Some(_) => Fate::Late,
            None => Fate::Unfinished,
        },
    }
}

/// Which task ran where, from stretches on CPUs: `tids` by number, `cpus` as the cores.
pub fn segments(
    workload: &Workload,
    converted: &Converted,
    judged: &Judged,
    stretches: &[TaskRecord],
    tids: &[u32],
    cpus: &[u32],
) -> Vec<Segment> {
    let origin = judged.origin_us * US;
    let horizon = converted.set.horizon_ns;
    let mut segments = Vec::new();
    for (task, from) in converted.origins.iter().enumerate() {
        let tid = number_of(workload, from).and_then(|number| tids.get(number));
        let Some(&tid) = tid else { continue };
        let own = crate::rtapp::outcome::of_task(&judged.jobs, task);
        let mut index = 0;
        let mut stretches: Vec<&TaskRecord> = stretches.iter().filter(|s| s.tid == tid).collect();
        stretches.sort_by_key(|stretch| stretch.release_ns);
        for stretch in stretches {
            let start = stretch.release_ns.max(origin) - origin;
            let end = stretch.end_ns.saturating_sub(origin).min(horizon);
            let core = cpus.iter().position(|&cpu| cpu == stretch.cpu);
            let (Some(core), true) = (core, start < end) else {
                continue;
            };
            // A thread that still runs after its job is done is at the next one.
            let done = |job: &JobRecord| job.finish.is_some_and(|finish| finish <= start);
            while index < own.len() && done(&own[index]) {
                index += 1;
            }
            segments.push(Segment {
                core: core as u32,
                task: task as TaskId,
                index: own.get(index).map_or(own.len() as u32, |job| job.index),
                start,
                end,
            });
        }
    }
    one_at_a_time(&mut segments);
    segments
}

/// A CPU runs one task at a time: where two stretches on it overlap, the one that began
/// later counts from where the other ended, so that no core is busier than it can be.
fn one_at_a_time(segments: &mut Vec<Segment>) {
    let mut order: Vec<usize> = (0..segments.len()).collect();
    order.sort_by_key(|&i| (segments[i].core, segments[i].start));
    let mut until: Option<(u32, Ns)> = None;
    for i in order {
        let segment = &mut segments[i];
        let taken = until.filter(|(core, _)| *core == segment.core);
        segment.start = segment.start.max(taken.map_or(0, |(_, end)| end));
        let end = segment.end.max(segment.start);
        until = Some((segment.core, end));
    }
    segments.retain(|segment| segment.start < segment.end);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::RecordKind;
    use crate::rtapp::convert::{convert, Wishes};

    const LEAD: u64 = 2_000_000;
    /// t_zero of the imagined run.
    const ZERO: u64 = 50_000_000;

    fn workload(text: &str) -> (Workload, Converted) {
        let workload = Workload::parse(text.as_bytes()).unwrap();
        let converted = convert(&workload, &Wishes::default()).unwrap();
        (workload, converted)
    }

    /// A row as rt-app 1.0 writes it: job k, done so long after its release.
    fn row(k: u64, period: u64, response: u64) -> Row {
        let release = ZERO + LEAD + k * period;
        let (slack, done) = (period as i64 - response as i64, release + response);
        Row {
            run: response,
            start: release,
            end: done.max(release + period),
            slack,
            c_duration: 1000,
            c_period: period,
            wu_lat: 0,
        }
    }

    fn log(rows: Vec<Row>) -> Option<Log> {
        let name = "a".into();
        Some(Log { name, rows })
    }

    const REGULAR: &str = r#"{"global": {"duration": 1}, "tasks": {"a": {"loop": -1, "run": 1000,
        "timer": {"ref": "unique", "period": 100000, "mode": "absolute"}}}}"#;

    #[test]
    fn jobs_that_a_starved_thread_never_logged_count_as_missed() {
        let (workload, converted) = workload(REGULAR);
        let rows = (0..4)
            .map(|k| row(k, 100_000, 20_000 + 40_000 * k))
            .collect();
        let judged = judge(&workload, &converted, &[log(rows)], LEAD).unwrap();
        let fates: Vec<Fate> = judged.jobs.iter().map(|job| job.fate).collect();
        let mut expected = vec![Fate::OnTime, Fate::OnTime, Fate::OnTime, Fate::Late];
        expected.extend([Fate::Unfinished; 6]);
        assert_eq!(fates, expected);
        assert_eq!(judged.origin_us, ZERO + LEAD);
        assert_eq!(judged.jobs[3].finish, Some(440_000 * US));
        let nothing = judge(&workload, &converted, &[log(Vec::new())], LEAD).unwrap();
        assert_eq!(nothing.jobs.len(), 10);
        assert!(nothing.jobs.iter().all(|j| j.fate == Fate::Unfinished));
    }

    #[test]
    fn a_thread_whose_timer_moves_is_judged_by_its_rows_and_says_so() {
        let (workload, converted) = workload(&REGULAR.replace(", \"mode\": \"absolute\"", ""));
        let rows = (0..3).map(|k| row(k, 100_000, 20_000)).collect();
        let judged = judge(&workload, &converted, &[log(rows)], LEAD).unwrap();
        assert_eq!(judged.jobs.len(), 3);
        assert!(judged.notes[0].contains("fewer jobs"), "{:?}", judged.notes);
    }

    #[test]
    fn a_thread_that_is_due_at_no_time_is_not_judged() {
        let text = r#"{"global": {"duration": 1},
            "tasks": {"a": {"loop": -1, "run": 1000, "sleep": 5000}}}"#;
        let (workload, converted) = workload(text);
        let rows = vec![Row {
            c_period: 0,
            ..row(0, 6000, 1000)
        }];
        let judged = judge(&workload, &converted, &[log(rows)], LEAD).unwrap();
        assert!(judged.jobs.is_empty());
        assert!(judged.notes[0].contains("not judged"), "{:?}", judged.notes);
    }

    #[test]
    fn stretches_belong_to_the_job_that_was_not_done_yet() {
        let (workload, converted) = workload(REGULAR);
        let rows = (0..2).map(|k| row(k, 100_000, 120_000)).collect();
        let judged = judge(&workload, &converted, &[log(rows)], LEAD).unwrap();
        let stretch = |from_us: u64, to_us: u64| TaskRecord {
            kind: RecordKind::Stretch,
            tid: 77,
            tgid: 70,
            cpu: 1,
            comm: "a".into(),
            release_ns: (ZERO + LEAD + from_us) * US,
            end_ns: (ZERO + LEAD + to_us) * US,
            run_ns: 0,
            jobs: 0,
        };
        let stretches = [stretch(10_000, 120_000), stretch(130_000, 220_000)];
        let segments = segments(&workload, &converted, &judged, &stretches, &[77], &[1]);
        let told: Vec<_> = segments
            .iter()
            .map(|s| (s.core, s.index, s.start))
            .collect();
        assert_eq!(told, [(0, 0, 10_000 * US), (0, 1, 130_000 * US)]);
    }

    #[test]
    fn a_core_is_never_busier_than_it_can_be() {
        let text = REGULAR.replace("\"loop\"", "\"instance\": 3, \"loop\"");
        let (workload, converted) = workload(&text);
        let logs: Vec<Option<Log>> = (0..3)
            .map(|_| log((0..2).map(|k| row(k, 100_000, 50_000)).collect()))
            .collect();
        let judged = judge(&workload, &converted, &logs, LEAD).unwrap();
        // All three from the very beginning, on one CPU.
        let stretch = |tid: u32, to_us: u64| TaskRecord {
            kind: RecordKind::Stretch,
            tid,
            tgid: 70,
            cpu: 1,
            comm: "a".into(),
            release_ns: (ZERO + LEAD) * US,
            end_ns: (ZERO + LEAD + to_us) * US,
            run_ns: 0,
            jobs: 0,
        };
        let stretches = [
            stretch(77, 700_000),
            stretch(78, 900_000),
            stretch(79, 800_000),
        ];
        let tids = [77, 78, 79];
        let segments = segments(&workload, &converted, &judged, &stretches, &tids, &[1]);
        let busy: Ns = segments.iter().map(|s| s.end - s.start).sum();
        assert_eq!(busy, 900_000 * US);
    }
}
