//! What kind of task each of those was that ran.
//!
//! A task that is released at even intervals, to the end, is periodic: period and run times
//! as measured. A task that hardly ever sleeps is a hog: its work comes in portions, when it
//! really ran, and is never due. Any other is a trace, and a job is due when
//! its task wakes up next.

use std::collections::BTreeMap;

use super::book::{Diary, Piece};
use super::recorder::Lost;
use crate::sim::task::{Arrival, Execution, Task, TaskSet, TraceJob};
use crate::sim::time::{Ns, MS, SECOND};

/// A rhythm needs so many beats.
const FEWEST_JOBS: usize = 8;
/// Of the gaps between releases, this share must be within a tenth of the period.
const STEADY_SHARE: f64 = 0.95;
/// A job that lasts longer without a sleep is a hog's.
const LONGEST_JOB: Ns = SECOND;
/// A hog's work comes in portions of this much time.
const PORTION: Ns = 100 * MS;
/// Tasks with fewer jobs, such as the commands of a script, count together.
const FEW_JOBS: u64 = 4;
/// Run times this close together are one.
const SAME_RUN: f64 = 0.02;

/// What is known of a recording beside its tasks.
#[derive(Clone, Debug)]
pub struct Session {
    pub kernel: String,
    pub scheduler: String,
    pub cores: usize,
    pub asked: Ns,
    pub lasted: Ns,
    pub lost: Lost,
}

/// A recording as a task set, and what a user should know of it.
#[derive(Clone, Debug)]
pub struct Recorded {
    pub set: TaskSet,
    /// By task: time on CPUs as it was measured, before anything was made of it.
    pub measured: Vec<Ns>,
    pub periodic: usize,
    pub hogs: usize,
    pub traces: usize,
}

impl Recorded {
    /// `None` when nothing ran.
    pub fn of(diaries: &[Diary], session: &Session) -> Option<Recorded> {
        let (few, many): (Vec<&Diary>, Vec<&Diary>) = diaries
            .iter()
            .filter(|diary| !diary.pieces.is_empty())
            .partition(|diary| diary.jobs < FEW_JOBS && diary.run() < session.lasted / 100);
        let mut recorded = Recorded {
            set: TaskSet {
                name: String::new(),
                cores: session.cores,
                horizon_ns: session.lasted.max(1),
                seed: 0,
                modes: Vec::new(),
                tasks: Vec::new(),
            },
            measured: Vec::new(),
            periodic: 0,
            hogs: 0,
            traces: 0,
        };
        for diary in &many {
            recorded.add(format!("{}-{}", diary.comm, diary.tid), diary);
        }
        for (comm, count, pieces) in together(&few) {
            let name = match count {
                1 => comm,
                _ => format!("{comm} ({count} tasks)"),
            };
            let task = trace(name, &jobs(&pieces), session.lasted);
            recorded.set.tasks.push(task);
            let run = pieces.iter().map(|piece| piece.run).sum();
            recorded.measured.push(run);
            recorded.traces += 1;
        }
        if recorded.set.tasks.is_empty() {
            return None;
        }
        let coarse = many.iter().filter(|diary| diary.coarseness > 1).count();
        recorded.set.name = session.told(&recorded, coarse);
        Some(recorded)
    }

    fn add(&mut self, name: String, diary: &Diary) {
        let lasted = self.set.horizon_ns;
        let jobs = jobs(&diary.pieces);
        let long: Ns = jobs.iter().filter(|j| j.lasts()).map(|j| j.run).sum();
        let task = if 2 * long > diary.run() {
            self.hogs += 1;
            hog(name, &diary.pieces, lasted)
        } else if let Some(task) = rhythm(&jobs, lasted).filter(|_| diary.coarseness == 1) {
            self.periodic += 1;
            Task { name, ..task }
        } else {
            self.traces += 1;
            trace(name, &jobs, lasted)
        };
        self.set.tasks.push(task);
        self.measured.push(diary.run());
    }
}

