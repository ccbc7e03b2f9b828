//! A workload for rt-app: refused with its line and column, or converted into a
//! task set that its own check accepts.

use scx_temponet::rtapp::convert::{convert, Wishes};
use scx_temponet::rtapp::Workload;
use scx_temponet::sim::time::MS;

pub fn check(text: &[u8]) {
    let workload = match Workload::parse(text) {
        Ok(workload) => workload,
        Err(fault) => {
            assert!(!fault.to_string().is_empty());
            return;
        }
    };
    let wishes = Wishes {
        // Enough for loops and timers to come round, and quickly over.
        horizon: Some(20 * MS),
        cores: None,
    };
    if let Ok(converted) = convert(&workload, &wishes) {
        converted
            .set
            .check()
            .expect("what is converted makes sense");
        assert_eq!(
            converted.timer_after_deadline.len(),
            converted.set.tasks.len()
        );
    }
}
