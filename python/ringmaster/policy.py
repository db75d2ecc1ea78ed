"""Policies that Ringmaster trained: acting in NumPy, or as a module of PyTorch."""
import os
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Union

import numpy as np

from .programs import script

if TYPE_CHECKING:
    import gymnasium

    from .torch_policy import TorchPolicy

_numpy = script("use_policy")
if TYPE_CHECKING:  # what scripts/use_policy.py has for users
    class State:
        def __getattr__(self, name: str) -> Any: ...

    class NumpyPolicy:
        def __init__(self, tensors: Dict[str, np.ndarray], metadata: Dict[str, str]): ...
        def new_state(self) -> State: ...
        def act(self, observation: Any, state: State, mask: Any = None,
                rng: Optional[np.random.Generator] = None) -> Any: ...
        def outputs(self, x: Any, tau: Any = None, memory: Optional[Dict[str, Any]] = None) -> np.ndarray: ...
        def __getattr__(self, name: str) -> Any: ...
else:
    State, NumpyPolicy = _numpy.State, _numpy.Policy


class Policy(NumpyPolicy):
    """A policy of a file: `Policy.load(path)`. act(observation, state, mask=None) gives the greedy action, a number, a list of
    them where there are several choices, or an array of real numbers; `state` is of new_state(), at the start of an episode, and holds frames and
    memory. outputs(x (B, inputs), memory=None) -> (B, actions * outputs per action): values of actions or logits."""

    tensors: Dict[str, np.ndarray]
    metadata: Dict[str, str]

    @classmethod
    def load(cls, path: Union[str, os.PathLike]) -> "Policy":
        """Reads a policy's file."""
        return cls(*_numpy.load_safetensors(os.fspath(path)))

    def torch(self) -> "TorchPolicy":
        """The same as a torch.nn.Module with these weights, which can be trained on: module(x (B, inputs), memory=None,
        tau=None) -> what outputs() gives; module.act() is act()."""
        from .torch_policy import TorchPolicy
        return TorchPolicy(self)

    def evaluate(self, env: Union[str, Callable[[], "gymnasium.Env"], "gymnasium.Env"], episodes: int = 10, seed: int = 0,
                 max_steps: int = 1000000, rng: Optional[np.random.Generator] = None) -> Dict[str, Any]:
        """Plays greedy episodes in an environment of Gymnasium: one, the name of one, or a function that makes one. Episode e
        begins with reset(seed=seed + e). Returns `mean` and `stderr` of the returns, `returns` and `lengths` (episodes,)."""
        from .spaces import Action, Observation
        world: Any = env
        if isinstance(env, str):
            from . import make
            from .making import load
            world = load(env, {}) if ":" in env else make(env)
        if callable(world):
            world = world()
        seen, action = Observation(world.observation_space), Action(world.action_space)
        self.check_fits(seen, action)
        taken = self.named(seen)
        row, rng = np.zeros(seen.shape, seen.dtype), rng or np.random.default_rng(seed)
        returns: List[float] = []
        lengths: List[int] = []
        for episode in range(episodes):
            obs, info = world.reset(seed=seed + episode)
            state, total, steps, over = self.new_state(), 0.0, 0, False
            while not over and steps < max_steps:
                mask = obs["action_mask"] if seen.masked else info.get("action_mask")
                if isinstance(mask, tuple):
                    mask = np.concatenate(mask)
                seen.put(row, obs)
                chosen = self.act(self.as_trained(seen, taken, row), state, mask, rng)
                chosen = chosen if isinstance(chosen, list) else [chosen]
                if self.reals:  # an array, behind choices
                    chosen = [*chosen[:-1], *chosen[-1].tolist()]
                obs, reward, terminated, truncated, info = world.step(action.make(chosen))
                total, steps, over = total + float(reward), steps + 1, terminated or truncated
            returns.append(total)
            lengths.append(steps)
        if world is not env:
            world.close()
        values = np.array(returns)
        return {"mean": float(values.mean()), "stderr": float(values.std(ddof=1) / np.sqrt(episodes)) if episodes > 1 else 0.0,
                "returns": values, "lengths": np.array(lengths)}

    def trained(self) -> Dict[Optional[str], List[int]]:
        """Shapes of observations by name, as ringmaster.make() shows them: counts are observations of their own."""
        counts = {f"{each['name']}.count": [1] for each in self.observations if each["counted"]}
        return {**{each["name"]: list(each["shape"]) for each in self.observations}, **counts}

    def named(self, seen) -> Dict[str, Any]:
        """What an environment shows, by the keys of its Dict where the policy knows them as names."""
        keys, known = [".".join(map(str, each.path)) for each in seen.named], self.trained()
        return {key if key in known else each.name: each for key, each in zip(keys, seen.named)}

    def as_trained(self, seen, taken: Dict[str, Any], row: np.ndarray) -> Any:
        """A row as act() takes it: of what is counted, as many elements as there are."""
        if seen.compact:
            name = self.observations[0]["name"]
            return row if name is None else {name: row}
        shown = {name: row[each.name] for name, each in taken.items()}
        return {each["name"]: shown[each["name"]][:int(shown[f"{each['name']}.count"][0])] if each["counted"] else
                shown[each["name"]] for each in self.observations}

    def check_fits(self, seen, action) -> None:
        """Refuses an environment that shows or takes something else than the one that the policy was trained in."""
        shows: Dict[Optional[str], List[int]] = {name: list(each.shape) for name, each in self.named(seen).items()}
        if seen.compact:
            shows[self.observations[0]["name"] if len(self.observations) == 1 else None] = list(seen.shape)
        if shows != self.trained():
            shown, trained = (", ".join(str(shape) if name is None else f"{name} {shape}" for name, shape in shapes.items())
                              for shapes in (shows, self.trained()))
            raise ValueError(f"the environment shows {shown}, the policy was trained on {trained}")
        if list(action.choices) != list(self.choices):
            raise ValueError(f"the environment takes one of {action.choices} actions, the policy gives one of {self.choices}")
        reals = len(self.reals["low"]) if self.reals else 0
        if action.reals != reals:
            raise ValueError(f"the environment takes {action.reals} real numbers, the policy gives {reals}")
