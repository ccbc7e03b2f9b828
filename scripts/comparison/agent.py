"""Runs every case that the agent has to hold its own in, and says of each
promise whether it holds.

What was run is kept in a folder and not run again while neither the case nor the
program has changed, so an interrupted run goes on where it was, and a new build
runs only the rows that are its own.

It wants a build of scx_temponet (cargo build --release, or --program). Peers and
ONNX Runtime are built and fetched where they are not there yet.
"""

import argparse
import concurrent.futures
import copy
import fnmatch
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import cases
import collect
import plan
import simulate
import table
import verdict
import workload
from schedulers import scheduler_named

# Rows of the cases that `scripts/compare CASE` runs with fewer.
ROWS = {
    "one-cpu": cases.EVERYBODY,
    "two-cpus": cases.EVERYBODY,
    "throughput": cases.UNTIMED,
    "latency": cases.UNTIMED,
    "latency-overload": cases.UNTIMED,
}
# The promise is about a machine with one CPU: a second one shares its clock.
CPUS = {"one-cpu": 1}
SURVIVAL = "survival"
# Guest tests in which the agent is killed, stopped, lied to and starved.
SURVIVAL_TESTS = ("survive", "agent*")


def suite():
    """The cases in the order of the promises."""
    names = ["one-cpu", "two-cpus"]
    names += [name for name in cases.CASES if name.startswith("overload-")]
    names += ["crowd-64", "crowd-200", "slowed", "latency", "latency-overload"]
    return names + ["throughput", "throughput-busy", SURVIVAL]


def parse_arguments(arguments):
    manual = __doc__ + "\ncases: " + " ".join(suite())
    parser = argparse.ArgumentParser(prog="scripts/compare agent", description=manual, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="CASE,...", help="these cases; * stands for anything")
    parser.add_argument("--schedulers", metavar="A,B,...", help="only these of a case's rows")
    parser.add_argument("--repeats", type=int, default=3, help="runs per scheduler, with other start offsets each (default: 3)")
    parser.add_argument("--seconds", type=int, help="guest time of one run, instead of the case's")
    parser.add_argument("--seed", type=int, default=1, help="of the start offsets (default: 1)")
    parser.add_argument("--kernel", default="6.18.15", help="as scripts/vm takes it (default: 6.18.15)")
    parser.add_argument("--program", help="the scx_temponet to take along (default: the release build)")
    parser.add_argument("--jobs", type=int, default=1, help="guests at a time (default: 1)")
    parser.add_argument("--results", metavar="DIR", help="what was run (default: target/compare-agent)")
    parser.add_argument("--report", action="store_true", help="run nothing: tables and verdicts of what is there")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("-v", "--verbose", action="store_true", help="a line per task too")
    options = parser.parse_args(arguments)
    if min(options.repeats, options.jobs) < 1 or (options.seconds or 1) < 1:
        parser.error("repeats, jobs and seconds are at least 1")
    repository = plan.SCRIPTS.parent
    options.program = options.program or str(repository / "target/release/scx_temponet")
    if not os.access(options.program, os.X_OK):
        parser.error(f"no program {options.program}: build it first (cargo build --release)")
    options.results = pathlib.Path(options.results or repository / "target/compare-agent")
    patterns = options.only.split(",") if options.only else ["*"]
    for pattern in patterns:
        if not fnmatch.filter(suite(), pattern):
            parser.error(f"no case is called {pattern}")
    options.cases = [name for name in suite() if any(fnmatch.fnmatch(name, p) for p in patterns)]
    options.wanted = options.schedulers.split(",") if options.schedulers else None
    for name in options.wanted or []:
        try:
            scheduler_named(name)
        except KeyError:
            parser.error(f"unknown scheduler: {name}")
    return options


def case_options(options, name):
    """One case as scripts/compare would have it on its command line."""
    case = copy.copy(cases.CASES[name])
    case.schedulers = ROWS.get(name, case.schedulers).split(",")
    if options.wanted:
        case.schedulers = [s for s in case.schedulers if s in options.wanted]
    case.seconds = options.seconds or case.seconds
    case.cpus = CPUS.get(name, case.cpus)
    # Rows that are run later have to meet the same machine, whoever infers.
    case.case, case.no_fma = name, True
    case.kernel, case.program, case.seed = options.kernel, options.program, options.seed
    return case


