//! From JSON to a workload, with rt-app's own defaults.

use std::collections::HashSet;

use super::event;
use super::fields::Fields;
use super::json::{self, Member, Node};
use super::note::{About, Fault, Notes, Place};
use super::setting::{calibration, log_size, policy, setting};
use super::spelling;
use super::workload::*;

/// More threads than any machine that rt-app runs on can tell apart.
const MOST_THREADS: u64 = 4096;

pub fn workload(text: &[u8]) -> Result<Workload, Fault> {
    let (root, behind) = json::read(text)?;
    let fields = Fields::of(&root, "the workload")?;
    let mut reader = Reader::default();
    if let Some(place) = behind {
        let what = "what follows the workload's closing bracket is not read";
        reader.note(place, what);
    }
    let global = match fields.get("global") {
        Some((_, node)) => reader.global(node)?,
        // Without the section rt-app writes no logs.
        None => Global {
            log_size: LogSize::Disabled,
            ..Global::default()
        },
    };
    if let Some((_, node)) = fields.get("resources") {
        reader.resources(node)?;
    }
    let tasks = fields.get("tasks");
    let threads = match tasks {
        Some((_, node)) => reader.threads(node, &global)?,
        None => Vec::new(),
    };
    fields.check_spelling()?;
    reader.note_unread(&fields);
    Ok(Workload {
        global,
        threads,
        tasks_at: tasks.map(|(member, _)| member.at),
        notes: reader.notes.into_sorted(),
    })
}

/// What rt-app once knew in a thread.
const OLD_GRAMMAR: [&str; 4] = ["exec", "lock_order", "resources", "access"];

#[derive(Default)]
struct Reader {
    notes: Notes,
    thread: Option<String>,
    phase: Option<String>,
}

impl Reader {
    fn note(&mut self, at: Place, what: impl Into<String>) {
        let about = About {
            thread: self.thread.as_deref(),
            phase: self.phase.as_deref(),
        };
        self.notes.add(Some(at), about, what);
    }

    fn note_unread(&mut self, fields: &Fields) {
        for member in fields.unasked() {
            let what = match member.key.as_str() {
                old if OLD_GRAMMAR.contains(&old) => {
                    format!("{old:?} belongs to a grammar that rt-app has given up; it is not read")
                }
                key => format!("rt-app knows no {key:?} here; it is not read"),
            };
            self.note(member.at, what);
        }
        for member in fields.hidden() {
            let key = &member.key;
            self.note(
                member.at,
                format!("a later {key:?} takes the place of this one"),
            );
        }
    }

    fn global(&mut self, node: &Node) -> Result<Global, Fault> {
        let fields = Fields::of(node, "global")?;
        let default = Global::default();
        let text = |key, default: String| -> Result<String, Fault> {
            Ok(fields.text(key)?.map_or(default, |text| text.value))
        };
        let duration = fields.int("duration")?.map_or(-1, |seconds| seconds.value);
        let global = Global {
            duration_s: u32::try_from(duration).ok().filter(|&seconds| seconds > 0),
            default_policy: policy(&fields, "default_policy")?
                .map_or(LinuxPolicy::Other, |policy| policy.value),
            calibration: calibration(&fields)?,
            log_dir: text("logdir", default.log_dir)?,
            log_basename: text("log_basename", default.log_basename)?,
            log_size: log_size(&fields)?,
            lock_pages: fields.flag("lock_pages")?.unwrap_or(default.lock_pages),
            priority_inheritance: fields.flag("pi_enabled")?.unwrap_or(false),
            gnuplot: fields.flag("gnuplot")?.unwrap_or(false),
            cumulative_slack: fields.flag("cumulative_slack")?.unwrap_or(false),
            io_device: fields.text("io_device")?,
            mem_buffer_bytes: fields
                .count("mem_buffer_size")?
                .map_or(default.mem_buffer_bytes, |bytes| bytes.value),
        };
        // Categories of trace marks; rt-app's own business.
        let _ = fields.get("ftrace");
        fields.check_spelling()?;
        self.note_unread(&fields);
        Ok(global)
    }

    /// rt-app makes every resource when an event first names it; the section only
    /// has to be right.
    fn resources(&mut self, node: &Node) -> Result<(), Fault> {
        const TYPES: [&str; 8] = [
            "mutex",
            "wait",
            "signal",
            "broadcast",
            "sync",
            "sleep",
            "run",
            "timer",
        ];
        for member in Fields::of(node, "resources")?.members() {
            let Some(node) = &member.value else { continue };
            let fields = Fields::of(node, &member.key)?;
            if let Some(kind) = fields.text("type")? {
                if !TYPES.contains(&kind.value.as_str()) {
                    let what = format!("a resource is one of {}", TYPES.join(", "));
                    return Err(Fault::new(kind.at, what));
                }
            }
        }
        Ok(())
    }

    fn threads(&mut self, node: &Node, global: &Global) -> Result<Vec<Thread>, Fault> {
        let mut threads = Vec::new();
        let mut count = 0;
        for member in Fields::of(node, "tasks")?.members() {
            let Some(node) = &member.value else {
                let what = format!("thread {:?} needs an object", member.key);
                return Err(Fault::new(member.at, what));
            };
            self.thread = Some(member.key.clone());
            let thread = self.thread(member, node, global)?;
            self.thread = None;
            count += u64::from(thread.instances);
            if count > MOST_THREADS {
                let what = format!("more than {MOST_THREADS} threads in all");
                return Err(Fault::new(member.at, what));
            }
            threads.push(thread);
        }
        settle_timers(&mut threads);
        Ok(threads)
    }

