#!/usr/bin/env python3
"""Loads a policy that Ringmaster trained and uses it, with nothing but NumPy.

A policy is one safetensors file: parameters by name, and metadata that says which network they belong
to, how an observation becomes its input and how its output becomes an action. Runs every type of layer, whichever
algorithm trained it, without the noise and the dropout of training; a file with others it refuses by name.

  use_policy.py POLICY.safetensors                  says what it is, and acts on random observations
  use_policy.py POLICY.safetensors --play 10        plays episodes (world cartpole only)
  use_policy.py POLICY.safetensors --inputs X --outputs Q [--tau T] [--steps N]
                                                    runs the network on raw float32 files

In a program of your own:

  from use_policy import Policy
  policy = Policy.load("runs/.../policies/agent_0.safetensors")
  state = policy.new_state()
  action = policy.act(observation, state)           # greedy; `state` holds frames and memory
"""
import argparse
import json
import math
import sys

import numpy as np

OBSERVATION_DTYPES = {
    "u8": np.uint8, "i8": np.int8, "i16": np.int16, "i32": np.int32, "f32": np.float32,
    "code8": np.uint8,
}


def load_safetensors(path):
    """Tensors by name, and the metadata."""
    with open(path, "rb") as file:
        data = file.read()
    length = int.from_bytes(data[:8], "little")
    if len(data) < 8 or length > len(data) - 8:
        raise ValueError("%s: not a safetensors file" % path)
    header = json.loads(data[8:8 + length])
    data = data[8 + length:]
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        flat = np.frombuffer(data[begin:end], dtype="<f4")
        tensors[name] = flat.reshape(entry["shape"])
    return tensors, metadata


def gelu(x):
    return 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def layer_norm(x, gain, offset):
    mean = x.mean(axis=-1, keepdims=True)
    variance = x.var(axis=-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + 1e-5) * gain + offset


def sigmoid(x):
    return np.where(x >= 0, 1 / (1 + np.exp(-np.abs(x))), np.exp(-np.abs(x)) / (1 + np.exp(-np.abs(x))))


ACTIVATIONS = {
    "relu": lambda x: np.maximum(x, 0),
    "tanh": np.tanh,
    "gelu": gelu,
    "silu": lambda x: x * sigmoid(x),
    "elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "leaky_relu": lambda x: np.where(x > 0, x, np.float32(0.01) * x),
    "sigmoid": sigmoid,
    "dropout": lambda x: x,  # for training
}
OVER_EDGES = ("message_passing", "graph_attention", "graph_pool")
LOOK_ACROSS = ("attention", "position", "mean_pool", "pointer", "history", *OVER_EDGES)  # layers that need to know which numbers make a token


class Walk:
    """What goes from layer to layer. `x` is (B, ..., features); with tokens (B, tokens, features), of which those
    that are not `there` are padding."""

    def __init__(self, x, tau, memory, there=None, image=None, seen=None):
        self.x, self.tau, self.memory, self.there, self.image = x, tau, memory, there, image
        self.seen = seen  # the observation that it comes from
        self.tokens = there is not None
        self.parts = {}  # what all observations showed, by their names
        self.before = []  # x of every layer, for residuals


class State:
    """Of an episode: the frames seen last, of every observation, and what recurrent layers remember, by layer."""

    def __init__(self, frames, counts):
        self.frames, self.counts, self.memory = frames, counts, {}