impl Session {
    fn told(&self, recorded: &Recorded, coarse: usize) -> String {
        let seconds = |ns: Ns| ns as f64 / SECOND as f64;
        let mut told = format!(
            "recorded on Linux {} under {}: {} CPUs, {:.1} s",
            self.kernel,
            self.scheduler,
            self.cores,
            seconds(self.lasted)
        );
        if self.lasted < self.asked {
            told += &format!(
                " (ended early, {:.1} s were asked for)",
                seconds(self.asked)
            );
        }
        told += &format!(
            "; {} tasks: {} periodic, {} hogs, {} traces",
            recorded.set.tasks.len(),
            recorded.periodic,
            recorded.hogs,
            recorded.traces
        );
        if coarse > 0 {
            told += &format!("; {coarse} slept too often for all of their jobs to be kept apart");
        }
        let Lost { postponed, unseen } = self.lost;
        told += &match postponed {
            0 => "; no record was lost".to_owned(),
            n => format!("; the buffer was full {n} times, and jobs were counted with the next"),
        };
        if unseen > 0 {
            told += &format!("; {unseen} times a task could not be followed for want of memory");
        }
        told
    }
}

/// A whole job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Job {
    release: Ns,
    end: Ns,
    run: Ns,
}

impl Job {
    fn lasts(&self) -> bool {
        self.end - self.release >= LONGEST_JOB
    }
}

fn jobs(pieces: &[Piece]) -> Vec<Job> {
    let mut jobs: Vec<Job> = Vec::new();
    for piece in pieces {
        match jobs.last_mut().filter(|_| piece.goes_on) {
            Some(job) => {
                job.end = job.end.max(piece.end);
                job.run += piece.run;
            }
            None => jobs.push(Job {
                release: piece.release,
                end: piece.end.max(piece.release),
                run: piece.run,
            }),
        }
    }
    jobs
}

/// Those of the same name as one, in order of release.
fn together(few: &[&Diary]) -> Vec<(String, usize, Vec<Piece>)> {
    let mut by_name: BTreeMap<&str, (usize, Vec<Piece>)> = BTreeMap::new();
    for diary in few {
        let entry = by_name.entry(&diary.comm).or_default();
        entry.0 += 1;
        entry.1.extend(&diary.pieces);
    }
    let named = by_name.into_iter().map(|(comm, (count, mut pieces))| {
        pieces.iter_mut().for_each(|piece| piece.goes_on = false);
        pieces.sort_by_key(|piece| piece.release);
        (comm.to_owned(), count, pieces)
    });
    named.collect()
}

/// The periodic task that these jobs are, when they are one, up to the end.
fn rhythm(jobs: &[Job], lasted: Ns) -> Option<Task> {
    if jobs.len() < FEWEST_JOBS {
        return None;
    }
    let (first, last) = (jobs.first()?, jobs.last()?);
    let period = (last.release - first.release) / (jobs.len() as u64 - 1);
    let mut gaps: Vec<Ns> = jobs
        .windows(2)
        .map(|w| w[1].release - w[0].release)
        .collect();
    gaps.sort_unstable();
    let near = |gap: &&Ns| gap.abs_diff(period) <= period / 10;
    let steady = gaps.iter().filter(near).count();
    let still_there = last.release + 2 * period >= lasted;
    if period == 0 || !still_there || (steady as f64) < STEADY_SHARE * gaps.len() as f64 {
        return None;
    }
    let (wcet, execution) = run_times(jobs);
    Some(Task {
        offset_ns: first.release,
        execution,
        ..Task::periodic("", period, wcet)
    })
}

