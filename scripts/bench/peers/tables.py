"""The results as Markdown."""
import statistics

FIGURES = ("steps_per_s", "to_475_s", "acting_steps_per_s", "items_per_s", "inserts_per_s", "samples_per_s")
TITLES = {
    "ppo": "CartPole by PPO, 8 worlds, minibatches of 256",
    "ppo64": "CartPole by PPO, 64 worlds, minibatches of 1024",
    "dqn": "CartPole by DQN",
    "puffer-mlp": "CartPole by PPO, 8192 worlds, one epoch, 1,027 parameters",
    "puffer-lstm": "CartPole by PPO, 8192 worlds, one epoch, 128-wide LSTM",
    "stepping": "Stepping CartPole",
    "ring": "Items of 4 KiB",
}
HEADS = {
    "steps_per_s": "steps/s", "to_475_s": "to 475 (s)", "acting_steps_per_s": "with a 64x64 policy acting",
    "items_per_s": "written + read/s", "inserts_per_s": "inserts/s", "samples_per_s": "samples/s",
}


def number(value):
    if value >= 1e6:
        return f"{value / 1e6:.3g} M"
    return f"{value / 1e3:.3g} k" if value >= 1e4 else f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def cell(rows, figure):
    values = [r[figure] for r in rows if r.get(figure) is not None]
    if not values:
        return "not reached" if figure == "to_475_s" and any(figure in r for r in rows) else ""
    text = number(statistics.median(values))
    if len(values) > 1:
        text += f" ({number(min(values))} to {number(max(values))})"
    missed = len(rows) - len(values)
    return text + (f", {missed} of {len(rows)} not" if missed and figure == "to_475_s" else "")


def median(rows, figure):
    values = [r[figure] for r in rows if r.get(figure) is not None]
    return statistics.median(values) if values else None


def setting(row):
    if isinstance(row.get("setting"), dict):
        return ", ".join(f"{k} {v}" for k, v in row["setting"].items()) or "one learner thread"
    parts = [row["setting"]] if row.get("setting") else []
    if row.get("mode"):
        parts.append(row["mode"])
    elif row.get("threads"):
        parts.append(f"{row['threads']} thread{'s' * (row['threads'] > 1)}")
    return ", ".join(parts)


def versions(row):
    return ", ".join(f"{k} {v}" for k, v in row.get("versions", {}).items())


def task_table(task, rows):
    names = list(dict.fromkeys(r["peer"] for r in rows))
    by = {n: [r for r in rows if r["peer"] == n] for n in names}
    figures = [f for f in FIGURES if any(f in r for r in rows)]
    own = by.get("Ringmaster")
    print(f"\n**{TITLES[task]}**\n")
    print("| | " + " | ".join(HEADS[f] for f in figures) + " | Ringmaster's steps/s by this | setting | runs |")
    print("|---|" + "---|" * (len(figures) + 3))
    for name in names:
        a = own and median(own, "steps_per_s")
        b = median(by[name], "steps_per_s")
        ratio = f"{a / b:.3g} x" if a and b and not name.startswith("Ringmaster") else ""
        for other in by if ratio else ():
            c = other.startswith("Ringmaster, ") and median(by[other], "steps_per_s")
            ratio += f" ({other.removeprefix('Ringmaster, ')} {c / b:.3g} x)" if c else ""
        print(f"| {name} | " + " | ".join(cell(by[name], f) for f in figures) +
              f" | {ratio} | {setting(by[name][-1])} | {len(by[name])} |")


def show(result):
    print(f"\n{result['date']}, {result['cpu']}, {result['cores']} cores, pinned to {result['pinned_to']}; load "
          f"before the first run {result['load_before']:.2f}{'; quick' if result['quick'] else ''}.")
    for task in TITLES:
        rows = [r for r in result["results"] if r["task"] == task]
        if rows:
            task_table(task, rows)
    latest = {r["peer"]: r for r in result["results"] if r.get("versions")}
    if latest:
        print("\nVersions:\n")
        for name, row in latest.items():
            print(f"- {name}: {versions(row)}")
    if result["failures"]:
        print("\nNot measured:\n")
        for what, why in result["failures"].items():
            print(f"- {what}: {why}")
