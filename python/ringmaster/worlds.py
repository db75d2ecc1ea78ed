"""Environments as a batch of worlds: rows of observations, rewards and flags, as actor/env.h has them.

An episode's last observation is a row of its own, after which the world begins anew with the next row: each kind of
environment has an adapter that gives rows of that form.
"""
import math
import random
from math import isfinite

import numpy as np

from . import showing
from .channel import W_WORLD
from .draws import Draws
from .figures import Figures
from .spaces import Action, Fault, Observation, shape_text, warn

FIRST, TERMINATED, TRUNCATED, VOID, DEAD = 1, 2, 4, 8, 16
LAST = TERMINATED | TRUNCATED
TRIAL_STEPS = 8  # of a world before it is described
OLD_API = ("the API of gym before 0.26; wrap the environment: gymnasium.make(\"GymV21Environment-v0\", env=env) "
           "(pip install \"shimmy[gym-v21]\")")
OLD_AGENTS = "the API of PettingZoo before 1.22, which had dones: return terminations and truncations"


class Agent:
    """One agent's columns over the worlds of a batch."""

    def __init__(self, name, phase, observation_space, action_space):
        self.name, self.phase = name, phase
        self.observation, self.action = Observation(observation_space), Action(action_space)
        self.has_mask = self.observation.masked or None  # None: its first observation is not known
        self.whose = ""  # " of NAME" where there are several agents
        if not self.action.words:
            raise Fault(f"the action space of {name} has no choice")

    def describe(self):
        return {"name": self.name, "phase": self.phase, "has_mask": int(bool(self.has_mask)),
                **self.observation.describe(), **self.action.describe()}

    def attach(self, buffer, at, worlds, figures):
        def view(offset, dtype, *shape):
            size = int(np.prod(shape))
            return np.frombuffer(buffer, dtype, size, offset).reshape(shape)

        total, words = sum(self.action.choices), self.action.words
        self.obs = view(at["obs"], self.observation.dtype, worlds, *self.observation.shape)
        self.mask = view(at["mask"], np.uint8, worlds, total) if self.has_mask else None
        self.reward = view(at["reward"], np.float32, worlds)
        self.flags = view(at["flags"], np.uint8, worlds)
        self.ends = view(at["figures"], np.float64, worlds, len(figures.names))
        self.figures = figures if figures.names or figures.tells_late else None
        self.actions = view(at["actions"], np.int32, worlds) if self.action.single else \
            view(at["actions"], np.int32, worlds, words)
        self.reals = self.actions[:, len(self.action.choices):].view(np.float32) if self.action.reals else None
        self.as_it_stands = self.observation.as_it_stands(self.obs)
        self.floats = [(name, column, column.reshape(-1) if column.flags.c_contiguous else None)
                       for name, column in (*self.observation.columns(self.obs), (None, self.reward))
                       if column.dtype.kind == "f"]

    def rows(self, first, end):
        """The actions of some worlds: a number of each, or a row where it takes more or other numbers."""
        if not self.action.reals:
            return self.actions[first:end].tolist()
        if not self.action.choices:
            return list(self.reals[first:end])
        chosen = self.actions[first:end, :len(self.action.choices)].tolist()
        return [choices + reals for choices, reals in zip(chosen, self.reals[first:end].tolist())]

    def put(self, w, value):
        """Writes an observation, whatever it came as."""
        if self.as_it_stands and value.__class__ is np.ndarray and value.dtype == self.obs.dtype and \
                value.shape == self.obs.shape[1:]:
            self.obs[w] = value
        else:
            self.observation.put(self.obs[w], value)

    def mask_of(self, obs, info):
        """The mask that came with an observation; None: there was none."""
        if self.observation.masked and isinstance(obs, dict) and "action_mask" in obs:
            return obs["action_mask"]
        return info.get("action_mask") if info else None

    def meet(self, obs, info):
        """Finds out from its first observation whether there are masks."""
        if self.has_mask is None:
            self.has_mask = self.mask_of(obs, info) is not None
        self.check_no_mask(info)

    def check_no_mask(self, info):
        """Refuses a mask that was not expected."""
        if not self.has_mask and info and "action_mask" in info:
            raise Fault(f"there is an action mask with this observation{self.whose}, but there was none with the first: "
                        "all come with one, or have it as an entry of the observation")

    def legal(self, obs, info):
        """(actions) of 0 and 1 by the mask that came with an observation; None: there was none."""
        mask = self.mask_of(obs, info) if self.has_mask else None
        if mask is None:
            return None
        row = np.zeros(sum(self.action.choices), np.uint8)
        self.action.put_mask(row, mask, "the observation" if self.observation.masked else "info")
        return row

    def put_mask(self, w, obs, info, last):
        mask = self.mask_of(obs, info)
        if mask is None or (last and not np.any(np.asarray(mask, dtype=object) if isinstance(mask, tuple) else mask)):
            if mask is None and not last:
                raise Fault("there is no action mask with this observation, but there was one with the first: it comes "
                            "with every observation, as info[\"action_mask\"] or an entry of the observation")
            self.mask[w] = 1
            return
        try:
            self.action.put_mask(self.mask[w], mask, "the observation" if self.observation.masked else "info")
        except Fault:
            if not last:
                raise
            self.mask[w] = 1

    def row(self, w, obs, info, reward, flags):
        """Writes all of a row."""
        self.put(w, obs)
        if self.mask is not None:
            self.put_mask(w, obs, info, flags & LAST)
        elif not flags & LAST:
            self.check_no_mask(info)
        try:
            self.reward[w] = float(reward)
        except (TypeError, ValueError):
            check_reward(reward)
            raise
        self.flags[w] = flags
        if flags & LAST and self.figures:
            self.figures.put(self.ends[w], info)

    def blank(self, w, flags):
        self.obs[w] = 0
        if self.mask is not None:
            self.mask[w] = 1
        self.reward[w] = 0
        self.flags[w] = flags
        self.ends[w] = math.nan