/// The longest and how the others spread below it, with the mean that was measured.
fn run_times(jobs: &[Job]) -> (Ns, Execution) {
    let longest = jobs.iter().map(|job| job.run).max().unwrap_or(1).max(1);
    let shortest = jobs.iter().map(|job| job.run).min().unwrap_or(1);
    let sum: u128 = jobs.iter().map(|job| u128::from(job.run)).sum();
    let mean = sum as f64 / jobs.len() as f64;
    if (longest - shortest) as f64 <= SAME_RUN * mean {
        return ((mean.round() as Ns).max(1), Execution::Wcet);
    }
    let (mean, least) = (mean / longest as f64, shortest as f64 / longest as f64);
    let least = least.max(1e-6);
    // A uniform spread has its mean in the middle: one end gives way.
    let (low, high) = match 2.0 * mean - least {
        high if high <= 1.0 => (least, high.max(least)),
        _ => ((2.0 * mean - 1.0).max(1e-6), 1.0),
    };
    (longest, Execution::Uniform { low, high })
}

/// Never due inside the recording.
fn never(lasted: Ns) -> Ns {
    3 * lasted + SECOND
}

/// Work of a hog that ran for long is spread over the time that it took.
fn hog(name: String, pieces: &[Piece], lasted: Ns) -> Task {
    let mut portions = Vec::new();
    for piece in pieces {
        let end = piece.end.max(piece.release + 1);
        let count = (end - piece.release).div_ceil(PORTION).max(1);
        let (span, run) = ((end - piece.release) / count, piece.run / count);
        for i in 0..count {
            portions.push(TraceJob {
                release_ns: (piece.release + i * span).min(lasted - 1),
                execution_ns: match i {
                    0 => piece.run - run * (count - 1),
                    _ => run,
                },
                deadline_ns: Some(never(lasted)),
            });
        }
    }
    portions.retain(|portion| portion.execution_ns > 0);
    portions.sort_by_key(|portion| portion.release_ns);
    Task::traced(name, portions, lasted)
}

