"""Short runs of an experiment that show how fast it trains, for explain-check and tune-check."""
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


def run_once(file, settings, folder, seconds, around):
    """Trains for so long, with what the environment has as well. Returns the run directory."""
    directory = tempfile.mkdtemp(dir=folder)
    command = [RINGCTL, "run", file, "--fresh", "--name", f"trial-{os.getpid()}", "--run-directory", directory]
    for setting in COMMON + settings:
        command += ["--set", setting]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                           env={**os.environ, **around})
    try:
        out, _ = run.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        run.send_signal(signal.SIGINT)
        out, _ = run.communicate()
    found = glob.glob(f"{directory}/*/2*")
    if not found or not os.path.exists(found[0] + "/metrics.csv"):
        raise LeftOut(f"{' '.join(command)}\n{out}")
    return found[0]


def rate(run):
    """Agent steps a second in explain's window, and how many cores other processes took from it meanwhile: 0 if that is
    not known, because the run may use only some of the host's cores. None: the window is too short, or has not two whole
    rollouts."""
    done = subprocess.run([RINGCTL, "explain", run, "--json"], capture_output=True, text=True, check=False)
    explained = json.loads(done.stdout) if done.returncode == 0 else {"window_s": 0, "rollouts": None}
    enough = explained["window_s"] >= 0.3 and (explained["rollouts"] is None or explained["rollouts"] >= 2)
    return (explained["steps_per_s"], explained["cores_lost"] or 0) if enough else None


def trial(file, settings, given, seconds, around=None):
    """A run on a host without other work, below given.runs: other processes took at most given.other cores from it.
    `around`: variables of its environment. Returns its directory and rate."""
    for _ in range(RETRIES + 1):
        run = run_once(file, settings, given.runs, seconds, around or {})
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


def kept(path):
    """What is in the file; None without one."""
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def keep(results, path):
    """Puts the results into the file, whole or not at all."""
    with open(path + ".new", "w", encoding="utf-8") as file:
        json.dump(results, file, indent=1)
        file.write("\n")
    os.replace(path + ".new", path)


def write_between(page, name, lines):
    """Puts the lines into the page, between its comments with this name."""
    with open(page, encoding="utf-8") as file:
        text = file.read()
    head, rest = text.split(f"<!-- {name} -->\n", 1)
    tail = rest.split(f"<!-- end of {name} -->", 1)[1]
    with open(page, "w", encoding="utf-8") as file:
        file.write(f"{head}<!-- {name} -->\n" + "\n".join(lines).rstrip() + f"\n<!-- end of {name} -->{tail}")
