"""The generators that `random` and `np.random` share over a process. Each world has states of its own, so that what it draws
does not depend on who else is in the process.

To exchange states takes longer than most steps, so worlds that do not draw share one state, the base, which stays as it is.
A draw is noticed by a look into the generators' memory. The first step in which a world draws, draws from the base;
from then on the world has a state of its own."""
import random
import sys

import numpy as np


def places():
    """Where to look: eight bytes of each generator that change with every draw. None: this interpreter is not known."""
    if sys.implementation.name != "cpython":
        return None
    try:
        import ctypes
        shared, bits = random.getstate.__self__, np.random.random.__self__._bit_generator
        # _randommodule.c: an index, then 624 words; NumPy's mt19937.h: 624 words, then an index.
        found = [memoryview((ctypes.c_uint8 * 8).from_address(at)).cast("B").cast("Q")
                 for at in (id(shared) + object.__basicsize__, bits.ctypes.state_address + 623 * 4)]
    except (ImportError, AttributeError, TypeError):
        return None
    for _ in range(2):
        random.random()
        np.random.random()
        words, numbers = random.getstate()[1], np.random.get_state()
        if found[0][0] != words[-1] | words[0] << 32 or found[1][0] != int(numbers[1][-1]) | numbers[2] << 32:
            return None
    return found


def halves(place):
    return place.cast("B").cast("I")


class Draws:
    """The states of a batch of worlds. `seed`: of the base, the same for all workers of a run."""

    def __init__(self, seed):
        self.places = places() or ([0], [0])
        self.known = isinstance(self.places[0], memoryview)  # else every world is taken for one that draws
        self.seed(seed & 0xFFFFFFFF)
        random.random()
        np.random.random()
        self.base = self.now()
        # For a look in every step: the indices alone, which draws of many times 624 words leave as they are. They are small
        # numbers, which Python need not make.
        self.indices = [place[half:half + 1] for place, half in zip(map(halves, self.places), (0, 1))] if self.known else \
            self.places
        self.base_indices = [index[0] for index in self.indices]
        self.forget()

    def forget(self):
        """All worlds begin with a first episode, and it is not known which of them draw."""
        self.states, self.seeds, self.new = {}, {}, None

    @staticmethod
    def seed(seed):
        random.seed(seed)
        np.random.seed(seed)

    def seeded(self, seed):
        self.seed(seed)
        return self.now()

    @staticmethod
    def now():
        return random.getstate(), np.random.get_state()

    @staticmethod
    def put(state):
        random.setstate(state[0])
        np.random.set_state(state[1])

    def look(self):
        place, other = self.places
        return place[0], other[0]

    def moved(self):
        """Has anybody drawn from the base?"""
        (index, other), (unmoved, other_unmoved) = self.indices, self.base_indices
        return index[0] != unmoved or other[0] != other_unmoved

    def begin(self, world, seed):
        """An episode begins with the next call."""
        if world not in self.seeds:
            self.new = world
        self.seeds[world] = seed
        if world == self.new or world in self.states:
            self.states[world] = self.seeded(seed)

    def notice(self, world, seed):
        """A world without a state has drawn, in an episode of a seed."""
        self.states[world] = self.seeded(seed)
        self.put(self.base)

    def call(self, world, function, *arguments, **named):
        """A call of a world's, with generators of its own if it uses those of the process."""
        state = self.states.get(world)
        if state is None:
            result = function(*arguments, **named)
            if self.moved():
                self.notice(world, self.seeds[world])
            return result
        self.put(state)
        before = self.look()
        result = function(*arguments, **named)
        if world == self.new and self.known and self.look() == before:
            del self.states[world]
        else:
            self.states[world] = self.now()
        if world == self.new or len(self.states) < len(self.seeds):
            self.put(self.base)
        self.new = None
        return result
