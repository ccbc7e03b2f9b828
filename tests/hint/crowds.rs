//! Those who come in numbers: many connections, and many user ids of one person.

use super::strangers::raw_client;
use super::*;
use scx_temponet::hint::accounts::Accounts;
use scx_temponet::hint::root_socket;
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Neither nobody nor root.
const SOMEBODY: u32 = 65533;

/// A service on a machine where nobody owns the ids from 200000 on.
fn service_with_owners() -> Service {
    let dir = tempfile::Builder::new()
        .permissions(std::fs::Permissions::from_mode(0o755))
        .tempdir()
        .unwrap();
    let (subuid, passwd) = (dir.path().join("subuid"), dir.path().join("passwd"));
    std::fs::write(&subuid, "nobody:200000:65536\n").unwrap();
    std::fs::write(&passwd, "nobody:x:65534:65534::/:/bin/false\n").unwrap();
    let socket = dir.path().join("run").join("hint.sock");
    let accounts = Accounts::of_files(subuid, passwd);
    let server = HintServer::start_for(&socket, Limits::default(), accounts).unwrap();
    let store = Arc::new(MemoryStore::default());
    server.attach(store.clone());
    Service {
        server,
        store,
        socket,
        dir,
    }
}

#[test]
fn a_crowd_that_waits_to_be_let_in_keeps_nobody_else_out() {
    if !root("a_crowd_that_waits_to_be_let_in_keeps_nobody_else_out") {
        return;
    }
    const CROWD: usize = 1200;
    let service = service();
    let come = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..CROWD {
            let (socket, come) = (&service.socket, &come);
            let wait = move || {
                become_user(NOBODY);
                come.fetch_add(1, Ordering::Relaxed);
                // Until it is let in, however long that takes, and then hung up on.
                raw_client(socket).recv();
            };
            std::thread::Builder::new()
                .stack_size(64 * 1024)
                .spawn_scoped(scope, wait)
                .unwrap();
        }
        eventually("all have come", || come.load(Ordering::Relaxed) == CROWD);
        for uid in [0, SOMEBODY] {
            let (answer, took) = as_user(uid, || {
                let start = Instant::now();
                let answer = HintClient::connect_to(&service.socket).and_then(|c| c.get(me()));
                (answer.map_err(|e| e.to_string()), start.elapsed())
            });
            assert_eq!(answer, Ok(None), "user {uid}, after {took:?}");
        }
    });
}

#[test]
fn root_has_a_socket_that_nobody_else_can_connect_to() {
    let service = service();
    let own = root_socket(&service.socket);
    assert_eq!(std::fs::metadata(&own).unwrap().mode() & 0o777, 0o600);
    if !root("root_has_a_socket_that_nobody_else_can_connect_to") {
        return;
    }
    as_user(NOBODY, || {
        HintClient::connect_to(&own).unwrap_err();
    });
    HintClient::connect_to(&own)
        .unwrap()
        .set(me(), &hint(1, 10))
        .unwrap();
    // Where only the other one is left, root uses that.
    std::fs::remove_file(&own).unwrap();
    service.client().clear(me()).unwrap();
}

#[test]
fn all_ids_of_one_person_have_one_share_and_one_number_of_connections() {
    if !root("all_ids_of_one_person_have_one_share_and_one_number_of_connections") {
        return;
    }
    let service = service_with_owners();
    // SAFETY: sysconf has no pointers.
    let cpus = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) } as u64;
    let client = || HintClient::connect_to(&service.socket).unwrap();
    // A quarter of a CPU per CPU each: two fit into the half that a user has.
    let quarter = Hint::new(MS / 4, MS, MS, 0).unwrap();
    let (sender, tasks) = std::sync::mpsc::channel();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for task in 0..2 * cpus + 1 {
            let (sender, done) = (sender.clone(), &done);
            let uid = 200_000 + task as u32;
            scope.spawn(move || {
                become_user(uid);
                sender.send((uid, me())).unwrap();
                while !done.load(Ordering::Relaxed) {
                    std::thread::sleep(Duration::from_millis(5));
                }
            });
        }
        let tasks: Vec<(u32, i32)> = tasks.iter().take(2 * cpus as usize + 1).collect();
        let answers: Vec<_> = tasks
            .iter()
            .map(|&(uid, tid)| as_user(uid, || client().set(tid, &quarter)))
            .collect();
        done.store(true, Ordering::Relaxed);
        let refused: Vec<_> = answers.into_iter().filter_map(Result::err).collect();
        assert_eq!(refused.len(), 1, "{refused:?}");
        let said = refused[0].to_string();
        assert!(said.starts_with("user 65534 has declared"), "{said}");
    });
    let crowd: Vec<_> = (0..16).map(|i| as_user(210_000 + i, client)).collect();
    let seventeenth = as_user(NOBODY, || client().get(me()));
    let said = seventeenth.unwrap_err().to_string();
    assert!(said.contains("too many connections"), "{said}");
    assert_eq!(as_user(SOMEBODY, || client().get(me())).unwrap(), None);
    drop(crowd);
}
