#!/usr/bin/env python3
"""Writes transitions of Gymnasium's classic control environments as a C table, for
tests/unit/actor/worlds/test_world_classic.c. Needs gymnasium and numpy; the table is kept in the tree, so
only who changes it needs them:

    python3 tests/oracle/gymnasium_transitions.py > tests/unit/actor/worlds/data/gymnasium.h
"""
import gymnasium
import numpy as np

COUNT = 80  # transitions per environment from random states
EDGES = 20  # pairs of transitions on either side of the end of an episode
random = np.random.default_rng(20240601)


def cartpole():
    limit_angle = 12 * 2 * np.pi / 360
    state = random.uniform(-1, 1, 4) * [2.4, 3, limit_angle, 3]
    kind = random.random()
    if kind < 0.3:  # about to fall
        state[2] = random.choice([-1, 1]) * limit_angle * random.uniform(0.97, 1)
    elif kind < 0.6:  # about to leave
        state = np.array([random.choice([-1, 1]) * 2.4 * random.uniform(0.98, 1), state[1], 0, 0])
    return state


def acrobot():
    state = random.uniform(-1, 1, 4) * [np.pi, np.pi, 4 * np.pi, 9 * np.pi]
    return state * random.choice([0.1, 0.5, 1.0])


def mountaincar():
    state = np.array([random.uniform(-1.2, 0.5), random.uniform(-0.07, 0.07)])
    if random.random() < 0.2:
        state = np.array([random.uniform(-1.2, -1.15), random.uniform(-0.07, -0.03)])
    elif random.random() < 0.25:
        state = np.array([random.uniform(0.45, 0.5), random.uniform(0.0, 0.07)])
    elif random.random() < 0.25:  # arrives slowly
        state = np.array([random.uniform(0.494, 0.5), random.uniform(0.0, 0.006)])
    return state


def continuous():
    return mountaincar().astype(np.float32)  # as it keeps its state


def pendulum():
    return random.uniform(-1, 1, 2) * [random.choice([np.pi, 70]), random.choice([1, 8])]


WORLDS = [("cartpole", "CartPole-v1", cartpole), ("acrobot", "Acrobot-v1", acrobot),
          ("mountaincar", "MountainCar-v0", mountaincar),
          ("mountaincar_continuous", "MountainCarContinuous-v0", continuous),
          ("pendulum", "Pendulum-v1", pendulum)]


def numbers(values, width):
    padded = list(values) + [0.0] * (width - len(values))
    return "{" + ", ".join(repr(float(v)) for v in padded) + "}"


print(f"/* Made by tests/oracle/gymnasium_transitions.py with Gymnasium {gymnasium.__version__}:")
print(" * state, action, next state, observation, reward, terminated. */")
print("/* clang-format off */")
def draw_action(env):
    if hasattr(env.action_space, "n"):
        return int(random.integers(env.action_space.n))
    low, high = env.action_space.low[0], env.action_space.high[0]  # some are at a bound
    return float(np.clip(np.float32(random.uniform(1.1 * low, 1.1 * high)), low, high))


def take(env, state, action):
    env.state = np.array(state)
    env.steps_beyond_terminated = None
    return env.step(action if isinstance(action, int) else np.array([action], np.float32))[:3]


def show(env, state, action):
    observation, reward, terminated = take(env, state, action)
    print(f"    {{{numbers(state, 4)}, {action!r}, {numbers(env.state, 4)},\n"
          f"     {numbers(observation, 6)}, {float(reward)!r}, {int(terminated)}}},")


def edge(env, draw, action):
    """Two states between which lies, closely, the border between going on and ending."""
    sides = {}
    while len(sides) < 2:
        state = draw()
        sides[take(env, state, action)[2]] = state
    goes_on, ends = sides[False], sides[True]
    for _ in range(26):
        middle = (goes_on + ends) / 2
        if take(env, middle, action)[2]:
            ends = middle
        else:
            goes_on = middle
    return goes_on, ends


for name, identifier, draw in WORLDS:
    env = gymnasium.make(identifier).unwrapped
    env.reset(seed=1)
    print(f"static const struct transition {name}_transitions[] = {{")
    for _ in range(COUNT):
        show(env, draw(), draw_action(env))
    for _ in range(0 if name == "pendulum" else EDGES):  # which never ends
        action = draw_action(env)
        for state in edge(env, draw, action):
            show(env, state, action)
    print("};")
print("/* clang-format on */")
