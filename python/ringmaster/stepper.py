"""The loop of a worker over its environments of one agent, in C: actor/worlds/python/stepper.c has what it does."""
import ctypes
import os

import numpy as np

from .channel import W_WORLD


class Members(ctypes.Structure):
    """struct rm_stepper."""
    _fields_ = [
        *[(name, ctypes.c_void_p) for name in ("world", "obs")], ("obs_bytes", ctypes.c_uint64),
        *[(name, ctypes.c_void_p) for name in ("shape", "reward", "flags", "actions", "over", "seeds", "begun")],
        ("index", ctypes.c_void_p * 2), ("unmoved", ctypes.c_uint32 * 2),
        *[(name, ctypes.py_object) for name in ("called", "step", "nothing", "array", "dtype", "mask", "drew", "ends", "other")],
        *[(name, ctypes.c_int32) for name in ("dims", "real", "head", "figures")]]


class Array(ctypes.Structure):
    """struct array."""
    _fields_ = [("data", ctypes.c_void_p), ("dims", ctypes.c_int), ("shape", ctypes.POINTER(ctypes.c_ssize_t)),
                ("strides", ctypes.c_void_p), ("base", ctypes.c_void_p), ("dtype", ctypes.c_void_p), ("flags", ctypes.c_int)]


HEAD = object.__basicsize__


def arrays_are_known():
    """Do arrays have the head that stepper.c reads?"""
    array = np.zeros((2, 3), np.float32)
    columns = array.T
    head, turned = Array.from_address(id(array) + HEAD), Array.from_address(id(columns) + HEAD)
    return (head.data, head.dims, head.shape[:2], head.dtype) == (array.ctypes.data, 2, [2, 3], id(array.dtype)) and \
        head.flags & 0x101 == 0x101 and not turned.flags & 1


def address(column):
    """Of an array, or of a view that can be written to."""
    return column.ctypes.data if isinstance(column, np.ndarray) else ctypes.addressof(ctypes.c_uint8.from_buffer(column))


def load():
    """The loop. OSError: it is not there, or this interpreter cannot run it."""
    path = os.environ.get("RINGMASTER_STEPPER")
    if not path or not arrays_are_known():
        raise OSError("no loop in C")
    library = ctypes.PyDLL(path)
    if ctypes.c_uint32.in_dll(library, "rm_stepper_bytes").value != ctypes.sizeof(Members):
        raise OSError(f"{path} is of another version")
    step = library.rm_stepper_step
    step.restype, step.argtypes = ctypes.c_int, (ctypes.c_void_p, ctypes.py_object, ctypes.c_long, ctypes.c_long)
    return step


class Stepper:
    """Steps the worlds of a batch whose columns stay where they are."""

    def __init__(self, batch, agent):
        self.step, self.batch = load(), batch
        self.shape = np.array(agent.obs.shape[1:], np.intp)
        dtype = np.dtype(agent.obs.dtype.type)  # the one that arrays have, where a space may have a copy
        written = agent.as_it_stands and agent.obs.dtype == dtype and agent.mask is None
        self.members = Members(
            address(batch.words[W_WORLD:]), address(agent.obs), agent.obs[0].nbytes if written else 0, address(self.shape),
            address(agent.reward), address(agent.flags), address(agent.actions) if agent.action.plain else None,
            address(batch.over), address(batch.seeds), address(batch.begun), tuple(map(address, batch.draws.indices)),
            tuple(batch.draws.base_indices), batch.called, "step", (), np.ndarray, dtype, "action_mask", batch.drew, batch.ends,
            batch.write, len(self.shape), dtype == np.float32, HEAD, bool(agent.figures and agent.figures.names))
        self.at = ctypes.byref(self.members)

    def __call__(self, first, end):
        actions = None if self.members.actions else self.batch.actions(first, end)
        self.step(self.at, actions, first, end - first)
