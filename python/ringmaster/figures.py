"""What episodes end with: the numbers of the last info of each. Which names there are has to be known before a run begins:
those that an environment lists in metadata["figures"], else those that the worker finds by playing to an episode's end."""
import math
import time

import numpy as np

from .spaces import warn

FIGURES_MAX, PATIENCE_STEPS, PATIENCE_S = 16, 3000, 3.0
NOT_FIGURES = ("action_mask", "length", "return", "TimeLimit.truncated")


def name_of(key):
    """As figures are known everywhere else: letters, digits, "_" and "-", no more than 47."""
    name = "".join(c if c.isascii() and (c.isalnum() or c in "_-") else "_" for c in str(key))[:47].lstrip("_-")
    return None if not name or key in NOT_FIGURES or name in NOT_FIGURES or str(key).startswith("_") else name


def number(value):
    """A number, true and false among them; None: it is none."""
    if isinstance(value, (bool, int, float, np.bool_, np.integer, np.floating)):
        return float(value)
    if isinstance(value, np.ndarray) and value.size == 1 and value.dtype.kind in "biuf":
        return float(value.reshape(()))
    return None


class Figures:
    """Names, in their order. `known`: all that there are; None: they are still to be found."""

    def __init__(self, known, env):
        listed = (getattr(env, "metadata", None) or {}).get("figures")
        self.names = [] if known is None else list(known)
        if known is None and listed is not None:
            self.names = [name for name in map(name_of, listed) if name]
        self.names = self.names[:FIGURES_MAX]
        self.sought = self.tells_late = known is None and listed is None
        self.until = time.monotonic() + PATIENCE_S
        self.late = set()

    def seek_on(self, played):
        """Is the worker, which has made so many steps, to play on for an episode's end?"""
        return self.sought and played < PATIENCE_STEPS and time.monotonic() < self.until

    def found(self, info):
        """An episode's end, when they are sought. More than one agent may have one at once."""
        if not self.sought:
            return
        for key, value in info.items():
            name = name_of(key)
            if name and number(value) is not None and name not in self.names and len(self.names) < FIGURES_MAX:
                self.names.append(name)

    def stop_seeking(self):
        if self.sought:
            self.names.sort()
        self.sought = False

    def put(self, row, info):
        """Writes those of an episode that is over; NaN where it has none."""
        if not info and not self.names:
            return
        row[...] = math.nan
        for key, value in (info or {}).items():
            name = name_of(key)
            value = number(value) if name else None
            if value is None:
                continue
            if name in self.names:
                row[self.names.index(name)] = value
            elif name not in self.late and len(self.late) < FIGURES_MAX:
                self.late.add(name)
                warn(f"info has {key!r} at an episode's end, which came too late to be a figure: list it in the "
                     "environment's metadata[\"figures\"]")