def digest(*parts):
    return hashlib.sha256("\n".join(map(str, parts)).encode()).hexdigest()[:16]


def fingerprint(case, name, program):
    """Of everything that a row depends on."""
    scheduler = scheduler_named(name)
    machine = [case.kernel, case.cpus, case.mem, case.no_fma]
    machine += [(plan.SCRIPTS / name).read_text() for name in ("vm", "guest/measure.sh")]
    work = [case.kind, case.seconds, case.hogs, case.pin, plan.stretch(case), case.by_rule, case.seed, case.tasks]
    work += [workload.HEADROOM, workload.DEADLINE_LIMIT]
    if case.kind == "throughput":
        work.append(plan.hackbench_messages(case))
    if case.kind == "latency":
        work.append(plan.WAKE_EVERY_US)
    return digest(machine, work, scheduler, program if scheduler.ours else "")


class Results:
    """A file per case and repeat: records by scheduler, with fingerprints."""

    def __init__(self, options):
        self.folder = options.results
        self.program = hashlib.sha256(pathlib.Path(options.program).read_bytes()).hexdigest()
        self.folder.mkdir(parents=True, exist_ok=True)

    def read(self, key):
        file = self.folder / f"{key}.json"
        return json.loads(file.read_text()) if file.exists() else {}

    def write(self, key, entries):
        file = self.folder / f"{key}.json"
        partial = file.with_suffix(".partial")
        partial.write_text(json.dumps(entries))
        partial.replace(file)

    def record(self, case, repeat, name):
        """None where it was not run, or not like this."""
        entry = self.read(f"{case.case}.{repeat}").get(name)
        if entry is None or entry["fingerprint"] != fingerprint(case, name, self.program):
            return None
        return entry["record"]

    def missing(self, case, repeat):
        """What was not run, or failed."""
        names = []
        for name in case.schedulers:
            record = self.record(case, repeat, name)
            if record is None or record["failed"] not in (None, "refused"):
                names.append(name)
        return names

    def add(self, case, repeat, records):
        entries = self.read(f"{case.case}.{repeat}")
        for name, (record,) in records.items():
            entries[name] = {"fingerprint": fingerprint(case, name, self.program), "record": record}
        self.write(f"{case.case}.{repeat}", entries)


def build_peers(names):
    peers = sorted(name for name in names if name.startswith("scx_"))
    if peers:
        subprocess.run([plan.SCRIPTS / "peers.sh", *peers], check=True)


def run_unit(case, repeat, results):
    """Runs what is missing of one repeat of one case, in one guest."""
    case = copy.copy(case)
    case.schedulers = results.missing(case, repeat)
    with tempfile.TemporaryDirectory() as folder:
        written, out = pathlib.Path(folder, "plan"), pathlib.Path(folder, "out")
        written.mkdir()
        plan.write_plan(case, [repeat], written)
        plan.boot(case, [repeat], written, out)
        results.add(case, repeat, collect.collect(case, [repeat], out))


def survival_key(options, results):
    guest = plan.SCRIPTS.parent / "tests/vm/guest"
    names = sorted(f.stem for pattern in SURVIVAL_TESTS for f in guest.glob(f"{pattern}.sh"))
    texts = [(guest / f"{name}.sh").read_text() for name in [*names, "lib"]]
    return names, digest(options.kernel, results.program, *texts)


def run_survival(options, results):
    names, key = survival_key(options, results)
    command = [plan.SCRIPTS.parent / "tests/vm/run.sh", "--kernel", options.kernel, "--program", options.program, *names]
    with plan.started(command) as tests:
        output = tests.stdout.read()
    lines = [line.split(maxsplit=1) for line in output.splitlines()]
    verdicts = {words[1].split()[0]: words[0] for words in lines if len(words) == 2 and words[0] in ("PASS", "FAIL", "SKIP")}
    if not verdicts:
        raise plan.GuestFailed(f"tests/vm/run.sh ended with status {tests.returncode} and no verdict")
    results.write(SURVIVAL, {"fingerprint": key, "tests": verdicts, "output": output})


