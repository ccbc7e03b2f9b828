use super::tasks;
use crate::rtapp::idle_machine::{run, Due, End, Life, Limits};
use crate::sim::time::{MS, US};

fn lives(text: &str, horizon_ms: u64) -> Vec<Life> {
    run(&tasks(text), Limits::until(horizon_ms * MS)).expect("not too long")
}

/// Release, work and due time of every job in milliseconds; due 0 for never.
fn jobs(life: &Life) -> Vec<(u64, u64, u64)> {
    life.jobs
        .iter()
        .map(|job| match job.due {
            Due::Timer(due) | Due::NextWake(due) => (job.release / MS, job.work / MS, due / MS),
            Due::Never => (job.release / MS, job.work / MS, 0),
        })
        .collect()
}

#[test]
fn a_timer_releases_and_ends_jobs() {
    let text = r#""t": {"delay": 3000, "run": 2000, "timer": {"ref": "unique", "period": 10000}}"#;
    let lives = lives(text, 30);
    assert_eq!(jobs(&lives[0]), [(3, 2, 13), (13, 2, 23), (23, 2, 33)]);
    assert!(matches!(lives[0].jobs[0].due, Due::Timer(_)));
    assert_eq!(lives[0].end, End::Going);
}

#[test]
fn a_sleeper_is_due_when_it_wakes() {
    let lives = lives(r#""t": {"run": 2000, "sleep": 3000}"#, 12);
    assert_eq!(jobs(&lives[0]), [(0, 2, 5), (5, 2, 10), (10, 2, 15)]);
    assert!(matches!(lives[0].jobs[0].due, Due::NextWake(_)));
}

#[test]
fn an_absolute_timer_keeps_its_grid_after_a_miss_and_a_relative_one_does_not() {
    let text = |mode| {
        format!(
            r#""t": {{"phases": {{
                "long": {{"run": 15000, "timer": {{"ref": "unique", "period": 10000, "mode": "{mode}"}}}},
                "short": {{"loop": 2, "run": 1000, "timer": {{"ref": "unique", "period": 10000}}}}}}}}"#
        )
    };
    let absolute = lives(&text("absolute"), 29);
    assert_eq!(jobs(&absolute[0]), [(0, 15, 10), (10, 1, 20), (20, 1, 30)]);
    let relative = lives(&text("relative"), 29);
    assert_eq!(jobs(&relative[0]), [(0, 15, 10), (15, 1, 25), (25, 1, 35)]);
}

#[test]
fn threads_that_share_a_timer_take_turns_and_unique_ones_do_not() {
    let text = |name| {
        format!(
            r#""a": {{"run": 1000, "timer": {{"ref": "{name}", "period": 10000}}}},
               "b": {{"run": 1000, "timer": {{"ref": "{name}", "period": 10000}}}}"#
        )
    };
    let shared = lives(&text("tick"), 40);
    assert_eq!(jobs(&shared[0])[..2], [(0, 1, 10), (10, 1, 30)]);
    assert_eq!(jobs(&shared[1])[..2], [(0, 1, 20), (20, 1, 40)]);
    let unique = lives(&text("unique"), 40);
    assert_eq!(jobs(&unique[0])[..2], [(0, 1, 10), (10, 1, 20)]);
    assert_eq!(jobs(&unique[1])[..2], [(0, 1, 10), (10, 1, 20)]);
}

#[test]
fn two_threads_that_resume_each_other_alternate() {
    let lives = lives(
        r#""a": {"run": 10000, "resume": "b", "suspend": "a"},
           "b": {"run": 10000, "resume": "a", "suspend"}"#,
        60,
    );
    // Both start; the first resume finds nobody and is lost.
    assert_eq!(
        jobs(&lives[0])[..3],
        [(0, 10, 10), (10, 10, 30), (30, 10, 50)]
    );
    assert_eq!(
        jobs(&lives[1])[..3],
        [(0, 10, 20), (20, 10, 40), (40, 10, 60)]
    );
}

