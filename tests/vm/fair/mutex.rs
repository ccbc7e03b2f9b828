//! The case `mutex`: a thread with deadlines waits for a lock that a hog of nice 19 holds.
use crate::scene::{Scene, Work};
use crate::worker::Notes;
use crate::{calls, hint, sys};
use std::cell::UnsafeCell;
use std::sync::atomic::Ordering::Relaxed;

pub const VARIANTS: [&str; 2] = ["plain", "inherits"];

const MS: u64 = 1_000_000;
const PERIOD: u64 = 20 * MS;
/// Of a job: before the lock, under it, and after.
const PARTS: [u64; 3] = [MS / 2, MS, MS / 2];
/// What it declares, µs: a little more than the parts.
const DECLARED_US: (u64, u64) = (2_100, 20_000);
/// The hog's work under the lock and without it.
const HELD: u64 = 5 * MS;
const FREE: u64 = 5 * MS;

pub fn scene(variant: &str) -> Scene {
    let mut scene = Scene::default();
    let all = scene.group(None, 100);
    let inherits = variant == "inherits";
    scene.member("mutex", all, Work::Mutex { inherits });
    scene.member("hog1", all, Work::Hog);
    scene.member("hog2", all, Work::Hog);
    scene
}

/// A mutex of the C library, as programs use it.
struct Mutex(UnsafeCell<libc::pthread_mutex_t>);

// SAFETY: a mutex is made to be shared.
unsafe impl Sync for Mutex {}

impl Mutex {
    /// It stays.
    fn new(inherits: bool) -> &'static Mutex {
        let mutex = Box::leak(Box::new(Mutex(UnsafeCell::new(
            libc::PTHREAD_MUTEX_INITIALIZER,
        ))));
        // SAFETY: nobody else knows the mutex yet, and it never moves.
        unsafe {
            let mut attributes = std::mem::zeroed();
            libc::pthread_mutexattr_init(&mut attributes);
            if inherits {
                libc::pthread_mutexattr_setprotocol(&mut attributes, libc::PTHREAD_PRIO_INHERIT);
            }
            libc::pthread_mutex_init(mutex.0.get(), &attributes);
        }
        mutex
    }

    fn hold<T>(&self, work: impl FnOnce() -> T) -> T {
        // SAFETY: it is initialised, and the thread that locks it unlocks it.
        unsafe {
            libc::pthread_mutex_lock(self.0.get());
            let result = work();
            libc::pthread_mutex_unlock(self.0.get());
            result
        }
    }
}

/// Two threads of one process, for ever; the second is the hog.
pub fn share(inherits: bool, notes: &'static Notes, declares: bool) -> ! {
    let mutex = Mutex::new(inherits);
    std::thread::spawn(move || hold_for_long(mutex));
    if declares {
        let refused = hint::declare(calls::thread_id(), DECLARED_US.0, DECLARED_US.1);
        notes
            .refused
            .store(u64::from(!matches!(refused, Ok(None))), Relaxed);
    }
    let mut release = sys::now() + PERIOD;
    loop {
        sys::sleep_until(release);
        notes.burn(PARTS[0]);
        mutex.hold(|| notes.burn(PARTS[1]));
        notes.burn(PARTS[2]);
        let response = sys::now() - release;
        // A job that ends late was late, and so were those that it kept from being released.
        let periods = response.div_ceil(PERIOD).max(1);
        notes.jobs.fetch_add(periods, Relaxed);
        notes.on_time.fetch_add(u64::from(periods == 1), Relaxed);
        release += periods * PERIOD;
    }
}

fn hold_for_long(mutex: &Mutex) {
    sys::set_nice(calls::thread_id(), 19).expect("anybody may be nicer");
    let own = Notes::default();
    // After the other has declared itself.
    sys::sleep_until(sys::now() + 200 * MS);
    loop {
        mutex.hold(|| own.burn(HELD));
        own.burn(FREE);
    }
}
