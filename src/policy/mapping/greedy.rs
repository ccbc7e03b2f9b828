//! Iterative masked greedy for m cores: the highest score first, until the
//! CPUs are full or idle is better.
//!
//! Affinity and the migration price make "first" less obvious than it sounds:
//! a job is worth its score minus what it and those that make room for it pay
//! to move, and that only becomes known when its turn comes. So jobs wait in a
//! heap under the best they could be worth, are priced when they come up, and
//! go back if that makes them less than the next. Prices only rise while CPUs
//! fill, so few go back, and the cost is one O(N) heapify and O(m log N) pops.
//!
//! A job that finds no free CPU it may use does not give up while one is free
//! elsewhere: those already placed move over along a shortest chain (an
//! augmenting path). The set of jobs that run is then the best there is for
//! λ = 0, since sets of jobs that fit their CPUs form a matroid.

use super::super::cpumask::MAX_CPUS;
use super::{sortable, Assignment, CpuId, CpuMask, Problem};
use std::collections::{BinaryHeap, VecDeque};

#[derive(Debug, Clone, Default)]
pub(super) struct Scratch {
    heap: Vec<u64>,
    queue: VecDeque<CpuId>,
    /// From which CPU the search for a free one came.
    came_from: Vec<CpuId>,
}

/// Where a job could go.
enum Seat {
    Free(CpuId),
    /// Its old CPU, whose guest (there by migration anyway) moves on.
    Guest {
        home: CpuId,
        guest: u32,
        to: CpuId,
    },
    /// The end of a chain of moves recorded in `Scratch::came_from`.
    Chain(CpuId),
}

pub(super) fn fill(
    problem: &Problem<'_>,
    price: f32,
    scratch: &mut Scratch,
    assignment: &mut Assignment,
) {
    if assignment.free.is_empty() {
        return;
    }
    let floor = sortable(problem.floor());
    let known = problem.jobs.len();
    let mut keys = std::mem::take(&mut scratch.heap);
    keys.clear();
    // How many of the jobs are candidates varies; for all of them there was room before.
    keys.reserve(known);
    keys.extend(
        problem
            .candidates
            .iter()
            .enumerate()
            .filter(|&(_, &job)| (job as usize) < known && !assignment.is_placed(job))
            .map(|(place, &job)| key(problem.score(job), place)),
    );
    let mut heap = BinaryHeap::from(keys);

    while !assignment.free.is_empty() {
        let Some(best) = heap.pop() else { break };
        if ((best >> 32) as u32) < floor {
            break;
        }
        let place = (u32::MAX - best as u32) as usize;
        let job = problem.candidates[place];
        if assignment.is_placed(job) {
            continue; // named twice
        }
        let Some((seat, migrations)) = find_seat(problem, job, scratch, assignment) else {
            continue;
        };
        let worth = key(problem.net(job, migrations, price), place);
        if worth < best {
            heap.push(worth);
            continue;
        }
        take_seat(job, seat, scratch, assignment);
    }
    scratch.heap = heap.into_vec();
}

/// Score in the upper half; among equals the one that stands first.
fn key(score: f32, place: usize) -> u64 {
    u64::from(sortable(score)) << 32 | u64::from(u32::MAX - place as u32)
}

/// The cheapest CPU for a job and how many migrations that causes.
fn find_seat(
    problem: &Problem<'_>,
    job: u32,
    scratch: &mut Scratch,
    assignment: &Assignment,
) -> Option<(Seat, usize)> {
    let permitted = problem.permitted[job as usize];
    let open = permitted.and(&assignment.free);
    let home = problem.jobs[job as usize]
        .last_cpu
        .filter(|&cpu| permitted.contains(cpu));
    if let Some(home) = home {
        if open.contains(home) {
            return Some((Seat::Free(home), 0));
        }
        if let Some(guest) = assignment.job_on(home).map(|guest| guest as u32) {
            let elsewhere = problem.permitted[guest as usize].and(&assignment.free);
            if problem.jobs[guest as usize].last_cpu != Some(home) {
                if let Some(to) = elsewhere.lowest() {
                    return Some((Seat::Guest { home, guest, to }, 0));
                }
            }
        }
    }
    if let Some(cpu) = open.lowest() {
        return Some((Seat::Free(cpu), problem.is_migration(job, cpu) as usize));
    }
    find_chain(problem, job, &permitted, scratch, assignment)
}

fn take_seat(job: u32, seat: Seat, scratch: &Scratch, assignment: &mut Assignment) {
    match seat {
        Seat::Free(cpu) => assignment.place(job, cpu),
        Seat::Guest { home, guest, to } => {
            assignment.place(guest, to);
            assignment.place(job, home);
        }
        Seat::Chain(end) => {
            let mut to = end;
            loop {
                let from = scratch.came_from[to as usize];
                if from == to {
                    break;
                }
                let mover = assignment.job_on(from).expect("a chain of taken CPUs");
                assignment.place(mover as u32, to);
                to = from;
            }
            assignment.place(job, to);
        }
    }
}

/// Breadth-first over CPUs: whoever sits on one may move to any it is
/// permitted on, until somebody reaches a free one.
fn find_chain(
    problem: &Problem<'_>,
    job: u32,
    permitted: &CpuMask,
    scratch: &mut Scratch,
    assignment: &Assignment,
) -> Option<(Seat, usize)> {
    let Scratch {
        queue, came_from, ..
    } = scratch;
    came_from.resize(MAX_CPUS, 0);
    queue.clear();
    let mut seen = CpuMask::EMPTY;
    let taken = |cpu: CpuId| assignment.job_on(cpu);
    for cpu in permitted.iter().filter(|&cpu| taken(cpu).is_some()) {
        came_from[cpu as usize] = cpu;
        seen.insert(cpu);
        queue.push_back(cpu);
    }
    while let Some(from) = queue.pop_front() {
        let mover = taken(from)?;
        let reach = problem.permitted[mover].without(&seen);
        if let Some(end) = reach.and(&assignment.free).lowest() {
            came_from[end as usize] = from;
            return Some((
                Seat::Chain(end),
                chain_migrations(problem, job, end, came_from, assignment),
            ));
        }
        for cpu in reach.iter().filter(|&cpu| taken(cpu).is_some()) {
            came_from[cpu as usize] = from;
            seen.insert(cpu);
            queue.push_back(cpu);
        }
    }
    None
}

/// Migrations a chain adds: those that leave their old CPU or, for the job
/// itself, do not get it. One that returns to its old CPU is not subtracted.
fn chain_migrations(
    problem: &Problem<'_>,
    job: u32,
    end: CpuId,
    came_from: &[CpuId],
    assignment: &Assignment,
) -> usize {
    let mut migrations = 0;
    let mut to = end;
    loop {
        let from = came_from[to as usize];
        if from == to {
            return migrations + problem.is_migration(job, to) as usize;
        }
        let mover = assignment.job_on(from).map(|mover| mover as u32);
        migrations += mover.is_some_and(|mover| {
            problem.is_migration(mover, to) && !problem.is_migration(mover, from)
        }) as usize;
        to = from;
    }
}
