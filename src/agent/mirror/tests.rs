use super::*;
use crate::agent::ring_record::tests::{bytes, raw};

const MS: i64 = 1_000_000;

fn record(pid: u32) -> RingRecord {
    RingRecord::read(&bytes(&raw(pid))).unwrap()
}

#[test]
fn older_records_and_dead_namesakes_change_nothing() {
    let mut mirror = Mirror::new();
    let mut now = record(7);
    now.at_ns = 5 * MS;
    now.monotonic_ns = 4 * MS;
    now.job = 3;
    mirror.apply(&now);
    let mut old = record(7);
    old.at_ns = 4 * MS;
    old.monotonic_ns = 3 * MS;
    mirror.apply(&old);
    assert_eq!(mirror.tasks()[0].record.job, 3);
    // The exit of an earlier task of the same pid, told late.
    old.at_ns = 6 * MS;
    old.monotonic_ns = 5 * MS;
    old.start_time -= 1;
    old.gone = true;
    mirror.apply(&old);
    assert_eq!(mirror.tasks().len(), 1);
    // A later one takes its place.
    let mut reborn = now;
    reborn.start_time += 1;
    reborn.job = 1;
    mirror.apply(&reborn);
    assert_eq!((mirror.tasks().len(), mirror.tasks()[0].record.job), (1, 1));
    reborn.gone = true;
    mirror.apply(&reborn);
    assert!(mirror.tasks().is_empty());
}

#[test]
fn a_resync_adds_mends_and_removes() {
    let mut mirror = Mirror::new();
    for pid in 1..=4 {
        mirror.apply(&record(pid));
    }
    let later = |pid: u32| RingRecord {
        at_ns: 0,
        monotonic_ns: 50 * MS,
        ..record(pid)
    };
    let mut wrong = later(2);
    wrong.job = 9;
    // 1 is as known, 2 differs, 3 and 4 are gone, 5 is new; 4 was heard of since.
    let mut heard = record(4);
    heard.at_ns = 60 * MS;
    heard.monotonic_ns = 60 * MS - 100_000;
    mirror.apply(&heard);
    mirror.ask_truth(45 * MS);
    let as_known = [later(1), later(2), later(3)];
    assert!(!mirror.differs(&as_known));
    assert!(mirror.differs(&as_known[..2]) && mirror.differs(&[later(1), wrong, later(3)]));
    let repair = mirror.resync(&[later(1), wrong, later(5)]);
    assert_eq!(
        repair,
        Repair {
            missing: 1,
            wrong: 1,
            ghosts: 1
        }
    );
    let mut pids: Vec<u32> = mirror.tasks().iter().map(|t| t.record.pid).collect();
    pids.sort_unstable();
    assert_eq!(pids, [1, 2, 4, 5]);
    let again = [later(1), wrong, later(5), later(4)];
    mirror.ask_truth(70 * MS);
    assert_eq!(mirror.resync(&again), Repair::default());
}

/// The truth knew it still, and the ring had its end before the comparison.
#[test]
fn one_that_left_while_the_truth_was_read_does_not_come_back() {
    let mut mirror = Mirror::new();
    mirror.apply(&record(1));
    mirror.ask_truth(45 * MS);
    let truth = RingRecord {
        at_ns: 0,
        monotonic_ns: 50 * MS,
        ..record(1)
    };
    let left = RingRecord {
        at_ns: 51 * MS,
        monotonic_ns: 51 * MS,
        gone: true,
        ..record(1)
    };
    mirror.apply(&left);
    assert_eq!(mirror.resync(&[truth]), Repair::default());
    assert!(mirror.tasks().is_empty());
    // Declared once more, it does.
    let again = RingRecord {
        monotonic_ns: 52 * MS,
        ..truth
    };
    assert_eq!(mirror.resync(&[again]).missing, 1);
    assert_eq!(mirror.tasks().len(), 1);
}

#[test]
fn a_cpu_that_was_held_up_does_not_set_the_clock_back() {
    let mut clock = Clock::default();
    clock.heard(3600 * 1000 * MS, 5 * MS);
    let then = clock.kernel_time(10 * MS);
    assert_eq!(then, 3600 * 1000 * MS + 5 * MS);
    // 20 ms between its two times; then one in time.
    clock.heard(3600 * 1000 * MS + 5 * MS, 30 * MS);
    assert!((clock.kernel_time(10 * MS) - then).abs() < MS);
    clock.heard(3600 * 1000 * MS + 26 * MS, 31 * MS);
    assert_eq!(clock.kernel_time(10 * MS), then);
    // What really is apart is followed, at once where it is far.
    clock.heard(3600 * 1000 * MS + 900 * MS, 1031 * MS);
    let followed = then - clock.kernel_time(10 * MS);
    assert!((15 * MS..17 * MS).contains(&followed), "{followed}");
    clock.heard(9 * MS, 1032 * MS);
    assert_eq!(clock.kernel_time(1032 * MS), 9 * MS);
}

/// The BPF half's clock stands still while a CPU is held up: what was read in
/// between is older than the record, though its time is later by that clock.
#[test]
fn truth_from_before_a_record_changes_nothing() {
    let mut mirror = Mirror::new();
    mirror.apply(&record(1));
    let truth = RingRecord {
        at_ns: 0,
        monotonic_ns: 50 * MS,
        ..record(1)
    };
    let told = RingRecord {
        at_ns: 45 * MS,
        monotonic_ns: 51 * MS,
        job: 9,
        ..record(1)
    };
    mirror.ask_truth(49 * MS);
    mirror.apply(&told);
    assert!(!mirror.differs(&[truth]));
    assert_eq!(mirror.resync(&[truth]), Repair::default());
    assert_eq!(mirror.tasks()[0].record.job, 9);
}

