"""What was promised of the agent, held against the figures."""

from dataclasses import dataclass

from schedulers import is_network

AGENT = "temponet"
WORDS = {True: "holds", False: "does NOT hold", None: "not known"}
# More than chance, and worth having.
CLEARLY_POINTS = 5.0
SIMULATED_WITHIN_POINTS = 3.0
COST_WITHIN = 0.05
# docs/scheduler.md; for at most 50 tasks per CPU.
WAIT_BOUND_MS = 4000


@dataclass
class Finished:
    case: object
    repeats: int
    records: dict  # by scheduler, in the order of repeats
    rows: list
    plain_edf: float | None  # in the simulator

    def row(self, name):
        """One that has figures, from every repeat."""
        return next((r for r in self.rows if r["scheduler"] == name and not r["failed"]), None)


def line(case, promise, holds, figures):
    return {"case": case, "promise": promise, "holds": holds, "figures": figures}


def lost_jobs(finished):
    """Jobs that were on time under `edf` and not under the agent."""
    lost = 0
    for ours, edf in zip(finished.records[AGENT], finished.records["edf"]):
        for mine, theirs in zip(ours["tasks"], edf["tasks"]):
            for k, response in enumerate(theirs["responses_us"]):
                met = k < len(mine["responses_us"]) and mine["responses_us"][k] <= mine["period_us"]
                lost += response <= theirs["period_us"] and not met
    return lost


def below_capacity(name, finished):
    promise = "temponet misses nothing that edf meets"
    ours, edf = finished.row(AGENT), finished.row("edf")
    if not ours or not edf:
        return [line(name, promise, None, "temponet or edf was not run")]
    lost = lost_jobs(finished)
    figures = f"{lost} jobs lost; missed by temponet {ours['missed']}, by edf {edf['missed']} of {edf['released']}"
    return [line(name, promise, lost == 0, figures)]


def overload(name, finished):
    best_promise, clear_promise = "temponet meets at least as many as the best other row", "clearly more than EEVDF and plain EDF"
    sim_promise = f"within {SIMULATED_WITHIN_POINTS:g} points of the simulator"
    ours = finished.row(AGENT)
    if not ours:
        return [line(name, p, None, "temponet was not run") for p in (best_promise, clear_promise, sim_promise)]
    mine = 100 * ours["compliance"]
    spread = f"{mine:.1f} % ({100 * ours['compliance_min']:.1f} to {100 * ours['compliance_max']:.1f})"
    lines = []
    others = [r for r in finished.rows if not is_network(r["scheduler"]) and "compliance" in r and not r["failed"]]
    best = max(others, key=lambda r: r["met"], default=None)
    if best:
        text = f"{spread}, {best['scheduler']} {100 * best['compliance']:.1f} %"
        lines.append(line(name, best_promise, ours["met"] >= best["met"], text))
    else:
        lines.append(line(name, best_promise, None, f"{spread}, no other row"))
    eevdf = finished.row("eevdf")
    if eevdf:
        beaten = max(eevdf["compliance"], finished.plain_edf)
        text = f"{mine:.1f} %, EEVDF {100 * eevdf['compliance']:.1f} %, plain EDF {100 * finished.plain_edf:.1f} % (simulated)"
        lines.append(line(name, clear_promise, mine - 100 * beaten >= CLEARLY_POINTS, text))
    else:
        lines.append(line(name, clear_promise, None, "eevdf was not run"))
    text = f"{mine:.1f} %, simulated {100 * ours['simulated']:.1f} %, gap {ours['gap_points']:+.1f}"
    lines.append(line(name, sim_promise, abs(ours["gap_points"]) <= SIMULATED_WITHIN_POINTS, text))
    return lines


def crowd(name, finished):
    keeps_up, nobody = "the agent keeps up, decision age p99 is reported", "nobody starves"
    ours = finished.row(AGENT)
    if not ours:
        return [line(name, p, None, "temponet was not run") for p in (keeps_up, nobody)]
    lines = []
    if "age_p99_ms" in ours and "decisions_per_s" in ours:
        # Once warm, every second of it.
        idle = 0
        for record in finished.records[AGENT]:
            idle += sum(not s.get("agent", {}).get("decisions_per_s") for s in record["stats"][1:])
        text = f"decision age p99 {ours['age_p99_ms']:.1f} ms, {ours['decisions_per_s']:.0f} decisions/s, {idle} seconds without one"
        lines.append(line(name, keeps_up, idle == 0, text))
    else:
        lines.append(line(name, keeps_up, None, "the scheduler did not report it"))
    if "wait_max_ms" in ours:
        silent = sum(task["released"] == task["unfinished"] for task in ours["tasks"])
        text = f"longest wait {ours['wait_max_ms']:.0f} ms, bound {WAIT_BOUND_MS} ms; {silent} of {len(ours['tasks'])} tasks finished no job"
        lines.append(line(name, nobody, ours["wait_max_ms"] <= WAIT_BOUND_MS, text))
    else:
        lines.append(line(name, nobody, None, "the scheduler did not report waits"))
    return lines


def slowed(name, finished):
    """Nothing is promised here but that it is shown."""
    rows = [r for r in finished.rows if "compliance" in r and not r["failed"]]
    shown = ", ".join(f"{r['scheduler']} {100 * r['compliance']:.1f} %" for r in rows)
    wanted = {"temponet", "temponet@10", "temponet@100"}
    return [line(name, "compliance with slower inference is shown", wanted <= {r["scheduler"] for r in rows} or None, shown or "nothing was run")]


def cost(name, finished):
    ours, edf = finished.row(AGENT), finished.row("edf")
    if not ours or not edf:
        return [line(name, "within 5 % of edf", None, "temponet or edf was not run")]
    if name.startswith("latency"):
        figures = [("mean_us", "mean wake-up latency", "µs", 1, 1), ("p99_us", "99th percentile", "µs", 1, 1)]
    else:
        figures = [("switches_per_s", "context switches", "/s", -1, 0), ("hackbench_s", "hackbench", "s", 1, 0)]
    lines = []
    for key, what, unit, sign, resolution in figures:
        worse = sign * (ours[key] - edf[key])
        # cyclictest counts whole microseconds.
        holds = worse <= max(COST_WITHIN * edf[key], resolution)
        text = f"temponet {ours[key]:.4g} {unit}, edf {edf[key]:.4g} {unit}, {100 * (ours[key] / edf[key] - 1):+.1f} %"
        lines.append(line(name, f"{what} within 5 % of edf", holds, text))
    return lines


def judge(names, made, tests):
    lines = []
    for name in names:
        if name == "survival":
            if tests is None:
                lines.append(line(name, "guest tests pass", None, "they were not run"))
            for test, outcome in (tests or {}).items():
                lines.append(line(name, f"guest test {test}", {"PASS": True, "FAIL": False}.get(outcome), outcome))
            continue
        if name not in made:
            lines.append(line(name, "everything", None, "nothing was run"))
        elif name in ("one-cpu", "two-cpus"):
            lines += below_capacity(name, made[name])
        elif name.startswith("overload-"):
            lines += overload(name, made[name])
        elif name.startswith("crowd-"):
            lines += crowd(name, made[name])
        else:
            lines += (slowed if name == "slowed" else cost)(name, made[name])
    return lines
