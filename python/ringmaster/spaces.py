"""What spaces are to a learner: observations as columns of numbers, actions as choices and real numbers.

Spaces are known by the names of their classes and by what they have (`n`, `nvec`, `low`), so that Gymnasium need not be
there and any of its versions will do.
"""
import math
import re

import numpy as np

KINDS = ("Discrete", "MultiDiscrete", "MultiBinary", "Box", "Dict", "Tuple", "Text", "Sequence", "Graph", "OneOf")
CHOICES_MAX = 8
DIMS_MAX = 4
NAMED_MAX = 32
CODES_MAX = 256
NAME = re.compile("[A-Za-z0-9][A-Za-z0-9._-]{0,46}")
KEPT = ("uint8", "int8", "int16", "int32", "float32")


class Fault(Exception):
    """What is wrong with a world, in one sentence that says what to do."""


def warn(words):
    print(f"<4>{words}", flush=True)


def kind_of(space, what):
    """The kind of a space; `what` says whose it is."""
    if type(space).__module__.split(".")[0] == "gym":
        raise Fault(f"the {what} is a space of gym, not of gymnasium: {LEGACY}")
    for cls in type(space).__mro__:
        if cls.__name__ in KINDS:
            return cls.__name__
    raise Fault(f"the {what} is {type(space).__name__}, which is not supported; use Discrete, MultiDiscrete, "
                f"MultiBinary, Box, or a Dict or Tuple of them; {WRAP}")


WRAP = ("wrap the environment so that it shows arrays (gymnasium.wrappers.TransformObservation or FilterObservation, "
        "minigrid.wrappers.ImgObsWrapper)")
LEGACY = ('import shimmy, and return gymnasium.make("GymV26Environment-v0", env=env) of it instead '
          '(pip install "shimmy[gym-v26]"; "GymV21Environment-v0" for versions before 0.26)')


def members_of(space, kind):
    """(key, space) of a Dict's or Tuple's members."""
    return list(space.spaces.items()) if kind == "Dict" else list(enumerate(space.spaces))


def shape_text(shape):
    return "a single number" if shape == () else f"shape {tuple(shape)}"


# --- observations --------------------------------------------------------------------------------


class Leaf:
    """One array of an observation: where it is in it, and what its numbers are."""

    def __init__(self, path, space, kind):
        self.path, self.space, self.kind = path, space, kind
        self.whose = ""  # " of NAME" where there are several agents
        self.warned = False
        if kind == "Box":
            self.dtype, self.shape = np.dtype(space.dtype), tuple(space.shape)
            low, high = np.asarray(space.low), np.asarray(space.high)
            self.low = float(np.min(low)) if low.size else 0.0
            self.high = float(np.max(high)) if high.size else 0.0
            self.codes = None
        elif kind == "Discrete":
            self.dtype, self.shape = np.dtype(np.int64), ()
            self.codes, self.starts = np.array([int(space.n)]), int(getattr(space, "start", 0))
        elif kind == "MultiDiscrete":
            self.codes = np.asarray(space.nvec, dtype=np.int64)
            self.dtype, self.shape = np.dtype(np.int64), self.codes.shape
            start = getattr(space, "start", None)
            self.starts = 0 if start is None else np.asarray(start)
        else:  # MultiBinary
            self.shape = tuple(space.shape)
            self.codes, self.starts = np.full(self.shape, 2), 0
            self.dtype = np.dtype(np.int8)
        if self.codes is not None:
            self.low, self.high = 0.0, float(np.max(self.codes) - 1)
        if math.prod(self.shape) == 0:
            raise Fault(f"{self} has {shape_text(self.shape)}: an observation has one number at least")

    def __str__(self):
        return (f"observation{self.path}" if self.path else "the observation") + self.whose

    def array(self, value):
        """`value` as an array of the leaf's shape, whatever it came as. Discrete values begin at 0."""
        try:
            array = np.asarray(value)
        except ValueError as why:
            raise Fault(f"{self} is not an array: {why}") from None
        if array.dtype.kind not in "biuf":
            raise Fault(f"{self} has dtype {array.dtype}, where its space has numbers ({self.dtype})")
        if array.shape != self.shape:
            if array.size == 1 and math.prod(self.shape) == 1:
                array = array.reshape(self.shape)
            else:
                raise Fault(f"{self} has {shape_text(array.shape)}; its space says {shape_text(self.shape)}")
        if array.dtype != self.dtype:
            if array.dtype.kind == "f" and self.dtype.kind != "f":
                raise Fault(f"{self} has dtype {array.dtype}, where its space says {self.dtype}: whole numbers")
            if self.kind == "Box" and not self.warned:
                warn(f"{self} has dtype {array.dtype}; its space says {self.dtype}: cast")
            self.warned = True
        if self.codes is not None:
            array = array - self.starts
            if np.any(array < 0) or np.any(array >= self.codes):
                raise Fault(f"{self} is {value}, outside of its space, {self.space}")
        return array

    def put(self, row, value):
        """Writes `value` into a row."""
        array = self.array(value).reshape(row.shape)
        row[...] = array
        if self.codes is None and array.dtype != row.dtype and row.dtype.kind in "iu" and np.any(row != array):
            at = tuple(np.argwhere(row != array)[0])
            raise Fault(f"{self} has numbers that {row.dtype} does not hold: {array[at]} at {tuple(map(int, at))}")

    def judge(self, value):
        """Refuses what is not within the space's bounds."""
        array = self.array(value)
        if array.dtype.kind == "f" and not np.all(np.isfinite(array)):
            at = np.argwhere(~np.isfinite(np.atleast_1d(array)))[0]
            raise Fault(f"{self} is {np.atleast_1d(array)[tuple(at)]} at {tuple(map(int, at))}: learners need finite numbers")
        if self.kind != "Box":
            return
        low, high = np.asarray(self.space.low), np.asarray(self.space.high)
        array, low, high = (np.asarray(each, np.float64) for each in (array, low, high))
        slack = 1e-6  # for what was rounded to float32 on the way
        wrong = (array < low - slack * np.maximum(1, np.abs(low))) | (array > high + slack * np.maximum(1, np.abs(high)))
        if np.any(wrong):
            at = tuple(np.argwhere(np.atleast_1d(wrong))[0])
            raise Fault(f"{self} is {np.atleast_1d(array)[at]} at {tuple(map(int, at))}, outside of its space, which says "
                        f"{np.atleast_1d(np.broadcast_to(low, array.shape))[at]} to "
                        f"{np.atleast_1d(np.broadcast_to(high, array.shape))[at]}: give the space the bounds that hold")


