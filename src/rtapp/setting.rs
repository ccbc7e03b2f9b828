//! Where and how threads run, and what the global section says of the run.

use super::fields::{mismatch, Fields};
use super::json::Value;
use super::note::Fault;
use super::workload::*;

pub fn policy(fields: &Fields, key: &'static str) -> Result<Option<Placed<LinuxPolicy>>, Fault> {
    let Some(name) = fields.text(key)? else {
        return Ok(None);
    };
    let known = LinuxPolicy::ALL
        .into_iter()
        .find(|policy| policy.name() == name.value);
    match known {
        Some(value) => Ok(Some(Placed { at: name.at, value })),
        None => {
            let names = LinuxPolicy::ALL.map(LinuxPolicy::name).join(", ");
            let what = format!("there is no policy {:?}; policies are {names}", name.value);
            Err(Fault::new(name.at, what))
        }
    }
}

pub fn calibration(fields: &Fields) -> Result<Calibration, Fault> {
    let Some((_, node)) = fields.get("calibration") else {
        return Ok(Calibration::OnCpu(0));
    };
    let cpu = match &node.value {
        Value::Int(ns) => u32::try_from(*ns).ok().map(Calibration::NsPerLoop),
        Value::Text(text) => text
            .strip_prefix("CPU")
            .and_then(|number| number.parse().ok())
            .map(Calibration::OnCpu),
        _ => None,
    };
    let wrong = "calibration is a number of nanoseconds, or a CPU such as \"CPU0\"";
    cpu.ok_or_else(|| Fault::new(node.at, wrong))
}

pub fn log_size(fields: &Fields) -> Result<LogSize, Fault> {
    let Some((_, node)) = fields.get("log_size") else {
        return Ok(LogSize::File);
    };
    let size = match &node.value {
        Value::Int(0) => Some(LogSize::Disabled),
        Value::Int(megabytes) => u32::try_from(*megabytes).ok().map(LogSize::Megabytes),
        Value::Text(text) => match text.as_str() {
            "disable" => Some(LogSize::Disabled),
            "file" | "auto" => Some(LogSize::File),
            _ => None,
        },
        other => return Err(mismatch(node.at, "log_size", "a number or a word", other)),
    };
    let wrong = "log_size is a number of megabytes, or \"file\", \"auto\" or \"disable\"";
    size.ok_or_else(|| Fault::new(node.at, wrong))
}

/// A thread falls back on the file's policy, a phase on the thread's.
pub fn setting(fields: &Fields, default: Option<Placed<LinuxPolicy>>) -> Result<Setting, Fault> {
    let small = |key| -> Result<Option<Placed<i32>>, Fault> {
        Ok(fields.int(key)?.map(|number| Placed {
            at: number.at,
            value: number.value as i32,
        }))
    };
    let micros = |key| Ok(fields.count(key)?.map(|us| us.value).filter(|&us| us > 0));
    let taskgroup = fields
        .text("taskgroup")?
        .filter(|group| !group.value.is_empty());
    if let Some(group) = taskgroup.iter().find(|group| !group.value.starts_with('/')) {
        return Err(Fault::new(group.at, "a taskgroup starts with /"));
    }
    if let Some(group) = taskgroup
        .iter()
        .find(|group| group.value.split('/').any(|name| name == ".."))
    {
        return Err(Fault::new(group.at, "a taskgroup has no .. in it"));
    }
    let (util_min, util_max) = (small("util_min")?, small("util_max")?);
    for clamp in util_min.iter().chain(&util_max) {
        if clamp.value > 1024 {
            return Err(Fault::new(
                clamp.at,
                "a clamp of utilisation is at most 1024",
            ));
        }
    }
    Ok(Setting {
        cpus: fields.numbers("cpus")?,
        memory_nodes: fields.numbers("nodes_membind")?,
        policy: policy(fields, "policy")?.or(default),
        priority: small("priority")?,
        util_min,
        util_max,
        taskgroup,
        deadline: DeadlineParameters {
            runtime_us: micros("dl-runtime")?,
            period_us: micros("dl-period")?,
            deadline_us: micros("dl-deadline")?,
        },
    })
}
