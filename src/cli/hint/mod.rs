//! `scx_temponet hint`: declare, show and clear the deadlines of a task.
//!
//! Exit status: 0 done, 1 the daemon refused or no rhythm was found, 2 it could not be asked
//! (bad input, no such task, no daemon). A command that cannot be started is 126 or
//! 127, as with env and nice.

mod suggest;
#[cfg(test)]
mod tests;

use super::out;
use super::time::parse_time;
use crate::hint::client::ClientError;
use crate::hint::{default_socket, duration, Hint, HintClient, Limits};
use crate::proc;
use clap::Args;
use serde_json::json;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Declare deadlines for a running task, or start a command with them
///
/// `--suggest PID` watches a task and says what to declare for it.
///
/// Says that the task needs RUNTIME of CPU time within DEADLINE of each
/// wake-up, and wakes up at most once per PERIOD. The daemon admits what the
/// machine can carry and refuses the rest with the reason; no privilege is
/// needed for one's own tasks. A declaration lasts until it is cleared or the
/// task exits; it survives execve and is not inherited by children.
#[derive(Args, Debug, Clone, Default)]
pub struct HintArgs {
    /// CPU time one job needs, such as 10ms, 250us or 1.5ms
    #[arg(long, value_name = "TIME")]
    runtime: Option<String>,

    /// Time from wake-up until the job must be done [default: the period]
    #[arg(long, value_name = "TIME")]
    deadline: Option<String>,

    /// Shortest time between two jobs, 100us to 10s
    #[arg(long, value_name = "TIME")]
    period: Option<String>,

    /// Which tasks are kept when not all can be on time: 0 (normal) to 3 (mission critical)
    #[arg(long, value_name = "N")]
    criticality: Option<String>,

    /// The task: a process (its first thread) or a thread id
    #[arg(long, value_name = "N")]
    pid: Option<String>,

    /// All threads of the process, each with the same parameters
    #[arg(long)]
    threads: bool,

    /// Show what the task has declared
    #[arg(long)]
    show: bool,

    /// Take the task's declaration back
    #[arg(long)]
    clear: bool,

    /// Watch this task and propose what to declare; needs root, under any scheduler.
    /// Status 1: no rhythm was found
    #[arg(long, value_name = "PID", conflicts_with_all = ["runtime", "deadline", "period", "criticality", "pid", "show", "clear", "command"])]
    suggest: Option<String>,

    /// With --suggest: how long to watch [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    watch: Option<u64>,

    /// With --show and --suggest: as JSON
    #[arg(long)]
    json: bool,

    /// Where the daemon listens
    #[arg(long, value_name = "PATH", default_value_os_t = default_socket().to_owned())]
    socket: PathBuf,

    /// Command to start with the declaration
    #[arg(last = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// Bounds on what may be declared; for the command that loads the scheduler.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Declared deadlines")]
pub struct HintLimitArgs {
    /// Density (runtime / deadline) all declarations together may reach, per
    /// online CPU; above 1 allows an overload on purpose
    #[arg(long, value_name = "X", default_value = "0.95", value_parser = share)]
    pub hint_util_max: f64,

    /// The same for each user but root
    #[arg(long, value_name = "X", default_value = "0.5", value_parser = share)]
    pub hint_util_user: f64,

    /// Of --hint-util-max, the part that only root may declare
    #[arg(long, value_name = "X", default_value = "0.1", value_parser = share)]
    pub hint_util_root: f64,

    /// Tasks each user but root may declare
    #[arg(long, value_name = "N", default_value = "256")]
    pub hint_max_user: usize,

    /// Highest criticality a user other than root may declare
    #[arg(long, value_name = "N", default_value = "1",
          value_parser = clap::value_parser!(u32).range(0..=3))]
    pub hint_criticality_user: u32,

    /// Where to listen for declarations
    #[arg(long, value_name = "PATH", default_value_os_t = default_socket().to_owned())]
    pub hint_socket: PathBuf,
}

impl HintLimitArgs {
    pub fn limits(&self) -> Limits {
        Limits {
            util_max: self.hint_util_max,
            util_user: self.hint_util_user,
            util_root: self.hint_util_root,
            hints_user: self.hint_max_user,
            criticality_user: self.hint_criticality_user,
            ..Limits::default()
        }
    }
}

fn share(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|x: &f64| (0.0..=64.0).contains(x))
        .ok_or_else(|| "give a number between 0 and 64".into())
}

