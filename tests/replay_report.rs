//! The reports of `replay`: the same in every form, and a status for CI.

use std::process::Command;

use serde_json::Value;

const ONE_CPU: &str = "tests/rtapp/one-cpu.json";
const OVERLOAD: &str = "tests/rtapp/overload.json";

/// Exit status, standard error and standard output.
fn status(args: &[&str]) -> (Option<i32>, String, String) {
    let out = Command::new(env!("CARGO_BIN_EXE_scx_temponet"))
        .arg("replay")
        .args(args)
        .output()
        .expect("the binary runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (out.status.code(), text(&out.stderr), text(&out.stdout))
}

fn replay(args: &[&str]) -> String {
    let (code, said, report) = status(args);
    assert_eq!(code, Some(0), "{said}");
    report
}

fn scratch(folder: &tempfile::TempDir, name: &str) -> String {
    folder.path().join(name).to_string_lossy().into_owned()
}

#[test]
fn terminal_page_json_and_markdown_give_the_same_verdict_and_columns() {
    let folder = tempfile::tempdir().unwrap();
    let (html, md) = (scratch(&folder, "r.html"), scratch(&folder, "r.md"));
    let terminal = replay(&[
        OVERLOAD,
        "--html",
        &html,
        "--md",
        &md,
        "--critical",
        "motor",
    ]);
    let json = replay(&[OVERLOAD, "--critical", "motor", "--json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    let verdict = &json["verdict"];
    let page = std::fs::read_to_string(&html).unwrap();
    let markdown = std::fs::read_to_string(&md).unwrap();
    let mut sentences = vec![&verdict["headline"], &verdict["enough"]];
    for part in ["why", "losses", "change"] {
        sentences.extend(verdict[part].as_array().unwrap());
    }
    assert!(sentences.len() > 6, "{sentences:?}");
    for sentence in sentences {
        let sentence = sentence.as_str().unwrap();
        for (text, place) in [
            (&terminal, "terminal"),
            (&page, "page"),
            (&markdown, "Markdown"),
        ] {
            assert!(text.contains(sentence), "{sentence:?} not in the {place}");
        }
    }
    let data = page.split("type=\"application/json\">").nth(1).unwrap();
    let data: Value = serde_json::from_str(data.split("</script>").next().unwrap()).unwrap();
    for table in ["schedulers", "tasks"] {
        let heads = data[table]["head"].as_array().unwrap();
        let words: Vec<&str> = heads.iter().map(|head| head.as_str().unwrap()).collect();
        let row = format!("| {} |", words.join(" | "));
        assert!(markdown.contains(&row), "{row} not in {markdown}");
        let line = terminal
            .lines()
            .find(|line| line.starts_with(words[0]) && line.contains(words[2]));
        let line = line.expect("the same head");
        let squeezed = |text: &str| text.split_whitespace().collect::<String>();
        assert_eq!(squeezed(line), squeezed(&words.concat()));
    }
    // The best are marked, and only they.
    let winners = verdict["winners"].as_array().unwrap();
    for scheduler in verdict["schedulers"].as_array().unwrap() {
        let name = scheduler["scheduler"].as_str().unwrap();
        let best = winners.contains(&scheduler["scheduler"]);
        assert_eq!(
            markdown.contains(&format!("| **{name}** |")),
            best,
            "{name}"
        );
        let marked = format!("{name}*");
        let starred = terminal
            .lines()
            .any(|line| line.split_whitespace().next() == Some(&marked));
        assert_eq!(starred, best, "{name} in {terminal}");
    }
}

#[test]
fn fail_below_compares_every_scheduler_with_what_is_asked() {
    let (code, _, _) = status(&[ONE_CPU, "-p", "edf", "--fail-below", "99"]);
    assert_eq!(code, Some(0));
    let (code, said, table) = status(&[OVERLOAD, "-p", "edf,fcfs", "--fail-below", "90%"]);
    assert_eq!(code, Some(3), "{table}");
    assert!(
        said.contains("fcfs has ") && !said.contains("edf has "),
        "{said}"
    );
    // The report is there all the same.
    assert!(table.contains("compliance %"), "{table}");
    // Critical threads are compared by themselves.
    let critical = [OVERLOAD, "-p", "rm", "--critical", "planner"];
    let (code, said, _) = status(&[&critical[..], &["--fail-below", "50"]].concat());
    assert_eq!(code, Some(3));
    assert!(said.contains("of its critical jobs on time"), "{said}");
    assert_eq!(
        status(&[OVERLOAD, "-p", "rm", "--fail-below", "50"]).0,
        Some(0)
    );
    for wrong in ["101", "-1", "many"] {
        let (code, _, _) = status(&[ONE_CPU, &format!("--fail-below={wrong}")]);
        assert_eq!(code, Some(2), "{wrong}");
    }
    // Where nothing is judged nothing can be promised.
    let folder = tempfile::tempdir().unwrap();
    let path = scratch(&folder, "hog.json");
    std::fs::write(
        &path,
        r#"{"global": {"duration": 1}, "tasks": {"hog": {"run": 100000}}}"#,
    )
    .unwrap();
    let (code, said, _) = status(&[&path, "-p", "edf", "--fail-below", "1"]);
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("no job to judge"), "{said}");
}
