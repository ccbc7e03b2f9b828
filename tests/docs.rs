//! What the documentation points at is there: pages, anchors, files, tests.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Beginnings of paths that are written in backticks.
const ROOMS: [&str; 11] = [
    "benches/",
    "bpf/",
    "docs/",
    "fuzz/",
    "include/",
    "models/",
    "packaging/",
    "scripts/",
    "src/",
    "tests/",
    "target/",
];
/// Written for a name that the reader chooses, or for a file that a recipe makes.
const MADE_UP: [&str; 2] = ["NAME", "src/sim/policies/lrf.rs"];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn files_below(folder: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            files_below(&path, extension, found);
        } else if path.extension().is_some_and(|end| end == extension) {
            found.push(path);
        }
    }
}

/// All pages with their text, without blocks of code.
fn pages() -> BTreeMap<PathBuf, String> {
    let mut paths = Vec::new();
    files_below(&root().join("docs"), "md", &mut paths);
    for page in [
        "README.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "models/README.md",
        "fuzz/README.md",
    ] {
        paths.push(root().join(page));
    }
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).unwrap();
        (path, without_blocks(&text))
    };
    paths.into_iter().map(read).collect()
}

fn without_blocks(text: &str) -> String {
    let mut inside = false;
    let mut kept = String::new();
    for line in text.lines() {
        let is_fence = line.trim_start().starts_with("```");
        inside ^= is_fence;
        if !inside && !is_fence {
            kept += line;
            kept.push('\n');
        }
    }
    kept
}

/// What stands in `[…](here)`.
fn links(text: &str) -> Vec<&str> {
    let ends = text.match_indices("](").map(|(at, _)| &text[at + 2..]);
    ends.filter_map(|rest| rest.split_once(')'))
        .map(|(link, _)| link)
        .collect()
}

/// The names by which a page's headings are linked to.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    let anchor = |heading: &str| -> String {
        let words = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = words
            .chars()
            .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(anchor).collect()
}

/// Words in backticks.
fn quoted(text: &str) -> Vec<&str> {
    text.lines()
        .flat_map(|line| line.split('`').skip(1).step_by(2))
        .flat_map(str::split_whitespace)
        .collect()
}

#[test]
fn every_link_of_the_documentation_leads_somewhere() {
    let pages = pages();
    let mut seen = 0;
    for (page, text) in &pages {
        for link in links(text).into_iter().filter(|link| !link.contains("://")) {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = match file {
                "" => page.clone(),
                file => page.parent().unwrap().join(file),
            };
            let target = target.canonicalize();
            let target = target.unwrap_or_else(|_| panic!("{}: no file {link}", page.display()));
            if !anchor.is_empty() {
                let text = pages.get(&target);
                let text = text.unwrap_or_else(|| panic!("{}: {link} is no page", page.display()));
                assert!(
                    anchors(text).contains(anchor),
                    "{}: no heading for {link}",
                    page.display()
                );
            }
            seen += 1;
        }
    }
    assert!(seen > 50, "only {seen} links were found");
}

#[test]
fn every_file_that_the_documentation_names_is_there() {
    let mut seen = 0;
    for (page, text) in pages() {
        if page.ends_with("CHANGELOG.md") {
            continue;
        }
        for name in quoted(&text) {
            let name = name.trim_end_matches(['.', ',', ';', ':']);
            let is_path = ROOMS.iter().any(|room| name.starts_with(room));
            let is_plain = name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c));
            let is_made =
                MADE_UP.iter().any(|made_up| name.contains(made_up)) || name.starts_with("target/");
            if !is_path || !is_plain || is_made {
                continue;
            }
            assert!(
                root().join(name).exists(),
                "{}: there is no {name}",
                page.display()
            );
            seen += 1;
        }
    }
    assert!(seen > 100, "only {seen} files were found");
}

/// Of `docs/promises.md` and `docs/security.md`, which say what holds a promise.
#[test]
fn every_test_that_holds_a_promise_is_there() {
    let mut sources = Vec::new();
    for room in ["packaging", "src", "tests"] {
        files_below(&root().join(room), "rs", &mut sources);
    }
    let code: String = sources
        .iter()
        .map(|path| fs::read_to_string(path).unwrap())
        .collect();
    let is_guest_test = |name: &str| root().join("tests/vm/guest").join(name).exists();
    let is_case = |name: &str| {
        root()
            .join(format!("tests/vm/stress/cases/{name}.sh"))
            .exists()
    };
    let mut seen = 0;
    for page in ["docs/promises.md", "docs/security.md"] {
        let text = without_blocks(&fs::read_to_string(root().join(page)).unwrap());
        for name in quoted(&text) {
            // A sentence is the name of a test; others are functions, options and settings.
            if name.matches('_').count() >= 4
                && name.chars().all(|c| c.is_ascii_lowercase() || c == '_')
            {
                assert!(
                    code.contains(&format!("fn {name}(")),
                    "{page}: there is no test {name}"
                );
                seen += 1;
            }
            if name.ends_with(".sh") && !name.contains('/') && !name.contains("NAME") {
                assert!(is_guest_test(name), "{page}: there is no guest test {name}");
                seen += 1;
            }
        }
        for case in text
            .split("case `")
            .skip(1)
            .filter_map(|rest| rest.split('`').next())
        {
            assert!(
                case == "NAME" || is_case(case),
                "{page}: there is no case {case}"
            );
            seen += 1;
        }
    }
    assert!(seen > 10, "only {seen} tests were found");
}

