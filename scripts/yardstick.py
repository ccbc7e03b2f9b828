#!/usr/bin/env python3
"""Every classic policy and the oracle on every workload of the paper, as Markdown.

scripts/yardstick.py [--no-oracle] [BINARY] > table.md; the time it took goes to
standard error. The binary needs the cargo feature `lp` for the oracle on several
cores: scripts/setup.sh lp && cargo build --release --features lp
"""

import json
import resource
import subprocess
import sys
import time

# Title, arguments of `sim`, number of sets, sets for the oracle (0: same sets as
# the policies), and what the paper prints.
WORKLOADS = [
    ("Standard set 40/60/100 ms, U = 1.25", "standard", [], 200, 200,
     "RM 11.67, EDF 11.67, FF-DQN 71.43, TempoNet 79.00 (load not given)"),
    ("Standard set, U = 1.5", "standard", ["--util", "1.5"], 200, 200, "nothing"),
    ("Standard set, U = 2.0", "standard", ["--util", "2.0"], 200, 200, "nothing"),
    ("Random sets of 5 tasks, U in [0.6, 1.0]", "random5", [], 200, 200,
     "TempoNet 85 (text) and 87 (table), FF-DQN 74, 14 other learned methods 68 to 86; no classic"),
    ("Random sets of 5 tasks, U in [1.1, 1.5]", "random5", ["--util", "1.1..1.5", "--horizon", "2s"], 200, 200,
     "TempoNet 87.5 at U = 1.3 (miss rate 12.5)"),
    ("SRPT head-to-head, C in 10 to 50 ms, U in [0.6, 1.0]", "srpt", [], 200, 200,
     "SRPT 68.3 at 14.2 ms, TempoNet 87.0 at 12.4 ms"),
    ("Pareto deadlines, U in [0.6, 1.0]", "pareto", [], 200, 200,
     "TempoNet 85.9 to 87.2 by quartile"),
    ("12 heavy tasks, 8 cores, load 0.90 to 1.25", "heavy", [], 200, 20, "nothing"),
    ("100 tasks, 8 cores, load 0.90 to 1.15", "large", ["--tasks", "100"], 100, 5,
     "MHQISSO (EDF) 97.8, TempoNet 98.2 (\"success rate\", load not given)"),
    ("600 tasks, 8 cores, load 0.90 to 1.15", "large", [], 20, 2,
     "MHQISSO (EDF) 87.5, TempoNet 90.1 (\"success rate\", load not given)"),
    ("Mode switch, 200 tasks, 8 cores", "mode-switch", [], 40, 2,
     "TempoNet 84.1 zero-shot, 89.2 adapted; its \"oracle\" 90.0"),
    ("Industrial, 600 stages, 8 cores", "industrial", [], 40, 2,
     "PITMD: FCFS 9.83, EDF 20.81, DIOS 87.28, TempoNet 89.15; ART 21.20, 20.68, 16.72, 12.43"),
    ("Adversarial stress, 610 tasks, 8 cores", "stress", [], 4, 0,
     "EDF 52.1, SRPT 63.5, TempoNet 71.3 (76.8 with mitigations)"),
]


def sim(binary, workload, arguments):
    command = [binary, "sim", "--workload", workload, "--json", *arguments]
    done = subprocess.run(command, check=True, capture_output=True)
    return json.loads(done.stdout)["comparisons"]


def figure(summary, scale=100.0, digits=2):
    return "-" if summary is None else f"{summary['mean'] * scale:.{digits}f}"


def with_interval(summary):
    half = (summary["ci_high"] - summary["ci_low"]) / 2
    return f"{summary['mean'] * 100:.2f} ± {half * 100:.2f}"


def oracle_row(comparisons, sets):
    cells = []
    for comparison in comparisons:
        oracle = comparison["oracle"]
        if oracle is None:
            cells += ["-", "", "", ""]
            continue
        kind = {"exact": "exact", "bound": "at most"}[oracle["kind"]]
        cells += [f"{with_interval(oracle['compliance'])} ({kind})", "", "", ""]
    return f"| oracle, {sets} sets | " + " | ".join(cells) + " |"


def main():
    with_oracle = "--no-oracle" not in sys.argv
    given = [a for a in sys.argv[1:] if not a.startswith("-")]
    binary = given[0] if given else "target/release/scx_temponet"
    start = time.time()
    policies_cpu = 0.0
    for title, workload, arguments, sets, oracle_sets, paper in WORKLOADS:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        comparisons = sim(binary, workload, [*arguments, "--sets", str(sets)])
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        policies_cpu += cpu
        print(f"\n### {title}: {sets} sets\n\nThe paper: {paper}.\n")
        print("| policy | met %, abort | PITMD | ART ms | late p95 ms | met %, go on | PITMD | ART ms | late p95 ms |")
        print("|---|---:|---:|---:|---:|---:|---:|---:|---:|")
        for row in zip(*(c["outcomes"] for c in comparisons)):
            cells = []
            for outcome in row:
                cells += [
                    with_interval(outcome["compliance"]),
                    figure(outcome["pitmd"]),
                    figure(outcome["response_ms"], 1),
                    figure(outcome["lateness_p95_ms"], 1, 1),
                ]
            print(f"| {row[0]['policy']} | " + " | ".join(cells) + " |")
        if oracle_sets and with_oracle:
            ceilings = sim(binary, workload, [*arguments, "--sets", str(oracle_sets), "--policy", "plain-edf", "--oracle"])
            print(oracle_row(ceilings, oracle_sets))
        sys.stdout.flush()
        print(f"{title}: {cpu:.1f} CPU s, {time.time() - start:.0f} s so far", file=sys.stderr)
    print(f"policies alone: {policies_cpu:.1f} CPU seconds", file=sys.stderr)


if __name__ == "__main__":
    main()
