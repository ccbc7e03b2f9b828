//! A local user who means ill, for the tests in the guest:
//!
//!     adversary hint SECONDS PID...   floods the hint socket with forged, extreme and
//!                                     broken requests about these and other tasks
//!     adversary stats SECONDS         floods the stats socket: many connections, garbage,
//!                                     lines without end, clients that never read
//!     adversary open-map              exits 1 if it can open the pinned map of hints
//!     adversary map PID               as root: writes what makes no sense, and then what just
//!                                     does, straight into the map as the task's hint, and
//!                                     says for each what the scheduler made of it
//!     adversary sockets PID           exits 1 if the process has a socket that is not
//!                                     local, and says which
//!
//! `hint` and `stats` say on the last line what came of it, as `name=value`.
#[path = "hint_socket.rs"]
mod hint_socket;

use anyhow::{bail, Context, Result};
use hint_socket::{request, send, seqpacket, status, HINT_SOCKET};
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

const STATS_SOCKET: &str = "/var/run/scx/root/stats";
const HINT_MAP: &std::ffi::CStr = c"/sys/fs/bpf/scx_temponet/task_hints";

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
        ["open-map"] => try_to_open_the_map(),
        ["map", _] => forge_hints(numbers(&args[1..])?[0]),
        ["sockets", pid] => foreign_sockets(pid),
        _ => bail!(
            "usage: adversary hint SECONDS PID... | stats SECONDS | open-map | map PID | sockets PID"
        ),
    }
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
    const GOOD: &[u8] = b"{\"req\":\"stats\",\"args\":{\"target\":\"recent\"}}\n";
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

const BPF_MAP_UPDATE_ELEM: libc::c_long = 2;
const BPF_OBJ_GET: libc::c_long = 7;
const BPF_F_RDONLY: u32 = 1 << 3;
const BPF_F_WRONLY: u32 = 1 << 4;

/// The parts of `union bpf_attr` that we need.
#[repr(C)]
struct ObjGet {
    path: u64,
    fd: u32,
    flags: u32,
}

#[repr(C)]
struct Update {
    map: u32,
    reserved: u32,
    key: u64,
    value: u64,
    flags: u64,
}

/// A new descriptor, or what the kernel thinks of that.
fn descriptor(result: libc::c_long) -> io::Result<OwnedFd> {
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just made it, for us.
    Ok(unsafe { OwnedFd::from_raw_fd(result as i32) })
}

fn open_map(flags: u32) -> io::Result<OwnedFd> {
    let attr = ObjGet {
        path: HINT_MAP.as_ptr() as u64,
        fd: 0,
        flags,
    };
    // SAFETY: the kernel reads the struct and the path, which live across the call.
    descriptor(unsafe {
        libc::syscall(
            libc::SYS_bpf,
            BPF_OBJ_GET,
            &raw const attr,
            size_of::<ObjGet>(),
        )
    })
}

fn try_to_open_the_map() -> Result<()> {
    for flags in [0, BPF_F_RDONLY, BPF_F_WRONLY] {
        match open_map(flags) {
            Ok(_) => bail!("the map can be opened, with flags {flags}"),
            Err(error) => println!("flags {flags}: {error}"),
        }
    }
    Ok(())
}

/// As `struct temponet_hint` lays it out.
#[repr(C)]
#[derive(Clone, Copy)]
struct Hint {
    times: [u64; 3],
    criticality: u32,
    version: u32,
}

/// Past the daemon, which would refuse it. The key of task storage is a pidfd.
fn write_hint(map: &OwnedFd, task: &OwnedFd, hint: Hint) -> io::Result<()> {
    let key = task.as_raw_fd();
    let attr = Update {
        map: map.as_raw_fd() as u32,
        reserved: 0,
        key: &raw const key as u64,
        value: &raw const hint as u64,
        flags: 0,
    };
    // SAFETY: the kernel reads the struct, a key of four bytes and a value of the
    // map's size, which is the hint's.
    let result = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            BPF_MAP_UPDATE_ELEM,
            &raw const attr,
            size_of::<Update>(),
        )
    };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Runtime, deadline, period; criticality; version. What the daemon would never let pass.
