"""How a benchmark in Python reports: as report.h does, a row of a table and a line of JSON for scripts/bench/run."""
import json
import os
import statistics


def wanted(name, patterns):
    """Is `name` asked for? No patterns = all; a name or a prefix that ends in '*'."""
    return not patterns or any(
        name.startswith(p[:-1]) if p.endswith("*") else name == p for p in patterns)


def report(name, unit, values, ceiling=None, baseline=None, note=""):
    value = statistics.median(values)
    row = {"name": name, "value": value, "unit": unit, "ceiling": ceiling,
           "fraction": value / ceiling if ceiling else None, "baseline": baseline,
           "ratio": value / baseline if baseline else None, "runs": len(values), "min": min(values),
           "max": max(values)}
    text = f"{name:34} {value:12.5g} {unit:12} [{min(values):.4g} .. {max(values):.4g}]"
    if ceiling:
        text += f"  {100 * row['fraction']:5.1f} % of {ceiling:.4g}"
    if baseline:
        text += f"  {row['ratio']:.3g} x {baseline:.4g}"
    if note:
        row["note"] = note
        text += f"  ({note})"
    print(text, flush=True)
    if os.environ.get("RM_BENCH_OUT"):
        with open(os.environ["RM_BENCH_OUT"], "a", encoding="utf-8") as out:
            out.write(json.dumps(row) + "\n")
