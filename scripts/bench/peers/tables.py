"""The results as Markdown, and what README quotes of them."""
import statistics

FIGURES = ("steps_per_s", "to_475_s", "items_per_s", "inserts_per_s", "samples_per_s")
TITLES = {
    "ppo": "CartPole by PPO, 8 worlds, minibatches of 256",
    "ppo64": "CartPole by PPO, 64 worlds, minibatches of 1024",
    "ppo-python": "CartPole by PPO, 8 worlds, minibatches of 256, with the world of Gymnasium for both",
    "puffer-mlp": "CartPole by PPO, 8192 worlds, one epoch, 1,027 parameters",
    "puffer-lstm": "CartPole by PPO, 8192 worlds, one epoch, 128-wide LSTM",
    "dqn": "CartPole by DQN",
    "sac": "Pendulum by SAC, 256x256, batch 256, an update a step",
    "sac-python": "Pendulum by SAC with the same settings and the world of Gymnasium for both",
    "ppo40": "CartPole by PPO, 40 worlds, 20 for each worker of Sample Factory, minibatches of 256",
    "stepping": "Stepping CartPole for a program in Python",
    "ring": "Items of 4 KiB",
}
HEADS = {
    "steps_per_s": "steps/s", "to_475_s": "to 475 (s)",
    "items_per_s": "written + read/s", "inserts_per_s": "inserts/s", "samples_per_s": "samples/s",
}


def number(value):
    if value >= 999.5e3:  # or three digits of thousands would read 1e+03
        return f"{value / 1e6:.3g} M"
    return f"{value / 1e3:.3g} k" if value >= 1e4 else f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def of(result, task, peer):
    """The rows of one library at one task that count: those of its better learning rate, by which more of its runs
    reach 475, and sooner."""
    rows = [r for r in result["results"] if (r["task"], r["peer"]) == (task, peer)]
    if not any("to_475_s" in r for r in rows):
        return rows

    def merit(rate):
        times = [r["to_475_s"] for r in rows if r["learning_rate"] == rate]
        reached = [t for t in times if t is not None]
        return len(reached) / len(times), -statistics.median(reached) if reached else 0
    best = max({r["learning_rate"] for r in rows}, key=merit)
    return [r for r in rows if r["learning_rate"] == best]


def median(rows, figure):
    values = [r[figure] for r in rows if r.get(figure) is not None]
    return statistics.median(values) if values else None


def cell(rows, figure):
    looked = [r for r in rows if figure in r]
    values = [r[figure] for r in looked if r[figure] is not None]
    if not values:
        return "not reached" if looked and figure == "to_475_s" else ""
    text = number(statistics.median(values))
    if len(values) > 1:
        text += f" ({number(min(values))} to {number(max(values))})"
    missed = len(looked) - len(values)
    return text + (f", {missed} of {len(looked)} not" if missed and figure == "to_475_s" else "")


def setting(row, several_rates):
    if isinstance(row.get("setting"), dict):
        parts = [f"{k} {v}" for k, v in row["setting"].items()] or ["one learner thread"]
    else:
        parts = [row["setting"]] if row.get("setting") else []
        if row.get("mode"):
            parts.append(row["mode"])
        elif row.get("threads"):
            parts.append(f"{row['threads']} thread{'s' * (row['threads'] > 1)}")
    if several_rates:
        parts.append(f"learning rate {row['learning_rate']:g}")
    return ", ".join(parts)


def task_table(result, task):
    rows = [r for r in result["results"] if r["task"] == task]
    names = sorted({r["peer"] for r in rows}, key=lambda n: (not n.startswith("Ringmaster"),
                                                             [r["peer"] for r in rows].index(n)))
    by = {n: of(result, task, n) for n in names}
    several = len({r.get("learning_rate") for r in rows}) > 1
    figures = [f for f in FIGURES if any(f in r for r in rows)]
    compared = "Ringmaster" in by and any(median(by[n], "steps_per_s") for n in names if n != "Ringmaster")
    lines = [f"**{TITLES[task]}**", "",
             "| | " + " | ".join(HEADS[f] for f in figures) +
             (" | Ringmaster's steps/s by this" if compared else "") + " | setting | runs |",
             "|---|" + "---|" * (len(figures) + 2 + compared)]
    for name in names:
        ratio = ""
        if compared and not name.startswith("Ringmaster"):
            b = median(by[name], "steps_per_s")
            for own in names:
                a = own.startswith("Ringmaster") and median(by[own], "steps_per_s")
                if a and b:
                    text = f"{a / b:.3g} x"
                    ratio += f" ({own.removeprefix('Ringmaster, ')} {text})" if ratio else text
        lines.append(f"| {name} | " + " | ".join(cell(by[name], f) for f in figures) +
                     (f" | {ratio}" if compared else "") +
                     f" | {setting(by[name][-1], several)} | {len(by[name])} |")
    return lines


def tables(result):
    lines = [line for task in TITLES if any(r["task"] == task for r in result["results"])
             for line in [*task_table(result, task), ""]]
    latest = {r["peer"]: r["versions"] for r in result["results"] if r.get("versions")}
    lines += ["Versions: " + "; ".join(f"{name}: " + ", ".join(f"{k} {v}" for k, v in versions.items())
                                       for name, versions in latest.items()) + "."]
    if result["failures"]:
        lines += ["", "Not measured:", ""] + [f"- {what}: {why}" for what, why in result["failures"].items()]
    return "\n".join(lines) + "\n"
