//! The case `weights`: a random tree of cgroups with random tasks in its leaves.
use crate::cases::{chance, Case};
use crate::rng::Rng;
use crate::scene::{Scene, Work};

const MOST_TASKS: u64 = 40;
const DEEPEST: usize = 3;

pub fn scene(seed: u64) -> Scene {
    let mut rng = chance(Case::Weights, seed);
    let mut scene = Scene::default();
    // As often few as many.
    let ceiling = rng.pick(&[3, 6, 12, MOST_TASKS]);
    let tasks = rng.range(2, ceiling);
    grow(&mut scene, &mut rng, None, 0, tasks);
    // Somebody must want all of the CPU, or nothing is shared.
    scene.members[0].work = Work::Hog;
    scene.members[0].name = "hog0".into();
    scene
}

/// Puts so many tasks below a parent: into groups, or into groups of groups.
fn grow(scene: &mut Scene, rng: &mut Rng, parent: Option<usize>, depth: usize, tasks: u64) {
    let most = tasks.min(if depth == 0 { 6 } else { 3 });
    let mut left = tasks;
    for more in (0..rng.range(1, most)).rev() {
        // Each of the groups to come needs one at least.
        let here = if more == 0 {
            left
        } else {
            rng.range(1, left - more)
        };
        left -= here;
        let group = scene.group(parent, some_weight(rng));
        if depth + 1 < DEEPEST && here > 1 && rng.chance(50) {
            grow(scene, rng, Some(group), depth + 1, here);
        } else {
            (0..here).for_each(|_| settle(scene, rng, group));
        }
    }
}

fn settle(scene: &mut Scene, rng: &mut Rng, group: usize) {
    let work = match rng.chance(35) {
        true => Work::Nap {
            run_us: rng.range(1, 20) * 1000,
            sleep_us: rng.range(2, 60) * 1000,
        },
        false => Work::Hog,
    };
    let kind = if work == Work::Hog { "hog" } else { "nap" };
    let name = format!("{kind}{}", scene.members.len());
    scene.member(&name, group, work).nice = some_nice(rng);
}

fn some_weight(rng: &mut Rng) -> u64 {
    match rng.below(10) {
        0 => rng.pick(&[1, 10, 2000, 10_000]),
        1..=4 => 100,
        _ => rng.range(20, 800),
    }
}

fn some_nice(rng: &mut Rng) -> i64 {
    match rng.below(10) {
        0 => rng.pick(&[-20, 19]),
        1..=5 => 0,
        _ => rng.range(0, 20) as i64 - 10,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_seed_fills_leaves_only_and_goes_no_deeper_than_three() {
        let mut sizes = std::collections::BTreeSet::new();
        for seed in 0..300 {
            let scene = scene(seed);
            sizes.insert(scene.members.len());
            assert!((2..=MOST_TASKS as usize).contains(&scene.members.len()));
            for member in &scene.members {
                assert!(scene.groups.iter().all(|g| g.parent != Some(member.group)));
            }
            for at in 0..scene.groups.len() {
                assert!(scene.path(at).split('/').count() <= DEEPEST);
            }
        }
        assert!(sizes.contains(&2) && sizes.iter().any(|&size| size > 30));
    }
}
