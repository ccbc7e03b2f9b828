//! Those who send garbage, floods, or nothing.

use super::*;
use std::io;
use std::path::Path;

fn raw_socket() -> i32 {
    // SAFETY: no pointers.
    unsafe { libc::socket(libc::AF_UNIX, libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC, 0) }
}

fn address(path: &Path) -> libc::sockaddr_un {
    // SAFETY: all zeros is a valid sockaddr_un.
    let mut addr: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    addr.sun_family = libc::AF_UNIX as u16;
    for (to, from) in addr.sun_path.iter_mut().zip(path.to_str().unwrap().bytes()) {
        *to = from as libc::c_char;
    }
    addr
}

pub struct Raw(i32);

impl Drop for Raw {
    fn drop(&mut self) {
        // SAFETY: ours.
        unsafe { libc::close(self.0) };
    }
}

pub fn raw_listener(path: &Path) -> Raw {
    let (fd, addr) = (raw_socket(), address(path));
    // SAFETY: addr has the length given.
    let bound = unsafe { libc::bind(fd, (&raw const addr).cast(), size_of_val(&addr) as u32) };
    assert_eq!(bound, 0);
    Raw(fd)
}

pub fn raw_client(path: &Path) -> Raw {
    let (fd, addr) = (raw_socket(), address(path));
    // SAFETY: addr has the length given.
    let joined = unsafe { libc::connect(fd, (&raw const addr).cast(), size_of_val(&addr) as u32) };
    assert_eq!(joined, 0, "{}", io::Error::last_os_error());
    Raw(fd)
}

impl Raw {
    fn send(&self, packet: &[u8]) -> isize {
        // SAFETY: the packet's length.
        unsafe {
            libc::send(
                self.0,
                packet.as_ptr().cast(),
                packet.len(),
                libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT,
            )
        }
    }

    pub fn recv(&self) -> (isize, [u8; 512]) {
        let mut packet = [0; 512];
        // SAFETY: the buffer's length.
        let got = unsafe { libc::recv(self.0, packet.as_mut_ptr().cast(), packet.len(), 0) };
        (got, packet)
    }
}

#[test]
fn garbage_is_answered_once_and_then_cut_off() {
    let service = service();
    for packet in [vec![0u8; 48], vec![7; 1], vec![0xff; 4000]] {
        let client = raw_client(&service.socket);
        assert_eq!(client.send(&packet), packet.len() as isize);
        let (got, reply) = client.recv();
        assert_eq!(got, 256);
        assert_eq!(
            i32::from_ne_bytes(reply[8..12].try_into().unwrap()),
            libc::EPROTO
        );
        assert_eq!(client.recv().0, 0, "closed");
    }
    let empty = raw_client(&service.socket);
    empty.send(&[]);
    assert_eq!(empty.recv().0, 0);
    service.client().set(me(), &hint(1, 10)).unwrap();
}

#[test]
fn who_never_reads_and_who_never_speaks_is_dropped_while_others_are_served() {
    let service = service();
    let silent = raw_client(&service.socket);
    let deaf = raw_client(&service.socket);
    use scx_temponet::hint::protocol::{Ask, Request};
    let ask = Request {
        tid: me(),
        ask: Ask::Get,
    }
    .encode();
    let start = Instant::now();
    let cut_off = loop {
        if deaf.send(&ask) < 0 {
            let error = io::Error::last_os_error();
            if error.raw_os_error() == Some(libc::EPIPE)
                || error.raw_os_error() == Some(libc::ECONNRESET)
            {
                break true;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        if start.elapsed() > Duration::from_secs(10) {
            break false;
        }
    };
    assert!(cut_off, "answers nobody reads do not pile up");
    service.client().set(me(), &hint(1, 10)).unwrap();
    assert_eq!(silent.recv().0, 0, "closed after the silence");
}

#[test]
fn one_user_cannot_take_all_connections() {
    if !root("one_user_cannot_take_all_connections") {
        return;
    }
    let service = service();
    let crowd: Vec<_> = as_nobody(|| {
        let crowd = (0..40).map(|_| raw_client(&service.socket)).collect();
        let (errno, reason) = refusal(
            HintClient::connect_to(&service.socket).and_then(|c| c.set(me(), &hint(1, 10))),
        );
        assert_eq!(errno, libc::EAGAIN, "{reason}");
        crowd
    });
    service.client().set(me(), &hint(1, 10)).unwrap();
    drop(crowd);
}

#[test]
fn a_flood_of_requests_is_slowed_for_its_sender_only() {
    if !root("a_flood_of_requests_is_slowed_for_its_sender_only") {
        return;
    }
    let service = service();
    let (slowest, flood) = std::thread::scope(|scope| {
        let flood = scope.spawn(|| {
            as_nobody(|| {
                let client = service.client();
                let start = Instant::now();
                for _ in 0..1012 {
                    client.get(me()).unwrap();
                }
                start.elapsed()
            })
        });
        let mut slowest = Duration::ZERO;
        while !flood.is_finished() {
            let start = Instant::now();
            service.client().get(me()).unwrap();
            slowest = slowest.max(start.elapsed());
            std::thread::sleep(Duration::from_millis(20));
        }
        (slowest, flood.join().unwrap())
    });
    // 1,000 a second.
    assert!(flood > Duration::from_millis(900), "{flood:?}");
    assert!(slowest < flood / 2, "{slowest:?} of {flood:?}");
}
