"""Worlds for the tests of Python workers, with spaces of their own: NumPy is all that they need."""
import ctypes
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import namedtuple
from enum import Enum

import numpy as np


class Box:
    def __init__(self, low, high, shape, dtype=np.float32):
        self.shape, self.dtype = shape, np.dtype(dtype)
        self.low, self.high = np.full(shape, low, dtype), np.full(shape, high, dtype)


class Discrete:
    def __init__(self, n, start=0):
        self.n, self.start, self.shape, self.dtype = n, start, (), np.dtype(np.int64)


class MultiDiscrete:
    def __init__(self, nvec):
        self.nvec, self.dtype = np.array(nvec), np.dtype(np.int64)
        self.shape = self.nvec.shape


class MultiBinary:
    def __init__(self, n):
        self.n, self.shape, self.dtype = n, (n,), np.dtype(np.int8)


class Dict:
    def __init__(self, **spaces):
        self.spaces = spaces


class Tuple:
    def __init__(self, *spaces):
        self.spaces = spaces


class Text:
    shape, dtype = (), np.dtype(str)


class Sequence:
    shape, dtype = None, None


class Choosing(Discrete):
    """Draws for whoever asks, as Gymnasium's spaces do."""

    def __init__(self, n):
        super().__init__(n)
        self.rng = random.Random()

    def seed(self, seed):
        self.rng.seed(seed)

    def sample(self):
        return self.rng.randrange(self.n)


class Corridor:
    """Action 1 goes on, 0 goes back. Shows (place, steps, episode's seed); the end pays 1, a step costs 0.5."""
    observation_space = Box(0, 2**31, (3,))
    action_space = Discrete(2)

    def __init__(self, length=4, most=9):
        self.length, self.most = length, most
        self.seen = np.zeros(3, np.float32)  # the same array every time

    def show(self):
        self.seen[:] = self.place, self.time, self.seed % 1000
        return self.seen

    def reset(self, seed=None, options=None):
        self.seed, self.place, self.time = seed, 0, 0
        return self.show(), {}

    def step(self, action):
        self.time += 1
        self.place = max(0, self.place + (1 if action else -1))
        there = self.place == self.length
        return self.show(), 1.0 if there else -0.5, there, self.time == self.most, {}


corridor = Corridor


class Drawing(Corridor):
    """Draws from all generators that a process shares."""

    def show(self):
        self.seen[:] = random.randrange(1000), np.random.randint(1000), self.seed % 1000
        return self.seen.copy()


drawing = Drawing


class DrawingLate(Drawing):
    """Draws in every second episode, from its tenth step on."""
    metadata = {"figures": []}

    def __init__(self):
        super().__init__(100, 20)

    def show(self):
        return super().show() if self.time >= 10 and self.seed % 2 else Corridor.show(self)


drawing_late = DrawingLate


class Built(Corridor):
    """Draws when it is made, as environments with a generated level do."""

    def __init__(self):
        super().__init__(random.randrange(2, 1000), int(np.random.randint(2, 9)))

    def show(self):
        self.seen[:] = self.length, self.most, self.seed % 1000
        return self.seen


built = Built


class Sampling(Corridor):
    """Shows what its action space draws."""

    def __init__(self):
        super().__init__()
        self.action_space = Choosing(2)

    def show(self):
        self.seen[:] = [self.action_space.sample() for _ in range(3)]
        return self.seen


sampling = Sampling


class Masked(Corridor):
    """Going back at the start is illegal, by the info."""

    def __init__(self):
        super().__init__()
        self.first = True

    def reset(self, seed=None, options=None):
        return super().reset(seed)[0], {"action_mask": np.array([0, 1], np.int8)}

    def step(self, action):
        assert action or self.place > 0, "illegal"
        obs, reward, terminated, truncated, _ = super().step(action)
        return obs, reward, terminated, truncated, {"action_mask": np.array([self.place > 0, True])}


masked = Masked


class Varied(Corridor):
    """Each result has another form, and all say the same."""
    observation_space, metadata = Box(0, 2**31, (2, 3)), {"figures": ["time"]}

    def show(self):
        rows = np.array([super().show(), [self.time, self.place, 0.5]], np.float32)
        forms = (lambda: rows, lambda: np.asfortranarray(rows), lambda: rows.astype(np.float64), lambda: rows.astype(">f4"),
                 lambda: rows[::-1][::-1], lambda: rows.copy())
        return forms[(self.time + self.seed) % len(forms)]()

    def step(self, action):
        obs, reward, terminated, truncated, info = super().step(action)
        form = (self.time * 7 + self.seed) % 5
        reward = (reward, np.float32(reward), np.float64(reward), np.array(reward), np.array([reward])[0])[form]
        result = obs, reward, np.bool_(terminated), truncated, info if form else {"time": self.time, "word": "none"}
        return result if form != 3 else Result(*result)


