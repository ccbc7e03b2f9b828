//! Which declaration fits a task whose jobs were watched.

use super::{RecordKind, TaskRecord};
use crate::hint::duration::Pretty;
use crate::hint::{Hint, RUNTIME_MIN_NS};
use thiserror::Error;

/// A rhythm needs so many beats.
const FEWEST_JOBS: usize = 8;
/// A gap between two jobs is a period if it is within this share of it. Wake-ups by a timer
/// are as exact as the timer; those by another task vary with it.
const NEAR: f64 = 0.1;
/// So many of the gaps must be a period, or several where a job was late or left out.
const STEADY: f64 = 0.9;
/// Of which so many exactly one: otherwise the period would be a guess.
const SINGLE: f64 = 0.6;
/// A timer whose wake-ups come late at random, as in a guest whose host is busy, has uneven gaps
/// and still its beat: releases lie close together, counted modulo the period. 1 is all at one
/// point, and wake-ups without a beat stay near 1 / sqrt(n).
const IN_PHASE: f64 = 0.8;
/// With fewer jobs chance could look like a beat.
const FEWEST_IN_PHASE: usize = 20;
/// A job may wait and wake up again: what follows within this share of a period is part of it.
const SAME_JOB: f64 = 0.7;
/// Wake-ups per job that are looked for.
const MOST_WAKEUPS: usize = 8;
/// Runtime is declared a tenth above what was seen.
const MARGIN_DIV: u64 = 10;

