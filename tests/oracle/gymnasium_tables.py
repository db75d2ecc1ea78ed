#!/usr/bin/env python3
"""Writes hashes of the transition tables of Gymnasium's toy problems as C, for
tests/unit/actor/worlds/test_world_tabular.c. Needs gymnasium and numpy:

    python3 tests/oracle/gymnasium_tables.py > tests/unit/actor/worlds/data/gymnasium_tables.h

With names of worlds (frozenlake_4 ...) it prints the hashed text, as the test does with RM_TEST_TABLES=1.

Of Taxi in the rain only the states with a passenger at the first stand who goes to the second, and
of those aboard who go to the last: where moves lead to depends on neither.

A fickle passenger is not in Gymnasium's tables: what step() does with one is replayed with draws that
take every value. State 500 + s is s with a passenger who may still change their mind."""
import sys

import gymnasium
import numpy as np

WORLDS = [
    ("frozenlake_4", "FrozenLake-v1", {}, range(16)),
    ("frozenlake_8", "FrozenLake8x8-v1", {}, range(64)),
    ("frozenlake_sure", "FrozenLake8x8-v1", {"is_slippery": False}, range(64)),
    ("frozenlake_likely", "FrozenLake-v1", {"success_rate": 0.75}, range(16)),
    ("frozenlake_own", "FrozenLake-v1", {"desc": ["SFFHF", "FHSFG", "GFFFS"],
                                         "reward_schedule": (3.5, -2, -0.25)}, range(15)),
    ("frozenlake_row", "FrozenLake-v1", {"desc": ["HFSFFFFG"], "is_slippery": False,
                                         "reward_schedule": (1, -1, 0)}, range(8)),
    ("taxi", "Taxi-v4", {}, range(500)),
    ("taxi_rain", "Taxi-v4", {"is_rainy": True}, [20 * c + o for c in range(25) for o in (1, 19)]),
    ("taxi_storm", "Taxi-v4", {"is_rainy": True, "rainy_probability": 0.35},
     [20 * c + o for c in range(25) for o in (1, 19)]),
    ("taxi_fickle", "Taxi-v4", {"fickle_passenger": True},
     [t + 20 * c + o for t in (0, 500) for c in range(25) for o in (1, 16, 19)]),
    ("taxi_moody", "Taxi-v4", {"is_rainy": True, "fickle_passenger": True, "fickle_probability": 0.9},
     [t + 20 * c + o for t in (0, 500) for c in range(25) for o in (1, 17)]),
]


class Scripted:
    """A generator of one draw of each kind, given beforehand."""
    def __init__(self, number, index):
        self.number, self.index, self.choices = number, index, 1

    def random(self):
        return self.number

    def choice(self, values):
        self.choices = len(values)
        return values[self.index]


def outcomes(env, state, action):
    """All that an action can lead to, as in env.P."""
    if not getattr(env, "fickle_passenger", False) or state < 500:
        return env.P[state][action]
    found, below = [], 0.0
    for p, *_ in env.P[state - 500][action]:
        index, choices = 0, 1
        while index < choices:
            env.s, env.fickle_step = state - 500, True
            env.np_random = draws = Scripted(below + p / 2, index)
            successor, reward, terminated = env.step(action)[:3]
            choices = draws.choices
            found.append((p / choices, successor + 500 * env.fickle_step, reward, terminated))
            index += 1
        below += p
    return found


def fnv(text):
    """FNV-1a of 64 bits."""
    value = 0xcbf29ce484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001b3 % 2**64
    return f"0x{value:016x}u"


def moves_text(everything, states, starts):
    """What is hashed of a world: the moves of its states, a line each, and its first states."""
    text = ""
    for state in states:
        text += f"state {state}\n"
        for move in everything[state]:
            outs = (f" {float(p):.12g} {successor} {float(reward) + 0.0:.12g} {int(end)}" for p, successor, reward, end in move)
            text += f"{len(move)}{''.join(outs)}\n"
    return text + "".join(f"start {start}\n" for start in starts)


def best_score(everything, starts, steps):
    """Mean of the best policy, by backward induction."""
    value = np.zeros(len(everything))
    for _ in range(steps):
        value = np.array([max(sum(p * (r + (0 if end else value[s])) for p, s, r, end in move)
                              for move in moves) for moves in everything.values()])
    return float(value @ starts)


def row(name, identifier, options, states, show):
    made = gymnasium.make(identifier, **options)
    env = made.unwrapped
    actions = int(env.action_space.n)
    twins = float(env.fickle_probability) if getattr(env, "fickle_passenger", False) else 0.0
    everything = {s: [outcomes(env, s, a) for a in range(actions)]
                  for s in range(env.observation_space.n * (2 if twins else 1))}
    starts = env.initial_state_distrib
    first = np.flatnonzero(starts)
    assert np.allclose(starts[first], 1 / len(first))
    text = moves_text(everything, states, first)
    mask = getattr(env, "action_mask", None)
    masks = "".join(f"{sum(int(bit) << a for a, bit in enumerate(mask(s % 500))) if mask else 2**actions - 1}\n"
                    for s in states)
    if show:
        print(text + masks, end="")
        return
    weights = np.concatenate([(1 - twins) * starts, twins * starts]) if twins else starts
    threshold = "NAN" if options else repr(float(made.spec.reward_threshold))
    print(f"#define {name.upper()} .moves = {fnv(text)}, .masks = {fnv(masks)}, .max_steps = {made.spec.max_episode_steps},"
          f" .twins = {twins!r}, .best = {best_score(everything, weights, made.spec.max_episode_steps)!r},"
          f" .threshold = {threshold}")


def main():
    wanted = sys.argv[1:]
    if not wanted:
        print(f"/* Made by tests/oracle/gymnasium_tables.py with Gymnasium {gymnasium.__version__}: hashes of "
              "transition tables with\n * their first states, and of masks. That program prints the hashed text of a "
              "world. */")
        print("/* clang-format off */")
    for world in WORLDS:
        if not wanted or world[0] in wanted:
            row(*world, wanted)
    if not wanted:
        print("/* clang-format on */")


main()
