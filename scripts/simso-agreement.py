"""Job-by-job agreement with SimSo 0.8.5; run through simso-agreement.sh.

For every random task set, number of cores, policy and semantics, both simulators
get the same task set file and the fates of all jobs are compared. Jobs whose
deadline lies beyond the horizon are left out, as everywhere.
"""

import argparse
import contextlib
import csv
import io
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time

import simso.schedulers.LLF
from simso.configuration import Configuration
from simso.core import Model
from simso.core.Job import Job
from simso.core.Processor import Processor

# SimSo derives laxities from floating-point milliseconds. As shipped, its EDZL
# livelocks in overload: a laxity of a billionth of a cycle is above zero, so it
# arms a timer of length zero, for ever. Whole cycles are what it means.
_laxity = Job.laxity.fget
Job.laxity = property(lambda job: round(_laxity(job)))

# As shipped, aborting a job that waits also stops whatever runs on the core it
# last ran on, and RM and EDZL, which do not look for it, never run that again.
_terminate = Processor.terminate


def terminate(processor, job):
    running = processor._running
    _terminate(processor, job)
    if running is not job:
        processor._running = running


Processor.terminate = terminate

# LLF's timer is charged 0.001 cycles a tick, which makes all later times fractions.
_Timer = simso.schedulers.LLF.Timer
simso.schedulers.LLF.Timer = lambda *args, overhead=0, **more: _Timer(*args, **more)

POLICIES = {
    "rm": "simso.schedulers.RM",
    "plain-edf": "simso.schedulers.EDF",
    "llf": "simso.schedulers.LLF",
    "edzl": "simso.schedulers.EDZL",
}
MS = 1_000_000


def random_set(rng, cores, horizon_ms):
    """UUniFast; odd periods and odd work, so that ties are rare."""
    n = rng.randint(3, 6) * cores
    total = rng.uniform(0.6, 1.2) * cores
    while True:
        shares, left = [], total
        for i in range(1, n):
            following = left * rng.random() ** (1 / (n - i))
            shares.append(left - following)
            left = following
        shares.append(left)
        if max(shares) < 0.95:
            break
    tasks = []
    for i, share in enumerate(shares):
        # Whole microseconds, and only those that survive SimSo's truncation of
        # floating-point milliseconds: 33.129 ms would become 33128999 ns there, and
        # its releases would drift away by a nanosecond a period.
        while True:
            period = rng.randrange(5_000, 60_000)
            if int(period * 1000 / MS * MS) == period * 1000:
                break
        work = max(1, round(period * share))
        tasks.append((f"T{i}", period * 1000, work * 1000))
    return {
        "name": "agreement",
        "cores": cores,
        "horizon_ns": horizon_ms * MS,
        "tasks": [
            {"name": name, "period_ns": p, "wcet_ns": c, "deadline_ns": p}
            for name, p, c in tasks
        ],
    }


def by_simso(task_set, scheduler, abort):
    configuration = Configuration()
    # One more nanosecond, so that what happens at the horizon has happened.
    configuration.duration = task_set["horizon_ns"] + 1
    configuration.cycles_per_ms = MS
    for i, task in enumerate(task_set["tasks"]):
        configuration.add_task(
            name=task["name"],
            identifier=i + 1,
            period=task["period_ns"] / MS,
            activation_date=0,
            wcet=task["wcet_ns"] / MS,
            deadline=task["deadline_ns"] / MS,
            abort_on_miss=abort,
        )
    for core in range(task_set["cores"]):
        configuration.add_processor(name=f"CPU {core}", identifier=core + 1)
    configuration.scheduler_info.clas = scheduler
    configuration.check_all()
    start = time.perf_counter()
    with contextlib.redirect_stdout(io.StringIO()):
        model = Model(configuration)
        model.run_model()
    elapsed = time.perf_counter() - start
    fates = {}
    for task in model.task_list:
        for index, job in enumerate(task.jobs):
            release = round(job.activation_date * MS)
            deadline = release + round(task.deadline * MS)
            if deadline > task_set["horizon_ns"]:
                continue
            done = job.end_date is not None and not job.aborted
            fates[task.name, index] = done and round(job.end_date) <= deadline
    return fates, elapsed


def by_us(binary, path, policy, abort, folder):
    jobs = os.path.join(folder, "jobs.csv")
    command = [
        binary, "sim", "--workload", path, "--policy", policy, "--json", "--jobs", jobs,
        "--semantics", "abort" if abort else "continue", "--timing",
    ]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    number, unit = re.search(r"job-events in ([0-9.]+)(ns|µs|ms|s)", done.stderr).groups()
    elapsed = float(number) * {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1.0}[unit]
    with open(jobs, newline="") as file:
        rows = list(csv.DictReader(file))
    return {(r["task"], int(r["index"])): r["met"] == "1" for r in rows}, elapsed


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--sets", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--horizon-ms", type=int, default=300)
    parser.add_argument("--policies", default=",".join(POLICIES))
    parser.add_argument("--cores", default="1,4")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    all_jobs = all_wrong = 0
    simso_total = ours_total = 0.0
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "set.json")
        print("| policy | cores | late jobs | sets | jobs | same fate | sets that differ | SimSo s | ours ms | ratio |")
        print("|---|---:|---|---:|---:|---:|---:|---:|---:|---:|")
        for cores in map(int, options.cores.split(",")):
            for policy in options.policies.split(","):
                scheduler = POLICIES[policy]
                for abort in (True, False):
                    rng = random.Random(options.seed)
                    jobs = same = differ = 0
                    simso_s = ours_s = 0.0
                    for number in range(options.sets):
                        task_set = random_set(rng, cores, options.horizon_ms)
                        with open(path, "w") as file:
                            json.dump(task_set, file)
                        theirs, t = by_simso(task_set, scheduler, abort)
                        simso_s += t
                        ours, t = by_us(options.binary, path, policy, abort, folder)
                        ours_s += t
                        if theirs.keys() != ours.keys():
                            sys.exit(f"set {number}: not the same jobs: {theirs.keys() ^ ours.keys()}")
                        wrong = [k for k in ours if ours[k] != theirs[k]]
                        jobs += len(ours)
                        same += len(ours) - len(wrong)
                        differ += bool(wrong)
                        if wrong and options.verbose:
                            shown = [(*k, "we meet" if ours[k] else "they meet") for k in sorted(wrong)]
                            print(f"set {number}: {shown[:5]}", file=sys.stderr)
                    all_jobs += jobs
                    all_wrong += jobs - same
                    simso_total += simso_s
                    ours_total += ours_s
                    print(
                        f"| {policy} | {cores} | {'abort' if abort else 'go on'} | {options.sets} | {jobs} "
                        f"| {same} ({100 * same / jobs:.3f} %) | {differ} | {simso_s:.2f} | {ours_s * 1e3:.2f} | {simso_s / ours_s:.0f} |",
                        flush=True,
                    )
    print(
        f"\nAll together: SimSo {simso_total:.1f} s, ours {ours_total:.3f} s, {simso_total / ours_total:.0f} times "
        f"faster; {all_wrong} of {all_jobs} jobs differ"
    )
    # Ties between jobs of equal rank may fall either way; anything more is a mistake.
    sys.exit(all_wrong > all_jobs / 10_000)


if __name__ == "__main__":
    main()
