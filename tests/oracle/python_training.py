#!/usr/bin/env python3
"""Trains in every environment of python_worlds.py for some seconds each, and prints a table of what was learned: agent
steps, and the mean return of the first episodes and of the last, at most 100 and half of all. On a busy host a run goes on to
its first update. A run that fails, makes no update or loses a worker is listed with the reason, and the exit code is 1. Run by
check-python-worlds --train, by an interpreter that has the packages.

usage: python_training.py --train SECONDS [--build BUILD] [--all] [NAME]...
"""
import argparse
import csv
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

import python_worlds as oracle

PATIENCE_S = 240  # from the start to the first step, and from the signal to the end
EXPERIMENTS = pathlib.Path(__file__).resolve().parents[2] / "config"


def layers(kind, *units):
    return [layer for n in units for layer in ({"type": "linear", "units": n}, {"type": kind})]


PPO = {"actor": {"worlds": 16}, "rollout": {"steps": 64},
       "algorithm": {"name": "ppo", "minibatches": 8, "entropy_coefficient": 0.01},
       "network": {"layers": layers("tanh", 64, 64), "init": "orthogonal", "trunk": "separate"},
       "optimizer": {"learning_rate": 1e-3, "epsilon": 1e-5, "grad_clip": 0.5}}
SAC = {"actor": {"worlds": 4, "random_steps": 2000}, "ring": {"capacity": 200000},
       "sample": {"batch": 128, "min_fill": 2000}, "limiter": {"updates_per_step": 0.5, "slack_updates": 8},
       "algorithm": {"name": "sac", "target": {"update": "soft", "tau": 0.005}},
       "network": {"layers": layers("relu", 128, 128)}, "optimizer": {"learning_rate": 1e-3, "grad_clip": 0},
       "publish": {"interval": 1}}
SCALED = {"network": {"normalize_observations": True}}
CODES = {"network": {"layers": [{"type": "embedding", "units": 64}, *layers("tanh", 64)]}}
CONVOLUTIONS = {"network": {"trunk": "shared", "layers": [
    {"type": "conv2d", "units": 16, "kernel": 8, "stride": 4}, {"type": "relu"},
    {"type": "conv2d", "units": 32, "kernel": 4, "stride": 2}, {"type": "relu"}, *layers("relu", 128)]}}
PICTURES = {**CONVOLUTIONS, "rollout": {"steps": 32}, "actor": {"worlds": 8}, "sample": {"frame_stack": 4},
            "optimizer": {"learning_rate": 5e-4}}
SHARED = {"policy": {"map": "shared"}}
# The first player learns against weights that never change: returns of self-play would always add up to 0.
AGAINST_UNTRAINED = {"policy": {"map": [0, 1], "frozen": [{"policy": 1, "of": 0, "every": 10**9, "keep": 1}]}}
FIRST = {"agent": 0}  # the agent whose return is shown; without it, the sum of all agents

# Pictures small and grey, and episodes of their usual length: what is trained in is not what is compared.
AS = {
    "gymnasium:CarRacing-v3": ("worlds_for_oracle:small", {"name": "CarRacing-v3", "max_episode_steps": 200}),
    "ALE/Pong-v5": ("worlds_for_oracle:ale", {"name": "ALE/Pong-v5", "obs_type": "ram"}),
    "ALE/Breakout-v5": ("worlds_for_oracle:small", {"name": "ALE/Breakout-v5"}),
    "knights_archers_zombies": ("pettingzoo.butterfly.knights_archers_zombies_v10:parallel_env", {"max_cycles": 300}),
    "cooperative_pong_v5:": ("worlds_for_oracle:small_parallel", {"module": "pettingzoo.butterfly.cooperative_pong_v5"}),
    "pistonball": ("worlds_for_oracle:small_parallel", {"module": "pettingzoo.butterfly.pistonball_v6", "n_pistons": 5}),
}

# What a world's name contains: a shipped experiment or settings, and changes. The first that fits; else PPO.
SETTINGS = [
    ("CartPole-v1 ", "cartpole-ppo"), ("Acrobot", "acrobot-ppo"), ("MountainCar-v0", "mountaincar-dqn"),
    ("FrozenLake", "frozenlake-ppo"), ("Taxi", "taxi-ppo"), ("CliffWalking", PPO, CODES),
    ("Pendulum-v1", "pendulum-sac"), ("MountainCarContinuous", "mountaincar-continuous-sac"),
    ("LunarLander", "lunarlander-ppo"), ("BipedalWalker", SAC), ("CarRacing", PPO, PICTURES),
    ("InvertedPendulum", SAC), ("Hopper", SAC), ("HalfCheetah", SAC), ("Ant-v5", SAC),
    ("Pong-v5", PPO, SCALED), ("Breakout", PPO, PICTURES), ("minigrid", PPO), ("craftax", PPO),
    ("knights", PPO, SHARED), ("supersuit", PPO, SHARED), ("cooperative_pong", PPO, SHARED, PICTURES), ("pistonball", PPO, SHARED, PICTURES),
    ("simple_spread", PPO, SHARED), ("simple_tag", PPO, FIRST),
    ("pettingzoo.classic", PPO, AGAINST_UNTRAINED, FIRST),
]


def merged(below, above):
    """Settings of both; those of `above` where both have one."""
    if not (isinstance(below, dict) and isinstance(above, dict)):
        return above
    return {**below, **{key: merged(below[key], value) if key in below else value for key, value in above.items()}}


