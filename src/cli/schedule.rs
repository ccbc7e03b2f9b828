//! A simulated schedule as a timeline: cores, misses and tasks as tracks.

use crate::report::perfetto::{Instant, Slice, Timeline};
use crate::sim::engine::{Fate, JobRecord, Segment};
use crate::sim::task::TaskSet;

/// Adds one run: a track per core, one for the deadlines missed, and one per task
/// with where it ran and when it was due.
pub(super) fn add_schedule(
    timeline: &mut Timeline,
    title: &str,
    set: &TaskSet,
    jobs: &[JobRecord],
    segments: &[Segment],
) {
    let missed = set.cores as u32 + 1;
    let of_task = |task: u32| missed + 1 + task;
    let name = |task: u32| set.tasks[task as usize].name.as_str();
    let mut tracks: Vec<(u32, String)> = (0..set.cores as u32)
        .map(|core| (core + 1, format!("core {core}")))
        .collect();
    tracks.push((missed, "deadlines missed".into()));
    tracks.extend((0..set.tasks.len() as u32).map(|task| (of_task(task), name(task).to_owned())));
    timeline.process(title, &tracks);
    for s in segments {
        let (core, note) = (s.core, format!("job {}", s.index));
        for (track, note) in [
            (core + 1, note.clone()),
            (of_task(s.task), format!("{note} on core {core}")),
        ] {
            timeline.slice(&Slice {
                track,
                name: name(s.task),
                start_ns: s.start,
                end_ns: s.end,
                note,
            });
        }
    }
    for job in jobs {
        let missed_it = job.fate != Fate::OnTime;
        timeline.instant(&Instant {
            track: of_task(job.task),
            name: if missed_it { "missed" } else { "due" },
            time_ns: job.deadline,
        });
        if missed_it {
            timeline.instant(&Instant {
                track: missed,
                name: name(job.task),
                time_ns: job.deadline,
            });
        }
    }
}
