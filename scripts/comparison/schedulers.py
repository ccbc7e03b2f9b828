"""The rows: who schedules, and how it is started in the guest."""

import re
from dataclasses import dataclass, replace

MANUAL = """\
schedulers:
  eevdf            the kernel's own
  fifo-rm          SCHED_FIFO, the shorter the period the higher the priority
  deadline         SCHED_DEADLINE as the kernel comes, so it may refuse the set
  deadline-forced  the same with admission control switched off
  edf              scx_temponet --policy edf, deadlines declared
  plain-edf        the same with nobody given up in overload
  edf-nohints      edf with estimates only
  distilled        scx_temponet --policy distilled, deadlines declared
  temponet         scx_temponet --policy temponet through ONNX Runtime, likewise
  temponet-native  the same with the built-in backend
  temponet@10      temponet with its inference made ten times slower (any number)
  scx_NAME         a peer (scripts/peers.sh builds it)"""


@dataclass(frozen=True)
class Scheduler:
    launch: str = ""  # command line; empty: the kernel's own scheduler
    declares: bool = False  # deadlines are declared to it
    policy: str = "SCHED_OTHER"  # of the rt-app threads
    forced: bool = False  # the kernel's admission control is switched off
    infers: bool = False  # runs a network in the guest
    runtime: bool = False  # wants ONNX Runtime there
    simulated: str = ""  # the simulator's policy that is nearest to it

    @property
    def ours(self):
        return self.launch.startswith("scx_temponet ")


def own(policy, simulated, **more):
    # Worst cases may add up to more than the guest has: overload is a case here.
    launch = f"scx_temponet --policy {policy} --hint-util-max 2"
    return Scheduler(launch=launch, declares=True, simulated=simulated, **more)


SCHEDULERS = {
    "eevdf": Scheduler(),
    "fifo-rm": Scheduler(policy="SCHED_FIFO", simulated="rm"),
    "deadline": Scheduler(policy="SCHED_DEADLINE"),
    "deadline-forced": Scheduler(policy="SCHED_DEADLINE", forced=True),
    # In overload the BPF half gives jobs up by Moore and Hodgson's rule, so
    # plain EDF is not what it is like.
    "edf": own("edf", "edf"),
    "plain-edf": own("plain-edf", "plain-edf"),
    "edf-nohints": Scheduler(launch="scx_temponet --policy edf"),
    "distilled": own("distilled", "distilled-shield"),
    "temponet": own("temponet", "temponet", infers=True, runtime=True),
    "temponet-native": own("temponet --backend native", "temponet", infers=True),
}


def scheduler_named(name):
    """KeyError where there is none."""
    if re.fullmatch(r"scx_[a-z_]+", name) and name != "scx_temponet":
        return Scheduler(launch=name)
    slowed = re.fullmatch(r"temponet@([1-9][0-9]*)", name)
    if slowed:
        plain = SCHEDULERS["temponet"]
        return replace(plain, launch=f"{plain.launch} --slow-inference {slowed.group(1)}")
    return SCHEDULERS[name]


def is_network(name):
    return scheduler_named(name).infers
