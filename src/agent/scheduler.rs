//! The scheduler's life: open, configure, load, attach, serve figures, report
//! how it ended.

use std::fs;
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use crossbeam_channel::{select, Receiver};
use libbpf_rs::{Link, MapHandle, OpenObject};
use log::{info, warn};
use scx_stats::prelude::*;
use scx_utils::{
    compat, scx_ops_attach, scx_ops_load, scx_ops_open, uei_exited, uei_read, ScxExitKind,
    UserExitInfo,
};

use super::agent_stats::{self, AgentTotals};
use super::board::Board;
use super::bpf::{BpfSkel, BpfSkelBuilder};
use super::brain::{Brain, BrainConfig};
use super::control::Settings;
use super::gauges::Gauges;
use super::handle::{Agent, Senses};
use super::machine::Machine;
use super::misbehave::Misbehaviour;
use super::online::{Change, OnlineCpus};
use super::rules::{self, Rule};
use super::stats::{self, Snapshot};
use super::thread::lock_memory;
use crate::hint::{HintServer, MapStore};
use crate::intf;
use crate::policy::CpuMask;

/// What decides which of the jobs with deadlines runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Policy {
    /// The network, in this program; while it does not answer, its tables, then deadlines
    Temponet,
    /// The rule distilled from the network, in the kernel alone
    Distilled,
    /// Earliest deadline first; in overload some tasks are given up; in the kernel alone
    Edf,
    /// Earliest deadline first and nothing else: in overload every job is late
    PlainEdf,
}

impl Policy {
    /// As on the command line.
    pub fn name(self) -> String {
        let value = clap::ValueEnum::to_possible_value(&self);
        value.map_or(String::new(), |value| value.get_name().to_owned())
    }

    fn level(self) -> u32 {
        match self {
            Policy::Temponet => intf::temponet_level_TN_LEVEL_AGENT,
            Policy::Distilled => intf::temponet_level_TN_LEVEL_DISTILLED,
            Policy::Edf | Policy::PlainEdf => intf::temponet_level_TN_LEVEL_EDF,
        }
    }
}

/// What goes wrong on purpose, so many times of a thousand.
#[derive(Clone, Copy, Default)]
pub struct Faults {
    /// Records that are lost on their way to the agent.
    pub lose_permille: u32,
    /// Waiting tasks that are counted wrong.
    pub miscount_permille: u32,
    /// Tasks that are queued for a wrong domain.
    pub misplace_permille: u32,
    /// The capacity of every CPU, of 1024; 0: the real one.
    pub capacity: u32,
}

pub struct Config {
    pub policy: Policy,
    pub brain: BrainConfig,
    /// What the agent may use, as a share of one CPU.
    pub agent_budget: f64,
    /// For tests: what the BPF half does wrong, and what the agent.
    pub faults: Faults,
    pub misbehave: Misbehaviour,
    pub resync_every: Option<Duration>,
    /// Schedule only tasks of policy SCHED_EXT.
    pub partial: bool,
    /// Ask for clock frequencies.
    pub cpufreq: bool,
    pub exit_dump_len: u32,
    pub verbose: bool,
    pub task_hint_map: PathBuf,
    pub rules: Vec<Rule>,
    pub libbpf: scx_utils::libbpf_clap_opts::LibbpfOpts,
}

/// Why the scheduler is no longer loaded.
pub struct Ended {
    pub info: UserExitInfo,
}

impl Ended {
    /// The kernel asks for a restart, after CPU hotplug for example.
    pub fn should_restart(&self) -> bool {
        self.info.should_restart()
    }
}

/// The declarations that are in force, and the map they are in for others to find. They
/// part with the map wherever loading fails after this, and stay with the daemon.
struct Declarations<'a> {
    hints: &'a HintServer,
    pinned: PathBuf,
}

impl<'a> Declarations<'a> {
    fn carry_over(
        skel: &mut BpfSkel<'_>,
        hints: &'a HintServer,
        pinned: &Path,
    ) -> Result<Declarations<'a>> {
        pin_hint_map(skel, pinned)?;
        let declarations = Declarations {
            hints,
            pinned: pinned.to_path_buf(),
        };
        let map = MapHandle::try_from(&skel.maps.task_hints)?;
        let changes = MapHandle::try_from(&skel.maps.hint_changes)?;
        hints.attach(Arc::new(MapStore::new(map, changes)?));
        Ok(declarations)
    }
}