def check_mapping(info, call):
    if not isinstance(info, dict):
        raise Fault(f"the info that {call} returned is {type(info).__name__}, not a dict")


def unpack_reset(result):
    if not isinstance(result, tuple) or len(result) != 2:
        raise Fault(f"reset() returned {type(result).__name__} where (observation, info) is expected: {OLD_API}")
    check_mapping(result[1], "reset()")
    return result


def unpack_step(result, call="step()", old=OLD_API):
    if not isinstance(result, tuple) or len(result) != 5:
        count = f"{len(result)} values" if isinstance(result, tuple) else type(result).__name__
        raise Fault(f"{call} returned {count} where (observation, reward, terminated, truncated, info) is expected"
                    + (f": {old}" if isinstance(result, tuple) and len(result) == 4 else ""))
    return result


def check_reward(reward):
    try:
        value = float(reward)
    except (TypeError, ValueError):
        raise Fault(f"the reward is {reward!r}, not a number") from None
    if not np.isfinite(value):
        raise Fault(f"the reward is {value}: learners need finite numbers")


def check_flag(flag, name):
    if not isinstance(flag, (bool, np.bool_)):
        raise Fault(f"{name} is {flag!r}, not True or False")


class Batch:
    """Worlds of one worker. `words` are the head's; where(w) says which world runs, for whoever looks when it does not
    return."""

    phases = 1
    apart = True  # step(phase, first, end) steps some of the worlds

    def __init__(self, order, make, words):
        self.order, self.make, self.words = order, make, words
        self.worlds, self.seed0 = order["worlds"], order["seed"]
        self.agents = []
        self.picture = None

    def where(self, w):
        self.words[W_WORLD] = w

    def describe(self, env):
        spec = getattr(env, "spec", None)
        steps = getattr(spec, "max_episode_steps", None) or 0
        doc = getattr(spec, "id", None) or type(env).__name__
        return {"doc": str(doc), "phases": self.phases, "apart": int(self.apart),
                "max_steps": int(steps) if 0 < steps < 2**31 else 0, "figures": self.figures.names, "picture_width": self.size_shown[1], "picture_height": self.size_shown[0],
                "agents": [agent.describe() for agent in self.agents]}

    def try_out(self, steps):
        """Plays a little, judging everything: a function of (random numbers) that makes a step."""
        Draws.seed(self.seed0)
        self.figures = Figures(self.order.get("figures"), self.env)
        steps(random.Random(self.seed0))
        self.figures.stop_seeking()
        self.size_shown = showing.size_of(self.env) if self.order.get("show") == "picture" else (0, 0)

    def attach(self, buffer, layout):
        for agent, at in zip(self.agents, layout["agents"]):
            agent.attach(buffer, at, self.worlds, self.figures)
        self.seeds = np.frombuffer(buffer, np.uint32, self.worlds, layout["seeds"])
        self.draws = Draws(int(self.order["run_seed"]))
        self.call = self.draws.call
        if any(self.size_shown):
            self.picture = np.frombuffer(buffer, np.uint8, self.size_shown[0] * self.size_shown[1] * 3,
                                         layout["picture"]).reshape(*self.size_shown, 3)

    def made_for(self, w):
        """The environment of world w, or of those from w on. What it draws when it is made, and what its action spaces draw,
        does not depend on who else is in the process."""
        seed = int(self.seeds[w])
        Draws.seed(seed)
        env = self.env if w == 0 else self.make()
        for i, space in enumerate(self.action_spaces(env)):
            if hasattr(space, "seed"):
                space.seed(seed + i)
        return env

    def action_spaces(self, env):
        return [env.action_space]

    def trial(self, steps):
        """Counts steps of a trial: so many, and on to an episode's end while figures are sought."""
        played = 0
        while played < steps or self.figures.seek_on(played):
            yield played
            played += 1

    def shown(self, w):
        """(environment, which part of its pictures) of a world."""
        return self.envs[w], None

    def show(self, w):
        """World w as it stands, for people: its text, or None, and its picture is written."""
        self.where(w)
        env, part = self.shown(w)
        if self.picture is not None:
            self.picture[...] = showing.picture(env, part, self.picture.shape)
            return None
        return showing.text(env, part, [(agent.name, agent.obs[w]) for agent in self.agents])

    def seed_world(self, w):
        """The seed of a world's next episode, which the process's generators have too where the world uses them."""
        seed = int(self.seeds[w])
        self.draws.begin(w, seed)
        return seed

    def check_finite(self, phase, first, end):
        """Numbers that are none end with the world that gave them."""
        for agent in self.agents:
            if agent.phase != phase:
                continue
            for name, column, flat in agent.floats:
                part = column[first:end]
                if flat is None:
                    squares = np.add.reduce(part, axis=None)
                else:
                    each = len(flat) // len(column)
                    flat = flat[first * each:end * each]
                    squares = flat.dot(flat)  # by far the quickest sum of few numbers
                if isfinite(squares):
                    continue
                wrong = np.argwhere(~np.isfinite(part))
                if not len(wrong):
                    continue  # finite, and their sum is not
                at, value = tuple(map(int, wrong[0])), part[tuple(wrong[0])]
                self.where(first + at[0])
                what = f"the reward is {value}" if name is None else f"the observation{name} is {value} at {at[1:]}"
                raise Fault(f"{what}{' of ' + agent.name if len(self.agents) > 1 else ''}: learners need finite numbers")


