"""Rows as a table for people."""

COLUMNS = {
    "rt": [
        ("released", "jobs", "d"),
        ("missed", "missed", "d"),
        ("unfinished", "unfinished", "d"),
        ("compliance", "met", ".1%"),
        ("compliance_min", "min", ".1%"),
        ("compliance_max", "max", ".1%"),
        ("simulated_as", "simulated as", "s"),
        ("simulated", "met there", ".1%"),
        ("gap_points", "gap", "+.1f"),
        ("mean_response_ms", "mean ms", ".1f"),
        ("p99_response_ms", "p99 ms", ".1f"),
        ("hogs_cpus", "hogs' CPUs", ".2f"),
        ("wait_max_ms", "longest wait ms", ".1f"),
        ("decisions_per_s", "decisions/s", ".1f"),
        ("age_p99_ms", "age p99 ms", ".1f"),
        ("latency_p99_ms", "latency p99 ms", ".1f"),
        ("inference_p99_ms", "inference p99 ms", ".2f"),
        ("agent_cpu", "agent's CPU", ".1%"),
    ],
    "throughput": [
        ("switches_per_s", "switches/s", ".0f"),
        ("switch_ratio", "to eevdf", ".2f"),
        ("hackbench_s", "hackbench s", ".2f"),
        ("hackbench_ratio", "speed to eevdf", ".2f"),
        ("decisions_per_s", "decisions/s", ".1f"),
        ("agent_cpu", "agent's CPU", ".1%"),
    ],
    "latency": [
        ("samples", "samples", "d"),
        ("mean_us", "mean µs", ".1f"),
        ("p50_us", "p50 µs", ".1f"),
        ("p99_us", "p99 µs", ".1f"),
        ("max_us", "max µs", ".1f"),
        ("decisions_per_s", "decisions/s", ".1f"),
        ("agent_cpu", "agent's CPU", ".1%"),
    ],
}


def cells(row, columns, absent):
    return [format(row[key], spec) if row.get(key) is not None else absent for key, _, spec in columns]


def print_table(rows, kind, verbose=False):
    columns = [c for c in COLUMNS[kind] if any(row.get(c[0]) is not None for row in rows)]
    lines = [["scheduler"] + [title for _, title, _ in columns]]
    for row in rows:
        lines.append([row["scheduler"]] + cells(row, columns, "-"))
        for task in row.get("tasks", []) if verbose else []:
            lines.append(["  " + task["task"]] + cells(task, columns, ""))
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    for line in lines:
        print("  ".join([line[0].ljust(widths[0])] + [cell.rjust(w) for cell, w in zip(line[1:], widths[1:])]).rstrip())
    for row in rows:
        if row["failed"] == "refused":
            print(f"{row['scheduler']}: the kernel did not admit the set")


def print_tasks(tasks):
    """Those of a drawn set are not in any manual."""
    texts = {}
    for task in tasks:
        texts[str(task)] = texts.get(str(task), 0) + 1
    load = sum(task.share for task in tasks)
    listed = ", ".join(text if times == 1 else f"{times} x {text}" for text, times in texts.items())
    print(f"{len(tasks)} tasks, run/period in ms, load {load:.3f}: {listed}")
