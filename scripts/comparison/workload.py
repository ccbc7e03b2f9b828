"""Periodic tasks: how they are drawn, and the files that rt-app and the
scheduler are given for them."""

import json
import random
import re
from dataclasses import dataclass

# A declared runtime is a worst case; calibrated loops vary by a few per cent.
HEADROOM = 1.06
# What SCHED_DEADLINE may have of each CPU, as the kernel comes: it keeps 5 % from
# all real-time work and, since 6.12, another 5 for the server of fair tasks.
DEADLINE_LIMIT = 0.90


@dataclass(frozen=True)
class Task:
    run_us: int
    period_us: int
    group: int = 0  # tasks of a group are alike

    @staticmethod
    def parse(text):
        """13/40 is 13 ms of work every 40 ms, due before the next 13."""
        match = re.fullmatch(r"([0-9.]+)/([0-9.]+)", text)
        if not match:
            raise ValueError(f"not RUN/PERIOD in milliseconds: {text}")
        task = Task(*(round(float(ms) * 1000) for ms in match.groups()))
        if not 0 < task.run_us <= task.period_us:
            raise ValueError(f"run time must be above zero and at most the period: {text}")
        return task

    def __str__(self):
        return f"{self.run_us / 1000:g}/{self.period_us / 1000:g}"

    @property
    def share(self):
        return self.run_us / self.period_us


def parse_tasks(text):
    return [Task.parse(word) for word in text.split(",") if word]


def scaled(shape, load):
    """The tasks written in `shape`, with run times that make up this load."""
    tasks = parse_tasks(shape)
    factor = load / sum(t.share for t in tasks)
    return [Task(round(t.run_us * factor), t.period_us) for t in tasks]


def drawn(count, load, largest, seed, periods_ms=(20, 200)):
    """Log-uniform periods; the load split by UUniFast, drawn again while one
    task alone has more than `largest`."""
    chance = random.Random(f"{seed} {count} {load}")
    low, high = periods_ms
    periods_us = [round(low * (high / low) ** chance.random(), 1) * 1000 for _ in range(count)]
    while True:
        shares, left = [], load
        for others in range(count - 1, 0, -1):
            rest = left * chance.random() ** (1 / others)
            shares.append(left - rest)
            left = rest
        shares.append(left)
        runs_us = [round(share * period) for share, period in zip(shares, periods_us)]
        # rt-app's shortest run is a few loops; below 0.1 ms it is all overhead.
        if max(shares) <= largest and min(runs_us) >= 100:
            return [Task(run, round(period)) for run, period in zip(runs_us, periods_us)]


def crowd(count, load, seed, kinds=16, periods_ms=(100, 1000)):
    """Many tasks of a few kinds, each of them as much of the load."""
    chance = random.Random(f"{seed} crowd {count}")
    low, high = periods_ms
    periods_us = [round(low * (high / low) ** chance.random()) * 1000 for _ in range(kinds)]
    tasks = []
    for i in range(count):
        period_us = periods_us[i % kinds]
        tasks.append(Task(max(100, round(load / count * period_us)), period_us, i % kinds))
    return tasks


def thread_name(i, task):
    """At most 15 bytes, and what a rule can tell the groups apart by."""
    return f"g{task.group}_{i}"


def declared_runtimes_us(tasks, stretch):
    return [min(round(t.run_us * stretch * HEADROOM), t.period_us) for t in tasks]


def deadline_runtimes_us(tasks, stretch, cpus):
    """What a user of SCHED_DEADLINE would declare: the headroom that others get
    where the kernel admits that, else as much as it admits; never less than the
    work itself, and then the kernel refuses."""
    wanted = stretch * HEADROOM
    least = 1 if stretch == 1 else cpus
    # A per mille below the limit, because the kernel rounds.
    admitted = (DEADLINE_LIMIT - 0.001) * cpus / sum(t.share for t in tasks)
    factor = max(least, min(wanted, admitted))
    return [min(round(t.run_us * factor), t.period_us) for t in tasks]


def rtapp_file(tasks, policy, delay_us, window_s, offsets_us, runtimes_us):
    """The workload; calibration and log folder are filled in in the guest."""
    rates = sorted({task.period_us for task in tasks})
    entries = {}
    for i, task in enumerate(tasks):
        entry = {
            "policy": policy,
            "delay": delay_us + offsets_us[i],
            "loop": -1,
            "run": task.run_us,
            # Absolute: a job that is late does not move those after it.
            "timer": {"ref": "unique", "period": task.period_us, "mode": "absolute"},
        }
        if policy == "SCHED_FIFO":
            entry["priority"] = max(1, 50 - rates.index(task.period_us))
        if policy == "SCHED_DEADLINE":
            entry |= {"dl-runtime": runtimes_us[i], "dl-deadline": task.period_us, "dl-period": task.period_us}
        entries[thread_name(i, task)] = entry
    settings = {
        "duration": delay_us // 1_000_000 + window_s,
        "calibration": "@CALIBRATION@",
        "lock_pages": False,
        # MB of memory for each thread's log.
        "log_size": 2 if len(tasks) <= 32 else 1,
        "logdir": "@LOGDIR@",
        "log_basename": "log",
    }
    text = json.dumps({"global": settings, "tasks": entries}, indent=1)
    return text.replace('"@CALIBRATION@"', "@CALIBRATION@")


def rules_file(tasks, runtimes_us):
    """A rule per group: declaring hundreds of threads one by one takes longer
    than they sleep."""
    rules = {}
    for task, runtime_us in zip(tasks, runtimes_us):
        rules[task.group] = f'[[rule]]\ncomm = "g{task.group}_*"\nruntime = "{runtime_us}us"\nperiod = "{task.period_us}us"\n'
    return "\n".join(rules.values())