class Result(namedtuple("Result", "obs reward terminated truncated info")):
    """A tuple, of a class of its own."""


varied = Varied


class Switching(Corridor):
    """Each episode has a step() of its own, as its seed says."""

    def reset(self, seed=None, options=None):
        self.step = (self.slow, self.fast)[seed % 2]
        return super().reset(seed, options)

    def slow(self, action):
        return Corridor.step(self, action)

    def fast(self, action):
        obs, _, terminated, truncated, info = Corridor.step(self, action)
        return obs, 2.0, terminated, truncated, info


switching = Switching


class Called(Corridor):
    """Shows whether the loop in C called it."""

    def show(self):
        frame = sys._getframe(2)
        self.seen[0] = os.path.basename(frame.f_code.co_filename) == "stepper.py"
        return self.seen


called = Called


class Several:
    """Leaves of all kinds, side by side, with a mask among them; two choices."""
    observation_space = Dict(cells=Box(0, 9, (2, 2), np.uint8), hand=Discrete(3, start=5),
                             more=Tuple(MultiBinary(2), MultiDiscrete([2, 3])), action_mask=Box(0, 1, (5,), np.int8))
    action_space = Tuple(Discrete(2, start=7), MultiDiscrete([3]))

    def show(self):
        return {"cells": np.array([[1, 2], [3, self.time]], np.uint8), "hand": 5 + self.time % 3,
                "more": (np.array([1, 0], np.int8), np.array([1, 2])), "action_mask": np.array([1, 1, 0, 1, 1], np.int8)}

    def reset(self, seed=None, options=None):
        self.time = 0
        return self.show(), {}

    def step(self, action):
        first, (second,) = action
        assert first in (7, 8) and second in (1, 2)
        self.time += 1
        return self.show(), float(10 * first + second), False, self.time == 4, {}


several = Several


class Levers:
    """Shows the real numbers that it was given last; `beside` them there is a choice, and a box of another type."""
    observation_space = Box(-100, 100, (3,))

    def __init__(self, beside=False):
        self.beside = beside
        self.action_space = Box(-2, 2, (2,))
        if beside:
            self.action_space = Dict(pull=Box(0.1, 0.3, (1, 1), np.float64), which=Discrete(3), push=Box(-2, 2, (2,)))

    def reset(self, seed=None, options=None):
        self.time = 0
        return np.zeros(3, np.float32), {}

    def step(self, action):
        push, pull, which = (action["push"], action["pull"], action["which"]) if self.beside else (action, np.zeros((1, 1)), 0)
        assert push.shape == (2,) and push.dtype == np.float32 and pull.shape == (1, 1) and pull.dtype == np.float64
        assert not self.beside or 0.1 <= pull[0, 0] <= 0.3
        self.time += 1
        return np.array([*push, pull[0, 0]], np.float32), float(which), False, self.time == 4, {}


levers = Levers


def both_levers():
    return Levers(True)


class Numbered(Corridor):
    """One whole number."""
    observation_space = Discrete(300)

    def show(self):
        return self.place


numbered = Numbered


class Counting(Corridor):
    """Its last info has numbers of several kinds, and what is none."""

    def step(self, action):
        obs, reward, terminated, truncated, _ = super().step(action)
        return obs, reward, terminated, truncated, {
            "way made": self.place, "lost": np.float32(0.5) if truncated else True, "words": "none", "deep": {"a": 1},
            "row": np.zeros(3), "endless": float("inf"), **({"rare": 1} if self.seed % 3 == 0 else {})}


counting = Counting


def counting_late():
    """Its first episode is longer than a worker's patience."""
    return Counting(9999, 3100)


class Listing(Counting):
    """Says which figures it has."""
    metadata = {"figures": ["rare", "lost"]}


listing = Listing


class Drawn(Corridor):
    """Shows itself, as text or as a picture that is white where it is."""

    def __init__(self, render_mode=None, modes=("ansi", "rgb_array"), strict=True):
        super().__init__()
        if strict and render_mode is not None and render_mode not in modes:
            raise ValueError(f"no {render_mode} here")
        self.metadata = {"render_modes": modes}
        self.render_mode = render_mode

    def render(self):
        if self.render_mode == "ansi":
            return "".join("\x1b[41mo\x1b[0m" if x == self.place else "." for x in range(self.length))
        picture = np.zeros((8, 16, 3), np.uint8)
        picture[:, 4 * self.place:4 * self.place + 4] = 255
        return picture


