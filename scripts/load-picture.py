#!/usr/bin/env python3
"""Draws docs/pictures/load.svg: the share of jobs that are late, over load, by scheduler.

scripts/load-picture.py            writes it
scripts/load-picture.py --check    status 1 where it is not what the figures say

The figures are those of docs/measurements/agent.md; so are their command and date.
"""

import re
import sys
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent
FIGURES = REPO / "docs/measurements/agent.md"
PICTURE = REPO / "docs/pictures/load.svg"

# Rows of the tables, and what the picture calls them.
CASES = [
    ("one CPU, load 0.91", "load 0.91"),
    ("one CPU, 1.25, 3 tasks", "load 1.25"),
    ("one CPU, 1.5, 3 tasks", "load 1.5"),
]
# Columns of the tables, what the picture calls them, and their colours.
SCHEDULERS = [
    ("EEVDF", "EEVDF (Linux)", "#94a3b8"),
    ("scx_bpfland", "scx_bpfland", "#64748b"),
    ("SCHED_FIFO by rate", "SCHED_FIFO by rate", "#f59e0b"),
    ("`edf`", "--policy edf", "#60a5fa"),
    ("`temponet`", "default", "#16a34a"),
]
WIDTH, HEIGHT = 720, 330
LEFT, TOP, BOTTOM = 60, 60, 260
BAR, GAP, GROUP = 34, 38, 215
INK, SOFT, LINE = "#0f172a", "#475569", "#e2e8f0"


def tables(text):
    """Every table with a column `case`: {(row, column): cell}."""
    cells, head = {}, None
    for line in text.splitlines():
        if not line.startswith("|"):
            head = None
            continue
        row = [cell.strip().replace("**", "") for cell in line.strip("|").split("|")]
        if head is None:
            head = row
        elif head[0] == "case" and not set(row[0]) <= set("-: "):
            cells.update({(row[0], column): cell for column, cell in zip(head, row)})
    return cells


def fact(text, name):
    """A line of the page's first table."""
    found = re.search(rf"^\| {name} \| (.*) \|$", text, re.MULTILINE)
    if not found:
        sys.exit(f"load-picture.py: {FIGURES}: no row `{name}`")
    return found[1].replace("`", "")


def late(cells, case, column):
    cell = cells.get((case, column), "")
    found = re.fullmatch(r"([\d.]+) %", cell)
    if not found:
        sys.exit(f"load-picture.py: {FIGURES}: no share of jobs for {case}, {column}: {cell!r}")
    return round(100 - float(found[1]), 1)


def number(value):
    return f"{value:.1f}".rstrip("0").rstrip(".")


def draw(text):
    cells = tables(text)
    command, date = fact(text, "command"), fact(text, "date")
    kernel = re.search(r"Linux [\d.]+", fact(text, "machine"))[0]
    scale = (BOTTOM - TOP) / 100
    svg = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
        f'height="{HEIGHT}" font-family="Arial, Helvetica, sans-serif" font-size="12">',
        "  <title>Jobs that are late, by load: three declared tasks on one CPU</title>",
        f"  <desc>Made by scripts/load-picture.py from docs/measurements/agent.md: {command}, {date}.</desc>",
        f'  <rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        f'  <text x="{LEFT}" y="24" font-size="15" font-weight="bold" fill="{INK}">'
        "Jobs that are late: three periodic tasks on one CPU (lower is better)</text>",
    ]
    for share in range(0, 101, 25):
        y = number(BOTTOM - share * scale)
        svg.append(
            f'  <path d="M{LEFT} {y} H700" stroke="{LINE}"/><text x="{LEFT - 8}" y="{float(y) + 4:g}" '
            f'text-anchor="end" fill="{SOFT}">{share} %</text>'
        )
    for group, (case, title) in enumerate(CASES):
        begin = LEFT + 15 + group * GROUP
        for bar, (column, _, colour) in enumerate(SCHEDULERS):
            share = late(cells, case, column)
            x, height = begin + bar * GAP, share * scale
            y = BOTTOM - height
            svg.append(
                f'  <rect x="{x}" y="{number(y)}" width="{BAR}" height="{number(height)}" fill="{colour}"/>'
                f'<text x="{x + BAR // 2}" y="{number(y - 4)}" text-anchor="middle" font-size="11" '
                f'fill="{INK}">{number(share)}</text>'
            )
        middle = begin + (GAP * (len(SCHEDULERS) - 1) + BAR) // 2
        svg.append(f'  <text x="{middle}" y="278" text-anchor="middle" fill="{INK}">{title}</text>')
    x = LEFT
    for _, title, colour in SCHEDULERS:
        svg.append(
            f'  <rect x="{x}" y="294" width="12" height="12" fill="{colour}"/>'
            f'<text x="{x + 17}" y="304" fill="{INK}">{title}</text>'
        )
        x += 40 + round(6.6 * len(title))
    svg.append(
        f'  <text x="{LEFT}" y="322" font-size="11" fill="#64748b">'
        f"{command}, {kernel} in an emulated guest, one run, {date}</text>"
    )
    return "\n".join(svg + ["</svg>", ""])


def main():
    arguments = sys.argv[1:]
    if arguments not in ([], ["--check"]):
        sys.exit((print(__doc__.strip(), file=sys.stderr), 2)[1])
    made = draw(FIGURES.read_text(encoding="utf-8"))
    if arguments:
        if made != PICTURE.read_text(encoding="utf-8"):
            sys.exit(f"load-picture.py: {PICTURE} is not what the figures say: run scripts/load-picture.py")
        return
    PICTURE.write_text(made, encoding="utf-8")


main()
