#!/usr/bin/env python3
"""Plays environments that nobody here wrote beside themselves: every row of 10,000 steps in a worker equals what the bare
environment gives for the same seeds and actions. Run by check-python-worlds, by an interpreter that has the packages.

usage: python_worlds.py --dump DUMP_WORLDS [--all] [NAME]...

Worlds whose packages are missing are skipped; with --all that is a failure, unless they need JAX.
"""
import argparse
import importlib.util
import json
import os
import pkgutil
import re
import subprocess
import sys
import tempfile

import gymnasium
import numpy as np

STEPS, DRAWN_STEPS, EPISODES = 10000, 1600, 64  # the second: of worlds that draw pictures
FIRST, TERMINATED, TRUNCATED, VOID, DEAD = 1, 2, 4, 8, 16
LAST = TERMINATED | TRUNCATED
# (world, options): one agent; then several.
SINGLE = [
    ("gymnasium:CartPole-v1", {}), ("gymnasium:Acrobot-v1", {}), ("gymnasium:MountainCar-v0", {}),
    ("gymnasium:FrozenLake-v1", {}), ("gymnasium:FrozenLake-v1", {"map_name": "8x8"}), ("gymnasium:Taxi", {}),
    ("gymnasium:Blackjack-v1", {}), ("gymnasium:CliffWalking-v1", {"max_episode_steps": 50}),
    ("gymnasium:Pendulum-v1", {}), ("gymnasium:MountainCarContinuous-v0", {}),
    ("gymnasium:LunarLander-v3", {}), ("gymnasium:LunarLander-v3", {"continuous": True}), ("gymnasium:BipedalWalker-v3", {}),
    ("gymnasium:CarRacing-v3", {"max_episode_steps": 50}), ("gymnasium:InvertedPendulum-v5", {}),
    ("gymnasium:Hopper-v5", {}), ("gymnasium:HalfCheetah-v5", {}), ("gymnasium:Ant-v5", {}),
    ("worlds_for_oracle:nested", {}),
    ("worlds_for_oracle:minigrid", {"name": "MiniGrid-Empty-Random-5x5-v0"}),
    ("worlds_for_oracle:minigrid", {"name": "MiniGrid-DoorKey-5x5-v0"}),
    ("worlds_for_oracle:legacy", {"name": "CartPole-v1"}),
    ("worlds_for_oracle:ale", {"name": "ALE/Pong-v5", "obs_type": "ram", "max_episode_steps": 300}),
    ("worlds_for_oracle:ale", {"name": "ALE/Breakout-v5", "max_episode_steps": 60}),
    ("worlds_for_oracle:jumanji", {"name": "Snake-v1"}), ("worlds_for_oracle:craftax", {"name": "Craftax-Classic-Symbolic-v1"}),
]
JAX = ("worlds_for_oracle:jumanji", "worlds_for_oracle:craftax")  # not beside the packages of the others
PARALLEL = [("pettingzoo.butterfly.knights_archers_zombies_v10:parallel_env", {"max_cycles": 60}),
            ("pettingzoo.butterfly.cooperative_pong_v5:parallel_env", {"max_cycles": 60}),
            ("pettingzoo.butterfly.pistonball_v6:parallel_env", {"max_cycles": 60, "n_pistons": 5}),
            ("mpe2.simple_spread_v3:parallel_env", {}), ("mpe2.simple_tag_v3:parallel_env", {"continuous_actions": True}),
            ("worlds_for_oracle:supersuit", {"module": "pettingzoo.butterfly.cooperative_pong_v5", "max_cycles": 60})]
AEC = [("pettingzoo.classic.tictactoe_v3:env", {}), ("pettingzoo.classic.connect_four_v3:env", {}),
       ("pettingzoo.classic.rps_v2:env", {}), ("pettingzoo.classic.texas_holdem_v4:env", {}),
       ("pettingzoo.classic.leduc_holdem_v4:env", {})]
VECTOR = [("worlds_for_oracle:synced", {"name": name, "mode": mode})
          for name in ("CartPole-v1", "Taxi", "Blackjack-v1") for mode in ("NEXT_STEP", "SAME_STEP", "DISABLED")]