def random_action(agent, obs, info, rng):
    """A legal action, as a row of choices and real numbers."""
    legal, row, at = agent.legal(obs, info), [], 0
    for count in agent.action.choices:
        allowed = [a for a in range(count) if legal is None or legal[at + a]]
        row.append(rng.choice(allowed))
        at += count
    return row + [rng.uniform(low, high) for low, high in zip(agent.action.low, agent.action.high)]


def middles(action):
    """Real numbers that every environment takes."""
    return [(low + high) / 2 for low, high in zip(action.low, action.high)]


# --- Gymnasium's Env -----------------------------------------------------------------------------


class Drawing:
    """Calls a world that draws from the process's generators, with its own."""

    def __init__(self, batch, world):
        self.batch, self.world = batch, world

    def reset(self, seed):
        self.batch.draws.begin(self.world, seed)
        return self.batch.call(self.world, self.batch.envs[self.world].reset, seed=seed)

    def step(self, action):
        return self.batch.call(self.world, self.batch.envs[self.world].step, action)


class Single(Batch):
    """Environments of one agent, one for every world."""

    def __init__(self, order, env, make, words):
        super().__init__(order, make, words)
        self.env = env
        self.agents = [Agent("agent_0", 0, env.observation_space, env.action_space)]
        self.try_out(self._try)
        self.description = self.describe(env)

    def _try(self, rng):
        env, agent = self.env, self.agents[0]
        obs, info = unpack_reset(env.reset(seed=self.seed0))
        for played in self.trial(TRIAL_STEPS):
            agent.meet(obs, info)
            if played < TRIAL_STEPS:
                agent.observation.judge(obs)
            action = agent.action.make(random_action(agent, obs, info, rng))
            obs, reward, terminated, truncated, info = unpack_step(env.step(action))
            check_reward(reward)
            check_flag(terminated, "terminated")
            check_flag(truncated, "truncated")
            check_mapping(info, "step()")
            if terminated or truncated:
                agent.observation.judge(obs)
                self.figures.found(info)
                if played >= TRIAL_STEPS:
                    break
                obs, info = unpack_reset(env.reset(seed=self.seed0))
        agent.observation.judge(obs)

    def attach(self, buffer, layout):
        super().attach(buffer, layout)
        self.envs = []
        for w in range(self.worlds):
            self.where(w)
            self.envs.append(self.made_for(w))
        self.called = list(self.envs)  # or what calls them with generators of their own
        self.over = np.zeros(self.worlds, np.uint8)  # 1: an episode begins with the next row
        self.begun = np.zeros(self.worlds, np.uint32)  # the seed of the latest episode
        self.to_check = False  # are there rows that were written here, whose numbers may be none?
        self.step_all = self.step_each
        try:
            from .stepper import Stepper
            if self.draws.known:
                self.step_all = Stepper(self, self.agents[0])
        except (ImportError, AttributeError, OSError):  # no ctypes, not CPython, no such file
            pass

    def drew(self, w):
        """A world has drawn from the generators that all share."""
        if w not in self.draws.states:
            self.draws.notice(w, int(self.begun[w]))
            self.called[w] = Drawing(self, w)

    def reset(self):
        self.draws.forget()
        for w in range(self.worlds):
            self.where(w)
            self.over[w], self.begun[w] = 1, self.seeds[w]
            self.write(w, self.call(w, self.envs[w].reset, seed=self.seed_world(w)))
            self.called[w] = Drawing(self, w) if w in self.draws.states else self.envs[w]
        self.to_check = False
        self.check_finite(0, 0, self.worlds)

    def step(self, phase, first, end):
        self.step_all(first, end)
        if self.to_check:
            self.to_check = False
            self.check_finite(0, first, end)

    def actions(self, first, end):
        """What the environments are given."""
        agent = self.agents[0]
        rows = agent.rows(first, end)
        if agent.action.plain:
            return rows
        return [agent.action.make([row] if agent.action.single else row) for row in rows]

    def step_each(self, first, end):
        """In Python what stepper.c does."""
        for w, action in enumerate(self.actions(first, end), first):
            self.where(w)
            if self.over[w]:
                self.begun[w] = self.seeds[w]
                result = self.called[w].reset(seed=int(self.seeds[w]))
            else:
                result = self.called[w].step(action)
            if self.draws.moved():
                self.drew(w)
            self.write(w, result)

    def write(self, w, result):
        """The row of what reset() or step() returned, whatever that is."""
        agent = self.agents[0]
        self.to_check = True
        if self.over[w]:
            obs, info = unpack_reset(result)
            agent.row(w, obs, info, 0.0, FIRST)
            self.over[w] = 0
            return
        obs, reward, terminated, truncated, info = unpack_step(result)
        agent.row(w, obs, info, reward, TERMINATED if terminated else TRUNCATED if truncated else 0)
        self.over[w] = bool(terminated or truncated)

    def ends(self, w, result):
        """An episode ends with a row that stepper.c has written."""
        agent = self.agents[0]
        if agent.figures:
            agent.figures.put(agent.ends[w], result[-1])


