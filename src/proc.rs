//! What the kernel says of tasks in /proc, read through the `procfs` crate.
//!
//! The crate refuses text that is not UTF-8, and any program may choose such a name for
//! itself. So the text is made UTF-8 first: what is odd about a name must not hide the task.
//! Two things are not read by the crate: the namespaces of a peer (`hint/server.rs`), because
//! it fails for all kinds where one cannot be read, and a thread's name, which it does not know.

use std::io::{self, Read};
use std::path::Path;

use procfs::process::{all_processes_with_root, Process, Status, Task};
use procfs::{FromRead, ProcResult, ProcessCGroups};

/// More than any of the files that are read here has.
const MOST: u64 = 1024 * 1024;

/// A file as text, whatever bytes it has.
pub struct Text(String);

impl FromRead for Text {
    fn from_read<R: Read>(from: R) -> ProcResult<Text> {
        let mut bytes = Vec::new();
        from.take(MOST).read_to_end(&mut bytes)?;
        Ok(Text(String::from_utf8_lossy(&bytes).into_owned()))
    }
}

/// The file's answer, or nothing where it is none.
pub fn parse<T: FromRead>(bytes: &[u8]) -> Option<T> {
    let text = String::from_utf8_lossy(bytes);
    T::from_read(text.as_bytes()).ok()
}

/// All threads of all processes but `without`; those that exit meanwhile may be missing.
pub fn threads(proc: &Path, without: Option<u32>) -> impl Iterator<Item = Task> {
    let processes = all_processes_with_root(proc)
        .into_iter()
        .flatten()
        .flatten();
    let processes =
        processes.filter(move |process| without.map(|pid| pid as i32) != Some(process.pid));
    processes
        .filter_map(|process| process.tasks().ok())
        .flatten()
        .flatten()
}

/// The ids of a process's threads, in order.
pub fn thread_ids(pid: i32) -> io::Result<Vec<i32>> {
    let tasks = Process::new(pid).and_then(|process| process.tasks());
    let tasks = tasks.map_err(|_| io::Error::from_raw_os_error(libc::ESRCH))?;
    let mut tids: Vec<i32> = tasks.flatten().map(|task| task.tid).collect();
    tids.sort_unstable();
    Ok(tids)
}

/// The name of a thread; any program chooses its own, so it may have odd characters.
pub fn comm(task: &Task) -> Option<String> {
    let text: Text = task.read("comm").ok()?;
    Some(text.0.trim_end_matches('\n').to_owned())
}

/// Real, effective, saved and file-system user id of a thread.
pub fn uids(task: &Task) -> Option<[u32; 4]> {
    let text: Text = task.read("status").ok()?;
    let status: Status = parse(text.0.as_bytes())?;
    Some([status.ruid, status.euid, status.suid, status.fuid])
}

/// The name of a thread as it may be shown; empty where there is none.
pub fn printable_comm(tid: i32) -> String {
    let text = Text::from_file(format!("/proc/{tid}/comm"));
    text.map_or(String::new(), |text| {
        printable(text.0.trim_end_matches('\n'))
    })
}

/// A name without what a terminal would obey.
pub fn printable(name: &str) -> String {
    name.chars()
        .map(|c| if is_obeyed(c) { '?' } else { c })
        .collect()
}

/// Control characters, and those that turn the direction of the text around them.
pub fn is_obeyed(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A name as the kernel keeps it, up to the NUL, as it may be shown.
pub fn printable_bytes(comm: &[u8]) -> String {
    let len = comm.iter().position(|&c| c == 0).unwrap_or(comm.len());
    printable(&String::from_utf8_lossy(&comm[..len]))
}

/// Where the thread stands in the unified hierarchy, such as `/user.slice/app`.
pub fn cgroup(task: &Task) -> Option<String> {
    let text: Text = task.read("cgroup").ok()?;
    let groups: ProcessCGroups = parse(text.0.as_bytes())?;
    let unified = groups.into_iter().find(|group| group.hierarchy == 0)?;
    Some(unified.pathname)
}
