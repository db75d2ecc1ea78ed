"""The learning table: its rows (table.json), what counts of a seed, and the table in Markdown (docs/learning.md)."""
import hashlib
import json
import pathlib
import statistics
import subprocess

TABLE = pathlib.Path(__file__).with_name("table.json")
MODES = ("free", "sequential")
ACTORS = 2
FIRST, LAST = 101, 110  # seeds that nobody looked at while settings were chosen
CHOSEN_WITH = "1 to 20"


def rows(path=TABLE):
    """Every row with what it leaves out filled in."""
    found = []
    for row in json.loads(path.read_text())["rows"]:
        count = row.get("seeds", {})
        found.append({"set": [], "episodes": 100, "never": False, "long": False, **row, "seeds": {
            mode: range(FIRST, FIRST + count.get(mode, LAST - FIRST + 1)) for mode in MODES}})
    return found


def cpu():
    for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "unknown"


def commit():
    return subprocess.run(["git", "rev-parse", "--short=10", "HEAD"], capture_output=True, text=True,
                          check=False).stdout.strip() or "unknown"


def key(row):
    """Names what a run was of: another experiment file, or other settings, is another key."""
    text = pathlib.Path(row["experiment"]).read_text(encoding="utf-8")
    return hashlib.sha256("\n".join([text, *row["set"], str(row["episodes"])]).encode()).hexdigest()[:12]


def last_two(run):
    """What a seed counts by: the mean of its last two evaluations, of different weights."""
    return statistics.mean(score for _, score in run["evaluations"][-2:])


def best(run):
    return max(score for _, score in run["evaluations"])


def needed(row, seeds):
    """Four of five; of ten, eight."""
    return 0 if row["never"] else -(-4 * seeds // 5)


def figures(row, runs, seeds):
    """What the table says of a row's runs in one mode; seeds: how many there should be."""
    there = [r for r in runs if last_two(r) >= row["score"]]
    once = [r for r in runs if best(r) >= row["score"]]
    steps = [next(s for s, score in r["evaluations"] if score >= row["score"]) for r in once]
    return {
        "seeds": seeds, "there": len(there), "once": len(once),
        "passed": len(runs) == seeds and (not once if row["never"] else len(there) >= needed(row, seeds)),
        "steps": statistics.median(steps) if steps else None,
        "last_two": [last_two(r) for r in runs], "best": [best(r) for r in runs],
        "seconds": statistics.median(r["seconds"] for r in runs) if runs else None,
        "budget": max((r["steps"] for r in runs), default=None),
    }


def verdict(row, mode, f):
    rule = "none may" if row["never"] else f"{needed(row, f['seeds'])} must"
    return f"{row['world']}, {row['algorithm']}, {mode}: {f['there']} of {f['seeds']} seeds at {row['score']} ({rule})"
