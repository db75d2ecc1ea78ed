"""Policies that Ringmaster trained: acting in NumPy, or as a module of PyTorch."""
import os
from typing import Any, Callable, Dict, List, Optional, Union

import numpy as np

from .programs import script

_numpy = script("use_policy")
State = _numpy.State


class Policy(_numpy.Policy):
    """A policy of a file: `Policy.load(path)`. act(observation, state, mask=None) gives the greedy action, a number, a list of
    them where there are several choices, or an array of real numbers; `state` is of new_state(), at the start of an episode, and holds frames and
    memory. outputs(x (B, inputs), memory=None) -> (B, actions * outputs per action): values of actions or logits."""

    tensors: Dict[str, np.ndarray]
    metadata: Dict[str, str]

    @classmethod
    def load(cls, path: Union[str, os.PathLike]) -> "Policy":
        """Reads a policy's file."""
        return cls(*_numpy.load_safetensors(os.fspath(path)))

    def torch(self):
        """The same as a torch.nn.Module with these weights, which can be trained on: module(x (B, inputs), memory=None,
        tau=None) -> what outputs() gives."""
        from .torch_policy import TorchPolicy
        return TorchPolicy(self)

    def evaluate(self, env: Union[str, Callable, Any], episodes: int = 10, seed: int = 0, max_steps: int = 1000000,
                 rng: Optional[np.random.Generator] = None) -> Dict[str, Any]:
        """Plays greedy episodes in an environment of Gymnasium: one, the name of one, or a function that makes one. Episode e
        begins with reset(seed=seed + e). Returns `mean` and `stderr` of the returns, `returns` and `lengths` (episodes,)."""
        from .spaces import Action, Observation
        if isinstance(env, str):
            from . import make
            from .making import load
            env = load(env, {}) if ":" in env else make(env)
        made = callable(env)
        env = env() if made else env
        seen, action = Observation(env.observation_space), Action(env.action_space)
        self.check_fits(seen, action)
        row, rng = np.zeros(seen.shape, seen.dtype), rng or np.random.default_rng(seed)
        returns: List[float] = []
        lengths: List[int] = []
        for episode in range(episodes):
            obs, info = env.reset(seed=seed + episode)
            state, total, steps, over = self.new_state(), 0.0, 0, False
            while not over and steps < max_steps:
                mask = obs["action_mask"] if seen.masked else info.get("action_mask")
                if isinstance(mask, tuple):
                    mask = np.concatenate(mask)
                seen.put(row, obs)
                chosen = self.act(row if seen.compact else {name: row[name] for name in row.dtype.names}, state, mask, rng)
                chosen = chosen if isinstance(chosen, list) else [chosen]
                if self.reals:  # an array, behind choices
                    chosen = [*chosen[:-1], *chosen[-1].tolist()]
                obs, reward, terminated, truncated, info = env.step(action.make(chosen))
                total, steps, over = total + float(reward), steps + 1, terminated or truncated
            returns.append(total)
            lengths.append(steps)
        if made:
            env.close()
        values = np.array(returns)
        return {"mean": float(values.mean()), "stderr": float(values.std(ddof=1) / np.sqrt(episodes)) if episodes > 1 else 0.0,
                "returns": values, "lengths": np.array(lengths)}

    def check_fits(self, seen, action) -> None:
        """Refuses an environment that shows or takes something else than the one that the policy was trained in."""
        shows = [(None, list(seen.shape))] if seen.compact else [(each.name, list(each.shape)) for each in seen.named]
        trained = [(each["name"], list(each["shape"])) for each in self.observations]
        if shows != trained:
            shows, trained = ([shape if name is None else f"{name} {shape}" for name, shape in of] for of in (shows, trained))
            raise ValueError(f"the environment shows {', '.join(map(str, shows))}, the policy was trained on "
                             f"{', '.join(map(str, trained))}")
        if list(action.choices) != list(self.choices):
            raise ValueError(f"the environment takes one of {action.choices} actions, the policy gives one of {self.choices}")
        reals = len(self.reals["low"]) if self.reals else 0
        if action.reals != reals:
            raise ValueError(f"the environment takes {action.reals} real numbers, the policy gives {reals}")