drawn = Drawn


class Alone(Drawn):
    """There is one of it in a process."""
    there = False

    def __init__(self, **options):
        super().__init__(modes=("rgb_array",), strict=False, **options)
        assert not Alone.there, "there is one already"
        Alone.there = True

    def close(self):
        Alone.there = False


def alone(render_mode=None):
    return Alone(render_mode=render_mode)


class Hoarding(Corridor):
    """Takes more memory with every episode, and shows its process."""

    def reset(self, seed=None, options=None):
        self.hoard = getattr(self, "hoard", []) + [bytearray(32 << 20)]
        return super().reset(seed)

    def show(self):
        return np.array([self.place, self.time, os.getpid()], np.float32)


hoarding = Hoarding


class Starting(Corridor):
    """Starts a program that means to outlive it; shows its process."""

    def reset(self, seed=None, options=None):
        self.program = subprocess.Popen(["/bin/sh", "-c", "sleep 1000 & echo $!; wait"], start_new_session=True, text=True,
                                        stdout=subprocess.PIPE)
        self.pid = int(self.program.stdout.readline())
        return super().reset(seed)

    def show(self):
        return np.array([self.place, self.pid, self.program.pid], np.float32)


starting = Starting


class Faulty(Corridor):
    """Does one thing that it should not, in step `at` of every episode of which the seed fits. Steps take so many seconds."""

    def __init__(self, act, at=3, seeds=1, takes=0):
        super().__init__(length=100, most=100)
        self.act, self.at, self.seeds, self.takes = act, at, seeds, takes
        if act in ("broken", "beyond"):
            self.observation_space = Box(0, 200, (3,), np.uint8)

    def show(self):
        """Whole numbers come in a type that the space does not have."""
        seen = super().show()
        return seen if self.observation_space.dtype == np.float32 else (seen % 200).astype(int)

    def reset(self, seed=None, options=None):
        return super().reset(seed)[0], self.mask()

    def mask(self):
        return {"action_mask": np.ones(2, np.int8)} if self.act == "shut" else {}

    def step(self, action):
        result = super().step(action)[:4] + (self.mask(),)
        if self.takes and not self.trying():
            time.sleep(self.takes)
        if self.time == self.at and self.seed % self.seeds == 0 and not self.trying():
            changed = getattr(self, self.act)(result)
            return result if changed is None else changed
        return result

    @staticmethod
    def trying():
        """Is this the worker's own trial, before it knows its worlds?"""
        frame = sys._getframe()
        while frame:
            if frame.f_code.co_name == "_try":
                return True
            frame = frame.f_back
        return False

    def raises(self, _):
        raise ValueError("the treasure\nis gone")

    def exits(self, _):
        sys.exit(3)

    def leaves(self, _):
        os._exit(9)

    def crashes(self, _):
        ctypes.string_at(0)

    def kills(self, _):
        os.kill(os.getpid(), signal.SIGKILL)

    def hangs(self, _):
        while True:
            time.sleep(1)

    def ignores(self, _):
        for number in range(1, signal.NSIG):
            try:
                signal.signal(number, signal.SIG_IGN)
            except (OSError, ValueError):
                pass
        while True:
            pass

    def vague(self, result):
        return (np.array([1, np.nan, 2], np.float32),) + result[1:]

    def worthless(self, result):
        return result[0], float("inf"), False, False, {}

    def wide(self, result):
        return (np.zeros(4, np.float32),) + result[1:]

    def broken(self, result):
        return (np.array([1, 2.7, 0]),) + result[1:]

    def beyond(self, result):
        return (np.array([1, 300, 0]),) + result[1:]

    def shut(self, result):
        return result[:4] + ({"action_mask": np.zeros(2, np.int8)},)

    def masked(self, result):
        return result[:4] + ({"action_mask": np.ones(2, np.int8)},)

    # What a world may do.

    def prints(self, _):
        print("a line of the world's", flush=True)
        sys.stdout.write("\033[2J" * 10)
        os.write(1, b"\0\1 raw")

    def threads(self, _):
        threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()

    def handles(self, _):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGRTMAX - 3):
            signal.signal(number, lambda *_: None)
        os.umask(0)
        os.chdir("/")


faulty = Faulty


class Stuck(Corridor):
    """Does not return from its second reset()."""

    def __init__(self):
        super().__init__(100, 2)
        self.resets = 0

    def reset(self, seed=None, options=None):
        self.resets += not Faulty.trying()
        while self.resets == 2:
            time.sleep(1)
        return super().reset(seed)


