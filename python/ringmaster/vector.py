"""Ringmaster's worlds of C, yours included, as environments of Gymnasium and PettingZoo: stepped in this process, many at
once.

Rows are written by the world into arrays that stay; what is returned are copies of them.
"""
import contextlib
import ctypes
import functools
import json
import os
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Tuple, Union

import numpy as np

from .programs import find, worker_package

if TYPE_CHECKING:
    import gymnasium
    import pettingzoo

FIRST, TERMINATED, TRUNCATED, VOID, DEAD = 1, 2, 4, 8, 16
DTYPES: Dict[int, Any] = {1: np.uint8, 2: np.int8, 3: np.int16, 4: np.int32, 5: np.float32, 6: np.uint8}
TEXT_MAX = 1 << 16


@functools.lru_cache(maxsize=None)
def library() -> ctypes.CDLL:
    """The worlds' functions, as actor/worlds/vector.h has them."""
    lib = ctypes.CDLL(find("lib", "ringmaster-worlds.so"))
    handle, u32, size, pointer = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_size_t, ctypes.c_void_p
    for name, result, arguments in (
            ("open", handle, (ctypes.c_char_p, ctypes.c_uint64, u32, ctypes.c_char_p, size)),
            ("describe", ctypes.c_char_p, (handle,)), ("obs_bytes", size, (handle, u32)),
            ("bind", None, (handle, u32, pointer, pointer, pointer, pointer, pointer, pointer)),
            ("reset", ctypes.c_int, (handle,)), ("step", ctypes.c_int, (handle, u32)),
            ("text", ctypes.c_int, (handle, u32, ctypes.c_char_p, size)),
            ("picture", ctypes.c_int, (handle, u32, pointer)),
            ("error", ctypes.c_char_p, (handle,)), ("close", None, (handle,))):
        function = getattr(lib, f"rm_vector_{name}")
        function.restype, function.argtypes = result, arguments
    return lib


class Named:
    """One of several observations of an agent: its place in a row, and its space."""

    def __init__(self, about: Dict[str, Any], at: int):
        self.name, self.counted = about["name"], bool(about["counted"])
        self.dtype, self.shape = DTYPES[about["dtype"]], tuple(about["shape"][:about["dims"]])
        self.at = at + 4 * self.counted
        self.end = self.at + int(np.prod(self.shape)) * np.dtype(self.dtype).itemsize

    @property
    def fields(self) -> List[Tuple[str, Any, int]]:
        """(name, type, offset) of a row's structure."""
        count = [(f"{self.name}.count", np.uint32, self.at - 4)] if self.counted else []
        return [(self.name, (self.dtype, self.shape), self.at), *count]


def bounds_of(about: Dict[str, Any]) -> Tuple[float, float]:
    """Bounds that the type has, too; of what is counted, with the zeros behind the last element."""
    dtype, low, high = DTYPES[about["dtype"]], float.fromhex(about["low"]), float.fromhex(about["high"])
    if about["codes"]:
        low, high = 0, about["codes"] - 1
    elif dtype is not np.float32:
        bounds = np.iinfo(dtype)
        low, high = max(low, bounds.min), min(high, bounds.max)
    return (min(low, 0), max(high, 0)) if about.get("counted") else (low, high)


