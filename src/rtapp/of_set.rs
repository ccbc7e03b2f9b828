//! A task set as an rt-app workload: the jobs that the simulator releases, one by
//! one, for a kernel to run.
//!
//! Every task is a thread, and every job a turn of one of its phases: the work, then
//! an absolute timer to the next release. Turns that are alike in a row are one phase.

use thiserror::Error;

use super::convert::{Converted, Origin};
use super::note::Place;
use super::workload::{
    Action, DeadlineParameters, Event, Global, Loops, Phase, Placed, Setting, Thread, Timer,
    Workload,
};
use crate::sim::arrivals::JobStream;
use crate::sim::task::{Task, TaskSet};
use crate::sim::time::{Ns, US};

/// A turn of a hog: short enough to end it in time, long enough for short logs.
const HOG_TURN_US: u64 = 20_000;
/// More turns than any run here has; rt-app reads them all before it starts.
const MOST_TURNS: usize = 200_000;

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum OfSetError {
    #[error("task {0:?} releases no job within the time, so it is no thread")]
    NoJobs(String),
    #[error("the set has more than {MOST_TURNS} different jobs, which is too much for rt-app")]
    TooLong,
}

/// The workload and what its threads are to be judged by.
#[derive(Clone, Debug)]
pub struct Rendered {
    pub workload: Workload,
    pub converted: Converted,
}

/// `slowdown`: how many times as long a job takes there as its instructions alone, as
/// where vCPUs take turns on one clock.
pub fn of_set(set: &TaskSet, slowdown: u64) -> Result<Rendered, OfSetError> {
    let mut turns = 0;
    let threads = (0..set.tasks.len())
        .map(|id| {
            let thread = thread(set, id, slowdown.max(1))?;
            turns += thread.phases.len();
            match turns > MOST_TURNS {
                true => Err(OfSetError::TooLong),
                false => Ok(thread),
            }
        })
        .collect::<Result<Vec<_>, _>>()?;
    let origin = |thread| Origin {
        thread,
        instance: 0,
        forked: false,
    };
    let timer = |task: &Task| {
        let rhythmic = !task.is_hog(set.horizon_ns);
        rhythmic.then_some(task.period_ns as i64 - task.deadline_ns as i64)
    };
    let converted = Converted {
        set: set.clone(),
        timer_after_deadline: set.tasks.iter().map(timer).collect(),
        origins: (0..threads.len()).map(origin).collect(),
        notes: Vec::new(),
    };
    let workload = Workload {
        global: Global {
            lock_pages: false,
            ..Global::default()
        },
        threads,
        tasks_at: None,
        notes: Vec::new(),
    };
    Ok(Rendered {
        workload,
        converted,
    })
}

/// Nowhere: nobody wrote a file.
const NOWHERE: Place = Place { line: 1, column: 1 };

fn thread(set: &TaskSet, id: usize, slowdown: u64) -> Result<Thread, OfSetError> {
    let task = &set.tasks[id];
    let is_hog = task.is_hog(set.horizon_ns);
    let (delay_us, phases) = match is_hog {
        true => (task.offset_ns / US, vec![phase(1, vec![run(HOG_TURN_US)])]),
        false => phases(set, id, slowdown)?,
    };
    let deadline = DeadlineParameters {
        deadline_us: (!is_hog && task.deadline_ns < task.period_ns)
            .then_some(task.deadline_ns / US),
        ..DeadlineParameters::default()
    };
    Ok(Thread {
        name: task.name.clone(),
        at: NOWHERE,
        instances: 1,
        delay_us,
        // Who does not end goes on until rt-app ends it.
        loops: match task.end_ns {
            Some(_) => Loops::Times(1),
            None => Loops::Forever,
        },
        phases,
        setting: Setting {
            deadline,
            priority: (task.nice != 0).then(|| Placed {
                at: NOWHERE,
                value: task.nice.into(),
            }),
            ..Setting::default()
        },
    })
}

/// When the first job is released, and all turns.
fn phases(set: &TaskSet, id: usize, slowdown: u64) -> Result<(u64, Vec<Phase>), OfSetError> {
    let task = &set.tasks[id];
    let mut stream = JobStream::new(set, id);
    let jobs = std::iter::from_fn(|| stream.next_job(set, task));
    let jobs: Vec<(u64, u64)> = jobs
        .take_while(|job| job.release < set.horizon_ns)
        .map(|job| {
            (
                rounded_us(job.release),
                rounded_us(job.execution / slowdown),
            )
        })
        .collect();
    let Some(&(first_us, _)) = jobs.first() else {
        return Err(OfSetError::NoJobs(task.name.clone()));
    };
    let after = |i: usize| match jobs.get(i + 1) {
        Some(&(next, _)) => (next - jobs[i].0).max(1),
        None => rounded_us(task.period_ns),
    };
    let turns = jobs.iter().enumerate();
    let mut alike: Vec<(u32, u64, u64)> = Vec::new();
    for (i, &(_, work_us)) in turns {
        let gap_us = after(i);
        match alike.last_mut() {
            Some((count, work, gap)) if (*work, *gap) == (work_us, gap_us) => *count += 1,
            _ => alike.push((1, work_us, gap_us)),
        }
    }
    let turn = |(count, work_us, gap_us)| {
        let timer = Timer {
            reference: "unique".into(),
            unique: true,
            period_us: gap_us,
            absolute: true,
        };
        phase(
            count,
            vec![run(work_us), event("timer", Action::Timer(timer))],
        )
    };
    Ok((first_us, alike.into_iter().map(turn).collect()))
}

