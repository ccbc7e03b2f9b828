"""Runs workloads under several schedulers and prints a table.

Everything happens in icount guests: time there counts instructions, so the
host's noise does not matter, and all schedulers meet the same machine. It is a
slow machine (one instruction per nanosecond), and its vCPUs share one clock, so
compare ratios, never absolute times.

  scripts/compare CASE     one case in one guest
  scripts/compare agent    every case that the agent has to hold its own in, and
                           a verdict on each promise (scripts/compare agent --help)
"""

import argparse
import dataclasses
import json
import pathlib
import signal
import subprocess
import sys
import tempfile

import agent
import cases
import collect
import plan
import schedulers
import simulate
import table
import workload


def parse_arguments(arguments):
    manual = "\n\n".join([__doc__.strip(), cases.MANUAL, schedulers.MANUAL])
    parser = argparse.ArgumentParser(prog="scripts/compare", description=manual, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", choices=cases.CASES, metavar="CASE")
    parser.add_argument("--schedulers", metavar="A,B,...", help="instead of the case's own list")
    parser.add_argument("--tasks", metavar="RUN/PERIOD,...", help="instead of the case's tasks, in milliseconds")
    parser.add_argument("--seconds", type=int, help="guest time of one run")
    parser.add_argument("--repeats", type=int, default=3, help="runs per scheduler, with other start offsets each (default: 3)")
    parser.add_argument("--seed", type=int, default=1, help="of the start offsets (default: 1)")
    parser.add_argument("--cpus", type=int, help="vCPUs of the guest")
    parser.add_argument("--hogs", type=int, help="stress-ng --cpu workers beside the tasks")
    parser.add_argument("--pin", action=argparse.BooleanOptionalAction, default=None, help="tasks on the last CPU only")
    parser.add_argument("--stretch", type=float, help="by how much declared runtimes exceed the calibrated ones (default: the case's; 1 on one CPU, else 1.3 times the number of CPUs)")
    parser.add_argument("--kernel", default="6.18.15", help="as scripts/vm takes it (default: 6.18.15)")
    parser.add_argument("--program", help="the scx_temponet to take along")
    parser.add_argument("--keep", metavar="DIR", help="keep the raw logs there")
    parser.add_argument("--simulate", action="store_true", help="the simulator's figure for the same tasks beside ours")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("-v", "--verbose", action="store_true", help="a line per task too")
    options = parser.parse_args(arguments)
    for key, value in dataclasses.asdict(cases.CASES[options.case]).items():
        if getattr(options, key, None) is None:
            setattr(options, key, cases.CASES[options.case].tasks if key == "tasks" else value)
    try:
        if isinstance(options.tasks, str):
            options.tasks = workload.parse_tasks(options.tasks)
    except ValueError as error:
        parser.error(str(error))
    options.schedulers = options.schedulers.split(",")
    for name in options.schedulers:
        try:
            schedulers.scheduler_named(name)
        except KeyError:
            parser.error(f"unknown scheduler: {name}")
    if min(options.seconds, options.repeats, options.cpus) < 1 or options.hogs < 0:
        parser.error("seconds, repeats and cpus are at least 1, hogs at least 0")
    if options.simulate and options.kind != "rt":
        parser.error(f"{options.case} has no tasks to simulate")
    return options


def compare(options):
    agent.build_peers(options.schedulers)
    repeats = range(options.repeats)
    with tempfile.TemporaryDirectory() as folder:
        written, out = pathlib.Path(folder, "plan"), pathlib.Path(options.keep or folder + "/out")
        written.mkdir()
        plan.write_plan(options, repeats, written)
        plan.boot(options, repeats, written, out)
        records = collect.collect(options, repeats, out)
    rows = collect.rows(options, records)
    if options.simulate:
        simulate.add_simulated(options, repeats, rows)
    if options.json:
        report = {"case": options.case, "kernel": options.kernel, "cpus": options.cpus, "seconds": options.seconds}
        report |= {"repeats": options.repeats, "hogs": options.hogs, "pin": options.pin, "rows": rows}
        print(json.dumps(report, indent=2))
    else:
        if options.tasks:
            table.print_tasks(options.tasks)
        table.print_table(rows, options.kind, options.verbose)
    failed = [row for row in rows if row["failed"] not in (None, "refused")]
    for row in failed:
        print(f"compare: a run under {row['scheduler']} failed:\n{row['failed']}", file=sys.stderr)
    return 1 if failed else 0


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        if sys.argv[1:2] == ["agent"]:
            return agent.main(sys.argv[2:])
        return compare(parse_arguments(sys.argv[1:]))
    except plan.GuestFailed as error:
        sys.exit(f"compare: error: {error}")
    except subprocess.CalledProcessError as error:
        sys.exit(f"compare: error: {error.cmd[0]} ended with status {error.returncode}")


if __name__ == "__main__":
    sys.exit(main())