# --- Gymnasium's VectorEnv -----------------------------------------------------------------------


def autoreset_mode(env):
    """"next", "same" or "disabled"."""
    mode = (getattr(env, "metadata", None) or {}).get("autoreset_mode")
    name = getattr(mode, "name", mode)
    modes = {"NEXT_STEP": "next", "SAME_STEP": "same", "DISABLED": "disabled", "NextStep": "next", "SameStep": "same",
             "Disabled": "disabled"}
    if name in modes:
        return modes[name]
    try:
        import gymnasium
        old = int(gymnasium.__version__.split(".")[0]) < 1
    except (ImportError, ValueError):
        old = False
    if old:
        return "same"
    raise Fault(f"{type(env).__name__} does not say how its worlds restart: set metadata[\"autoreset_mode\"], "
                "gymnasium.vector.AutoresetMode.NEXT_STEP, SAME_STEP or DISABLED")


class Vector(Batch):
    """Vector environments: each is as many worlds as it has environments inside. What the last one has too many does what its
    last world does, of the same seed, and is not looked at."""

    apart = False

    def __init__(self, order, env, make, words):
        super().__init__(order, make, words)
        self.env, self.size = env, int(env.num_envs)
        self.mode = autoreset_mode(env)
        self.agents = [Agent("agent_0", 0, env.single_observation_space, env.single_action_space)]
        self.try_out(self._try)
        self.description = self.describe(env)

    def action_spaces(self, env):
        return [env.single_action_space, getattr(env, "action_space", None)]

    def part(self, value, i):
        """Observation i of those of all: of Dicts and Tuples every member's."""
        if isinstance(value, dict):
            return {key: self.part(member, i) for key, member in value.items()}
        if isinstance(value, tuple):
            return tuple(self.part(member, i) for member in value)
        return value[i]

    def mask_info(self, infos, i):
        mask = infos.get("action_mask") if self.agents[0].has_mask else None
        return {} if mask is None else {"action_mask": self.part(mask, i)}

    def end_info(self, infos, i):
        """The last info of an episode of environment i, as one environment has it. Keys that it lacks are those whose
        mask says so."""
        final = infos.get("final_info") if self.mode == "same" else None
        if final is not None and not isinstance(final, dict):  # before Gymnasium 1.0
            return final[i] or {}
        source = infos if final is None else final
        return {key: value[i] for key, value in source.items() if isinstance(value, np.ndarray) and len(value) == self.size
                and not str(key).startswith("_") and bool(np.all(source.get(f"_{key}", np.ones(self.size))[i]))}

    def shown(self, w):
        return self.envs[w // self.size], w % self.size

    def actions_of(self, rows):
        """What the environment takes, of rows of choices and real numbers: its actions as it batches them."""
        made = [self.agents[0].action.make(row if np.ndim(row) else [row]) for row in rows]
        return batch(made, getattr(self.env.single_action_space, "dtype", None))

    def check_sizes(self, obs, rewards, terminated, truncated):
        for name, value in (("rewards", rewards), ("terminated", terminated), ("truncated", truncated)):
            if np.shape(value) != (self.size,):
                raise Fault(f"{name} has {shape_text(np.shape(value))}; {self.size} environments give shape ({self.size},)")
        self.check_seen(obs)

    def check_seen(self, obs):
        if isinstance(obs, np.ndarray) and obs.shape[:1] != (self.size,):
            raise Fault(f"the observation has {shape_text(obs.shape)}; {self.size} environments give {self.size} of them")

    def _try(self, rng):
        env, agent = self.env, self.agents[0]
        obs, infos = unpack_reset(env.reset(seed=[self.seed0 + i for i in range(self.size)]))
        self.check_seen(obs)
        agent.meet(obs, infos)
        for i in range(self.size):
            agent.observation.judge(self.part(obs, i))
        for played in self.trial(1):
            rows = [random_action(agent, self.part(obs, i), self.mask_info(infos, i), rng) for i in range(self.size)]
            obs, rewards, terminated, truncated, infos = unpack_step(env.step(self.actions_of(rows)))
            check_mapping(infos, "step()")
            agent.check_no_mask(infos)
            self.check_sizes(obs, rewards, terminated, truncated)
            over = np.logical_or(terminated, truncated)
            for i in range(self.size):
                if played == 0:
                    check_reward(rewards[i])
                    agent.observation.judge(self.part(obs, i))
                if over[i]:
                    self.figures.found(self.end_info(infos, i))
            if over.any():
                break

    def attach(self, buffer, layout):
        super().attach(buffer, layout)
        self.envs = [self.made_for(w) for w in range(0, self.worlds, self.size)]
        self.over = np.ones(self.worlds, bool)
        self.starts = [None] * self.worlds  # what is legal with the first observation of the episode that begins next

    def used(self, first):
        """How many environments of the one that has world `first` are worlds, and one for each: its world."""
        count = min(self.size, self.worlds - first)
        return count, [first + min(i, count - 1) for i in range(self.size)]

    def reset(self):
        agent = self.agents[0]
        self.draws.forget()
        for g, env in enumerate(self.envs):
            first = g * self.size
            self.where(first)
            self.draws.begin(g, int(self.seeds[first]))
            count, worlds = self.used(first)
            obs, infos = unpack_reset(self.call(g, env.reset, seed=[int(self.seeds[w]) for w in worlds]))
            for i in range(count):
                agent.row(first + i, self.part(obs, i), self.mask_info(infos, i), 0.0, FIRST)
        self.over[:] = False
        self.check_finite(0, 0, self.worlds)

    def legal_row(self, w):
        """The first legal action: where an environment that has begun anew is stepped on with the others, before anybody
        could answer."""
        agent, chosen, at, legal = self.agents[0], [], 0, self.starts[w]
        for count in agent.action.choices:
            chosen.append(0 if legal is None else int(np.argmax(legal[at:at + count])))
            at += count
        return chosen[0] if agent.action.single else chosen + middles(agent.action)

    def step(self, phase, first, end):
        rows = self.agents[0].rows(first, end)
        for g, env in enumerate(self.envs):
            self.where(g * self.size)
            self.step_group(g, env, g * self.size, rows)
        self.check_finite(0, first, end)

    def begin_some(self, g, env, worlds, over):
        """The next episodes of those that are over."""
        seeds = [int(self.seeds[w]) for w in worlds]
        return unpack_reset(self.call(g, env.reset, seed=seeds, options={"reset_mask": over.copy()}))  # it is taken out

    def step_group(self, g, env, first, rows):
        agent, size = self.agents[0], self.size
        count, worlds = self.used(first)
        over, rows = self.over[worlds], [rows[w] for w in worlds]
        if self.mode != "next" and over.any():
            if self.mode == "disabled":
                obs, infos = self.begin_some(g, env, worlds, over)
                for i in np.flatnonzero(over[:count]):
                    self.starts[worlds[i]] = agent.legal(self.part(obs, i), self.mask_info(infos, i))
            rows = [self.legal_row(w) if over[i] else row for i, (w, row) in enumerate(zip(worlds, rows))]
        obs, rewards, terminated, truncated, infos = unpack_step(self.call(g, env.step, self.actions_of(rows)))
        self.check_sizes(obs, rewards, terminated, truncated)
        agent.check_no_mask(infos)
        # Those that began anew were stepped on with the others: they begin once more, with the same seeds.
        begun = self.begin_some(g, env, worlds, over) if self.mode == "disabled" and over.any() else (obs, infos)
        finals = self.final_of(infos) if self.mode == "same" else None
        plain = isinstance(obs, np.ndarray) and agent.observation.compact and agent.mask is None and finals is None
        if plain and obs.dtype == agent.obs.dtype and obs.shape == (size,) + agent.obs.shape[1:]:
            agent.obs[first:first + count] = obs[:count]
        else:
            plain = False
        for i in range(count):
            w, ended = first + i, bool(terminated[i] or truncated[i])
            if over[i]:
                flags, reward = FIRST, 0.0
                if ended and self.mode == "next":
                    raise Fault("an episode is over with its first observation")
                ended = False  # a step that nobody answered for; it begins anew once more
                seen = self.part(begun[0], i)
            else:
                flags = (TERMINATED if terminated[i] else TRUNCATED) if ended else 0
                reward, seen = rewards[i], None if plain and not (ended and finals) else self.part(obs, i)
                if ended and self.mode == "same":
                    self.starts[w] = agent.legal(self.part(obs, i), self.mask_info(infos, i))
                    seen = self.final(finals, i)
            info = self.end_info(infos, i) if ended and agent.figures else {}
            if seen is not None:
                agent.row(w, seen, {**info, **self.mask_info(begun[1] if over[i] else infos, i)}, reward, flags)
            else:
                agent.reward[w], agent.flags[w] = reward, flags
                if info:
                    agent.figures.put(agent.ends[w], info)
            self.over[w] = ended

    @staticmethod
    def final_of(infos):
        for name in ("final_obs", "final_observation"):
            if name in infos:
                return infos[name]
        return None

    def final(self, finals, i):
        """The true last observation, which SAME_STEP has aside: an array of objects, or of members."""
        value = None if finals is None else self.part(finals, i)
        if value is None:
            raise Fault("an episode is over, and infos have neither \"final_obs\" nor \"final_observation\": learning "
                        "from an episode's end needs the last observation")
        return value


def batch(made, dtype=None):
    """A list of actions as vector environments take them."""
    if isinstance(made[0], dict):
        return {key: batch([one[key] for one in made]) for key in made[0]}
    if isinstance(made[0], tuple):
        return tuple(batch([one[i] for one in made]) for i in range(len(made[0])))
    return np.array(made, dtype=dtype)


# --- PettingZoo ----------------------------------------------------------------------------------


def names_of(env):
    """Agents as they are known everywhere else: letters, digits, ".", "_" and "-", no two alike."""
    agents = list(getattr(env, "possible_agents", None) or [])
    if not agents:
        raise Fault(f"{type(env).__name__} has no possible_agents: all agents that may ever be there have to be known")
    if len(agents) > 64:
        raise Fault(f"{type(env).__name__} has {len(agents)} possible agents; 64 are possible")
    names = []
    for agent in agents:
        name = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "_" for c in str(agent))[:47].lstrip("._-")
        name = name or f"agent_{len(names)}"
        while name in names:
            name = f"{name[:43]}_{len(names)}"
        names.append(name)
    return agents, names