fn rounded_us(ns: Ns) -> u64 {
    (ns + US / 2) / US
}

fn run(us: u64) -> Event {
    event("run", Action::Run { us: us.max(1) })
}

fn event(key: &str, action: Action) -> Event {
    Event {
        at: NOWHERE,
        key: key.into(),
        action,
    }
}

fn phase(times: u32, events: Vec<Event>) -> Phase {
    Phase {
        name: None,
        at: NOWHERE,
        loops: Loops::Times(times),
        events,
        setting: Setting::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rtapp::convert::{convert, Wishes};
    use crate::rtapp::write::{self, Class, Orders};
    use crate::sim::task::{Declaration, Execution};
    use crate::sim::time::{MS, SECOND};
    use crate::sim::workload::tournament::{draw, Options};

    /// What rt-app reads, taken to the simulator by the other way.
    fn there_and_back(rendered: &Rendered, horizon: Ns) -> TaskSet {
        let orders = Orders {
            classes: vec![Class::Fair; rendered.workload.threads.len()],
            lead_us: 0,
            duration_s: horizon.div_ceil(SECOND),
            calibration_ns: 100,
            io_device: "/dev/null",
            log_dir: "/tmp",
            log_megabytes: 2,
        };
        let text = write::text(&rendered.workload, &orders);
        let workload = Workload::parse(text.as_bytes()).unwrap();
        let wishes = Wishes {
            horizon: Some(horizon),
            cores: Some(rendered.converted.set.cores),
        };
        convert(&workload, &wishes).unwrap().set
    }

    fn jobs(set: &TaskSet, id: usize) -> Vec<(u64, u64)> {
        let mut stream = JobStream::new(set, id);
        let jobs = std::iter::from_fn(|| stream.next_job(set, &set.tasks[id]));
        jobs.take_while(|job| job.release < set.horizon_ns)
            .map(|job| (rounded_us(job.release), rounded_us(job.execution).max(1)))
            .collect()
    }

    #[test]
    fn a_kernel_is_given_the_jobs_that_the_simulator_has() {
        let options = Options {
            cores: Some(1),
            horizon_ns: Some(SECOND),
            ..Options::default()
        };
        for seed in 0..40 {
            let set = draw(&options, seed).set;
            let rendered = match of_set(&set, 1) {
                Ok(rendered) => rendered,
                // Who begins half-way may begin too late for a second.
                Err(OfSetError::NoJobs(_)) => continue,
                Err(other) => panic!("{seed}: {other}"),
            };
            let back = there_and_back(&rendered, set.horizon_ns);
            assert_eq!(back.tasks.len(), set.tasks.len());
            for (id, task) in set.tasks.iter().enumerate() {
                assert_eq!(task.name, back.tasks[id].name);
                if !task.is_hog(set.horizon_ns) {
                    let (told, got) = (jobs(&set, id), jobs(&back, id));
                    // The last may be cut short by the end of the time.
                    let whole = told.len() - 1;
                    assert_eq!(told[..whole], got[..whole], "{seed}: {}", task.name);
                }
            }
        }
    }

    #[test]
    fn turns_that_are_alike_are_one_phase_and_a_task_that_ends_is_a_thread_that_ends() {
        let mut long = Task::periodic("k", 10 * MS, 4 * MS);
        long.execution = Execution::OneIn {
            jobs: 3,
            share: 0.5,
        };
        long.end_ns = Some(60 * MS);
        long.offset_ns = 5 * MS;
        long.declared = Declaration::Nothing;
        let set = TaskSet {
            name: "t".into(),
            cores: 2,
            horizon_ns: 100 * MS,
            seed: 1,
            modes: Vec::new(),
            tasks: vec![long, Task::periodic("c", 20 * MS, MS)],
        };
        let rendered = of_set(&set, 2).unwrap();
        let [ends, constant] = &rendered.workload.threads[..] else {
            panic!("two threads");
        };
        let turns: Vec<(Loops, &Action)> = ends
            .phases
            .iter()
            .map(|phase| (phase.loops, &phase.events[0].action))
            .collect();
        let (short, long) = (Action::Run { us: 1000 }, Action::Run { us: 2000 });
        let [two, one] = [Loops::Times(2), Loops::Times(1)];
        assert_eq!(
            turns,
            [(two, &short), (one, &long), (two, &short), (one, &long)]
        );
        assert_eq!((ends.delay_us, ends.loops), (5000, Loops::Times(1)));
        assert_eq!((constant.phases.len(), constant.loops), (1, Loops::Forever));
    }
}
