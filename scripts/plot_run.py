#!/usr/bin/env python3
"""Draws a run's learning curves as SVG, from its metrics.csv. Needs nothing but Python.

usage: scripts/plot_run.py RUN_DIRECTORY [OUT.svg]

One line per agent: the mean reward of its latest 100 episodes against the agent's steps. Where the run
evaluated greedily at its end, a mark shows each agent's greedy mean. Writes to RUN_DIRECTORY/rewards.svg
unless told otherwise.
"""
import csv
import json
import math
import os
import sys

WIDTH, HEIGHT = 760, 380
LEFT, RIGHT, TOP, BOTTOM = 62, 175, 34, 48
COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999999"]


def read(directory):
    """({agent: [(steps, reward), ...]}, summary)."""
    curves = {}
    with open(os.path.join(directory, "metrics.csv"), newline="", encoding="utf-8") as f:
        rows = csv.DictReader(f)
        columns = [c for c in rows.fieldnames if c.startswith("agent.") and c.endswith(".reward_last")]
        for row in rows:
            for column in columns:
                if row[column]:
                    name = column[len("agent."):-len(".reward_last")]
                    curves.setdefault(name, []).append((float(row["steps"]), float(row[column])))
    with open(os.path.join(directory, "summary.json"), encoding="utf-8") as f:
        return curves, json.load(f)


def ticks(low, high, about):
    """Round numbers from low to high."""
    raw = (high - low) / about
    power = 10 ** math.floor(math.log10(raw))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= raw)
    at = math.ceil(low / step) * step
    while at <= high + 1e-9:
        yield at
        at += step


def draw(curves, summary):
    greedy = {a["name"]: a["evaluation"]["mean"] for a in summary["agents"]
              if a["evaluation"]["mean"] is not None}
    values = [r for c in curves.values() for _, r in c] + list(greedy.values())
    low, high = min([0.0, *values]), 1.08 * max(values)
    last = max(s for c in curves.values() for s, _ in c)

    def x(steps):
        return LEFT + (WIDTH - LEFT - RIGHT) * steps / last

    def y(reward):
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (reward - low) / (high - low)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
           'font-family="DejaVu Sans, Helvetica, sans-serif" font-size="12">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
           f'<text x="{LEFT}" y="20" font-size="14" font-weight="bold">{summary["name"]}: mean reward per '
           'episode</text>']
    for t in ticks(low, high, 6):
        out.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(t):.1f}" y2="{y(t):.1f}" stroke="#ddd"/>'
                   f'<text x="{LEFT - 8}" y="{y(t) + 4:.1f}" text-anchor="end">{t:g}</text>')
    for t in ticks(0, last, 6):
        out.append(f'<text x="{x(t):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{t:,.0f}</text>')
    out.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 10}" text-anchor="middle">steps of each '
               'agent</text>')
    for i, (name, curve) in enumerate(curves.items()):
        colour = COLOURS[i % len(COLOURS)]
        points = " ".join(f"{x(s):.1f},{y(r):.1f}" for s, r in curve)
        out.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.8"/>')
        text = name
        if name in greedy:
            out.append(f'<circle cx="{x(last) + 10:.1f}" cy="{y(greedy[name]):.1f}" r="4" fill="{colour}"/>')
            text += f" {greedy[name]:.1f}"
        out.append(f'<rect x="{WIDTH - RIGHT + 26}" y="{TOP + 18 * i + 4}" width="12" height="3" '
                   f'fill="{colour}"/><text x="{WIDTH - RIGHT + 44}" y="{TOP + 18 * i + 10}">{text}</text>')
    if greedy:
        out.append(f'<text x="{WIDTH - RIGHT + 26}" y="{TOP + 18 * len(curves) + 14}" fill="#555" '
                   'font-size="11">dots: greedy, at the end</text>')
    return "\n".join([*out, "</svg>", ""])


def main():
    if len(sys.argv) not in (2, 3) or sys.argv[1] in ("-h", "--help"):
        print(__doc__)
        return 0 if len(sys.argv) > 1 else 2
    directory = sys.argv[1]
    path = sys.argv[2] if len(sys.argv) == 3 else os.path.join(directory, "rewards.svg")
    try:
        curves, summary = read(directory)
    except OSError as e:
        print(f"plot_run: {e.filename}: {e.strerror}; name the directory of a finished run", file=sys.stderr)
        return 1
    if not curves:
        print(f"plot_run: {directory}: no episode was finished", file=sys.stderr)
        return 1
    with open(path, "w", encoding="utf-8") as f:
        f.write(draw(curves, summary))
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
