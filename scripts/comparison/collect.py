"""From the files a guest brings back to records, one a run, and from the
records of all repeats to rows, one a scheduler.

A record is what is worth keeping of a run (JSON), with `failed` where there is
nothing: a reason, or `refused` where the kernel did not admit the set."""

import json
import re

from plan import WAKE_EVERY_US, run_name
from workload import thread_name


def percentile(values, share):
    """The smallest value that at least this share of all values do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * share // 100) - 1)] if ordered else None


def mean(values):
    return sum(values) / len(values) if values else None


def read_responses(log, period_us, released):
    """Responses in µs of the jobs that ended, in order, from one thread's log.

    rt-app's job k is released at first + k * period on the thread's own grid;
    its `slack` is first + (k + 1) * period - end, so end - release is period -
    slack. A starved thread logs nothing.
    """
    if not log.exists():
        return []
    responses = []
    for line in log.read_text().splitlines():
        if line.startswith("#") or not line.strip():
            continue
        if len(responses) == released:
            break
        responses.append(period_us - int(line.split()[7]))
    return responses


def read_stats(file):
    """What the scheduler said of itself, a line of JSON each time."""
    samples = []
    for line in file.read_text().splitlines() if file.exists() else []:
        try:
            sample = json.loads(line)
        except json.JSONDecodeError:
            continue  # the last line of one that was stopped
        if isinstance(sample, dict):
            samples.append(sample)
    return samples


def collect_rt(options, folder):
    tasks = []
    for i, task in enumerate(options.tasks):
        released = options.seconds * 1_000_000 // task.period_us
        log = folder / f"log-{thread_name(i, task)}-{i}.log"
        responses = read_responses(log, task.period_us, released)
        tasks.append({"period_us": task.period_us, "released": released, "responses_us": responses})
    cpu_before, cpu_after, before, after = map(float, (folder / "hogs").read_text().split())
    record = {"tasks": tasks, "stats": read_stats(folder / "stats")}
    if options.hogs:
        record["hogs_cpus"] = (cpu_after - cpu_before) / (after - before)
    return record


def collect_throughput(options, folder):
    # stress-ng: info: [1] switch  OPS  REAL USER SYS  OPS/S(real) ...
    fields = re.search(r"\] switch\s+(.*)", (folder / "switch").read_text()).group(1).split()
    seconds = re.search(r"Time: ([0-9.]+)", (folder / "hackbench").read_text()).group(1)
    record = {"switches_per_s": float(fields[4]), "hackbench_s": float(seconds)}
    return record | ({"stats": read_stats(folder / "stats")} if options.tasks else {})


def collect_latency(options, folder):
    """Every wake-up but those of the first second, before all are declared and at work."""
    wakeups = {}
    for thread, cycle, ns in re.findall(r"(?m)^ *(\d+): *(\d+): *(\d+)$", (folder / "cyclictest").read_text()):
        wakeups.setdefault(thread, []).append((int(cycle), int(ns)))
    if not wakeups:
        raise ValueError("cyclictest told of no wake-up")
    settled = 1_000_000 // WAKE_EVERY_US
    latencies = []
    for seen in wakeups.values():
        # It keeps the last 16384 of a thread.
        if [cycle for cycle, _ in seen] != list(range(len(seen))):
            raise ValueError("cyclictest lost wake-ups")
        latencies += [ns for _, ns in seen[settled:]]
    return {"latencies_ns": latencies, "stats": read_stats(folder / "stats")}


def collect(options, repeats, out):
    """The records of every scheduler, by name, in the order of repeats."""
    read = {"rt": collect_rt, "throughput": collect_throughput, "latency": collect_latency}[options.kind]
    records = {}
    for name in options.schedulers:
        records[name] = []
        for repeat in repeats:
            folder = out / run_name(name, repeat)
            if (folder / "refused").exists():
                record = {"failed": "refused"}
            elif (folder / "failed").exists():
                record = {"failed": (folder / "failed").read_text().strip()}
            else:
                record = {"failed": None} | read(options, folder)
            records[name].append(record)
    return records


def job_figures(tasks):
    released = sum(t["released"] for t in tasks)
    responses = [r for t in tasks for r in t["responses_us"]]
    met = sum(r <= t["period_us"] for t in tasks for r in t["responses_us"])
    return {
        "released": released,
        "met": met,
        "missed": released - met,
        "unfinished": released - len(responses),
        "compliance": met / released,
        "mean_response_ms": (mean(responses) or 0) / 1000,
        "p99_response_ms": (percentile(responses, 99) or 0) / 1000,
    }


def number(sample, *path):
    """A figure of the statistics, or None."""
    for key in path:
        sample = sample.get(key) if isinstance(sample, dict) else None
    return sample if isinstance(sample, (int, float)) and not isinstance(sample, bool) else None


def samples_of(record):
    """Without the first: it is said at once, and covers milliseconds."""
    return record.get("stats", [])[1:]


def agent_figures(records):
    """Of what schedulers of ours say of themselves, where they do."""
    samples = [s for r in records for s in samples_of(r)]
    waits = [number(c, "wait_max_us") for s in samples for c in s.get("classes", {}).values()]
    figures = {"wait_max_ms": max([w / 1000 for w in waits if w is not None], default=None)}
    # Without an agent all of its figures are zero, and mean nothing.
    samples = [s for s in samples if s.get("agent", {}).get("backend")]
    # The percentile of the worst sample.
    for key, path in (("age_p99_ms", "decision_age_us"), ("latency_p99_ms", "latency_us"), ("inference_p99_ms", "inference_us")):
        seen = [number(s, "agent", path, "p99") for s in samples]
        figures[key] = max([v / 1000 for v in seen if v is not None], default=None)
    rates = [number(s, "agent", "decisions_per_s") for s in samples]
    rates = [r for r in rates if r is not None]
    figures["decisions_per_s"] = mean(rates)
    figures["decisions_per_s_min"] = min(rates, default=None)
    shares = [number(s, "agent", "cpu_share") for s in samples]
    figures["agent_cpu"] = max([s for s in shares if s is not None], default=None)
    drops = [number(s, "agent", "ring_drops") for s in samples]
    figures["ring_drops"] = sum(drops) if drops and None not in drops else None
    return {key: value for key, value in figures.items() if value is not None}


def row_rt(options, records):
    # Threads of all repeats, task by task.
    tasks = []
    for same in zip(*(r["tasks"] for r in records)):
        responses = [x for t in same for x in t["responses_us"]]
        tasks.append({"period_us": same[0]["period_us"], "released": sum(t["released"] for t in same), "responses_us": responses})
    each = [job_figures(r["tasks"])["compliance"] for r in records]
    row = job_figures(tasks) | {"compliance_min": min(each), "compliance_max": max(each)}
    if options.hogs:
        row["hogs_cpus"] = mean([r["hogs_cpus"] for r in records])
    row |= agent_figures(records)
    row["tasks"] = [{"task": str(o)} | job_figures([t]) for o, t in zip(options.tasks, tasks)]
    return row


def row_throughput(options, records):
    row = {key: mean([r[key] for r in records]) for key in ("switches_per_s", "hackbench_s")}
    return row | agent_figures(records)


def row_latency(options, records):
    latencies = [ns / 1000 for r in records for ns in r["latencies_ns"]]
    row = {"samples": len(latencies), "mean_us": mean(latencies), "max_us": max(latencies)}
    row |= {"p50_us": percentile(latencies, 50), "p99_us": percentile(latencies, 99)}
    return row | agent_figures(records)


def rows(options, records):
    """A row per scheduler; figures only where a run did not fail."""
    make = {"rt": row_rt, "throughput": row_throughput, "latency": row_latency}[options.kind]
    made = []
    for name in options.schedulers:
        failures = [r["failed"] for r in records[name] if r["failed"]]
        row = {"scheduler": name, "failed": failures[0] if failures else None}
        good = [r for r in records[name] if not r["failed"]]
        made.append(row | (make(options, good) if good else {}))
    reference = next((r for r in made if r["scheduler"] == "eevdf" and "hackbench_s" in r), None)
    for row in made:
        if reference and "hackbench_s" in row:
            row["switch_ratio"] = row["switches_per_s"] / reference["switches_per_s"]
            row["hackbench_ratio"] = reference["hackbench_s"] / row["hackbench_s"]
    return made