class Policy:
    def __init__(self, tensors, metadata):
        if metadata.get("format") != "ringmaster-policy-1":
            raise ValueError("not a Ringmaster policy: format is %r" % metadata.get("format"))
        self.tensors = tensors
        self.metadata = metadata
        self.algorithm = metadata["algorithm"]
        self.network = json.loads(metadata["network"])
        self.layers = self.network["layers"]
        named = json.loads(metadata.get("observations", "[]"))
        self.observations = named or [{"name": None, "counted": False, **json.loads(metadata["observation"])}]
        self.observation = self.observations[0]
        self.actions = int(metadata["actions"])
        self.choices = json.loads(metadata.get("choices", "[]")) or [self.actions] * (self.actions > 0)
        self.reals = json.loads(metadata.get("reals", "null"))  # of real numbers: bounds, and what is learned
        self.quantiles = int(metadata["quantiles"])
        self.acting_quantiles = int(metadata["acting_quantiles"])
        self.frame_stack = int(metadata["frame_stack"])
        self.branches, lists = {}, [self.layers]  # layers of each observation, by its name
        self.collect(self.network, lists)
        for layers in lists:
            for i, layer in enumerate(layers):
                if layer["type"] not in ACTIVATIONS and layer["type"] not in self.RUN:
                    raise ValueError("layer %d is of type %r, which this program does not run; it runs %s"
                                     % (i, layer["type"], ", ".join(sorted([*ACTIVATIONS, *self.RUN]))))
        for o in self.observations:  # what an embedding takes are whole numbers as they are
            alone = self.layers if len(self.observations) == 1 and not self.branches else []
            first = [layer["type"] for layer in self.branches.get(o["name"], alone)[:1]]
            o["whole"] = first == ["embedding"]
        self.history = json.loads(metadata.get("history", "null"))  # packed histories: places, width, queries, types
        self.inputs = self.frame_stack * sum(self.words(o) + o["counted"] for o in self.observations)
        if self.history:
            self.inputs = self.history["places"] * self.history["width"]

    def collect(self, group, lists):
        """Finds the layers of all observations in a group of inputs, and all lists of layers."""
        for name, own in group.get("inputs", {}).items():
            if isinstance(own, dict):
                self.collect(own, lists)
            else:
                self.branches[name] = own
            lists.append(own["layers"] if isinstance(own, dict) else own)

    @classmethod
    def load(cls, path):
        return cls(*load_safetensors(path))

    # --- from observations to inputs ---------------------------------------------------------

    def words(self, o):
        """How many numbers of the network's input observation `o` has in a frame."""
        return math.prod(o["shape"]) if o["whole"] else o["features"]

    def frame(self, o, value):
        """One observation, in the world's own type, as the network's floats; a counted one has as many items as there
        are. Returns how many, and the floats, zeros behind them."""
        value = np.asarray(value, dtype=OBSERVATION_DTYPES[o["dtype"]])
        count = len(value) if o["counted"] else 0
        flat, elements = value.reshape(-1), math.prod(o["shape"])
        if o["dtype"] != "code8" or o["whole"]:
            rows = flat.astype(np.float32)[None]
        else:
            rows = np.array(o["codebook"], dtype=np.float32)[flat].T  # channel by channel
        return count, np.pad(rows, ((0, 0), (0, elements - rows.shape[1]))).reshape(-1)

    def new_state(self):
        """At the start of an episode: frames before its first are zeros, and nothing is remembered."""
        return State([np.zeros((self.frame_stack, self.words(o)), dtype=np.float32) for o in self.observations],
                     [np.zeros(self.frame_stack, dtype=np.float32) for o in self.observations])

    def see(self, observation, state):
        """Moves `state` on by an observation, {name: array} where there are several; returns the row of inputs: of each
        its counts, if it is counted, then its frames, oldest first."""
        row = []
        for o, frames, counts in zip(self.observations, state.frames, state.counts):
            frames[:-1], counts[:-1] = frames[1:].copy(), counts[1:].copy()
            counts[-1], frames[-1] = self.frame(o, observation if o["name"] is None else observation[o["name"]])
            row += ([counts] if o["counted"] else []) + [frames.reshape(-1)]
        return np.concatenate(row)

    def shape(self, o=None):
        """How the inputs of an observation are laid out, or of all; frames of a stack come before everything. []: a
        vector."""
        if self.history:
            return [self.history["places"], self.history["width"]]
        if o is None and (len(self.observations) > 1 or self.observation["counted"]):
            return [self.inputs]  # numbers side by side
        o = o or self.observation
        shape = list(o["shape"])
        if o["counted"] and o["dtype"] == "code8" and not o["whole"]:
            return []
        if o["dtype"] == "code8" and not o["whole"] and len(shape) == 2:
            shape = [o["channels"], *shape]
        if len(shape) == 2 and self.frame_stack > 1 and not o["counted"]:
            shape = [1, *shape]
        return [shape[0] * self.frame_stack, *shape[1:]]

    # --- the network ---------------------------------------------------------------------------

    def linear(self, name, x):
        return x @ self.tensors[name + ".weight"].T + self.tensors[name + ".bias"]

    def run_linear(self, walk, name, layer):  # a noisy one too: noise is for training
        walk.x = self.linear(name, walk.x)

    def run_layer_norm(self, walk, name, layer):
        walk.x = layer_norm(walk.x, self.tensors[name + ".weight"], self.tensors[name + ".bias"])

    def run_cosine_embedding(self, walk, name, layer):
        n = np.arange(1, self.tensors[name + ".weight"].shape[1] + 1, dtype=np.float32)
        cosines = np.cos(np.float32(math.pi) * n * walk.tau[:, :, None])
        walk.x = walk.x[:, None, :] * np.maximum(self.linear(name, cosines), 0)

    def run_embedding(self, walk, name, layer):
        table = self.tensors[name + ".weight"]
        numbers = walk.x.astype(np.int64)
        if layer["columns"]:  # sums over groups of numbers, zeros where there is none
            columns = np.arange(numbers.shape[-1]) % layer["columns"]
            rows = table[numbers]
            if layer["first_codes"]:
                first = self.tensors[name + ".first"]
                rows = np.where((columns == 0)[:, None], first[np.where(columns == 0, numbers, 0)],
                                table[np.where(columns == 0, 0, numbers)])
            signs = np.where((columns + 1 == layer["columns"]) & layer["difference"], -1, 1).astype(np.float32)
            walk.x = (rows * (signs * (numbers != 0))[..., None]).sum(axis=-2)
            return
        low = 0 if walk.seen["dtype"] == "code8" else int(walk.seen["low"])
        codes = numbers - low
        codes = np.where((codes >= 0) & (codes < len(table)), codes, 0)
        shape = self.shape(walk.seen)
        group = shape[-1] if len(shape) > 1 else 1
        walk.x = table[codes.reshape(len(codes), -1, group)].sum(axis=2)
        walk.tokens = True

    def run_conv2d(self, walk, name, layer):
        kernel, stride, pad = layer["kernel"], layer["stride"], layer["padding"]
        images = np.pad(walk.x.reshape(-1, *walk.image), ((0, 0), (0, 0), (pad, pad), (pad, pad)))
        windows = np.lib.stride_tricks.sliding_window_view(images, (kernel, kernel), axis=(2, 3))
        windows = windows[:, :, ::stride, ::stride].transpose(0, 2, 3, 1, 4, 5)  # (B, H, W, channels, k, k)
        y = windows.reshape(*windows.shape[:3], -1) @ self.tensors[name + ".weight"].reshape(layer["units"], -1).T
        y = (y + self.tensors[name + ".bias"]).transpose(0, 3, 1, 2)
        walk.image = y.shape[1:]
        walk.x = y.reshape(len(y), -1)

    def run_residual(self, walk, name, layer):
        walk.x = walk.x + walk.before[len(walk.before) - 1 - layer["span"]]

    def gates(self, walk, name, h, count):
        x = self.linear(name + ".ih", walk.x), self.linear(name + ".hh", h)
        return [part.reshape(len(h), count, -1).transpose(1, 0, 2) for part in x]

    def run_gru(self, walk, name, layer):
        h = walk.memory.get(name, np.zeros((len(walk.x), layer["units"]), dtype=np.float32))
        x, own = self.gates(walk, name, h, 3)
        reset, update = sigmoid(x[0] + own[0]), sigmoid(x[1] + own[1])
        walk.x = (1 - update) * np.tanh(x[2] + reset * own[2]) + update * h
        walk.memory[name] = walk.x

    def run_lstm(self, walk, name, layer):
        zeros = np.zeros((len(walk.x), layer["units"]), dtype=np.float32)
        h, c = walk.memory.get(name, (zeros, zeros))
        x, own = self.gates(walk, name, h, 4)
        c = sigmoid(x[1] + own[1]) * c + sigmoid(x[0] + own[0]) * np.tanh(x[2] + own[2])
        walk.x = sigmoid(x[3] + own[3]) * np.tanh(c)
        walk.memory[name] = walk.x, c

    def seen(self, walk):
        """Of a history: which rows are queries; how many rows of the context each row sees besides itself; and the place
        of each row without padding."""
        there = walk.there.astype(np.int64)
        place, rows = np.cumsum(there, axis=1) - there, there.sum(axis=1, keepdims=True)
        queries = self.history["queries"]
        asks = place >= rows - queries
        return asks, np.maximum(np.where(asks, place + 1 - queries, place), 0), place

    def run_history(self, walk, name, layer):
        part = lambda what: self.tensors["%s.%s" % (name, what)]
        asks, seen, _ = self.seen(walk)
        kind = np.where(asks, 4, walk.x[:, :, 0]).astype(np.int64)
        end = (kind == 2) | (kind == 3)
        codes = np.where(asks, walk.x[:, :, 1], 0).astype(np.int64)
        x = np.where(end[..., None], part("ends")[np.where(end, kind - 2, 0)],
                     self.linear(name + ".context", walk.x[:, :, 2:]))
        if not layer.get("tied"):
            x = np.where(asks[..., None], part("query")[codes], x)
        walk.x = x + part("type")[np.where(end, kind - 1, 0)] + part("position")[seen]
        walk.tokens = True

    def run_attention(self, walk, name, layer):
        batch, tokens, _ = walk.x.shape
        parts = self.linear(name + ".qkv", walk.x).reshape(batch, tokens, 3, layer["heads"], -1)
        q, k, v = parts.transpose(2, 0, 3, 1, 4)  # (B, heads, tokens, width) each
        scores = q @ k.transpose(0, 1, 3, 2) / np.float32(math.sqrt(q.shape[-1]))
        sees = np.broadcast_to(walk.there[:, None, None, :], scores.shape)
        if layer["causal"]:
            sees = sees & np.tri(tokens, dtype=bool)
        if self.history:  # nothing sees a query but itself
            asks, seen, place = self.seen(walk)
            others = (place[:, None] < (seen + ~asks)[..., None]) & ~asks[:, None]
            sees = sees & (others | np.eye(tokens, dtype=bool))[:, None]
        scores = np.where(sees, scores, np.float32(-1e30))
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True)) * sees
        weights /= np.maximum(weights.sum(axis=-1, keepdims=True), np.float32(1e-30))
        mixed = (weights @ v).transpose(0, 2, 1, 3).reshape(batch, tokens, -1)
        walk.x = self.linear(name + ".out", mixed)

    def run_position(self, walk, name, layer):
        walk.x = walk.x + self.tensors[name + ".weight"][:walk.x.shape[1]]

    def run_mean_pool(self, walk, name, layer):
        count = np.maximum(walk.there.sum(axis=1), 1)[:, None].astype(np.float32)
        walk.x = (walk.x * walk.there[:, :, None]).sum(axis=1) / count
        walk.tokens = False

    def run_pointer(self, walk, name, layer):
        f = self.linear(name, walk.x)
        scores = (f[:, 1:] @ f[:, 0, :, None])[:, :, 0] / np.float32(math.sqrt(layer["units"]))
        walk.x = np.where(walk.there[:, 1:], scores, 0)
        walk.tokens = False

    def run_one_hot(self, walk, name, layer):
        rest = np.delete(walk.x, layer["column"], axis=-1)
        codes = walk.x[..., layer["column"], None] == np.arange(layer["codes"])
        walk.x = np.concatenate([rest, codes.astype(np.float32)], axis=-1)

    def edges(self, walk):
        """How many edges lead from node j to node i: (B, i, j)."""
        numbers = walk.parts[walk.seen["name"] + "_edges"][:, 1:].astype(np.int64)
        edges = np.zeros((*walk.there.shape, walk.there.shape[1]), dtype=np.float32)
        for row, there, to in zip(numbers, walk.there, edges):
            nodes = int(there.sum())
            starts, sources = row[:nodes + 1], row[nodes + 1:]
            for i in range(nodes if len(sources) else 0):
                own = sources[starts[i]:max(starts[i], starts[i + 1])]
                np.add.at(to[i], own[(own >= 0) & (own < nodes)], 1)
        return edges

    def run_message_passing(self, walk, name, layer):
        edges = self.edges(walk)
        mean = edges @ walk.x / np.maximum(edges.sum(axis=2, keepdims=True), 1)
        walk.x = self.linear(name, np.concatenate([walk.x, mean], axis=2))

    def run_graph_attention(self, walk, name, layer):
        batch, nodes, _ = walk.x.shape
        parts = self.linear(name + ".qkv", walk.x).reshape(batch, nodes, 3, layer["heads"], -1)
        q, k, v = parts.transpose(2, 0, 3, 1, 4)  # (B, heads, nodes, width) each
        ours, theirs = np.split(self.tensors[name + ".score"][:, None], 2, axis=2)
        scores = (q * ours).sum(axis=3)[..., None] + (k * theirs).sum(axis=3)[:, :, None]
        scores = np.where(scores > 0, scores, np.float32(0.2) * scores)
        edges = self.edges(walk)[:, None]
        most = np.where(edges > 0, scores, np.float32(-1e30)).max(axis=3, keepdims=True)
        weights = edges * np.exp(np.minimum(scores - most, 0))
        weights /= np.maximum(weights.sum(axis=3, keepdims=True), np.float32(1e-30))
        walk.x = self.linear(name + ".out", (weights @ v).transpose(0, 2, 1, 3).reshape(batch, nodes, -1))

    def run_graph_pool(self, walk, name, layer):
        x, own = walk.x, walk.parts[walk.seen["name"] + "_node"][:, 0].astype(np.int64)
        nodes = walk.there.sum(axis=1)
        picked = x[np.arange(len(x)), np.clip(own, 0, x.shape[1] - 1)]
        picked = np.where(((own >= 0) & (own < nodes))[:, None], picked, 0)
        self.run_mean_pool(walk, name, layer)
        walk.x = np.concatenate([walk.x, picked], axis=1)

    RUN = {"linear": run_linear, "noisy_linear": run_linear, "layer_norm": run_layer_norm,
           "history": run_history, "one_hot": run_one_hot, "message_passing": run_message_passing, "graph_attention": run_graph_attention,
           "graph_pool": run_graph_pool,
           "cosine_embedding": run_cosine_embedding, "embedding": run_embedding, "conv2d": run_conv2d,
           "residual": run_residual, "gru": run_gru, "lstm": run_lstm, "attention": run_attention,
           "position": run_position, "mean_pool": run_mean_pool, "pointer": run_pointer}

    def normalized(self, x):
        if not self.network["normalize_observations"]:
            return x
        clip = self.network["observation_clip"]
        return np.clip((x - self.tensors["normalizer.mean"]) * self.tensors["normalizer.scale"], -clip, clip)

    def begin(self, x, tau, memory):
        """What the first layer takes, of a network without inputs of their own."""
        shape, there, image = self.shape(), None, None
        types = {layer["type"] for layer in [*self.layers, *self.network["value_layers"]]}
        if types & set(LOOK_ACROSS):
            there = (x.reshape(len(x), shape[0], -1) != 0).any(axis=2)
            if self.layers[-1]["type"] == "pointer":
                there[:, 0] = True
        if len(shape) in (2, 3):
            image = [1] * (3 - len(shape)) + shape
        x = self.normalized(x)
        return Walk(x if there is None else x.reshape(len(x), shape[0], -1), tau, memory, there, image, self.observation)

    def tokens(self, o, layers, combine):
        """How many tokens an observation has, padding included; 0: it has none."""
        types, shape = [layer["type"] for layer in layers], self.shape(o)
        if combine != "tokens" and not set(types) & set(LOOK_ACROSS) and \
                not (o["counted"] and o["whole"]):
            return 0
        if not o["whole"]:
            return shape[0] if len(shape) > 1 - o["counted"] and types[:1] != ["conv2d"] else 0
        words, columns = math.prod(shape), layers[0]["columns"]
        if columns:
            return shape[0] if len(shape) > 1 else words // columns
        return words // shape[-1] if len(shape) > 1 else words

    def is_of_graph(self, name):
        """Whether an observation is read by the layers of a graph and has none of its own."""
        graphs = [n for n, layers in self.branches.items() if any(layer["type"] in OVER_EDGES for layer in layers)]
        return name in [n + part for n in graphs for part in ("_edges", "_node", "_version")]

    def split(self, raw):
        """The numbers of each observation, by its name."""
        ends = np.cumsum([self.frame_stack * (self.words(o) + o["counted"]) for o in self.observations])
        return dict(zip((o["name"] for o in self.observations), np.split(raw, ends[:-1], axis=1)))

    def members(self, group):
        """The inputs of a group, (name, layers or group), in the world's order; a group is where its first observation
        is."""
        names = [o["name"] for o in self.observations]
        place = lambda name, own: min((place(*one) for one in own["inputs"].items()), default=0) \
            if isinstance(own, dict) else names.index(name)
        return sorted(group["inputs"].items(), key=lambda one: place(*one))

    def walk_input(self, o, combine, parts, x, tau, memory):
        """One of several observations through its layers; `parts` are all, before they were normalised."""
        raw = parts[o["name"]]
        layers, shape = self.branches[o["name"]], self.shape(o)
        tokens, counts = self.tokens(o, layers, combine), self.frame_stack if o["counted"] else 0
        there = image = None
        if tokens:
            x, n = x[:, counts:].reshape(len(x), tokens, -1), tokens // max(counts, 1)
            if counts:  # numbers of each token, of each that is counted
                item = self.words(o) // o["shape"][0]
                there = np.arange(n) * x.shape[2] < raw[:, :counts, None] * item
                there = there.reshape(len(x), tokens)
            else:
                there = (raw.reshape(len(x), tokens, -1) != 0).any(axis=2)
        elif len(shape) in (2, 3) and not counts:
            image = [1] * (3 - len(shape)) + shape
        walk = Walk(x, tau, memory, there, image, o)
        walk.parts = parts
        self.run(walk, layers, "inputs.%s" % o["name"])
        return walk

    def combine(self, group, parts, x, tau, memory):
        """The inputs of a group, each through its own layers: side by side, or their tokens one after another. `x`: the
        numbers of all observations, `parts`: the same before they were normalised."""
        walks, by_name = [], {o["name"]: o for o in self.observations}
        for name, own in self.members(group):
            if isinstance(own, dict):
                walks.append(self.combine(own, parts, x, tau, memory))
                self.run(walks[-1], own["layers"], "inputs.%s" % name)
            else:
                walks.append(self.walk_input(by_name[name], group["combine"], parts, x[name], tau, memory))
        if group["combine"] != "tokens":
            return Walk(np.concatenate([self.side_by_side(walk) for walk in walks], axis=1), tau, memory)
        rows = [walk.x if walk.tokens else walk.x[:, None] for walk in walks]
        there = [walk.there if walk.tokens else np.ones((len(walk.x), 1), bool) for walk in walks]
        rows, there = np.concatenate(rows, axis=1), np.concatenate(there, axis=1)
        return Walk(rows * there[:, :, None], tau, memory, there)

    def begin_several(self, x, tau, memory):
        """What the first layer takes, of a network with inputs of their own."""
        walk = self.combine(self.network, self.split(x), self.split(self.normalized(x)), tau, memory)
        if walk.tokens and self.layers and self.layers[-1]["type"] == "pointer":
            walk.there[:, 0] = True
        return walk

    @staticmethod
    def side_by_side(walk):
        if not walk.tokens:
            return walk.x
        x = walk.x if walk.there is None else walk.x * walk.there[:, :, None]
        return x.reshape(len(x), -1)

    def run(self, walk, layers, name):
        walk.before = []
        for i, layer in enumerate(layers):
            walk.before.append(walk.x)
            if layer["type"] in ACTIVATIONS:
                walk.x = ACTIVATIONS[layer["type"]](walk.x)
            else:
                self.RUN[layer["type"]](self, walk, "%s.%d" % (name, i), layer)

    def outputs(self, x, tau=None, memory=None):
        """x (B, inputs), tau (B, N) for iqn -> (B, [N,] actions * outputs per action): what the policy acts by,
        values of actions or logits, then means and log deviations of reals. `memory` is that of a State, and goes on with
        it."""
        x, memory = np.asarray(x, dtype=np.float32), {} if memory is None else memory
        walk = self.begin_several(x, tau, memory) if self.branches else self.begin(x, tau, memory)
        self.run(walk, self.layers, "layers")
        if self.layers and self.layers[-1]["type"] == "pointer":
            return walk.x
        if self.history:  # of each query: logits of actions, then of types
            return self.linear("head", walk.x[:, -self.history["queries"]:]).reshape(len(x), -1)
        x = self.linear("head", self.side_by_side(walk))
        if self.reals and self.reals["deviation"] == "parameter":
            x = np.concatenate([x, np.tile(self.tensors["head.log_deviation"], (len(x), 1))], axis=1)
        if self.network["head"]["dueling"]:
            per_action = x.shape[-1] // (self.actions + 1)
            split = x.reshape(x.shape[:-1] + (self.actions + 1, per_action))
            advantages, values = split[..., :-1, :], split[..., -1:, :]
            x = values + advantages - advantages.mean(axis=-2, keepdims=True)
            x = x.reshape(x.shape[:-2] + (-1,))
        return x

    def q(self, x, rng=None, memory=None):
        """x (B, inputs) -> expected return, or logit, of every action (B, actions)."""
        if self.algorithm == "iqn":
            rng = rng or np.random.default_rng()
            tau = rng.random((len(x), self.acting_quantiles), dtype=np.float32)
            return self.outputs(x, tau).mean(axis=1)
        return self.outputs(x, memory=memory).reshape(len(x), self.actions, -1).mean(axis=2)

    def within_bounds(self, means):
        """The greedy real numbers, as the world takes them."""
        low, high = (np.array(self.reals[end], dtype=np.float32) for end in ("low", "high"))
        share = np.tanh(means) if self.reals["bound"] == "tanh" else np.clip(means, -1, 1)
        return np.clip(low + (share + 1) / 2 * (high - low), low, high)

    def act(self, observation, state, mask=None, rng=None):
        """The greedy action, or a list of them where an agent makes several choices; where it chooses real numbers
        an array of them, alone or behind the choices in a list. `state` (from new_state) is moved on by one step.
        Several observations are {name: array}."""
        if self.history:
            raise ValueError("this policy acts on histories, which outputs() takes: see docs/networks.md")
        x, reals = self.see(observation, state)[None], []
        if self.reals:
            out = self.outputs(x, memory=state.memory)[0]
            q, means = out[:self.actions], out[self.actions:self.actions + len(self.reals["low"])]
            reals = [self.within_bounds(means)]
        else:
            q = self.q(x, rng, state.memory)[0]
        if mask is not None:
            q = np.where(np.asarray(mask) != 0, q, -np.inf)
        parts = np.split(q, np.cumsum(self.choices)[:-1]) if self.choices else []
        best = [int(np.argmax(part)) for part in parts] + reals
        return best if len(best) > 1 else best[0]


