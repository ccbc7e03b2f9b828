//! The cases, and who runs in each.
use crate::plan::is_ours;
use crate::rhythm::{self, Set};
use crate::rng::Rng;
use crate::scene::{Scene, Work};
use crate::{limits, mutex, weights};
use clap::ValueEnum;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, ValueEnum)]
pub enum Case {
    /// A loop that forks short processes, one after the other, beside a hog.
    ForkStream,
    /// Three tasks of 33 % of another user beside a hog.
    #[value(name = "three-33")]
    Three33,
    /// A task of 59 % in a cgroup of weight 1 against a hog in one of weight 10000.
    #[value(name = "duty-59")]
    Duty59,
    /// Cgroups and tasks of random weights, from a seed.
    Weights,
    /// Cgroups with cpu.max.
    CpuMax,
    /// `make -j2` of zlib beside a hog.
    Make,
    /// Periodic tasks beside hogs, undeclared and declared, from a seed.
    Rhythm,
    /// Periodic tasks whose declarations are too small, from a seed.
    SmallDeclarations,
    /// A declared thread and a hog of nice 19 that share a mutex.
    Mutex,
}

impl Case {
    pub fn name(self) -> String {
        let value = self.to_possible_value().expect("no case is hidden");
        value.get_name().to_string()
    }

    /// Whether rt-app plays it.
    pub fn has_rhythm(self) -> bool {
        matches!(self, Case::Rhythm | Case::SmallDeclarations)
    }

    /// The columns that a scheduler has in the case.
    pub fn columns(self, scheduler: &str) -> Vec<String> {
        let ours = is_ours(scheduler);
        let plain = scheduler.to_string();
        match self {
            Case::Rhythm if ours => vec![plain.clone(), plain + "+declared"],
            Case::SmallDeclarations if ours => {
                vec![plain.clone(), format!("{plain}+small"), plain + "+uneven"]
            }
            // What it is held against; EEVDF and peers know nothing of declarations.
            Case::SmallDeclarations if scheduler == "eevdf" => vec![plain, "fifo-rm".into()],
            _ => vec![plain],
        }
    }

    /// What the case comes in: seeds, or names of its own.
    pub fn variants(self, seeds: &[u64]) -> Vec<String> {
        match self {
            Case::ForkStream | Case::Duty59 | Case::Make => vec!["plain".into()],
            Case::Three33 => vec!["same-cgroup".into(), "own-cgroup".into()],
            Case::Rhythm => rhythm::variants(seeds, 10),
            Case::SmallDeclarations => rhythm::variants(seeds, 5),
            Case::Mutex => mutex::VARIANTS.map(String::from).to_vec(),
            Case::CpuMax => limits::VARIANTS.map(String::from).to_vec(),
            Case::Weights => seeds.iter().map(|seed| format!("seed-{seed}")).collect(),
        }
    }

    pub fn scene(self, variant: &str) -> Scene {
        match self {
            Case::ForkStream => fork_stream(),
            Case::Three33 => three_33(variant == "own-cgroup"),
            Case::Duty59 => duty_59(),
            Case::Weights => weights::scene(seed_of(variant)),
            Case::CpuMax => limits::scene(variant),
            Case::Make => make(),
            Case::Rhythm | Case::SmallDeclarations => Set::draw(self, variant).scene(),
            Case::Mutex => mutex::scene(variant),
        }
    }
}

pub fn seed_of(variant: &str) -> u64 {
    let seed = variant.trim_start_matches("seed-");
    seed.parse().expect("a variant that a seed made")
}

const NOBODY: u32 = 65534;

fn fork_stream() -> Scene {
    let mut scene = Scene::default();
    let all = scene.group(None, 100);
    scene.member("hog", all, Work::Hog);
    scene.member("forks", all, Work::Forks { run_us: 1000 });
    scene.interactive = Some(all);
    scene
}

fn three_33(own_cgroup: bool) -> Scene {
    let mut scene = Scene::default();
    let ours = scene.group(None, 100);
    let theirs = if own_cgroup {
        scene.group(None, 100)
    } else {
        ours
    };
    scene.member("hog", ours, Work::Hog);
    for at in 0..3 {
        let nap = Work::Nap {
            run_us: 10_000,
            sleep_us: 20_000,
        };
        scene.member(&format!("nap{at}"), theirs, nap).uid = Some(NOBODY);
    }
    scene.interactive = Some(ours);
    scene
}

fn duty_59() -> Scene {
    let mut scene = Scene::default();
    let (heavy, light) = (scene.group(None, 10_000), scene.group(None, 1));
    let interactive = scene.group(None, 100);
    let nap = Work::Nap {
        run_us: 11_800,
        sleep_us: 8_200,
    };
    scene.member("hog", heavy, Work::Hog);
    scene.member("nap", light, nap);
    scene.interactive = Some(interactive);
    scene
}

/// The script that makes it ends where make fails.
fn make() -> Scene {
    let mut scene = Scene::default();
    let all = scene.group(None, 100);
    scene.member("hog", all, Work::Hog);
    scene.member("make", all, Work::Shell("exec bash /fair/make.sh"));
    scene.interactive = Some(all);
    scene
}

/// Random numbers of their own for each case.
pub fn chance(case: Case, seed: u64) -> Rng {
    Rng::stream(seed, &case.name())
}