fn trace(name: String, jobs: &[Job], lasted: Ns) -> Task {
    let due = |i: usize| jobs.get(i + 1).map_or(never(lasted), |next| next.release);
    let mut last = 0;
    let trace = jobs.iter().enumerate().map(|(i, job)| {
        let release = job.release.min(lasted - 1);
        last = due(i).max(release + 1).max(last);
        TraceJob {
            release_ns: release,
            execution_ns: job.run.max(1),
            deadline_ns: Some(last),
        }
    });
    let trace: Vec<TraceJob> = trace.collect();
    let task = Task::traced(name, trace, lasted);
    debug_assert!(matches!(task.arrival, Arrival::Trace(_)));
    task
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Book;
    use crate::record::{RecordKind, TaskRecord};
    use crate::sim::arrivals::JobStream;

    const LASTED: Ns = 10 * SECOND;

    fn session() -> Session {
        Session {
            kernel: "6.18".into(),
            scheduler: "eevdf".into(),
            cores: 2,
            asked: LASTED,
            lasted: LASTED,
            lost: Lost::default(),
        }
    }

    fn add(book: &mut Book, comm: &str, tid: u32, release: Ns, run: Ns, kind: RecordKind) {
        book.add(&TaskRecord {
            kind,
            tid,
            tgid: tid,
            cpu: 0,
            comm: comm.into(),
            release_ns: release,
            end_ns: release + run,
            run_ns: run,
            jobs: 1,
        });
    }

    /// What the simulator would be asked to do for a task, in all.
    fn work(set: &TaskSet, task: usize) -> Ns {
        let mut stream = JobStream::new(set, task);
        std::iter::from_fn(|| stream.next_job(set, &set.tasks[task]))
            .take_while(|job| job.release < set.horizon_ns)
            .map(|job| job.execution)
            .sum()
    }

    #[test]
    fn a_steady_task_is_periodic_and_keeps_its_utilisation() {
        let mut book = Book::new(0);
        let mut done = 0;
        for k in 0..250 {
            // Wakes up late by up to 1 ms, and takes 3 to 5 ms.
            let (jitter, run) = (k * 7 % 10 * 100_000, 3 * MS + k * 13 % 20 * 100_000);
            add(
                &mut book,
                "beat",
                1,
                5 * MS + k * 40 * MS + jitter,
                run,
                RecordKind::Job,
            );
            done += run;
        }
        let recorded = Recorded::of(&book.into_diaries(), &session()).unwrap();
        let task = &recorded.set.tasks[0];
        assert_eq!((recorded.periodic, task.name.as_str()), (1, "beat-1"));
        assert_eq!(task.arrival, Arrival::Periodic);
        assert!(
            task.period_ns.abs_diff(40 * MS) < MS / 10,
            "{}",
            task.period_ns
        );
        assert_eq!(task.wcet_ns, 4_900_000);
        assert_eq!(recorded.measured, [done]);
        let simulated = work(&recorded.set, 0) as f64 / done as f64;
        assert!((0.97..1.03).contains(&simulated), "{simulated}");
        recorded.set.check().unwrap();
    }

    #[test]
    fn a_task_that_ends_early_or_beats_unevenly_is_a_trace_of_all_its_work() {
        let mut book = Book::new(0);
        let mut done = [0; 2];
        for k in 0..100 {
            add(&mut book, "early", 1, k * 20 * MS, MS, RecordKind::Job);
            add(
                &mut book,
                "uneven",
                2,
                k * 90 * MS + k % 3 * 20 * MS,
                2 * MS,
                RecordKind::Job,
            );
            done = [done[0] + MS, done[1] + 2 * MS];
        }
        let recorded = Recorded::of(&book.into_diaries(), &session()).unwrap();
        assert_eq!((recorded.periodic, recorded.traces), (0, 2));
        for (task, done) in done.into_iter().enumerate() {
            assert_eq!(work(&recorded.set, task), done);
        }
        recorded.set.check().unwrap();
    }

    #[test]
    fn a_hog_is_never_due_and_keeps_its_work_where_it_was() {
        let mut book = Book::new(0);
        for k in 0..20 {
            add(
                &mut book,
                "hog",
                1,
                k * 500 * MS,
                400 * MS,
                RecordKind::Part,
            );
        }
        let recorded = Recorded::of(&book.into_diaries(), &session()).unwrap();
        assert_eq!(recorded.hogs, 1);
        let Arrival::Trace(portions) = &recorded.set.tasks[0].arrival else {
            panic!("a trace");
        };
        assert!(portions.iter().all(|p| p.deadline_ns > Some(LASTED)));
        assert!(portions.iter().all(|p| p.execution_ns <= PORTION));
        assert_eq!(work(&recorded.set, 0), 8 * SECOND);
        recorded.set.check().unwrap();
    }

    #[test]
    fn passing_tasks_of_one_name_count_together() {
        let mut book = Book::new(0);
        for tid in 0..50 {
            let release = (50 - u64::from(tid)) * 10 * MS;
            add(&mut book, "sh", tid + 1, release, MS, RecordKind::Job);
        }
        let recorded = Recorded::of(&book.into_diaries(), &session()).unwrap();
        assert_eq!(recorded.set.tasks.len(), 1);
        assert_eq!(recorded.set.tasks[0].name, "sh (50 tasks)");
        assert_eq!(work(&recorded.set, 0), 50 * MS);
        recorded.set.check().unwrap();
    }

    #[test]
    fn what_was_lost_and_cut_short_is_told_in_the_file() {
        let mut book = Book::new(0);
        add(&mut book, "a", 1, 0, 200 * MS, RecordKind::Job);
        let lost = Lost {
            postponed: 12,
            unseen: 0,
        };
        let short = Session {
            asked: 60 * SECOND,
            lost,
            ..session()
        };
        let name = Recorded::of(&book.into_diaries(), &short).unwrap().set.name;
        for expected in [
            "Linux 6.18 under eevdf",
            "10.0 s (ended early, 60.0 s were asked for)",
            "the buffer was full 12 times",
        ] {
            assert!(name.contains(expected), "{name}");
        }
        assert!(Recorded::of(&[], &session()).is_none());
    }
}
