//! The largest number of jobs one preemptive core can finish on time, exactly.
//!
//! 1 | pmtn, r_j | ΣU_j in polynomial time, after Lawler (1990) and Baptiste
//! (1999). Jobs are taken in order of deadline; F(s, q) is the earliest time by
//! which q of the jobs so far, all released at s or later, can be done on time.
//! A new job k has the latest deadline, so it only ever fills what the others
//! leave: its place is found by walking over the blocks of the others that start
//! between its release and its own end.

use super::Job;
use crate::sim::time::{Ns, NEVER};

/// The maximum, or `None` when a busy stretch holds more than `limit` jobs.
pub fn maximum(jobs: &[Job], limit: usize) -> Option<usize> {
    let mut sum = 0;
    for stretch in busy_stretches(jobs) {
        // Mostly everything fits, and that is quick to see.
        sum += if all_fit(stretch) {
            stretch.len()
        } else if stretch.len() > limit {
            return None;
        } else {
            hardest(stretch)
        };
    }
    Some(sum)
}

/// Jobs that make up a maximum, by release; `None` as for [`maximum`]. Of each
/// stretch that does not fit, the longest jobs go that the maximum can do
/// without: as many passes as there are jobs, so keep the limit low.
pub fn maximum_set(jobs: &[Job], limit: usize) -> Option<Vec<Job>> {
    let mut chosen = Vec::new();
    for stretch in busy_stretches(jobs) {
        let mut kept = stretch.to_vec();
        if !all_fit(&kept) {
            if kept.len() > limit {
                return None;
            }
            let most = hardest(&kept);
            let mut longest_first = kept.clone();
            longest_first.sort_by_key(|job| (std::cmp::Reverse(job.work), job.release, job.task));
            for job in longest_first {
                if kept.len() == most {
                    break;
                }
                let mut without = kept.clone();
                without.retain(|other| other != &job);
                if hardest(&without) == most {
                    kept = without;
                }
            }
        }
        chosen.extend(kept);
    }
    Some(chosen)
}

/// Cuts the jobs (sorted by release) where a core that did all of the work would
/// fall idle: no job of one stretch can disturb another.
fn busy_stretches(jobs: &[Job]) -> Vec<&[Job]> {
    let mut stretches = Vec::new();
    let (mut start, mut busy_until, mut latest) = (0, 0, 0);
    for (i, job) in jobs.iter().enumerate() {
        if i > start && (job.release >= busy_until || job.release >= latest) {
            stretches.push(&jobs[start..i]);
            start = i;
        }
        busy_until = busy_until.max(job.release) + job.work;
        latest = latest.max(job.deadline);
    }
    if start < jobs.len() {
        stretches.push(&jobs[start..]);
    }
    stretches
}

/// EDF on one core meets all if anybody can.
fn all_fit(jobs: &[Job]) -> bool {
    let mut ready = std::collections::BinaryHeap::new();
    let mut now = 0;
    let mut next = 0;
    loop {
        while next < jobs.len() && jobs[next].release <= now {
            ready.push(std::cmp::Reverse((jobs[next].deadline, jobs[next].work)));
            next += 1;
        }
        let until = jobs.get(next).map_or(NEVER, |j| j.release);
        let Some(std::cmp::Reverse((deadline, work))) = ready.pop() else {
            if until == NEVER {
                return true;
            }
            now = until;
            continue;
        };
        let done = work.min(until - now);
        now += done;
        if work > done {
            ready.push(std::cmp::Reverse((deadline, work - done)));
        } else if now > deadline {
            return false;
        }
    }
}

/// F(s, q) for all starts s and counts q.
struct Table {
    width: usize,
    cells: Vec<Ns>,
}

impl Table {
    fn at(&self, start: usize, count: usize) -> Ns {
        if count < self.width {
            self.cells[start * self.width + count]
        } else {
            NEVER
        }
    }

    fn row(&mut self, start: usize) -> &mut [Ns] {
        &mut self.cells[start * self.width..(start + 1) * self.width]
    }
}

