#!/usr/bin/env python3
"""Runs one workload under several schedulers and prints a table.

Everything happens in one icount guest: time there counts instructions, so the
host's noise does not matter, and all schedulers meet the same machine. It is a
slow machine (one instruction per nanosecond), and its vCPUs share one clock, so
compare ratios, never absolute times.

cases:
  one-cpu      rt-app on one CPU, utilisation 0.91, which EDF can always serve
  two-cpus     six rt-app tasks at 0.85 of the guest's capacity beside two hogs
  overload     five rt-app tasks on one CPU, utilisation 1.3
  throughput   context switches per second (stress-ng) and messages (hackbench)
  latency      wake-up latency of SCHED_OTHER threads (cyclictest) under full load

schedulers:
  eevdf        the kernel's own
  fifo-rm      SCHED_FIFO, the shorter the period the higher the priority
  deadline     SCHED_DEADLINE with the declared runtimes, admission switched off
  edf          scx_temponet --policy edf, deadlines declared through hints
  edf-nohints  the same with estimates only
  scx_NAME     a peer (scripts/peers.sh builds it)
"""

import argparse
import json
import pathlib
import random
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass

SCRIPTS = pathlib.Path(__file__).resolve().parent

# Before its first job every rt-app thread sleeps so long: time to declare hints.
DELAY_S = 3
# A declared runtime is a worst case; calibrated loops vary by a few per cent.
HEADROOM = 1.06


@dataclass
class Scheduler:
    launch: str = ""  # command line; empty: the kernel's own scheduler
    hints: bool = False  # declare deadlines through hints
    policy: str = "SCHED_OTHER"  # of the rt-app threads
    infers: bool = False  # runs a network in the guest


SCHEDULERS = {
    "eevdf": Scheduler(),
    "fifo-rm": Scheduler(policy="SCHED_FIFO"),
    "deadline": Scheduler(policy="SCHED_DEADLINE"),
    # Worst cases may add up to more than the guest has: overload is a case here.
    "edf": Scheduler(launch="scx_temponet --policy edf --hint-util-max 2", hints=True),
    "edf-nohints": Scheduler(launch="scx_temponet --policy edf"),
}


def scheduler_named(name):
    if re.fullmatch(r"scx_[a-z_]+", name) and name != "scx_temponet":
        return Scheduler(launch=name)
    return SCHEDULERS[name]


@dataclass
class Task:
    run_us: int
    period_us: int

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


@dataclass
class Case:
    kind: str
    schedulers: str
    seconds: int
    cpus: int = 2
    tasks: str = ""
    hogs: int = 0
    pin: bool = False


CASES = {
    "one-cpu": Case("rt", "eevdf,scx_bpfland,fifo-rm,deadline,edf,edf-nohints", 6, tasks="13/40,20/60,25/100", pin=True),
    "two-cpus": Case(
        "rt", "eevdf,scx_bpfland,edf", 6, tasks="5.6/40,7.1/50,8.5/60,11.3/80,14.2/100,17.3/120", hogs=2
    ),
    "overload": Case(
        "rt", "eevdf,scx_bpfland,fifo-rm,edf", 6, tasks="13/40,20/60,15/80,25/100,24.5/120", pin=True
    ),
    "throughput": Case("throughput", "eevdf,scx_bpfland,edf", 3),
    "latency": Case("latency", "eevdf,scx_bpfland,edf", 8),
}


def rtapp_workload(tasks, scheduler, window_s, offsets_us, runtimes_us):
    """The workload file; calibration and log folder are filled in in the guest."""
    by_rate = sorted(range(len(tasks)), key=lambda i: tasks[i].period_us)
    entries = {}
    for i, task in enumerate(tasks):
        entry = {
            "policy": scheduler.policy,
            "delay": DELAY_S * 1_000_000 + offsets_us[i],
            "loop": -1,
            "run": task.run_us,
            # Absolute: a job that is late does not move those after it.
            "timer": {"ref": "unique", "period": task.period_us, "mode": "absolute"},
        }
        if scheduler.policy == "SCHED_FIFO":
            entry["priority"] = 50 - by_rate.index(i)
        if scheduler.policy == "SCHED_DEADLINE":
            entry |= {"dl-runtime": runtimes_us[i], "dl-deadline": task.period_us, "dl-period": task.period_us}
        entries[f"task{i}"] = entry
    settings = {
        "duration": DELAY_S + window_s,
        "calibration": "@CALIBRATION@",
        "lock_pages": False,
        "log_size": 2,
        "logdir": "@LOGDIR@",
        "log_basename": "log",
    }
    text = json.dumps({"global": settings, "tasks": entries}, indent=1)
    return text.replace('"@CALIBRATION@"', "@CALIBRATION@")


