//! The hint service over its real socket, with real tasks and real users. What
//! needs a second user needs root to become one, and is skipped with a word otherwise.

mod c_header;
mod crowds;
mod declare;
mod map;
mod strangers;

use scx_temponet::hint::client::ClientError;
use scx_temponet::hint::{Hint, HintClient, HintServer, Limits, MemoryStore};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::{Duration, Instant};

const MS: u64 = 1_000_000;
const NOBODY: u32 = 65534;

/// The service, with memory in the place of the BPF map.
struct Service {
    server: HintServer,
    store: Arc<MemoryStore>,
    socket: PathBuf,
    dir: tempfile::TempDir,
}

fn service_with(limits: Limits) -> Service {
    let dir = tempfile::Builder::new()
        .permissions(std::fs::Permissions::from_mode(0o755))
        .tempdir()
        .unwrap();
    let socket = dir.path().join("run").join("hint.sock");
    let server = HintServer::start(&socket, limits).unwrap();
    let store = Arc::new(MemoryStore::default());
    server.attach(store.clone());
    Service {
        server,
        store,
        socket,
        dir,
    }
}

/// Room for all: what a test does not look at must not depend on the machine.
fn service() -> Service {
    service_with(Limits {
        util_max: 8.0,
        util_user: 8.0,
        ..Limits::default()
    })
}

impl Service {
    fn client(&self) -> HintClient {
        HintClient::connect_to(&self.socket).unwrap()
    }
}

fn hint(runtime_ms: u64, period_ms: u64) -> Hint {
    Hint::new(runtime_ms * MS, period_ms * MS, period_ms * MS, 0).unwrap()
}

fn me() -> i32 {
    HintClient::this_thread()
}

struct Sleeper(Child);

impl Sleeper {
    fn new() -> Self {
        Self(Command::new("sleep").arg("60").spawn().unwrap())
    }

    fn pid(&self) -> i32 {
        self.0.id() as i32
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn eventually(what: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(10), "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn refusal(result: Result<(), ClientError>) -> (i32, String) {
    let error = result.unwrap_err();
    (error.refused_with().unwrap_or(0), error.to_string())
}

fn root(test: &str) -> bool {
    // SAFETY: geteuid has no arguments.
    let root = unsafe { libc::geteuid() } == 0;
    if !root {
        eprintln!("{test}: skipped, needs root to act as another user");
    }
    root
}

/// Runs `act` in a thread that is another user: credentials are per thread in
/// the kernel, it is libc that keeps a process's threads alike.
fn as_user<T: Send>(uid: u32, act: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        scope
            .spawn(|| {
                become_user(uid);
                act()
            })
            .join()
            .unwrap()
    })
}

fn as_nobody<T: Send>(act: impl FnOnce() -> T + Send) -> T {
    as_user(NOBODY, act)
}

/// This thread alone, for good.
fn become_user(uid: u32) {
    // SAFETY: three ids; the thread ends before anything else uses it.
    let failed = unsafe { libc::syscall(libc::SYS_setresuid, uid, uid, uid) };
    assert_eq!(failed, 0);
}
