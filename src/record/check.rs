//! Whether a recording can be true: it may not have more CPU time than there was, and
//! must agree with what the kernel itself counted for every busy thread.

use std::collections::HashMap;
use std::path::Path;

use procfs::process::Task;
use thiserror::Error;

use super::book::Diary;
use crate::proc;
use crate::sim::time::{Ns, MS, SECOND};

/// How far a recording and the kernel's count may be apart, of the count.
const TOLERANCE: f64 = 0.02;
/// The kernel counts time on a CPU at ticks: both ends of a count are up to 10 ms old.
const TICKS: Ns = 20 * MS;
/// Where CPUs run without ticks, up to a second.
const WITHOUT_TICKS: Ns = 2 * SECOND;
/// A thread that had this share of a CPU is busy.
const BUSY: f64 = 0.05;

/// Time on CPUs by thread, as /proc/TID/schedstat had it at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts(HashMap<u32, Ns>);

impl Counts {
    /// Of all threads but our own; none where the kernel does not tell.
    pub fn now() -> Counts {
        Counts::at(Path::new("/proc"), std::process::id())
    }

    fn at(root: &Path, own: u32) -> Counts {
        let run = |task: &Task| Some(task.schedstat().ok()?.sum_exec_runtime as Ns);
        let threads = proc::threads(root, Some(own));
        let counted = threads.filter_map(|task| Some((task.tid as u32, run(&task)?)));
        Counts(counted.collect())
    }

    /// How much a thread ran from then until now, if it was there at both moments.
    fn since(&self, then: &Counts, tid: u32) -> Option<Ns> {
        Some(self.0.get(&tid)?.saturating_sub(*then.0.get(&tid)?))
    }
}

/// What the kernel counted before a recording began, when it had begun, before it
/// ended and when it had: what was recorded lies between.
pub struct Witness {
    pub before: Counts,
    pub begun: Counts,
    pub ending: Counts,
    pub after: Counts,
}

#[derive(Clone, Debug, PartialEq, Error)]
pub enum Untrue {
    #[error(
        "the recording has {claimed_s:.2} s of CPU time where {cores} CPUs had {there_s:.2} s, so \
         nothing was written; record again, and report it if it stays so"
    )]
    MoreThanThereIs {
        claimed_s: f64,
        cores: usize,
        there_s: f64,
    },
    #[error(
        "the recording has {recorded_s:.3} s of CPU time for thread {tid} and the kernel counted \
         {counted_s:.3} s (/proc/{tid}/schedstat), so nothing was written; record again, and \
         report it if it stays so"
    )]
    NotAsCounted {
        tid: u32,
        recorded_s: f64,
        counted_s: f64,
    },
}

fn seconds(ns: Ns) -> f64 {
    ns as f64 / SECOND as f64
}