def make_plan(options, folder):
    """Writes the guest's plan into folder; returns (scheduler, repeat, run) names."""
    lines = [". /plan/measure.sh"]
    runs = []
    if options.kind == "rt":
        lines.append("calibrate")
    # Where hogs or tasks keep the other vCPUs busy, each of them runs at its
    # share of the one clock, and that is what a runtime has to allow for.
    # The vCPUs of an icount guest share one clock, and not quite evenly: where N
    # are busy a job takes between 0.85 N and 1.3 N times as long.
    stretch = options.stretch or (1 if options.pin and not options.hogs else 1.3 * options.cpus)
    for repeat in range(options.repeats):
        chance = random.Random(options.seed * 1000 + repeat)
        # The first repeat releases all tasks at once: the worst case.
        offsets_us = [chance.randrange(task.period_us) if repeat else 0 for task in options.tasks]
        for name in options.schedulers:
            scheduler = scheduler_named(name)
            run = f"{name}.{repeat}"
            runs.append((name, repeat, run))
            call = ["run", options.kind, run, scheduler.launch]
            if options.kind == "rt":
                runtimes_us = [min(round(t.run_us * stretch * HEADROOM), t.period_us) for t in options.tasks]
                workload = rtapp_workload(options.tasks, scheduler, options.seconds + 1, offsets_us, runtimes_us)
                (folder / f"{run}.json").write_text(workload)
                cpus = str(options.cpus - 1) if options.pin else f"0-{options.cpus - 1}"
                call += [f"/plan/{run}.json", cpus, str(options.hogs), str(DELAY_S)]
                if scheduler.hints:
                    for i, task in enumerate(options.tasks):
                        call.append(f"task{i}:{runtimes_us[i]}:{task.period_us}:{task.period_us}")
            elif options.kind == "throughput":
                call += [str(options.cpus), str(options.seconds)]
            elif options.kind == "latency":
                call += [str(options.cpus), str(options.cpus), str(options.seconds), "2000"]
                if scheduler.hints:
                    call.append("200:1000:2000")
            lines.append(shlex.join(call))
    (folder / "plan.sh").write_text("\n".join(lines) + "\n")
    shutil.copy(SCRIPTS / "guest" / "measure.sh", folder)
    return runs


def guest_seconds(options):
    each = options.seconds + (DELAY_S + 3 if options.kind == "rt" else 3)
    return each * len(options.schedulers) * options.repeats


def boot(options, plan, out):
    """Runs the plan in the guest; each line it prints is a run that starts."""
    command = [SCRIPTS / "vm", "--mode", "icount", "--kernel", options.kernel, "--cpus", str(options.cpus)]
    command += ["--timeout", str(300 + 8 * guest_seconds(options)), "--out", out, "--add", f"{plan}:/plan"]
    if any(scheduler_named(name).infers for name in options.schedulers):
        command.append("--no-fma")
    if options.program:
        command += ["--program", options.program]
    total = len(options.schedulers) * options.repeats
    with subprocess.Popen(command + ["--", "bash", "/plan/plan.sh"], stdout=subprocess.PIPE, text=True) as guest:
        for number, line in enumerate(guest.stdout, 1):
            print(f"compare: run {number} of {total}: {line.strip()}", file=sys.stderr)
    if guest.returncode:
        sys.exit(f"compare: error: the guest ended with status {guest.returncode}")


