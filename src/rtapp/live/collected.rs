//! What a live run brings home: also from a guest, as a file.

use anyhow::{ensure, Context, Result};
use serde::{Deserialize, Serialize};

use crate::rtapp::convert::Converted;
use crate::sim::engine::{Fate, JobRecord, Segment};
use crate::sim::time::Ns;

const VERSION: u32 = 1;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Collected {
    version: u32,
    pub machine: LiveMachine,
    pub runs: Vec<Run>,
    pub notes: Vec<String>,
}

/// Where it ran.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LiveMachine {
    pub kernel: String,
    /// Those that rt-app could use.
    pub cpus: Vec<u32>,
    /// What a loop of rt-app's takes there.
    pub calibration_ns: u32,
}

/// One scheduler's turn.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Run {
    pub scheduler: String,
    /// What the loaded scheduler called itself.
    pub ops: String,
    pub model: Option<String>,
    /// Why there are no figures.
    pub failed: Option<String>,
    /// How much longer rt-app ran than it was told to.
    #[serde(default)]
    pub overtime_s: f64,
    jobs: Vec<(u32, u32, Ns, Ns, Option<Ns>)>,
    segments: Vec<(u32, u32, u32, Ns, Ns)>,
}

impl Run {
    pub fn of(scheduler: String, model: Option<String>) -> Run {
        Run {
            scheduler,
            model,
            ..Run::default()
        }
    }

    pub fn keep(&mut self, jobs: &[JobRecord], segments: &[Segment]) {
        self.jobs = jobs
            .iter()
            .map(|job| (job.task, job.index, job.release, job.deadline, job.finish))
            .collect();
        self.segments = segments
            .iter()
            .map(|s| (s.core, s.task, s.index, s.start, s.end))
            .collect();
    }

    pub fn jobs(&self) -> Vec<JobRecord> {
        let job = |&(task, index, release, deadline, finish): &(u32, u32, Ns, Ns, Option<Ns>)| {
            JobRecord {
                task,
                index,
                release,
                deadline,
                finish,
                fate: match finish {
                    Some(finish) if finish <= deadline => Fate::OnTime,
                    Some(_) => Fate::Late,
                    None => Fate::Unfinished,
                },
            }
        };
        self.jobs.iter().map(job).collect()
    }

    pub fn segments(&self) -> Vec<Segment> {
        let segment = |&(core, task, index, start, end): &(u32, u32, u32, Ns, Ns)| Segment {
            core,
            task,
            index,
            start,
            end,
        };
        self.segments.iter().map(segment).collect()
    }
}

impl Collected {
    pub fn new(machine: LiveMachine) -> Collected {
        Collected {
            version: VERSION,
            machine,
            runs: Vec::new(),
            notes: Vec::new(),
        }
    }

    pub fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    pub fn to_json(&self) -> Result<String> {
        serde_json::to_string(self).context("cannot write JSON")
    }

    /// Reads what another machine sent, and believes none of it that does not fit
    /// the workload.
    pub fn from_json(text: &str, converted: &Converted) -> Result<Collected> {
        let all: Collected = serde_json::from_str(text).context("the results are damaged")?;
        ensure!(
            all.version == VERSION,
            "the results are of version {}, not {VERSION}",
            all.version
        );
        let (tasks, horizon) = (converted.set.tasks.len() as u32, converted.set.horizon_ns);
        for run in &all.runs {
            let jobs = run.jobs.iter().all(|&(task, _, release, due, finish)| {
                let finish = finish.unwrap_or(release);
                task < tasks && release < due && due <= horizon && finish >= release
            });
            let cores = all.machine.cpus.len() as u32;
            let segments = run.segments.iter().all(|&(core, task, _, start, end)| {
                core < cores && task < tasks && start <= end && end <= horizon
            });
            ensure!(
                jobs && segments,
                "the results of {} do not fit the workload",
                run.scheduler
            );
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rtapp::convert::{convert, Wishes};
    use crate::rtapp::Workload;

    #[test]
    fn results_come_back_as_they_were_sent_and_damaged_ones_are_refused() {
        let text = br#"{"global": {"duration": 1}, "tasks": {"a": {"run": 1000,
            "timer": {"ref": "unique", "period": 100000}}}}"#;
        let converted = convert(&Workload::parse(text).unwrap(), &Wishes::default()).unwrap();
        let mut sent = Collected::new(LiveMachine {
            kernel: "6.18".into(),
            cpus: vec![1],
            calibration_ns: 188,
        });
        let job = |finish| JobRecord {
            task: 0,
            index: 3,
            release: 10,
            deadline: 20,
            finish,
            fate: match finish {
                Some(_) => Fate::Late,
                None => Fate::Unfinished,
            },
        };
        let jobs = [job(Some(25)), job(None)];
        let segment = Segment {
            core: 0,
            task: 0,
            index: 3,
            start: 1,
            end: 2,
        };
        let mut run = Run::default();
        run.keep(&jobs, &[segment]);
        sent.runs.push(run);
        let text = sent.to_json().unwrap();
        let got = Collected::from_json(&text, &converted).unwrap();
        assert_eq!(got.runs[0].jobs(), jobs);
        assert_eq!(got.runs[0].segments(), [segment]);
        let refused = |from: &str, to: &str| {
            assert!(text.contains(from), "{text}");
            let damaged = text.replace(from, to);
            Collected::from_json(&damaged, &converted)
                .unwrap_err()
                .to_string()
        };
        assert!(refused("[0,3,10,20,25]", "[7,3,10,20,25]").contains("do not fit"));
        assert!(refused("[0,3,10,20,25]", "[0,3,10,20,5]").contains("do not fit"));
        assert!(refused("[0,0,3,1,2]", "[4,0,3,1,2]").contains("do not fit"));
        assert!(refused("\"version\":1", "\"version\":2").contains("version 2"));
        assert!(refused("\"runs\"", "\"ruins\"").contains("damaged"));
    }
}
