//! A local user who means ill, for the tests in the guest:
//!
//!     adversary hint SECONDS PID...   floods the hint socket with forged, extreme and
//!                                     broken requests about these and other tasks
//!     adversary stats SECONDS         floods the stats socket: many connections, garbage,
//!                                     lines without end, clients that never read
//!     adversary sockets PID           exits 1 if the process has a socket that is not
//!                                     local, and says which
//!
//! `hint` and `stats` say on the last line what came of it, as `name=value`.
use anyhow::{bail, Context, Result};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::mem::zeroed;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

const HINT_SOCKET: &str = "/run/scx_temponet/hint.sock";
const STATS_SOCKET: &str = "/var/run/scx/root/stats";

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let seconds = |text: &String| -> Result<Duration> {
        Ok(Duration::from_secs(
            text.parse().context("how many seconds?")?,
        ))
    };
    let numbers = |texts: &[String]| -> Result<Vec<i32>> {
        texts
            .iter()
            .map(|text| text.parse().with_context(|| format!("{text} is no pid")))
            .collect()
    };
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["hint", _, ..] => flood_hints(seconds(&args[1])?, &numbers(&args[2..])?),
        ["stats", _] => flood_stats(seconds(&args[1])?),
        ["sockets", pid] => foreign_sockets(pid),
        _ => bail!("usage: adversary hint SECONDS PID... | stats SECONDS | sockets PID"),
    }
}