fn hardest(jobs: &[Job]) -> usize {
    let mut by_deadline: Vec<Job> = jobs
        .iter()
        .copied()
        .filter(|j| j.release + j.work <= j.deadline)
        .collect();
    by_deadline.sort_by_key(|j| (j.deadline, j.release));
    if by_deadline.is_empty() {
        return 0;
    }
    let mut starts: Vec<Ns> = by_deadline.iter().map(|j| j.release).collect();
    starts.sort_unstable();
    starts.dedup();
    let width = by_deadline.len() + 1;
    let mut f = Table {
        width,
        cells: vec![NEVER; starts.len() * width],
    };
    for (i, &s) in starts.iter().enumerate() {
        f.row(i)[0] = s;
    }
    // The most jobs any start can hold so far; rows are NEVER beyond.
    let mut filled = vec![0usize; starts.len()];
    let mut ends = vec![NEVER; width];
    let mut walk = Walk::default();
    for job in &by_deadline {
        let first_after = starts.partition_point(|&s| s < job.release);
        // Ascending s would let a row see job k in later rows: a job counted
        // twice. Rows for larger s are only read as they were before k, so go up
        // in s and write last.
        let mut rows: Vec<(usize, Vec<Ns>)> = Vec::new();
        for s in 0..=first_after.min(starts.len() - 1) {
            if starts[s] > job.release {
                break;
            }
            let most = walk.ends_with(job, s, &starts, &f, &filled, &mut ends);
            rows.push((s, with_job(s, most, &ends, &starts, &f, &filled)));
        }
        for (s, row) in rows {
            let target = f.row(s);
            for (q, end) in row.into_iter().enumerate() {
                target[q] = target[q].min(end);
                if target[q] != NEVER {
                    filled[s] = filled[s].max(q);
                }
            }
        }
    }
    filled[0]
}

/// Row s with job k: k last (`ends`), or k followed by a later block of others.
fn with_job(
    s: usize,
    most: usize,
    ends: &[Ns],
    starts: &[Ns],
    f: &Table,
    filled: &[usize],
) -> Vec<Ns> {
    let mut row = vec![NEVER; f.width];
    row[..=most].copy_from_slice(&ends[..=most]);
    // `ends` is not monotone by itself; having more jobs done is never worse.
    let mut reach = ends[..=most].to_vec();
    for q in (0..most).rev() {
        reach[q] = reach[q].min(reach[q + 1]);
    }
    for later in s + 1..starts.len() {
        // The most jobs, k among them, that are done when the block may start.
        let done = reach.partition_point(|&end| end <= starts[later]);
        if done <= 1 {
            continue;
        }
        let done = done - 1;
        for extra in 1..=filled[later] {
            let end = f.at(later, extra);
            let q = done + extra;
            if q < row.len() && end < row[q] {
                row[q] = end;
            }
        }
    }
    // q jobs are done whenever q + 1 are.
    for q in (1..row.len() - 1).rev() {
        row[q] = row[q].min(row[q + 1]);
    }
    row[0] = NEVER;
    row
}

/// Walks over the others' blocks from the release of k to its end.
#[derive(Default)]
struct Walk {
    /// Least work of the others since k's release, by (start index, count beyond `base`).
    least: Vec<Ns>,
}

