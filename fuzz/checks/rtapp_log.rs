//! Two logs of rt-app, cut at the first NUL: refused with the line, or a recording
//! whose task set makes sense and whose jobs can be judged.

use scx_temponet::rtapp::log::{convert, read, Log, RunTimes};
use scx_temponet::rtapp::outcome::recorded;

pub fn check(bytes: &[u8]) {
    let logs: Result<Vec<Log>, _> = bytes
        .splitn(2, |byte| *byte == 0)
        .enumerate()
        .map(|(i, text)| {
            let name = format!("thread-{i}");
            read(text).map(|rows| Log { name, rows })
        })
        .collect();
    let Ok(logs) = logs else { return };
    for run_times in [RunTimes::Measured, RunTimes::Configured] {
        if let Ok(recording) = convert(&logs, run_times, 2) {
            recording
                .converted
                .set
                .check()
                .expect("a recording makes sense");
            recorded(&recording.converted, recording.fates);
        }
    }
}