def leaves_of(space, path, without):
    kind = kind_of(space, f"observation space{' of ' + path if path else ''}")
    if kind in ("Text", "Sequence", "Graph", "OneOf"):
        raise Fault(f"{'observation' + path if path else 'the observation'} is a space of kind {kind}, which has no fixed number of numbers: "
                    f"{WRAP}")
    if kind not in ("Dict", "Tuple"):
        return [Leaf(path, space, kind)]
    found = []
    for key, member in members_of(space, kind):
        if path or key != without:
            found += leaves_of(member, f"{path}[{key!r}]", without)
    if not found and not path:
        raise Fault("the observation space is empty: an observation has one number at least")
    return found


class Named:
    """One of several observations: where it stands in an entry of actor/env.h, and as what."""

    def __init__(self, leaf, path, at):
        self.leaf, self.path = leaf, path
        self.name = ".".join(re.sub("[^A-Za-z0-9_-]", "_", str(key)) for key in path)
        if not NAME.fullmatch(self.name):
            raise Fault(f"{leaf} would be called {self.name!r}: an observation's name has up to 47 letters, digits, '.', '_' "
                        "and '-', and begins with a letter or a digit: rename the key")
        most = int(np.max(leaf.codes)) if leaf.codes is not None else 0
        self.codes = most if leaf.kind in ("Discrete", "MultiDiscrete") and most <= CODES_MAX else 0  # one-hot
        self.dtype = np.dtype(np.uint8) if self.codes else Observation.kept(leaf)
        self.shape = leaf.shape if 1 <= len(leaf.shape) <= DIMS_MAX else (math.prod(leaf.shape),)
        self.at = -(-at // 4) * 4
        self.end = self.at + math.prod(self.shape) * self.dtype.itemsize

    def describe(self):
        return {"name": self.name, "dtype": self.dtype.name, "shape": list(self.shape), "codes": self.codes,
                "low": number(self.leaf.low), "high": number(self.leaf.high)}


class Observation:
    """What an agent sees: one array as it is, or several by name: the leaves of a Dict or Tuple, each in its own type."""

    def __init__(self, space):
        self.space = space
        kind = kind_of(space, "observation space")
        self.masked = kind == "Dict" and "action_mask" in space.spaces
        self.leaves = leaves_of(space, "", "action_mask" if self.masked else None)
        self.paths = self._paths(space, kind)
        self.compact = len(self.leaves) == 1
        leaf = self.leaves[0]
        self.named = []
        if self.compact:
            self.dtype = self.kept(leaf)
            self.shape = leaf.shape if 1 <= len(leaf.shape) <= DIMS_MAX else (math.prod(leaf.shape),)
            self.low, self.high = leaf.low, leaf.high
            return
        if len(self.leaves) > NAMED_MAX:
            raise Fault(f"the observation has {len(self.leaves)} parts; {NAMED_MAX} are possible: put some together "
                        "(gymnasium.wrappers.FlattenObservation)")
        at = 0
        for leaf, path in zip(self.leaves, self.paths):
            self.named.append(Named(leaf, path, at))
            at = self.named[-1].end
        names = [each.name for each in self.named]
        for name in names:
            if names.count(name) > 1:
                raise Fault(f"two parts of the observation would be called {name!r}: rename a key")
        self.dtype = np.dtype({"names": names, "formats": [(each.dtype, each.shape) for each in self.named],
                               "offsets": [each.at for each in self.named], "itemsize": -(-at // 4) * 4})
        self.shape = ()

    @staticmethod
    def kept(leaf):
        """The type of a leaf's numbers in a row."""
        if leaf.codes is not None:
            most = int(np.max(leaf.codes))
            return np.dtype(np.uint8 if most <= 256 else np.int16 if most <= 32768 else np.int32)
        if leaf.dtype.name in KEPT:
            return leaf.dtype
        if leaf.dtype.kind == "b":
            return np.dtype(np.uint8)
        if leaf.dtype.kind in "iu" and leaf.low >= -2**31 and leaf.high < 2**31:
            return np.dtype(np.int32)
        return np.dtype(np.float32)

    def _paths(self, space, kind, above=()):
        """The keys that lead to each leaf."""
        if kind not in ("Dict", "Tuple"):
            return [above]
        found = []
        for key, member in members_of(space, kind):
            if above or key != "action_mask" or not self.masked:
                found += self._paths(member, kind_of(member, "observation space"), above + (key,))
        return found

    def values(self, value):
        """(leaf, its part of an observation)."""
        for leaf, path in zip(self.leaves, self.paths):
            part = value
            for key in path:
                try:
                    part = part[key]
                except (KeyError, IndexError, TypeError):
                    raise Fault(f"the observation lacks {leaf.path}, which its space has") from None
            yield leaf, part

    def judge(self, value):
        for leaf, part in self.values(value):
            leaf.judge(part)

    def put(self, row, value):
        """Writes an observation into a row of the column, whatever it takes."""
        if self.compact:
            leaf, part = next(self.values(value))
            leaf.put(row, part)
            return
        for each, (leaf, part) in zip(self.named, self.values(value)):
            leaf.put(row[each.name], part)

    def as_it_stands(self, column):
        """Is an observation of its space written into a row of `column` without a change?"""
        leaf = self.leaves[0]
        return self.compact and not self.paths[0] and leaf.codes is None and leaf.dtype == self.dtype and \
            column.shape[1:] == leaf.shape

    def columns(self, column):
        """(name, numbers) of a column; the name of a single array is ""."""
        return [("", column)] if self.compact else [(f" {each.name}", column[each.name]) for each in self.named]

    def describe(self):
        if not self.compact:
            return {"observations": [each.describe() for each in self.named]}
        return {"dtype": self.dtype.name, "shape": list(self.shape), "low": number(self.low), "high": number(self.high)}


def bits(values):
    """Real numbers as text: the bits of each as float32, in eight hexadecimal digits."""
    return np.asarray(values, ">f4").tobytes().hex()


def number(value):
    return value if math.isfinite(value) else "inf" if value > 0 else "-inf"


# --- actions -------------------------------------------------------------------------------------


class Action:
    """What an agent does: choices, then real numbers within bounds, and how they become what the environment takes."""

    def __init__(self, space, path=""):
        self.space = space
        self.choices, self.boxes = [], []
        self.low, self.high = [], []  # of the real numbers
        self.make = self._maker(space, path)
        self.reals, self.words = len(self.low), len(self.choices) + len(self.low)
        if path == "" and len(self.choices) > CHOICES_MAX:
            raise Fault(f"the action space has {len(self.choices)} choices in one step; {CHOICES_MAX} are possible")

    def _maker(self, space, path):
        what = f"action space{' of ' + path if path else ''}"
        kind, at = kind_of(space, what), len(self.choices)
        if kind == "Discrete":
            start = int(getattr(space, "start", 0))
            self.choices.append(int(space.n))
            return (lambda row: row[at]) if start == 0 else (lambda row: row[at] + start)
        if kind == "MultiDiscrete":
            nvec = np.asarray(space.nvec)
            shape, dtype, start = nvec.shape, space.dtype, getattr(space, "start", None)
            start = np.zeros(shape, dtype) if start is None else np.asarray(start)
            self.choices += [int(n) for n in nvec.ravel()]
            end = len(self.choices)
            return lambda row: np.array(row[at:end], dtype).reshape(shape) + start
        if kind == "MultiBinary":
            shape = tuple(space.shape)
            self.choices += [2] * math.prod(shape)
            end = len(self.choices)
            return lambda row: np.array(row[at:end], np.int8).reshape(shape)
        if kind in ("Dict", "Tuple"):
            makers = [(key, self._maker(member, f"{path}[{key!r}]")) for key, member in members_of(space, kind)]
            if kind == "Dict":
                return lambda row: {key: make(row) for key, make in makers}
            return lambda row: tuple(make(row) for _, make in makers)
        if kind == "Box":
            return self._box(space, path, what)
        raise Fault(f"the {what} is of kind {kind}: actions are choices or real numbers, Discrete, MultiDiscrete, "
                    "MultiBinary, Box, or a Dict or Tuple of them")

    def _box(self, space, path, what):
        dtype, shape, at = np.dtype(space.dtype), tuple(space.shape), len(self.low)
        low, high = (np.broadcast_to(np.asarray(end, np.float64), shape) for end in (space.low, space.high))
        if dtype.kind != "f":
            raise Fault(f"the {what} is a Box of {dtype}; use a Box of float32 for real numbers, or MultiDiscrete "
                        "for choices")
        if math.prod(shape) == 0:
            raise Fault(f"the {what} has {shape_text(shape)}: an action has one number at least")
        if not (np.all(np.isfinite(low)) and np.all(np.isfinite(high)) and np.all(low < high)):
            raise Fault(f"the {what} has no bounds, or a lower one that is not below the upper: give the space the "
                        "range in which actions make sense (low=..., high=...)")
        self.low += low.ravel().tolist()
        self.high += high.ravel().tolist()
        end = len(self.low)
        name = "".join(c if c.isascii() and (c.isalnum() or c in "_-") else "_" for c in path).strip("_")
        self.boxes.append((name or "action", at, end))
        if dtype == np.float32:
            return lambda row: np.array(row[len(self.choices) + at:len(self.choices) + end], dtype).reshape(shape)
        return lambda row: np.clip(np.array(row[len(self.choices) + at:len(self.choices) + end], dtype).reshape(shape),
                                   low, high)  # bounds are rounded to float32 on the way

    @property
    def plain(self):
        """The environment is given the number itself."""
        return len(self.choices) == 1 and kind_of(self.space, "action space") == "Discrete" and \
            int(getattr(self.space, "start", 0)) == 0

    def describe(self):
        boxes = [{"name": name[:47], "low": bits(self.low[at:end]), "high": bits(self.high[at:end])}
                 for name, at, end in self.boxes]
        return {"actions": sum(self.choices), "choices": self.choices if len(self.choices) > 1 else [], "boxes": boxes}

    @property
    def single(self):
        """A row is one choice, without a list around it."""
        return self.words == 1 and not self.reals

    def put_mask(self, row, mask, where):
        """Writes a mask, which may come as an array or as one for every choice."""
        try:
            if isinstance(mask, (tuple, list)) and mask and not np.isscalar(mask[0]):
                mask = np.concatenate([np.asarray(part).ravel() for part in mask])
            mask = np.asarray(mask)
            row[...] = mask.reshape(row.shape) != 0
        except (ValueError, TypeError):
            raise Fault(f"the action mask in {where} has {shape_text(np.shape(mask))}; the action space has "
                        f"{len(row)} actions") from None
        at = 0
        for choice, count in enumerate(self.choices):
            if not row[at:at + count].any():
                of = f" of choice {choice}" if len(self.choices) > 1 else ""
                raise Fault(f"the action mask in {where} leaves no legal action{of}")
            at += count