#[test]
fn barriers_semaphores_and_locks_make_threads_wait() {
    let barrier = lives(
        r#""a": {"loop": 1, "run": 1000, "barrier": "x", "run1": 2000},
           "b": {"loop": 1, "run": 5000, "barrier": "x", "run1": 2000}"#,
        100,
    );
    assert_eq!(jobs(&barrier[0]), [(0, 1, 5), (5, 2, 0)]);
    assert_eq!(jobs(&barrier[1]), [(0, 7, 0)]);
    let semaphore = lives(
        r#""a": {"loop": 1, "sem_wait": "s", "run": 1000, "sem_wait1": "s", "run1": 1000},
           "b": {"loop": 1, "run": 3000, "sem_post": "s", "run1": 3000, "sem_post1": "s"}"#,
        100,
    );
    assert_eq!(jobs(&semaphore[0]), [(3, 1, 6), (6, 1, 0)]);
    let lock = lives(
        r#""a": {"loop": 1, "lock": "m", "run": 4000, "unlock": "m"},
           "b": {"loop": 1, "run": 1000, "lock": "m", "run1": 2000, "unlock": "m"}"#,
        100,
    );
    assert_eq!(jobs(&lock[1]), [(0, 1, 4), (4, 2, 0)]);
}

#[test]
fn a_signal_wakes_one_a_broadcast_all_and_sync_both_signals_and_waits() {
    let waiter = r#"{"loop": 1, "lock": "m", "wait": {"ref": "c", "mutex": "m"}, "unlock": "m", "run": 1000}"#;
    let text = |event: &str| {
        format!(
            r#""a": {waiter}, "b": {waiter}, "c": {{"loop": 1, "sleep": 2000, "{event}": "c"}}"#
        )
    };
    let signal = lives(&text("signal"), 50);
    assert_eq!((signal[0].jobs.len(), signal[1].jobs.len()), (1, 0));
    assert!(matches!(signal[1].end, End::Stuck { .. }));
    let broadcast = lives(&text("broad"), 50);
    assert_eq!((broadcast[0].jobs.len(), broadcast[1].jobs.len()), (1, 1));
    let sync = lives(
        &format!(
            r#""a": {waiter}, "b": {{"loop": 1, "sleep": 1000, "lock": "m", "sync": {{"ref": "c", "mutex": "m"}}}}"#
        ),
        50,
    );
    assert_eq!(jobs(&sync[0]), [(1, 1, 0)]);
    assert!(matches!(sync[1].end, End::Stuck { .. }));
}

#[test]
fn a_fork_is_a_thread_of_its_own() {
    let lives = lives(
        r#""parent": {"loop": 1, "run": 5000, "fork": "child", "sleep": 1000, "fork1": "child"},
           "child": {"instance": 0, "loop": 1, "run": 2000}"#,
        100,
    );
    let children: Vec<_> = lives.iter().filter(|life| life.forked).collect();
    assert_eq!(jobs(children[0]), [(5, 2, 0)]);
    assert_eq!(jobs(children[1]), [(6, 2, 0)]);
    assert_eq!((children[0].instance, children[1].instance), (1, 2));
}

#[test]
fn nothing_runs_away() {
    let ends = |text: &str| {
        lives(text, 20)
            .into_iter()
            .map(|life| life.end)
            .collect::<Vec<_>>()
    };
    assert!(matches!(
        ends(r#""t": {"yield": ""}"#)[..],
        [End::Spinning(_)]
    ));
    assert!(matches!(
        ends(r#""t": {"suspend"}"#)[..],
        [End::Stuck { since: 0, .. }]
    ));
    assert_eq!(ends(r#""t": {"run": 1000}"#), [End::Hog]);
    assert_eq!(
        ends(r#""t": {"loop": 0, "phases": {"p": {"run": 1}}}"#),
        [End::Finished]
    );
    let bomb = tasks(r#""t": {"fork": "t", "run": 1}"#);
    let limits = Limits {
        steps: 100_000,
        threads: 50,
        ..Limits::until(MS)
    };
    assert!(run(&bomb, limits).map_or(true, |lives| lives.len() <= 50));
    let busy = tasks(r#""t": {"run": 1, "sleep": 1}"#);
    let limits = Limits {
        steps: 1000,
        ..Limits::until(1_000_000 * US)
    };
    assert!(run(&busy, limits).is_err());
}