def agents_of(env, keys, names, phases):
    """An Agent for each key. What is wrong with its observation is said with its name."""
    agents = []
    for key, name, phase in zip(keys, names, phases):
        agents.append(Agent(name, phase, env.observation_space(key), env.action_space(key)))
        agents[-1].whose = f" of {name}"
        for leaf in agents[-1].observation.leaves:
            leaf.whose = f" of {name}"
    return agents


class Parallel(Batch):
    """PettingZoo's parallel environments: agents that are not in play are DEAD."""

    def __init__(self, order, env, make, words):
        super().__init__(order, make, words)
        self.env = env
        self.keys, names = names_of(env)
        self.agents = agents_of(env, self.keys, names, [0] * len(names))
        self.try_out(self._try)
        self.description = self.describe(env)

    def action_spaces(self, env):
        return [env.action_space(key) for key in self.keys]

    def _try(self, rng):
        env = self.env
        obs, infos = self.begin_env(env, self.seed0)
        for played in self.trial(TRIAL_STEPS):
            for agent, key in zip(self.agents, self.keys):
                if key in obs and key in env.agents:
                    agent.meet(obs[key], infos.get(key, {}))
                if key in obs and played < TRIAL_STEPS:
                    agent.observation.judge(obs[key])
            if not env.agents and played >= TRIAL_STEPS:
                break
            if not env.agents:
                obs, infos = self.begin_env(env, self.seed0)
            for key in env.agents:
                if key not in obs:
                    raise Fault(f"there is no observation for agent {key!r}, which env.agents has: every agent in play gets "
                                "one")
            actions = {key: agent.action.make(random_action(agent, obs[key], infos.get(key, {}), rng))
                       for agent, key in zip(self.agents, self.keys) if key in env.agents}
            obs, rewards, terminated, truncated, infos = self.step_env(env, actions)
            for key in obs:
                if key not in self.keys:
                    raise Fault(f"agent {key!r} is not one of possible_agents")
                check_reward(rewards.get(key, 0.0))
                if terminated.get(key) or truncated.get(key):
                    self.figures.found(infos.get(key, {}))

    @staticmethod
    def begin_env(env, seed):
        result = env.reset(seed=seed)
        if isinstance(result, dict):  # before PettingZoo 1.23
            return result, {}
        obs, infos = unpack_reset(result)
        if not isinstance(obs, dict):
            raise Fault(f"reset() returned {type(obs).__name__} for observations, not a dict by agent")
        return obs, infos

    @staticmethod
    def step_env(env, actions):
        results = unpack_step(env.step(actions), old=OLD_AGENTS)
        for name, value in zip(("observations", "rewards", "terminations", "truncations", "infos"), results):
            if not isinstance(value, dict):
                raise Fault(f"step() returned {type(value).__name__} for {name}, not a dict by agent")
        return results

    def attach(self, buffer, layout):
        super().attach(buffer, layout)
        self.envs = [self.made_for(w) for w in range(self.worlds)]
        self.playing = [[False] * len(self.agents) for _ in range(self.worlds)]

    def begin(self, w):
        obs, infos = self.call(w, self.begin_env, self.envs[w], self.seed_world(w))
        present = set(self.envs[w].agents)
        for a, (agent, key) in enumerate(zip(self.agents, self.keys)):
            self.playing[w][a] = key in present and key in obs
            if self.playing[w][a]:
                agent.row(w, obs[key], infos.get(key, {}), 0.0, FIRST)
            else:
                agent.blank(w, DEAD)
        if not any(self.playing[w]):
            raise Fault("no agent is in play after reset(): env.agents is empty")

    def reset(self):
        self.draws.forget()
        for w in range(self.worlds):
            self.where(w)
            self.begin(w)
        self.check_finite(0, 0, self.worlds)

    def step(self, phase, first, end):
        rows = [agent.rows(first, end) for agent in self.agents]
        for w, env in enumerate(self.envs[first:end], first):
            self.where(w)
            if not any(self.playing[w]):
                self.begin(w)
                continue
            there = set(env.agents)
            actions = {key: agent.action.make([rows[a][w - first]] if agent.action.single else rows[a][w - first])
                       for a, (agent, key) in enumerate(zip(self.agents, self.keys)) if key in there}
            obs, rewards, terminated, truncated, infos = self.call(w, self.step_env, env, actions)
            there = set(env.agents)
            for a, (agent, key) in enumerate(zip(self.agents, self.keys)):
                self.follow(w, a, agent, key, obs, rewards, terminated, truncated, infos, there)
        self.check_finite(0, first, end)

    def follow(self, w, a, agent, key, obs, rewards, terminated, truncated, infos, there):
        playing = self.playing[w]
        if key not in obs:
            # Gone without a last observation: what it did is not learned from.
            agent.blank(w, TRUNCATED | VOID if playing[a] else DEAD)
            playing[a] = False
            return
        ended = bool(terminated.get(key) or truncated.get(key)) or key not in there
        if not playing[a]:
            if ended:
                agent.blank(w, DEAD)
                return
            playing[a] = True
            agent.row(w, obs[key], infos.get(key, {}), 0.0, FIRST)
            return
        flags = 0
        if ended:
            flags = TERMINATED if terminated.get(key) or not truncated.get(key) else TRUNCATED
            playing[a] = False
        agent.row(w, obs[key], infos.get(key, {}), rewards.get(key, 0.0), flags)


