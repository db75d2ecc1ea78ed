"""How an environment looks, for people: its picture, or text. Pictures become text where an environment has no other."""
import re

import numpy as np

from .spaces import Fault, warn

SHADES = " .:-=+*#%@"
COLUMNS, ROWS = 76, 22  # of text that stands for a picture; a letter is about twice as high as wide
MARKED = re.compile("\x1b\\[(?:[0-9;]*;)?4[0-9](?:;[0-9;]*)?m([^\x1b]*)\x1b\\[0m")
ESCAPES = re.compile("\x1b\\[[0-9;]*[A-Za-z]")


def render(env, part):
    """What render() returns now; of a vector environment, environment `part`'s."""
    frame = env.render()
    if isinstance(frame, (list, tuple)) and frame:
        frame = frame[-1 if part is None else part]
    return frame


def pixels(frame):
    """A frame as (height, width, 3) bytes; None: it is no picture."""
    array = np.asarray(frame)
    if array.ndim != 3 or array.shape[2] not in (1, 3, 4) or array.dtype.kind not in "uif":
        return None
    if array.shape[2] == 1:
        array = np.repeat(array, 3, axis=2)
    return np.clip(array[:, :, :3], 0, 255).astype(np.uint8)


def size_of(env):
    """(height, width) of its pictures; (0, 0): it has none."""
    if getattr(env, "render_mode", None) != "rgb_array":
        return 0, 0
    frame = pixels(render(env, 0 if hasattr(env, "num_envs") else None))
    return (0, 0) if frame is None else frame.shape[:2]


def picture(env, part, shape):
    frame = pixels(render(env, part))
    if frame is None or frame.shape != shape:
        what = "no picture" if frame is None else f"a picture of {frame.shape[1]} x {frame.shape[0]} pixels"
        raise Fault(f"render() gave {what}; the first had {shape[1]} x {shape[0]} pixels")
    return frame


def shaded(frame):
    """A picture in letters: what differs from its background, by how much."""
    height, width, _ = frame.shape
    scale = max(width / COLUMNS, height / 2 / ROWS, 1)
    rows, columns = max(int(height / 2 / scale), 1), max(int(width / scale), 1)
    colours, counts = np.unique(frame.reshape(-1, 3), axis=0, return_counts=True)
    distance = np.abs(frame.astype(np.int16) - colours[np.argmax(counts)]).max(axis=2)
    ys, xs = np.arange(rows) * height // rows, np.arange(columns) * width // columns
    cells = np.maximum.reduceat(np.maximum.reduceat(distance, ys, axis=0), xs, axis=1)
    return "\n".join("".join(SHADES[int(v) * (len(SHADES) - 1) // 255] for v in row).rstrip() for row in cells)


def text(env, part, agents):
    """Its own text, its picture in letters, or what each agent sees. agents: (name, observation)."""
    if getattr(env, "render_mode", None) in ("ansi", "rgb_array"):
        try:
            frame = render(env, part)
        except Exception as why:  # whatever a renderer lacks: what agents see needs none
            warn(f"the environment cannot be drawn: {type(why).__name__}: {why}")
            frame, env = None, None
        if isinstance(frame, str):
            # A cell on a coloured ground is where somebody is.
            return ESCAPES.sub("", MARKED.sub(lambda found: "\u2588" * len(found[1]), frame)).strip("\n") + "\n"
        drawn = pixels(frame) if frame is not None else None
        if drawn is not None:
            return shaded(drawn) + "\n"
    with np.printoptions(precision=3, suppress=True, threshold=64):
        return "".join(f"{name}: {np.array2string(obs)}\n" for name, obs in agents)
