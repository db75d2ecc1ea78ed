"""The memory that a worker shares with the actor that started it, and how each wakes the other.

The layout is that of actor/worlds/bridges/python_worker.h: a head, room for text, columns. No NumPy here: that it is missing is
told through this.
"""
import faulthandler
import mmap
import os
import select
import signal
import threading
import time

FD_MEMORY, FD_ASK, FD_ANSWER, FD_REPORT, FD_SAID = range(3, 8)

MAGIC, VERSION = 0x59504D52, 4
HEAD_BYTES, TEXT_BYTES = 4096, 256 << 10
COLUMNS_AT = HEAD_BYTES + TEXT_BYTES

# Words of the head, as indices of 32 bits.
W_MAGIC, W_VERSION, W_REQUEST, W_STARTER_SLEEPS, W_ASKED = range(5)  # two requests of four words
W_REPLY, W_WORKER_SLEEPS, W_STATUS, _, W_WORLD, W_TEXT_BYTES = range(32, 38)
L_ANSWERED, _, L_TOOK = range(19, 22)  # of 64 bits
W_CORE = 46

START, LAYOUT, RESET, STEP, STOP, SHOW = range(1, 7)

SPINS = 700 if len(os.sched_getaffinity(0)) > 1 else 0  # some 30 us: less than a wake-up takes
VAIN = 15  # waits without a spin after one that was in vain
STACKS = signal.SIGRTMAX - 3  # the actor's question where a worker hangs
ONE = (1).to_bytes(8, "little")


def core_of():
    """A function that returns the core on which its caller runs; -1: it cannot tell."""
    try:
        import ctypes
        return ctypes.CDLL(None).sched_getcpu
    except (ImportError, OSError, AttributeError):
        return lambda: -1


class Channel:
    """The worker's end. `words` and `longs` are the head's."""

    def __init__(self):
        self.memory = mmap.mmap(FD_MEMORY, COLUMNS_AT)
        self.words = memoryview(self.memory)[:HEAD_BYTES].cast("I")
        self.longs = self.words.cast("B").cast("Q")
        if self.words[W_MAGIC] != MAGIC or self.words[W_VERSION] != VERSION:
            raise SystemExit("ringmaster.worker: the actor is of another version of ringmaster than this package")
        self.done = self.vain = self.begun = 0
        self.core = core_of()
        self.lock = threading.Lock()
        self.asked = select.poll()
        self.asked.register(FD_ASK, select.POLLIN)

    def fence(self):
        """A full memory barrier: taking a lock is an atomic instruction. Without it each side might miss that the other
        sleeps."""
        self.lock.acquire()
        self.lock.release()

    def wait(self):
        """Waits for a request. Returns (command, phase, first, worlds)."""
        words, done = self.words, self.done
        if words[W_REQUEST] == done:
            self.spin()
        while words[W_REQUEST] == done:
            words[W_WORKER_SLEEPS] = 1
            self.fence()
            if words[W_REQUEST] == done:
                self.asked.poll()
                try:
                    os.read(FD_ASK, 8)
                except BlockingIOError:
                    pass
            words[W_WORKER_SLEEPS] = 0
        self.done = done = (done + 1) & 0xFFFFFFFF
        self.begun = time.monotonic_ns()
        at = W_ASKED + 4 * (done & 1)
        return words[at:at + 4]

    def spin(self):
        """Waits a moment, as long as that was not in vain lately."""
        if self.vain:
            self.vain -= 1
            return
        words, done = self.words, self.done
        for _ in range(SPINS):
            if words[W_REQUEST] != done:
                return
        self.vain = VAIN

    def reply(self, status=0, text=None):
        """Answers the request that wait() returned."""
        words = self.words
        if text is not None:
            data = text.encode("utf-8", "replace")[:TEXT_BYTES]
            self.memory[HEAD_BYTES:HEAD_BYTES + len(data)] = data
            words[W_TEXT_BYTES] = len(data)
        slot, now = self.done & 1, time.monotonic_ns()
        words[W_STATUS + slot], words[W_CORE] = status, self.core() & 0xFFFFFFFF
        self.longs[L_ANSWERED + slot], self.longs[L_TOOK + slot] = now, now - self.begun
        words[W_REPLY] = self.done
        self.fence()
        if words[W_STARTER_SLEEPS]:
            os.write(FD_ANSWER, ONE)

    def text(self):
        """What the actor wrote."""
        data = self.memory[HEAD_BYTES:COLUMNS_AT]
        return data[:data.index(0)].decode("utf-8")

    def columns(self, size):
        """Maps all of the memory, now that there are columns of `size` bytes. Returns a buffer of these."""
        self.whole = mmap.mmap(FD_MEMORY, COLUMNS_AT + size)
        return memoryview(self.whole)[COLUMNS_AT:]


def speak():
    """Says crashes and, when asked, stacks to the report, and whatever is printed to the actor's standard error."""
    faulthandler.enable(FD_REPORT, all_threads=True)
    faulthandler.register(STACKS, FD_REPORT, all_threads=True)
    os.dup2(FD_SAID, 1)
    os.dup2(FD_SAID, 2)