/// Why nothing was done, and the exit status that says so.
#[derive(Debug, PartialEq)]
struct Failure {
    status: u8,
    sentence: String,
}

fn bad<T>(sentence: impl Into<String>) -> Result<T, Failure> {
    Err(Failure {
        status: 2,
        sentence: sentence.into(),
    })
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        let status = match error.refused_with() {
            // The daemon found what we should have: still bad input.
            None | Some(libc::ESRCH | libc::EINVAL) => 2,
            Some(_) => 1,
        };
        Self {
            status,
            sentence: error.to_string(),
        }
    }
}

/// What the arguments come to.
#[derive(Debug, PartialEq)]
enum Action {
    Declare(i32, Hint),
    Start(Vec<OsString>, Hint),
    Show(i32),
    Clear(i32),
    Suggest(i32),
}

pub fn run(args: HintArgs) -> ExitCode {
    match action(&args).and_then(|action| perform(&args, action)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            out::errln!("scx_temponet hint: {}", failure.sentence);
            ExitCode::from(failure.status)
        }
    }
}

fn action(args: &HintArgs) -> Result<Action, Failure> {
    let declares = args.runtime.is_some()
        || args.deadline.is_some()
        || args.period.is_some()
        || args.criticality.is_some();
    if args.json && !args.show && args.suggest.is_none() {
        return bad("--json goes with --show and --suggest");
    }
    if args.watch.is_some() && args.suggest.is_none() {
        return bad("--watch goes with --suggest");
    }
    if let Some(pid) = &args.suggest {
        return Ok(Action::Suggest(task_id("--suggest", pid)?));
    }
    if args.show || args.clear {
        let name = if args.show { "--show" } else { "--clear" };
        if args.show && args.clear {
            return bad("--show and --clear exclude each other");
        }
        if declares || !args.command.is_empty() {
            return bad(format!("{name} takes --pid and no declaration"));
        }
        let Some(pid) = &args.pid else {
            return bad(format!("{name} needs --pid"));
        };
        let pid = task_id("--pid", pid)?;
        return Ok(if args.show {
            Action::Show(pid)
        } else {
            Action::Clear(pid)
        });
    }

    let hint = hint(args)?;
    match (&args.pid, args.command.is_empty()) {
        (Some(pid), true) => Ok(Action::Declare(task_id("--pid", pid)?, hint)),
        (None, false) if args.threads => {
            bad("--threads needs --pid: a command to start has no threads yet")
        }
        (None, false) => Ok(Action::Start(args.command.clone(), hint)),
        (Some(_), false) => bad("give --pid or a command, not both"),
        (None, true) => bad("give the task with --pid N, or a command after --"),
    }
}

fn hint(args: &HintArgs) -> Result<Hint, Failure> {
    let time = |name: &str, text: &Option<String>| match text.as_deref().map(duration::parse) {
        None => Ok(None),
        Some(Ok(ns)) => Ok(Some(ns)),
        Some(Err(e)) => bad(format!("--{name}: {e}")),
    };
    let runtime = time("runtime", &args.runtime)?;
    let deadline = time("deadline", &args.deadline)?;
    let period = time("period", &args.period)?;
    let (Some(runtime), Some(period)) = (runtime, period) else {
        return bad(
            "a declaration needs --runtime and --period, such as --runtime 10ms --period 40ms",
        );
    };
    let criticality = match &args.criticality {
        None => 0,
        Some(text) => match text.parse() {
            Ok(n) => n,
            Err(_) => return bad(format!("--criticality: `{text}` is not 0, 1, 2 or 3")),
        },
    };
    Hint::new(runtime, deadline.unwrap_or(period), period, criticality)
        .or_else(|e| bad(e.to_string()))
}

fn task_id(option: &str, text: &str) -> Result<i32, Failure> {
    let tid = match text.parse() {
        Ok(tid) if tid > 0 => tid,
        _ => return bad(format!("{option}: `{text}` is not a task id")),
    };
    // Asked here already, so that it is said with no daemon running too.
    if !Path::new(&format!("/proc/{tid}")).exists() {
        return bad(format!("no task has id {tid}"));
    }
    Ok(tid)
}

