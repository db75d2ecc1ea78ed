"""Ringmaster for Python: train environments, follow and evaluate runs, act with policies, step worlds of C.

    import ringmaster

    run = ringmaster.train(env="gymnasium:CartPole-v1", algorithm="ppo", steps=200_000)
    print(run.score)
    policy = ringmaster.Policy.load(run.policies["agent_0"])

`python -m ringmaster.worker` is started by actors to step Python worlds; it needs nothing of the rest, so names are
imported when they are used.
"""
import importlib
from typing import TYPE_CHECKING

__version__ = "0.1.0"

_HOMES = {"train": "runs", "Run": "runs", "Client": "client", "Counters": "client", "Refused": "client", "Policy": "policy",
          "Recording": "recording", "make": "vector", "make_vec": "vector", "parallel_env": "vector", "aec_env": "vector"}
__all__ = sorted(_HOMES)


if TYPE_CHECKING:
    from .client import Client as Client, Counters as Counters, Refused as Refused
    from .policy import Policy as Policy
    from .recording import Recording as Recording
    from .runs import Run as Run, train as train
    from .vector import aec_env as aec_env, make as make, make_vec as make_vec, parallel_env as parallel_env
else:
    def __getattr__(name):
        if name in _HOMES:
            return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return [*globals(), *__all__]
