"""The workloads that schedulers are compared on."""

from dataclasses import dataclass, field

from workload import crowd, drawn, parse_tasks, scaled

MANUAL = """\
cases:
  one-cpu           rt-app on one CPU, utilisation 0.91, which EDF can always serve
  two-cpus          six rt-app tasks at 0.85 of the guest's capacity beside two hogs
  overload          five rt-app tasks on one CPU, utilisation 1.3
  overload-M-U-N    N tasks at U times the capacity of M CPUs
                    (M 1, 2; U 1.25, 1.5; N 3, 8, 20)
  crowd-64, -200    so many tasks on four vCPUs, 1.25 times their capacity
  slowed            overload-1-1.25-8 with inference 1, 10 and 100 times slower
  throughput        context switches per second (stress-ng) and messages (hackbench)
  throughput-busy   the same on one CPU beside four rt-app tasks that declare 1.2 of it and
                    use 0.3, so that there is always something to decide
  latency           wake-up latency of two SCHED_OTHER threads (cyclictest) that meet on
                    one CPU, beside a hog
  latency-overload  of one beside eight rt-app tasks at 1.25 times the CPU's capacity"""

PEERS = "scx_bpfland,scx_rustland,scx_flash"
OTHERS = f"eevdf,fifo-rm,deadline,{PEERS}"
OURS = "edf,distilled,temponet,temponet-native"
EVERYBODY = f"{OTHERS},{OURS}"
# Below capacity nobody is given up, and plain EDF is what edf is.
OVERLOADED = f"{OTHERS},plain-edf,{OURS}"
# SCHED_DEADLINE is no row where what is measured is not the deadline tasks.
UNTIMED = f"eevdf,{PEERS},edf,distilled,temponet"

# Of the drawn task sets.
SEED = 5


@dataclass
class Case:
    kind: str
    schedulers: str
    seconds: int
    cpus: int = 2
    tasks: list = field(default_factory=list)
    hogs: int = 0
    pin: bool = False
    stretch: float = 0  # of declared runtimes; 0: see plan.py
    mem: str = "1G"
    no_fma: bool = False  # hide fused multiply-add even where nobody infers
    by_rule: bool = False  # deadlines are declared by a rules file, not by hints


def overload(cpus, load, count):
    if count > 3:
        # A task that is alone on a busy vCPU has 1/cpus of the clock.
        tasks = drawn(count, load, 0.9 / cpus, SEED)
    elif cpus == 1:
        tasks = scaled("13/40,20/60,25/100", load)
    else:
        # Two of the three fit into the guest, and each of the cheap two into
        # one of two busy vCPUs.
        tasks = scaled("12/40,16.8/60,42/100", load)
    # While all vCPUs are busy, and in overload they are, each has its share.
    return Case("rt", OVERLOADED, 6, cpus=cpus, tasks=tasks, stretch=cpus)


CASES = {
    "one-cpu": Case(
        "rt", "eevdf,scx_bpfland,fifo-rm,deadline-forced,edf,edf-nohints", 6, tasks=parse_tasks("13/40,20/60,25/100"), pin=True
    ),
    "two-cpus": Case(
        "rt", "eevdf,scx_bpfland,edf", 6, tasks=parse_tasks("5.6/40,7.1/50,8.5/60,11.3/80,14.2/100,17.3/120"), hogs=2
    ),
    "overload": Case(
        "rt", "eevdf,scx_bpfland,fifo-rm,edf", 6, tasks=parse_tasks("13/40,20/60,15/80,25/100,24.5/120"), pin=True
    ),
    "slowed": Case("rt", "edf,distilled,temponet,temponet@10,temponet@100", 6, tasks=overload(1, 1.25, 8).tasks, pin=True, stretch=1),
    "throughput": Case("throughput", "eevdf,scx_bpfland,edf", 3),
    # Periods differ, so that jobs meet whenever they start. The agent is rung for while more
    # than the CPU is declared; what is used of it leaves most to what is measured.
    "throughput-busy": Case("throughput", UNTIMED, 6, cpus=1, tasks=parse_tasks("3/40,3.3/44,3.6/48,3.9/52"), stretch=3.8),
    # On one vCPU: several take turns on one clock, and who wakes up in whose turn is chance.
    "latency": Case("latency", "eevdf,scx_bpfland,edf", 8, cpus=1),
    "latency-overload": Case("latency", "eevdf,scx_bpfland,edf", 8, cpus=1, tasks=overload(1, 1.25, 8).tasks, stretch=1),
}
for cpus in (1, 2):
    for load in (1.25, 1.5):
        for count in (3, 8, 20):
            CASES[f"overload-{cpus}-{load}-{count}"] = overload(cpus, load, count)
for count in (64, 200):
    CASES[f"crowd-{count}"] = Case(
        "rt", f"eevdf,deadline,{PEERS},edf,distilled,temponet", 10, cpus=4, tasks=crowd(count, 1.25, SEED), stretch=4, mem="2G", by_rule=True
    )
