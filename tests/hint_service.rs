//! The hint service over its real socket, with real tasks and real users; only
//! the BPF map behind it is replaced by memory. What needs a second user needs
//! root to become one, and is skipped with a word otherwise.

use scx_temponet::agent::hint::client::ClientError;
use scx_temponet::agent::hint::{Hint, HintClient, HintServer, Limits, MemoryStore};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::{Duration, Instant};

const MS: u64 = 1_000_000;
const NOBODY: u32 = 65534;

struct Service {
    server: HintServer,
    store: Arc<MemoryStore>,
    socket: PathBuf,
    _dir: tempfile::TempDir,
}

fn service_with(limits: Limits) -> Service {
    let dir = tempfile::Builder::new()
        .permissions(std::fs::Permissions::from_mode(0o755))
        .tempdir()
        .unwrap();
    let socket = dir.path().join("run").join("hint.sock");
    let server = HintServer::start(&socket, limits).unwrap();
    let store = Arc::new(MemoryStore::default());
    server.attach(store.clone()).unwrap();
    Service {
        server,
        store,
        socket,
        _dir: dir,
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
fn as_nobody<T: Send>(act: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        scope
            .spawn(|| {
                // SAFETY: three ids; this thread ends before anything else uses it.
                let failed = unsafe { libc::syscall(libc::SYS_setresuid, NOBODY, NOBODY, NOBODY) };
                assert_eq!(failed, 0);
                act()
            })
            .join()
            .unwrap()
    })
}

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
    let (errno, reason) = refusal(client.set(me(), &hint(5, 40)));
    assert_eq!(errno, libc::EAGAIN);
    assert!(reason.contains("being loaded"), "{reason}");
    let second = Arc::new(MemoryStore::default());
    service.server.attach(second.clone()).unwrap();
    assert_eq!(second.len(), 1);
    assert_eq!(client.get(me()).unwrap(), Some(hint(10, 40)));
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
        _dir,
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

// What strangers can do.

fn raw_socket() -> i32 {
    // SAFETY: no pointers.
    unsafe { libc::socket(libc::AF_UNIX, libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC, 0) }
}

fn address(path: &Path) -> libc::sockaddr_un {
    // SAFETY: all zeros is a valid sockaddr_un.
    let mut addr: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    addr.sun_family = libc::AF_UNIX as u16;
    for (to, from) in addr.sun_path.iter_mut().zip(path.to_str().unwrap().bytes()) {
        *to = from as libc::c_char;
    }
    addr
}

struct Raw(i32);

impl Drop for Raw {
    fn drop(&mut self) {
        // SAFETY: ours.
        unsafe { libc::close(self.0) };
    }
}

fn raw_listener(path: &Path) -> Raw {
    let (fd, addr) = (raw_socket(), address(path));
    // SAFETY: addr has the length given.
    let bound = unsafe { libc::bind(fd, (&raw const addr).cast(), size_of_val(&addr) as u32) };
    assert_eq!(bound, 0);
    Raw(fd)
}

fn raw_client(path: &Path) -> Raw {
    let (fd, addr) = (raw_socket(), address(path));
    // SAFETY: addr has the length given.
    let joined = unsafe { libc::connect(fd, (&raw const addr).cast(), size_of_val(&addr) as u32) };
    assert_eq!(joined, 0, "{}", io::Error::last_os_error());
    Raw(fd)
}

impl Raw {
    fn send(&self, packet: &[u8]) -> isize {
        // SAFETY: the packet's length.
        unsafe {
            libc::send(
                self.0,
                packet.as_ptr().cast(),
                packet.len(),
                libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT,
            )
        }
    }

    fn recv(&self) -> (isize, [u8; 512]) {
        let mut packet = [0; 512];
        // SAFETY: the buffer's length.
        let got = unsafe { libc::recv(self.0, packet.as_mut_ptr().cast(), packet.len(), 0) };
        (got, packet)
    }
}

#[test]
fn garbage_is_answered_once_and_then_cut_off() {
    let service = service();
    for packet in [vec![0u8; 48], vec![7; 1], vec![0xff; 4000]] {
        let client = raw_client(&service.socket);
        assert_eq!(client.send(&packet), packet.len() as isize);
        let (got, reply) = client.recv();
        assert_eq!(got, 256);
        assert_eq!(
            i32::from_ne_bytes(reply[8..12].try_into().unwrap()),
            libc::EPROTO
        );
        assert_eq!(client.recv().0, 0, "closed");
    }
    let empty = raw_client(&service.socket);
    empty.send(&[]);
    assert_eq!(empty.recv().0, 0);
    service.client().set(me(), &hint(1, 10)).unwrap();
}

