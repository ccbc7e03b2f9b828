//! What users and the director ask of the daemon, a connection each time.
use crate::calls;
use crate::hint_socket::{request, send, seqpacket, status, HINT_SOCKET};

pub const SET: u16 = 1;
pub const CLEAR: u16 = 2;
pub const GET: u16 = 3;
pub const ROOT_SOCKET: &str = "/run/scx_temponet/hint.sock.root";

/// The status of the answer (0 or an errno). None: the daemon cannot be reached, hung up, or
/// did not answer.
pub fn ask(socket: &str, op: u16, tid: i32, runtime: u64, period: u64) -> Option<u32> {
    let packet = request(op, tid, [runtime, period, period], 0, 1);
    let connection = seqpacket(socket).ok()?;
    send(&connection, &packet).then(|| status(&connection))?
}

/// For the calling thread.
pub fn declare(runtime: u64, period: u64) -> Option<u32> {
    ask(HINT_SOCKET, SET, calls::thread_id(), runtime, period)
}

pub fn clear() -> Option<u32> {
    ask(HINT_SOCKET, CLEAR, calls::thread_id(), 0, 0)
}
