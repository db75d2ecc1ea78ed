#!/usr/bin/env python3
"""Writes the transition tables of Gymnasium's toy problems as C, for
tests/unit/actor/test_world_tabular.c. Needs gymnasium and numpy; the tables are kept in the tree, so
only who changes them needs them:

    python3 tests/oracle/gymnasium_tables.py > tests/unit/actor/data/gymnasium_tables.h

Of Taxi in the rain only the states with a passenger at the first stand who goes to the second, and
of those aboard who go to the last: where moves lead to depends on neither."""
import gymnasium
import numpy as np

WORLDS = [
    ("frozenlake_4", "FrozenLake-v1", {}, range(16)),
    ("frozenlake_8", "FrozenLake8x8-v1", {}, range(64)),
    ("frozenlake_sure", "FrozenLake8x8-v1", {"is_slippery": False}, range(64)),
    ("frozenlake_likely", "FrozenLake-v1", {"success_rate": 0.75}, range(16)),
    ("taxi", "Taxi-v4", {}, range(500)),
    ("taxi_rain", "Taxi-v4", {"is_rainy": True}, [20 * c + o for c in range(25) for o in (1, 19)]),
]


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
print(" * world's probabilities), next state, reward, terminated}. */")
print("/* clang-format off */")
for name, identifier, options, states in WORLDS:
    made = gymnasium.make(identifier, **options)
    env = made.unwrapped
    actions = int(env.action_space.n)
    table = [env.P[s][a] for s in states for a in range(actions)]
    probabilities = sorted({float(p) for move in table for p, *_ in move})
    flat = []
    for move in table:
        flat.append(len(move))
        for p, successor, reward, terminated in move:
            flat += [probabilities.index(float(p)), successor, reward, terminated]
    starts = np.flatnonzero(env.initial_state_distrib)
    assert np.allclose(env.initial_state_distrib[starts], 1 / len(starts))
    print(f"static const double {name}_probabilities[] = {{{', '.join(map(repr, probabilities))}}};")
    for part, values in [("states", states), ("moves", flat), ("starts", starts)]:
        print(f"static const int16_t {name}_{part}[] = {{")
        lines(digits(values))
        print("};")
    masks = getattr(env, "action_mask", None)
    bits = [sum(int(bit) << a for a, bit in enumerate(masks(s))) for s in states] if masks else []
    print(f"static const int16_t {name}_masks[] = {{")
    lines(digits(bits or [2**actions - 1] * len(states)))
    print("};")
    print(f"enum {{ {name}_max_steps = {made.spec.max_episode_steps} }};")
    if not options:
        print(f"static const double {name}_threshold = {float(made.spec.reward_threshold)!r};")
    value = np.zeros(env.observation_space.n)  # of the best policy, with ever more steps to go
    for _ in range(made.spec.max_episode_steps):
        value = np.array([max(sum(p * (r + (0 if end else value[s])) for p, s, r, end in moves)
                              for moves in env.P[state].values()) for state in env.P])
    print(f"static const double {name}_best = {float(value @ env.initial_state_distrib)!r};")
print("/* clang-format on */")
