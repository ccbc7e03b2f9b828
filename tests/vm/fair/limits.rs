//! The case `cpu-max`: limits, alone and beside others, and what must not suffer by them.
use crate::scene::{Scene, Work};

pub const VARIANTS: [&str; 5] = ["alone", "crowd", "nested", "siblings", "declared"];

/// The limited would have most of the CPU by weight.
const LIMITED_WEIGHT: u64 = 1000;

pub fn scene(variant: &str) -> Scene {
    let mut scene = Scene::default();
    let free = scene.group(None, 100);
    // It waits for nothing but the CPU, and would notice.
    let witness = Work::Nap {
        run_us: 1000,
        sleep_us: 19_000,
    };
    scene.member("witness", free, witness);
    let limited = scene.group(None, LIMITED_WEIGHT);
    scene.groups[limited].quota_us = Some(50_000);
    if variant != "alone" {
        scene.member("free", free, Work::Hog);
    }
    match variant {
        "alone" => {
            scene.member("hog", limited, Work::Hog);
        }
        "crowd" => (0..200).for_each(|at| {
            scene.member(&format!("hog{at}"), limited, Work::Hog);
        }),
        // The parent's limit is the smaller one.
        "nested" => {
            scene.groups[limited].quota_us = Some(40_000);
            let child = scene.group(Some(limited), 100);
            scene.groups[child].quota_us = Some(60_000);
            scene.member("hog", child, Work::Hog);
        }
        // One child's limit is the smaller one, and what it leaves is its sibling's.
        "siblings" => {
            let (small, other) = (
                scene.group(Some(limited), 100),
                scene.group(Some(limited), 100),
            );
            scene.groups[small].quota_us = Some(10_000);
            scene.member("small", small, Work::Hog);
            scene.member("other", other, Work::Hog);
        }
        // Its declaration promises more than its cgroup's limit.
        _ => {
            let nap = Work::Nap {
                run_us: 8_000,
                sleep_us: 2_000,
            };
            scene.member("declared", limited, nap).hint_us = Some((8_000, 10_000));
        }
    }
    scene
}