def survival(options, results):
    """Verdicts of the guest tests by name; None where they have to be run."""
    _, key = survival_key(options, results)
    kept = results.read(SURVIVAL)
    return kept["tests"] if kept.get("fingerprint") == key else None


def run_missing(options, results):
    """Every guest that is still needed; the number of those that failed."""
    jobs = []
    for name in options.cases:
        if name == SURVIVAL:
            if survival(options, results) is None:
                jobs.append((SURVIVAL, run_survival, (options, results)))
            continue
        case = case_options(options, name)
        for repeat in range(options.repeats):
            if results.missing(case, repeat):
                jobs.append((f"{name}, repeat {repeat}", run_unit, (case, repeat, results)))
    build_peers({s for name in options.cases if name != SURVIVAL for s in case_options(options, name).schedulers})
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        running = {pool.submit(work, *arguments): label for label, work, arguments in jobs}
        try:
            for number, done in enumerate(concurrent.futures.as_completed(running), 1):
                try:
                    done.result()
                    outcome = "done"
                except (plan.GuestFailed, subprocess.CalledProcessError, OSError) as error:
                    failed += 1
                    outcome = f"failed: {error}"
                print(f"compare: {number} of {len(jobs)}: {running[done]}: {outcome}", file=sys.stderr)
        except BaseException:
            # Whoever interrupts us wants no further guests, and an end of these.
            pool.shutdown(wait=False, cancel_futures=True)
            for process in list(plan.RUNNING):
                process.terminate()
            raise
    return failed


def finished(options, results):
    """What there is of every case: its rows, and all that verdicts look at."""
    made = {}
    for name in options.cases:
        if name == SURVIVAL:
            continue
        case = case_options(options, name)
        repeats = [r for r in range(options.repeats) if any(results.record(case, r, s) for s in case.schedulers)]
        records = {}
        for scheduler in list(case.schedulers):
            seen = [results.record(case, r, scheduler) for r in repeats]
            if repeats and None not in seen:
                records[scheduler] = seen
            else:
                case.schedulers.remove(scheduler)
        if not records:
            continue
        rows = collect.rows(case, records)
        plain_edf = simulate.add_simulated(case, repeats, rows) if name.startswith("overload-") or name == "slowed" else None
        made[name] = verdict.Finished(case, len(repeats), records, rows, plain_edf)
    return made


def main(arguments):
    options = parse_arguments(arguments)
    results = Results(options)
    failed = 0 if options.report else run_missing(options, results)
    made = finished(options, results)
    tests = survival(options, results) if SURVIVAL in options.cases else None
    verdicts = verdict.judge(options.cases, made, tests)
    if options.json:
        listed = {n: {"repeats": f.repeats, "tasks": [str(t) for t in f.case.tasks], "rows": f.rows} for n, f in made.items()}
        print(json.dumps({"kernel": options.kernel, "cases": listed, "verdicts": verdicts}, indent=2))
    else:
        for name, case in made.items():
            print(f"\n{name}, kernel {options.kernel}, {case.repeats} repeats")
            if case.case.tasks:
                table.print_tasks(case.case.tasks)
            table.print_table(case.rows, case.case.kind, options.verbose)
            if case.plain_edf is not None:
                print(f"plain EDF in the simulator, nothing given up: {case.plain_edf:.1%}")
        print()
        for line in verdicts:
            print(f"{verdict.WORDS[line['holds']]:<14} {line['case']}: {line['promise']}: {line['figures']}")
    for name, case in made.items():
        for row in case.rows:
            if row["failed"] not in (None, "refused"):
                print(f"compare: {name}: a run under {row['scheduler']} failed:\n{row['failed']}", file=sys.stderr)
    return 1 if failed or any(line["holds"] is not True for line in verdicts) else 0
