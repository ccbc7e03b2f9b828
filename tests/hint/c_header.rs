//! `include/` as a program in C and in C++ uses it.

use super::*;
use std::path::Path;

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
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hint/example.c");
    let program = service.dir.path().join("example");
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
    let Service {
        server, dir: _dir, ..
    } = service;
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
            // unshare itself ends with 1 too, which is EPERM, where it is not allowed.
            Ok(output)
                if output.status.code() == Some(libc::EPERM)
                    && !output.stderr.starts_with(b"unshare: ") =>
            {
                let said = String::from_utf8_lossy(&output.stderr).into_owned();
                assert!(said.contains("own pid and user namespace"), "{said}");
            }
            other => eprintln!("skipped, unshare {space} does not work here: {other:?}"),
        }
    }
}