impl Walk {
    /// Fills `ends[q]` with the earliest end of k when it is the last of q jobs;
    /// returns the largest q that is possible. Counts that are dominated (more
    /// jobs, no later) stay `NEVER`.
    fn ends_with(
        &mut self,
        job: &Job,
        s: usize,
        starts: &[Ns],
        f: &Table,
        filled: &[usize],
        ends: &mut [Ns],
    ) -> usize {
        ends.fill(NEVER);
        let mut most = 0;
        let own = job.release + job.work;
        // Blocks of others may start anywhere in [release, deadline).
        let low = starts.partition_point(|&x| x < job.release);
        let high = starts.partition_point(|&x| x < job.deadline);
        // Of all the counts that are done when k arrives only the largest matters.
        let base = (0..=filled[s])
            .rev()
            .find(|&q| f.at(s, q) <= job.release)
            .unwrap_or(0);
        let width = f.width - base;
        self.least.clear();
        self.least.resize((high - low) * width, NEVER);
        let mut note = |ends: &mut [Ns], q: usize, end: Ns| {
            if end < ends[q] {
                ends[q] = end;
                most = most.max(q);
            }
        };
        let mut top = base;
        for q in base..=filled[s] {
            let end = f.at(s, q);
            let work = end.saturating_sub(job.release);
            if own + work > job.deadline || q + 1 >= f.width {
                break;
            }
            note(ends, q + 1, own + work);
            let x = starts.partition_point(|&x| x < end.max(job.release));
            if x < high {
                let cell = &mut self.least[(x - low) * width + q - base];
                *cell = (*cell).min(work);
                top = top.max(q);
            }
        }
        for x in low..high {
            // What this block adds starts later.
            let highest = top;
            for q in base..=highest {
                let work = self.least[(x - low) * width + q - base];
                // k is done before this block: then it is not the last, and the
                // caller deals with it.
                if work == NEVER || own + work <= starts[x] {
                    continue;
                }
                if x + 1 < high {
                    let cell = &mut self.least[(x + 1 - low) * width + q - base];
                    *cell = (*cell).min(work);
                }
                for block in 1..=filled[x] {
                    let end = f.at(x, block);
                    let total = work + (end - starts[x]);
                    if own + total > job.deadline || q + block + 1 >= f.width {
                        break;
                    }
                    note(ends, q + block + 1, own + total);
                    let next = starts.partition_point(|&s| s < end);
                    if next < high {
                        let cell = &mut self.least[(next - low) * width + q + block - base];
                        *cell = (*cell).min(total);
                        top = top.max(q + block);
                    }
                }
            }
        }
        most
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::rng::Rng;

    /// Every subset, EDF as the judge.
    fn brute_force(jobs: &[Job]) -> usize {
        (0u32..1 << jobs.len())
            .filter(|mask| {
                let chosen: Vec<Job> = (0..jobs.len())
                    .filter(|i| mask & (1 << i) != 0)
                    .map(|i| jobs[i])
                    .collect();
                all_fit(&chosen)
            })
            .map(u32::count_ones)
            .max()
            .unwrap_or(0) as usize
    }

    #[test]
    fn the_jobs_of_a_maximum_all_fit_and_are_as_many() {
        let mut rng = Rng::new(3);
        for _ in 0..60 {
            let mut jobs: Vec<Job> = (0..12)
                .map(|task| {
                    let release = rng.below(40) as Ns;
                    let work = 1 + rng.below(12) as Ns;
                    Job {
                        task,
                        release,
                        deadline: release + work + rng.below(12) as Ns,
                        work,
                    }
                })
                .collect();
            jobs.sort_by_key(|j| (j.release, j.deadline, j.task));
            let chosen = maximum_set(&jobs, 100).unwrap();
            assert_eq!(Some(chosen.len()), maximum(&jobs, 100));
            assert!(all_fit(&chosen));
            assert!(chosen.iter().all(|job| jobs.contains(job)));
        }
        let crowd = vec![jobs_of_one(); 3];
        assert_eq!(maximum_set(&crowd, 2), None);
    }

    fn jobs_of_one() -> Job {
        Job {
            task: 0,
            release: 0,
            deadline: 5,
            work: 4,
        }
    }

    #[test]
    fn agrees_with_trying_every_subset() {
        let mut rng = Rng::new(17);
        for round in 0..6_000 {
            let n = 1 + rng.below(9);
            let span = 5 + rng.below(40);
            let longest = 1 + rng.below(12);
            let mut jobs: Vec<Job> = (0..n)
                .map(|task| {
                    let release = rng.below(span) as Ns;
                    let work = 1 + rng.below(longest) as Ns;
                    Job {
                        task,
                        release,
                        deadline: release + 1 + rng.below(25) as Ns,
                        work,
                    }
                })
                .collect();
            jobs.sort_by_key(|j| (j.release, j.deadline, j.task));
            let expected = brute_force(&jobs);
            assert_eq!(hardest(&jobs), expected, "round {round}: {jobs:?}");
            assert_eq!(
                maximum(&jobs, 100),
                Some(expected),
                "round {round}: {jobs:?}"
            );
        }
    }
}
