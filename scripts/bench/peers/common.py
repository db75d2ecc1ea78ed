"""What the peers' programs share: their command line, a clock that can be stopped, greedy evaluation.

A program measures one library at one task and prints one line of JSON. Imports are over before the clock
starts, and it stands still during evaluations.
"""
import argparse
import importlib.metadata
import json
import os
import platform
import time
from contextlib import contextmanager

import numpy as np

import settings


def arguments(tasks):
    parser = argparse.ArgumentParser()
    parser.add_argument("task", choices=tasks)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1, help="of the library's own arithmetic")
    parser.add_argument("--steps", type=int, help="stop after so many, instead of the task's")
    parser.add_argument("--learning-rate", type=float, help="instead of the task's")
    parser.add_argument("--seconds", type=float, default=4, help="of stepping and of the ring, which have no steps")
    parser.add_argument("--no-evaluation", action="store_true", help="steps/s only")
    args = parser.parse_args()
    args.no_evaluation |= args.task not in settings.EVERY
    args.steps = args.steps or settings.STEPS.get(args.task)
    if args.learning_rate:
        settings.TASKS[args.task]["learning_rate"] = args.learning_rate
    return args


def turns_per_s(turn, seconds):
    """How often a second turn(i) can be called, after 20 calls that do not count."""
    for i in range(20):
        turn(i)
    began, turns = time.perf_counter(), 0
    while (spent := time.perf_counter() - began) < seconds:
        for i in range(8):
            turn(i)
        turns += 8
    return turns / spent


def emit(name, packages, task, **figures):
    versions = {p: importlib.metadata.version(p) for p in packages}
    versions["python"] = platform.python_version()
    print(json.dumps({"peer": name, "task": task, "versions": versions, **figures}), flush=True)


def greedy_score(act, seed):
    """Mean score of ten greedy episodes of CartPole-v1, side by side. act: (10, 4) float32 -> (10,)."""
    state = np.random.default_rng(seed).uniform(-0.05, 0.05, (settings.EPISODES, 4))
    alive = np.ones(settings.EPISODES, bool)
    score = np.zeros(settings.EPISODES)
    for _ in range(500):
        x, v, angle, spin = state.T
        push = np.where(np.asarray(act(state.astype(np.float32))) == 1, 10.0, -10.0)
        sin, cos = np.sin(angle), np.cos(angle)
        # Barto 1983: cart 1 kg, pole 0.1 kg of half length 0.5 m, Euler steps of 0.02 s
        force = (push + 0.05 * spin**2 * sin) / 1.1
        turn = (9.8 * sin - cos * force) / (0.5 * (4 / 3 - 0.1 * cos**2 / 1.1))
        slide = force - 0.05 * turn * cos / 1.1
        state = np.stack([x + 0.02 * v, v + 0.02 * slide, angle + 0.02 * spin, spin + 0.02 * turn], 1)
        score += alive
        alive &= (np.abs(state[:, 0]) <= 2.4) & (np.abs(state[:, 2]) <= 12 * np.pi / 180)
        if not alive.any():
            break
    return float(score.mean())


class Watch:
    """Times one run of training. Call `look` between updates: it says whether to go on."""

    def __init__(self, args):
        self.args = args
        self.start()
        self.next = settings.EVERY.get(args.task)
        self.warm = self.last = None      # (steps, seconds)
        self.reached = None
        self.scores = []

    def start(self):
        self.began = time.perf_counter()
        self.stopped = 0.0

    def seconds(self):
        return time.perf_counter() - self.began - self.stopped

    @contextmanager
    def standing_still(self):
        before = time.perf_counter()
        yield
        self.stopped += time.perf_counter() - before

    def look(self, steps, act):
        """After `steps` steps; act: the greedy policy, as greedy_score takes it."""
        now = self.seconds()
        self.last = (steps, now)
        if self.warm is None and steps >= settings.WARM[self.args.task]:
            self.warm = self.last
        if not self.args.no_evaluation and steps >= self.next and not self.reached:
            self.next += settings.EVERY[self.args.task]
            with self.standing_still():
                score = greedy_score(act, steps)
            self.scores.append(score)
            if score >= settings.SOLVED:
                self.reached = self.last
        if self.reached and steps >= settings.ENOUGH[self.args.task]:
            return False
        return steps < self.args.steps

    def figures(self):
        warm = self.warm or self.last
        steps, seconds = (self.last[i] - warm[i] for i in (0, 1))
        looked = {} if self.args.no_evaluation else {
            "to_475_s": self.reached and self.reached[1], "to_475_steps": self.reached and self.reached[0],
            "scores": self.scores,
        }
        return {
            "seed": self.args.seed, "threads": self.args.threads, "steps": self.last[0],
            "learning_rate": settings.TASKS[self.args.task]["learning_rate"],
            "seconds": self.last[1], "steps_per_s": steps / seconds if seconds > 0 else None, **looked,
        }


def torch_threads(count):
    import torch
    torch.set_num_threads(count)
    os.environ["OMP_NUM_THREADS"] = str(count)
    return torch