stuck = Stuck


def threads_of_libraries():
    """Shows how many threads BLAS and OpenMP may use."""
    world = Corridor()
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    world.show = lambda: np.array([os.environ[name] for name in names], np.float32)
    return world


class Waiting(Corridor):
    """Does not return from a step while the file has its seed, as it shows it."""

    def __init__(self, file):
        super().__init__()
        self.file = file

    def step(self, action):
        while self.held():
            time.sleep(0.01)
        return super().step(action)

    def held(self):
        try:
            with open(self.file, encoding="utf-8") as file:
                return int(file.read() or -1) == self.seed % 1000
        except FileNotFoundError:
            return False


waiting = Waiting


class Slow(Corridor):
    def step(self, action):
        time.sleep(0.005)
        return super().step(action)


slow = Slow


def rendered():
    """As MuJoCo's environments do."""
    import glfw  # noqa: F401
    return Corridor()


class Prying(Corridor):
    """Tries what a confined world cannot; shows in bits what it could."""

    def __init__(self, pid, folder):
        super().__init__()
        self.pid, self.folder = pid, folder

    def show(self):
        return np.array([self.place, self.time, self.could()], np.float32)

    def could(self):
        def writes():
            with open(os.path.join(self.folder, "written"), "w"):
                pass

        def reads():
            with open(os.path.join(self.folder, "secret")):
                pass

        def connects():
            socket.socket(socket.AF_INET, socket.SOCK_STREAM).close()

        def unix():
            socket.socket(socket.AF_UNIX, socket.SOCK_STREAM).close()

        def starts():
            subprocess.run(["/bin/true"], check=False)

        def forks():
            if os.fork() == 0:
                os._exit(0)

        def signals():
            os.kill(self.pid, 0)

        def temporary():
            with open(os.path.join(os.environ["TMPDIR"], "own"), "w") as file:
                file.write("x")
            os.remove(os.path.join(os.environ["TMPDIR"], "own"))

        bits = 0
        for bit, attempt in enumerate((writes, reads, connects, unix, starts, forks, signals, temporary)):
            try:
                attempt()
                bits |= 1 << bit
            except OSError:
                pass
        return bits


prying = Prying


class AutoresetMode(Enum):
    NEXT_STEP = "NextStep"
    SAME_STEP = "SameStep"
    DISABLED = "Disabled"


class Corridors:
    """The same corridor several times, as a vector environment, with any way to begin anew. `masked`: going back at the start
    is illegal, by the "info" or the "observation"."""
    single_observation_space, single_action_space = Corridor.observation_space, Corridor.action_space

    def __init__(self, mode, num_envs=2, final="final_obs", masked=None, kind=Corridor):
        self.num_envs, self.mode, self.final, self.masked = num_envs, mode, final, masked
        self.metadata = {} if mode == "NONE" else {"autoreset_mode": AutoresetMode[mode]}
        self.envs = [kind() for _ in range(num_envs)]
        self.over = np.zeros(num_envs, bool)
        if masked == "observation":
            self.single_observation_space = Dict(observation=Corridor.observation_space, action_mask=Box(0, 1, (2,), np.int8))

    def mask(self, env):
        return np.array([env.place > 0, True], np.int8)

    def seen(self, obs, infos):
        masks = np.array([self.mask(env) for env in self.envs])
        if self.masked == "observation":
            return {"observation": np.array(obs), "action_mask": masks}, infos
        return np.array(obs), {**infos, "action_mask": masks} if self.masked else infos

    def reset(self, seed=None, options=None):
        mask = options.pop("reset_mask") if options else np.ones(self.num_envs, bool)
        assert all(type(one) is int for one in seed)
        for i, env in enumerate(self.envs):
            if mask[i]:
                env.reset(seed[i])
        self.over[mask] = False
        return self.seen([env.show() for env in self.envs], {})

    def step(self, actions):
        results, infos, finals, times = [], {}, np.full(self.num_envs, None, object), np.zeros(self.num_envs, int)
        for i, env in enumerate(self.envs):
            if self.over[i] and self.mode == "NEXT_STEP":
                results.append((env.reset(env.seed + 1)[0].copy(), 0.0, False, False))
                self.over[i] = False
                continue
            assert not self.over[i], "stepped on after its end"
            assert actions[i] or env.place > 0 or not self.masked, "illegal"
            obs, reward, terminated, truncated, _ = env.step(actions[i])
            obs, ended, times[i] = obs.copy(), terminated or truncated, env.time
            if ended and self.mode == "SAME_STEP":
                finals[i] = {"observation": obs, "action_mask": self.mask(env)} if self.masked == "observation" else obs
                obs = env.reset(env.seed + 1)[0].copy()
            elif ended:
                self.over[i] = True
            results.append((obs, reward, terminated, truncated))
        if any(final is not None for final in finals):
            ended = np.array([final is not None for final in finals])
            infos = {self.final: finals, "_" + self.final: ended,
                     "final_info": {"steps": np.where(ended, times, 0), "_steps": ended}, "_final_info": ended}
        obs, rewards, terminated, truncated = zip(*results)
        obs, infos = self.seen(obs, infos)
        return obs, np.array(rewards), np.array(terminated), np.array(truncated), infos


