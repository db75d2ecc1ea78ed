#!/usr/bin/env python3
"""Draws a run's learning curves as SVG, from its metrics.csv. Needs nothing but Python.

usage: scripts/plot_run.py RUN_DIRECTORY [OUT.svg]

One line per agent: the mean reward of its latest 100 episodes against the agent's steps. Every evaluation is a
point per agent, at the steps of the weights that played it. The run may still be going on. Writes to
RUN_DIRECTORY/rewards.svg without OUT.svg.
"""
import csv
import html
import json
import math
import os
import sys

WIDTH, HEIGHT = 760, 380
LEFT, RIGHT, TOP, BOTTOM = 62, 175, 34, 48
COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999999"]


def series(rows, columns, steps, suffix):
    """{agent: [(steps, value), ...]} of the columns "agent.NAME" + suffix."""
    curves = {}
    for column in columns:
        if column.startswith("agent.") and column.endswith(suffix):
            points = [(float(row[steps]), float(row[column])) for row in rows if row[column] and row[steps]]
            curves[column[len("agent."):-len(suffix)]] = points
    return curves


def read(directory):
    """(name, {agent: rewards while training}, {agent: evaluations})."""
    with open(os.path.join(directory, "config.json"), encoding="utf-8") as f:
        name = json.load(f)["name"]
    with open(os.path.join(directory, "metrics.csv"), newline="", encoding="utf-8") as f:
        reader = csv.DictReader(f)
        rows = [row for row in reader if None not in row.values()]  # the last one may be half written
    return (name, series(rows, reader.fieldnames, "steps", ".reward_last"),
            series(rows, reader.fieldnames, "evaluation_steps", ".evaluation"))


def ticks(low, high, about):
    """Round numbers from low to high."""
    raw = (high - low) / about
    power = 10 ** math.floor(math.log10(raw))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= raw)
    at = math.ceil(low / step) * step
    while at <= high + 1e-9:
        yield at
        at += step


def bounds(values):
    """What the axis shows: all values with some room, and 0 where none is below it."""
    low, high = min(values), max(values)
    if low >= 0:
        low = 0.0
    room = 0.08 * (high - low) or 1.0
    return low - (room if low < 0 else 0), high + room


def draw(name, rewards, evaluations):
    points = [p for curves in (rewards, evaluations) for curve in curves.values() for p in curve]
    low, high = bounds([value for _, value in points])
    last = max(steps for steps, _ in points) or 1.0

    def x(steps):
        return LEFT + (WIDTH - LEFT - RIGHT) * steps / last

    def y(reward):
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (reward - low) / (high - low)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
           'font-family="DejaVu Sans, Helvetica, sans-serif" font-size="12">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
           f'<text x="{LEFT}" y="20" font-size="14" font-weight="bold">{html.escape(name)}: mean reward per '
           'episode</text>']
    for t in ticks(low, high, 6):
        out.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(t):.1f}" y2="{y(t):.1f}" stroke="#ddd"/>'
                   f'<text x="{LEFT - 8}" y="{y(t) + 4:.1f}" text-anchor="end">{t:g}</text>')
    for t in ticks(0, last, 6):
        out.append(f'<text x="{x(t):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{t:,.0f}</text>')
    out.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 10}" text-anchor="middle">steps of each '
               'agent</text>')
    for i, (agent, curve) in enumerate(rewards.items()):
        colour = COLOURS[i % len(COLOURS)]
        line = " ".join(f"{x(s):.1f},{y(r):.1f}" for s, r in curve)
        out.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.8"/>')
        text = html.escape(agent)
        for s, r in evaluations.get(agent, []):
            out.append(f'<circle cx="{x(s):.1f}" cy="{y(r):.1f}" r="3.5" fill="{colour}" stroke="white"/>')
            text = f"{html.escape(agent)} {r:.4g}"
        out.append(f'<rect x="{WIDTH - RIGHT + 26}" y="{TOP + 18 * i + 4}" width="12" height="3" '
                   f'fill="{colour}"/><text x="{WIDTH - RIGHT + 44}" y="{TOP + 18 * i + 10}">{text}</text>')
    if any(evaluations.values()):
        out.append(f'<text x="{WIDTH - RIGHT + 26}" y="{TOP + 18 * len(rewards) + 14}" fill="#555" '
                   'font-size="11">points: evaluations</text>')
    return "\n".join([*out, "</svg>", ""])


def main():
    if len(sys.argv) not in (2, 3) or sys.argv[1] in ("-h", "--help"):
        print(__doc__)
        return 0 if len(sys.argv) > 1 else 2
    directory = sys.argv[1]
    path = sys.argv[2] if len(sys.argv) == 3 else os.path.join(directory, "rewards.svg")
    try:
        name, rewards, evaluations = read(directory)
    except OSError as e:
        print(f"plot_run: {e.filename}: {e.strerror}; name a run's directory, such as runs/NAME/latest",
              file=sys.stderr)
        return 1
    if not any(rewards.values()) and not any(evaluations.values()):
        print(f"plot_run: {directory}: no episode was finished", file=sys.stderr)
        return 1
    with open(path, "w", encoding="utf-8") as f:
        f.write(draw(name, rewards, evaluations))
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