class Aec(Batch):
    """PettingZoo's AEC environments: agent a acts in phase a. One whose turn it is not, but who is in play, sees what there
    is, and its answer has no effect; one that has had its last observation is DEAD until the next episode."""

    apart = False

    def __init__(self, order, env, make, words):
        super().__init__(order, make, words)
        self.env = env
        self.keys, names = names_of(env)
        self.phases = len(self.keys)
        self.agents = agents_of(env, self.keys, names, range(len(names)))
        self.try_out(self._try)
        self.description = self.describe(env)

    def action_spaces(self, env):
        return [env.action_space(key) for key in self.keys]

    def _try(self, rng):
        env = self.env
        env.reset(seed=self.seed0)
        for agent, key in zip(self.agents, self.keys):  # some may have no turn in a trial
            agent.has_mask = agent.has_mask or "action_mask" in env.infos.get(key, {}) or None
        for _ in self.trial(TRIAL_STEPS * self.phases):
            if not env.agents:
                break
            key = env.agent_selection
            if key not in self.keys:
                raise Fault(f"agent {key!r}, whose turn it is, is not one of possible_agents")
            agent = self.agents[self.keys.index(key)]
            obs, reward, terminated, truncated, info = unpack_step(env.last(), "last()", OLD_AGENTS)
            agent.observation.judge(obs)
            check_reward(reward)
            over = terminated or truncated
            if over:
                self.figures.found(info)
            else:
                agent.meet(obs, info)
            env.step(None if over else agent.action.make(random_action(agent, obs, info, rng)))

    def attach(self, buffer, layout):
        super().attach(buffer, layout)
        self.envs = [self.made_for(w) for w in range(self.worlds)]
        count = len(self.agents)
        self.playing = [[False] * count for _ in range(self.worlds)]
        self.lasts = [[None] * count for _ in range(self.worlds)]  # (observation, info, reward, flags) still to be shown

    def begin(self, w):
        seed = self.seed_world(w)
        self.call(w, self.envs[w].reset, seed=seed)
        if not self.envs[w].agents:
            raise Fault("no agent is in play after reset(): env.agents is empty")

    def reset(self):
        self.draws.forget()
        for w in range(self.worlds):
            self.where(w)
            self.playing[w] = [False] * len(self.agents)
            self.lasts[w] = [None] * len(self.agents)
            self.begin(w)
            self.put_row(w, 0)
        self.check_finite(0, 0, self.worlds)

    def bury(self, w):
        """Those whose turn it is and who are out of it leave; what they saw last is kept for their row."""
        env = self.envs[w]
        while env.agents:
            key = env.agent_selection
            if not (env.terminations[key] or env.truncations[key]):
                return
            a = self.keys.index(key)
            obs, reward, terminated, _, info = self.call(w, env.last)
            self.lasts[w][a] = (copied(obs), info, reward, TERMINATED if terminated else TRUNCATED)
            self.call(w, env.step, None)

    def step(self, phase, first, end):
        agent, key = self.agents[phase], self.keys[phase]
        rows, single = agent.rows(first, end), agent.action.single
        following = (phase + 1) % self.phases
        for w, env in enumerate(self.envs):
            self.where(w)
            shown = not agent.flags[w] & (LAST | DEAD)
            if shown and env.agents and env.agent_selection == key and not self.lasts[w][phase]:
                self.call(w, env.step, agent.action.make([rows[w]] if single else rows[w]))
                self.bury(w)
            if following == 0 and not env.agents and not any(self.playing[w]):
                self.lasts[w] = [None] * self.phases
                self.begin(w)
            self.put_row(w, following)
        self.check_finite(following, first, end)

    def put_row(self, w, a):
        """Agent a's row."""
        env, agent, key, playing = self.envs[w], self.agents[a], self.keys[a], self.playing[w]
        if self.lasts[w][a] and playing[a]:
            obs, info, reward, flags = self.lasts[w][a]
            self.lasts[w][a] = None
            playing[a] = False
            agent.row(w, obs, info, reward, flags)
        elif key not in env.agents:
            agent.blank(w, TRUNCATED | VOID if playing[a] else DEAD)
            playing[a] = False
        elif env.agent_selection == key:
            obs, reward, _, _, info = self.call(w, env.last)
            agent.row(w, obs, info, reward if playing[a] else 0.0, 0 if playing[a] else FIRST)
            playing[a] = True
        elif playing[a]:
            # Not its turn: it looks on.
            agent.put(w, self.call(w, env.observe, key))
            if agent.mask is not None:
                agent.mask[w] = 1
            agent.reward[w], agent.flags[w] = 0, 0
        else:
            agent.blank(w, DEAD)


def copied(value):
    """An observation that the environment cannot change any more."""
    if isinstance(value, dict):
        return {key: copied(member) for key, member in value.items()}
    if isinstance(value, tuple):
        return tuple(copied(member) for member in value)
    return np.array(value)


ADAPTERS = {"single": Single, "vector": Vector, "parallel": Parallel, "aec": Aec}
