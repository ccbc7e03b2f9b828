//! Watches what runs, through `bpf/record.bpf.c`: with any scheduler, and none of
//! ours loaded.

use std::io::Read as _;
use std::mem::MaybeUninit;
use std::sync::{Arc, Mutex};

use anyhow::{Context, Result};
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{
    num_possible_cpus, Iter, Link, OpenObject, ProgramMut, RingBuffer, RingBufferBuilder,
};

#[allow(
    clippy::all,
    clippy::undocumented_unsafe_blocks,
    non_camel_case_types,
    non_upper_case_globals,
    dead_code
)]
mod skel {
    include!(concat!(env!("OUT_DIR"), "/record_skel.rs"));
}

#[allow(
    clippy::all,
    clippy::undocumented_unsafe_blocks,
    non_camel_case_types,
    non_upper_case_globals,
    non_snake_case,
    dead_code
)]
mod intf {
    include!(concat!(env!("OUT_DIR"), "/record_intf.rs"));
}

use skel::{RecordSkel, RecordSkelBuilder};

/// What a record tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordKind {
    /// From a wake-up until the task slept or ended.
    Job,
    /// The job goes on.
    Part,
    /// One stretch on one CPU.
    Stretch,
}

/// Times are nanoseconds of CLOCK_MONOTONIC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskRecord {
    pub kind: RecordKind,
    pub tid: u32,
    pub tgid: u32,
    pub cpu: u32,
    pub comm: String,
    pub release_ns: u64,
    pub end_ns: u64,
    pub run_ns: u64,
    /// Jobs in it: more than one where they came too fast.
    pub jobs: u32,
}

/// The layout of `struct record`, by its fields.
fn decode(bytes: &[u8]) -> Option<TaskRecord> {
    const WORDS: usize = std::mem::offset_of!(intf::record, tid);
    const COMM: usize = std::mem::offset_of!(intf::record, comm);
    const COMM_LEN: usize = intf::record_consts_RECORD_COMM_LEN as usize;
    let bytes = bytes.get(..std::mem::size_of::<intf::record>())?;
    let long = |i: usize| -> Option<u64> {
        Some(u64::from_ne_bytes(
            bytes.get(8 * i..8 * i + 8)?.try_into().ok()?,
        ))
    };
    let short = |i: usize| -> Option<u32> {
        let at = WORDS + 4 * i;
        Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
    };
    let comm = &bytes[COMM..COMM + COMM_LEN];
    let comm = comm.split(|&byte| byte == 0).next().unwrap_or_default();
    Some(TaskRecord {
        kind: match short(3)? {
            intf::record_kind_RECORD_JOB => RecordKind::Job,
            intf::record_kind_RECORD_PART => RecordKind::Part,
            intf::record_kind_RECORD_STRETCH => RecordKind::Stretch,
            _ => return None,
        },
        tid: short(0)?,
        tgid: short(1)?,
        cpu: short(2)?,
        comm: String::from_utf8_lossy(comm).into_owned(),
        release_ns: long(0)?,
        end_ns: long(1)?,
        run_ns: long(2)?,
        jobs: short(4)?,
    })
}

/// Now, as the records have it.
pub fn now_ns() -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: a valid timespec to write to; this clock always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// What went less than well.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// Records that found the buffer full; their run time is in the task's next one.
    pub postponed: u64,
    /// Times that a task could not be followed for want of memory.
    pub unseen: u64,
}

type Sink = Arc<Mutex<Vec<TaskRecord>>>;

/// A recording that is going on.
pub struct Recorder<'a> {
    skel: RecordSkel<'a>,
    links: Vec<Link>,
    buffer: RingBuffer<'a>,
    sink: Sink,
    pub start_ns: u64,
}

