use std::io::{BufRead, BufReader, Read, Write};
use std::time::Instant;

use serde_json::json;

use super::*;

#[test]
fn a_target_is_a_file_or_a_socket() {
    assert_eq!(
        target("/run/a.prom"),
        Ok(Target::File("/run/a.prom".into()))
    );
    assert_eq!(target("unix:/run/a"), Ok(Target::Socket("/run/a".into())));
    for bad in ["", "unix:", "/run/", "unix:/run/"] {
        assert!(target(bad).is_err(), "{bad}");
    }
}

#[test]
fn a_place_that_cannot_be_written_to_is_an_error_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let stats = folder.path().join("stats");
    let file = Target::File(folder.path().join("no/such/folder.prom"));
    let error = Publisher::start(&file, &stats).err().unwrap();
    let said = format!("{error:#}");
    assert!(
        said.contains("folder.prom") && said.contains("No such file"),
        "{said}"
    );
    fs::write(folder.path().join("file"), "").unwrap();
    let socket = Target::Socket(folder.path().join("file"));
    let error = Publisher::start(&socket, &stats).err().unwrap();
    assert!(format!("{error:#}").contains("no socket"), "{error:#}");
    assert!(folder.path().join("file").exists());
}

#[test]
fn a_socket_that_nobody_listens_at_any_more_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("metrics");
    drop(UnixListener::bind(&path).unwrap());
    let target = Target::Socket(path.clone());
    let publisher = Publisher::start(&target, &folder.path().join("stats")).unwrap();
    let second = Publisher::start(&target, &folder.path().join("stats"));
    assert!(format!("{:#}", second.err().unwrap()).contains("another program"));
    drop(publisher);
    assert!(!path.exists());
}

/// A scheduler that answers every question with the target's name.
fn scheduler(stats: &Path) {
    let listener = UnixListener::bind(stats).unwrap();
    thread::spawn(move || {
        for client in listener.incoming() {
            let mut client = client.unwrap();
            for request in BufReader::new(client.try_clone().unwrap()).lines() {
                let request: serde_json::Value = serde_json::from_str(&request.unwrap()).unwrap();
                let figures = format!("# {}\n", request["args"]["target"].as_str().unwrap());
                let answer = json!({ "errno": 0, "args": { "resp": figures } });
                writeln!(client, "{answer}").unwrap();
            }
        }
    });
}

#[test]
fn the_file_has_the_figures_once_it_is_loaded_and_goes_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let (stats, file) = (folder.path().join("stats"), folder.path().join("a.prom"));
    fs::write(&file, "figures of one that was killed").unwrap();
    let publisher = Publisher::start(&Target::File(file.clone()), &stats).unwrap();
    let before = fs::read_to_string(&file).unwrap();
    assert_eq!(before, "# scx_temponet is not loaded yet\n");
    scheduler(&stats);
    let until = Instant::now() + Duration::from_secs(20);
    while fs::read_to_string(&file).unwrap() == before && Instant::now() < until {
        thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), "# prometheus\n");
    drop(publisher);
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().flatten().collect();
    assert_eq!(left.len(), 1, "only the scheduler's socket: {left:?}");
}

#[test]
fn the_socket_answers_scrapers_and_bare_readers() {
    let folder = tempfile::tempdir().unwrap();
    let (stats, path) = (folder.path().join("stats"), folder.path().join("metrics"));
    let _publisher = Publisher::start(&Target::Socket(path.clone()), &stats).unwrap();
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o660
    );
    let ask = |request: &str| {
        let mut client = UnixStream::connect(&path).unwrap();
        client.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        answer
    };
    let get = "GET /metrics HTTP/1.1\r\nAccept: application/openmetrics-text\r\n\r\n";
    assert!(ask(get).starts_with("HTTP/1.1 503 "));
    scheduler(&stats);
    assert!(ask(get).ends_with("\r\n\r\n# openmetrics\n"));
    assert_eq!(ask(""), "# prometheus\n");
}
