"""Ringmaster's side: the same tasks as the peers', as experiments of ringmasterd, and its own benchmarks."""
import csv
import datetime
import io
import json
import os
import re
import subprocess
import tempfile
import time

import settings

BUILD = os.environ.get("BUILD", "build")
INTERPRETER = ""  # of Python worlds: run sets it
# For steps/s: the start of its processes counts, so several seconds. Time to 475 is looked for in settings.STEPS.
SPEED_STEPS = {"ppo": 1_000_000, "ppo-python": 500_000, "ppo40": 1_000_000, "ppo64": 2_000_000, "dqn": 20_000,
               "puffer-mlp": 12 << 19, "puffer-lstm": 4 << 19, "sac": 5_000, "sac-python": 5_000}
# The counterpart of a peer's number of threads: the fastest of these is measured.
VARIANTS = {
    "ppo": [{}, {"learner.threads": 2}, {"actor.count": 2, "learner.threads": 2}],
    "ppo-python": [{}, {"learner.threads": 2}, {"actor.python_workers": 2}],
    "ppo40": [{}, {"learner.threads": 2}, {"actor.count": 2, "learner.threads": 2}],
    "ppo64": [{}, {"learner.threads": 2}, {"actor.count": 2, "learner.threads": 2}],
    "dqn": [{}, {"learner.threads": 2}],
    "sac": [{}, {"learner.threads": 2}],
    "sac-python": [{}, {"learner.threads": 2}],
    "puffer-mlp": [{"actor.count": 2, "learner.threads": 2}],
    "puffer-lstm": [{"actor.count": 2, "learner.threads": 2}],
}
# Rows of their own beside the measured variant's: products that are not float32, as the peers' are.
BESIDE = {"puffer-lstm": {"Ringmaster, bf16": {"learner.compute": "bf16"}}}
STARTING = re.compile(r": starting \(generation 1")
LIMIT_S = float(os.environ.get("RM_PEERS_LIMIT_S", 900))  # of one run; also of the peers'


class Run:
    """What a run of ringmasterd left behind."""

    def __init__(self, launched, directory):
        self.launched = launched
        files = {name: os.path.join(folder, name) for folder, _, names in os.walk(directory) for name in names}
        self.summary = json.loads(read(files["summary.json"]))
        self.log = read(files["log.txt"])
        self.metrics = read(files["metrics.csv"])


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def layers(widths, activation):
    return [layer for w in widths for layer in ({"type": "linear", "units": w}, {"type": activation})]


def ppo(s):
    return {
        "actor": {"count": 1, "worlds": s["worlds"]},
        "rollout": {"steps": s["rollout"], "max_policy_lag": 0},
        "sample": {"gamma": s["gamma"]}, "limiter": {"updates_per_step": 0},
        "algorithm": {
            "name": "ppo", "gae_lambda": s["gae_lambda"], "clip": s["clip"], "epochs": s["epochs"],
            "minibatches": s["minibatches"], "entropy_coefficient": s["entropy"],
            # The peers' loss has no factor 1/2.
            "value_coefficient": 2 * s["value"], "normalize_advantages": "minibatch",
        },
        "network": {"layers": layers(s["layers"], "tanh"), "trunk": "separate", "init": "orthogonal",
                    "gain": 2**0.5, "policy_gain": 0.01, "value_gain": 1.0},
        "optimizer": {"learning_rate": s["learning_rate"], "grad_clip": s["grad_clip"],
                      "epsilon": s["adam_epsilon"]},
    }


def puffer(s, recurrent):
    """Policy and value share what is before their heads."""
    made = ppo(s)
    made["network"] |= {"trunk": "shared", "layers": layers(s["layers"], "gelu")}
    if recurrent:
        made["network"]["layers"].append({"type": "lstm", "units": s["layers"][0]})
    return made


def dqn(s):
    per_step = s["updates_per_burst"] / s["steps_per_burst"]
    return {
        "actor": {"count": 1, "worlds": s["worlds"]},
        "epsilon": {"start": s["epsilon_start"], "end": s["epsilon_end"], "decay": "linear",
                    "unit": "steps", "span": s["epsilon_steps"]},
        "ring": {"capacity": s["replay"]},
        "sample": {"batch": s["batch"], "n_step": 1, "gamma": s["gamma"], "min_fill": s["learning_starts"]},
        "limiter": {"updates_per_step": per_step, "slack_updates": s["updates_per_burst"]},
        "algorithm": {"name": "dqn", "double_q": False,
                      "target": {"update": "hard", "interval": s["updates_per_burst"]}},
        "network": {"layers": layers(s["layers"], "relu")},
        "optimizer": {"learning_rate": s["learning_rate"], "grad_clip": s["grad_clip"],
                      "epsilon": s["adam_epsilon"]},
        "publish": {"interval": s["updates_per_burst"]},
    }