fn perform(args: &HintArgs, action: Action) -> Result<(), Failure> {
    if let Action::Suggest(pid) = action {
        return suggest::run(args, pid);
    }
    let client = HintClient::connect_to(&args.socket)?;
    match action {
        Action::Start(command, hint) => start(&client, &command, &hint),
        Action::Declare(pid, hint) if args.threads => declare_threads(&client, pid, &hint),
        Action::Declare(pid, hint) => Ok(client.set(pid, &hint)?),
        Action::Clear(pid) => {
            let mut cleared = Ok(());
            for tid in chosen(args, pid)? {
                match client.clear(tid) {
                    Err(e) if args.threads && gone(&e) => {}
                    other => cleared = cleared.and(other),
                }
            }
            Ok(cleared?)
        }
        Action::Show(pid) => show(args, &client, pid),
        Action::Suggest(_) => unreachable!("needs no daemon"),
    }
}

fn start(client: &HintClient, command: &[OsString], hint: &Hint) -> Result<(), Failure> {
    let Some((program, arguments)) = command.split_first() else {
        return bad("give a command after --");
    };
    // The declaration is this thread's, and exec keeps the thread.
    client.set(HintClient::this_thread(), hint)?;
    let error = Command::new(program).args(arguments).exec();
    Err(Failure {
        status: match error.kind() {
            std::io::ErrorKind::NotFound => 127,
            _ => 126,
        },
        sentence: format!("cannot start `{}`: {error}", program.to_string_lossy()),
    })
}

fn gone(error: &ClientError) -> bool {
    error.refused_with() == Some(libc::ESRCH)
}

/// All threads or none: a process half of which is declared helps nobody, so
/// when one is refused the others get back what they had.
fn declare_threads(client: &HintClient, pid: i32, hint: &Hint) -> Result<(), Failure> {
    let mut before: Vec<(i32, Option<Hint>)> = Vec::new();
    // A second look catches threads born during the first.
    for _ in 0..2 {
        for tid in threads(pid)? {
            if before.iter().any(|(known, _)| *known == tid) {
                continue;
            }
            let outcome = client
                .get(tid)
                .and_then(|old| client.set(tid, hint).map(|()| old));
            match outcome {
                Ok(old) => before.push((tid, old)),
                Err(e) if gone(&e) => {}
                Err(e) => {
                    for (tid, old) in &before {
                        let _ = match old {
                            Some(old) => client.set(*tid, old),
                            None => client.clear(*tid),
                        };
                    }
                    let failure = Failure::from(e);
                    return Err(Failure {
                        sentence: format!(
                            "thread {tid} of {pid}, and so none of them: {}",
                            failure.sentence
                        ),
                        ..failure
                    });
                }
            }
        }
    }
    if before.is_empty() {
        return bad(format!("no task has id {pid}"));
    }
    Ok(())
}

fn chosen(args: &HintArgs, pid: i32) -> Result<Vec<i32>, Failure> {
    if args.threads {
        threads(pid)
    } else {
        Ok(vec![pid])
    }
}

fn threads(pid: i32) -> Result<Vec<i32>, Failure> {
    proc::thread_ids(pid).or_else(|_| bad(format!("no task has id {pid}")))
}

fn show(args: &HintArgs, client: &HintClient, pid: i32) -> Result<(), Failure> {
    let mut tasks = Vec::new();
    for tid in chosen(args, pid)? {
        let hint = match client.get(tid) {
            Err(e) if args.threads && gone(&e) => continue,
            other => other?,
        };
        tasks.push((tid, proc::printable_comm(tid), hint));
    }
    if args.json {
        let tasks: Vec<_> = tasks
            .iter()
            .map(|(tid, comm, hint)| {
                let hint = hint.map(|hint| {
                    json!({
                        "runtime_ns": hint.runtime_ns(),
                        "deadline_ns": hint.deadline_ns(),
                        "period_ns": hint.period_ns(),
                        "criticality": hint.criticality(),
                    })
                });
                json!({ "tid": tid, "comm": comm, "hint": hint })
            })
            .collect();
        return print(&format!("{}\n", json!({ "pid": pid, "tasks": tasks })));
    }
    let lines = tasks.iter().map(|(tid, comm, hint)| match hint {
        Some(hint) => format!("{tid} {comm}: {hint}\n"),
        None => format!("{tid} {comm}: nothing declared\n"),
    });
    print(&lines.collect::<String>())
}

fn print(text: &str) -> Result<(), Failure> {
    out::write(text).map_err(|error| Failure {
        status: 2,
        sentence: format!("{error:#}"),
    })
}