# --- trying it out -----------------------------------------------------------------------------


def describe(policy):
    for key in ("experiment", "policy", "algorithm", "world", "network", "actions", "frame_stack",
                "updates", "env_steps"):
        print("%-12s %s" % (key, policy.metadata[key]))
    print("%-12s %d" % ("parameters", sum(t.size for t in policy.tensors.values())))


def random_observation(o, rng):
    shape = list(o["shape"])
    if o["counted"]:
        shape[0] = int(rng.integers(0, shape[0] + 1))
    if o["dtype"] == "f32":
        return rng.normal(size=shape)
    high = o["codes"] if o["dtype"] == "code8" else o["high"] + 1
    return rng.integers(0, max(1, min(int(high), 127)), size=shape)


def act_at_random(policy, count, rng):
    for _ in range(count):
        seen = {o["name"]: random_observation(o, rng) for o in policy.observations}
        print("action", policy.act(seen.get(None, seen), policy.new_state(), rng=rng))


class CartPole:
    """Barto, Sutton and Anderson 1983, with the constants that everybody uses."""

    def __init__(self, rng):
        self.rng = rng

    def reset(self):
        self.state = self.rng.uniform(-0.05, 0.05, size=4)
        return self.state

    def step(self, action):
        x, v, angle, spin = self.state
        force = 10.0 if action == 1 else -10.0
        sine, cosine = math.sin(angle), math.cos(angle)
        common = (force + 0.05 * spin * spin * sine) / 1.1
        turn = (9.8 * sine - cosine * common) / (0.5 * (4 / 3 - 0.1 * cosine * cosine / 1.1))
        push = common - 0.05 * turn * cosine / 1.1
        self.state = np.array([x + 0.02 * v, v + 0.02 * push, angle + 0.02 * spin,
                               spin + 0.02 * turn])
        ended = abs(self.state[0]) > 2.4 or abs(self.state[2]) > 12 * 2 * math.pi / 360
        return self.state, 1.0, ended


