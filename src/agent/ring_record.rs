//! What the BPF half tells of a task, read from bytes that anybody might have
//! written.

use crate::intf;
use crate::policy::{CpuId, CpuMask, MAX_CPUS};

const RUNNABLE: u32 = intf::temponet_record_flags_TN_REC_RUNNABLE;
const RUNNING: u32 = intf::temponet_record_flags_TN_REC_RUNNING;
const EXITED: u32 = intf::temponet_record_flags_TN_REC_EXITED;
const PINNED: u32 = intf::temponet_record_flags_TN_REC_PINNED;
const DECLARED: u32 = intf::temponet_record_flags_TN_REC_DECLARED;
const FIRST: u32 = intf::temponet_record_flags_TN_REC_FIRST;

/// A hundred years: beyond it two times can still be added.
const LATEST_NS: u64 = 3_200_000_000_000_000_000;

/// Length of a record in the ring and from the iterator.
pub const RECORD_LEN: usize = std::mem::size_of::<intf::temponet_record>();

/// How a task with a declared deadline stood at a moment. Times are nanoseconds on
/// the clock of the BPF half.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RingRecord {
    /// 0 where only `monotonic_ns` is known.
    pub at_ns: i64,
    pub monotonic_ns: i64,
    pub pid: u32,
    /// With the pid, names a task for good.
    pub start_time: u64,
    pub comm: [u8; 16],
    /// Number of its job.
    pub job: u64,
    pub release_ns: i64,
    pub deadline_ns: i64,
    pub relative_deadline_ns: i64,
    pub period_ns: i64,
    pub executed_ns: i64,
    /// What its jobs take, and how far that varies.
    pub cost_ns: i64,
    pub spread_ns: i64,
    /// What they were declared to take at most.
    pub declared_ns: i64,
    pub criticality: u8,
    pub cpu: CpuId,
    pub allowed: CpuMask,
    pub runnable: bool,
    pub running: bool,
    /// It has gone, or has no declared deadline any more.
    pub gone: bool,
    /// Told after a silence: much may have gone untold.
    pub first: bool,
}

impl RingRecord {
    /// What stands in a place that was not written yet.
    pub const EMPTY: RingRecord = RingRecord {
        at_ns: 0,
        monotonic_ns: 0,
        pid: 0,
        start_time: 0,
        comm: [0; 16],
        job: 0,
        release_ns: 0,
        deadline_ns: 0,
        relative_deadline_ns: 0,
        period_ns: 1,
        executed_ns: 0,
        cost_ns: 0,
        spread_ns: 0,
        declared_ns: 0,
        criticality: 0,
        cpu: 0,
        allowed: CpuMask::EMPTY,
        runnable: false,
        running: false,
        gone: true,
        first: false,
    };

    /// Its jobs are over before a decision could be made about them.
    pub fn is_brief(&self) -> bool {
        const RUNTIME: i64 = intf::temponet_times_TN_SHORT_JOB_RUNTIME as i64;
        const DEADLINE: i64 = intf::temponet_times_TN_SHORT_JOB_DEADLINE as i64;
        self.cost_ns <= RUNTIME && self.relative_deadline_ns <= DEADLINE
    }

