//! Timelines that ui.perfetto.dev and chrome://tracing open (JSON trace events).

use std::io::{self, Write};

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

/// Writes named tracks with their slices and moments.
pub fn write<'a>(
    out: &mut dyn Write,
    title: &str,
    tracks: &[(u32, String)],
    slices: impl Iterator<Item = Slice<'a>>,
    instants: impl Iterator<Item = Instant<'a>>,
) -> io::Result<()> {
    let quoted = |s: &str| serde_json::Value::from(s).to_string();
    writeln!(out, "{{\"displayTimeUnit\":\"ms\",\"traceEvents\":[")?;
    write!(
        out,
        "{{\"ph\":\"M\",\"pid\":1,\"tid\":0,\"name\":\"process_name\",\"args\":{{\"name\":{}}}}}",
        quoted(title)
    )?;
    for (track, name) in tracks {
        write!(
            out,
            ",\n{{\"ph\":\"M\",\"pid\":1,\"tid\":{track},\"name\":\"thread_name\",\"args\":{{\"name\":{}}}}}",
            quoted(name)
        )?;
    }
    for s in slices {
        write!(
            out,
            ",\n{{\"ph\":\"X\",\"pid\":1,\"tid\":{},\"name\":{},\"ts\":{},\"dur\":{},\"args\":{{\"note\":{}}}}}",
            s.track,
            quoted(s.name),
            micros(s.start_ns),
            micros(s.end_ns - s.start_ns),
            quoted(&s.note)
        )?;
    }
    for i in instants {
        write!(
            out,
            ",\n{{\"ph\":\"i\",\"s\":\"t\",\"pid\":1,\"tid\":{},\"name\":{},\"ts\":{}}}",
            i.track,
            quoted(i.name),
            micros(i.time_ns)
        )?;
    }
    writeln!(out, "\n]}}")
}

/// The format counts in microseconds; nanoseconds become decimals.
fn micros(ns: u64) -> String {
    format!("{}.{:03}", ns / 1000, ns % 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_is_valid_json_with_exact_times() {
        let mut out = Vec::new();
        let slices = [Slice {
            track: 1,
            name: "say \"hi\"",
            start_ns: 1_234_567,
            end_ns: 2_000_000,
            note: "n".into(),
        }];
        let instants = [Instant {
            track: 1,
            name: "miss",
            time_ns: 5,
        }];
        let tracks = [(1, "core 0".to_owned())];
        write(
            &mut out,
            "t",
            &tracks,
            slices.into_iter(),
            instants.into_iter(),
        )
        .unwrap();
        let json: serde_json::Value = serde_json::from_slice(&out).unwrap();
        let events = json["traceEvents"].as_array().unwrap();
        assert_eq!(events.len(), 4);
        assert_eq!(events[2]["ts"], 1234.567);
        assert_eq!(events[2]["dur"], 765.433);
    }
}
