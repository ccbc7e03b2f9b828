//! Timelines that ui.perfetto.dev and chrome://tracing open (JSON trace events).

use std::fmt::Write;

/// A stretch on a track.
pub struct Slice<'a> {
    pub track: u32,
    pub name: &'a str,
    pub start_ns: u64,
    pub end_ns: u64,
    /// Shown when the slice is selected.
    pub note: String,
}

/// A moment on a track.
pub struct Instant<'a> {
    pub track: u32,
    pub name: &'a str,
    pub time_ns: u64,
}

/// Named tracks with their slices and moments, grouped in processes: what is added
/// belongs to the process that was added last.
#[derive(Default)]
pub struct Timeline {
    events: String,
    process: u32,
}

impl Timeline {
    pub fn process(&mut self, title: &str, tracks: &[(u32, String)]) {
        self.process += 1;
        self.name("process_name", 0, title);
        for (track, name) in tracks {
            self.name("thread_name", *track, name);
            // Otherwise the viewer sorts them by name.
            self.event("M", *track, "thread_sort_index");
            let _ = write!(self.events, ",\"args\":{{\"sort_index\":{track}}}}}");
        }
    }

    pub fn slice(&mut self, slice: &Slice) {
        self.event("X", slice.track, slice.name);
        let _ = write!(
            self.events,
            ",\"ts\":{},\"dur\":{},\"args\":{{\"note\":{}}}}}",
            micros(slice.start_ns),
            micros(slice.end_ns - slice.start_ns),
            quoted(&slice.note)
        );
    }

    pub fn instant(&mut self, instant: &Instant) {
        self.event("i", instant.track, instant.name);
        let time = micros(instant.time_ns);
        let _ = write!(self.events, ",\"s\":\"t\",\"ts\":{time}}}");
    }

    pub fn finish(self) -> Vec<u8> {
        let events = self.events;
        format!("{{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n{events}\n]}}\n").into_bytes()
    }

    fn name(&mut self, kind: &str, track: u32, name: &str) {
        self.event("M", track, kind);
        let _ = write!(self.events, ",\"args\":{{\"name\":{}}}}}", quoted(name));
    }

    /// What every event begins with; the rest and the bracket are the caller's.
    fn event(&mut self, kind: &str, track: u32, name: &str) {
        if !self.events.is_empty() {
            self.events.push_str(",\n");
        }
        let _ = write!(
            self.events,
            "{{\"ph\":\"{kind}\",\"pid\":{},\"tid\":{track},\"name\":{}",
            self.process,
            quoted(name)
        );
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The format counts in microseconds; nanoseconds become decimals.
fn micros(ns: u64) -> String {
    format!("{}.{:03}", ns / 1000, ns % 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeline_is_valid_json_with_exact_times() {
        let mut timeline = Timeline::default();
        for title in ["first", "second"] {
            timeline.process(title, &[(1, "core 0".to_owned())]);
            timeline.slice(&Slice {
                track: 1,
                name: "say \"hi\"",
                start_ns: 1_234_567,
                end_ns: 2_000_000,
                note: "n".into(),
            });
            timeline.instant(&Instant {
                track: 1,
                name: "miss",
                time_ns: 5,
            });
        }
        let json: serde_json::Value = serde_json::from_slice(&timeline.finish()).unwrap();
        let events = json["traceEvents"].as_array().unwrap();
        assert_eq!(events.len(), 10);
        assert_eq!(events[3]["ts"], 1234.567);
        assert_eq!(events[3]["dur"], 765.433);
        assert_eq!(
            (&events[3]["pid"], &events[8]["pid"]),
            (&1.into(), &2.into())
        );
    }
}
