//! What any user may send to the daemon's socket, what it answers, what may lie in
//! the pinned map, and durations as people write them.

use scx_temponet::hint::protocol::{Ask, Reply, Request};
use scx_temponet::hint::{duration, Hint, HINT_BYTES};
use scx_temponet::hint::{CRITICALITY_MAX, PERIOD_MAX_NS, PERIOD_MIN_NS, RUNTIME_MIN_NS};

fn check_hint(hint: &Hint) {
    assert!(RUNTIME_MIN_NS <= hint.runtime_ns());
    assert!(hint.runtime_ns() <= hint.deadline_ns());
    assert!(hint.deadline_ns() <= hint.period_ns());
    assert!((PERIOD_MIN_NS..=PERIOD_MAX_NS).contains(&hint.period_ns()));
    assert!(hint.criticality() <= CRITICALITY_MAX);
    assert!(hint.density() > 0.0 && hint.density() <= 1.0);
}

pub fn check(bytes: &[u8]) {
    match Request::decode(bytes) {
        Ok(request) => {
            assert!(request.tid > 0);
            if let Ask::Set(hint) = &request.ask {
                check_hint(hint);
                assert_eq!(request.encode(), bytes, "one way to say it");
            }
            assert_eq!(Request::decode(&request.encode()), Ok(request));
        }
        Err(error) => {
            assert!(error.errno() > 0);
            let refused = Reply::refused(error.errno(), error.to_string());
            assert_eq!(Reply::decode(&refused.encode()), Ok(refused));
        }
    }
    if let Ok(reply) = Reply::decode(bytes) {
        let again = Reply::decode(&reply.encode()).expect("our own reply");
        assert_eq!((again.status, again.hint), (reply.status, reply.hint));
    }
    if let Some(value) = bytes.first_chunk::<HINT_BYTES>() {
        if let Ok(hint) = Hint::from_bytes(value) {
            check_hint(&hint);
            assert_eq!(&hint.to_bytes(), value);
        }
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = duration::parse(text);
    }
}
