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
  latency           wake-up latency of two SCHED_OTHER threads (cyclictest) that meet on
                    one CPU, beside a hog
  latency-overload  of one beside eight rt-app tasks at 1.25 times the CPU's capacity"""

PEERS = "scx_bpfland,scx_rustland,scx_flash"
EVERYBODY = f"eevdf,fifo-rm,deadline,{PEERS},edf,distilled,temponet,temponet-native"

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
    return Case("rt", EVERYBODY, 6, cpus=cpus, tasks=tasks, stretch=cpus)


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
        "rt", "edf,distilled,temponet", 10, cpus=4, tasks=crowd(count, 1.25, SEED), stretch=4, mem="2G", by_rule=True
    )
