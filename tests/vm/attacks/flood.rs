//! What attackers do in floods: processes, connections and requests.
use crate::act::{ask_for, burn, Scene};
use crate::asking::{self, CLEAR, GET, SET};
use crate::hint_socket::{request, send, seqpacket, status, HINT_SOCKET};
use crate::rng::Rng;
use crate::sys;
use std::thread;
use std::time::Duration;

const MS: u64 = 1_000_000;
/// Of one user, so that the guest has room for others.
const MOST_PROCESSES: u64 = 600;

/// A child that does this and ends; whether there is one.
fn child(work: impl FnOnce()) -> Option<i32> {
    // SAFETY: the child does what needs no other thread, and ends.
    match unsafe { libc::fork() } {
        0 => {
            work();
            // SAFETY: ends the child without the parent's exit handlers.
            unsafe { libc::_exit(0) }
        }
        pid => (pid > 0).then_some(pid),
    }
}

/// A child that works in its parent's place.
pub fn beget(work: impl FnOnce()) {
    if let Some(pid) = child(work) {
        sys::wait_for(pid);
    }
}

/// Children of children, whom nobody waits for.
pub fn forks_without_end() {
    let most = libc::rlimit {
        rlim_cur: MOST_PROCESSES,
        rlim_max: MOST_PROCESSES,
    };
    // SAFETY: the limit lives across the call; children that end leave nothing behind.
    unsafe {
        libc::setrlimit(libc::RLIMIT_NPROC, &most);
        libc::signal(libc::SIGCHLD, libc::SIG_IGN);
    }
    loop {
        let grandparent = child(|| {
            child(|| burn(20 * MS));
            burn(5 * MS);
        });
        if grandparent.is_none() {
            thread::sleep(Duration::from_millis(5));
        }
    }
}

/// From inside a container: for itself and for the first tasks of whoever counts them.
pub fn asks_for_strangers(scene: Scene) {
    loop {
        ask_for(scene, SET, crate::calls::thread_id());
        for tid in 1..20 {
            ask_for(scene, SET, tid);
            thread::sleep(Duration::from_millis(10));
        }
    }
}

/// For tasks of other users, of root and of the daemon.
pub fn asks_for_targets(index: usize, scene: Scene) {
    let mut random = Rng::stream(index as u64, "targets");
    loop {
        ask_for(
            scene,
            random.pick(&[SET, CLEAR, GET]),
            random.pick(scene.targets),
        );
        thread::sleep(Duration::from_millis(4));
    }
}

pub fn connects(scene: Scene) {
    loop {
        if seqpacket(HINT_SOCKET).is_err() {
            scene.tally.count(None);
        }
    }
}

/// More connections than anybody may have, with nothing said on them.
pub fn keeps_silent() {
    loop {
        let connections: Vec<_> = (0..40).map_while(|_| seqpacket(HINT_SOCKET).ok()).collect();
        thread::sleep(Duration::from_secs(2));
        drop(connections);
    }
}

/// On one connection as long as the daemon bears it: what makes sense, and what does not.
pub fn requests(index: usize, scene: Scene) {
    let mut random = Rng::stream(index as u64, "requests");
    loop {
        let Ok(connection) = seqpacket(HINT_SOCKET) else {
            scene.tally.count(None);
            continue;
        };
        loop {
            let tid = random.pick(&[0, -1, 1, i32::MIN, i32::MAX, crate::calls::thread_id()]);
            let times = [0; 3].map(|_| random.pick(&[0, 1, MS, 40 * MS, 1 << 63, u64::MAX]));
            let mut packet = request(random.below(6) as u16, tid, times, 0, 1);
            match random.below(20) {
                0 => packet.truncate(random.below(48) as usize),
                1 => packet.resize(64 * 1024, 0xff),
                _ => {}
            }
            let answer = send(&connection, &packet)
                .then(|| status(&connection))
                .flatten();
            scene.tally.count(answer);
            if answer.is_none() {
                break;
            }
        }
    }
}

/// Declares and is gone, so that the daemon has to find out.
pub fn declares_and_ends(scene: Scene) {
    loop {
        beget(|| scene.tally.count(asking::declare(MS, 20 * MS)));
    }
}
