//! What is simulated: tasks, how they arrive, how long they run, and the set they form.

use serde::{Deserialize, Serialize};

use super::time::Ns;

/// What happens to a job that is not finished at its deadline.
///
/// The paper is silent; the two give very different figures, so every result names its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Semantics {
    /// The job is thrown away at its deadline.
    Abort,
    /// The job goes on and delays its successor, as on Linux: the jobs of one
    /// task run in order, one at a time.
    Continue,
}

impl Semantics {
    pub const BOTH: [Semantics; 2] = [Semantics::Abort, Semantics::Continue];

    pub fn name(self) -> &'static str {
        match self {
            Semantics::Abort => "abort",
            Semantics::Continue => "continue",
        }
    }
}

/// When the jobs of a task are released.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Arrival {
    /// Every period exactly.
    #[default]
    Periodic,
    /// The period is the shortest gap; an exponential delay of this mean is added.
    Sporadic { mean_delay_ns: Ns },
    /// `burst` jobs `spacing_ns` apart, then silence until `burst` periods have passed:
    /// the rate of a periodic task, the demand of an attack.
    Bursty { burst: u32, spacing_ns: Ns },
    /// Recorded jobs.
    Trace(Vec<TraceJob>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceJob {
    pub release_ns: Ns,
    pub execution_ns: Ns,
    /// Absolute; release plus the task's relative deadline when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ns: Option<Ns>,
}

/// How long a job really runs, as a share of the task's worst case.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Execution {
    /// Always the worst case.
    #[default]
    Wcet,
    /// Uniform in [low, high] · C.
    Uniform { low: f64, high: f64 },
    /// Uniform in [low, 1] · C, but with this probability uniform in [1, factor] · C.
    Overrun {
        low: f64,
        probability: f64,
        factor: f64,
    },
    /// Pareto: low · C at least, shape alpha, cut at cap · C (above 1: overruns).
    HeavyTail { low: f64, alpha: f64, cap: f64 },
    /// One job in `jobs` takes C, the last of them; the others share · C.
    OneIn { jobs: u32, share: f64 },
    /// from · C at the task's first release, to · C when its time is over, in
    /// between in proportion.
    Drift { from: f64, to: f64 },
}

impl Execution {
    /// What a job takes on average, as a share of C.
    pub fn mean_share(&self) -> f64 {
        let middle = |low: f64, high: f64| (low + high) / 2.0;
        match *self {
            Execution::Wcet => 1.0,
            Execution::Uniform { low, high } => middle(low, high),
            Execution::Overrun {
                low,
                probability,
                factor,
            } => probability * middle(1.0, factor) + (1.0 - probability) * middle(low, 1.0),
            Execution::HeavyTail { low, alpha, cap } => {
                // The integral of low to cap; alpha = 1 is its limit.
                let tail = match (alpha - 1.0).abs() < 1e-9 {
                    true => (cap / low).ln(),
                    false => (1.0 - (low / cap).powf(alpha - 1.0)) / (alpha - 1.0),
                };
                low * (1.0 + tail)
            }
            Execution::OneIn { jobs, share } => share + (1.0 - share) / f64::from(jobs.max(1)),
            Execution::Drift { from, to } => middle(from, to),
        }
    }
}

/// What policies are told of a task's worst case, whatever really runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Declaration {
    /// The worst case as it is.
    #[default]
    Wcet,
    /// Another one, in nanoseconds.
    Runtime(Ns),
    /// None: policies know the task's period and deadline, and learn from its jobs
    /// what they take.
    Nothing,
}

fn is_zero(nice: &i8) -> bool {
    *nice == 0
}

fn is_wcet(declared: &Declaration) -> bool {
    *declared == Declaration::Wcet
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    pub name: String,
    pub period_ns: Ns,
    /// Worst-case execution time C, which `execution` is in shares of.
    pub wcet_ns: Ns,
    /// Relative deadline D; below, at or above the period.
    pub deadline_ns: Ns,
    /// First release.
    #[serde(default)]
    pub offset_ns: Ns,
    /// No job is released from here on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_ns: Option<Ns>,
    /// 0: ordinary. 1 and more: mission-critical, counted by PITMD.
    #[serde(default)]
    pub criticality: u8,
    /// Nice level; only `eevdf` looks at it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub nice: i8,
    #[serde(default)]
    pub arrival: Arrival,
    #[serde(default)]
    pub execution: Execution,
    #[serde(default, skip_serializing_if = "is_wcet")]
    pub declared: Declaration,
}