impl Drop for Declarations<'_> {
    fn drop(&mut self) {
        self.hints.detach();
        let _ = fs::remove_file(&self.pinned);
        // Its folder too, where nothing else is in it.
        let _ = self.pinned.parent().map(fs::remove_dir);
    }
}

pub struct Scheduler<'a> {
    // First, because it is to go first.
    declarations: Declarations<'a>,
    skel: BpfSkel<'a>,
    link: Option<Link>,
    stats: StatsServer<(), Snapshot>,
    agent: Option<Agent>,
    gauges: Arc<Gauges>,
    policy: Policy,
    brain: BrainConfig,
    agent_budget: f64,
    cpus: OnlineCpus,
    /// The agent has yet to be told of `cpus`.
    agent_behind: bool,
    nr_cpus: usize,
}

/// Set by SIGHUP: read the model again.
pub static RELOAD: AtomicBool = AtomicBool::new(false);

impl<'a> Scheduler<'a> {
    /// Loads and attaches it; declarations that `hints` holds already are in
    /// force from the start.
    pub fn load(
        config: &Config,
        hints: &'a HintServer,
        storage: &'a mut MaybeUninit<OpenObject>,
    ) -> Result<Self> {
        scx_utils::try_set_rlimit_infinity();
        settle_heaps();
        let hurry = Hurry::begin();
        let mut builder = BpfSkelBuilder::default();
        builder.obj_builder.debug(config.verbose);
        let open_opts = config.libbpf.clone().into_bpf_open_opts();
        let mut skel = scx_ops_open!(builder, storage, temponet_ops, open_opts)?;
        // After opening it: from there on the kernel knows of CPUs that come or go before it is
        // attached, and asks for a restart.
        let machine = Machine::detect()?;
        machine.check_room(config.policy)?;

        let ops = skel.struct_ops.temponet_ops_mut();
        ops.exit_dump_len = config.exit_dump_len;
        // Tasks that exit or may not migrate just now wait like all others, or the
        // kernel would put them before every deadline.
        ops.flags = *compat::SCX_OPS_KEEP_BUILTIN_IDLE
            | *compat::SCX_OPS_ENQ_LAST
            | *compat::SCX_OPS_ENQ_EXITING
            | *compat::SCX_OPS_ENQ_MIGRATION_DISABLED
            | cgroup_weight_flag();
        if config.partial {
            ops.flags |= *compat::SCX_OPS_SWITCH_PARTIAL;
        }

        let rodata = skel
            .maps
            .rodata_data
            .as_mut()
            .context("the BPF object has no rodata")?;
        rodata.nr_cpus = machine.nr_cpus() as u32;
        rodata.nr_doms = machine.nr_doms() as u32;
        rodata.cpu_dom[..machine.cpu_dom.len()].copy_from_slice(&machine.cpu_dom);
        rodata.cpu_order[..machine.cpu_order.len()].copy_from_slice(&machine.cpu_order);
        rodata.dom_start[..machine.dom_start.len()].copy_from_slice(&machine.dom_start);
        rodata.dom_len[..machine.dom_len.len()].copy_from_slice(&machine.dom_len);

        rodata.best_level = config.policy.level();
        rodata.give_up = (config.policy != Policy::PlainEdf).into();
        rodata.lose_permille = config.faults.lose_permille;
        rodata.miscount_permille = config.faults.miscount_permille;
        rodata.misplace_permille = config.faults.misplace_permille;
        rodata.test_capacity = config.faults.capacity;
        rodata.set_cpuperf = config.cpufreq.into();
        if config.policy == Policy::Temponet {
            // Its own budget is the tighter one; this is for an agent gone wild.
            rodata.agent_permille = (config.agent_budget * 2000.0) as u64;
        }

        rodata.nr_rules = config.rules.len() as u32;
        for (slot, rule) in rodata.rules.iter_mut().zip(&config.rules) {
            *slot = rules::to_bpf(rule);
        }

        let bss = skel
            .maps
            .bss_data
            .as_mut()
            .context("the BPF object has no bss")?;
        for &cpu in &machine.cpu_order {
            bss.cpu_online[cpu as usize] = 1;
        }

        let mut skel = scx_ops_load!(skel, temponet_ops, uei)?;
        // The agent's threads would inherit it.
        drop(hurry);
        let declarations = Declarations::carry_over(&mut skel, hints, &config.task_hint_map)
            .context("cannot carry the declared deadlines over")?;
        let gauges = Arc::new(Gauges::default());
        let cpus = OnlineCpus::new(machine.cpu_order.iter().copied());
        let agent = start_agent(&mut skel, config, cpus.mask(), &gauges)?;
        let link = scx_ops_attach!(skel, temponet_ops)?;
        let stats = StatsServer::new(stats::server_data()).launch()?;
        info!(
            "scheduling {} in {} domain{}",
            count_of(machine.nr_cpus()),
            machine.nr_doms(),
            if machine.nr_doms() == 1 { "" } else { "s" }
        );

        Ok(Self {
            declarations,
            skel,
            link: Some(link),
            stats,
            agent,
            gauges,
            policy: config.policy,
            brain: config.brain.clone(),
            agent_budget: config.agent_budget,
            cpus,
            agent_behind: false,
            nr_cpus: machine.cpu_dom.len(),
        })
    }

