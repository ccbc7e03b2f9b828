//! Where the director looks: the state of sched_ext, the kernel's log, the scheduler's
//! figures, and what the kernel says of a task.
use crate::director::MS;
use crate::sys;
use anyhow::Result;
use std::fs::{read_to_string, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

const SCX: &str = "/sys/kernel/sched_ext";
const STATS_SOCKET: &str = "/var/run/scx/root/stats";
/// A reload that begins at all begins within this, and one that lasts is loaded that long.
const SETTLED_NS: u64 = 3000 * MS;
/// Loading takes seconds in an emulator, and longer on a busy host.
pub const RELOAD_NS: u64 = 180_000 * MS;

/// Whether our scheduler is in charge, and whether it need be.
pub struct Attached {
    folder: PathBuf,
    daemon: i32,
    loads_before: u64,
    /// When the story last did something that unloads it.
    disturbed_at: Option<u64>,
    enabled_since: Option<u64>,
    /// A restart was ordered, and has not been answered.
    ordered: bool,
    replaced: bool,
}

impl Attached {
    pub fn new(folder: &Path) -> Result<Attached> {
        Ok(Attached {
            folder: folder.into(),
            daemon: read_to_string(folder.join("daemon"))?.trim().parse()?,
            loads_before: loads(),
            disturbed_at: None,
            enabled_since: None,
            ordered: false,
            replaced: false,
        })
    }

    pub fn daemon(&self) -> i32 {
        self.daemon
    }

    pub fn loads(&self) -> u64 {
        loads() - self.loads_before
    }

    pub fn is_settled(&self) -> bool {
        self.disturbed_at.is_none()
    }

    pub fn expect_reload(&mut self) {
        self.disturbed_at = Some(sys::now());
        self.enabled_since = None;
    }

    /// Who keeps the scheduler (tests/vm/stress/storm.sh) kills it, starts it again and
    /// leaves its new pid.
    pub fn order_restart(&mut self) -> io::Result<()> {
        self.expect_reload();
        self.ordered = true;
        let _ = std::fs::remove_file(self.folder.join("daemon"));
        let mut orders = OpenOptions::new()
            .write(true)
            .open(self.folder.join("orders"))?;
        orders.write_all(b"restart\n")
    }

    /// Whether it just came to rest again.
    pub fn settle(&mut self) -> bool {
        if self.disturbed_at.is_none() {
            return false;
        }
        if self.ordered {
            let Some(daemon) = read_to_string(self.folder.join("daemon"))
                .ok()
                .and_then(|text| text.trim().parse().ok())
            else {
                return false;
            };
            self.daemon = daemon;
            self.ordered = false;
            self.replaced = true;
        }
        if !is_ours() {
            self.enabled_since = None;
            return false;
        }
        let since = *self.enabled_since.get_or_insert_with(sys::now);
        if sys::now() - since < SETTLED_NS {
            return false;
        }
        self.disturbed_at = None;
        true
    }

    /// Whether another daemon came, asked once.
    pub fn is_new(&mut self) -> bool {
        std::mem::take(&mut self.replaced)
    }

    pub fn is_overdue(&self) -> bool {
        let since = |at| sys::now() - at;
        self.disturbed_at.is_some_and(|at| since(at) > RELOAD_NS)
    }

    pub fn complaint(&self) -> Option<String> {
        match self.disturbed_at {
            Some(_) => None,
            None if is_ours() => None,
            None => Some(format!("state {}, ops {}", scx("state"), scx("root/ops"))),
        }
    }
}

fn scx(file: &str) -> String {
    let text = read_to_string(format!("{SCX}/{file}")).unwrap_or_default();
    text.trim().into()
}

fn loads() -> u64 {
    scx("enable_seq").parse().unwrap_or(0)
}

fn is_ours() -> bool {
    scx("state") == "enabled" && scx("root/ops").starts_with("temponet")
}

/// What tests/vm/guest/lib.sh (check_dmesg) looks for: all of these in one line.
const COMPLAINTS: [&[&str]; 8] = [
    &["runnable task stall"],
    &["WARNING:"],
    &["BUG:"],
    &["rcu", "stall"],
    &["soft lockup"],
    &["blocked for more than"],
    &["RCU", "detected"],
    &["disabled (runtime error"],
];

pub struct KernelLog(File);

impl KernelLog {
    /// From now on.
    pub fn open() -> Result<KernelLog> {
        let mut log = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NONBLOCK)
            .open("/dev/kmsg")?;
        log.seek(SeekFrom::End(0))?;
        Ok(KernelLog(log))
    }

    pub fn complaint(&mut self) -> Option<String> {
        let mut record = [0; 8192];
        loop {
            match self.0.read(&mut record) {
                Ok(length) => {
                    let text = String::from_utf8_lossy(&record[..length]);
                    if complains(&text) {
                        return Some(text.trim().into());
                    }
                }
                // Overtaken by the log: the next read is of what is left.
                Err(error) if error.raw_os_error() == Some(libc::EPIPE) => {}
                Err(_) => return None,
            }
        }
    }
}