    fn thread(&mut self, member: &Member, node: &Node, global: &Global) -> Result<Thread, Fault> {
        let fields = Fields::of(node, &member.key)?;
        let instances = fields.count("instance")?;
        let instances = instances.map_or(1, |instances| instances.value) as u32;
        let delay_us = fields.count("delay")?.map_or(0, |delay| delay.value);
        let loops = fields.int("loop")?.map(|loops| loops.value);
        let default = Placed {
            at: member.at,
            value: global.default_policy,
        };
        let mut setting = setting(&fields, Some(default))?;
        let phases = fields.get("phases");
        // Older files say the deadline parameters without "dl-".
        let old = |key| Ok(fields.count(key)?.map(|us| us.value));
        let deadline = &mut setting.deadline;
        if phases.is_some() {
            deadline.runtime_us = deadline.runtime_us.or(old("runtime")?);
        }
        deadline.period_us = deadline.period_us.or(old("period")?);
        deadline.deadline_us = deadline.deadline_us.or(old("deadline")?);
        let (loops, phases) = match phases {
            Some((_, node)) => {
                self.note_events_beside_phases(&fields);
                let phases = self.phases(node, &member.key)?;
                (loops.map_or(Loops::Forever, thread_loops), phases)
            }
            // The thread is its own and only phase, and loops for ever unless told.
            None => {
                let events = self.events(&fields, member.at, &member.key)?;
                let phase = Phase {
                    name: None,
                    at: member.at,
                    loops: loops.map_or(Loops::Times(1), phase_loops),
                    events,
                    setting: Setting::default(),
                };
                let outer = match loops {
                    None => Loops::Forever,
                    Some(_) => Loops::Times(1),
                };
                (outer, vec![phase])
            }
        };
        self.note_unread_but_events(&fields)?;
        Ok(Thread {
            name: member.key.clone(),
            at: member.at,
            instances,
            delay_us,
            loops,
            phases,
            setting,
        })
    }

    fn phases(&mut self, node: &Node, thread: &str) -> Result<Vec<Phase>, Fault> {
        let mut phases = Vec::new();
        for member in Fields::of(node, "phases")?.members() {
            let Some(node) = &member.value else {
                let what = format!("phase {:?} needs an object", member.key);
                return Err(Fault::new(member.at, what));
            };
            self.phase = Some(member.key.clone());
            let fields = Fields::of(node, &member.key)?;
            let loops = fields.int("loop")?.map_or(1, |loops| loops.value);
            phases.push(Phase {
                name: Some(member.key.clone()),
                at: member.at,
                loops: phase_loops(loops),
                events: self.events(&fields, member.at, thread)?,
                setting: setting(&fields, None)?,
            });
            self.note_unread_but_events(&fields)?;
            self.phase = None;
        }
        Ok(phases)
    }

    fn events(&mut self, fields: &Fields, at: Place, thread: &str) -> Result<Vec<Event>, Fault> {
        let mut events: Vec<Event> = Vec::new();
        let mut keys = HashSet::new();
        for member in fields.members() {
            let Some(kind) = event::kind(member) else {
                continue;
            };
            events.push(event::read(member, kind, thread)?);
            if !keys.insert(member.key.as_str()) {
                let what = "a key that was there before; both count here, but rt-app itself \
                            keeps only the last unless workgen renames them";
                self.note(member.at, what);
            }
        }
        if events.is_empty() {
            self.note(at, "there are no events; rt-app refuses to run this");
        }
        Ok(events)
    }

    fn note_events_beside_phases(&mut self, fields: &Fields) {
        for member in fields.members() {
            if event::kind(member).is_some() && member.key != "runtime" {
                let what = "an event beside \"phases\"; rt-app does not run it";
                self.note(member.at, what);
            }
        }
    }

    fn note_unread_but_events(&mut self, fields: &Fields) -> Result<(), Fault> {
        let rest: Vec<Member> = fields
            .unasked()
            .filter(|member| event::kind(member).is_none())
            .cloned()
            .collect();
        let known: Vec<&str> = fields.asked().into_iter().chain(event::names()).collect();
        let current = |member: &&Member| !OLD_GRAMMAR.contains(&member.key.as_str());
        spelling::check(rest.iter().filter(current), &known)?;
        self.note_unread(&Fields::new(&rest));
        for member in fields.hidden() {
            if event::kind(member).is_none() {
                let key = &member.key;
                self.note(
                    member.at,
                    format!("a later {key:?} takes the place of this one"),
                );
            }
        }
        Ok(())
    }
}

/// A timer is absolute as soon as one of the events that use it says so.
fn settle_timers(threads: &mut [Thread]) {
    fn timers(thread: &mut Thread) -> impl Iterator<Item = &mut Timer> {
        let events = thread.phases.iter_mut().flat_map(|phase| &mut phase.events);
        events.filter_map(|event| match &mut event.action {
            Action::Timer(timer) => Some(timer),
            _ => None,
        })
    }
    let mut absolute = HashSet::new();
    for pass in 0..2 {
        for (owner, thread) in threads.iter_mut().enumerate() {
            for timer in timers(thread) {
                let key = (timer.unique.then_some(owner), timer.reference.clone());
                if pass == 1 {
                    timer.absolute = absolute.contains(&key);
                } else if timer.absolute {
                    absolute.insert(key);
                }
            }
        }
    }
}

/// A phase that is told to loop zero times never gets to the end, as one below zero.
fn phase_loops(loops: i64) -> Loops {
    match u32::try_from(loops) {
        Ok(times @ 1..) => Loops::Times(times),
        _ => Loops::Forever,
    }
}

fn thread_loops(loops: i64) -> Loops {
    u32::try_from(loops).map_or(Loops::Forever, Loops::Times)
}
