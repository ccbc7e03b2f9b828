//! The service in front of a real task storage map of the running kernel. It
//! needs root and a kernel with BTF, but no sched_ext.

use super::{eventually, Sleeper, MS};
use libbpf_rs::libbpf_sys;
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType};
use scx_temponet::hint::{Hint, HintClient, HintServer, Limits, MapStore};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

/// A task storage map as BPF declares it: key `int`, value of a hint's size.
fn task_storage() -> Option<MapHandle> {
    // BTF: [1] int, [2] int[8], which is 32 bytes.
    let int = [1u32, 1 << 24, 4, 1 << 24 | 32];
    let array = [0u32, 3 << 24, 0, 1, 1, 8];
    let types: Vec<u8> = int
        .iter()
        .chain(&array)
        .flat_map(|w| w.to_ne_bytes())
        .collect();
    let strings = b"\0int\0";
    let mut btf = 0xeb9f_u16.to_ne_bytes().to_vec();
    btf.extend([1, 0]);
    for word in [24, 0, types.len(), types.len(), strings.len()] {
        btf.extend((word as u32).to_ne_bytes());
    }
    btf.extend(types);
    btf.extend(strings);

    // SAFETY: btf lives across the call.
    let btf_fd = unsafe {
        libbpf_sys::bpf_btf_load(btf.as_ptr().cast(), btf.len() as u64, std::ptr::null_mut())
    };
    if btf_fd < 0 {
        eprintln!("skipped, BTF cannot be loaded here: error {btf_fd}");
        return None;
    }
    let options = libbpf_sys::bpf_map_create_opts {
        sz: size_of::<libbpf_sys::bpf_map_create_opts>() as u64,
        btf_fd: btf_fd as u32,
        btf_key_type_id: 1,
        btf_value_type_id: 2,
        map_flags: libbpf_sys::BPF_F_NO_PREALLOC,
        ..Default::default()
    };
    match MapHandle::create(MapType::TaskStorage, Some("test_hints"), 4, 32, 0, &options) {
        Ok(map) => Some(map),
        Err(e) => {
            eprintln!("skipped, task storage cannot be made here: {e}");
            None
        }
    }
}

/// As the scheduler's count of changed hints.
fn counter() -> Option<MapHandle> {
    let options = libbpf_sys::bpf_map_create_opts {
        sz: size_of::<libbpf_sys::bpf_map_create_opts>() as u64,
        ..Default::default()
    };
    MapHandle::create(MapType::Array, Some("test_changes"), 4, 4, 1, &options).ok()
}

fn counted(changes: &MapHandle) -> u32 {
    let bytes = changes.lookup(&0u32.to_ne_bytes(), MapFlags::ANY).unwrap();
    u32::from_ne_bytes(bytes.unwrap().try_into().unwrap())
}

fn service(dir: &Path) -> Option<HintServer> {
    let map = task_storage()?;
    let limits = Limits {
        util_max: 8.0,
        ..Limits::default()
    };
    let server = HintServer::start(&dir.join("hint.sock"), limits).unwrap();
    server.attach(Arc::new(MapStore::new(map, counter()?).unwrap()));
    Some(server)
}

fn hint(runtime_ms: u64) -> Hint {
    Hint::new(runtime_ms * MS, 40 * MS, 40 * MS, 1).unwrap()
}

#[test]
fn the_kernel_keeps_a_hint_per_thread() {
    let dir = tempfile::tempdir().unwrap();
    let Some(server) = service(dir.path()) else {
        return;
    };
    let client = HintClient::connect_to(&dir.path().join("hint.sock")).unwrap();
    let me = HintClient::this_thread();
    let leader = std::process::id() as i32;
    assert_ne!(me, leader, "tests run in threads of their own");
    assert_eq!(client.get(me).unwrap(), None);
    client.set(me, &hint(10)).unwrap();
    client.set(leader, &hint(20)).unwrap();
    assert_eq!(client.get(me).unwrap(), Some(hint(10)));
    assert_eq!(client.get(leader).unwrap(), Some(hint(20)));
    client.clear(me).unwrap();
    client.clear(me).unwrap();
    assert_eq!(client.get(me).unwrap(), None);
    assert_eq!(client.get(leader).unwrap(), Some(hint(20)));

    // The next scheduler's map starts empty and is filled again.
    server.detach();
    let changes = counter().unwrap();
    let seen = MapHandle::try_from(&changes).unwrap();
    let second = MapStore::new(task_storage().unwrap(), changes).unwrap();
    server.attach(Arc::new(second));
    assert_eq!(client.get(leader).unwrap(), Some(hint(20)));

    // A running task looks its hint up again when the count moves.
    let before = counted(&seen);
    client.clear(leader).unwrap();
    assert_eq!(counted(&seen), before + 1);
}

#[test]
fn a_map_of_another_shape_is_refused() {
    let options = libbpf_sys::bpf_map_create_opts {
        sz: size_of::<libbpf_sys::bpf_map_create_opts>() as u64,
        ..Default::default()
    };
    let Ok(map) = MapHandle::create(MapType::Hash, Some("test_other"), 4, 8, 1, &options) else {
        return eprintln!("skipped, no BPF maps here");
    };
    let error = MapStore::new(map, counter().unwrap())
        .err()
        .unwrap()
        .to_string();
    assert!(error.contains("values of 8 bytes"), "{error}");
}

/// Not a test but a program: when told where the service is, the thread this
/// runs in declares itself and becomes `sleep`.
#[test]
fn helper_declares_and_execs_from_its_thread() {
    let Some(socket) = std::env::var_os(HELPER_SOCKET) else {
        return;
    };
    let me = HintClient::this_thread();
    assert_ne!(me, std::process::id() as i32);
    let client = HintClient::connect_to(Path::new(&socket)).unwrap();
    client.set(me, &hint(10)).unwrap();
    panic!("{}", Command::new("sleep").arg("60").exec());
}

const HELPER_SOCKET: &str = "TEMPONET_TEST_SOCKET";

/// The kernel moves the hint with the task, to the id of the process.
#[test]
fn exec_from_a_second_thread_keeps_hint_and_charge() {
    let dir = tempfile::tempdir().unwrap();
    let Some(server) = service(dir.path()) else {
        return;
    };
    let socket = dir.path().join("hint.sock");
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "map::helper_declares_and_execs_from_its_thread"])
        .args(["--test-threads", "2"])
        .env(HELPER_SOCKET, &socket)
        .spawn()
        .unwrap();
    let child = Sleeper(child);
    let pid = child.pid();
    eventually("the program is exchanged", || {
        std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|c| c == "sleep\n")
    });
    let client = HintClient::connect_to(&socket).unwrap();
    eventually("the hint is the process's", || {
        client.get(pid).unwrap() == Some(hint(10))
    });
    // Long enough for the exit of the thread's old id to be noticed.
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(server.declared(), (1, 0.25), "still charged");
    drop(child);
    eventually("its share comes back", || server.declared().0 == 0);
}
