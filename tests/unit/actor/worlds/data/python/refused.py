"""Functions that return what no world can be. Each is a case of test_python_refusals.c."""
import os
import time

import numpy as np
from games import (Box, Corridor, Corridors, Dict, Discrete, Meeting, MultiBinary, Nim, Sequence, Text, Tuple)

number = 3


def nothing():
    return None


def a_class():
    return Corridor


def raises():
    raise RuntimeError("no luck\ntoday")


def wants(level):
    return Corridor(level)


def leaves():
    os._exit(4)


def ends():
    raise SystemExit("enough")


def crashes():
    os.abort()


def hangs():
    time.sleep(1000)


def display():
    raise RuntimeError("No available video device")


class Shown(Corridor):
    render_mode = "human"


shown = Shown


def spaces(observation=None, action=None):
    world = Corridor()
    if observation is not None:
        world.observation_space = observation
    if action is not None:
        world.action_space = action
    return world


def no_spaces():
    world = Corridor()
    world.observation_space = None
    return world


def text():
    return spaces(Text())


def sequence():
    return spaces(Dict(words=Sequence(), place=Discrete(3)))


def strange():
    return spaces(object())


def empty():
    return spaces(Box(0, 1, (0,)))


def whole_box_action():
    return spaces(action=Box(-1, 1, (2,), np.int8))


def endless_box_action():
    return spaces(action=Dict(push=Box(-1, np.inf, (2,))))


def empty_box_action():
    return spaces(action=Box(-1, 1, (0,)))


def text_action():
    return spaces(action=Tuple(Discrete(2), Text()))


def many_choices():
    return spaces(action=MultiBinary(9))


class Returns(Corridor):
    """reset() and step() with parts replaced."""

    def __init__(self, **parts):
        super().__init__()
        self.parts = parts

    def reset(self, seed=None, options=None):
        obs, info = super().reset(seed)
        if "reset" in self.parts:
            return self.parts["reset"]
        return self.parts.get("first", obs), self.parts.get("first_info", info)

    def step(self, action):
        result = list(super().step(action))
        for i, name in enumerate(("obs", "reward", "terminated", "truncated", "info")):
            result[i] = self.parts.get(name, result[i])
        return self.parts.get("step", tuple(result))


def old_reset():
    return Returns(reset=np.zeros(3, np.float32))


def old_step():
    return Returns(step=(np.zeros(3, np.float32), 0.0, False, {}))


def long_step():
    return Returns(step=(np.zeros(3, np.float32), 0.0, False, False, {}, 0))


def no_tuple():
    return Returns(step=None)


def wrong_shape():
    return Returns(obs=np.zeros(4, np.float32))


def wrong_first_shape():
    return Returns(first=np.zeros((3, 1), np.float32))


def words():
    return Returns(obs=np.array(["a", "b", "c"]))


def objects():
    return Returns(obs=[{}, [], ()])


def fractions():
    world = Returns(first=np.array([0.5, 1, 2]))
    world.observation_space = Box(0, 9, (3,), np.uint8)
    return world


def nan():
    return Returns(obs=np.array([0, np.nan, 0], np.float32))


def outside():
    return Returns(obs=np.array([0, -1, 0], np.float32))


def outside_discrete():
    world = Returns(first=7)
    world.observation_space = Discrete(5)
    return world


def lacking():
    world = Returns(first={"a": 1})
    world.observation_space = Dict(a=Discrete(5), b=Discrete(5))
    return world


def no_reward():
    return Returns(reward=None)


def nan_reward():
    return Returns(reward=float("nan"))


def no_flag():
    return Returns(terminated="no")


def no_info():
    return Returns(info=None)


def no_first_info():
    return Returns(first_info=[])


def no_action():
    return Returns(first_info={"action_mask": np.zeros(2, np.int8)})


def long_mask():
    return Returns(first_info={"action_mask": np.ones(3, np.int8)})


LATE = {"action_mask": np.ones(2, np.int8)}


def late_mask():
    return Returns(info=LATE)


def late_mask_of_one():
    return Met(infos=lambda infos: {**infos, "b": {"action_mask": np.ones(3, np.int8)}})


class LateMasks(Corridors):
    def step(self, actions):
        result = super().step(actions)
        return result[:4] + ({**result[4], "action_mask": np.ones((2, 2), np.int8)},)


def late_masks():
    return LateMasks("NEXT_STEP")


class LateMaskInTurn(Nim):
    """x has none on its first turn, and one on its second."""

    def observation_space(self, agent):
        return super().observation_space(agent).spaces["observation"]

    def observe(self, agent):
        return super().observe(agent)["observation"]

    def step(self, action):
        if action:  # x would not have a second turn
            action = 0
        super().step(action)
        self.infos["x"] = LATE


late_mask_in_turn = LateMaskInTurn


def undeclared():
    return Corridors("NONE")


def no_agents():
    game = Nim()
    game.possible_agents = []
    return game


def many_agents():
    game = Nim()
    game.possible_agents = [f"agent {i}" for i in range(65)]
    return game


class Met(Meeting):
    """reset() and step() with parts replaced."""

    def __init__(self, first=None, **parts):
        self.first, self.parts = first, parts

    def reset(self, seed=None, options=None):
        obs, infos = super().reset(seed)
        return obs if self.first is None else self.first(obs), infos

    def step(self, actions):
        result = list(super().step(actions))
        for i, name in enumerate(("obs", "rewards", "terminated", "truncated", "infos")):
            if name in self.parts:
                result[i] = self.parts[name](result[i])
        return tuple(result[:self.parts.get("values", 5)])


def one_for_all():
    return Met(first=lambda obs: list(obs.values()))


def rewards_in_a_row():
    return Met(rewards=lambda rewards: list(rewards.values()))


def dones():
    return Met(values=4)


def unseen():
    return Met(obs=lambda obs: {"a": obs["a"]})


def strangers():
    return Met(obs=lambda obs: {**obs, "d": obs["a"]})


def wrong_shape_of_one():
    return Met(obs=lambda obs: {**obs, "c c": np.zeros(3, np.float32)})


def outside_of_one():
    return Met(first=lambda obs: {**obs, "b": np.array([0, 300], np.float32)})


class OldNim(Nim):
    def last(self):
        obs, reward, terminated, _, info = super().last()
        return obs, reward, terminated, info


old_last = OldNim


class UnknownTurn(Nim):
    def reset(self, seed=None, options=None):
        super().reset(seed)
        self.agent_selection = "z"


unknown_turn = UnknownTurn


class NoMove(Nim):
    def observe(self, agent):
        return {**super().observe(agent), "action_mask": np.zeros(2, np.int8)}


no_move = NoMove


class FewCorridors(Corridors):
    """A vector environment that has parts of its results for one environment only."""

    def __init__(self, *parts):
        super().__init__("NEXT_STEP")
        self.parts = parts

    def reset(self, seed=None, options=None):
        obs, infos = super().reset(seed, options)
        return obs[:1] if "first" in self.parts else obs, infos

    def step(self, actions):
        result = list(super().step(actions))
        for i, name in enumerate(("obs", "rewards", "terminated", "truncated")):
            if name in self.parts:
                result[i] = result[i][:1]
        return tuple(result)


def few_first():
    return FewCorridors("first")


def few_seen():
    return FewCorridors("obs")


def few_rewards():
    return FewCorridors("rewards")


class Old(Corridor):
    pass


Old.__module__ = "gym.envs.classic"
old = Old
