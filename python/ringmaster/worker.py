"""A worker process of an actor: makes Python worlds and steps them on request. `python -m ringmaster.worker`, with
descriptors that only the actor can give."""
import json
import os
import sys
import time
import traceback

if sys.version_info < (3, 8):
    raise SystemExit("ringmaster.worker: Python 3.8 or newer is needed, this is %d.%d" % sys.version_info[:2])

from . import channel as channels  # noqa: E402


def sentence_of(error):
    """One line, and the lines of a traceback that help."""
    kind = type(error).__name__
    if kind == "Fault":
        return str(error), ""
    from .making import hint
    words = " ".join(str(error).split())
    frames = traceback.extract_tb(error.__traceback__)
    own = os.path.dirname(os.path.abspath(__file__))
    theirs = [frame for frame in frames if os.path.dirname(os.path.abspath(frame.filename)) != own]
    at = f" ({os.path.basename(theirs[-1].filename)}:{theirs[-1].lineno})" if theirs else ""
    shown = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    return f"{kind}: {words}{at}{hint(error)}", shown


class Worker:
    def __init__(self, channel):
        self.channel, self.words = channel, channel.words
        self.batch, self.lengthen_by = None, 0.0

    def start(self, *_):
        try:
            import numpy  # noqa: F401
        except ImportError as why:
            from_where = f"{sys.executable} cannot import numpy ({why})"
            self.channel.reply(1, f"{from_where}: pip install numpy for it, or give world.interpreter the path of an "
                                  "interpreter that has it")
            raise SystemExit(0) from None
        from . import draws, making, worlds
        order = json.loads(self.channel.text())
        self.words[channels.W_WORLD] = 0
        self.lengthen_by = order["lengthen_by"]
        draws.Draws.seed(order["seed"])
        made, env = making.first(order["python"], order["options"], order.get("show"))
        self.batch = worlds.ADAPTERS[making.kind_of(env)](order, env, made, self.words)
        return json.dumps({**self.batch.description, "versions": making.versions(order["python"])})

    def layout(self, *_):
        layout = json.loads(self.channel.text())
        self.batch.attach(self.channel.columns(layout["bytes"]), layout)

    def reset(self, *_):
        self.batch.reset()

    def step(self, phase, first, worlds):
        begin = time.perf_counter()
        self.batch.step(phase, first, first + worlds)
        if self.lengthen_by:
            now = time.perf_counter()
            end = now + self.lengthen_by * (now - begin)
            while time.perf_counter() < end:
                pass

    def run(self):
        does = {channels.START: self.start, channels.LAYOUT: self.layout, channels.RESET: self.reset,
                channels.STEP: self.step, channels.SHOW: lambda world, *_: self.batch.show(world)}
        wait, reply = self.channel.wait, self.channel.reply
        while True:
            command, *order = wait()
            if command == channels.STOP:
                reply()
                return
            try:
                text = does[command](*order)
            except BaseException as error:  # what worlds raise may be anything
                if self.words[channels.W_REPLY] == self.channel.done:
                    return
                sentence, shown = sentence_of(error)
                reply(1, f"{sentence}\n{shown}")
                return
            reply(0, text)


def main():
    channel = channels.Channel()
    channels.speak()
    Worker(channel).run()
    sys.stdout.flush()
    os._exit(0)  # whatever threads a world has left


if __name__ == "__main__":
    main()
