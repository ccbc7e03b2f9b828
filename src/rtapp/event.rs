//! The events of a phase. rt-app tells them by how their key begins, so that
//! `run0`, `run_a` and `runtime-2` are all different keys and known events.

use super::fields::{self, mismatch, Fields};
use super::json::{Member, Node, Value};
use super::note::Fault;
use super::workload::{Action, Event, MemRun, Timer};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    Run,
    Runtime,
    Sleep,
    Timer,
    Lock,
    Unlock,
    Wait,
    Signal,
    Broadcast,
    Sync,
    Barrier,
    SemPost,
    SemWait,
    Suspend,
    Resume,
    Yield,
    Fork,
    Mem,
    IoRun,
    MemRun,
}

/// A prefix that begins with another one stands before it.
const PREFIXES: [(&str, EventKind); 20] = [
    ("runtime", EventKind::Runtime),
    ("run", EventKind::Run),
    ("sleep", EventKind::Sleep),
    ("timer", EventKind::Timer),
    ("lock", EventKind::Lock),
    ("unlock", EventKind::Unlock),
    ("wait", EventKind::Wait),
    ("signal", EventKind::Signal),
    ("broad", EventKind::Broadcast),
    ("sync", EventKind::Sync),
    ("barrier", EventKind::Barrier),
    ("sem_post", EventKind::SemPost),
    ("sem_wait", EventKind::SemWait),
    ("suspend", EventKind::Suspend),
    ("resume", EventKind::Resume),
    ("yield", EventKind::Yield),
    ("fork", EventKind::Fork),
    ("memrun", EventKind::MemRun),
    ("mem", EventKind::Mem),
    ("iorun", EventKind::IoRun),
];

/// What keys of events begin with.
pub fn names() -> impl Iterator<Item = &'static str> {
    PREFIXES.iter().map(|&(prefix, _)| prefix)
}

/// The list `lock_order` of rt-app's old grammar only looks like an event.
pub fn kind(member: &Member) -> Option<EventKind> {
    let list = matches!(&member.value, Some(node) if matches!(node.value, Value::List(_)));
    if list && member.key == "lock_order" {
        return None;
    }
    PREFIXES
        .iter()
        .find(|(prefix, _)| member.key.starts_with(prefix))
        .map(|&(_, kind)| kind)
}

/// Reads a member whose key is one of an event's.
pub fn read(member: &Member, kind: EventKind, thread: &str) -> Result<Event, Fault> {
    let key = member.key.as_str();
    let node = || {
        member
            .value
            .as_ref()
            .ok_or_else(|| Fault::new(member.at, format!("{key} needs a value")))
    };
    let micros = || fields::count(node()?, key);
    let name = || Ok(fields::text(node()?, key)?.to_owned());
    let action = match kind {
        EventKind::Run => Action::Run { us: micros()? },
        EventKind::Runtime => Action::Runtime { us: micros()? },
        EventKind::Sleep => Action::Sleep { us: micros()? },
        EventKind::Timer => timer(node()?)?,
        EventKind::Lock => Action::Lock(name()?),
        EventKind::Unlock => Action::Unlock(name()?),
        EventKind::Signal => Action::Signal(name()?),
        EventKind::Broadcast => Action::Broadcast(name()?),
        EventKind::Wait => {
            let (on, mutex) = condition(node()?)?;
            Action::Wait { on, mutex }
        }
        EventKind::Sync => {
            let (on, mutex) = condition(node()?)?;
            Action::Sync { on, mutex }
        }
        EventKind::Barrier => Action::Barrier(name()?),
        EventKind::SemPost => Action::SemPost(name()?),
        EventKind::SemWait => Action::SemWait(name()?),
        EventKind::Suspend => Action::Suspend(suspended(member, thread)?),
        EventKind::Resume => Action::Resume(name()?),
        EventKind::Yield => Action::Yield,
        EventKind::Fork => Action::Fork(name()?),
        EventKind::Mem => Action::Mem { count: micros()? },
        EventKind::IoRun => Action::IoRun { count: micros()? },
        EventKind::MemRun => memrun(node()?, key)?,
    };
    Ok(Event {
        at: member.at,
        key: key.to_owned(),
        action,
    })
}

/// Anything but an object says nothing about the timer, as in rt-app.
fn fields_or_none(node: &Node) -> Fields<'_> {
    Fields::new(match &node.value {
        Value::Object(members) => members,
        _ => &[],
    })
}

fn timer(node: &Node) -> Result<Action, Fault> {
    let fields = fields_or_none(node);
    let reference = text_or(&fields, "ref", "unknown")?;
    let timer = Timer {
        unique: reference.starts_with("unique"),
        reference,
        period_us: fields.count("period")?.map_or(0, |period| period.value),
        absolute: text_or(&fields, "mode", "relative")?.starts_with("absolute"),
    };
    fields.check_spelling()?;
    Ok(Action::Timer(timer))
}

fn condition(node: &Node) -> Result<(String, String), Fault> {
    let fields = fields_or_none(node);
    let condition = (
        text_or(&fields, "ref", "unknown")?,
        text_or(&fields, "mutex", "unknown")?,
    );
    fields.check_spelling()?;
    Ok(condition)
}

fn text_or(fields: &Fields, key: &'static str, default: &str) -> Result<String, Fault> {
    Ok(fields
        .text(key)?
        .map_or_else(|| default.to_owned(), |text| text.value))
}

/// Up to 1.0 the value named who is suspended, and the workgen script filled an
/// empty one with the thread's name; later versions always take the thread's name.
fn suspended(member: &Member, thread: &str) -> Result<String, Fault> {
    match &member.value {
        None => Ok(thread.to_owned()),
        Some(node) => match &node.value {
            Value::Null => Ok(thread.to_owned()),
            Value::Text(name) if name.is_empty() => Ok(thread.to_owned()),
            Value::Text(name) => Ok(name.clone()),
            other => Err(mismatch(node.at, &member.key, "a string", other)),
        },
    }
}

fn memrun(node: &Node, key: &str) -> Result<Action, Fault> {
    let fields = Fields::of(node, key)?;
    let missing = |what: &str| Fault::new(node.at, format!("{key} needs a {what}"));
    let kind = fields.text("type")?.ok_or_else(|| missing("type"))?;
    if !["chase", "read", "write"].contains(&kind.value.as_str()) {
        let what = format!("the type of {key} is chase, read or write");
        return Err(Fault::new(kind.at, what));
    }
    Ok(Action::MemRun(MemRun {
        kind: kind.value,
        size: fields.count("size")?.ok_or_else(|| missing("size"))?.value,
        count: fields
            .count("count")?
            .ok_or_else(|| missing("count"))?
            .value,
    }))
}
