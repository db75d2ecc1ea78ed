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

FD_MEMORY, FD_ASK, FD_ANSWER, FD_REPORT, FD_SAID = range(3, 8)

MAGIC, VERSION = 0x59504D52, 1
HEAD_BYTES, TEXT_BYTES = 4096, 256 << 10
COLUMNS_AT = HEAD_BYTES + TEXT_BYTES

# Words of the head, as indices of 32 bits.
W_MAGIC, W_VERSION, W_REQUEST, W_COMMAND, W_PHASE, W_STARTER_SLEEPS = range(6)
W_REPLY, W_WORKER_SLEEPS, W_STATUS, W_WORLD, W_TEXT_BYTES = range(32, 37)

START, LAYOUT, RESET, STEP, STOP, SHOW = range(1, 7)

SPINS = 700 if len(os.sched_getaffinity(0)) > 1 else 0  # some 30 us: less than a wake-up takes
STACKS = signal.SIGRTMAX - 3  # the actor's question where a worker hangs
ONE = (1).to_bytes(8, "little")


class Channel:
    """The worker's end. `words` are the head's."""

    def __init__(self):
        self.memory = mmap.mmap(FD_MEMORY, COLUMNS_AT)
        self.words = memoryview(self.memory)[:HEAD_BYTES].cast("I")
        if self.words[W_MAGIC] != MAGIC or self.words[W_VERSION] != VERSION:
            raise SystemExit("ringmaster.worker: the actor is of another version of ringmaster than this package")
        self.done = 0
        self.lock = threading.Lock()
        self.asked = select.poll()
        self.asked.register(FD_ASK, select.POLLIN)

    def fence(self):
        """A full memory barrier: taking a lock is an atomic instruction. Without it each side might miss that the other
        sleeps."""
        self.lock.acquire()
        self.lock.release()

    def wait(self):
        """Waits for a request. Returns (command, phase)."""
        words, done = self.words, self.done
        for _ in range(SPINS):
            if words[W_REQUEST] != done:
                break
        else:
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
        self.done = words[W_REQUEST]
        return words[W_COMMAND], words[W_PHASE]

    def reply(self, status=0, text=None):
        """Answers the request that wait() returned."""
        words = self.words
        if text is not None:
            data = text.encode("utf-8", "replace")[:TEXT_BYTES]
            self.memory[HEAD_BYTES:HEAD_BYTES + len(data)] = data
            words[W_TEXT_BYTES] = len(data)
        words[W_STATUS] = status
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
