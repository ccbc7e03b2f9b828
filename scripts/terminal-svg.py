#!/usr/bin/env python3
"""Draws screens of a terminal as one SVG that plays them in a loop.

scripts/terminal-svg.py --size COLUMNSxROWS --about TEXT [--still N] SCREEN... >PICTURE.svg

A SCREEN is a file as `tmux capture-pane -e -p` writes it: lines with colours. Where nothing
moves, because the reader asked for that or the program cannot, the screen of number N stands
(default: the last).
"""

import argparse
import re
from pathlib import Path
from xml.sax.saxutils import escape

STEP = 0.5  # seconds that a screen stands
CELL, LINE, MARGIN = 8, 17, 12
BACK, INK = "#0f172a", "#e2e8f0"
# Black to white, and their bright ones.
PALETTE = (
    "#1e293b #f87171 #4ade80 #facc15 #60a5fa #e879f9 #22d3ee #cbd5e1 "
    "#64748b #fca5a5 #86efac #fde047 #93c5fd #f0abfc #67e8f9 #f8fafc"
).split()
ESCAPE = re.compile(r"\x1b\[([\d;]*)m|\x1b[()].|[\x0e\x0f]")
PLAIN = {"ink": None, "back": None, "bold": False, "dim": False, "reverse": False}


def colour(codes):
    """Of 38 or 48, from what follows them."""
    kind = next(codes)
    if kind == 2:
        return "#%02x%02x%02x" % (next(codes), next(codes), next(codes))
    number = next(codes)
    if number < 16:
        return PALETTE[number]
    if number >= 232:
        return "#" + "%02x" % (8 + 10 * (number - 232)) * 3
    levels = [0, 95, 135, 175, 215, 255]
    number -= 16
    return "#%02x%02x%02x" % (levels[number // 36], levels[number // 6 % 6], levels[number % 6])


def restyle(style, codes):
    style, codes = dict(style), iter([int(code or 0) for code in codes.split(";")])
    for code in codes:
        if code == 0:
            style = dict(PLAIN)
        elif code == 1:
            style["bold"] = True
        elif code == 2:
            style["dim"] = True
        elif code == 22:
            style["bold"] = style["dim"] = False
        elif code in (7, 27):
            style["reverse"] = code == 7
        elif code in (39, 49):
            style["ink" if code == 39 else "back"] = None
        elif code in (38, 48):
            style["ink" if code == 38 else "back"] = colour(codes)
        elif 30 <= code % 60 <= 37:
            style["ink"] = PALETTE[code % 60 - 30 + (8 if code >= 90 else 0)]
        elif 40 <= code % 60 <= 47:
            style["back"] = PALETTE[code % 60 - 40 + (8 if code >= 100 else 0)]
    return style


def runs(text, style):
    """Stretches of one style: (column, text, style); and the style that goes on."""
    found, column, at = [], 0, 0
    while True:
        change = ESCAPE.search(text, at)
        part = text[at : change.start() if change else None]
        if part:
            found.append((column, part, style))
            column += len(part)
        if not change:
            return found, style
        if change[1] is not None:
            style = restyle(style, change[1])
        at = change.end()


def drawn(row, stretches):
    """A line of the screen as SVG."""
    top, backs, words = MARGIN + row * LINE, "", ""
    for column, text, style in stretches:
        ink, back = style["ink"] or INK, style["back"]
        if style["reverse"]:
            ink, back = back or BACK, ink
        x, width = MARGIN + column * CELL, len(text) * CELL
        if back:
            backs += f'<rect x="{x:g}" y="{top}" width="{width:g}" height="{LINE}" fill="{back}"/>'
        how = f' fill="{ink}"' if ink != INK else ""
        how += ' font-weight="bold"' if style["bold"] else ""
        how += ' opacity=".6"' if style["dim"] else ""
        # Spaces in a row would be drawn as one. And however wide the reader's font is,
        # columns stand where they stood: what is long is stretched to its width.
        for part in re.finditer(r"\S+(?: \S+)*", text):
            left, length = x + part.start() * CELL, len(part[0]) * CELL
            fit = f' textLength="{length:g}"' if len(part[0]) > 6 else ""
            words += f'<tspan x="{left:g}"{fit}{how}>{escape(part[0])}</tspan>'
    return backs + (f'<text y="{top + 13}">{words}</text>' if words else "")


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--size", required=True)
    options.add_argument("--about", required=True)
    options.add_argument("--still", type=int)
    options.add_argument("screens", nargs="+", type=Path)
    given = options.parse_args()
    columns, rows = map(int, given.size.split("x"))
    count = len(given.screens)
    still = count - 1 if given.still is None else given.still

    # A line that looks the same on several screens is drawn once: {(row, svg): screens}.
    lines = {}
    for number, path in enumerate(given.screens):
        style = PLAIN
        for row, text in enumerate(path.read_text(encoding="utf-8").split("\n")[:rows]):
            stretches, style = runs(text, style)
            svg = drawn(row, stretches)
            if svg:
                lines.setdefault((row, svg), []).append(number)

    names, rules = {}, []
    for shown in lines.values():
        shown = tuple(shown)
        if len(shown) == count or shown in names:
            continue
        name = names[shown] = f"s{len(names)}"
        frames, was = [], None
        for number in range(count):
            now = number in shown
            if now != was:
                frames.append(f"{100 * number / count:.4g}%{{visibility:{'visible' if now else 'hidden'}}}")
            was = now
        visible = "visible" if still in shown else "hidden"
        rules.append(f".{name}{{visibility:{visible};animation-name:{name}}}@keyframes {name}{{{''.join(frames)}}}")

    width, height = 2 * MARGIN + columns * CELL, 2 * MARGIN + rows * LINE
    print(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}" '
        f'font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="13.3" fill="{INK}">\n'
        f"<title>{escape(given.about)}</title>\n<style>g{{animation:{count * STEP:g}s step-end infinite}}"
        f"{''.join(rules)}@media(prefers-reduced-motion:reduce){{g{{animation-duration:0s!important;animation-name:none!important}}}}</style>\n"
        f'<rect width="{width:g}" height="{height:g}" rx="6" fill="{BACK}"/>'
    )
    for (_, svg), shown in lines.items():
        name = names.get(tuple(shown))
        print(f'<g class="{name}">{svg}</g>' if name else svg)
    print("</svg>")


main()