#[derive(Clone, Debug, PartialEq)]
pub struct Proposal {
    pub hint: Hint,
    pub jobs: usize,
    /// Share of the gaps between jobs that were one period.
    pub steady: f64,
    /// CPU time of a job.
    pub run_median_ns: u64,
    pub run_longest_ns: u64,
    /// From the wake-up until it was done.
    pub response_median_ns: u64,
    pub response_longest_ns: u64,
    /// A job far longer than all others, which the runtime does not cover.
    pub outlier_ns: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NoRhythm {
    #[error("it did not run")]
    Idle,
    #[error("it woke up {0} times, and a rhythm needs {FEWEST_JOBS}: watch it for longer")]
    TooFew(usize),
    #[error("it never slept: it computes without a pause, and has no deadlines to declare")]
    NeverSleeps,
    #[error("its {0} wake-ups have no steady period")]
    Uneven(usize),
    #[error("its jobs take longer than their period of {0}: it needs more than one CPU gives")]
    TooLong(String),
    #[error("{0}")]
    OutOfBounds(String),
}

#[derive(Clone, Copy, Debug)]
struct Job {
    release: u64,
    end: u64,
    run: u64,
}

/// From the records of one task.
pub fn propose(records: &[TaskRecord]) -> Result<Proposal, NoRhythm> {
    let wakeups = wakeups(records);
    if records.iter().all(|record| record.run_ns == 0) {
        return Err(NoRhythm::Idle);
    }
    if wakeups.is_empty() {
        return Err(NoRhythm::NeverSleeps);
    }
    if wakeups.len() < FEWEST_JOBS {
        return Err(NoRhythm::TooFew(wakeups.len()));
    }
    let (period, jobs) = rhythm(&wakeups).ok_or(NoRhythm::Uneven(wakeups.len()))?;
    let gaps = gaps(&jobs);
    let single = gaps.iter().filter(|&&gap| periods(gap, period) == Some(1));
    let steady = single.count() as f64 / gaps.len().max(1) as f64;
    let run = sorted(&jobs, |job| job.run);
    let response = sorted(&jobs, |job| job.end - job.release);
    let longest = run[run.len() - 1];
    // One job in a hundred that took twice as long as the rest had another reason.
    let usual = run[(run.len() * 99 / 100).min(run.len() - 1)];
    let (covered, outlier_ns) = match longest > 2 * usual {
        true => (usual, Some(longest)),
        false => (longest, None),
    };
    let period = round_period(period);
    if covered > period {
        return Err(NoRhythm::TooLong(Pretty(period).to_string()));
    }
    let runtime = round_up(covered + covered / MARGIN_DIV).clamp(RUNTIME_MIN_NS, period);
    let hint = Hint::new(runtime, period, period, 0)
        .map_err(|error| NoRhythm::OutOfBounds(error.to_string()))?;
    Ok(Proposal {
        hint,
        jobs: jobs.len(),
        steady,
        run_median_ns: run[run.len() / 2],
        run_longest_ns: longest,
        response_median_ns: response[response.len() / 2],
        response_longest_ns: response[response.len() - 1],
        outlier_ns,
    })
}

/// Each from a wake-up to the next sleep. The last is left out where it goes on.
fn wakeups(records: &[TaskRecord]) -> Vec<Job> {
    let mut records: Vec<&TaskRecord> = records.iter().filter(|r| r.run_ns > 0).collect();
    records.sort_by_key(|record| record.release_ns);
    let mut jobs = Vec::new();
    let mut open: Option<Job> = None;
    for record in records {
        let mut job = open.take().unwrap_or(Job {
            release: record.release_ns,
            end: record.end_ns,
            run: 0,
        });
        job.run += record.run_ns;
        job.end = job.end.max(record.end_ns);
        match record.kind {
            RecordKind::Part => open = Some(job),
            RecordKind::Stretch => {}
            // Several that came too fast to be kept apart stand for as many, evenly spread.
            RecordKind::Job => {
                let n = u64::from(record.jobs.max(1));
                let span = (job.end - job.release) / n;
                jobs.extend((0..n).map(|i| Job {
                    release: job.release + i * span,
                    end: job.release + (i + 1) * span,
                    run: job.run / n,
                }));
            }
        }
    }
    // What was going on when watching began was not released then.
    if jobs.len() > 1 {
        jobs.remove(0);
    }
    jobs
}

/// The period, and the jobs that follow each other by it.
fn rhythm(wakeups: &[Job]) -> Option<(f64, Vec<Job>)> {
    for per_job in 1..=MOST_WAKEUPS.min(wakeups.len() / 2) {
        let spans: Vec<u64> = wakeups
            .windows(per_job + 1)
            .map(|w| w[per_job].release - w[0].release)
            .collect();
        let mut period = median(spans) as f64;
        // The second time with the jobs that the first guess gave.
        for _ in 0..2 {
            let jobs = joined(wakeups, period);
            let gaps = gaps(&jobs);
            if jobs.len() < FEWEST_JOBS {
                break;
            }
            let single: Vec<u64> = gaps
                .iter()
                .copied()
                .filter(|&gap| periods(gap, period) == Some(1))
                .collect();
            let steady = gaps
                .iter()
                .filter(|&&gap| periods(gap, period).is_some())
                .count();
            let all = gaps.len() as f64;
            if single.len() as f64 >= SINGLE * all && steady as f64 >= STEADY * all {
                // Over all of them a timer's jitter averages out.
                let mean = single.iter().sum::<u64>() as f64 / single.len() as f64;
                return Some((mean, jobs));
            }
            period = median(gaps) as f64;
        }
    }
    let guess = median(gaps(wakeups)) as f64;
    let period = beat(wakeups, guess)?;
    Some((period, joined(wakeups, period)))
}

/// The period near the guess that the wake-ups keep time with, however late each of them is.
fn beat(wakeups: &[Job], guess: f64) -> Option<f64> {
    let (first, last) = (wakeups.first()?.release, wakeups.last()?.release);
    let span = (last - first) as f64;
    if wakeups.len() < FEWEST_IN_PHASE || guess <= 0.0 || span > 1e6 * guess {
        return None;
    }
    // How many periods the whole time was: the guess may be a tenth off.
    let fewest = (span / (guess * (1.0 + NEAR))).floor().max(1.0) as u64;
    let most = (span / (guess * (1.0 - NEAR))).ceil() as u64;
    let candidates = (4 * fewest..=4 * most).map(|quarters| 4.0 * span / quarters as f64);
    let phased = candidates.map(|period| (in_phase(wakeups, period), period));
    let (best, period) = phased.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (best >= IN_PHASE).then_some(period)
}

/// The length of the mean of all releases as points on a circle of one period.
fn in_phase(wakeups: &[Job], period: f64) -> f64 {
    let first = wakeups[0].release;
    let (mut x, mut y) = (0.0, 0.0);
    for wakeup in wakeups {
        let turn = std::f64::consts::TAU * (wakeup.release - first) as f64 / period;
        (x, y) = (x + turn.cos(), y + turn.sin());
    }
    f64::hypot(x, y) / wakeups.len() as f64
}

/// Wake-ups soon after the first of a job are part of it.
fn joined(wakeups: &[Job], period: f64) -> Vec<Job> {
    let mut jobs: Vec<Job> = Vec::new();
    for wakeup in wakeups {
        match jobs.last_mut() {
            Some(job) if ((wakeup.release - job.release) as f64) < SAME_JOB * period => {
                job.end = job.end.max(wakeup.end);
                job.run += wakeup.run;
            }
            _ => jobs.push(*wakeup),
        }
    }
    jobs
}

fn gaps(jobs: &[Job]) -> Vec<u64> {
    jobs.windows(2)
        .map(|w| w[1].release - w[0].release)
        .collect()
}

/// How many periods a gap is, if it is nearly a whole number of them.
fn periods(gap: u64, period: f64) -> Option<u64> {
    let times = (gap as f64 / period).round();
    let apart = (gap as f64 - times * period).abs();
    (times >= 1.0 && apart <= NEAR * period).then_some(times as u64)
}

fn median(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or(0)
}

fn sorted(jobs: &[Job], of: impl Fn(&Job) -> u64) -> Vec<u64> {
    let mut values: Vec<u64> = jobs.iter().map(of).collect();
    values.sort_unstable();
    values
}

/// The unit in the last of so many digits.
fn unit(ns: u64, digits: u32) -> u64 {
    10u64.pow(ns.max(1).ilog10().saturating_sub(digits - 1))
}

/// Two digits, at least as much.
fn round_up(ns: u64) -> u64 {
    let unit = unit(ns, 2);
    ns.div_ceil(unit) * unit
}

/// A round number where one is meant: a timer of 40 ms measures as 39.997 or 40.002. Otherwise
/// three digits, and no more than was seen: a period is the shortest time between two jobs.
fn round_period(period: f64) -> u64 {
    let ns = period as u64;
    for digits in [2, 3] {
        let unit = unit(ns, digits);
        let round = (ns + unit / 2) / unit * unit;
        if (period - round as f64).abs() <= 0.001 * period {
            return round;
        }
    }
    let unit = unit(ns, 3);
    ns / unit * unit
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn record(release_ns: u64, run_ns: u64) -> TaskRecord {
        TaskRecord {
            kind: RecordKind::Job,
            tid: 1,
            tgid: 1,
            cpu: 0,
            comm: "a".into(),
            release_ns,
            end_ns: release_ns + run_ns + MS / 5,
            run_ns,
            jobs: 1,
        }
    }

    /// Deterministic noise in 0..`most`.
    fn noise(i: u64, most: u64) -> u64 {
        (i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 33) % most
    }

    fn hint(runtime: u64, period: u64) -> Hint {
        Hint::new(runtime, period, period, 0).unwrap()
    }

    #[test]
    fn a_timer_with_jitter_gets_its_period_and_its_longest_job_and_a_tenth() {
        let records: Vec<TaskRecord> = (0..200)
            .map(|i| record(i * 40 * MS + noise(i, MS), 8 * MS + i % 10 * 100_000))
            .collect();
        let proposal = propose(&records).unwrap();
        assert_eq!(proposal.hint, hint(9_800_000, 40 * MS));
        assert_eq!(proposal.steady, 1.0);
        assert_eq!(proposal.run_longest_ns, 8_900_000);
        assert_eq!(proposal.outlier_ns, None);
    }

    #[test]
    fn a_job_that_waits_in_between_is_one_job() {
        // It wakes up, waits 3 ms for a lock, and goes on; every 10 ms.
        let records: Vec<TaskRecord> = (0..100)
            .flat_map(|i| [record(i * 10 * MS, MS), record(i * 10 * MS + 4 * MS, MS)])
            .collect();
        let proposal = propose(&records).unwrap();
        assert_eq!(proposal.hint, hint(2_200_000, 10 * MS));
    }

    #[test]
    fn jobs_that_were_late_or_left_out_do_not_hide_the_period() {
        // Every seventh is missing: the one before took two periods.
        let records: Vec<TaskRecord> = (0..140)
            .filter(|i| i % 7 != 3)
            .map(|i| record(i * 20 * MS, 5 * MS))
            .collect();
        let proposal = propose(&records).unwrap();
        assert_eq!(proposal.hint, hint(5_500_000, 20 * MS));
        assert!((0.8..0.9).contains(&proposal.steady), "{}", proposal.steady);
    }

    #[test]
    fn a_timer_that_is_always_late_still_has_its_beat() {
        // Late by up to a fifth of the period: of the gaps only three in four are near it.
        let records: Vec<TaskRecord> = (0..100)
            .filter(|i| i % 17 != 5)
            .map(|i| record(i * 50 * MS + noise(i, 10 * MS), 5 * MS))
            .collect();
        let proposal = propose(&records).unwrap();
        let period = proposal.hint.period_ns();
        assert!(period.abs_diff(50 * MS) <= MS / 4, "{period}");
        assert!(proposal.steady < STEADY, "{}", proposal.steady);
    }

    #[test]
    fn a_single_outlier_is_told_and_not_declared() {
        let run = |i| if i == 77 { 15 * MS } else { 2 * MS };
        let records: Vec<TaskRecord> = (0..300).map(|i| record(i * 16_683_000, run(i))).collect();
        let proposal = propose(&records).unwrap();
        assert_eq!(proposal.hint, hint(2_200_000, 16_600_000));
        assert_eq!(proposal.outlier_ns, Some(15 * MS));
    }

    #[test]
    fn a_job_in_parts_is_whole_and_fast_ones_are_counted() {
        let mut records = Vec::new();
        for i in 0..30 {
            let begin = record(i * 500 * MS, 100 * MS);
            let mut rest = record(i * 500 * MS + 101 * MS, 50 * MS);
            records.push(TaskRecord {
                kind: RecordKind::Part,
                ..begin
            });
            rest.jobs = 1;
            records.push(rest);
        }
        assert_eq!(propose(&records).unwrap().hint, hint(170 * MS, 500 * MS));
        // 4 kHz: five in each record.
        let fast: Vec<TaskRecord> = (0..200)
            .map(|i| TaskRecord {
                end_ns: i * 1_250_000 + 1_250_000,
                jobs: 5,
                ..record(i * 1_250_000, 250_000)
            })
            .collect();
        assert_eq!(propose(&fast).unwrap().hint, hint(55_000, 250_000));
    }

    #[test]
    fn what_has_no_rhythm_is_said_to_have_none() {
        let uneven: Vec<TaskRecord> = (0..200)
            .map(|i| record(i * 10 * MS + noise(i, 9 * MS), MS))
            .collect();
        assert_eq!(propose(&uneven), Err(NoRhythm::Uneven(199)));
        let few: Vec<TaskRecord> = (0..6).map(|i| record(i * 10 * MS, MS)).collect();
        assert_eq!(propose(&few), Err(NoRhythm::TooFew(5)));
        let hog = TaskRecord {
            kind: RecordKind::Part,
            ..record(0, 900 * MS)
        };
        assert_eq!(propose(&[hog]), Err(NoRhythm::NeverSleeps));
        assert_eq!(propose(&[]), Err(NoRhythm::Idle));
    }

    #[test]
    fn periods_are_round_where_they_were_meant_to_be() {
        assert_eq!(round_period(39_997_000.0), 40 * MS);
        assert_eq!(round_period(40_002_000.0), 40 * MS);
        assert_eq!(round_period(5_333_333.0), 5_330_000);
        assert_eq!(round_period(16_683_000.0), 16_600_000);
        assert_eq!(round_up(8_811_000), 8_900_000);
        assert_eq!(round_up(97), 97);
    }
}
