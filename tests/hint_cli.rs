//! `scx_temponet hint` as a user runs it, against the real service.

use scx_temponet::hint::{Hint, HintClient, HintServer, Limits, MemoryStore};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;

const MS: u64 = 1_000_000;

struct Service {
    server: HintServer,
    socket: PathBuf,
    _dir: tempfile::TempDir,
}

fn service(limits: Limits) -> Service {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("hint.sock");
    let server = HintServer::start(&socket, limits).unwrap();
    server.attach(Arc::new(MemoryStore::default()));
    Service {
        server,
        socket,
        _dir: dir,
    }
}

fn roomy() -> Limits {
    Limits {
        util_max: 64.0,
        util_user: 64.0,
        ..Limits::default()
    }
}

fn hint(socket: &Path, line: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_scx_temponet"))
        .arg("hint")
        .arg("--socket")
        .arg(socket)
        .args(line.split_whitespace())
        .output()
        .unwrap()
}

/// Exit status and the one line on standard error.
fn refused(output: &Output) -> (i32, String) {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(output.stdout.is_empty());
    (output.status.code().unwrap(), said.trim_end().to_owned())
}

fn me() -> i32 {
    HintClient::this_thread()
}

#[test]
fn a_task_is_declared_shown_and_cleared() {
    let service = service(roomy());
    let run = |line: &str| hint(&service.socket, line);
    let done = run(&format!(
        "--runtime 10ms --deadline 30ms --period 40ms --pid {}",
        me()
    ));
    assert!(done.status.success(), "{done:?}");
    let shown = run(&format!("--show --pid {}", me()));
    let text = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(
        text.ends_with(": runtime 10ms deadline 30ms period 40ms criticality 0\n"),
        "{text}"
    );
    let shown = run(&format!("--show --json --pid {}", me()));
    let json: serde_json::Value = serde_json::from_slice(&shown.stdout).unwrap();
    assert_eq!(json["pid"], me());
    assert_eq!(json["tasks"][0]["tid"], me());
    assert_eq!(json["tasks"][0]["hint"]["deadline_ns"], 30 * MS);
    assert!(run(&format!("--clear --pid {}", me())).status.success());
    let shown = run(&format!("--show --json --pid {}", me()));
    let json: serde_json::Value = serde_json::from_slice(&shown.stdout).unwrap();
    assert!(json["tasks"][0]["hint"].is_null());
}

#[test]
fn a_command_runs_with_its_declaration() {
    let service = service(roomy());
    let program = env!("CARGO_BIN_EXE_scx_temponet");
    let script = format!(
        "exec {program} hint --socket {} --show --pid $$",
        service.socket.display()
    );
    let output = Command::new(program)
        .args(["hint", "--runtime", "2ms", "--period", "10ms", "--socket"])
        .arg(&service.socket)
        .args(["--", "sh", "-c", &script])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        text.ends_with("runtime 2ms deadline 10ms period 10ms criticality 0\n"),
        "{output:?}"
    );
    let (status, _) = refused(&hint(
        &service.socket,
        "--runtime 2ms --period 10ms -- /nonexistent/program",
    ));
    assert_eq!(status, 127);
}

#[test]
fn all_threads_are_declared_or_none() {
    let service = service(roomy());
    let pid = std::process::id();
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let thread = std::thread::spawn(move || stopped.recv());
    let line = format!("--runtime 5ms --period 100ms --pid {pid} --threads");
    let done = hint(&service.socket, &line);
    assert!(done.status.success(), "{done:?}");
    let (count, _) = service.server.declared();
    assert!(count >= 3, "main, this and the other: {count}");

    let tight = self::service(Limits {
        hints_max: 2,
        ..roomy()
    });
    // The service makes room for 16 at least: fill it up.
    let children: Vec<_> = (0..14)
        .map(|_| Command::new("sleep").arg("60").spawn().unwrap())
        .collect();
    let client = HintClient::connect_to(&tight.socket).unwrap();
    let old = Hint::new(MS, 100 * MS, 100 * MS, 0).unwrap();
    for child in &children {
        client.set(child.id() as i32, &old).unwrap();
    }
    client.set(me(), &old).unwrap();
    let (status, said) = refused(&hint(&tight.socket, &line));
    assert_eq!(status, 1);
    assert!(
        said.contains("and so none of them: 16 tasks have been declared"),
        "{said}"
    );
    assert_eq!(tight.server.declared().0, 15);
    assert_eq!(client.get(me()).unwrap(), Some(old), "has what it had");

    drop(stop);
    let _ = thread.join();
    for mut child in children {
        let _ = child.kill();
        let _ = child.wait();
    }
}

#[test]
fn refusals_are_status_1_and_mistakes_status_2() {
    let service = service(Limits {
        util_max: 0.0,
        ..Limits::default()
    });
    let run = |line: &str| refused(&hint(&service.socket, line));
    let (status, said) = run(&format!("--runtime 10ms --period 40ms --pid {}", me()));
    assert_eq!(status, 1);
    assert!(said.contains("this hint would add 0.25"), "{said}");
    for line in [
        "--runtime 10ms --period 0ms --pid 1",
        "--runtime 50ms --deadline 40ms --period 40ms --pid 1",
        "--runtime 10 --period 40ms --pid 1",
        "--runtime 10ms --period 40ms --pid 2147483646",
        "--show --pid 2147483646",
        "--clear --threads --pid 2147483646",
        "--runtime 10ms --period 40ms",
    ] {
        assert_eq!(run(line).0, 2, "{line}");
    }
    let (status, said) = refused(&hint(
        Path::new("/nonexistent/hint.sock"),
        "--runtime 10ms --period 40ms --pid 1",
    ));
    assert_eq!(status, 2);
    assert!(said.contains("scx_temponet is not running"), "{said}");
}