    /// Until told to stop, or until the kernel ends it. Whoever sets `shutdown` sends to `woken`,
    /// so that it ends at once.
    pub fn run(mut self, shutdown: &AtomicBool, woken: &Receiver<()>) -> Result<Ended> {
        let (answers, requests) = self.stats.channels();
        while !shutdown.load(Ordering::Relaxed) && !uei_exited!(&self.skel, uei) {
            select! {
                recv(requests) -> request => {
                    request?;
                    answers.send(self.snapshot())?;
                }
                recv(woken) -> _ => {}
                default(Duration::from_secs(1)) => {}
            }
            if RELOAD.swap(false, Ordering::Relaxed) {
                self.reload();
            }
            self.follow_hotplug();
            self.declarations.hints.store_missing();
        }
        drop(self.link.take());
        drop(self.agent.take());
        let info = uei_read!(&self.skel, uei);
        let data = self.skel.maps.data_data.as_ref();
        report(&info, data.map_or(0, |data| data.uei.kind))?;
        Ok(Ended { info })
    }

    /// CPUs come and go without a restart; the agent decides for those that are online.
    fn follow_hotplug(&mut self) {
        let Some(bss) = self.skel.maps.bss_data.as_ref() else {
            return;
        };
        for Change { cpu, online } in self.cpus.follow(bss.hotplugs, &bss.cpu_online) {
            self.agent_behind = true;
            info!(
                "CPU {cpu} {}: scheduling {}",
                if online {
                    "came online"
                } else {
                    "went offline"
                },
                count_of(self.cpus.count())
            );
        }
        if self.agent_behind {
            let agent = self.agent.as_ref();
            self.agent_behind = agent.is_some_and(|agent| !agent.follow(self.cpus.mask()));
        }
    }

    /// A model that cannot be used changes nothing.
    fn reload(&mut self) {
        let Some(agent) = &self.agent else {
            info!(
                "policy {:?} runs no network: nothing to reload",
                self.policy
            );
            return;
        };
        // It must not have to allocate when a CPU comes back.
        match Brain::open(&self.brain, self.cpus.known_mask()) {
            Ok(brain) => {
                info!("taking over the model {}", brain.identity());
                agent.swap(brain);
            }
            Err(error) => {
                Gauges::add(&self.gauges.swaps_refused, 1);
                warn!("keeping the model in use: {error:#}");
            }
        }
    }

    fn snapshot(&self) -> Snapshot {
        let Some(bss) = self.skel.maps.bss_data.as_ref() else {
            return Snapshot::empty(Instant::now());
        };
        let gauges = self.agent.is_some().then_some(self.gauges.as_ref());
        Snapshot::take(
            &bss.cpu_stats[..self.nr_cpus],
            agent_stats::views(&bss.cpu_views, self.cpus.iter()),
            &self.skel.maps.offenders,
            AgentTotals::take(self.policy, bss.level_now, self.agent_budget, gauges),
            gauges.map(agent_stats::endangered).unwrap_or_default(),
        )
    }
}