FUNCTIONS = '''
import functools
import gymnasium


def minigrid(name):
    import minigrid
    from minigrid.wrappers import ImgObsWrapper
    return ImgObsWrapper(gymnasium.make(name))


def nested():
    """CartPole, shown as leaves of several types within each other."""
    import numpy as np
    spaces = gymnasium.spaces
    space = spaces.Dict({"side": spaces.Tuple((spaces.Discrete(3, start=-1), spaces.MultiDiscrete([2, 5]))),
                         "cart": spaces.Dict({"place": spaces.Box(-9, 9, (2,), np.float64), "far": spaces.MultiBinary(3)}),
                         "cells": spaces.Box(0, 200, (3, 1), np.uint8)})

    def show(x):
        return {"side": (np.sign(x[0]).astype(int), np.array([x[1] > 0, abs(x[3]) // 1 % 5], np.int64)),
                "cart": {"place": x[:2].astype(np.float64), "far": (np.abs(x[1:]) > 0.1).astype(np.int8)},
                "cells": (np.abs(x[1:, None]) * 50).clip(0, 200).astype(np.uint8)}

    return gymnasium.wrappers.TransformObservation(gymnasium.make("CartPole-v1"), show, space)


def synced(name, mode):
    vector = gymnasium.vector
    return vector.SyncVectorEnv([lambda: gymnasium.make(name)] * 4, autoreset_mode=vector.AutoresetMode[mode])


def legacy(name):
    import gym  # noqa: F401
    import shimmy  # noqa: F401, which registers it
    return gymnasium.make("GymV26Environment-v0", env_id=name, disable_env_checker=True)


def supersuit(module, **options):
    """Small grey pictures, four in a stack."""
    import importlib
    import supersuit
    env = importlib.import_module(module).parallel_env(**options)
    return supersuit.frame_stack_v1(supersuit.resize_v1(supersuit.color_reduction_v0(env, "full"), 42, 42), 4)


def jumanji(name):
    """Where no action is legal, as for a snake that is trapped, all are: each ends the episode."""
    import jumanji
    from jumanji.wrappers import JumanjiToGymWrapper
    env = JumanjiToGymWrapper(jumanji.make(name))

    def open_mask(obs):
        mask = obs["action_mask"]
        return {**obs, "action_mask": mask if mask.any() else ~mask}

    return gymnasium.wrappers.TransformObservation(env, open_mask, env.observation_space)


@functools.lru_cache(maxsize=None)
def compiled(name):
    """Once a process, not once a world."""
    import jax
    from craftax.craftax_env import make_craftax_env_from_name
    env = make_craftax_env_from_name(name, auto_reset=False)
    return env, jax.jit(env.reset), jax.jit(env.step)


class Craftax(gymnasium.Env):
    """Functions of JAX on keys and states as an environment."""

    def __init__(self, name):
        import jax
        import numpy as np
        self.jax, self.np = jax, np
        env, self.made, self.move = compiled(name)
        shape = env.observation_space(env.default_params).shape
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, shape, np.float32)
        self.action_space = gymnasium.spaces.Discrete(env.action_space(env.default_params).n)

    def reset(self, *, seed=None, options=None):
        self.key = self.jax.random.PRNGKey(seed)
        obs, self.state = self.made(self.key)
        return self.np.asarray(obs), {}

    def step(self, action):
        self.key, key = self.jax.random.split(self.key)
        obs, self.state, reward, over, _ = self.move(key, self.state, action)
        return self.np.asarray(obs), float(reward), bool(over), False, {}


craftax = Craftax


def ale(name, **options):
    import ale_py
    gymnasium.register_envs(ale_py)
    return gymnasium.make(name, **options)


def grey(obs):
    """Every second number of a picture, without colours, as a convolution takes it: (1, height, width)."""
    import numpy as np
    return obs[None, ::2, ::2].mean(-1).astype(np.uint8)


def grey_space(space):
    import numpy as np
    return gymnasium.spaces.Box(0, 255, grey(space.low).shape, np.uint8)


def small(name, **options):
    env = ale(name, **options) if name.startswith("ALE/") else gymnasium.make(name, **options)
    return gymnasium.wrappers.TransformObservation(env, grey, grey_space(env.observation_space))


def small_parallel(module, **options):
    import importlib
    import supersuit
    env = importlib.import_module(module).parallel_env(**options)
    return supersuit.observation_lambda_v0(env, lambda obs, space: grey(obs), grey_space)
'''


class Missing(Exception):
    """A package is not there."""


