//! As much of HTTP as a scraper needs, and the bare text for who asks nothing.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use crate::agent::stats::Dialect;

/// Who has asked nothing by then gets the text.
const ASK_WITHIN: Duration = Duration::from_millis(300);
/// Who has not read the text by then does not get all of it.
const READ_WITHIN: Duration = Duration::from_secs(1);
const LONGEST_REQUEST: usize = 8 << 10;

/// Answers one request; `figures` says why where there are none.
pub fn answer(
    mut client: UnixStream,
    figures: impl FnOnce(Dialect) -> Result<String, String>,
) -> io::Result<()> {
    client.set_write_timeout(Some(READ_WITHIN))?;
    let request = read_request(&mut client)?;
    let request = String::from_utf8_lossy(&request);
    let is_http = !request.is_empty();
    if is_http && !request.starts_with("GET ") {
        return respond(
            &mut client,
            "405 Method Not Allowed",
            "text/plain",
            "ask with GET\n",
        );
    }
    let dialect = match request
        .to_lowercase()
        .contains("application/openmetrics-text")
    {
        true => Dialect::OpenMetrics,
        false => Dialect::Prometheus,
    };
    match (figures(dialect), is_http) {
        (Ok(text), true) => respond(&mut client, "200 OK", dialect.content_type(), &text),
        (Ok(text), false) => client.write_all(text.as_bytes()),
        (Err(reason), true) => {
            let reason = reason + "\n";
            respond(
                &mut client,
                "503 Service Unavailable",
                "text/plain",
                &reason,
            )
        }
        (Err(_), false) => Ok(()),
    }
}

fn respond(client: &mut UnixStream, status: &str, kind: &str, body: &str) -> io::Result<()> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n"
    );
    client.write_all((head + body).as_bytes())
}

/// Up to the empty line that ends it, or to what came in time.
fn read_request(client: &mut UnixStream) -> io::Result<Vec<u8>> {
    let until = Instant::now() + ASK_WITHIN;
    let mut request = Vec::new();
    let mut part = [0; 1024];
    while request.len() < LONGEST_REQUEST && !request.ends_with(b"\r\n\r\n") {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        client.set_read_timeout(Some(left))?;
        match client.read(&mut part) {
            Ok(0) => break,
            Ok(length) => request.extend_from_slice(&part[..length]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) => return Err(error),
        }
    }
    Ok(request)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a client gets that asks this.
    fn asked(request: &str, figures: Result<String, String>) -> String {
        let (mut client, server) = UnixStream::pair().unwrap();
        client.write_all(request.as_bytes()).unwrap();
        answer(server, |dialect| {
            figures.map(|text| format!("{text} in {dialect:?}\n"))
        })
        .unwrap();
        let mut got = String::new();
        client.read_to_string(&mut got).unwrap();
        got
    }

    #[test]
    fn a_scraper_gets_the_format_that_it_asks_for() {
        let figures = || Ok("figures".to_owned());
        let plain = asked("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", figures());
        assert!(plain.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4"));
        assert!(plain.contains("Content-Length: 22\r\n"), "{plain}");
        assert!(
            plain.ends_with("\r\n\r\nfigures in Prometheus\n"),
            "{plain}"
        );
        let accept = "Accept: application/openmetrics-text;version=1.0.0,text/plain;q=0.1";
        let open = asked(
            &format!("GET /metrics HTTP/1.1\r\n{accept}\r\n\r\n"),
            figures(),
        );
        assert!(open.contains("Content-Type: application/openmetrics-text; version=1.0.0"));
        assert!(open.ends_with("figures in OpenMetrics\n"), "{open}");
    }

    #[test]
    fn who_asks_nothing_gets_the_bare_text() {
        assert_eq!(asked("", Ok("figures".into())), "figures in Prometheus\n");
    }

    #[test]
    fn what_cannot_be_served_is_said() {
        let post = asked("POST / HTTP/1.1\r\n\r\n", Ok(String::new()));
        assert!(post.starts_with("HTTP/1.1 405 "), "{post}");
        let none = asked("GET / HTTP/1.1\r\n\r\n", Err("nobody answers".into()));
        assert!(none.starts_with("HTTP/1.1 503 "), "{none}");
        assert!(none.ends_with("nobody answers\n"), "{none}");
    }
}
