//! The wire between a program and the daemon: `struct temponet_request` and
//! `struct temponet_reply` of the C header, one packet each.
//!
//! Anybody may write to the socket, so [`Request::decode`] takes any bytes and
//! answers with a request whose hint is valid, or with what is wrong.

use super::{abi, Hint, HintError, HINT_BYTES, VERSION};
use std::mem::size_of;
use thiserror::Error;

pub const REQUEST_BYTES: usize = size_of::<abi::temponet_request>();
pub const REPLY_BYTES: usize = size_of::<abi::temponet_reply>();
const REASON_AT: usize = 16 + HINT_BYTES;
const REASON_MAX: usize = REPLY_BYTES - REASON_AT;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    Set(Hint),
    Clear,
    Get,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    pub tid: i32,
    pub ask: Ask,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// 0, or a positive errno.
    pub status: i32,
    pub hint: Option<Hint>,
    pub reason: String,
}

#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ProtocolError {
    #[error("a packet of {got} bytes is not one of {want}")]
    Length { got: usize, want: usize },
    #[error("the packet does not begin with the magic number of a hint")]
    Magic,
    #[error("version {0} of the hint protocol is unknown; this daemon speaks version {VERSION}")]
    Version(u16),
    #[error("operation {0} is unknown")]
    Op(u16),
    #[error("the reserved field is not zero")]
    Reserved,
    #[error("{0} is not a task id")]
    Tid(i32),
    #[error(transparent)]
    Hint(#[from] HintError),
}

impl ProtocolError {
    pub fn errno(&self) -> i32 {
        match self {
            Self::Tid(_) | Self::Hint(_) => libc::EINVAL,
            Self::Op(_) => libc::EOPNOTSUPP,
            _ => libc::EPROTO,
        }
    }
}

impl Request {
    pub fn encode(&self) -> [u8; REQUEST_BYTES] {
        let mut out = [0; REQUEST_BYTES];
        let op = match self.ask {
            Ask::Set(hint) => {
                out[16..16 + HINT_BYTES].copy_from_slice(&hint.to_bytes());
                abi::TEMPONET_OP_SET
            }
            Ask::Clear => abi::TEMPONET_OP_CLEAR,
            Ask::Get => abi::TEMPONET_OP_GET,
        };
        put_head(&mut out, op);
        out[8..12].copy_from_slice(&self.tid.to_ne_bytes());
        out
    }

    pub fn decode(packet: &[u8]) -> Result<Self, ProtocolError> {
        let packet: &[u8; REQUEST_BYTES] =
            packet.try_into().map_err(|_| ProtocolError::Length {
                got: packet.len(),
                want: REQUEST_BYTES,
            })?;
        let op = take_head(packet)?;
        if u32_at(packet, 12) != 0 {
            return Err(ProtocolError::Reserved);
        }
        let tid = u32_at(packet, 8) as i32;
        if tid <= 0 {
            return Err(ProtocolError::Tid(tid));
        }
        let ask = match u32::from(op) {
            abi::TEMPONET_OP_SET => Ask::Set(hint_at(packet, 16)?),
            abi::TEMPONET_OP_CLEAR => Ask::Clear,
            abi::TEMPONET_OP_GET => Ask::Get,
            _ => return Err(ProtocolError::Op(op)),
        };
        Ok(Self { tid, ask })
    }
}

impl Reply {
    pub fn done(hint: Option<Hint>) -> Self {
        Self {
            status: 0,
            hint,
            reason: String::new(),
        }
    }

    pub fn refused(errno: i32, reason: impl Into<String>) -> Self {
        Self {
            status: errno,
            hint: None,
            reason: reason.into(),
        }
    }

    pub fn encode(&self) -> [u8; REPLY_BYTES] {
        let mut out = [0; REPLY_BYTES];
        put_head(&mut out, 0);
        out[8..12].copy_from_slice(&self.status.to_ne_bytes());
        if let Some(hint) = self.hint {
            out[16..16 + HINT_BYTES].copy_from_slice(&hint.to_bytes());
        }
        // The last byte stays NUL, and a character is never cut in two.
        let mut end = self.reason.len().min(REASON_MAX - 1);
        while !self.reason.is_char_boundary(end) {
            end -= 1;
        }
        out[REASON_AT..REASON_AT + end].copy_from_slice(&self.reason.as_bytes()[..end]);
        out
    }

    pub fn decode(packet: &[u8]) -> Result<Self, ProtocolError> {
        let packet: &[u8; REPLY_BYTES] = packet.try_into().map_err(|_| ProtocolError::Length {
            got: packet.len(),
            want: REPLY_BYTES,
        })?;
        take_head(packet)?;
        let reason = &packet[REASON_AT..];
        let end = reason.iter().position(|b| *b == 0).unwrap_or(reason.len());
        let hint = if packet[16..16 + HINT_BYTES].iter().all(|b| *b == 0) {
            None
        } else {
            Some(hint_at(packet, 16)?)
        };
        Ok(Self {
            status: u32_at(packet, 8) as i32,
            hint,
            reason: String::from_utf8_lossy(&reason[..end]).into_owned(),
        })
    }
}

