"""The learning table: its rows (table.json), what counts of a seed, and the table in Markdown (docs/learning.md)."""
import hashlib
import json
import pathlib
import statistics

TABLE = pathlib.Path(__file__).with_name("table.json")
MODES = ("free", "sequential")
ACTORS = 2
FIRST = 101  # seeds that nobody looked at while settings were chosen
COUNT = {"free": 10, "sequential": 5}
CHOSEN_WITH = "1 to 20"


def rows(path=TABLE):
    """Every row with what it leaves out filled in."""
    found = []
    for row in json.loads(path.read_text(encoding="utf-8"))["rows"]:
        row = {"set": [], "episodes": 100, "never": False, "long": False, "first": FIRST, "seeds": {}, "packages": [],
               "recording": None, "at_least": {}, "at_most": {}, **row}
        counts = row["seeds"]
        row["seeds"] = {mode: range(row["first"], row["first"] + counts.get(mode, COUNT[mode])) for mode in MODES}
        found.append(row)
    return found


def key(row):
    """Names what a run was of: another experiment file, or other settings, is another key."""
    text = pathlib.Path(row["experiment"]).read_text(encoding="utf-8")
    made = [row["recording"]["experiment"], *row["recording"]["set"]] if row["recording"] else []
    wanted = sorted(wanted_figures(row))
    return hashlib.sha256("\n".join([text, *row["set"], str(row["episodes"]), *made, *wanted]).encode()).hexdigest()[:12]


def wanted_figures(row):
    """Names of the world's figures that count beside the score."""
    return {*row["at_least"], *row["at_most"]}


def last_two(run):
    """What a seed counts by: the mean of its last two evaluations, of different weights."""
    return statistics.mean(score for _, score in run["evaluations"][-2:])


def is_there(row, run):
    """Whether the seed reaches the row's score and, in the mean of the same evaluations, the limits of the figures."""
    means = {name: statistics.mean(values[-2:]) for name, values in run.get("figures", {}).items()}
    return (last_two(run) >= row["score"] and all(means[name] >= least for name, least in row["at_least"].items()) and
            all(means[name] <= most for name, most in row["at_most"].items()))


def best(run):
    return max(score for _, score in run["evaluations"])


def needed(row, seeds):
    """Four of five; of ten, eight."""
    return 0 if row["never"] else -(-4 * seeds // 5)


def figures(row, runs, seeds):
    """What the table says of a row's runs in one mode; seeds: how many there should be."""
    there = [r for r in runs if is_there(row, r)]
    once = [r for r in runs if best(r) >= row["score"]]  # whatever its figures
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
    return f"{row['world']}, {row['algorithm']}, {mode}: {f['there']} of {f['seeds']} seeds at {asked(row)} ({rule})"


def asked(row):
    """ "16, success at least 0.9, length at most 650" """
    limits = [f"{name} {words} {value:g}" for words, limit in (("at least", row["at_least"]), ("at most", row["at_most"]))
              for name, value in limit.items()]
    return ", ".join([f"{row['score']:g}", *limits])


def span(seeds):
    return f"{seeds[0]} to {seeds[-1]}"


def markdown(found):
    """The table's lines. found: (row, its figures with "mode" and "runs") in turn."""
    others = {}
    for r, f in found:
        if r["first"] != FIRST:
            others.setdefault(f"{r['algorithm']} on {r['world']}", []).append(
                f"{span(r['seeds'][f['mode']])} in {f['mode']} mode")
    lines = [
        f"Settings were chosen with seeds {CHOSEN_WITH}, in free mode. The table has other seeds, with which no setting was "
        f"chosen. They begin at {FIRST}, except in these rows:", "",
        *(f"- {what}: seeds {', '.join(seeds)}." for what, seeds in others.items()), "",
        "| world | algorithm | mode | score | seeds at the score at the end | at some time | last two, median (least) "
        "| best, median | steps to the score, median | steps of the run | seconds, median | experiment |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|"]
    for r, f in found:
        rule = "none may" if r["never"] else f"{needed(r, f['seeds'])} must"
        if len(f["runs"]) < f["seeds"]:
            rule += f", {len(f['runs'])} run"
        lines.append(
            f"| {r['world']} | {r['algorithm']} | {f['mode']} | {asked(r)} | {f['there']} of {f['seeds']} ({rule}) | "
            f"{f['once']} | {statistics.median(f['last_two']):.4g} ({min(f['last_two']):.4g}) | "
            f"{statistics.median(f['best']):.4g} | {'' if f['steps'] is None else round(f['steps'])} | {f['budget']} | "
            f"{f['seconds']:.3g} | `{r['experiment']}`{''.join(f', `{s}`' for s in r['set'])} |")
    return lines
