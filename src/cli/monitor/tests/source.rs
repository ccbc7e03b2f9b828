use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixListener;
use std::path::Path;

use serde_json::{json, Value};

use super::super::app::App;
use super::super::source::Source;
use super::busy::busy;
use super::{assert_shows, drawn};

/// A scheduler that answers each request with the next of these.
fn scheduler(path: &Path, answers: Vec<(i32, Value)>) -> std::thread::JoinHandle<Vec<String>> {
    let listener = UnixListener::bind(path).unwrap();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut requests = BufReader::new(stream.try_clone().unwrap()).lines();
        let mut asked = Vec::new();
        for (errno, figures) in answers {
            asked.push(requests.next().unwrap().unwrap());
            let answer = json!({ "errno": errno, "args": { "resp": figures } });
            writeln!(stream, "{answer}").unwrap();
        }
        asked
    })
}

#[test]
fn recent_figures_and_totals_come_over_the_socket() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stats");
    let figures = serde_json::to_value(busy().recent).unwrap();
    let asked = scheduler(
        &path,
        vec![
            (0, figures.clone()),
            (
                0,
                json!({ "interval_s": 77.0, "news": { "of": "tomorrow" } }),
            ),
            (0, figures.clone()),
            // One of an older version.
            (libc::EINVAL, json!("unknown stat target")),
            (0, figures),
            (0, json!({})),
        ],
    );
    let mut source = Source::new(&path);
    let total = |source: &mut Source| source.look().unwrap().total.map(|t| t.interval_s);
    assert_eq!(total(&mut source), Some(77.0));
    assert_eq!(total(&mut source), None);
    assert_eq!(total(&mut source), Some(0.0), "the connection was kept");
    let asked = asked.join().unwrap();
    assert!(asked[0].contains("recent") && asked[1].contains("since_load"));
}

#[test]
fn what_cannot_be_read_is_said_to_be() {
    for wrong in [
        json!([1, 2]),
        json!(null),
        json!({ "agent": { "inference_us": "fast\u{1b}[2J" } }),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("stats");
        let answering = scheduler(&path, vec![(0, wrong)]);
        let mut app = App::default();
        app.take(Source::new(&path).look());
        answering.join().unwrap();
        let lines = drawn(&app, 120, 40);
        assert!(!lines.concat().contains(|c: char| c.is_control()));
        assert_shows(&lines.join("\n"), &["cannot read", "own version"]);
    }
}