fn put_head(packet: &mut [u8], op: u32) {
    packet[0..4].copy_from_slice(&abi::TEMPONET_MAGIC.to_ne_bytes());
    packet[4..6].copy_from_slice(&(VERSION as u16).to_ne_bytes());
    packet[6..8].copy_from_slice(&(op as u16).to_ne_bytes());
}

fn take_head(packet: &[u8]) -> Result<u16, ProtocolError> {
    if u32_at(packet, 0) != abi::TEMPONET_MAGIC {
        return Err(ProtocolError::Magic);
    }
    let half = |at: usize| u16::from_ne_bytes([packet[at], packet[at + 1]]);
    if u32::from(half(4)) != VERSION {
        return Err(ProtocolError::Version(half(4)));
    }
    Ok(half(6))
}

fn u32_at(packet: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes([packet[at], packet[at + 1], packet[at + 2], packet[at + 3]])
}

fn hint_at(packet: &[u8], at: usize) -> Result<Hint, HintError> {
    let mut value = [0; HINT_BYTES];
    value.copy_from_slice(&packet[at..at + HINT_BYTES]);
    Hint::from_bytes(&value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hints() -> impl Strategy<Value = Hint> {
        (10_000u64..1_000_000, 1u64..100, 1u64..100, 0u32..=3).prop_filter_map(
            "within the limits",
            |(runtime, slack, gap, criticality)| {
                let deadline = runtime * slack;
                Hint::new(runtime, deadline, deadline * gap, criticality).ok()
            },
        )
    }

    #[test]
    fn fields_lie_where_c_puts_them() {
        use std::mem::offset_of;
        assert_eq!((REQUEST_BYTES, REPLY_BYTES), (48, 256));
        assert_eq!(offset_of!(abi::temponet_request, tid), 8);
        assert_eq!(offset_of!(abi::temponet_request, reserved), 12);
        assert_eq!(offset_of!(abi::temponet_request, hint), 16);
        assert_eq!(offset_of!(abi::temponet_reply, status), 8);
        assert_eq!(offset_of!(abi::temponet_reply, hint), 16);
        assert_eq!(offset_of!(abi::temponet_reply, reason), REASON_AT);
    }

    #[test]
    fn each_broken_field_is_named() {
        let hint = Hint::new(1_000_000, 2_000_000, 4_000_000, 0).unwrap();
        let good = Request {
            tid: 7,
            ask: Ask::Set(hint),
        }
        .encode();
        let broken = |at: usize, value: u8| {
            let mut packet = good;
            packet[at] = value;
            Request::decode(&packet).unwrap_err()
        };
        assert_eq!(broken(0, 0), ProtocolError::Magic);
        assert_eq!(broken(4, 9), ProtocolError::Version(9));
        assert_eq!(broken(6, 77), ProtocolError::Op(77));
        assert_eq!(broken(8, 0), ProtocolError::Tid(0));
        assert_eq!(broken(12, 1), ProtocolError::Reserved);
        assert!(matches!(broken(23, 1), ProtocolError::Hint(_)));
        assert!(matches!(
            Request::decode(&good[..47]),
            Err(ProtocolError::Length { got: 47, .. })
        ));
    }

    proptest! {
        #[test]
        fn any_bytes_decode_to_a_valid_request_or_an_error(
            bytes in proptest::collection::vec(any::<u8>(), 0..300)
        ) {
            let _ = Request::decode(&bytes);
            let _ = Reply::decode(&bytes);
        }

        /// Random bytes hardly ever get past the magic number; these do.
        #[test]
        fn damaged_requests_never_yield_an_invalid_hint(
            hint in hints(), tid in 1i32.., at in 4usize..REQUEST_BYTES, value: u8
        ) {
            let mut packet = Request { tid, ask: Ask::Set(hint) }.encode();
            packet[at] = value;
            if let Ok(Request { tid, ask }) = Request::decode(&packet) {
                prop_assert!(tid > 0);
                if let Ask::Set(h) = ask {
                    prop_assert!(h.runtime_ns() > 0 && h.runtime_ns() <= h.deadline_ns());
                    prop_assert!(h.deadline_ns() <= h.period_ns());
                }
            }
        }

        #[test]
        fn requests_and_replies_survive_the_wire(
            hint in hints(), tid in 1i32.., reason in "\\PC{0,300}", status in 0i32..200
        ) {
            for ask in [Ask::Set(hint), Ask::Clear, Ask::Get] {
                let request = Request { tid, ask };
                prop_assert_eq!(Request::decode(&request.encode()), Ok(request));
            }
            let reply = Reply { status, hint: Some(hint), reason: reason.clone() };
            let back = Reply::decode(&reply.encode()).unwrap();
            prop_assert_eq!(back.hint, Some(hint));
            prop_assert_eq!(back.status, status);
            prop_assert!(reason.starts_with(&back.reason));
        }
    }
}