/// By `without_ticks` some CPU has none.
pub fn check(
    diaries: &[Diary],
    cores: usize,
    lasted: Ns,
    witness: &Witness,
    without_ticks: bool,
) -> Result<(), Untrue> {
    let mut recorded: HashMap<u32, Ns> = HashMap::new();
    for diary in diaries {
        *recorded.entry(diary.tid).or_default() += diary.run();
    }
    let claimed: Ns = recorded.values().sum();
    let there = lasted * cores as Ns;
    // The end is noted a moment before the last switch has seen it.
    if claimed > there + there / 1000 + MS {
        return Err(Untrue::MoreThanThereIs {
            claimed_s: seconds(claimed),
            cores,
            there_s: seconds(there),
        });
    }
    let slack = match without_ticks {
        true => WITHOUT_TICKS,
        false => TICKS,
    };
    // With more threads than are kept apart, a thread's time may be among the others'.
    let apart = !recorded.contains_key(&0);
    let mut tids: Vec<&u32> = witness.after.0.keys().collect();
    tids.sort_unstable();
    for &tid in tids {
        let most = witness.after.since(&witness.before, tid);
        let least = witness.ending.since(&witness.begun, tid);
        let (Some(most), Some(least)) = (most, least) else {
            continue;
        };
        let run = recorded.get(&tid).copied().unwrap_or(0);
        let least = if apart { least } else { 0 };
        let busy = (BUSY * lasted as f64) as Ns;
        if run.max(least) < busy {
            continue;
        }
        let high = (most as f64 * (1.0 + TOLERANCE)) as Ns + slack;
        let low = ((least as f64 * (1.0 - TOLERANCE)) as Ns).saturating_sub(slack);
        if !(low..=high).contains(&run) {
            return Err(Untrue::NotAsCounted {
                tid,
                recorded_s: seconds(run),
                counted_s: seconds(if run > high { most } else { least }),
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::record::book::Book;
    use crate::record::{RecordKind, TaskRecord};

    const LASTED: Ns = 3 * SECOND;

    fn diaries(runs: &[(u32, Ns)]) -> Vec<Diary> {
        let mut book = Book::new(0);
        for &(tid, run_ns) in runs {
            book.add(&TaskRecord {
                kind: RecordKind::Job,
                tid,
                tgid: tid,
                cpu: 0,
                comm: "a".into(),
                release_ns: 0,
                end_ns: run_ns,
                run_ns,
                jobs: 1,
            });
        }
        book.into_diaries()
    }

    /// A thread that ran so long by the kernel's count, within and around the recording.
    fn witness(tid: u32, within: Ns, around: Ns) -> Witness {
        let counts = |run: Ns| Counts(HashMap::from([(tid, run)]));
        Witness {
            before: counts(SECOND),
            begun: counts(SECOND + (around - within) / 2),
            ending: counts(SECOND + (around - within) / 2 + within),
            after: counts(SECOND + around),
        }
    }

    fn nobody() -> Witness {
        witness(999, 0, 0)
    }

    fn checked(runs: &[(u32, Ns)], cores: usize, witness: &Witness) -> Result<(), Untrue> {
        check(&diaries(runs), cores, LASTED, witness, false)
    }

    #[test]
    fn a_recording_never_has_more_cpu_time_than_there_was() {
        let full = [(1, LASTED), (2, LASTED)];
        assert_eq!(checked(&full, 2, &nobody()), Ok(()));
        let untrue = checked(&[(1, LASTED), (2, LASTED), (16, LASTED / 20)], 2, &nobody());
        let said = untrue.unwrap_err().to_string();
        assert!(
            said.contains("6.15 s of CPU time where 2 CPUs had 6.00 s"),
            "{said}"
        );
    }

    #[test]
    fn a_busy_thread_agrees_with_the_kernels_count_within_two_percent() {
        let counted = witness(16, 2 * SECOND, 2 * SECOND);
        for (run, good) in [(1990, true), (2050, true), (1900, false), (2100, false)] {
            let checked = checked(&[(16, run * MS)], 2, &counted);
            assert_eq!(checked.is_ok(), good, "{run} ms: {checked:?}");
        }
        // What the kernel counted around the recording and not within may be in it or not.
        for run in [2000, 2500] {
            let counted = witness(16, 2 * SECOND, 2500 * MS);
            assert_eq!(checked(&[(16, run * MS)], 2, &counted), Ok(()));
        }
    }

    #[test]
    fn a_thread_that_hardly_ran_and_is_recorded_as_busy_is_refused_with_one_sentence() {
        let counted = witness(16, MS, MS);
        let said = checked(&[(16, 2 * SECOND)], 2, &counted)
            .unwrap_err()
            .to_string();
        assert!(said.contains("2.000 s of CPU time for thread 16"), "{said}");
        assert!(said.contains("0.001 s"), "{said}");
        assert!(!said.contains('\n'), "{said}");
    }

    #[test]
    fn a_busy_thread_that_was_not_recorded_at_all_is_refused() {
        let counted = witness(16, SECOND, SECOND);
        assert!(checked(&[(1, SECOND)], 2, &counted).is_err());
    }

    #[test]
    fn counts_are_those_of_every_thread_but_our_own() {
        let proc = tempfile::tempdir().unwrap();
        for (pid, tid, text) in [
            (7, 7, "123 4 5\n"),
            (7, 8, "99 0 1\n"),
            (9, 9, "1 1 1\n"),
            (10, 10, "nonsense\n"),
        ] {
            let folder = proc.path().join(format!("{pid}/task/{tid}"));
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("schedstat"), text).unwrap();
        }
        let counts = Counts::at(proc.path(), 9);
        assert_eq!(counts, Counts(HashMap::from([(7, 123), (8, 99)])));
    }
}
