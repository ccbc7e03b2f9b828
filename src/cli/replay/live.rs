//! `replay --live` and `--vm`: the real rt-app, here or in a guest.

use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};

use super::input::Input;
use super::{guest, CalibrationArg, ReplayArgs, USUAL_LIVE};
use crate::cli::out;
use crate::cli::sim::distinct;
use crate::report::file::write_whole;
use crate::rtapp::live::{cpus_for, kernel, Collected, Entrant, LivePlan, Run};
use crate::rtapp::outcome::{self, Outcome};
use crate::rtapp::Workload;

/// Where the workload runs.
pub enum Field {
    Here,
    Guest { kernel: String, cpus: usize },
}

impl Field {
    /// `None`: in the simulator.
    pub fn of(args: &ReplayArgs) -> Option<Field> {
        let guest = args.vm.as_ref().map(|kernel| Field::Guest {
            kernel: kernel.clone(),
            cpus: 0,
        });
        if args.live {
            Some(Field::Here)
        } else {
            guest
        }
    }

    /// The CPUs that rt-app gets; a guest is made to have them.
    pub fn cpus(&mut self, workload: &Workload, cores: Option<usize>) -> Result<Vec<u32>> {
        match self {
            Field::Here => cpus_for(workload, &kernel::online_cpus()?, cores),
            Field::Guest { cpus, .. } => {
                *cpus = guest::cpus_wanted(workload, cores);
                let online: Vec<u32> = (0..*cpus as u32).collect();
                cpus_for(workload, &online, cores)
            }
        }
    }
}

/// What came out of a live run, for the reports.
pub struct Live {
    pub collected: Collected,
    /// How the guest's time went, if it was one.
    pub guest: Option<&'static str>,
    /// The simulator's figures stand beside it.
    pub and_simulated: bool,
}

impl Live {
    pub fn run(
        args: &ReplayArgs,
        field: &Field,
        input: &Input,
        cpus: Vec<u32>,
        stop: &AtomicBool,
    ) -> Result<Live> {
        let workload = input
            .workload
            .as_ref()
            .context("only a workload can run live: logs and recordings are for the simulator")?;
        let names: Vec<&str> = match args.against.is_empty() {
            true => USUAL_LIVE.into(),
            false => distinct(&args.against)
                .into_iter()
                .map(String::as_str)
                .collect(),
        };
        let entrants = names
            .into_iter()
            .map(Entrant::parse)
            .collect::<Result<Vec<_>>>()?;
        let and_simulated = !args.policy.is_empty();
        match field {
            Field::Here => {
                let plan = LivePlan {
                    workload,
                    converted: &input.converted,
                    entrants: &entrants,
                    cpus,
                    model: args.model.clone(),
                    trust_calibration: args.calibration == CalibrationArg::File,
                    calibration_ns: None,
                    trusts_workload: args.trust_workload,
                    traced: true,
                };
                let total = entrants.len();
                let seconds = input.converted.set.horizon_ns as f64 / 1e9;
                let tell = |what: &str| {
                    out::errln!("replay: {what} ({total} runs of {seconds} s and a few more each)");
                };
                Ok(Live {
                    collected: plan.run(stop, &tell)?,
                    guest: None,
                    and_simulated,
                })
            }
            Field::Guest { kernel, cpus } => Ok(Live {
                collected: guest::run(args, &entrants, input, kernel, *cpus, stop)?,
                guest: Some(args.vm_mode.name()),
                and_simulated,
            }),
        }
    }

    /// For a guest that reports to the machine it runs on.
    pub fn save(&self, path: &std::path::Path) -> Result<()> {
        write_whole(path, self.collected.to_json()?.as_bytes())
    }

    pub fn outcomes(&self, input: &Input) -> Vec<Outcome> {
        let done = self.collected.runs.iter().filter(|r| r.failed.is_none());
        let outcome = |run: &Run| {
            let (jobs, segments) = (run.jobs(), run.segments());
            let mut outcome =
                outcome::live(&run.scheduler, &run.ops, &input.converted, jobs, segments);
            if let Ok(entrant) = Entrant::parse(&run.scheduler) {
                outcome.means = entrant.means();
            }
            if let Some(model) = &run.model {
                outcome.loaded = Some(format!("{}, model {model}", run.ops));
            }
            outcome
        };
        done.map(outcome).collect()
    }

    pub fn where_it_ran(&self) -> String {
        let machine = &self.collected.machine;
        let cpus: Vec<String> = machine.cpus.iter().map(u32::to_string).collect();
        let guest = self
            .guest
            .map_or(String::new(), |mode| format!(" in a guest ({mode})"));
        format!(
            "Linux {}{guest}, CPU {}, rt-app at {} ns a loop",
            machine.kernel,
            cpus.join(" "),
            machine.calibration_ns
        )
    }

    /// Which scheduler was loaded under which name, and its model.
    pub fn loaded(&self) -> impl Iterator<Item = String> + '_ {
        let done = self.collected.runs.iter().filter(|r| r.failed.is_none());
        done.map(|run| match &run.model {
            Some(model) => format!("{}: {}, model {model}", run.scheduler, run.ops),
            None => format!("{}: {}", run.scheduler, run.ops),
        })
    }

    pub fn failures(&self) -> impl Iterator<Item = (&str, &str)> + '_ {
        let runs = self.collected.runs.iter();
        runs.filter_map(|run| Some((run.scheduler.as_str(), run.failed.as_deref()?)))
    }

    pub fn to_json(&self) -> serde_json::Value {
        let runs = self.collected.runs.iter().map(|run| {
            serde_json::json!({
                "scheduler": run.scheduler,
                "loaded": run.ops,
                "model": run.model,
                "failed": run.failed,
            })
        });
        serde_json::json!({
            "kernel": self.collected.machine.kernel,
            "guest": self.guest,
            "cpus": self.collected.machine.cpus,
            "calibration_ns": self.collected.machine.calibration_ns,
            "notes": self.collected.notes,
            "runs": runs.collect::<Vec<_>>(),
        })
    }
}
