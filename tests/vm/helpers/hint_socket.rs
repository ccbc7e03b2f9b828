//! The hint socket as a stranger speaks to it: whatever bytes, and no promise to listen.

use std::ffi::OsStr;
use std::io;
use std::mem::zeroed;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

pub const HINT_SOCKET: &str = "/run/scx_temponet/hint.sock";

/// A `SOCK_SEQPACKET` connection; std knows only streams.
pub fn seqpacket(path: &str) -> io::Result<OwnedFd> {
    // SAFETY: all zeros is a valid sockaddr_un; the address lives across the call
    // and the descriptor is new and ours.
    unsafe {
        let fd = libc::socket(libc::AF_UNIX, libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC, 0);
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        let fd = OwnedFd::from_raw_fd(fd);
        let mut addr: libc::sockaddr_un = zeroed();
        addr.sun_family = libc::AF_UNIX as libc::sa_family_t;
        for (to, from) in addr.sun_path.iter_mut().zip(OsStr::new(path).as_bytes()) {
            *to = *from as libc::c_char;
        }
        let size = size_of::<libc::sockaddr_un>() as libc::socklen_t;
        let patience = libc::timeval {
            tv_sec: 2,
            tv_usec: 0,
        };
        for option in [libc::SO_SNDTIMEO, libc::SO_RCVTIMEO] {
            libc::setsockopt(
                fd.as_raw_fd(),
                libc::SOL_SOCKET,
                option,
                (&raw const patience).cast(),
                size_of::<libc::timeval>() as libc::socklen_t,
            );
        }
        if libc::connect(fd.as_raw_fd(), (&raw const addr).cast(), size) < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(fd)
    }
}

pub fn send(fd: &OwnedFd, packet: &[u8]) -> bool {
    // SAFETY: the kernel reads the packet's length.
    let sent = unsafe {
        libc::send(
            fd.as_raw_fd(),
            packet.as_ptr().cast(),
            packet.len(),
            libc::MSG_NOSIGNAL,
        )
    };
    sent == packet.len() as isize
}

/// The status in the reply; None where the daemon hung up or kept silent.
pub fn status(fd: &OwnedFd) -> Option<u32> {
    let mut reply = [0u8; 1024];
    // SAFETY: the kernel writes at most the buffer's length.
    let got = unsafe { libc::recv(fd.as_raw_fd(), reply.as_mut_ptr().cast(), reply.len(), 0) };
    (got >= 12).then(|| u32::from_ne_bytes([reply[8], reply[9], reply[10], reply[11]]))
}

/// As include/temponet_hint.h lays it out, with whatever values.
pub fn request(op: u16, tid: i32, times: [u64; 3], criticality: u32, version: u32) -> Vec<u8> {
    let mut packet = Vec::with_capacity(48);
    packet.extend(0x5450_4e48u32.to_ne_bytes());
    packet.extend(1u16.to_ne_bytes());
    packet.extend(op.to_ne_bytes());
    packet.extend(tid.to_ne_bytes());
    packet.extend(0u32.to_ne_bytes());
    for time in times {
        packet.extend(time.to_ne_bytes());
    }
    packet.extend(criticality.to_ne_bytes());
    packet.extend(version.to_ne_bytes());
    packet
}
