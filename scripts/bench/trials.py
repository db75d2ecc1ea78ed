"""Short runs of an experiment that show how fast it trains, for explain-check and tune-check."""
import csv
import glob
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

BUILD = os.environ.get("BUILD", "build")
RINGCTL = os.path.join(BUILD, "bin", "ringctl")
RETRIES = 3
COMMON = ["run.steps=0", "evaluation.interval=0", "evaluation.final_episodes=0", "evaluation.worlds=1",
          "checkpoint.interval_s=0", "checkpoint.at_end=false", "metrics.interval_s=0.05", "metrics.tensorboard=off",
          "optimizer.schedule.kind=constant"]


class LeftOut(Exception):
    """Why something can't be measured."""


def run_once(file, settings, folder, seconds):
    """Trains for so long. Returns the run directory."""
    directory = tempfile.mkdtemp(dir=folder)
    command = [RINGCTL, "run", file, "--fresh", "--name", f"trial-{os.getpid()}", "--run-directory", directory]
    for setting in COMMON + settings:
        command += ["--set", setting]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        out, _ = run.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        run.send_signal(signal.SIGINT)
        out, _ = run.communicate()
    found = glob.glob(f"{directory}/*/2*")
    if not found or not os.path.exists(found[0] + "/metrics.csv"):
        raise LeftOut(f"{' '.join(command)}\n{out}")
    return found[0]


def python_s(run, columns, grown):
    """An upper bound on the processor time of the processes of worlds in Python, which are no workers."""
    with open(run + "/config.json", encoding="utf-8") as file:
        experiment = json.load(file)
    if not experiment["world"].get("python"):
        return 0
    waited = sum(grown(k) for k in columns if k.endswith(".phase_environment_ns")) / 1e9
    return waited * max(1, experiment["actor"]["python_workers"])


def rate(run):
    """Agent steps a second in the rows of metrics, after the first updates and the first two fifths of the time; and
    how many cores other processes took from it meanwhile: no more than its processes waited for. None: too short."""
    with open(run + "/metrics.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    updates = [k for k in rows[0] if k.startswith("policy.") and k.endswith(".updates")]
    used = [k for k in rows[0] if k.startswith("worker.") and k.endswith(".cpu_ns")]
    last = rows[max(range(len(rows)), key=lambda i: float(rows[i]["steps"])) - 1]  # the run ends before its last row
    first = next((r for r in rows if sum(float(r[k]) for k in updates) > 0 and
                  float(r["time_s"]) >= 0.4 * float(last["time_s"])), last)

    def grown(key):
        return float(last[key] or 0) - float(first[key] or 0)
    seconds = grown("time_s")
    if seconds < 0.3:
        return None
    other = (grown("host_cpu_s") - sum(grown(k) for k in used) / 1e9 - grown("daemon_cpu_s") +
             grown("host_steal_s") - python_s(run, rows[0], grown)) / seconds
    # Who sleeps most of the time loses little by a delay.
    workers = [k.removesuffix(".run_delay_ns") for k in rows[0] if k.endswith(".run_delay_ns")]
    waited = sum(grown(f"{w}.run_delay_ns") * max(0, 1 - grown(f"{w}.phase_waiting_ns") / 1e9 / seconds)
                 for w in workers) / 1e9
    known = last["host_cpu_s"] != ""  # not where the run may use only some of the cores
    return grown("steps") / seconds, min(other, waited / seconds) if known else waited / seconds


def trial(file, settings, given, seconds):
    """A run on a host without other work, below given.runs: other processes took at most given.other cores from it.
    Returns its directory and rate."""
    for _ in range(RETRIES + 1):
        run = run_once(file, settings, given.runs, seconds)
        found = rate(run)
        if not found:
            seconds *= 2
            continue
        steps_per_s, other = found
        if other <= given.other:
            return run, steps_per_s
        print(f"    other processes took {other:.2f} cores: once more", file=sys.stderr)
        time.sleep(0.5)
    raise LeftOut("the host has other work, or the run makes no updates in this time")


def write_between(page, name, lines):
    """Puts the lines into the page, between its comments with this name."""
    with open(page, encoding="utf-8") as file:
        text = file.read()
    head, rest = text.split(f"<!-- {name} -->\n", 1)
    tail = rest.split(f"<!-- end of {name} -->", 1)[1]
    with open(page, "w", encoding="utf-8") as file:
        file.write(f"{head}<!-- {name} -->\n" + "\n".join(lines).rstrip() + f"\n<!-- end of {name} -->{tail}")
