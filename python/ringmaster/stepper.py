"""The loop of a worker over its environments of one agent, in C: actor/worlds/python/stepper.c has what it does."""
import ctypes
import os
import sys

import numpy as np

from .channel import W_WORLD

MASK = "action_mask"


class Members(ctypes.Structure):
    """struct rm_stepper."""
    _fields_ = [
        *[(name, ctypes.c_void_p) for name in ("world", "obs")], ("obs_bytes", ctypes.c_uint64), ("format", ctypes.c_char_p),
        *[(name, ctypes.c_void_p) for name in ("shape", "reward", "flags", "actions", "over", "seeds", "begun")],
        ("index", ctypes.c_void_p * 2), ("unmoved", ctypes.c_uint32 * 2),
        *[(name, ctypes.py_object) for name in ("steps", "resets", "nothing", "named", "mask", "drew", "ends", "other")],
        ("dims", ctypes.c_int32), ("figures", ctypes.c_int32)]


def address(column):
    """Of an array, or of a view that can be written to."""
    return column.ctypes.data if isinstance(column, np.ndarray) else ctypes.addressof(ctypes.c_uint8.from_buffer(column))


def load():
    """The loop; None: it is not there, or this interpreter cannot run it."""
    path = os.environ.get("RINGMASTER_STEPPER")
    if not path or sys.implementation.name != "cpython":
        return None
    try:
        step = ctypes.PyDLL(path).rm_stepper_step
    except (OSError, AttributeError):
        return None
    step.restype, step.argtypes = ctypes.c_int, (ctypes.c_void_p, ctypes.py_object, ctypes.c_long, ctypes.c_long)
    return step


class Stepper:
    """Steps the worlds of a batch whose columns stay where they are."""

    def __init__(self, step, batch, agent):
        self.step, self.batch = step, batch
        self.shape = np.array(agent.obs.shape[1:], np.int64)
        self.members = Members(
            address(batch.words[W_WORLD:]), address(agent.obs), agent.obs[0].nbytes if agent.as_it_stands else 0,
            memoryview(agent.obs).format.encode(), address(self.shape), address(agent.reward), address(agent.flags),
            address(agent.actions) if agent.action.plain else None, address(batch.over), address(batch.seeds),
            address(batch.begun), tuple(map(address, batch.draws.indices)), tuple(batch.draws.base_indices), batch.steps,
            batch.resets, (), {}, MASK, batch.drew, batch.ends, batch.write, len(self.shape),
            bool(agent.figures and agent.figures.names))

    def __call__(self, first, end):
        actions = None if self.members.actions else self.batch.actions(first, end)
        self.step(ctypes.byref(self.members), actions, first, end - first)
