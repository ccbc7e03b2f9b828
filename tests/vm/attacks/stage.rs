//! Plays an attack in the guest, beside those who do no harm, and measures what each had.
use crate::act::{self, Scene, Tally};
use crate::asking::{self, ask, CLEAR, GET, ROOT_SOCKET, SET};
use crate::attack::{Attack, Band, Place, EVIL, HONEST, THIRD};
use crate::camp::Camp;
use crate::honest::{self, Notes, RHYTHMS};
use crate::record::{Asked, Record};
use crate::sys::{self, Class};
use crate::{calls, flood};
use anyhow::{bail, ensure, Context, Result};
use std::collections::btree_map::{BTreeMap, Entry};
use std::fs;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;
/// Before the attack begins.
const WARM_UP: u64 = SECOND;
/// The director sleeps but for a few moments, and those must not have to wait.
const PRIORITY: i32 = 40;
/// How often root declares.
const TURN: u64 = 250 * MS;
/// For the throttle of requests to fill again, and for the kernel to tell who has ended.
const PATIENCE: u64 = 5 * SECOND;

/// Those who do no harm.
struct Bystanders {
    honest: Camp,
    third: Camp,
    /// The honest user's tasks, the hog, and somebody of root's.
    tasks: Vec<i32>,
    hog: i32,
    sleeper: i32,
    notes: &'static [Notes],
    user: &'static Notes,
}

impl Bystanders {
    fn set_up(cpus: usize) -> Result<Bystanders> {
        let (honest, third) = (Camp::pitch(HONEST)?, Camp::pitch(THIRD)?);
        let rhythms = RHYTHMS.repeat(cpus);
        let notes: &'static [Notes] = calls::shared(rhythms.len() + 1)?;
        let (user, notes) = notes.split_last().context("one note at least")?;
        let mut tasks = Vec::new();
        for (&rhythm, notes) in rhythms.iter().zip(notes) {
            tasks.push(honest.start(|| (), || honest::keep_time(rhythm, notes))?);
        }
        let hog = third.start(|| (), || act::burn_for_ever())?;
        third.start(|| (), || honest::ask_now_and_then(user))?;
        let sleeper = sys::fork(|| sys::sleep_until(u64::MAX / 2))?;
        Ok(Bystanders {
            honest,
            third,
            tasks,
            hog,
            sleeper,
            notes,
            user,
        })
    }

    fn are_declared(&self) -> bool {
        self.notes.iter().all(|n| n.granted.load(Relaxed) == 1)
    }

    fn jobs_on_time(&self) -> u64 {
        self.notes.iter().map(|n| n.on_time.load(Relaxed)).sum()
    }

    /// As they were declared: nobody else may have cleared or changed it.
    fn declarations_stand(&self) -> bool {
        let stands = |task: &i32| ask(ROOT_SOCKET, GET, *task, 0, 0) == Some(0);
        self.tasks.iter().all(stands)
    }
}

impl Drop for Bystanders {
    fn drop(&mut self) {
        let _ = sys::signal(self.sleeper, libc::SIGKILL);
        sys::wait_for(self.sleeper);
    }
}

/// Root declares for its own sleeper, and takes that back.
fn ask_as_root(sleeper: i32, root: &mut Asked) {
    let began = sys::now();
    root.asked += 1;
    let answers = [
        ask(ROOT_SOCKET, SET, sleeper, MS, 50 * MS),
        ask(ROOT_SOCKET, CLEAR, sleeper, 0, 0),
    ];
    root.answered += u64::from(answers == [Some(0); 2]);
    root.slowest_ms = root.slowest_ms.max((sys::now() - began) as f64 / 1e6);
}

