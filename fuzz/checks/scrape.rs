//! A request for metrics, by whoever can connect: answered with a page, a refusal, or the bare
//! text for who asks nothing.

use scx_temponet::cli::metrics::http;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;

/// A socket takes so much without anybody who reads.
const LONGEST: usize = 16 << 10;

pub fn check(bytes: &[u8]) {
    let request = &bytes[..bytes.len().min(LONGEST)];
    let (mut asks, answers) = UnixStream::pair().expect("two sockets");
    asks.write_all(request).expect("there is room");
    asks.shutdown(Shutdown::Write).expect("it is connected");
    http::answer(answers, |_| Ok("figures 1\n".into())).expect("an answer fits");
    let mut answer = String::new();
    // What was not read is thrown away with the socket, which the client is told of.
    let _ = asks.read_to_string(&mut answer);
    let is_known = ["HTTP/1.1 200 OK\r\n", "HTTP/1.1 405 ", "figures 1\n"];
    assert!(
        is_known.iter().any(|known| answer.starts_with(known)),
        "{answer}"
    );
    assert_eq!(request.is_empty(), answer == "figures 1\n");
}