/// A figure that was measured has a command and a date, and both stand in docs/measurements.
#[test]
fn dates_and_older_builds_stand_with_the_measurements_only() {
    let home = root().join("docs/measurements");
    for (page, text) in pages() {
        if page.starts_with(&home) || page.ends_with("CHANGELOG.md") {
            continue;
        }
        for line in text.lines() {
            let has_date = line
                .split(|c: char| !c.is_ascii_digit() && c != '-')
                .any(is_date);
            assert!(
                !has_date || line.contains("scripts/"),
                "{}: a date without a command: {line}",
                page.display()
            );
            for old in [
                "daa4125",
                "earlier build",
                "older build",
                "previous version",
                "used to be",
            ] {
                assert!(
                    !line.contains(old),
                    "{}: of an older build: {line}",
                    page.display()
                );
            }
        }
    }
}

/// What a page shows of a command is what the command prints. Lines may be left out.
#[test]
fn the_verdict_in_the_manual_of_replay_is_what_it_says() {
    let page = fs::read_to_string(root().join("docs/guide/replay.md")).unwrap();
    let (_, rest) = page.split_once("## The verdict").unwrap();
    let (block, rest) = rest
        .split_once("```\n")
        .unwrap()
        .1
        .split_once("```")
        .unwrap();
    let command = rest.split_once("`scx_temponet ").unwrap().1;
    let command = command.split_once('`').unwrap().0;
    let out = Command::new(env!("CARGO_BIN_EXE_scx_temponet"))
        .args(command.split_whitespace())
        .current_dir(root())
        .output()
        .unwrap();
    assert!(out.status.success(), "{command}");
    let printed = String::from_utf8(out.stdout).unwrap();
    let shown: Vec<&str> = block.lines().filter(|line| line.trim() != "…").collect();
    assert!(shown.len() > 5, "{block}");
    for line in shown {
        assert!(
            printed.lines().any(|said| said == line),
            "`{command}` does not print: {line}\n{printed}"
        );
    }
}

fn is_date(word: &str) -> bool {
    let parts: Vec<usize> = word.split('-').map(str::len).collect();
    parts == [4, 2, 2]
}

#[test]
fn the_readme_is_a_hundred_lines_with_one_table_of_results() {
    let text = fs::read_to_string(root().join("README.md")).unwrap();
    assert!(text.lines().count() < 100);
    let tables = without_blocks(&text)
        .lines()
        .filter(|line| line.starts_with("|---"))
        .count();
    assert_eq!(tables, 1);
}

/// Constants that scripts repeat, because they have no other source.
#[test]
fn the_bound_that_tests_and_scripts_repeat_is_the_schedulers() {
    let header = fs::read_to_string(root().join("bpf/intf.h")).unwrap();
    let line = header
        .lines()
        .find(|line| line.starts_with("#define TN_STARVE_BOUND "));
    let bound_ns = line.unwrap().split_whitespace().nth(2).unwrap();
    let bound_ns: u64 = bound_ns.trim_end_matches("ULL").parse().unwrap();
    let bound_ms = bound_ns / 1_000_000;
    for (file, says) in [
        ("tests/vm/guest/lib.sh", format!("\nBOUND_MS={bound_ms}\n")),
        (
            "scripts/comparison/verdict.py",
            format!("\nWAIT_BOUND_MS = {bound_ms}\n"),
        ),
        (
            "tests/vm/fair/verdict.rs",
            format!("const LONGEST_WAIT_MS: f64 = {bound_ms}.0;"),
        ),
    ] {
        let text = fs::read_to_string(root().join(file)).unwrap();
        assert!(text.contains(&says), "{file} has another bound");
    }
    let mut scripts = Vec::new();
    files_below(&root().join("tests/vm"), "sh", &mut scripts);
    for script in scripts
        .iter()
        .filter(|path| !path.ends_with("guest/lib.sh"))
    {
        let text = fs::read_to_string(script).unwrap();
        assert!(
            !text.contains("BOUND_MS=4"),
            "{} says it again",
            script.display()
        );
    }
}
