//! Whether the machine did the work as fast as the file counts on. A loop of rt-app is measured
//! before the runs. Later the clock may be lower, or the host of a guest may take its CPUs.

use crate::rtapp::outcome::{Outcome, Source};
use crate::sim::arrivals::JobStream;
use crate::sim::task::TaskSet;
use crate::sim::time::Ns;

/// CPU time that the finished jobs took, by the time that they ask for.
pub(super) fn of(outcome: &Outcome, set: &TaskSet) -> Option<f64> {
    if outcome.source != Source::Live || outcome.segments.is_empty() {
        return None;
    }
    let asked: Vec<Vec<Ns>> = (0..set.tasks.len()).map(|id| works(set, id)).collect();
    let work = |task: u32, index: u32| {
        let jobs = &outcome.jobs;
        let place = jobs.binary_search_by_key(&(task, index), |job| (job.task, job.index));
        jobs[place.ok()?].finish?;
        asked.get(task as usize)?.get(index as usize).copied()
    };
    let took = outcome.segments.iter();
    let took: Ns = took
        .filter(|s| work(s.task, s.index).is_some())
        .map(|s| s.end - s.start)
        .sum();
    let jobs = outcome.jobs.iter();
    let asked: Ns = jobs.filter_map(|job| work(job.task, job.index)).sum();
    (asked > 0).then(|| took as f64 / asked as f64)
}

/// Of every job of the task, in order.
fn works(set: &TaskSet, id: usize) -> Vec<Ns> {
    let mut stream = JobStream::new(set, id);
    let jobs = std::iter::from_fn(|| stream.next_job(set, &set.tasks[id]));
    let jobs = jobs.take_while(|job| job.release < set.horizon_ns);
    jobs.map(|job| job.execution).collect()
}