def percentile(values, share):
    """The smallest value that at least this share of all values do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * share // 100) - 1)] if ordered else None


def mean(values):
    return sum(values) / len(values) if values else None


def read_jobs(log, task, window_us):
    """(released, responses in µs of those that ended) from one thread's log.

    rt-app's job k is released at first + k * period on the thread's own grid;
    its `slack` is first + (k + 1) * period - end, so end - release is period -
    slack. A starved thread logs nothing, hence `released` from the window.
    """
    released = window_us // task.period_us
    responses = []
    for line in log.read_text().splitlines():
        if line.startswith("#") or not line.strip():
            continue
        if len(responses) == released:
            break
        responses.append(task.period_us - int(line.split()[7]))
    return released, responses


def collect_rt(options, out, runs):
    rows = []
    for name in options.schedulers:
        tasks = [{"task": f"{t.run_us / 1000:g}/{t.period_us / 1000:g}", "released": 0, "met": 0, "responses": []} for t in options.tasks]
        compliances, shares, failed = [], [], None
        for run in [run for scheduler, _, run in runs if scheduler == name]:
            if (out / run / "failed").exists():
                failed = (out / run / "failed").read_text().strip()
                continue
            released_here = met_here = 0
            for i, task in enumerate(options.tasks):
                released, responses = read_jobs(out / run / f"log-task{i}-{i}.log", task, options.seconds * 1_000_000)
                met = sum(r <= task.period_us for r in responses)
                released_here, met_here = released_here + released, met_here + met
                tasks[i]["released"] += released
                tasks[i]["met"] += met
                tasks[i]["responses"] += responses
            compliances.append(met_here / released_here)
            cpu_before, cpu_after, before, after = map(float, (out / run / "hogs").read_text().split())
            shares.append((cpu_after - cpu_before) / (after - before))
        row = {"scheduler": name, "failed": failed}
        if compliances:
            every = [r for task in tasks for r in task["responses"]]
            row |= summary(tasks, every)
            row |= {"compliance_min": min(compliances), "compliance_max": max(compliances)}
            if options.hogs:
                row["hogs_cpus"] = mean(shares)
            row["tasks"] = [{"task": t["task"]} | summary([t], t["responses"]) for t in tasks]
        rows.append(row)
    return rows


def summary(tasks, responses):
    released = sum(t["released"] for t in tasks)
    met = sum(t["met"] for t in tasks)
    return {
        "released": released,
        "met": met,
        "missed": released - met,
        "unfinished": released - len(responses),
        "compliance": met / released,
        "mean_response_ms": (mean(responses) or 0) / 1000,
        "p99_response_ms": (percentile(responses, 99) or 0) / 1000,
    }


def collect_throughput(options, out, runs):
    rows = []
    for name in options.schedulers:
        switches, seconds, failed = [], [], None
        for run in [run for scheduler, _, run in runs if scheduler == name]:
            if (out / run / "failed").exists():
                failed = (out / run / "failed").read_text().strip()
                continue
            # stress-ng: info: [1] switch  OPS  REAL USER SYS  OPS/S(real) ...
            fields = re.search(r"\] switch\s+(.*)", (out / run / "switch").read_text()).group(1).split()
            switches.append(float(fields[4]))
            seconds.append(float(re.search(r"Time: ([0-9.]+)", (out / run / "hackbench").read_text()).group(1)))
        row = {"scheduler": name, "failed": failed}
        if switches:
            row |= {"switches_per_s": mean(switches), "hackbench_s": mean(seconds)}
        rows.append(row)
    reference = next((r for r in rows if r["scheduler"] == "eevdf" and "hackbench_s" in r), None)
    for row in rows:
        if reference and "hackbench_s" in row:
            row["switch_ratio"] = row["switches_per_s"] / reference["switches_per_s"]
            row["hackbench_ratio"] = reference["hackbench_s"] / row["hackbench_s"]
    return rows


def collect_latency(options, out, runs):
    rows = []
    for name in options.schedulers:
        counts, worst, failed = {}, 0, None
        for run in [run for scheduler, _, run in runs if scheduler == name]:
            if (out / run / "failed").exists():
                failed = (out / run / "failed").read_text().strip()
                continue
            text = (out / run / "cyclictest").read_text()
            for line in text.splitlines():
                if re.match(r"[0-9]{6}", line):
                    latency, *threads = map(int, line.split())
                    counts[latency] = counts.get(latency, 0) + sum(threads)
            worst = max([worst] + [int(n) for n in re.search(r"Max Latencies: ([0-9 ]+)", text).group(1).split()])
        row = {"scheduler": name, "failed": failed}
        if counts:
            total = sum(counts.values())
            for label, share in (("p50_us", 50), ("p99_us", 99)):
                seen = 0
                for latency in sorted(counts):
                    seen += counts[latency]
                    if seen * 100 >= total * share:
                        row[label] = latency
                        break
            row |= {"max_us": worst, "samples": total}
        rows.append(row)
    return rows


COLUMNS = {
    "rt": [
        ("released", "jobs", "d"),
        ("missed", "missed", "d"),
        ("unfinished", "unfinished", "d"),
        ("compliance", "met", ".1%"),
        ("compliance_min", "min", ".1%"),
        ("compliance_max", "max", ".1%"),
        ("mean_response_ms", "mean ms", ".1f"),
        ("p99_response_ms", "p99 ms", ".1f"),
        ("hogs_cpus", "hogs' CPUs", ".2f"),
    ],
    "throughput": [
        ("switches_per_s", "switches/s", ".0f"),
        ("switch_ratio", "to eevdf", ".2f"),
        ("hackbench_s", "hackbench s", ".2f"),
        ("hackbench_ratio", "speed to eevdf", ".2f"),
    ],
    "latency": [("samples", "samples", "d"), ("p50_us", "p50 µs", "d"), ("p99_us", "p99 µs", "d"), ("max_us", "max µs", "d")],
}


def print_table(rows, columns, verbose):
    columns = [c for c in columns if any(c[0] in row for row in rows)]
    lines = [["scheduler"] + [title for _, title, _ in columns]]
    for row in rows:
        lines.append([row["scheduler"]] + [format(row[key], spec) if key in row else "-" for key, _, spec in columns])
        for task in row.get("tasks", []) if verbose else []:
            lines.append(["  " + task["task"]] + [format(task[key], spec) if key in task else "" for key, _, spec in columns])
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    for line in lines:
        print("  ".join([line[0].ljust(widths[0])] + [cell.rjust(w) for cell, w in zip(line[1:], widths[1:])]).rstrip())


def parse_arguments():
    parser = argparse.ArgumentParser(prog="scripts/compare", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", choices=CASES)
    parser.add_argument("--schedulers", metavar="A,B,...", help="instead of the case's own list")
    parser.add_argument("--tasks", metavar="RUN/PERIOD,...", help="instead of the case's tasks, in milliseconds")
    parser.add_argument("--seconds", type=int, help="guest time of one run")
    parser.add_argument("--repeats", type=int, default=3, help="runs per scheduler, with other start offsets each (default: 3)")
    parser.add_argument("--seed", type=int, default=1, help="of the start offsets (default: 1)")
    parser.add_argument("--cpus", type=int, help="vCPUs of the guest")
    parser.add_argument("--hogs", type=int, help="stress-ng --cpu workers beside the tasks")
    parser.add_argument("--pin", action=argparse.BooleanOptionalAction, default=None, help="tasks on the last CPU only")
    parser.add_argument("--stretch", type=float, help="by how much declared runtimes exceed the calibrated ones (default: 1 on one CPU, else 1.3 times the number of CPUs)")
    parser.add_argument("--kernel", default="6.18.15", help="as scripts/vm takes it (default: 6.18.15)")
    parser.add_argument("--program", help="the scx_temponet to take along")
    parser.add_argument("--keep", metavar="DIR", help="keep the raw logs there")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("-v", "--verbose", action="store_true", help="a line per task too")
    options = parser.parse_args()
    case = CASES[options.case]
    options.kind = case.kind
    for key in ("schedulers", "tasks", "seconds", "cpus", "hogs", "pin"):
        if getattr(options, key) is None:
            setattr(options, key, getattr(case, key))
    try:
        options.tasks = [Task.parse(text) for text in options.tasks.split(",") if text]
    except ValueError as error:
        parser.error(str(error))
    options.schedulers = options.schedulers.split(",")
    for name in options.schedulers:
        try:
            scheduler_named(name)
        except KeyError:
            parser.error(f"unknown scheduler: {name}")
    if min(options.seconds, options.repeats, options.cpus) < 1 or options.hogs < 0:
        parser.error("seconds, repeats and cpus are at least 1, hogs at least 0")
    return options


def main():
    options = parse_arguments()
    peers = [name for name in options.schedulers if name.startswith("scx_")]
    if peers:
        subprocess.run([SCRIPTS / "peers.sh", *peers], check=True)
    with tempfile.TemporaryDirectory() as folder:
        plan, out = pathlib.Path(folder, "plan"), pathlib.Path(options.keep or folder + "/out")
        plan.mkdir()
        runs = make_plan(options, plan)
        boot(options, plan, out)
        collect = {"rt": collect_rt, "throughput": collect_throughput, "latency": collect_latency}[options.kind]
        rows = collect(options, out, runs)
    if options.json:
        report = {"case": options.case, "kernel": options.kernel, "cpus": options.cpus, "seconds": options.seconds}
        report |= {"repeats": options.repeats, "hogs": options.hogs, "pin": options.pin, "rows": rows}
        print(json.dumps(report, indent=2))
    else:
        print_table(rows, COLUMNS[options.kind], options.verbose)
    for row in rows:
        if row["failed"] is not None:
            print(f"compare: a run under {row['scheduler']} failed:\n{row['failed']}", file=sys.stderr)
    if any(row["failed"] is not None for row in rows):
        sys.exit(1)


if __name__ == "__main__":
    main()