def settings_of(world, options):
    text = f"{world} {json.dumps(options)}"
    base, *changes = next((row[1:] for row in SETTINGS if row[0] in text), (PPO,))
    if isinstance(base, str):
        base = json.loads((EXPERIMENTS / f"{base}.json").read_text(encoding="utf-8"))
        base = {**{key: value for key, value in base.items() if key not in ("//", "evaluation")}}
        base["optimizer"].pop("schedule", None)  # it would fall to the end of the budget, of which there is none
    settings = base
    for change in changes:
        settings = merged(settings, change)
    return settings


def train(ringctl, folder, world, options, seconds):
    """A run of `seconds` from its first step: its summary, the rows of its metrics, the agent whose return is shown or None,
    and the algorithm."""
    settings = settings_of(world, options)
    agent = settings.pop("agent", None)
    settings = merged(settings, {
        "name": "trained", "seed": 1, "run": {"steps": 0, "directory": f"{folder}/runs"},
        "evaluation": {"interval": 0, "final_episodes": 0}, "metrics": {"interval_s": 0.2, "tensorboard": "off"}})
    settings["world"] = {"python": world, "interpreter": sys.executable, "options": options}
    path = f"{folder}/experiment.json"
    with open(path, "w", encoding="utf-8") as file:
        json.dump(settings, file)
    log = open(f"{folder}/said", "w+", encoding="utf-8", errors="replace")
    run = subprocess.Popen([ringctl, "run", "--fresh", path], stdout=log, stderr=subprocess.STDOUT)
    latest, since = pathlib.Path(folder, "runs/trained/latest"), time.monotonic()
    begun = None
    while run.poll() is None and time.monotonic() < since + PATIENCE_S + seconds:
        rows = metrics_of(latest)
        if begun is None and any(float(row["steps"]) for row in rows):
            begun = time.monotonic()
        if begun and time.monotonic() >= begun + seconds and any(updates_of(row) for row in rows):
            break
        time.sleep(0.5)
    if run.poll() is None:
        run.send_signal(signal.SIGINT)
    try:
        run.wait(PATIENCE_S)
    except subprocess.TimeoutExpired:
        run.kill()
        run.wait()
    log.seek(0)
    said = log.read()
    log.close()
    assert run.returncode == 0 and (latest / "summary.json").exists(), f"exit code {run.returncode}: {said.strip()[-600:]}"
    summary = json.loads((latest / "summary.json").read_text(encoding="utf-8"))
    return summary, metrics_of(latest), agent, settings["algorithm"]["name"]


def metrics_of(folder):
    """Whole rows of metrics.csv, by the names of columns."""
    try:
        with open(folder / "metrics.csv", newline="", encoding="utf-8") as file:
            return [row for row in csv.DictReader(file) if None not in row.values()]
    except FileNotFoundError:
        return []


def updates_of(row):
    return sum(float(value or 0) for name, value in row.items() if re.fullmatch(r"policy\..*\.updates", name))


def row_of(summary, metrics, agent, algorithm):
    """The cells of the table after the name."""
    steps = max(policy["env_steps"] for policy in summary["policies"])
    assert steps and any(policy["updates"] for policy in summary["policies"]), "no update was made"
    deaths = [f"{worker['name']}: {worker['reason']}" for worker in summary["workers"] if worker["deaths"]]
    assert not deaths, "; ".join(deaths)
    name = None if agent is None else summary["agents"][agent]["name"]
    column = "score" if name is None else f"agent.{name}.reward"
    means = [(float(row[f"{column}_last"]), float(row[f"{column}_episodes"])) for row in metrics if row[f"{column}_last"]]
    if means:
        first = next(mean for mean, episodes in means if episodes >= min(100, means[-1][1] / 2))
        returns = f"{first:.4g} → {means[-1][0]:.4g}" + (f" ({name})" if name else "")
    else:
        returns = "no episode ended"
    return f"{algorithm} | {steps} | {summary['trained_s']:.0f} | {returns}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--train", type=float, required=True, metavar="SECONDS")
    parser.add_argument("--build", default="build")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("wanted", nargs="*")
    args = parser.parse_args()
    ringctl, failed, here = os.path.abspath(f"{args.build}/bin/ringctl"), 0, os.getcwd()
    print("| environment | algorithm | agent steps | seconds | return, first → last |\n|---|---|---|---|---|")
    for world, options in oracle.SINGLE + oracle.PARALLEL + oracle.AEC:
        name = f"{world} {json.dumps(options) if options else ''}".strip()
        world, options = oracle.newest(*next((other for part, other in AS.items() if part in name), (world, options)))
        name = f"{world} {json.dumps(options) if options else ''}".strip()
        if args.wanted and not any(word in name for word in args.wanted):
            continue
        with tempfile.TemporaryDirectory() as folder:
            oracle.enter(folder)
            try:
                oracle.make(world, options)
                row = row_of(*train(ringctl, folder, world, options, args.train))
            except oracle.Missing as why:
                failed += args.all and not world.startswith(oracle.JAX)
                row = f"not installed: {why} | | |"
            except AssertionError as why:
                failed += 1
                row = f"does not work: {' '.join(str(why).split())} | | |"
            oracle.leave(folder, here)
        print(f"| {name} | {row} |", flush=True)
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
