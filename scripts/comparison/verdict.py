"""What was promised of the agent, held against the figures."""

from dataclasses import dataclass

from schedulers import is_network

AGENT = "temponet"
WORDS = {True: "holds", False: "does NOT hold", None: "not known"}
# More than chance, and worth having.
CLEARLY_POINTS = 5.0
SIMULATED_WITHIN_POINTS = 3.0
COST_WITHIN = 0.05
# Of one CPU: what --agent-budget is unless told otherwise.
BUDGET = 0.05
# With jobs waiting no decision waits longer than 400 ms (src/agent/pace.rs).
LEAST_DECISIONS_PER_S = 2
# Below this the agent sleeps, and shows nothing about what it costs.
AT_WORK_DECISIONS_PER_S = 1
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


def plain_edf(finished):
    """Its share of jobs met, and that in words: as measured, else as simulated."""
    row, simulated = finished.row("plain-edf"), f"{100 * finished.plain_edf:.1f} %"
    if row:
        return row["compliance"], f"{100 * row['compliance']:.1f} % (simulated {simulated})"
    return finished.plain_edf, f"{simulated} (simulated, not run)"


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
        plain, plain_text = plain_edf(finished)
        beaten = max(eevdf["compliance"], plain)
        text = f"{mine:.1f} %, EEVDF {100 * eevdf['compliance']:.1f} %, plain EDF {plain_text}"
        lines.append(line(name, clear_promise, mine - 100 * beaten >= CLEARLY_POINTS, text))
    else:
        lines.append(line(name, clear_promise, None, "eevdf was not run"))
    text = f"{mine:.1f} %, simulated {100 * ours['simulated']:.1f} %, gap {ours['gap_points']:+.1f}"
    lines.append(line(name, sim_promise, abs(ours["gap_points"]) <= SIMULATED_WITHIN_POINTS, text))
    return lines


def silent_tasks(finished):
    """How many finished no job in one of the repeats."""
    silent = set()
    for record in finished.records[AGENT]:
        silent |= {i for i, task in enumerate(record["tasks"]) if not task["responses_us"]}
    return len(silent)


def crowd(name, finished):
    keeps_up, nobody = "the agent keeps up, decision age p99 is reported", "nobody starves"
    ours = finished.row(AGENT)
    if not ours:
        return [line(name, p, None, "temponet was not run") for p in (keeps_up, nobody)]
    lines = []
    if "age_p99_ms" in ours and "decisions_per_s_min" in ours:
        least = ours["decisions_per_s_min"]
        text = f"decision age p99 {ours['age_p99_ms']:.1f} ms, {ours['decisions_per_s']:.1f} decisions/s"
        text += f", at least {least:.1f} in every repeat, wanted {LEAST_DECISIONS_PER_S}"
        lines.append(line(name, keeps_up, least >= LEAST_DECISIONS_PER_S, text))
    else:
        lines.append(line(name, keeps_up, None, "the scheduler did not report it"))
    if "wait_max_ms" in ours:
        silent = silent_tasks(finished)
        text = f"longest wait {ours['wait_max_ms']:.0f} ms, bound {WAIT_BOUND_MS} ms; {silent} of {len(ours['tasks'])} tasks finished no job"
        lines.append(line(name, nobody, ours["wait_max_ms"] <= WAIT_BOUND_MS and silent == 0, text))
    else:
        lines.append(line(name, nobody, None, "the scheduler did not report waits"))
    return lines


def slowed(name, finished):
    """Nothing is promised here but that it is shown."""
    rows = [r for r in finished.rows if "compliance" in r and not r["failed"]]
    shown = ", ".join(f"{r['scheduler']} {100 * r['compliance']:.1f} %" for r in rows)
    wanted = {"temponet", "temponet@10", "temponet@100"}
    return [line(name, "compliance with slower inference is shown", wanted <= {r["scheduler"] for r in rows} or None, shown or "nothing was run")]


def budget(name, finished):
    """Nothing to say of a case that collects no figures of the agent."""
    if finished.case.kind == "throughput" and not finished.case.tasks:
        return []
    rows = [r for r in finished.rows if is_network(r["scheduler"]) and not r["failed"]]
    if not rows:
        return []
    promise = f"the agent has at most {100 * BUDGET:g} % of one CPU"
    if any("agent_cpu" not in r for r in rows):
        return [line(name, promise, None, "not every row with an agent reported it")]
    text = ", ".join(f"{r['scheduler']} {100 * r['agent_cpu']:.2f} %" for r in rows)
    return [line(name, promise, all(r["agent_cpu"] <= BUDGET for r in rows), text)]


def cost(name, finished):
    ours, edf = finished.row(AGENT), finished.row("edf")
    if not ours or not edf:
        return [line(name, "within 5 % of edf", None, "temponet or edf was not run")]
    if name.startswith("latency"):
        figures = [("p50_us", "median wake-up latency", "µs", 1), ("p99_us", "99th percentile", "µs", 1)]
    else:
        figures = [("switches_per_s", "context switches", "/s", -1), ("hackbench_s", "hackbench", "s", 1)]
    # Where there are jobs, an agent that slept shows nothing.
    busy, rate = bool(finished.case.tasks), ours.get("decisions_per_s_min", 0)
    asleep = busy and rate < AT_WORK_DECISIONS_PER_S
    lines = []
    for key, what, unit, sign in figures:
        worse = sign * (ours[key] - edf[key])
        holds = None if asleep else worse <= COST_WITHIN * edf[key]
        text = f"temponet {ours[key]:.5g} {unit}, edf {edf[key]:.5g} {unit}, {100 * (ours[key] / edf[key] - 1):+.1f} %"
        if busy:
            text += f", at least {rate:.1f} decisions/s" + (": the agent was not at work" if asleep else "")
        lines.append(line(name, f"{what} within 5 % of edf", holds, text))
    return lines


def promises(name):
    """Who judges a case."""
    if name in ("one-cpu", "two-cpus"):
        return below_capacity
    if name.startswith("overload-"):
        return overload
    if name.startswith("crowd-"):
        return crowd
    return slowed if name == "slowed" else cost


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
        else:
            lines += promises(name)(name, made[name]) + budget(name, made[name])
    return lines
