//! Records of the ring buffer, as many as the input holds, the last of them as the
//! truth of a resynchronisation: whatever they say, the mirror stays within its bounds
//! and makes a situation that can be decided.

use scx_temponet::agent::mirror::Mirror;
use scx_temponet::agent::ring_record::{RingRecord, RECORD_LEN};
use scx_temponet::policy::{CpuMask, MAX_CPUS};

pub fn check(bytes: &[u8]) {
    let (told, rest) = bytes.split_at(bytes.len() / RECORD_LEN * RECORD_LEN);
    assert!(rest.is_empty() || RingRecord::read(rest).is_none());
    let records: Vec<RingRecord> = told
        .chunks_exact(RECORD_LEN)
        .filter_map(RingRecord::read)
        .collect();
    let mut mirror = Mirror::new();
    for record in &records {
        assert!(record.pid != 0 && usize::from(record.cpu) < MAX_CPUS);
        mirror.apply(record);
    }
    let now = records.last().map_or(0, |record| record.monotonic_ns);
    let cpus: CpuMask = (0..4).collect();
    for round in 0..2 {
        assert!(mirror.tasks().len() <= records.len());
        let time = mirror.kernel_time(now);
        let situation = mirror.situation(time, 1_000_000, cpus, 1.0);
        let jobs = situation.jobs.len();
        assert!(jobs <= records.len());
        if round == 0 {
            let truth = &records[records.len() / 2..];
            mirror.ask_truth(now);
            mirror.resync(truth);
        }
    }
}
