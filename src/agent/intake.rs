//! What comes up from the BPF half, kept in room that was taken beforehand: records on
//! their way from the ring to the mirror, and the truth about all declared tasks.

use std::io::{self, Read};

use libbpf_rs::{Iter, Link};

use super::ring_record::{RingRecord, RECORD_LEN};

/// Records on their way from the ring to the mirror.
pub struct Inbox {
    records: Box<[RingRecord; Inbox::ROOM]>,
    len: usize,
    bad: u64,
}

impl Inbox {
    /// The ring is asked for no more than so many at a time.
    pub const ROOM: usize = 64;

    /// Takes one that was read, or none where the bytes made no sense.
    pub fn push(&mut self, record: Option<RingRecord>) {
        match (record, self.records.get_mut(self.len)) {
            (Some(record), Some(slot)) => {
                *slot = record;
                self.len += 1;
            }
            _ => self.bad += 1,
        }
    }

    pub fn records(&self) -> &[RingRecord] {
        &self.records[..self.len]
    }

    pub fn bad(&self) -> u64 {
        self.bad
    }

    pub fn clear(&mut self) {
        self.len = 0;
        self.bad = 0;
    }
}

impl Default for Inbox {
    fn default() -> Inbox {
        Inbox {
            records: Box::new([RingRecord::EMPTY; Inbox::ROOM]),
            len: 0,
            bad: 0,
        }
    }
}

/// How all declared tasks stand, by the program that tells of them.
pub struct Truth {
    program: Link,
    buffer: Vec<u8>,
    records: Vec<RingRecord>,
    bad: u64,
}

impl Truth {
    pub fn new(program: Link) -> Truth {
        Truth {
            program,
            buffer: vec![0; 256 * RECORD_LEN],
            records: Vec::with_capacity(1024),
            bad: 0,
        }
    }

    /// Asks the kernel; `records` has the answer from then on.
    pub fn read(&mut self) -> io::Result<()> {
        self.records.clear();
        self.bad = 0;
        let mut tasks = Iter::new(&self.program).map_err(io::Error::other)?;
        let mut filled = 0;
        loop {
            let read = match tasks.read(&mut self.buffer[filled..]) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                read => read?,
            };
            if read == 0 {
                return Ok(());
            }
            filled += read;
            let whole = filled - filled % RECORD_LEN;
            for bytes in self.buffer[..whole].chunks_exact(RECORD_LEN) {
                match RingRecord::read(bytes) {
                    Some(record) => self.records.push(record),
                    None => self.bad += 1,
                }
            }
            self.buffer.copy_within(whole..filled, 0);
            filled -= whole;
        }
    }

    pub fn records(&self) -> &[RingRecord] {
        &self.records
    }

    /// How many of the last answer made no sense.
    pub fn bad(&self) -> u64 {
        self.bad
    }
}