    /// `None` for what no BPF half of ours would write.
    pub fn read(bytes: &[u8]) -> Option<RingRecord> {
        if bytes.len() != RECORD_LEN {
            return None;
        }
        // SAFETY: the length was checked, any bytes are a valid value of this struct
        // of integers, and read_unaligned needs no alignment.
        let raw: intf::temponet_record = unsafe { std::ptr::read_unaligned(bytes.as_ptr().cast()) };
        let time = |ns: u64| (ns <= LATEST_NS).then_some(ns as i64);
        let cpu = CpuId::try_from(raw.cpu)
            .ok()
            .filter(|&cpu| usize::from(cpu) < MAX_CPUS);
        let pinned = raw.flags & PINNED != 0;
        let gone = raw.flags & EXITED != 0 || raw.flags & DECLARED == 0;
        let period_ns = time(raw.period_ns)?;
        if raw.pid == 0 || !gone && period_ns == 0 {
            return None;
        }
        Some(RingRecord {
            at_ns: time(raw.at)?,
            monotonic_ns: time(raw.monotonic)?,
            pid: raw.pid,
            start_time: raw.start_time,
            comm: raw.comm.map(|byte| byte as u8),
            job: raw.job,
            release_ns: time(raw.release_at)?,
            deadline_ns: time(raw.deadline_at)?,
            relative_deadline_ns: time(raw.rel_deadline_ns)?,
            period_ns,
            executed_ns: time(raw.exec_ns)?,
            cost_ns: time(raw.cost_ns)?,
            spread_ns: time(raw.spread_ns)?,
            declared_ns: time(raw.declared_ns)?,
            criticality: raw.criticality.min(u8::MAX.into()) as u8,
            cpu: cpu?,
            allowed: if pinned {
                CpuMask::only(cpu?)
            } else {
                CpuMask::of_words(&raw.allowed)
            },
            runnable: raw.flags & RUNNABLE != 0,
            running: raw.flags & RUNNING != 0,
            gone,
            first: raw.flags & FIRST != 0,
        })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A record as the BPF half would write it.
    pub fn raw(pid: u32) -> intf::temponet_record {
        // SAFETY: zeroes are a valid value of this struct of integers.
        let mut raw: intf::temponet_record = unsafe { std::mem::zeroed() };
        raw.pid = pid;
        raw.start_time = u64::from(pid) * 10;
        raw.at = 1_000_000;
        raw.monotonic = 900_000;
        raw.period_ns = 40_000_000;
        raw.rel_deadline_ns = 40_000_000;
        raw.release_at = 500_000;
        raw.deadline_at = 40_500_000;
        raw.cost_ns = 10_000_000;
        raw.job = 1;
        raw.allowed[0] = 0b11;
        raw.flags = DECLARED | RUNNABLE;
        raw
    }

    pub fn bytes(raw: &intf::temponet_record) -> Vec<u8> {
        let start = std::ptr::from_ref(raw).cast::<u8>();
        // SAFETY: the struct is plain integers without padding, RECORD_LEN long.
        unsafe { std::slice::from_raw_parts(start, RECORD_LEN) }.to_vec()
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let mut raw = raw(7);
        let record = RingRecord::read(&bytes(&raw)).unwrap();
        assert_eq!((record.pid, record.start_time), (7, 70));
        assert_eq!(record.allowed, CpuMask::first(2));
        assert!(record.runnable && !record.running && !record.gone && !record.first);
        raw.flags |= PINNED | RUNNING | FIRST;
        raw.cpu = 1;
        let record = RingRecord::read(&bytes(&raw)).unwrap();
        assert_eq!(record.allowed, CpuMask::only(1));
        assert!(record.running && record.first);
        raw.flags = RUNNABLE;
        assert!(RingRecord::read(&bytes(&raw)).unwrap().gone);
    }

    #[test]
    fn what_makes_no_sense_is_no_record() {
        let good = raw(7);
        let refused = |change: fn(&mut intf::temponet_record)| {
            let mut raw = good;
            change(&mut raw);
            RingRecord::read(&bytes(&raw)).is_none()
        };
        assert!(refused(|r| r.pid = 0));
        assert!(refused(|r| r.cpu = 9999));
        assert!(refused(|r| r.period_ns = 0));
        assert!(refused(|r| r.deadline_at = u64::MAX));
        assert!(RingRecord::read(&bytes(&good)[1..]).is_none());
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_strange(bytes in proptest::collection::vec(any::<u8>(), RECORD_LEN)) {
            if let Some(record) = RingRecord::read(&bytes) {
                prop_assert!(record.deadline_ns >= 0 && record.cost_ns >= 0);
            }
        }
    }
}