impl<'a> Recorder<'a> {
    /// Of all tasks, or of the threads of one process.
    pub fn start(
        only_tgid: Option<u32>,
        storage: &'a mut MaybeUninit<OpenObject>,
    ) -> Result<Recorder<'a>> {
        scx_utils::try_set_rlimit_infinity();
        let mut open = RecordSkelBuilder::default()
            .open(storage)
            .context("cannot open the BPF recorder")?;
        if let Some(rodata) = open.maps.rodata_data.as_mut() {
            rodata.own_tgid = std::process::id();
        }
        let cpus = num_possible_cpus().context("cannot count the CPUs of this machine")?;
        open.maps.cpus.set_max_entries(cpus as u32)?;
        let mut skel = open.load().context(
            "cannot load the BPF recorder (it needs root and a kernel with BTF; see `doctor`)",
        )?;
        let sink = Sink::default();
        let target = sink.clone();
        let mut builder = RingBufferBuilder::new();
        builder.add(&skel.maps.records, move |bytes| {
            if let (Some(record), Ok(mut records)) = (decode(bytes), target.lock()) {
                records.push(record);
            }
            0
        })?;
        let buffer = builder.build()?;
        if let Some(bss) = skel.maps.bss_data.as_mut() {
            bss.only_tgid = only_tgid.unwrap_or(0);
        }
        let progs = &skel.progs;
        let links = vec![
            progs.on_switch.attach(),
            progs.on_wakeup.attach(),
            progs.on_wakeup_new.attach(),
        ];
        let links = links
            .into_iter()
            .collect::<Result<_, _>>()
            .context("cannot attach the BPF recorder")?;
        walk_tasks(&progs.prime)?;
        // Attaching takes a while: what is seen counts from here.
        let start_ns = now_ns();
        if let Some(bss) = skel.maps.bss_data.as_mut() {
            bss.start_ns = start_ns;
        }
        Ok(Recorder {
            skel,
            links,
            buffer,
            sink,
            start_ns,
        })
    }

    /// What has come in since the last call; several times a second, or the buffer
    /// fills.
    pub fn drain(&mut self) -> Result<Vec<TaskRecord>> {
        self.buffer.consume()?;
        let mut records = self.sink.lock().unwrap_or_else(|e| e.into_inner());
        Ok(std::mem::take(&mut *records))
    }

    /// Ends it: the rest, when it ended, and what was lost.
    pub fn finish(mut self) -> Result<(Vec<TaskRecord>, u64, Lost)> {
        // Detaching takes a while too.
        let end_ns = now_ns();
        if let Some(bss) = self.skel.maps.bss_data.as_mut() {
            bss.end_ns = end_ns;
        }
        self.links.clear();
        let mut records = self.drain()?;
        walk_tasks(&self.skel.progs.flush)?;
        records.extend(self.drain()?);
        let bss = self.skel.maps.bss_data.as_ref();
        let lost = bss.map_or(Lost::default(), |bss| Lost {
            postponed: bss.postponed,
            unseen: bss.unseen,
        });
        Ok((records, end_ns, lost))
    }
}

/// Runs an iterator program over all tasks.
fn walk_tasks(program: &ProgramMut) -> Result<()> {
    let walk = || -> Result<()> {
        let link = program.attach()?;
        // It writes nothing; reading drives it to the end.
        Iter::new(&link)?.read_to_end(&mut Vec::new())?;
        Ok(())
    };
    walk().context("cannot walk the tasks of this machine")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_has_the_layout_of_the_c_struct() {
        // SAFETY: zeroes are a valid value of this struct of integers.
        let mut raw: intf::record = unsafe { std::mem::zeroed() };
        raw.release_ns = 1;
        raw.end_ns = 2;
        raw.run_ns = 3;
        raw.tid = 4;
        raw.tgid = 5;
        raw.cpu = 6;
        raw.kind = intf::record_kind_RECORD_PART;
        raw.jobs = 7;
        for (to, from) in raw.comm.iter_mut().zip(b"rt-app") {
            *to = *from as _;
        }
        // SAFETY: a plain struct without padding, read as bytes.
        let bytes = unsafe {
            std::slice::from_raw_parts(
                (&raw as *const intf::record).cast::<u8>(),
                std::mem::size_of_val(&raw),
            )
        };
        let expected = TaskRecord {
            kind: RecordKind::Part,
            tid: 4,
            tgid: 5,
            cpu: 6,
            comm: "rt-app".into(),
            release_ns: 1,
            end_ns: 2,
            run_ns: 3,
            jobs: 7,
        };
        assert_eq!(decode(bytes), Some(expected));
        assert_eq!(decode(&bytes[1..]), None);
    }
}
