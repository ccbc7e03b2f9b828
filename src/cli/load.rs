//! Bare `scx_temponet`: load the scheduler, or watch one that is loaded.

use std::io::IsTerminal;
use std::mem::MaybeUninit;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use log::{info, warn, LevelFilter};
use scx_utils::build_id;
use scx_utils::libbpf_clap_opts::LibbpfOpts;

use super::hint::HintLimitArgs;
use super::metrics::{self, Publisher};
use super::monitor::SOCKET;
use super::notify;
use super::out::{errln, outln};
use super::time;
use crate::agent::brain::{Backend, BrainConfig};
use crate::agent::misbehave::Misbehaviour;
use crate::agent::reload::{keep_loaded, Life, Paused};
use crate::agent::{self, kernel, rules, stats, Policy, Scheduler};
use crate::hint::HintServer;
use crate::policy::network::Device;
use crate::policy::{MappingKind, ShieldMode};

#[derive(Clone, Copy, Debug, ValueEnum)]
enum BackendArg {
    /// ONNX Runtime where it is found, else the built-in one
    Auto,
    /// ONNX Runtime
    Ort,
    /// Built in
    Native,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum DeviceArg {
    Cpu,
    Cuda,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Switch {
    On,
    Off,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum MappingArg {
    Greedy,
    Sinkhorn,
}

/// The network and what runs it.
#[derive(Debug, Args)]
struct BrainArgs {
    /// The network to run, instead of the one built in (SIGHUP reads it again)
    #[arg(long, value_name = "FILE")]
    model: Option<PathBuf>,

    /// What computes the network
    #[arg(long, value_enum, default_value_t = BackendArg::Auto)]
    backend: BackendArg,

    /// What ONNX Runtime computes on
    #[arg(long, value_enum, default_value_t = DeviceArg::Cpu)]
    device: DeviceArg,

    /// The network may choose only what costs no deadline; off: the bare paper
    #[arg(long, value_enum, default_value_t = Switch::On)]
    shield: Switch,

    /// From scores to CPUs
    #[arg(long, value_enum, default_value_t = MappingArg::Greedy)]
    mapping: MappingArg,

    /// What the agent may use, in per cent of one CPU
    #[arg(long, value_name = "PER CENT", default_value_t = 5.0, value_parser = percent)]
    agent_budget: f64,

    /// For experiments: every inference takes so many times as long
    #[arg(long, value_name = "TIMES", default_value_t = 1, hide = true, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    slow_inference: u32,

    /// For tests: lose so many of a thousand records on their way to the agent
    #[arg(long, value_name = "PER MILLE", default_value_t = 0, hide = true, value_parser = clap::value_parser!(u32).range(..=1000))]
    lose_records: u32,

    /// For tests: so many of a thousand waiting tasks are counted wrong
    #[arg(long, value_name = "PER MILLE", default_value_t = 0, hide = true, value_parser = clap::value_parser!(u32).range(..=1000))]
    miscount: u32,

    /// For tests: so many of a thousand tasks are queued for a wrong cache domain
    #[arg(long, value_name = "PER MILLE", default_value_t = 0, hide = true, value_parser = clap::value_parser!(u32).range(..=1000))]
    misplace: u32,

    /// For tests: the capacity of every CPU, of 1024
    #[arg(long, value_name = "OF 1024", default_value_t = 0, hide = true, value_parser = clap::value_parser!(u32).range(..=1024))]
    capacity: u32,

    /// For tests: what the agent does wrong
    #[arg(long, value_enum, default_value_t = Misbehaviour::None, hide = true)]
    misbehave: Misbehaviour,

    /// For tests: compare the agent's mirror with the kernel's truth so often
    #[arg(long, value_name = "TIME", value_parser = interval, hide = true)]
    resync_every: Option<Duration>,
}

impl BrainArgs {
    fn config(&self) -> BrainConfig {
        BrainConfig {
            model: self.model.clone(),
            backend: match self.backend {
                BackendArg::Auto => Backend::Auto,
                BackendArg::Ort => Backend::Ort,
                BackendArg::Native => Backend::Native,
            },
            device: match self.device {
                DeviceArg::Cpu => Device::Cpu,
                DeviceArg::Cuda => Device::Cuda,
            },
            shield: match self.shield {
                Switch::On => ShieldMode::On,
                Switch::Off => ShieldMode::Off,
            },
            mapping: match self.mapping {
                MappingArg::Greedy => MappingKind::Greedy,
                MappingArg::Sinkhorn => MappingKind::Sinkhorn,
            },
            slowed: self.slow_inference,
        }
    }
}

fn percent(text: &str) -> Result<f64, String> {
    let share: f64 = text
        .parse()
        .map_err(|_| format!("'{text}' is not a number"))?;
    if !(0.1..=100.0).contains(&share) {
        return Err("must be between 0.1 and 100 per cent".into());
    }
    Ok(share)
}

#[derive(Debug, Args)]
pub struct LoadArgs {
    /// What decides which job runs
    #[arg(long, value_enum, default_value_t = Policy::Temponet)]
    policy: Policy,

    #[command(flatten)]
    brain: BrainArgs,

    /// Deadlines for programs that nobody can change (docs/guide/rules.md); `rules --check`
    /// explains a file, - reads standard input
    #[arg(long, value_name = "FILE")]
    rules: Option<PathBuf>,

    #[command(flatten)]
    hints: HintLimitArgs,

    /// Where to pin the map of declared deadlines (task storage, keyed by pidfd)
    #[arg(
        long,
        value_name = "PATH",
        default_value = "/sys/fs/bpf/scx_temponet/task_hints"
    )]
    task_hint_map: PathBuf,

    /// Schedule only tasks whose policy is SCHED_EXT; leave the rest to the kernel. The former,
    /// declared or not, then run only while no SCHED_OTHER task wants the CPU
    #[arg(long)]
    partial: bool,

    /// Do not ask for clock frequencies: the CPUs then run as without this scheduler
    #[arg(long)]
    no_cpufreq: bool,

    /// Print figures so often while scheduling, such as 500ms; a number alone is seconds
    #[arg(long, value_name = "TIME", value_parser = interval)]
    stats: Option<Duration>,

    /// Print the figures of a scheduler that is already loaded, so often; load nothing
    #[arg(long, value_name = "TIME", value_parser = interval)]
    monitor: Option<Duration>,

    /// Write the figures as text for Prometheus to this file every 5 s, or serve them at a
    /// socket (docs/guide/watch.md); the file is written whole and goes when this ends
    #[arg(long, value_name = "FILE|unix:PATH", value_parser = metrics::target)]
    metrics: Option<metrics::Target>,

    /// Explain the figures and exit
    #[arg(long)]
    help_stats: bool,

    /// Size of the kernel's dump if it ejects the scheduler (0: its default)
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    exit_dump_len: u32,

    /// Say more, libbpf included
    #[arg(short, long)]
    verbose: bool,

    /// Print the version and exit
    #[arg(short = 'V', long)]
    version: bool,

    #[command(flatten, next_help_heading = "Libbpf options")]
    libbpf: LibbpfOpts,
}

pub(super) fn interval(text: &str) -> Result<Duration, String> {
    time::parse_seconds(text, Duration::from_millis(10), Duration::from_secs(86_400))
}

pub fn run(args: LoadArgs) -> Result<ExitCode> {
    if args.version {
        outln!(
            "scx_temponet {}",
            build_id::full_version(env!("CARGO_PKG_VERSION"))
        );
        return Ok(ExitCode::SUCCESS);
    }
    if args.help_stats {
        stats::explain(&mut std::io::stdout())?;
        return Ok(ExitCode::SUCCESS);
    }
    let rules = match &args.rules {
        None => Vec::new(),
        Some(file) => match rules::load(file).and_then(|rules| {
            rules::check_enforced(file, &rules)?;
            Ok(rules)
        }) {
            Ok(rules) => rules,
            Err(error) => return Ok(bad_input(error)),
        },
    };
    start_log(args.verbose)?;

    let shutdown = Arc::new(AtomicBool::new(false));
    let stop = shutdown.clone();
    let this_thread = thread::current();
    let (wake, woken) = crossbeam_channel::bounded(1);
    ctrlc::set_handler(move || {
        stop.store(true, Ordering::Relaxed);
        this_thread.unpark();
        // Whoever has not taken the last one yet will wake up all the same.
        let _ = wake.try_send(());
    })
    .context("cannot catch Ctrl-C")?;

    if let Some(interval) = args.monitor {
        stats::monitor(interval, shutdown)?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(interval) = args.stats {
        let shutdown = shutdown.clone();
        thread::spawn(move || {
            if let Err(error) = stats::monitor(interval, shutdown) {
                warn!("no more figures: {error:#}");
            }
        });
    }

    // Whatever the umask was: the stats socket has no limits of its own, so only root
    // may connect to it. The hint socket is opened to all by name.
    // SAFETY: a plain call that cannot fail.
    unsafe { libc::umask(0o022) };
    reload_on_hangup();
    kernel::preflight()?;
    let published = args.metrics.as_ref();
    let published = published.map(|target| Publisher::start(target, Path::new(SOCKET)));
    let _published = match published.transpose() {
        Ok(published) => published,
        Err(error) => return Ok(bad_input(format!("{error:#}"))),
    };
    let hints = HintServer::start(&args.hints.hint_socket, args.hints.limits())?;
    let config = agent::Config {
        policy: args.policy,
        brain: args.brain.config(),
        agent_budget: args.brain.agent_budget / 100.0,
        faults: agent::Faults {
            lose_permille: args.brain.lose_records,
            miscount_permille: args.brain.miscount,
            misplace_permille: args.brain.misplace,
            capacity: args.brain.capacity,
        },
        misbehave: args.brain.misbehave,
        resync_every: args.brain.resync_every,
        partial: args.partial,
        cpufreq: !args.no_cpufreq,
        exit_dump_len: args.exit_dump_len,
        verbose: args.verbose,
        task_hint_map: args.task_hint_map,
        rules,
        libbpf: args.libbpf,
    };
    info!(
        "scx_temponet {}, policy {}",
        build_id::full_version(env!("CARGO_PKG_VERSION")),
        args.policy.name()
    );
    if config.partial && !config.rules.is_empty() {
        warn!("with --partial the rules reach only tasks of policy SCHED_EXT, and those run only while no SCHED_OTHER task wants the CPU");
    }
    let live = || {
        let mut storage = MaybeUninit::uninit();
        let scheduler = match Scheduler::load(&config, &hints, &mut storage) {
            Ok(scheduler) => scheduler,
            Err(error) => return Ok(Life::NotLoaded(error)),
        };
        notify::tell(notify::READY);
        let ended = scheduler.run(&shutdown, &woken)?;
        let again = ended.should_restart() && !shutdown.load(Ordering::Relaxed);
        Ok(if again { Life::Restart } else { Life::Over })
    };
    keep_loaded(live, |pause| sleep_unless(&shutdown, pause))?;
    Ok(ExitCode::SUCCESS)
}

/// Whoever sets `shutdown` unparks this thread, so that it ends at once.
fn sleep_unless(shutdown: &AtomicBool, pause: Duration) -> Paused {
    let until = Instant::now() + pause;
    while !shutdown.load(Ordering::Relaxed) {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Paused::Through;
        }
        thread::park_timeout(left);
    }
    Paused::Stopped
}

/// SIGHUP asks a daemon to read its model again; on a terminal it means that the
/// terminal is gone, and then so are we.
fn reload_on_hangup() {
    extern "C" fn note(_: libc::c_int) {
        agent::RELOAD.store(true, Ordering::Relaxed);
    }
    if std::io::stdin().is_terminal() {
        return;
    }
    let handler: extern "C" fn(libc::c_int) = note;
    // SAFETY: the handler does nothing but store to an atomic.
    unsafe { libc::signal(libc::SIGHUP, handler as libc::sighandler_t) };
}

fn bad_input(error: impl std::fmt::Display) -> ExitCode {
    errln!("scx_temponet: {error}");
    ExitCode::from(2)
}

fn start_log(verbose: bool) -> Result<()> {
    let level = if verbose {
        LevelFilter::Debug
    } else {
        LevelFilter::Info
    };
    let config = simplelog::ConfigBuilder::new()
        .set_time_level(LevelFilter::Off)
        .set_location_level(LevelFilter::Off)
        .set_target_level(LevelFilter::Off)
        .set_thread_level(LevelFilter::Off)
        .build();
    // "Auto" would colour a file too: it looks at TERM alone.
    let colour = match std::io::stderr().is_terminal() {
        true => simplelog::ColorChoice::Auto,
        false => simplelog::ColorChoice::Never,
    };
    simplelog::TermLogger::init(level, config, simplelog::TerminalMode::Stderr, colour)
        .context("cannot start the log")
}