fn complains(line: &str) -> bool {
    COMPLAINTS
        .iter()
        .any(|words| words.iter().all(|word| line.contains(word)))
}

/// The scheduler's own figures, without ever waiting for it: it may be stopped.
#[derive(Default)]
pub struct Stats {
    stream: Option<UnixStream>,
    answer: Vec<u8>,
    asked: bool,
}

impl Stats {
    /// The longest wait of any class, in us, with its name, where there is an answer.
    pub fn longest_wait(&mut self) -> Option<(String, u64)> {
        if self.stream.is_none() {
            *self = Stats::default();
            let stream = UnixStream::connect(STATS_SOCKET).ok()?;
            stream.set_nonblocking(true).ok()?;
            self.stream = Some(stream);
        }
        let found = self.converse();
        if found.is_err() {
            self.stream = None;
        }
        found.ok().flatten()
    }

    fn converse(&mut self) -> io::Result<Option<(String, u64)>> {
        let Some(stream) = self.stream.as_mut() else {
            return Ok(None);
        };
        if !self.asked {
            stream.write_all(b"{\"req\":\"stats\",\"args\":{\"target\":\"recent\"}}\n")?;
            self.asked = true;
            return Ok(None);
        }
        let mut part = [0; 65536];
        match stream.read(&mut part) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(length) => self.answer.extend(&part[..length]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) => return Err(error),
        }
        if self.answer.last() != Some(&b'\n') {
            return Ok(None);
        }
        self.asked = false;
        let reply: serde_json::Value = serde_json::from_slice(&std::mem::take(&mut self.answer))?;
        let classes = reply["args"]["resp"]["classes"].as_object();
        Ok(classes
            .into_iter()
            .flatten()
            .filter_map(|(name, figures)| {
                Some((name.clone(), figures["wait_max_us"].as_f64()? as u64))
            })
            .max_by_key(|&(_, wait)| wait))
    }
}

/// The letter of /proc/PID/stat. The name before it may hold spaces and brackets.
pub fn state_of(pid: i32) -> Option<char> {
    let stat = read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

/// How long it has run, in ns, and how often it was given a CPU.
pub fn runs_of(pid: i32) -> Option<(u64, u64)> {
    let text = read_to_string(format!("/proc/{pid}/schedstat")).ok()?;
    let mut fields = text.split_whitespace().map(str::parse);
    let (ran, _, runs) = (fields.next()?, fields.next()?, fields.next()?);
    Some((ran.ok()?, runs.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complaints_of_the_kernel_are_told_from_its_chatter() {
        for line in [
            "sched_ext: temponet: kworker/0:1[33] runnable task stall (failed to run)",
            "rcu: INFO: rcu_preempt self-detected stall on CPU",
            "sched_ext: BPF scheduler \"temponet\" disabled (runtime error)",
        ] {
            assert!(complains(line), "{line}");
        }
        assert!(!complains("sched_ext: BPF scheduler \"temponet\" enabled"));
    }
}
