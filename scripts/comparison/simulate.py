"""The simulator's figure for a case, as unkind as the kernel is.

Late jobs go on, the work that is left is estimated from the task's past, and a
switch costs something. Decisions take effect at once: in the kernel nobody waits for
one, since deadlines order those that the agent keeps until its word is there, while
the simulator would hold up every dispatch by what a decision takes. The vCPUs
of an icount guest share one clock: in overload all of them are busy, so each is
taken for a core on which everything takes as many times as long as there are
vCPUs. A vCPU that has the clock to itself for a while is faster than that.
"""

import json
import pathlib
import subprocess
import tempfile

from plan import SCRIPTS, offsets_us
from schedulers import scheduler_named
from workload import HEADROOM

SWITCH_COST = "10us"
# Nothing is given up.
PLAIN_EDF = "plain-edf"


def task_set(options, repeat):
    cores = 1 if options.pin else options.cpus
    tasks = []
    for i, (task, offset) in enumerate(zip(options.tasks, offsets_us(options, repeat))):
        tasks.append({
            "name": f"T{i}",
            "period_ns": task.period_us * 1000,
            "wcet_ns": round(task.run_us * 1000 * cores * HEADROOM),
            "deadline_ns": task.period_us * 1000,
            "offset_ns": offset * 1000,
            "criticality": 0,
            "arrival": "periodic",
            "execution": {"uniform": {"low": 1 / HEADROOM, "high": 1 / HEADROOM}},
        })  # fmt: skip
    # As long as every task, whenever it starts, has the window of the guest.
    horizon = options.seconds * 1_000_000_000
    return {"name": f"{options.case}.{repeat}", "cores": cores, "horizon_ns": horizon, "seed": 1, "tasks": tasks}


def compliance(options, repeats, policies):
    """Share of jobs met by policy, over all repeats."""
    program = options.program or SCRIPTS.parent / "target/release/scx_temponet"
    met, jobs = dict.fromkeys(policies, 0), dict.fromkeys(policies, 0)
    with tempfile.TemporaryDirectory() as folder:
        for repeat in repeats:
            file = pathlib.Path(folder, f"{repeat}.json")
            file.write_text(json.dumps(task_set(options, repeat)))
            command = [program, "sim", "--workload", file, "--policy", ",".join(policies), "--semantics", "continue"]
            command += ["--knowledge", "history", "--switch-cost", SWITCH_COST, "--json", "--threads", "1"]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            for outcome in json.loads(done.stdout)["comparisons"][0]["outcomes"]:
                met[outcome["policy"]] += sum(s["met"] for s in outcome["sets"])
                jobs[outcome["policy"]] += sum(s["jobs"] for s in outcome["sets"])
    return {policy: met[policy] / jobs[policy] for policy in policies}


def add_simulated(options, repeats, rows):
    """Puts the simulator's figure and the gap to it into the rows that have a
    counterpart there; returns the figure of plain EDF."""
    counterparts = {scheduler_named(r["scheduler"]).simulated for r in rows} - {""}
    known = compliance(options, repeats, sorted(counterparts | {PLAIN_EDF}))
    for row in rows:
        policy = scheduler_named(row["scheduler"]).simulated
        if policy and "compliance" in row:
            row["simulated_as"], row["simulated"] = policy, known[policy]
            row["gap_points"] = 100 * (row["compliance"] - known[policy])
    return known[PLAIN_EDF]
