//! What is due to each task of a scene by nice and cpu.weight, on one CPU.
use crate::scene::{Scene, Work};

/// The kernel's weights of nice -20 to 19 (sched_prio_to_weight).
const NICE_WEIGHT: [u32; 40] = [
    88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916, 9548, 7620, 6100, 4904,
    3906, 3121, 2501, 1991, 1586, 1277, 1024, 820, 655, 526, 423, 335, 272, 215, 172, 137, 110, 87,
    70, 56, 45, 36, 29, 23, 18, 15,
];

pub fn nice_weight(nice: i64) -> f64 {
    f64::from(NICE_WEIGHT[(nice + 20) as usize])
}

/// A group or a task among its siblings.
#[derive(Clone, Copy)]
enum Node {
    Group(usize),
    Member(usize),
}

/// Divides the CPU from the top down: each asks for its demand at most, and what it leaves goes
/// to its siblings by weight. Shares, by member.
pub fn divide(scene: &Scene, demands: &[f64]) -> Vec<f64> {
    let mut shares = vec![0.0; scene.members.len()];
    divide_below(scene, None, 1.0, demands, &mut shares);
    shares
}

fn children(scene: &Scene, parent: Option<usize>) -> Vec<Node> {
    let groups = scene.groups.iter().enumerate();
    let members = scene.members.iter().enumerate();
    groups
        .filter(|(_, group)| group.parent == parent)
        .map(|(at, _)| Node::Group(at))
        .chain(
            members
                .filter(|(_, member)| parent == Some(member.group))
                .map(|(at, _)| Node::Member(at)),
        )
        .collect()
}

fn demand_of(scene: &Scene, node: Node, demands: &[f64]) -> f64 {
    match node {
        Node::Member(at) => demands[at],
        Node::Group(at) => {
            let below: f64 = children(scene, Some(at))
                .into_iter()
                .map(|child| demand_of(scene, child, demands))
                .sum();
            let limit = scene.groups[at].quota_us.map(|us| us as f64 / 100_000.0);
            below.min(limit.unwrap_or(1.0))
        }
    }
}

fn divide_below(
    scene: &Scene,
    parent: Option<usize>,
    whole: f64,
    demands: &[f64],
    shares: &mut [f64],
) {
    let mut open: Vec<(Node, f64, f64)> = children(scene, parent)
        .into_iter()
        .map(|node| {
            let weight = match node {
                Node::Group(at) => scene.groups[at].weight as f64,
                Node::Member(at) => nice_weight(scene.members[at].nice),
            };
            (node, weight, demand_of(scene, node, demands))
        })
        .collect();
    let mut left = whole;
    // Whoever wants less than its part gets what it wants, and the others divide the rest anew.
    while !open.is_empty() {
        let weights: f64 = open.iter().map(|(_, weight, _)| weight).sum();
        let fits = |&(_, weight, demand): &(Node, f64, f64)| demand <= left * weight / weights;
        let modest = open.iter().any(fits);
        let (now, later): (Vec<_>, Vec<_>) = match modest {
            true => open.into_iter().partition(fits),
            false => (open, Vec::new()),
        };
        let before = left;
        for (node, weight, demand) in now {
            let share = demand.min(before * weight / weights);
            left -= share;
            match node {
                Node::Member(at) => shares[at] = share,
                Node::Group(at) => divide_below(scene, Some(at), share, demands, shares),
            }
        }
        open = later;
    }
}

/// Shares if a sleep earned nothing: at every moment those who are awake divide the CPU by
/// weight. A simulation in steps; naps begin one after the other.
pub fn without_credit(scene: &Scene) -> Vec<f64> {
    const STEP_S: f64 = 0.000_25;
    const STEPS: usize = 80_000;
    let count = scene.members.len();
    let mut used = vec![0.0; count];
    // Of the job at hand, or of the sleep, in seconds.
    let mut to_run = vec![0.0; count];
    let mut to_sleep: Vec<f64> = (0..count).map(|at| at as f64 * 0.003_7).collect();
    let mut known: Option<(Vec<bool>, Vec<f64>)> = None;
    for _ in 0..STEPS {
        let mut awake = vec![true; count];
        for (at, member) in scene.members.iter().enumerate() {
            if let Work::Nap { run_us, .. } = member.work {
                if to_sleep[at] > 0.0 {
                    to_sleep[at] -= STEP_S;
                    awake[at] = false;
                } else if to_run[at] <= 0.0 {
                    to_run[at] += run_us as f64 / 1e6;
                }
            }
        }
        if known.as_ref().is_none_or(|(before, _)| *before != awake) {
            let demands: Vec<f64> = awake.iter().map(|&is| f64::from(u8::from(is))).collect();
            known = Some((awake, divide(scene, &demands)));
        }
        let Some((awake, shares)) = &known else {
            continue;
        };
        for (at, member) in scene.members.iter().enumerate() {
            used[at] += shares[at] * STEP_S;
            if let (true, Work::Nap { sleep_us, .. }) = (awake[at], member.work) {
                to_run[at] -= shares[at] * STEP_S;
                if to_run[at] <= 0.0 {
                    to_sleep[at] += sleep_us as f64 / 1e6;
                }
            }
        }
    }
    let whole = STEPS as f64 * STEP_S;
    used.into_iter().map(|seconds| seconds / whole).collect()
}