/// KiB.
fn resident(daemon: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{daemon}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

fn is_loaded() -> bool {
    let read = |file: &str| fs::read_to_string(Path::new("/sys/kernel/sched_ext").join(file));
    read("state").is_ok_and(|state| state.trim() == "enabled")
        && read("root/ops").is_ok_and(|name| name.starts_with("temponet"))
}

/// Those who attack, by user.
type Evil = BTreeMap<u32, Camp>;

/// Starts a process of a band; None where the kernel does not let it be where it should.
fn start(camp: &Camp, band: Band, scene: Scene) -> Result<i32> {
    let perform = move || act::perform(band.act, band.threads, scene);
    // The first process of new namespaces is a child of whoever made them.
    let inside = move |flags: libc::c_int| {
        // SAFETY: a plain call of a process with one thread.
        if unsafe { libc::unshare(flags) } == 0 {
            flood::beget(perform);
        }
    };
    match band.place {
        Place::Host | Place::NamedCgroup => camp.start(|| (), perform),
        Place::UserNamespace => {
            camp.start(|| (), || inside(libc::CLONE_NEWUSER | libc::CLONE_NEWPID))
        }
        Place::PidNamespace => camp.start(
            || {
                // SAFETY: as above.
                unsafe { libc::unshare(libc::CLONE_NEWPID) };
            },
            move || flood::beget(perform),
        ),
    }
}

fn start_all(attack: Attack, scene: Scene) -> Result<(Evil, Vec<i32>)> {
    let mut evil = Evil::new();
    let mut pids = Vec::new();
    for band in attack.bands(scene.cpus) {
        if let Entry::Vacant(place) = evil.entry(band.uid) {
            let mut camp = Camp::pitch(band.uid)?;
            if band.place == Place::NamedCgroup {
                camp.name_inner("studio.slice")?;
            }
            place.insert(camp);
        }
        for _ in 0..band.processes {
            pids.push(start(&evil[&band.uid], band, scene)?);
        }
    }
    Ok((evil, pids))
}

/// Whether a user who attacked may declare again what a user may, when all is over.
fn has_its_share_back(camp: &Camp, cpus: usize) -> Result<bool> {
    let notes: &'static [Notes] = calls::shared(cpus)?;
    for notes in notes {
        camp.start(
            || (),
            || {
                let until = sys::now() + PATIENCE;
                while sys::now() < until {
                    if asking::declare(40 * MS, 100 * MS) == Some(0) {
                        notes.granted.store(1, Relaxed);
                        break;
                    }
                    sys::sleep_until(sys::now() + 50 * MS);
                }
                sys::sleep_until(u64::MAX / 2);
            },
        )?;
    }
    let until = sys::now() + PATIENCE;
    let is_declared = || notes.iter().all(|n| n.granted.load(Relaxed) == 1);
    while sys::now() < until && !is_declared() {
        sys::sleep_until(sys::now() + 50 * MS);
    }
    camp.clear();
    Ok(is_declared())
}

pub fn play(attack: Attack, seconds: u64, daemon: i32) -> Result<Record> {
    ensure!(is_loaded(), "the scheduler is not loaded");
    sys::set_class(0, Class::Fifo, PRIORITY).context("cannot become real-time")?;
    let cpus = std::thread::available_parallelism()?.get();
    let bystanders = Bystanders::set_up(cpus)?;
    sys::sleep_until(sys::now() + WARM_UP);
    if !bystanders.are_declared() {
        bail!("the honest user could not declare");
    }
    let mut targets = bystanders.tasks.clone();
    targets.extend([1, daemon, bystanders.hog, bystanders.sleeper]);
    let tally: &'static [Tally] = calls::shared(1)?;
    let scene = Scene {
        tally: &tally[0],
        targets: targets.leak(),
        cpus,
    };
    let mut record = Record {
        attack: attack.name(),
        cpus,
        ..Record::default()
    };
    let first = resident(daemon);
    let mut most = first;

    let from = sys::now();
    let before = (
        bystanders.honest.usage()?,
        bystanders.third.usage()?,
        bystanders.jobs_on_time(),
    );
    let (evil, pids) = start_all(attack, scene)?;
    while sys::now() < from + seconds * SECOND {
        sys::sleep_until(sys::now() + TURN);
        ask_as_root(bystanders.sleeper, &mut record.root);
        most = most.max(resident(daemon));
    }
    let to = sys::now();
    let share = |after: u64, before: u64| 100.0 * (after - before) as f64 / (to - from) as f64;
    record.seconds = (to - from) as f64 / SECOND as f64;
    record.honest = share(bystanders.honest.usage()?, before.0);
    record.hog = share(bystanders.third.usage()?, before.1);
    let rhythms = RHYTHMS.repeat(cpus);
    record.jobs = rhythms.iter().map(|r| (to - from) / r.period_ns).sum();
    let on_time = bystanders.jobs_on_time() - before.2;
    record.on_time = (100.0 * on_time as f64 / record.jobs as f64).min(100.0);
    let usage = evil.values().map(Camp::usage).collect::<Result<Vec<_>>>()?;
    record.evil = share(usage.iter().sum(), 0);
    [record.granted, record.refused, record.unanswered] = scene.tally.answers();

    if let Some(limit) = attack.most_granted(cpus) {
        let granted = record.granted;
        let text = format!("{granted} declarations granted, at most {limit}");
        record.claim(granted <= limit, text);
    }
    if matches!(attack, Attack::Container | Attack::Foreign) {
        let refused = record.refused;
        record.claim(
            refused > 0,
            format!("{refused} requests refused, at least 1"),
        );
    }
    if attack == Attack::SetUid {
        let kept = |pid: &&i32| ask(ROOT_SOCKET, GET, **pid, 0, 0) == Some(0);
        let kept = pids.iter().filter(kept).count();
        let text = format!("{kept} set-uid programs have a user's declaration, at most 0");
        record.claim(kept == 0, text);
    }
    for camp in evil.values() {
        camp.clear();
    }
    // A daemon that an attack keeps from answering would say nothing of it before.
    let stand = bystanders.declarations_stand();
    record.claim(stand, "what the honest user declared stands");
    if let Some(camp) = evil.get(&EVIL) {
        let back = has_its_share_back(camp, cpus)?;
        record.claim(back, "the attacker's share is given back when all is over");
    }
    ask_as_root(bystanders.sleeper, &mut record.root);
    record.memory_kib = (first, most.max(resident(daemon)));
    record.user = Asked {
        asked: bystanders.user.asked.load(Relaxed),
        answered: bystanders.user.answered.load(Relaxed),
        slowest_ms: bystanders.user.slowest_ns.load(Relaxed) as f64 / 1e6,
    };
    record.claim(is_loaded(), "the scheduler is loaded");
    record.judge();
    Ok(record)
}
