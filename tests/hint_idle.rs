//! Alone in its process, so that the service's thread can be told by its name.

use scx_temponet::hint::{HintClient, HintServer, Limits, MemoryStore};
use std::sync::Arc;
use std::time::Duration;

#[test]
fn an_idle_service_never_wakes_up() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("hint.sock");
    let server = HintServer::start(&socket, Limits::default()).unwrap();
    server.attach(Arc::new(MemoryStore::default()));
    // A declared task and a connection that has come and gone leave no timer.
    let hint = scx_temponet::hint::Hint::new(10_000_000, 40_000_000, 40_000_000, 0).unwrap();
    HintClient::connect_to(&socket)
        .unwrap()
        .set(HintClient::this_thread(), &hint)
        .unwrap();
    let thread = std::fs::read_dir("/proc/self/task")
        .unwrap()
        .flatten()
        .map(|entry| entry.path())
        .find(|path| {
            std::fs::read_to_string(path.join("comm")).is_ok_and(|c| c.starts_with("temponet-hint"))
        })
        .unwrap();
    let switches = || {
        let status = std::fs::read_to_string(thread.join("status")).unwrap();
        let line = status
            .lines()
            .find(|l| l.starts_with("voluntary_ctxt_switches"));
        line.unwrap().to_owned()
    };
    std::thread::sleep(Duration::from_millis(300));
    let before = switches();
    // Longer than any silence the service waits for.
    std::thread::sleep(Duration::from_millis(5500));
    assert_eq!(before, switches());
    drop(server);
}