class Lanes:
    """One agent's columns over all worlds: obs (worlds, *shape), or (worlds,) of a structure where it sees several
    observations, mask (worlds, actions) or None, reward and flags (worlds,), figures (worlds, figures). An action is a choice,
    (worlds,) or (worlds, choices), or real numbers, (worlds, values), or both by name."""

    def __init__(self, about: Dict[str, Any], worlds: int, figures: int):
        from gymnasium import spaces
        self.name, self.phase = about["name"], about["phase"]
        self.named: List[Named] = []
        self.choices: List[int] = about["choice_actions"][:about["choices"]] if about["choices"] > 1 else []
        self.obs, self.observation_space = self.several(about["observations"], worlds) if about["observations"] else \
            self.single(about, worlds)
        self.mask = np.ones((worlds, about["actions"]), np.uint8) if about["has_mask"] else None
        self.reward, self.flags = np.zeros(worlds, np.float32), np.zeros(worlds, np.uint8)
        self.figures = np.full((worlds, figures), np.nan)
        bounds = [self.floats(about.get("boxes", []), end) for end in ("low", "high")]
        reals, chosen = len(bounds[0]), len(self.choices) or int(about["actions"] > 0)
        #: Where the world reads actions: choices, then the bits of real numbers. `parts` are the same by name.
        self.words = np.zeros((worlds, chosen + reals), np.int32)
        self.parts: Dict[str, np.ndarray] = {}
        members: Dict[str, Any] = {}
        if chosen:
            self.parts["choices"] = self.words[:, :chosen] if self.choices else self.words[:, 0]
            members["choices"] = spaces.MultiDiscrete(self.choices) if self.choices else spaces.Discrete(about["actions"])
        if reals:
            self.parts["reals"] = self.words[:, chosen:].view(np.float32)
            members["reals"] = spaces.Box(bounds[0], bounds[1], dtype=np.float32)
        self.action_space: Any = spaces.Dict(members) if len(members) > 1 else next(iter(members.values()))

    def act(self, action, worlds=slice(None)) -> None:
        """Writes what the agent does in these worlds, as its action space has it."""
        for name, part in self.parts.items():
            part[worlds] = action[name] if len(self.parts) > 1 else action

    @staticmethod
    def single(about: Dict[str, Any], worlds: int):
        """The column of one array, and its space."""
        from gymnasium import spaces
        dtype, shape, (low, high) = DTYPES[about["dtype"]], tuple(about["shape"][:about["dims"]]), bounds_of(about)
        return np.zeros((worlds, *shape), dtype), spaces.Box(dtype(low), dtype(high), shape, dtype)

    def several(self, observations: List[Dict[str, Any]], worlds: int):
        """The column of several observations, side by side as actor/env.h has them, and their space."""
        from gymnasium import spaces
        at, shown = 0, {}
        for about in observations:
            self.named.append(Named(about, at))
            at = -(-self.named[-1].end // 4) * 4
            _, shown[about["name"]] = self.single(about, 0)
            if about["counted"]:
                shown[f"{about['name']}.count"] = spaces.Box(0, about["shape"][0], (1,), np.int32)
        names, formats, offsets = zip(*(field for named in self.named for field in named.fields))
        dtype = np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": at})
        return np.zeros(worlds, dtype), spaces.Dict(shown)

    def shown(self, worlds=slice(None)):
        """A copy of what the agent sees in these worlds, as its space has it: of several observations a dict, in which what is
        counted has zeros behind its last element."""
        rows = self.obs[worlds]
        if not self.named:
            return rows.copy()
        seen = {}
        for named in self.named:
            seen[named.name] = part = rows[named.name].copy()
            if named.counted:
                count = rows[f"{named.name}.count"][..., None].astype(np.int32)
                seen[f"{named.name}.count"] = count
                there = np.arange(named.shape[0]) < count
                part[~there] = 0
        return seen

    @staticmethod
    def floats(boxes: List[Dict[str, Any]], end: str) -> np.ndarray:
        """Bounds of real numbers, whose bits are in the text."""
        return np.frombuffer(bytes.fromhex("".join(box[end] for box in boxes)), ">f4").astype(np.float32)

    def pointers(self) -> List[Optional[int]]:
        """Where the columns are."""
        columns = (self.obs, self.mask, self.reward, self.flags, self.figures, self.words)
        return [None if column is None else column.ctypes.data for column in columns]


class Worlds:
    """A batch of the same world. `world` is the name of a built-in world, or a path of a shared object; a dict is what
    `world` of an experiment's file holds."""

    def __init__(self, world, worlds: int, seed: int = 0, options: Optional[Dict[str, Any]] = None):
        if not isinstance(world, dict):
            name, kind = os.path.splitext(os.path.basename(str(world)))
            world = {"name": name, "library": str(world)} if kind == ".so" else {"name": str(world)}
        if options:
            world = {**world, "options": {**world.get("options", {}), **options}}
        self.text, self.worlds, self.handle = json.dumps({"world": world}).encode(), int(worlds), None
        self.lib = library()
        self.open(seed)
        self.about = json.loads(self.lib.rm_vector_describe(self.handle))
        self.figures = [figure["name"] for figure in self.about["figures"]]
        self.agents = [Lanes(agent, self.worlds, len(self.figures)) for agent in self.about["agents"]]
        self.bind()

    def open(self, seed: int) -> None:
        """Makes the worlds, of another seed than before."""
        os.environ.setdefault("RINGMASTER_PYTHON", worker_package())  # for worlds in Python
        if "RINGMASTER_STEPPER" not in os.environ:
            with contextlib.suppress(FileNotFoundError):  # workers have the same in Python
                os.environ["RINGMASTER_STEPPER"] = find("lib", "ringmaster-stepper.so")
        error = ctypes.create_string_buffer(1024)
        handle = self.lib.rm_vector_open(self.text, seed & (2**64 - 1), self.worlds, error, len(error))
        if not handle:
            raise ValueError(error.value.decode("utf-8", "replace"))
        self.close()
        self.handle, self.seed = handle, seed

    def bind(self) -> None:
        """Says to the worlds where the columns are."""
        for a, agent in enumerate(self.agents):
            assert agent.obs[0].nbytes == self.lib.rm_vector_obs_bytes(self.handle, a)
            self.lib.rm_vector_bind(self.handle, a, *agent.pointers())

    def reset(self, seed: Optional[int] = None) -> None:
        """Begins an episode in every world."""
        if seed is not None:
            self.open(seed)
            self.bind()
        self.check(self.lib.rm_vector_reset(self.handle))

    def step(self, phase: int = 0) -> None:
        """Takes the agents' actions. Of a world that is over the actions are ignored: its next episode begins."""
        code = self.lib.rm_vector_step(self.handle, phase)
        if code:
            self.check(code)

    def check(self, code: int) -> None:
        if code < 0:
            raise RuntimeError(self.lib.rm_vector_error(self.handle).decode("utf-8", "replace"))

    def text_of(self, world: int) -> Optional[str]:
        """How a world looks, as lines; None: it shows none."""
        text = ctypes.create_string_buffer(TEXT_MAX)
        code = self.lib.rm_vector_text(self.handle, world, text, len(text))
        return text.value.decode("utf-8", "replace") if code >= 0 else None

    def picture_of(self, world: int) -> Optional[np.ndarray]:
        """How a world looks, (height, width, 3) bytes; None: it shows none."""
        rgb = np.zeros((self.about["picture_height"], self.about["picture_width"], 3), np.uint8)
        return rgb if rgb.size and self.lib.rm_vector_picture(self.handle, world, rgb.ctypes.data) == 0 else None

    def figures_of(self, agent: Lanes, world: int) -> Dict[str, float]:
        """What an episode that is over came to."""
        return {name: float(value) for name, value in zip(self.figures, agent.figures[world]) if value == value}

    def close(self) -> None:
        """Frees the worlds."""
        if self.handle:
            self.lib.rm_vector_close(self.handle)
        self.handle = None

    __del__ = close


def in_one_phase(worlds: Worlds) -> Worlds:
    if worlds.about["phases"] > 1:
        name = worlds.about["name"]
        worlds.close()
        raise ValueError(f"world {name}: its agents act in turn, each seeing what those before it did: ringmaster.aec_env() has "
                         "them, and ringmaster.make_vec() one of them among others that it plays")
    return worlds


Others = Callable[[str, Any, Optional[np.ndarray]], Any]


class Shown:
    """What environments of one world show, and how they end."""

    worlds: Worlds
    render_mode: Optional[str]

    def render(self) -> Any:
        return self.worlds.text_of(0) if self.render_mode == "ansi" else self.worlds.picture_of(0)

    def close(self) -> None:
        self.worlds.close()


class AtRandom:
    """What agents do who are nobody's: legal actions, all as likely."""

    def __init__(self, seed: int):
        self.rng = np.random.default_rng(seed)

    def __call__(self, lanes: Lanes):
        """As Lanes.act() takes it."""
        drawn = {name: self.chosen(lanes) if name == "choices" else self.uniform(lanes) for name in lanes.parts}
        return drawn if len(drawn) > 1 else next(iter(drawn.values()))

    def uniform(self, lanes: Lanes) -> np.ndarray:
        """(worlds, values) of real numbers."""
        space = lanes.action_space["reals"] if len(lanes.parts) > 1 else lanes.action_space
        return self.rng.uniform(space.low, space.high, lanes.parts["reals"].shape)

    def chosen(self, lanes: Lanes) -> np.ndarray:
        """(worlds,) or (worlds, choices)."""
        space = lanes.action_space["choices"] if len(lanes.parts) > 1 else lanes.action_space
        counts, at, chosen = lanes.choices or [space.n], 0, []
        for count in counts:
            draws = self.rng.random((len(lanes.flags), int(count)))
            if lanes.mask is not None:
                draws[lanes.mask[:, at:at + count] == 0] = -1
            chosen.append(draws.argmax(axis=1))
            at += count
        return np.stack(chosen, axis=1) if lanes.choices else chosen[0]


@functools.lru_cache(maxsize=None)
def classes() -> Tuple[Any, Any]:
    """The environments, once Gymnasium is imported."""
    import gymnasium
    from gymnasium.vector.utils import batch_space
    mode = getattr(gymnasium.vector, "AutoresetMode", None)

    class RingmasterVectorEnv(gymnasium.vector.VectorEnv):
        """Worlds side by side, of which each begins its next episode in the step after an end (NEXT_STEP), with the actions of one
        agent. Others are played by `others`."""

        metadata = {"autoreset_mode": mode.NEXT_STEP if mode else "NextStep", "render_modes": []}

        def __init__(self, worlds: Worlds, agent: Optional[str] = None, others: Optional[Others] = None):
            self.worlds, self.others = worlds, others
            names = [lanes.name for lanes in worlds.agents]
            if agent is not None and agent not in names:
                raise ValueError(f"world {worlds.about['name']} has no agent {agent!r}; it has {', '.join(names)}")
            self.lanes = worlds.agents[names.index(agent) if agent else 0]
            self.random = AtRandom(worlds.seed)
            self.alone = len(names) == 1
            self.num_envs = worlds.worlds
            self.single_observation_space, self.single_action_space = self.lanes.observation_space, self.lanes.action_space
            self.observation_space = batch_space(self.single_observation_space, self.num_envs)
            self.action_space = batch_space(self.single_action_space, self.num_envs)
            self.render_mode, self.spec = None, None
            if not hasattr(gymnasium.vector.VectorEnv, "closed"):  # before 1.0: __init__() sets what close() needs
                super().__init__(self.num_envs, self.single_observation_space,  # type: ignore[call-arg]
                                 self.single_action_space)
            self.stepping, self.handle = worlds.lib.rm_vector_step, None

        def infos(self, ended: bool) -> Dict[str, Any]:
            lanes, found = self.lanes, {}
            if lanes.mask is not None:
                found["action_mask"] = lanes.mask.astype(np.int8)
            if ended:
                over = (lanes.flags & (TERMINATED | TRUNCATED)) != 0
                for f, name in enumerate(self.worlds.figures):
                    found[name], found[f"_{name}"] = np.where(over, lanes.figures[:, f], 0.0), over
            return found

        def play_on(self, phase: int) -> None:
            """Others act from `phase` on until it is the agent's turn."""
            while True:
                for lanes in self.worlds.agents:
                    if lanes.phase == phase and lanes is not self.lanes:
                        lanes.act(self.others(lanes.name, lanes.shown(), lanes.mask) if self.others else
                                  self.random(lanes))
                if phase == self.lanes.phase:
                    return
                self.worlds.step(phase)
                phase = (phase + 1) % self.worlds.about["phases"]

        def reset(self, *, seed=None, options=None):
            """obs (num_envs, *shape), infos. seed: of all worlds, from which each has its own."""
            if np.ndim(seed) or options:
                raise ValueError("reset() takes one seed, from which each world has its own, and no options: give a world's "
                                 "options to make_vec()")
            self.worlds.reset(int(seed) if seed is not None else None if self.handle is None else self.worlds.seed + 1)
            self.handle = self.worlds.handle
            if not self.alone:
                self.random = AtRandom(self.worlds.seed)
                self.play_on(0)
            return self.lanes.shown(), self.infos(False)

        def step(self, actions):
            """actions (num_envs,) or (num_envs, choices), or of real numbers -> obs (num_envs, *shape), rewards, terminated, truncated
            (num_envs,), infos: of what ended the figures, `action_mask` (num_envs, actions) where the world has one."""
            lanes = self.lanes
            lanes.act(actions)
            if self.stepping(self.handle, lanes.phase):
                self.worlds.check(-1)
            if not self.alone:
                self.play_on((lanes.phase + 1) % self.worlds.about["phases"])
            flags = lanes.flags
            terminated, truncated = (flags & TERMINATED) != 0, (flags & TRUNCATED) != 0
            ended = bool(self.worlds.figures) and bool((flags & (TERMINATED | TRUNCATED)).any())
            return (lanes.shown(), lanes.reward.astype(np.float64), terminated, truncated,
                    self.infos(ended) if lanes.mask is not None or ended else {})

        def close_extras(self, **_):
            self.worlds.close()

    class RingmasterEnv(Shown, gymnasium.Env):
        """One world of one agent."""

        metadata = {"render_modes": ["ansi", "rgb_array"], "render_fps": 15}

        def __init__(self, worlds: Worlds, render_mode: Optional[str] = None):
            self.worlds, self.agent, self.begun = in_one_phase(worlds), worlds.agents[0], False
            if len(worlds.agents) > 1:
                raise ValueError(f"world {worlds.about['name']} has {len(worlds.agents)} agents: ringmaster.parallel_env() has them")
            self.observation_space, self.action_space = self.agent.observation_space, self.agent.action_space
            self.render_mode = render_mode

        def info(self) -> Dict[str, Any]:
            return {} if self.agent.mask is None else {"action_mask": self.agent.mask[0].astype(np.int8)}

        def reset(self, *, seed=None, options=None):
            """obs (*shape), info."""
            super().reset(seed=seed)
            if seed is not None or not self.begun:
                self.worlds.reset(seed)
            elif self.agent.flags[0] & (TERMINATED | TRUNCATED):
                self.worlds.step()
            else:
                self.worlds.reset(int(self.np_random.integers(2**62)))
            self.begun = True
            return self.agent.shown(0), self.info()

        def step(self, action):
            """action: a number, or (choices,), or (values,) of real numbers, or {"choices": ..., "reals": ...}."""
            if not self.action_space.contains(action):
                raise ValueError(f"action {action!r} is not in {self.action_space}")
            self.agent.act(action, 0)
            self.worlds.step()
            flags = int(self.agent.flags[0])
            ended = flags & (TERMINATED | TRUNCATED)
            return (self.agent.shown(0), float(self.agent.reward[0]), bool(flags & TERMINATED), bool(flags & TRUNCATED),
                    {**self.info(), **(self.worlds.figures_of(self.agent, 0) if ended else {})})

    return RingmasterVectorEnv, RingmasterEnv


World = Union[str, "os.PathLike[str]", Dict[str, Any]]


def make_vec(world: World, num_envs: int = 1, *, seed: int = 0, agent: Optional[str] = None, others: Optional[Others] = None,
             **options: Any) -> "gymnasium.vector.VectorEnv":
    """Worlds of C as a vector environment of Gymnasium. world: a built-in one ("cartpole"), the path of a shared object of
    your own that has its world's name, or what `world` of an experiment's file holds; options: the world's own. In a world of several agents, the
    actions are those of `agent` (the first one); others do what others(name, obs (num_envs, *shape), mask) says, or draw
    legal actions."""
    return classes()[0](Worlds(world, num_envs, seed, options), agent, others)


def make(world: World, *, seed: int = 0, render_mode: Optional[str] = None, **options: Any) -> "gymnasium.Env":
    """One world of one agent as an environment of Gymnasium."""
    return classes()[1](Worlds(world, 1, seed, options), render_mode)


@functools.lru_cache(maxsize=None)
def parallel_class() -> Any:
    """PettingZoo's, once it is imported."""
    from pettingzoo import ParallelEnv

    class RingmasterParallelEnv(Shown, ParallelEnv):
        """A world of several agents who act at once."""

        def __init__(self, worlds: Worlds, render_mode: Optional[str] = None):
            self.worlds = in_one_phase(worlds)
            self.metadata = {"name": worlds.about["name"], "render_modes": ["ansi", "rgb_array"], "is_parallelizable": True}
            self.lanes = {agent.name: agent for agent in worlds.agents}
            self.possible_agents = list(self.lanes)
            self.agents: List[str] = []
            self.render_mode, self.begun = render_mode, False

        def observation_space(self, agent):
            return self.lanes[agent].observation_space

        def action_space(self, agent):
            return self.lanes[agent].action_space

        def info(self, agent: str) -> Dict[str, Any]:
            mask = self.lanes[agent].mask
            return {} if mask is None else {"action_mask": mask[0].astype(np.int8)}

        def reset(self, seed=None, options=None) -> Tuple[Dict[str, np.ndarray], Dict[str, Dict[str, Any]]]:
            """obs (*shape) and info of each agent."""
            if seed is not None or not self.begun or self.agents:
                self.worlds.reset(seed if seed is not None or not self.begun else self.worlds.seed + 1)
            else:
                self.worlds.step()
            self.begun = True
            self.agents = [name for name, lane in self.lanes.items() if not lane.flags[0] & DEAD]
            return ({name: self.lanes[name].shown(0) for name in self.agents},
                    {name: self.info(name) for name in self.agents})

        def step(self, actions):
            """An action of every agent in `agents`."""
            for name in self.agents:
                self.lanes[name].act(actions[name], 0)
            before = self.agents
            self.worlds.step()
            there = [name for name, lane in self.lanes.items() if name in before or lane.flags[0] & FIRST]
            flags = {name: int(self.lanes[name].flags[0]) for name in there}
            self.agents = [name for name in there if not flags[name] & (TERMINATED | TRUNCATED | DEAD)]
            infos = {name: {**self.info(name), **(self.worlds.figures_of(self.lanes[name], 0)
                                                  if flags[name] & (TERMINATED | TRUNCATED) else {})} for name in there}
            return ({name: self.lanes[name].shown(0) for name in there},
                    {name: float(self.lanes[name].reward[0]) for name in there},
                    {name: bool(flags[name] & (TERMINATED | DEAD)) for name in there},
                    {name: bool(flags[name] & TRUNCATED) for name in there}, infos)

    return RingmasterParallelEnv


def parallel_env(world: World, *, seed: int = 0, render_mode: Optional[str] = None,
                 **options: Any) -> "pettingzoo.ParallelEnv":
    """A world of C whose agents act at once as a parallel environment of PettingZoo."""
    return parallel_class()(Worlds(world, 1, seed, options), render_mode)


@functools.lru_cache(maxsize=None)
def aec_class() -> Any:
    """PettingZoo's, once it is imported."""
    from pettingzoo import AECEnv

    class RingmasterAECEnv(Shown, AECEnv):
        """A world of several agents who act in turn."""

        def __init__(self, worlds: Worlds, render_mode: Optional[str] = None):
            super().__init__()
            self.worlds = worlds
            self.metadata = {"name": worlds.about["name"], "render_modes": ["ansi", "rgb_array"], "is_parallelizable": False}
            self.lanes = {lanes.name: lanes for lanes in sorted(worlds.agents, key=lambda one: one.phase)}
            self.possible_agents = list(self.lanes)
            self.agents: List[str] = []
            self.render_mode, self.begun = render_mode, False

        def observation_space(self, agent):
            return self.lanes[agent].observation_space

        def action_space(self, agent):
            return self.lanes[agent].action_space

        def observe(self, agent):
            """What an agent saw at its latest turn (*shape); zeros before its first."""
            return self.lanes[agent].shown(0)

        def reset(self, seed=None, options=None) -> None:
            self.worlds.reset(seed if seed is not None else self.worlds.seed + self.begun)
            self.begun, self.phase, self.agents = True, 0, list(self.possible_agents)
            for name, lanes in self.lanes.items():
                if lanes.phase:
                    lanes.obs[...] = 0
            for member in ("rewards", "_cumulative_rewards"):
                setattr(self, member, {name: 0.0 for name in self.agents})
            self.terminations = {name: False for name in self.agents}
            self.truncations = {name: False for name in self.agents}
            self.infos: Dict[str, Dict[str, Any]] = {name: {} for name in self.agents}
            self.arrive()

        def arrive(self) -> None:
            """It is the turn of the agents of `phase`, whose rows are there."""
            self.turns = [name for name in self.agents if self.lanes[name].phase == self.phase]
            self.rewards = {name: 0.0 for name in self.agents}
            for name in self.turns:
                lanes = self.lanes[name]
                flags = int(lanes.flags[0])
                self.rewards[name] = self._cumulative_rewards[name] = float(lanes.reward[0])
                self.terminations[name] = bool(flags & (TERMINATED | DEAD))
                self.truncations[name] = bool(flags & TRUNCATED)
                over = self.terminations[name] or self.truncations[name]
                mask = {} if lanes.mask is None else {"action_mask": lanes.mask[0].astype(np.int8)}
                self.infos[name] = {**mask, **(self.worlds.figures_of(lanes, 0) if over else {})}
            self.agent_selection = self.turns[0]

        def step(self, action) -> None:
            name = self.agent_selection
            self._cumulative_rewards[name] = 0.0
            if self.terminations[name] or self.truncations[name]:
                if action is not None:
                    raise ValueError(f"{name} is out of play: its action is None")
                self.agents.remove(name)
                for member in (self.rewards, self._cumulative_rewards, self.terminations, self.truncations, self.infos):
                    del member[name]
            else:
                self.lanes[name].act(action, 0)
            self.turns.remove(name)
            while not self.turns and self.agents:
                self.worlds.step(self.phase)
                self.phase = (self.phase + 1) % self.worlds.about["phases"]
                if any(self.lanes[one].phase == self.phase for one in self.agents):
                    self.arrive()
            if self.turns:
                self.agent_selection = self.turns[0]

    return RingmasterAECEnv


def aec_env(world: World, *, seed: int = 0, render_mode: Optional[str] = None, **options: Any) -> "pettingzoo.AECEnv":
    """A world of C whose agents act in turn as an environment of PettingZoo."""
    return aec_class()(Worlds(world, 1, seed, options), render_mode)