const SENSELESS: [([u64; 3], u32, u32); 18] = [
    ([0, 0, 0], 0, 1),
    ([0, 40 * MS, 40 * MS], 0, 1),
    ([MS, 0, 40 * MS], 0, 1),
    ([MS, 40 * MS, 0], 0, 1),
    ([u64::MAX, u64::MAX, u64::MAX], 0, 1),
    ([u64::MAX, 40 * MS, 40 * MS], 0, 1),
    ([MS, u64::MAX, 40 * MS], 0, 1),
    ([MS, 40 * MS, u64::MAX], 0, 1),
    ([1 << 63, 1 << 63, 1 << 63], 0, 1),
    ([MS, 40 * MS, 1 << 63], 0, 1),
    ([50 * MS, 40 * MS, 40 * MS], 0, 1),
    ([MS, 50 * MS, 40 * MS], 0, 1),
    ([9_999, 40 * MS, 40 * MS], 0, 1),
    ([10_000, 99_999, 99_999], 0, 1),
    ([MS, 10_000 * MS, 10_000 * MS + 1], 0, 1),
    ([MS, 40 * MS, 40 * MS], 4, 1),
    ([MS, 40 * MS, 40 * MS], u32::MAX, 1),
    ([MS, 40 * MS, 40 * MS], 0, u32::MAX),
];

/// What stands at the edge of sense is taken at its word.
const EXTREME_BUT_VALID: [([u64; 3], u32, u32); 3] = [
    ([10_000, 100_000, 100_000], 0, 1),
    ([100_000, 100_000, 100_000], 3, 1),
    ([10_000 * MS, 10_000 * MS, 10_000 * MS], 3, 1),
];

struct Figures {
    stream: UnixStream,
    replies: BufReader<UnixStream>,
}

impl Figures {
    fn open() -> Result<Figures> {
        let stream = UnixStream::connect(STATS_SOCKET)?;
        let replies = BufReader::new(stream.try_clone()?);
        Ok(Figures { stream, replies })
    }

    /// Since the last call.
    fn next(&mut self) -> Result<serde_json::Value> {
        self.stream
            .write_all(b"{\"req\":\"stats\",\"args\":{\"target\":\"recent\"}}\n")?;
        let mut line = String::new();
        self.replies.read_line(&mut line)?;
        let mut reply: serde_json::Value = serde_json::from_str(&line)?;
        Ok(reply["args"]["resp"].take())
    }
}

/// Each hint stays for a while, in which the task wakes up and its hint is looked at.
fn forge_hints(pid: i32) -> Result<()> {
    let map = open_map(0).context("cannot open the map")?;
    // SAFETY: a plain call.
    let task = descriptor(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) })
        .with_context(|| format!("no task {pid}"))?;
    let mut figures = Figures::open().context("no figures")?;
    let senseless = SENSELESS.map(|hint| ("senseless", hint));
    let valid = EXTREME_BUT_VALID.map(|hint| ("valid", hint));
    for (what, (times, criticality, version)) in senseless.into_iter().chain(valid) {
        let hint = Hint {
            times,
            criticality,
            version,
        };
        write_hint(&map, &task, hint).context("cannot write to the map")?;
        // A job of before may be under way.
        std::thread::sleep(Duration::from_millis(300));
        figures.next()?;
        std::thread::sleep(Duration::from_millis(500));
        let seen = figures.next()?;
        let [runtime, deadline, period] = times;
        println!(
            "{what} runtime={runtime} deadline={deadline} period={period} criticality={criticality} version={version}: invalid={} declared={} runs={}",
            seen["hints_invalid"],
            seen["classes"]["declared"]["runs"],
            seen["classes"]["inferred"]["runs"].as_u64().unwrap_or(0)
                + seen["classes"]["background"]["runs"].as_u64().unwrap_or(0)
        );
    }
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