fn count_of(cpus: usize) -> String {
    match cpus {
        1 => "1 CPU".into(),
        cpus => format!("{cpus} CPUs"),
    }
}

/// Says why it ended: an error where the kernel had a reason to end it.
fn report(info: &UserExitInfo, kind: i32) -> Result<()> {
    // It panics where standard error cannot be written to, on a full disk for example.
    match std::panic::catch_unwind(|| info.report()) {
        Ok(reported) => reported,
        Err(_) if kind <= ScxExitKind::UnregKern as i32 => Ok(()),
        Err(_) => anyhow::bail!("the kernel ended it"),
    }
}

/// The agent, ready to be rung for, where the policy has one; else only the table
/// that the kernel half goes by.
fn start_agent(
    skel: &mut BpfSkel<'_>,
    config: &Config,
    cpus: CpuMask,
    gauges: &Arc<Gauges>,
) -> Result<Option<Agent>> {
    if matches!(config.policy, Policy::Edf | Policy::PlainEdf) {
        return Ok(None);
    }
    let board = Board::map(&skel.maps.data_board).context("cannot map the board")?;
    let brain = Brain::open(&config.brain, cpus)?;
    info!("model {}", brain.identity());
    if config.policy == Policy::Distilled {
        anyhow::ensure!(
            brain.introduce(&board),
            "the model has more bins than the BPF half has room for"
        );
        return Ok(None);
    }
    let senses = Senses {
        ring: MapHandle::try_from(&skel.maps.ring)?,
        board,
        truth: skel.progs.emit_all.attach()?,
        introduction: skel.progs.introduce_agent.as_fd().try_clone_to_owned()?,
    };
    let settings = Settings {
        cpus,
        budget: config.agent_budget,
        misbehave: config.misbehave,
        resync_every: config.resync_every,
    };
    let agent = Agent::start(brain, senses, settings, gauges.clone())?;
    lock_memory();
    Ok(Some(agent))
}

/// While the kernel checks the BPF half, which takes seconds of CPU time, nobody looks after
/// deadlines; a machine that is busy when a CPU comes or goes should not have to wait for it.
struct Hurry {
    nice: i32,
}

impl Hurry {
    fn begin() -> Hurry {
        // SAFETY: plain calls about the calling thread. Where it may not hurry, it does not.
        unsafe {
            let nice = libc::getpriority(libc::PRIO_PROCESS, 0);
            libc::setpriority(libc::PRIO_PROCESS, 0, -20);
            Hurry { nice }
        }
    }
}

impl Drop for Hurry {
    fn drop(&mut self) {
        // SAFETY: as above.
        unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, self.nice) };
    }
}

/// Every client of a socket has a thread, and every thread would have a heap of its own
/// that stays when it is gone. ONNX Runtime allocates with every inference, in a heap that
/// others use too: there must be something left that is locked already when they took theirs,
/// and little may be given back that would have to be got again.
fn settle_heaps() {
    const SPARE: libc::c_int = 1 << 20;
    // SAFETY: settings of the C library's, for heaps to come.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 2);
        libc::mallopt(libc::M_TOP_PAD, SPARE);
        libc::mallopt(libc::M_TRIM_THRESHOLD, 4 * SPARE);
        libc::mallopt(libc::M_MMAP_THRESHOLD, SPARE);
    };
}

/// Before 6.16 a scheduler had to say that it knows cgroup weights; since then
/// saying so earns a line in the kernel's log.
fn cgroup_weight_flag() -> u64 {
    match compat::read_enum("scx_ops_flags", "SCX_OPS_HAS_CGROUP_WEIGHT") {
        Ok(flag) if !compat::ksym_exists("scx_bpf_events").unwrap_or(false) => flag,
        _ => 0,
    }
}

/// Pinned so that privileged programs can declare deadlines without the daemon.
fn pin_hint_map(skel: &mut BpfSkel<'_>, path: &Path) -> Result<()> {
    if let Some(dir) = path.parent() {
        fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
    }
    // Left behind by a scheduler that was killed.
    if path.exists() {
        fs::remove_file(path).with_context(|| format!("cannot replace {}", path.display()))?;
    }
    skel.maps
        .task_hints
        .pin(path)
        .with_context(|| format!("cannot pin the hint map at {}", path.display()))
}
