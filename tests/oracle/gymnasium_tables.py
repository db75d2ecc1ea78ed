#!/usr/bin/env python3
"""Writes the transition tables of Gymnasium's toy problems as C, for
tests/unit/actor/worlds/test_world_tabular.c. Needs gymnasium and numpy; the tables are kept in the tree, so
only who changes them needs them:

    python3 tests/oracle/gymnasium_tables.py > tests/unit/actor/worlds/data/gymnasium_tables.h

Of Taxi in the rain only the states with a passenger at the first stand who goes to the second, and
of those aboard who go to the last: where moves lead to depends on neither.

A fickle passenger is not in Gymnasium's tables: what step() does with one is replayed with draws that
take every value. State 500 + s is s with a passenger who may still change their mind."""
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


def digits(numbers):
    return ", ".join(str(int(n)) for n in numbers)


def lines(text):
    """Breaks a list at 100 characters."""
    line = "   "
    for word in text.split(" "):
        if len(line) + 1 + len(word) > 100:
            print(line)
            line = "   "
        line += " " + word
    print(line)


print(f"/* Made by tests/oracle/gymnasium_tables.py with Gymnasium {gymnasium.__version__}.")
print(" * Per state and action: the number of outcomes, then of each {probability (an index into the")
print(" * world's probabilities), next state, reward (an index too), terminated}. */")
print("/* clang-format off */")
for name, identifier, options, states in WORLDS:
    made = gymnasium.make(identifier, **options)
    env = made.unwrapped
    actions = int(env.action_space.n)
    twins = env.fickle_probability if getattr(env, "fickle_passenger", False) else 0.0
    everything = {s: [outcomes(env, s, a) for a in range(actions)]
                  for s in range(env.observation_space.n * (2 if twins else 1))}
    table = [move for s in states for move in everything[s]]
    probabilities = sorted({float(p) for move in table for p, *_ in move})
    rewards = sorted({float(r) for move in table for _, _, r, _ in move})
    flat = []
    for move in table:
        flat.append(len(move))
        for p, successor, reward, terminated in move:
            flat += [probabilities.index(float(p)), successor, rewards.index(float(reward)), terminated]
    starts = np.flatnonzero(env.initial_state_distrib)
    assert np.allclose(env.initial_state_distrib[starts], 1 / len(starts))
    print(f"static const double {name}_probabilities[] = {{{', '.join(map(repr, probabilities))}}};")
    print(f"static const double {name}_rewards[] = {{{', '.join(map(repr, rewards))}}};")
    for part, values in [("states", states), ("moves", flat), ("starts", starts)]:
        print(f"static const int16_t {name}_{part}[] = {{")
        lines(digits(values))
        print("};")
    masks = getattr(env, "action_mask", None)
    bits = [sum(int(bit) << a for a, bit in enumerate(masks(s % 500))) for s in states] if masks else []
    print(f"static const int16_t {name}_masks[] = {{")
    lines(digits(bits or [2**actions - 1] * len(states)))
    print("};")
    print(f"enum {{ {name}_max_steps = {made.spec.max_episode_steps} }};")
    if not options:
        print(f"static const double {name}_threshold = {float(made.spec.reward_threshold)!r};")
    value = np.zeros(len(everything))  # of the best policy, with ever more steps to go
    for _ in range(made.spec.max_episode_steps):
        value = np.array([max(sum(p * (r + (0 if end else value[s])) for p, s, r, end in move)
                              for move in moves) for moves in everything.values()])
    print(f"static const double {name}_twins = {float(twins)!r};")
    starts = env.initial_state_distrib
    if twins:
        starts = np.concatenate([(1 - twins) * starts, twins * starts])
    print(f"static const double {name}_best = {float(value @ starts)!r};")
print("/* clang-format on */")