def newest(world, options):
    """A world of PettingZoo in the version that is installed, each of which has a module of its own."""
    if "module" in options:
        return world, {**options, "module": newest(options["module"], {})[0]}
    module, colon, name = world.partition(":")
    package, _, last = module.rpartition(".")
    stem = re.sub(r"_v\d+$", "_v", last)
    if package.startswith("pettingzoo.") and importlib.util.find_spec("pettingzoo"):
        there = [found.name for found in pkgutil.iter_modules(importlib.import_module(package).__path__)]
        module = package + "." + max((one for one in there if re.fullmatch(stem + r"\d+", one)), default=last)
    return module + colon + name, options


def make(world, options):
    module, _, name = world.partition(":")
    try:
        if module == "gymnasium":
            return gymnasium.make(name, **options)
        return getattr(importlib.import_module(module), name)(**options)
    except (ImportError, gymnasium.error.DependencyNotInstalled, gymnasium.error.UnregisteredEnv) as why:
        raise Missing(str(why)) from None


def enter(folder):
    """Makes `folder` the working directory, and one from which modules come."""
    with open(f"{folder}/worlds_for_oracle.py", "w", encoding="utf-8") as file:
        file.write(FUNCTIONS)
    sys.path.insert(0, folder)
    os.chdir(folder)  # MuJoCo writes a log where it is
    os.environ["PYTHONPATH"] = folder


def leave(folder, before):
    os.chdir(before)
    sys.path.remove(folder)
    sys.modules.pop("worlds_for_oracle", None)


