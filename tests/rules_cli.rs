//! `scx_temponet rules --check` as its users meet it.

use std::io::Write;
use std::process::{Command, Output, Stdio};

fn check(text: &str) -> Output {
    let mut program = Command::new(env!("CARGO_BIN_EXE_scx_temponet"))
        .args(["rules", "--check", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = program.stdin.take().unwrap();
    stdin.write_all(text.as_bytes()).unwrap();
    drop(stdin);
    program.wait_with_output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_running_thread_is_found_by_its_name() {
    std::thread::Builder::new()
        .name("tn-rules-beat".into())
        .spawn(|| {
            let rule = "[[rule]]\ncomm = \"tn-rules-be*\"\nruntime = \"1ms\"\nperiod = \"4ms\"\n";
            let out = check(rule);
            let said = text(&out.stdout);
            assert_eq!(out.status.code(), Some(0), "{said}{}", text(&out.stderr));
            // SAFETY: it returns a number.
            let tid = unsafe { libc::gettid() };
            let found = format!("matches 1 thread: tn-rules-beat[{tid}]");
            assert!(said.contains(&found), "no '{found}' in {said}");
            assert!(
                said.contains("1 rule, 1 thread declared now: 0.25 of"),
                "{said}"
            );
        })
        .unwrap()
        .join()
        .unwrap();
}

#[test]
fn status_1_is_a_rule_that_never_applies_and_2_a_file_that_is_refused() {
    let out = check(
        "[[rule]]\ncomm = \"a*\"\nclass = \"background\"\n\
         [[rule]]\ncomm = \"ab\"\nruntime = \"1ms\"\nperiod = \"4ms\"\n",
    );
    assert_eq!(out.status.code(), Some(1));
    assert!(text(&out.stdout).contains("never applies: the rule in line 1"));
    let out = check("[[rule]]\ncomm = \"ab\"\nwcet = 3\n");
    assert_eq!(out.status.code(), Some(2));
    assert!(out.stdout.is_empty());
    let said = text(&out.stderr);
    assert!(
        said.contains("standard input:3: unknown key `wcet`"),
        "{said}"
    );
    assert_eq!(said.lines().count(), 1, "{said}");
}
