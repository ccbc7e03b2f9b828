//! What a thread of an attacker does: cheats with budgets, names and programs. What it asks of
//! the daemon in floods is in flood.rs.
use crate::asking::{self, SET};
use crate::attack::Act;
use crate::hint_socket::HINT_SOCKET;
use crate::rng::Rng;
use crate::sets::Cpus;
use crate::{calls, flood, sys};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

const US: u64 = 1_000;
const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;
/// A sixteenth of a CPU, the rate at which leeway is earned.
const RUNTIME: u64 = MS;
const PERIOD: u64 = 16 * MS;
/// There are thousands of them.
const STACK: usize = 64 * 1024;
/// A copy of this program that is root's and set-uid.
const SET_UID_PROGRAM: &str = "/usr/bin/attacks-root";

/// What attackers were told.
#[derive(Default)]
pub struct Tally {
    pub granted: AtomicU64,
    pub refused: AtomicU64,
    pub unanswered: AtomicU64,
}

impl Tally {
    pub fn count(&self, answer: Option<u32>) {
        let counter = match answer {
            Some(0) => &self.granted,
            Some(_) => &self.refused,
            None => &self.unanswered,
        };
        counter.fetch_add(1, Relaxed);
    }

    pub fn answers(&self) -> [u64; 3] {
        [&self.granted, &self.refused, &self.unanswered].map(|counter| counter.load(Relaxed))
    }
}

/// What all threads of a band know.
#[derive(Clone, Copy)]
pub struct Scene {
    pub tally: &'static Tally,
    /// Tasks of others.
    pub targets: &'static [i32],
    pub cpus: usize,
}

/// In a process of its own. Never returns.
pub fn perform(act: Act, threads: usize, scene: Scene) -> ! {
    let run = |index| {
        thread::Builder::new()
            .stack_size(STACK)
            .spawn(move || one(act, index, scene))
    };
    let running: Vec<_> = (0..threads).map(run).collect();
    for thread in running.into_iter().flatten() {
        let _ = thread.join();
    }
    sys::sleep_until(u64::MAX / 2);
    unreachable!("nobody lives so long")
}

fn one(act: Act, index: usize, scene: Scene) {
    match act {
        Act::Leeway => leeway(scene),
        Act::BeforeEnd => before_end(scene),
        Act::Yield => yields(scene),
        Act::Split => split(index, scene),
        Act::Fork => forks(scene),
        Act::Stuck => stuck(index, scene),
        Act::Exec => executes(scene),
        Act::SetUid => becomes_root(scene),
        Act::Redeclare => redeclares(scene),
        Act::Rename => takes_a_name(),
        Act::Hog => burn_for_ever(),
        Act::Subordinate => subordinate(scene),
        Act::Masks => wanders(index, scene),
        Act::Pile => piles(scene),
        Act::WakeUp => wakes_up(index, scene),
        Act::Many => declares_little(index, scene),
        Act::Ask => flood::asks_for_strangers(scene),
        Act::Foreign => flood::asks_for_targets(index, scene),
        Act::ForkBomb => flood::forks_without_end(),
        Act::Connect => flood::connects(scene),
        Act::Silence => flood::keeps_silent(),
        Act::Request => flood::requests(index, scene),
        Act::Churn => flood::declares_and_ends(scene),
    }
}

/// Moments that are a period apart; those that were missed are left out.
pub struct Grid {
    next: u64,
    period: u64,
}

impl Grid {
    pub fn new(period: u64) -> Grid {
        let next = sys::now() + period;
        Grid { next, period }
    }

    /// The same moments for everybody.
    fn together(period: u64) -> Grid {
        let now = sys::now();
        let next = now - now % period + period;
        Grid { next, period }
    }

    /// Sleeps until the next of them, and says when it was.
    pub fn wait(&mut self) -> u64 {
        let at = self.next;
        sys::sleep_until(at);
        let passed = sys::now().saturating_sub(at) / self.period;
        self.next = at + (passed + 1) * self.period;
        at
    }
}

/// Uses so much CPU time.
pub fn burn(ns: u64) {
    let enough = calls::cpu_time() + ns;
    while calls::cpu_time() < enough {
        calls::spin(1_000);
    }
}

pub fn burn_for_ever() -> ! {
    loop {
        calls::spin(10_000);
    }
}

/// Between two of a crowd who declare: fewer connections than a user may make.
const STAGGER: Duration = Duration::from_millis(8);

/// For itself, in its turn.
fn declare_in_turn(index: usize, scene: Scene, runtime: u64, period: u64) {
    thread::sleep(STAGGER * index as u32);
    declare(scene, runtime, period);
}

/// For itself. A crowd may keep it waiting, so it asks a few times.
fn declare(scene: Scene, runtime: u64, period: u64) {
    const AGAIN: u32 = libc::EAGAIN as u32;
    for _ in 0..20 {
        let answer = asking::declare(runtime, period);
        if !matches!(answer, None | Some(AGAIN)) {
            scene.tally.count(answer);
            return;
        }
        thread::sleep(Duration::from_millis(20));
    }
    scene.tally.count(None);
}

fn leeway(scene: Scene) {
    declare(scene, RUNTIME, PERIOD);
    let mut grid = Grid::new(PERIOD);
    loop {
        grid.wait();
        burn(2 * RUNTIME);
    }
}