/// The least and the most that is due to each member, where `used` is what it had.
///
/// A hog is due its part of what the nappers leave, and what a napper leaves is what it did not
/// use of its own part. A napper is due at least what it would get if sleep earned nothing,
/// and at most what it asks for or its part, whichever is less.
pub fn bounds(scene: &Scene, used: &[f64]) -> Vec<(f64, f64)> {
    let demands: Vec<f64> = scene.members.iter().map(|m| m.work.demand()).collect();
    let most = divide(scene, &demands);
    let least = without_credit(scene);
    let naps = |at: usize| matches!(scene.members[at].work, Work::Nap { .. });
    let really: Vec<f64> = (0..used.len())
        .map(|at| match naps(at) {
            true => used[at].min(demands[at]),
            false => demands[at],
        })
        .collect();
    let hogs = divide(scene, &really);
    (0..used.len())
        .map(|at| match naps(at) {
            true => (least[at].min(most[at]), most[at]),
            false => (hogs[at], hogs[at]),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(got: &[f64], wanted: &[f64]) {
        let near = got.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 0.01);
        assert!(near && got.len() == wanted.len(), "{got:?}, not {wanted:?}");
    }

    #[test]
    fn what_a_napper_leaves_goes_to_its_own_group_first() {
        let mut scene = Scene::default();
        let (a, b) = (scene.group(None, 100), scene.group(None, 100));
        let nap = Work::Nap {
            run_us: 1000,
            sleep_us: 9000,
        };
        scene.member("nap", a, nap);
        scene.member("hog", a, Work::Hog);
        scene.member("other", b, Work::Hog);
        close(&divide(&scene, &[0.1, 1.0, 1.0]), &[0.1, 0.4, 0.5]);
        close(&divide(&scene, &[0.1, 0.0, 1.0]), &[0.1, 0.0, 0.9]);
    }

    #[test]
    fn nice_counts_within_a_group_and_weight_between_groups() {
        let mut scene = Scene::default();
        let (a, b) = (scene.group(None, 300), scene.group(None, 100));
        scene.member("kind", a, Work::Hog).nice = 5;
        scene.member("hog", a, Work::Hog);
        scene.member("other", b, Work::Hog);
        close(&divide(&scene, &[1.0; 3]), &[0.185, 0.565, 0.25]);
    }

    #[test]
    fn a_limit_bounds_what_a_group_asks_for() {
        let mut scene = Scene::default();
        let (a, b) = (scene.group(None, 100), scene.group(None, 100));
        scene.groups[a].quota_us = Some(20_000);
        scene.member("limited", a, Work::Hog);
        scene.member("other", b, Work::Hog);
        close(&divide(&scene, &[1.0; 2]), &[0.2, 0.8]);
    }

    #[test]
    fn sleep_that_earns_nothing_costs_a_napper_part_of_its_demand() {
        let mut scene = Scene::default();
        let a = scene.group(None, 100);
        let nap = Work::Nap {
            run_us: 10_000,
            sleep_us: 20_000,
        };
        scene.member("nap", a, nap);
        scene.member("hog", a, Work::Hog);
        // Awake it has half of the CPU: 20 ms for 10 ms of work, then 20 ms of sleep.
        close(&without_credit(&scene), &[0.25, 0.75]);
        let bounds = bounds(&scene, &[0.3, 0.7]);
        close(&[bounds[0].0, bounds[0].1], &[0.25, 1.0 / 3.0]);
        close(&[bounds[1].0, bounds[1].1], &[0.7, 0.7]);
    }
}
