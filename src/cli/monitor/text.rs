//! Numbers and names as they stand on the screen.

/// At most `limit` characters, none of which moves a cursor: names come from
/// any program on the machine.
pub fn clean(text: &str, limit: usize) -> String {
    text.chars()
        .take(limit)
        .map(|c| if c.is_control() { '?' } else { c })
        .collect()
}

/// `name[tid]` in at most `limit` characters: the number stays, or tasks of one name would
/// look the same.
pub fn task_name(task: &str, limit: usize) -> String {
    let task = clean(task, 100);
    let long = task.chars().count() > limit;
    match task.rfind('[').filter(|_| long) {
        Some(at) => {
            let (name, tid) = task.split_at(at);
            let room = limit.saturating_sub(tid.chars().count() + 1);
            let name: String = name.chars().take(room).collect();
            clean(&format!("{name}…{tid}"), limit)
        }
        None => clean(&task, limit),
    }
}

/// A duration of so many microseconds in three or four digits; `-` for none.
pub fn duration(us: Option<f64>) -> String {
    let Some(us) = us else { return "-".into() };
    let (number, unit) = match us.abs() {
        size if size < 999.5 => (us, "µs"),
        size if size < 999_500.0 => (us / 1e3, "ms"),
        size if size < 1e10 => (us / 1e6, "s"),
        _ => return if us < 0.0 { "< -2 h" } else { "> 2 h" }.into(),
    };
    if unit == "µs" || number.abs() >= 99.95 {
        format!("{number:.0} {unit}")
    } else {
        format!("{number:.1} {unit}")
    }
}

/// A count in at most six characters.
pub fn count(n: u64) -> String {
    const UNITS: [&str; 6] = ["k", "M", "G", "T", "P", "E"];
    if n < 10_000 {
        return n.to_string();
    }
    let mut size = n as f64;
    let mut unit = "";
    for next in UNITS {
        if size < 999.5 {
            break;
        }
        (size, unit) = (size / 1e3, next);
    }
    if size < 99.95 {
        format!("{size:.1}{unit}")
    } else {
        format!("{size:.0}{unit}")
    }
}

pub fn rate(per_s: f64) -> String {
    if (0.0..10.0).contains(&per_s) {
        format!("{per_s:.1}")
    } else {
        // Saturates, and what is below zero makes no sense.
        count(per_s as u64)
    }
}

pub fn percent(share: f64) -> String {
    if (0.0..=10.0).contains(&share) {
        format!("{:.1} %", 100.0 * share)
    } else {
        "? %".into()
    }
}

/// A bar of `width` cells, filled to `share`.
pub fn bar(share: f64, width: usize) -> String {
    let filled = (share.clamp(0.0, 1.0) * width as f64).round() as usize;
    "█".repeat(filled) + &"·".repeat(width - filled)
}

/// None where the time is too short to tell.
pub fn per_second(n: u64, seconds: f64) -> Option<f64> {
    (seconds >= 0.01).then(|| n as f64 / seconds)
}

/// The share of jobs on time, rounded down: 100 % is all of them.
pub fn on_time(met: u64, missed: u64) -> String {
    let all = met as f64 + missed as f64;
    if all == 0.0 {
        return "-".into();
    }
    format!("{:.1}", (1000.0 * met as f64 / all).floor() / 10.0)
}

/// How long something has lasted, in two units at most.
pub fn lasted(seconds: f64) -> String {
    let whole = seconds.max(0.0) as u64;
    match whole {
        0..60 => format!("{whole} s"),
        60..3600 => format!("{} min {} s", whole / 60, whole % 60),
        3600..86_400 => format!("{} h {} min", whole / 3600, whole / 60 % 60),
        _ => format!("{} d {} h", whole / 86_400, whole / 3600 % 24),
    }
}