#[test]
fn who_never_reads_and_who_never_speaks_is_dropped_while_others_are_served() {
    let service = service();
    let silent = raw_client(&service.socket);
    let deaf = raw_client(&service.socket);
    use scx_temponet::agent::hint::protocol::{Ask, Request};
    let ask = Request {
        tid: me(),
        ask: Ask::Get,
    }
    .encode();
    let start = Instant::now();
    let cut_off = loop {
        if deaf.send(&ask) < 0 {
            let error = io::Error::last_os_error();
            if error.raw_os_error() == Some(libc::EPIPE)
                || error.raw_os_error() == Some(libc::ECONNRESET)
            {
                break true;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        if start.elapsed() > Duration::from_secs(10) {
            break false;
        }
    };
    assert!(cut_off, "answers nobody reads do not pile up");
    let answered = Instant::now();
    service.client().set(me(), &hint(1, 10)).unwrap();
    assert!(answered.elapsed() < Duration::from_secs(1));
    assert_eq!(silent.recv().0, 0, "closed after the silence");
    assert!(start.elapsed() < Duration::from_secs(15));
}

#[test]
fn one_user_cannot_take_all_connections() {
    if !root("one_user_cannot_take_all_connections") {
        return;
    }
    let service = service();
    let crowd: Vec<_> = as_nobody(|| {
        let crowd = (0..40).map(|_| raw_client(&service.socket)).collect();
        let (errno, reason) = refusal(
            HintClient::connect_to(&service.socket).and_then(|c| c.set(me(), &hint(1, 10))),
        );
        assert_eq!(errno, libc::EAGAIN, "{reason}");
        crowd
    });
    service.client().set(me(), &hint(1, 10)).unwrap();
    drop(crowd);
}

#[test]
fn a_flood_of_requests_is_slowed_for_its_sender_only() {
    if !root("a_flood_of_requests_is_slowed_for_its_sender_only") {
        return;
    }
    let service = service();
    let slowest = std::thread::scope(|scope| {
        let flood = scope.spawn(|| {
            as_nobody(|| {
                let client = service.client();
                let start = Instant::now();
                for _ in 0..1012 {
                    client.get(me()).unwrap();
                }
                start.elapsed()
            })
        });
        let mut slowest = Duration::ZERO;
        while !flood.is_finished() {
            let start = Instant::now();
            service.client().get(me()).unwrap();
            slowest = slowest.max(start.elapsed());
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(flood.join().unwrap() > Duration::from_millis(900));
        slowest
    });
    assert!(slowest < Duration::from_millis(500), "{slowest:?}");
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
                    "tasks pinned to CPU 0 have declared 0.90 of it; this hint would add 0.20"
                );
            });
        });
    });
}

// The C header.

fn compile(compiler: &str, flags: &[&str], source: &Path, program: &Path, socket: &Path) {
    let output = Command::new(compiler)
        .args(flags)
        .args(["-Wall", "-Wextra", "-Wpedantic", "-Werror"])
        .arg(format!("-DTEMPONET_HINT_SOCKET=\"{}\"", socket.display()))
        .arg(concat!("-I", env!("CARGO_MANIFEST_DIR"), "/include"))
        .arg(source)
        .arg("-o")
        .arg(program)
        .output()
        .unwrap_or_else(|e| panic!("{compiler} cannot be run: {e}"));
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

fn example(service: &Service) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hint_example.c");
    let program = service._dir.path().join("example");
    compile(
        "c++",
        &["-std=c++11", "-x", "c++"],
        &source,
        &program,
        &service.socket,
    );
    compile("cc", &["-std=c11"], &source, &program, &service.socket);
    program
}

#[test]
fn a_c_program_declares_its_own_deadlines() {
    let service = service();
    let program = example(&service);
    let output = Command::new(&program).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "declared 2000000 ns every 10000000 ns\n"
    );
    if root("the C example as another user") {
        use std::os::unix::process::CommandExt;
        let output = Command::new(&program).uid(NOBODY).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let output = Command::new(&program)
            .arg(me().to_string())
            .uid(NOBODY)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(libc::EPERM));
        assert!(String::from_utf8_lossy(&output.stderr).contains("belongs to user 0"));
    }
    let Service { server, _dir, .. } = service;
    drop(server);
    let output = Command::new(&program).output().unwrap();
    assert_eq!(output.status.code(), Some(libc::ENOENT));
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "no deadline declared: scx_temponet is not running\n"
    );
}

#[test]
fn a_container_is_turned_away_because_its_task_ids_are_not_ours() {
    if !root("a_container_is_turned_away") {
        return;
    }
    let service = service();
    let program = example(&service);
    for space in ["--pid", "--user"] {
        let output = Command::new("unshare")
            .args([space, "--fork"])
            .arg(&program)
            .output();
        match output {
            Ok(output) if output.status.code() == Some(libc::EPERM) => {
                let said = String::from_utf8_lossy(&output.stderr).into_owned();
                assert!(said.contains("own pid and user namespace"), "{said}");
            }
            other => eprintln!("skipped, unshare {space} does not work here: {other:?}"),
        }
    }
}