corridors = Corridors


def samplings():
    """Their action space is that of the vector environment."""
    env = Corridors("NEXT_STEP", 1, kind=Sampling)
    env.single_action_space = env.envs[0].action_space
    return env


class Meeting:
    """Three agents at once. `b` leaves after two steps, `c` comes after one; all is over after four."""
    possible_agents = ["a", "b", "c c"]

    def observation_space(self, agent):
        return Box(0, 100, (2,))

    def action_space(self, agent):
        return Discrete(3)

    def show(self):
        return {agent: np.array([self.time, self.possible_agents.index(agent)], np.float32) for agent in self.agents}

    def reset(self, seed=None, options=None):
        self.agents, self.time = ["a", "b"], 0
        return self.show(), {agent: {} for agent in self.agents}

    def step(self, actions):
        assert set(actions) == set(self.agents)
        self.time += 1
        if self.time == 1:
            self.agents.append("c c")
        obs = self.show()
        ends = {agent: agent == "b" and self.time == 2 for agent in self.agents}
        cuts = {agent: self.time == 4 for agent in self.agents}
        rewards = {agent: float(actions.get(agent, 0)) for agent in self.agents}
        infos = {agent: {} for agent in self.agents}
        self.agents = [agent for agent in self.agents if not (ends[agent] or cuts[agent])]
        return obs, rewards, ends, cuts, infos


meeting = Meeting


class SamplingMeeting(Meeting):
    """Shows what action spaces draw."""

    def __init__(self):
        self.spaces = {agent: Choosing(3) for agent in self.possible_agents}

    def action_space(self, agent):
        return self.spaces[agent]

    def show(self):
        return {agent: np.array([self.time, self.spaces[agent].sample()], np.float32) for agent in self.agents}


sampling_meeting = SamplingMeeting


class Nim:
    """Three sticks; x and o take one or two in turn, and who takes the last wins. An AEC environment."""
    possible_agents = ["x", "o"]

    def observation_space(self, agent):
        return Dict(observation=Box(0, 3, (1,), np.int8), action_mask=Box(0, 1, (2,), np.int8))

    def action_space(self, agent):
        return Discrete(2)

    def observe(self, agent):
        return {"observation": np.array([self.left], np.int8),
                "action_mask": np.array([self.left >= 1, self.left >= 2], np.int8)}

    def reset(self, seed=None, options=None):
        self.agents, self.left, self.agent_selection = ["x", "o"], 3, "x"
        self.rewards = {"x": 0, "o": 0}
        self.cumulated = {"x": 0, "o": 0}
        self.terminations = {"x": False, "o": False}
        self.truncations = {"x": False, "o": False}
        self.infos = {"x": {}, "o": {}}

    def last(self):
        agent = self.agent_selection
        return (self.observe(agent), self.cumulated[agent], self.terminations[agent], self.truncations[agent],
                self.infos[agent])

    def step(self, action):
        agent = self.agent_selection
        if self.terminations[agent]:
            assert action is None
            self.agents.remove(agent)
            self.agent_selection = self.agents[0] if self.agents else None
            return
        other = "o" if agent == "x" else "x"
        self.cumulated[agent] = 0
        self.left -= 1 + action
        assert self.left >= 0
        if self.left == 0:
            self.cumulated[agent] += 1
            self.cumulated[other] -= 1
            self.terminations = {"x": True, "o": True}
        self.agent_selection = other


nim = Nim


class SamplingNim(Nim):
    """Shows what action spaces draw."""

    def __init__(self):
        self.spaces = {agent: Choosing(2) for agent in self.possible_agents}

    def action_space(self, agent):
        return self.spaces[agent]

    def observe(self, agent):
        return {**super().observe(agent), "observation": np.array([self.spaces[agent].sample()], np.int8)}


sampling_nim = SamplingNim