/// As often as it gets through with it.
fn before_end(scene: Scene) {
    declare(scene, RUNTIME, PERIOD);
    loop {
        burn(RUNTIME * 9 / 10);
        sys::sleep_until(sys::now() + 50 * US);
    }
}

fn yields(scene: Scene) {
    declare(scene, RUNTIME, PERIOD);
    loop {
        burn(RUNTIME / 10);
        sys::yield_cpu();
    }
}

/// Hundreds of declarations that cost next to nothing, and hogs behind them.
fn split(index: usize, scene: Scene) {
    declare_in_turn(index, scene, 10 * US, 10 * MS);
    let mut grid = Grid::new(10 * MS);
    loop {
        grid.wait();
        burn(5 * MS);
    }
}

fn forks(scene: Scene) {
    declare(scene, RUNTIME, PERIOD);
    let mut grid = Grid::new(PERIOD);
    loop {
        grid.wait();
        burn(RUNTIME / 2);
        flood::beget(|| burn(5 * MS));
    }
}

/// Who waits for vfork() looks stuck in the kernel. Its siblings compute.
fn stuck(index: usize, scene: Scene) {
    const JOB: u64 = 4 * MS;
    if !index.is_multiple_of(4) {
        burn_for_ever();
    }
    declare(scene, JOB, PERIOD);
    let mut grid = Grid::new(PERIOD);
    let mut stack = vec![0u8; STACK];
    extern "C" fn child(_: *mut libc::c_void) -> libc::c_int {
        burn(12 * MS);
        0
    }
    loop {
        grid.wait();
        burn(JOB / 10);
        // SAFETY: the child has a stack of its own, of which this is the end, and this thread
        // waits until the child is gone. The child changes nothing.
        unsafe {
            let end = stack.as_mut_ptr().add(STACK - 64) as usize & !63;
            let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
            let pid = libc::clone(child, end as *mut _, flags, std::ptr::null_mut());
            if pid > 0 {
                libc::waitpid(pid, std::ptr::null_mut(), 0);
            }
        }
    }
}

fn executes(scene: Scene) {
    declare(scene, RUNTIME, PERIOD);
    execute_again();
}

/// Computes a little, and becomes the same program again.
pub fn execute_again() -> ! {
    burn(2 * RUNTIME);
    // A thread that is not the first: its id is another afterwards.
    let _ = thread::spawn(|| become_program("/proc/self/exe", "again")).join();
    unreachable!("the program is gone")
}

fn become_program(path: &str, argument: &str) {
    let error = Command::new(path).arg(argument).exec();
    panic!("cannot execute {path}: {error}");
}

fn becomes_root(scene: Scene) {
    declare(scene, 10 * MS, 100 * MS);
    become_program(SET_UID_PROGRAM, "burn");
}

/// A new declaration, and with it perhaps a new budget, whenever the old one is used up.
fn redeclares(scene: Scene) {
    let mut turn = 0;
    loop {
        turn += 1;
        let period = PERIOD + turn % 2 * MS;
        scene.tally.count(asking::declare(RUNTIME, period));
        burn(RUNTIME);
    }
}

/// For which there is a rule, of another user.
fn takes_a_name() {
    sys::set_name(c"data-loop.0");
    let mut grid = Grid::new(5_330 * US);
    loop {
        grid.wait();
        burn(900 * US);
    }
}

fn subordinate(scene: Scene) {
    declare(scene, 10 * MS, 100 * MS);
    let mut grid = Grid::new(100 * MS);
    loop {
        grid.wait();
        burn(20 * MS);
    }
}

/// All sets of CPUs, in any order.
fn wanders(index: usize, scene: Scene) {
    declare(scene, RUNTIME, PERIOD);
    let mut random = Rng::stream(index as u64, "masks");
    let mut grid = Grid::new(PERIOD);
    loop {
        grid.wait();
        let mask = Cpus(random.range(1, (1 << scene.cpus) - 1));
        let _ = sys::set_affinity(0, mask);
        burn(2 * RUNTIME);
    }
}

/// Declares as if for all CPUs, and then all are on one.
fn piles(scene: Scene) {
    declare(scene, RUNTIME, PERIOD);
    thread::sleep(Duration::from_millis(200));
    let _ = sys::set_affinity(0, Cpus::one(0));
    let mut grid = Grid::new(PERIOD);
    loop {
        grid.wait();
        burn(RUNTIME);
    }
}

/// What a wake-up costs is more than it declares.
fn wakes_up(index: usize, scene: Scene) {
    declare_in_turn(index, scene, 10 * US, 5 * MS);
    let mut grid = Grid::new(5 * MS);
    loop {
        grid.wait();
        burn(5 * US);
    }
}

/// Thousands of them, which wake up at the same moments.
fn declares_little(index: usize, scene: Scene) {
    declare_in_turn(index, scene, 10 * US, SECOND);
    let mut grid = Grid::together(SECOND);
    loop {
        grid.wait();
        burn(5 * US);
    }
}

/// A request for whatever task, counted.
pub fn ask_for(scene: Scene, op: u16, tid: i32) {
    let runtime = if op == SET { MS } else { 0 };
    let answer = asking::ask(HINT_SOCKET, op, tid, runtime, 10 * runtime);
    scene.tally.count(answer);
}
