//! What a declaration does, who may make which, and how it ends.

use super::strangers::raw_listener;
use super::*;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

#[test]
fn a_declaration_is_stored_shown_replaced_and_cleared() {
    let service = service();
    let client = service.client();
    assert_eq!(client.get(me()).unwrap(), None);
    client.set(me(), &hint(10, 40)).unwrap();
    assert_eq!(client.get(me()).unwrap(), Some(hint(10, 40)));
    assert_eq!(service.server.declared(), (1, 0.25));
    client.set(me(), &hint(20, 40)).unwrap();
    assert_eq!(service.server.declared(), (1, 0.5));
    client.clear(me()).unwrap();
    client.clear(me()).unwrap();
    assert_eq!(client.get(me()).unwrap(), None);
    assert_eq!(service.server.declared(), (0, 0.0));
    assert!(service.store.is_empty());
}

#[test]
fn over_the_limit_is_refused_with_the_reason_and_the_old_hint_stays() {
    let service = service_with(Limits {
        util_max: 0.5,
        ..Limits::default()
    });
    // SAFETY: sysconf has no pointers.
    let cpus = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) } as u64;
    let limit = cpus as f64 * 0.5;
    let others: Vec<_> = (0..cpus).map(|_| Sleeper::new()).collect();
    let client = service.client();
    for task in &others {
        client.set(task.pid(), &hint(50, 100)).unwrap();
    }
    let (errno, reason) = refusal(client.set(me(), &hint(10, 100)));
    assert_eq!(errno, libc::EBUSY);
    // Whose bound it is depends on who runs the tests.
    let end = format!("declared {limit:.2} of {limit:.2} CPUs; this hint would add 0.10");
    assert!(reason.ends_with(&end), "{reason}");
    let (errno, _) = refusal(client.set(others[0].pid(), &hint(60, 100)));
    assert_eq!(errno, libc::EBUSY);
    assert_eq!(
        client.get(others[0].pid()).unwrap(),
        Some(hint(50, 100)),
        "a refused update changes nothing"
    );
    client.set(others[0].pid(), &hint(40, 100)).unwrap();
    client.set(me(), &hint(10, 100)).unwrap();
}

#[test]
fn a_task_that_exits_gives_its_share_back() {
    let service = service();
    let task = Sleeper::new();
    service.client().set(task.pid(), &hint(10, 40)).unwrap();
    let (hold, held) = std::sync::mpsc::channel::<()>();
    let (say, said) = std::sync::mpsc::channel();
    let socket = service.socket.clone();
    let thread = std::thread::spawn(move || {
        let client = HintClient::connect_to(&socket).unwrap();
        client.set(me(), &hint(10, 40)).unwrap();
        say.send(()).unwrap();
        let _ = held.recv();
    });
    said.recv().unwrap();
    assert_eq!(service.server.declared().0, 2);
    drop(hold);
    thread.join().unwrap();
    eventually("the thread's share comes back", || {
        service.server.declared().0 == 1
    });
    drop(task);
    eventually("the process's share comes back", || {
        service.server.declared() == (0, 0.0)
    });
}

#[test]
fn declarations_survive_a_reload_of_the_scheduler() {
    let service = service();
    let client = service.client();
    client.set(me(), &hint(10, 40)).unwrap();
    service.server.detach();
    assert_eq!(client.get(me()).unwrap(), Some(hint(10, 40)));
    let second = Arc::new(MemoryStore::default());
    service.server.attach(second.clone());
    assert_eq!(second.len(), 1);
    assert_eq!(client.get(me()).unwrap(), Some(hint(10, 40)));
}

#[test]
fn what_is_declared_during_a_reload_is_in_force_after_it() {
    let service = service();
    let client = service.client();
    let (changed, new, cleared) = (Sleeper::new(), Sleeper::new(), Sleeper::new());
    client.set(changed.pid(), &hint(10, 40)).unwrap();
    client.set(cleared.pid(), &hint(10, 40)).unwrap();
    service.server.detach();
    client.set(changed.pid(), &hint(5, 40)).unwrap();
    client.set(new.pid(), &hint(6, 40)).unwrap();
    client.clear(cleared.pid()).unwrap();
    assert_eq!(service.store.len(), 2, "the old store is no longer used");
    let second = Arc::new(MemoryStore::default());
    service.server.attach(second.clone());
    assert_eq!(second.len(), 2);
    assert_eq!(client.get(changed.pid()).unwrap(), Some(hint(5, 40)));
    assert_eq!(client.get(new.pid()).unwrap(), Some(hint(6, 40)));
    assert_eq!(client.get(cleared.pid()).unwrap(), None);
}