def play(policy, episodes, rng):
    world = json.loads(policy.metadata["world"])["name"]
    if world != "cartpole":
        sys.exit("--play: this example knows how cartpole moves, not %s" % world)
    scores = []
    for episode in range(episodes):
        game, score, ended = CartPole(rng), 0.0, False
        observation, state = game.reset(), policy.new_state()
        while not ended and score < 500:
            observation, reward, ended = game.step(policy.act(observation, state, rng=rng))
            score += reward
        scores.append(score)
        print("episode %d: %g" % (episode + 1, score))
    print("mean %g" % np.mean(scores))


def run_files(policy, inputs, tau, steps, outputs):
    x = np.fromfile(inputs, dtype="<f4").reshape(-1, policy.inputs)
    t = np.fromfile(tau, dtype="<f4").reshape(len(x), -1) if tau else None
    memory = {}
    rows = len(x) // steps  # of a step: recurrent layers remember from one to the next
    with open(outputs, "wb") as file:
        for at in range(0, len(x), rows):
            part = policy.outputs(x[at:at + rows], None if t is None else t[at:at + rows], memory)
            file.write(part.astype("<f4").tobytes())


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("policy", help="a file of policies/ or checkpoints/ of a run directory")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--play", type=int, metavar="EPISODES")
    parser.add_argument("--inputs", help="raw float32 (rows, inputs)")
    parser.add_argument("--tau", help="raw float32 (rows, quantiles), for iqn")
    parser.add_argument("--steps", type=int, default=1, help="rows are (steps, lanes), for recurrent layers")
    parser.add_argument("--outputs", help="where the network's outputs go, raw float32")
    arguments = parser.parse_args()
    try:
        policy = Policy.load(arguments.policy)
    except (OSError, ValueError) as error:
        sys.exit("use_policy.py: %s" % error)
    rng = np.random.default_rng(arguments.seed)
    if arguments.inputs:
        run_files(policy, arguments.inputs, arguments.tau, arguments.steps, arguments.outputs)
    elif arguments.play:
        play(policy, arguments.play, rng)
    else:
        describe(policy)
        if not policy.history:
            act_at_random(policy, 5, rng)


if __name__ == "__main__":
    main()