impl Task {
    /// A periodic task with an implicit deadline.
    pub fn periodic(name: impl Into<String>, period_ns: Ns, wcet_ns: Ns) -> Self {
        Self {
            name: name.into(),
            period_ns,
            wcet_ns,
            deadline_ns: period_ns,
            offset_ns: 0,
            end_ns: None,
            criticality: 0,
            nice: 0,
            arrival: Arrival::Periodic,
            execution: Execution::Wcet,
            declared: Declaration::Wcet,
        }
    }

    /// A task that always wants a CPU and is never due before the horizon.
    pub fn hog(name: impl Into<String>, horizon: Ns) -> Self {
        let whole = TraceJob {
            release_ns: 0,
            execution_ns: 2 * horizon,
            deadline_ns: Some(4 * horizon),
        };
        Self {
            declared: Declaration::Nothing,
            ..Self::traced(name.into(), vec![whole], horizon)
        }
    }

    /// A task of recorded jobs; what policies may want to know of it is summed up.
    pub fn traced(name: String, jobs: Vec<TraceJob>, horizon: Ns) -> Self {
        let relative = |job: &TraceJob| {
            let deadline = job.deadline_ns.unwrap_or(horizon);
            deadline.saturating_sub(job.release_ns).max(1)
        };
        let gaps = jobs.len() as u64 - 1;
        let span = jobs[jobs.len() - 1].release_ns - jobs[0].release_ns;
        let period = span.checked_div(gaps).unwrap_or(horizon);
        Self {
            name,
            period_ns: period.max(1),
            wcet_ns: jobs
                .iter()
                .map(|job| job.execution_ns)
                .max()
                .unwrap_or(1)
                .max(1),
            deadline_ns: jobs.iter().map(relative).min().unwrap_or(horizon),
            offset_ns: 0,
            end_ns: None,
            criticality: 0,
            nice: 0,
            arrival: Arrival::Trace(jobs),
            execution: Execution::Wcet,
            declared: Declaration::Wcet,
        }
    }

    /// What policies take for the worst case. Where nothing is declared they have to
    /// begin with something: half of what would just be feasible.
    pub fn told_ns(&self) -> Ns {
        match self.declared {
            Declaration::Wcet => self.wcet_ns,
            Declaration::Runtime(runtime_ns) => runtime_ns,
            Declaration::Nothing => (self.period_ns.min(self.deadline_ns) / 2).max(1),
        }
    }

    pub fn is_hog(&self, horizon: Ns) -> bool {
        match &self.arrival {
            Arrival::Trace(jobs) => jobs.iter().all(|job| {
                let deadline = job.deadline_ns.unwrap_or(job.release_ns + self.deadline_ns);
                job.execution_ns > horizon && deadline > horizon
            }),
            _ => false,
        }
    }

    /// Share of a CPU that its jobs really ask for on average while they come; 0 for
    /// recorded jobs.
    pub fn mean_load(&self) -> f64 {
        let gap_ns = match self.arrival {
            Arrival::Trace(_) => return 0.0,
            Arrival::Sporadic { mean_delay_ns } => self.period_ns + mean_delay_ns,
            Arrival::Periodic | Arrival::Bursty { .. } => self.period_ns,
        };
        self.wcet_ns as f64 * self.execution.mean_share() / gap_ns as f64
    }

    pub fn utilisation(&self) -> f64 {
        self.wcet_ns as f64 / self.period_ns as f64
    }
}

/// From `start_ns` on, jobs arrive `rate` times as often as the periods say.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mode {
    pub start_ns: Ns,
    pub rate: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskSet {
    pub name: String,
    pub cores: usize,
    pub horizon_ns: Ns,
    /// Feeds sporadic gaps and execution times; the same for every policy.
    #[serde(default)]
    pub seed: u64,
    /// Mode switches, in order of their start; none: rate 1 throughout.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub modes: Vec<Mode>,
    pub tasks: Vec<Task>,
}

impl TaskSet {
    pub fn utilisation(&self) -> f64 {
        self.tasks.iter().map(Task::utilisation).sum()
    }

    /// CPUs that the jobs of this time ask for on average, hogs and recordings aside.
    pub fn load_at(&self, time: Ns) -> f64 {
        let begun = |task: &&Task| task.offset_ns <= time.max(task.period_ns);
        let lasts = |task: &&Task| task.end_ns.is_none_or(|end| time < end);
        let there = self.tasks.iter().filter(begun).filter(lasts);
        there.map(Task::mean_load).sum::<f64>() * self.rate_at(time)
    }

    /// The rate at which jobs arrive at this time.
    pub fn rate_at(&self, time: Ns) -> f64 {
        self.modes
            .iter()
            .rev()
            .find(|mode| mode.start_ns <= time)
            .map_or(1.0, |mode| mode.rate)
    }
}
