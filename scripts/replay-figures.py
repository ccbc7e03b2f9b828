#!/usr/bin/env python3
"""Prints what scripts/replay-figures.sh measured, and judges it."""

import json
import pathlib
import re
import subprocess
import sys

# Promises of docs/measurements/replay.md.
AGREEMENT_POINTS = 2.0
RECORDING_SHARE = 0.05
# Who uses less of a CPU is not compared: a share of next to nothing is noise.
LEAST_CPUS = 0.0002


def examples(folder):
    broken = 0
    for report in sorted(folder.glob("*.json")):
        name = report.name.replace(":", "/")
        reason = folder / (report.name + ".failed")
        said = reason.read_text().strip() if reason.exists() else ""
        try:
            result = json.loads(report.read_text())
            (live,) = [s for s in result["schedulers"] if s["source"] == "live"]
        except (ValueError, KeyError):
            said = re.sub(r"^scx_temponet: ", "", said) or "no report"
            # Parts to be merged, and a form to be filled in, are no workloads.
            is_none = "nothing to simulate" in said or "has work to simulate" in said
            print(f"{name:45} {'is no workload' if is_none else 'FAILED'}: {said}")
            broken += not is_none
            continue
        used = sum(task["cpus_used"] or 0 for task in live["tasks"])
        judged = f"{live['met']} of {live['jobs']} jobs met" if live["jobs"] else "no job is due at any time"
        print(f"{name:45} ran: {len(live['tasks'])} threads, {used:.2f} CPUs, {judged}")
    return not broken


def agreement(folder):
    good = True
    print("U           edf live %  simulated %  apart  plain-edf live %  simulated %  apart  simulated mh %")
    for load in ("0.70", "0.90", "1.25-tight", "1.25-roomy"):
        result = json.loads((folder / f"{load}.json").read_text())
        compliance = {s["scheduler"]: 100 * s["compliance"] for s in result["schedulers"]}
        line = f"{load:10}"
        for name, width in (("edf", 10), ("plain-edf", 16)):
            live, simulated = compliance[name], compliance[f"{name} (sim)"]
            good &= abs(live - simulated) <= AGREEMENT_POINTS
            line += f"  {live:{width}.2f}  {simulated:11.2f}  {abs(live - simulated):5.2f}"
        print(f"{line}  {compliance['mh (sim)']:14.2f}")
    return good


def counts(path):
    """Thread -> seconds on a CPU."""
    pairs = (line.split() for line in path.read_text().splitlines())
    return {tid: int(ticks) / 100 for tid, ticks in pairs}


def recording(folder, program):
    before, after = counts(folder / "before"), counts(folder / "after")
    span = float((folder / "to").read_text()) - float((folder / "from").read_text())
    measured = json.loads((folder / "measured").read_text())
    done = subprocess.run(
        [program, "replay", folder / "recording.json", "--policy", "edf", "--json"],
        check=True,
        capture_output=True,
        text=True,
    )
    replayed = {t["name"]: t["cpus_used"] for t in json.loads(done.stdout)["schedulers"][0]["tasks"]}
    print(measured["name"])
    # The kernel counts from the wake-up on where it wakes an idle CPU, the recorder from
    # the switch: some microseconds a job, which shows where jobs are that short.
    print(f"{'task':24} {'recorded':>9} {'replayed':>9} {'apart %':>8} {'kernel':>9}")
    good, compared = True, 0
    for task in measured["tasks"]:
        name, recorded = task["name"], task["cpus_used"]
        if recorded < LEAST_CPUS:
            continue
        tid = name.rsplit("-", 1)[-1]
        kernel = f"{(after[tid] - before[tid]) / span:9.4f}" if tid in before and tid in after else "-"
        apart = replayed[name] / recorded - 1
        good &= abs(apart) <= RECORDING_SHARE
        compared += 1
        print(f"{name:24} {recorded:9.4f} {replayed[name]:9.4f} {100 * apart:8.2f} {kernel:>9}")
    # Three threads of rt-app's and one of stress-ng's at least.
    return good and compared >= 4


def main():
    part, folder, program = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
    if part == "recording":
        good = recording(folder, program)
    else:
        good = {"examples": examples, "agreement": agreement}[part](folder)
    print(f"{part}: {'holds' if good else 'DOES NOT HOLD'}")
    sys.exit(not good)


if __name__ == "__main__":
    main()