#[test]
fn before_the_first_load_a_client_is_told_to_try_again() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("hint.sock");
    let _server = HintServer::start(&socket, Limits::default()).unwrap();
    let client = HintClient::connect_to(&socket).unwrap();
    let (errno, reason) = refusal(client.set(me(), &hint(5, 40)));
    assert_eq!(errno, libc::EAGAIN);
    assert!(reason.contains("being loaded"), "{reason}");
}

#[test]
fn a_task_that_does_not_exist_is_said_so() {
    let service = service();
    let mut task = Sleeper::new();
    let pid = task.pid();
    task.0.kill().unwrap();
    task.0.wait().unwrap();
    let (errno, reason) = refusal(service.client().set(pid, &hint(1, 10)));
    assert_eq!(
        (errno, reason),
        (libc::ESRCH, format!("no task has id {pid}"))
    );
}

#[test]
fn the_socket_is_open_to_all_used_once_and_cleaned_up() {
    let service = service();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().mode() & 0o777;
    assert_eq!(mode(&service.socket), 0o666);
    assert_eq!(mode(service.socket.parent().unwrap()), 0o755);
    let second = HintServer::start(&service.socket, Limits::default());
    let message = second.err().unwrap().to_string();
    assert!(message.starts_with("another scx_temponet is listening"));
    let Service {
        server,
        socket,
        dir: _dir,
        ..
    } = service;
    drop(server);
    assert!(!socket.exists());
    assert!(matches!(
        HintClient::connect_to(&socket),
        Err(ClientError::NoDaemon(_))
    ));
    // What a killed daemon leaves behind is replaced; anything else is not.
    drop(raw_listener(&socket));
    assert!(socket.exists());
    drop(HintServer::start(&socket, Limits::default()).unwrap());
    std::fs::write(&socket, "precious").unwrap();
    let error = HintServer::start(&socket, Limits::default()).err().unwrap();
    assert!(error.to_string().contains("is not a socket"));
}

#[test]
fn a_user_declares_for_own_tasks_and_within_bounds_only() {
    if !root("a_user_declares_for_own_tasks_and_within_bounds_only") {
        return;
    }
    let service = service_with(Limits {
        util_max: 8.0,
        util_user: 0.0,
        ..Limits::default()
    });
    let theirs = me();
    as_nobody(|| {
        let client = service.client();
        let (errno, reason) = refusal(client.set(theirs, &hint(1, 10)));
        assert_eq!(errno, libc::EPERM);
        assert!(reason.contains("belongs to user 0"), "{reason}");
        assert_eq!(
            client.get(theirs).unwrap_err().refused_with(),
            Some(libc::EPERM)
        );
        assert_eq!(refusal(client.clear(theirs)).0, libc::EPERM);
        let (errno, reason) = refusal(client.set(me(), &hint(1, 10)));
        assert_eq!(errno, libc::EBUSY);
        assert_eq!(
            reason,
            "user 65534 has declared 0.00 of 0.00 CPUs; this hint would add 0.10"
        );
        let critical = Hint::new(MS, 10 * MS, 10 * MS, 3).unwrap();
        assert_eq!(refusal(client.set(me(), &critical)).0, libc::EPERM);
    });
    service.client().set(theirs, &hint(1, 10)).unwrap();
}

#[test]
fn a_pinned_task_of_a_user_must_fit_its_cpu() {
    if !root("a_pinned_task_of_a_user_must_fit_its_cpu") {
        return;
    }
    let service = service();
    let pin = || {
        // SAFETY: all zeros is an empty set.
        unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(0, &mut set);
            assert_eq!(libc::sched_setaffinity(0, size_of_val(&set), &set), 0);
        }
    };
    let socket = &service.socket;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            pin();
            let root = HintClient::connect_to(socket).unwrap();
            root.set(me(), &hint(90, 100)).unwrap();
            as_nobody(|| {
                let client = HintClient::connect_to(socket).unwrap();
                let (errno, reason) = refusal(client.set(me(), &hint(20, 100)));
                assert_eq!(errno, libc::EBUSY);
                assert_eq!(
                    reason,
                    "tasks confined to CPU 0 have declared 0.90 of 1; this hint would add 0.20"
                );
            });
        });
    });
}