def sac(s):
    return {
        "world": {"name": "pendulum"},
        "actor": {"count": 1, "worlds": s["worlds"], "random_steps": s["learning_starts"]},
        "ring": {"capacity": s["replay"]},
        "sample": {"batch": s["batch"], "n_step": 1, "gamma": s["gamma"], "min_fill": s["learning_starts"]},
        "limiter": {"updates_per_step": 1, "slack_updates": 4},
        "algorithm": {"name": "sac", "target": {"update": "soft", "tau": s["tau"]}},
        "network": {"layers": layers(s["layers"], "relu")},
        "optimizer": {"learning_rate": s["learning_rate"], "grad_clip": 0, "epsilon": s["adam_epsilon"]},
        "publish": {"interval": 1},
    }


def sac_in_python(s):
    """The same environment as the peer's, in the peer's interpreter."""
    return sac(s) | {"world": {"python": "gymnasium:Pendulum-v1", "interpreter": INTERPRETER}}


def ppo_in_python(s):
    return ppo(s) | {"world": {"python": "gymnasium:CartPole-v1", "interpreter": INTERPRETER}}


MAKERS = {"sac": sac, "sac-python": sac_in_python, "ppo": ppo, "ppo-python": ppo_in_python, "ppo40": ppo, "ppo64": ppo, "dqn": dqn,
          "puffer-mlp": lambda s: puffer(s, False), "puffer-lstm": lambda s: puffer(s, True)}


def experiment(task, seed, steps, interval):
    base = {
        "name": f"peers-{os.getpid()}", "seed": seed, "mode": "free", "run": {"steps": steps},
        "world": {"name": "cartpole"}, "metrics": {"tensorboard": "off", "interval_s": 10},
        "evaluation": {"interval": interval, "episodes": settings.EPISODES, "final_episodes": 0,
                       "worlds": settings.EPISODES},
    }
    return base | MAKERS[task](settings.TASKS[task])


def first_solved(run):
    """Seconds from the launch to the first row of metrics with a greedy evaluation of 475, or None."""
    started = next(line for line in run.log.splitlines() if STARTING.search(line)).split()[0]
    started = datetime.datetime.fromisoformat(started.replace("Z", "+00:00")).timestamp()
    for row in csv.DictReader(io.StringIO(run.metrics)):
        if float(row["evaluation_score"] or 0) >= settings.SOLVED:
            return started - run.launched + float(row["time_s"]), int(row["steps"])
    return None, None


def run(pin, task, seed, steps, overrides, interval=0):
    """One run of ringmasterd. Returns what it left behind."""
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "experiment.json")
        with open(path, "w", encoding="utf-8") as f:
            json.dump(experiment(task, seed, steps, interval), f)
        command = [*pin, os.path.join(BUILD, "bin", "ringmasterd"), "--foreground",
                   "--set", f"run.directory={directory}"]
        for key, value in overrides.items():
            command += ["--set", f"{key}={value}"]
        launched = time.time()
        done = subprocess.run([*command, path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              check=False, timeout=LIMIT_S)
        if done.returncode:
            said = [line for line in done.stdout.splitlines() if line.strip()]
            raise RuntimeError(f"ringmasterd: exit {done.returncode}: {' / '.join(said[-2:])[:300]}")
        return Run(launched, directory)


def speed(pin, task, seed, overrides, share=1.0):
    """Steps/s of training: processes' start included, evaluation switched off. The steps before the first
    update from replay do not count."""
    summary = run(pin, task, seed, int(SPEED_STEPS[task] * share), overrides).summary
    steps = sum(p["env_steps"] for p in summary["policies"])
    free = settings.TASKS[task].get("learning_starts", 0)
    return (steps - free) / summary["trained_s"]


def has_bf16():
    """Whether this processor computes what learner.compute "bf16" asks for; else the figure would be float32's."""
    return " avx512_bf16 " in read("/proc/cpuinfo").replace("\n", " ")


def measure(pin, task, seed, overrides, learning_rate=None, name="Ringmaster"):
    rate = learning_rate or settings.TASKS[task]["learning_rate"]
    asked = overrides | {"optimizer.learning_rate": rate}
    figures = {"peer": name, "task": task, "seed": seed, "setting": overrides, "learning_rate": rate,
               "steps_per_s": speed(pin, task, seed, asked)}
    if task in settings.EVERY:
        learned = run(pin, task, seed, settings.STEPS[task], asked, settings.EVERY[task])
        figures["to_475_s"], figures["to_475_steps"] = first_solved(learned)
    return figures


def bench(pin, program, name):
    """The median that one of the project's own benchmarks reports."""
    with tempfile.NamedTemporaryFile("r", suffix=".jsonl") as out:
        subprocess.run([*pin, os.path.join(BUILD, "bench", program), name], check=True, timeout=LIMIT_S,
                       stdout=subprocess.DEVNULL, env=dict(os.environ, RM_BENCH_OUT=out.name))
        for line in out:
            row = json.loads(line)
            if row["name"] == name:
                return row["value"]
    raise RuntimeError(f"{program} reported no {name}")


def ring(pin):
    """Rows of 4 KiB written by one process plus those read by another, at the same time."""
    return {"peer": "Ringmaster", "task": "ring",
            "items_per_s": 1e9 * bench(pin, "bench_ring", "ring.bandwidth") / 4096}