/// A `SOCK_SEQPACKET` connection; std knows only streams.
fn seqpacket(path: &str) -> io::Result<OwnedFd> {
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

fn send(fd: &OwnedFd, packet: &[u8]) -> bool {
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
fn status(fd: &OwnedFd) -> Option<u32> {
    let mut reply = [0u8; 1024];
    // SAFETY: the kernel writes at most the buffer's length.
    let got = unsafe { libc::recv(fd.as_raw_fd(), reply.as_mut_ptr().cast(), reply.len(), 0) };
    (got >= 12).then(|| u32::from_ne_bytes([reply[8], reply[9], reply[10], reply[11]]))
}

/// As include/temponet_hint.h lays it out, with whatever values.
fn request(op: u16, tid: i32, times: [u64; 3], criticality: u32, version: u32) -> Vec<u8> {
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

const MS: u64 = 1_000_000;
/// Zero, one, all ones, the largest signed number and its successor ("negative"),
/// and a few that look like times.
const EXTREME: [u64; 8] = [
    0,
    1,
    MS,
    40 * MS,
    10_000 * MS,
    i64::MAX as u64,
    1 << 63,
    u64::MAX,
];

fn flood_hints(time: Duration, pids: &[i32]) -> Result<()> {
    let until = Instant::now() + time;
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    let mut tids = vec![0, -1, i32::MIN, i32::MAX, 1, 2];
    tids.extend(pids);
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    // xorshift: the same flood every time.
    let mut random = |n: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % n as u64) as usize
    };
    let mut idle = Vec::new();
    while Instant::now() < until {
        let Ok(fd) = seqpacket(HINT_SOCKET) else {
            *counts.entry("not_connected".into()).or_default() += 1;
            std::thread::sleep(Duration::from_millis(1));
            continue;
        };
        let times = [EXTREME[random(8)], EXTREME[random(8)], EXTREME[random(8)]];
        let op = random(6) as u16;
        let criticality = [0, 1, 3, 4, u32::MAX][random(5)];
        let version = [1, 0, 2, u32::MAX][random(4)];
        let mut packet = request(op, tids[random(tids.len())], times, criticality, version);
        match random(8) {
            0 => packet.truncate(random(packet.len())),
            1 => packet.resize(64 * 1024, 0xff),
            2 => {
                let at = random(packet.len());
                packet[at] ^= 1 << random(8);
            }
            // Connects and keeps silent, or asks and does not read.
            3 => {
                idle.push(fd);
                if idle.len() > 64 {
                    idle.clear();
                }
                continue;
            }
            _ => {}
        }
        let name = match send(&fd, &packet).then(|| status(&fd)).flatten() {
            Some(0) => "granted".into(),
            Some(errno) => format!("refused_{errno}"),
            None => "hung_up".into(),
        };
        *counts.entry(name).or_default() += 1;
    }
    println!("{}", summary(&counts));
    Ok(())
}

fn summary(counts: &BTreeMap<String, u64>) -> String {
    let words: Vec<String> = counts
        .iter()
        .map(|(name, n)| format!("{name}={n}"))
        .collect();
    words.join(" ")
}

fn flood_stats(time: Duration) -> Result<()> {
    const CLIENTS: usize = 200;
    const GOOD: &[u8] = b"{\"req\":\"stats\",\"args\":{\"target\":\"top\"}}\n";
    let until = Instant::now() + time;
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    let mut clients: Vec<UnixStream> = Vec::new();
    let garbage: [&[u8]; 7] = [
        b"\n",
        b"{}\n",
        b"{\"req\":\"nothing\"}\n",
        b"{\"req\":\"stats\",\"args\":{\"target\":\"none\"}}\n",
        b"\xff\xfe\x00\n",
        b"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\n",
        GOOD,
    ];
    let endless = vec![b'x'; 1 << 20];
    let mut turn = 0;
    while Instant::now() < until {
        turn += 1;
        let mut stream = match UnixStream::connect(STATS_SOCKET) {
            Ok(stream) => stream,
            Err(error) => {
                *counts
                    .entry(format!(
                        "not_connected_{}",
                        error.raw_os_error().unwrap_or(0)
                    ))
                    .or_default() += 1;
                std::thread::sleep(Duration::from_millis(10));
                continue;
            }
        };
        stream.set_nonblocking(true)?;
        let _ = match turn % 10 {
            0 => stream.write(&endless),
            _ => stream.write(garbage[turn % garbage.len()]),
        };
        let mut answer = [0; 4096];
        if turn % 3 == 0 {
            stream.set_nonblocking(false)?;
            stream.set_read_timeout(Some(Duration::from_millis(50)))?;
            let read = matches!(stream.read(&mut answer), Ok(1..));
            *counts
                .entry(if read { "answered" } else { "silent" }.into())
                .or_default() += 1;
        }
        *counts.entry("connected".into()).or_default() += 1;
        clients.push(stream);
        if clients.len() > CLIENTS {
            clients.clear();
        }
    }
    println!("{}", summary(&counts));
    Ok(())
}

/// Sockets of the process that are in one of the tables of other families than Unix.
fn foreign_sockets(pid: &str) -> Result<()> {
    let mut inodes = Vec::new();
    for entry in std::fs::read_dir(format!("/proc/{pid}/fd"))? {
        let link = std::fs::read_link(entry?.path())?;
        let name = link.to_string_lossy().into_owned();
        if let Some(inode) = name
            .strip_prefix("socket:[")
            .and_then(|n| n.strip_suffix(']'))
        {
            inodes.push(inode.to_owned());
        }
    }
    let tables = [
        "unix", "tcp", "tcp6", "udp", "udp6", "raw", "raw6", "netlink", "packet",
    ];
    let mut foreign = Vec::new();
    for inode in &inodes {
        let place = tables.iter().find(|table| {
            std::fs::read_to_string(Path::new("/proc").join(pid).join("net").join(table))
                .is_ok_and(|text| text.split_whitespace().any(|word| word == inode))
        });
        if place != Some(&"unix") {
            foreign.push(format!("{}:{inode}", place.unwrap_or(&"unknown")));
        }
    }
    println!("sockets={} foreign={}", inodes.len(), foreign.join(","));
    if inodes.is_empty() {
        bail!("process {pid} has no socket at all: is it the daemon?");
    }
    if !foreign.is_empty() {
        bail!("process {pid} has sockets that are not local");
    }
    Ok(())
}