#[test]
fn a_situation_is_projected_to_the_moment_it_will_meet() {
    let mut mirror = Mirror::new();
    let mut running = record(1);
    running.running = true;
    mirror.apply(&running);
    let mut asleep = record(2);
    asleep.runnable = false;
    mirror.apply(&asleep);
    let told = mirror.situation(3 * MS, MS, CpuMask::first(1), 1.0);
    assert_eq!((told.jobs.len(), told.upcoming.len()), (1, 2));
    // It has run from 1 to 3 ms.
    assert_eq!(told.jobs[0].remaining_ns, 8 * MS);
    assert_eq!(told.upcoming[0].pending, Some(0));
    assert_eq!(told.upcoming[1].release_ns, 40 * MS + 500_000);
    // To the next release.
    assert_eq!(told.hold_ns, 37 * MS + 500_000);
    // A task that has been silent for long reserves nothing.
    let told = mirror.situation(300 * MS, MS, CpuMask::first(1), 1.0);
    assert_eq!(told.upcoming.len(), 1);
    assert_eq!(
        mirror.situation(3 * MS, MS, CpuMask::first(2), 1.0).hold_ns,
        MS
    );
}

#[test]
fn what_was_decided_of_a_task_stays_until_another_has_its_pid() {
    let mut mirror = Mirror::new();
    mirror.apply(&record(1));
    mirror.apply(&record(2));
    mirror.situation(3 * MS, MS, CpuMask::first(1), 1.0);
    let given_up = Standing {
        kept: false,
        due_ns: 0,
    };
    mirror.note(1, given_up);
    mirror.note(7, given_up);
    let later = |start_time, pid| RingRecord {
        at_ns: 5 * MS,
        monotonic_ns: 5 * MS,
        start_time,
        ..record(pid)
    };
    let told = |mirror: &mut Mirror| {
        let told = mirror.situation(6 * MS, MS, CpuMask::first(1), 1.0);
        [0, 1].map(|at| told.upcoming[at].standing.kept)
    };
    mirror.apply(&later(record(2).start_time, 2));
    assert_eq!(told(&mut mirror), [true, false]);
    mirror.apply(&later(record(2).start_time + 1, 2));
    assert_eq!(told(&mut mirror), [true, true]);
}

#[test]
fn a_task_is_unseen_until_it_is_said_how_far_its_jobs_vary() {
    let mut mirror = Mirror::new();
    let mut seen = record(2);
    seen.spread_ns = 1;
    mirror.apply(&record(1));
    mirror.apply(&seen);
    let told = mirror.situation(3 * MS, MS, CpuMask::first(1), 1.0);
    assert_eq!([0, 1].map(|at| told.upcoming[at].unseen), [true, false]);
}

#[test]
fn more_tasks_than_there_is_room_for_are_counted() {
    let mut mirror = Mirror::new();
    for pid in 0..MOST_TASKS as u32 + 5 {
        mirror.apply(&record(pid + 1));
    }
    assert_eq!((mirror.tasks().len(), mirror.overflow()), (MOST_TASKS, 5));
}

#[test]
fn a_brief_job_may_not_be_told_of_yet() {
    let brief = |job| RingRecord {
        at_ns: 0,
        monotonic_ns: 50 * MS,
        job,
        cost_ns: MS / 5,
        relative_deadline_ns: 2 * MS,
        ..record(1)
    };
    let mut mirror = Mirror::new();
    mirror.apply(&brief(7));
    mirror.ask_truth(49 * MS);
    assert!(!mirror.differs(&[brief(8)]));
    // But the one before was.
    assert!(mirror.differs(&[brief(9)]));
    let long = RingRecord {
        cost_ns: 2 * MS,
        ..brief(8)
    };
    assert!(mirror.differs(&[long]));
    // Numbers come from outside.
    mirror.apply(&brief(u64::MAX));
    assert!(mirror.differs(&[brief(0)]));
}

#[test]
fn who_ran_where_another_runs_now_was_set_aside() {
    let mut mirror = Mirror::new();
    let running = |pid: u32, at_ns: i64, cpu: u16| RingRecord {
        at_ns,
        monotonic_ns: at_ns,
        cpu,
        running: true,
        ..record(pid)
    };
    let executed = |mirror: &Mirror, pid: u32| {
        let task = mirror.tasks().iter().find(|t| t.record.pid == pid).unwrap();
        (task.record.running, task.record.executed_ns)
    };
    let before = record(1).executed_ns;
    mirror.apply(&running(1, 10 * MS, 0));
    // Elsewhere, or earlier: that says nothing of it.
    mirror.apply(&running(2, 11 * MS, 1));
    mirror.apply(&running(3, 9 * MS, 0));
    assert_eq!(executed(&mirror, 1), (true, before));
    mirror.apply(&running(1, 10 * MS + 1, 0));
    mirror.apply(&running(4, 12 * MS + 1, 0));
    assert_eq!(executed(&mirror, 1), (false, before + 2 * MS));
    assert_eq!(executed(&mirror, 2), (true, before));
}