class Rows:
    """What the worker's worlds showed: next(a, w), in the order of the dump."""

    def __init__(self, dump, folder, world, options, worlds, steps):
        path = f"{folder}/world.json"
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"world": {"python": world, "interpreter": sys.executable, "options": options}}, file)
        done = subprocess.run([dump, path, str(worlds), str(steps), "7"], capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode() + done.stdout[:500].decode(errors="replace")
        head, _, self.data = done.stdout.partition(b"\n")
        self.head, self.at = json.loads(head), 0
        self.seeds = np.array(self.head["seeds"]).reshape(worlds, EPISODES)

    def take(self, dtype, count):
        array = np.frombuffer(self.data, dtype, count, self.at)
        self.at += array.nbytes
        return array

    def next(self, a):
        agent = self.head["agents"][a]
        row = {"flags": int(self.take(np.uint8, 1)[0]), "reward": self.take(np.float32, 1)[0],
               "obs": self.take(np.uint8, agent["bytes"]), "mask": self.take(np.uint8, agent["mask"])}
        row["actions"] = self.take(np.int32, agent["choices"]), self.take(np.float32, agent["reals"])
        return row


def action_of(space, row):
    """What the environment takes."""
    choices, reals = row
    if isinstance(space, gymnasium.spaces.Box):
        return np.clip(reals.reshape(space.shape).astype(space.dtype), space.low, space.high)
    if isinstance(space, gymnasium.spaces.MultiDiscrete):
        return choices.astype(space.dtype)
    return int(choices[0]) + int(space.start)


def stripped(space, obs):
    """Without the mask."""
    if isinstance(space, gymnasium.spaces.Dict) and "action_mask" in space.spaces:
        rest = {key: value for key, value in space.spaces.items() if key != "action_mask"}
        if len(rest) == 1:
            key = next(iter(rest))
            return rest[key], obs[key]
        return gymnasium.spaces.Dict(rest), {key: obs[key] for key in rest}
    return space, obs


def whole(array, most):
    """Whole numbers below `most` in the smallest type."""
    return np.asarray(array).astype(np.uint8 if most <= 256 else np.int16 if most <= 32768 else np.int32)


def leaves(space, obs):
    """Arrays of a Dict's or Tuple's leaves, as actor/env.h has them."""
    if isinstance(space, gymnasium.spaces.Dict):
        return [leaf for key, member in space.spaces.items() for leaf in leaves(member, obs[key])]
    if isinstance(space, gymnasium.spaces.Tuple):
        return [leaf for member, part in zip(space.spaces, obs) for leaf in leaves(member, part)]
    if isinstance(space, gymnasium.spaces.Discrete):
        return [whole(obs - space.start, space.n)]
    if isinstance(space, gymnasium.spaces.MultiDiscrete):
        return [whole(obs - space.start, space.nvec.max())]
    if isinstance(space, gymnasium.spaces.MultiBinary):
        return [whole(obs, 2)]
    array = np.asarray(obs)
    if space.dtype.name in ("uint8", "int8", "int16", "int32", "float32"):
        return [array.astype(space.dtype)]
    fits = space.dtype.kind in "iu" and space.low.min() >= -2**31 and space.high.max() < 2**31
    return [array.astype(np.uint8 if space.dtype == bool else np.int32 if fits else np.float32)]


def seen(space, obs, size):
    """The bytes that an observation becomes; leaves stand one after another, each at a multiple of 4 bytes."""
    space, obs = stripped(space, obs)
    if isinstance(space, (gymnasium.spaces.Dict, gymnasium.spaces.Tuple)):
        parts = leaves(space, obs)
        if len(parts) > 1:
            return b"".join(part.tobytes() + bytes(-part.nbytes % 4) for part in parts)
    if isinstance(space, gymnasium.spaces.Discrete):
        return np.array(obs - space.start, {1: np.uint8, 2: np.int16, 4: np.int32}[size]).tobytes()
    if isinstance(space, gymnasium.spaces.Box):
        array = np.asarray(obs)
        if array.dtype == np.float64 or space.dtype == np.float64:
            array = array.astype(np.float32)
        elif array.dtype == bool or space.dtype == bool:
            array = array.astype(np.uint8)
        elif array.dtype == np.int64:
            array = array.astype({1: np.int8, 4: np.int32}[size // array.size])
        return array.tobytes()
    return gymnasium.spaces.flatten(space, obs).astype(np.float32).tobytes()


def compare(row, space, obs, reward, flags, where, mask=None):
    assert row["flags"] == flags, f"{where}: flags {row['flags']}, not {flags}"
    if flags & DEAD:
        return
    assert row["reward"] == np.float32(reward), f"{where}: reward {row['reward']}, not {reward}"
    assert row["obs"].tobytes() == seen(space, obs, row["obs"].nbytes), f"{where}: another observation"
    if mask is not None and row["mask"].size and not flags & LAST:
        assert np.array_equal(row["mask"] != 0, np.asarray(mask) != 0), f"{where}: another mask"


def mask_of(obs, info):
    return obs["action_mask"] if isinstance(obs, dict) and "action_mask" in obs else info.get("action_mask")


def play_single(rows, make_one, worlds, steps):
    play_apart(rows, [make_one() for _ in range(worlds)], steps)


def play_vector(rows, make_one, worlds, steps):
    """Worlds do what the environments inside do by themselves."""
    first = make_one()
    groups = [first] + [make_one() for _ in range(worlds // first.num_envs - 1)]
    play_apart(rows, [env for group in groups for env in group.envs], steps, first.metadata["autoreset_mode"].name)


def play_apart(rows, envs, steps, mode="DISABLED"):
    """mode: how episodes but the first begin. Only DISABLED has a seed for each; in SAME_STEP an episode has made a step with
    the first legal action before anybody sees it."""
    worlds = len(envs)
    over, episode, actions = [True] * worlds, [0] * worlds, [None] * worlds
    for t in range(steps):
        for w, env in enumerate(envs):
            row = rows.next(0)
            if over[w]:
                begun = t > 0 and mode != "DISABLED"
                obs, info = env.reset(seed=None if begun else int(rows.seeds[w][episode[w]]))
                if begun and mode == "SAME_STEP":
                    obs, _, terminated, truncated, info = env.step(int(np.argmax(info.get("action_mask", [1]))))
                    if terminated or truncated:
                        obs, info = env.reset()
                episode[w] += 1
                reward, flags, over[w] = 0, FIRST, False
            else:
                obs, reward, terminated, truncated, info = env.step(action_of(env.action_space, actions[w]))
                flags = TERMINATED if terminated else TRUNCATED if truncated else 0
                over[w] = flags != 0
            compare(row, env.observation_space, obs, reward, flags, f"step {t}, world {w}", mask_of(obs, info))
            actions[w] = row["actions"]
            if episode[w] == EPISODES and over[w]:
                return


def play_parallel(rows, make_one, worlds, steps):
    envs = [make_one() for _ in range(worlds)]
    keys, episode = envs[0].possible_agents, [0] * worlds
    playing, actions = [set() for _ in range(worlds)], [{} for _ in range(worlds)]
    for t in range(steps):
        shown = [[rows.next(a) for _ in range(worlds)] for a in range(len(keys))]
        for w, env in enumerate(envs):
            if playing[w]:
                obs, rewards, ends, cuts, infos = env.step({key: actions[w][key] for key in env.agents})
            else:
                obs, infos = env.reset(seed=int(rows.seeds[w][episode[w]]))
                episode[w] += 1
            for a, key in enumerate(keys):
                row, where = shown[a][w], f"step {t}, world {w}, {key}"
                if key not in obs or (key not in playing[w] and key not in env.agents):
                    assert row["flags"] == DEAD, where
                    continue
                first = key not in playing[w]
                flags = FIRST if first else TERMINATED if ends[key] else TRUNCATED if cuts[key] else 0
                compare(row, env.observation_space(key), obs[key], 0 if first else rewards[key], flags, where,
                        mask_of(obs[key], infos.get(key, {})))
                actions[w][key] = action_of(env.action_space(key), row["actions"])
                (playing[w].discard if flags & LAST else playing[w].add)(key)
        if max(episode) == EPISODES:
            return


def play_aec(rows, make_one, worlds, steps):
    """Only rows of agents whose turn it is, and their last ones, are the environment's; the others say so by flags or look
    on."""
    envs = [make_one() for _ in range(worlds)]
    keys, episode, turns = envs[0].possible_agents, [0] * worlds, 0
    playing, lasts = [set() for _ in range(worlds)], [{} for _ in range(worlds)]
    for t in range(steps):
        for a, key in enumerate(keys):
            for w, env in enumerate(envs):
                row, where = rows.next(a), f"step {t}, world {w}, {key}"
                if a == 0 and not playing[w] and not getattr(env, "agents", None):
                    env.reset(seed=int(rows.seeds[w][episode[w]]))
                    episode[w] += 1
                    lasts[w] = {}
                if key in lasts[w] and key in playing[w]:
                    obs, reward, flags = lasts[w].pop(key)
                    compare(row, env.observation_space(key), obs, reward, flags, where)
                    playing[w].discard(key)
                elif env.agents and env.agent_selection == key:
                    obs, reward, _, _, info = env.last()
                    first = key not in playing[w]
                    compare(row, env.observation_space(key), obs, 0 if first else reward, FIRST if first else 0, where,
                            mask_of(obs, info))
                    playing[w].add(key)
                    env.step(action_of(env.action_space(key), row["actions"]))
                    turns += 1
                    while env.agents and (env.terminations[env.agent_selection] or env.truncations[env.agent_selection]):
                        obs, reward, terminated, _, _ = env.last()
                        lasts[w][env.agent_selection] = (obs, reward, TERMINATED if terminated else TRUNCATED)
                        env.step(None)
                else:
                    assert row["flags"] == (0 if key in playing[w] else DEAD), where
        if max(episode) == EPISODES:
            break
    assert turns > worlds, "nobody had a turn"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--dump")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("wanted", nargs="*")
    args = parser.parse_args()
    dump, wanted, here = os.path.abspath(args.dump), args.wanted, os.getcwd()
    tests = [(play, world, options) for play, cases in ((play_single, SINGLE), (play_vector, VECTOR), (play_parallel, PARALLEL), (play_aec, AEC))
             for world, options in cases]
    tests = [test for test in tests if not wanted or any(word in test[1] + str(test[2]) for word in wanted)]
    print(f"1..{len(tests)}")
    failed = 0
    for play, world, options in tests:
        world, options = newest(world, options)
        name = f"{world} {json.dumps(options) if options else ''}".strip()
        with tempfile.TemporaryDirectory() as folder:
            enter(folder)
            drawn = "butterfly" in world or "CarRacing" in world
            worlds, all_steps = 8, 400 if "supersuit" in world else DRAWN_STEPS if drawn else STEPS
            try:
                make_one = lambda: make(world, options)
                make_one()
                rows = Rows(dump, folder, world, options, worlds, all_steps // worlds)
                play(rows, make_one, worlds, all_steps // worlds)
                print("ok", name, flush=True)
            except Missing as why:
                lacks = args.all and not world.startswith(JAX)
                failed += lacks
                print(f"not ok {name}\n# {why}" if lacks else f"ok {name} # SKIP {why}", flush=True)
            except AssertionError as why:
                failed += 1
                print("not ok", name)
                print("#", str(why).replace("\n", "\n# "), flush=True)
            leave(folder, here)
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
