//! What `scx_temponet monitor` promises at the command line.

use std::process::Command;

#[test]
fn json_without_a_scheduler_ends_with_one_sentence_and_status_2() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("nobody");
    let out = Command::new(env!("CARGO_BIN_EXE_scx_temponet"))
        .args(["monitor", "--json", "--socket"])
        .arg(&socket)
        .output()
        .expect("the binary runs");
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(out.status.code(), Some(2), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.contains("no scheduler answers at"), "{said}");
    assert!(said.contains("--socket"), "{said}");
    assert!(out.stdout.is_empty());
}
