#!/usr/bin/env python3
"""Loads a policy that Ringmaster trained and uses it, with nothing but NumPy.

A policy is one safetensors file: parameters by name, and metadata that says which network they belong
to, how an observation becomes its input and how its output becomes an action. Works for networks of linear,
noisy and cosine layers with their activations, whichever algorithm trained them; others (recurrent,
convolutions, attention) it refuses by name.

  use_policy.py POLICY.safetensors                  says what it is, and acts on random observations
  use_policy.py POLICY.safetensors --play 10        plays episodes (world cartpole only)
  use_policy.py POLICY.safetensors --inputs X --outputs Q [--tau T]
                                                    runs the network on raw float32 files

In a program of your own:

  from use_policy import Policy
  policy = Policy.load("runs/.../policies/agent_0.safetensors")
  state = policy.new_state()
  action = policy.act(observation, state)           # greedy; `state` holds the frame stack
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


class Policy:
    def __init__(self, tensors, metadata):
        if metadata.get("format") != "ringmaster-policy-1":
            raise ValueError("not a Ringmaster policy: format is %r" % metadata.get("format"))
        self.tensors = tensors
        self.metadata = metadata
        self.algorithm = metadata["algorithm"]
        self.network = json.loads(metadata["network"])
        self.observation = json.loads(metadata["observation"])
        self.actions = int(metadata["actions"])
        self.quantiles = int(metadata["quantiles"])
        self.acting_quantiles = int(metadata["acting_quantiles"])
        self.frame_stack = int(metadata["frame_stack"])
        self.inputs = self.observation["features"] * self.frame_stack

    @classmethod
    def load(cls, path):
        return cls(*load_safetensors(path))

    # --- from observations to inputs ---------------------------------------------------------

    def frame(self, observation):
        """One observation, in the world's own type, as the network's floats."""
        dtype = OBSERVATION_DTYPES[self.observation["dtype"]]
        flat = np.asarray(observation, dtype=dtype).reshape(-1)
        if self.observation["dtype"] != "code8":
            return flat.astype(np.float32)
        codebook = np.array(self.observation["codebook"], dtype=np.float32)
        return codebook[flat].T.reshape(-1)  # channel by channel

    def new_state(self):
        """Frames at the start of an episode: those before its first are zeros."""
        return np.zeros((self.frame_stack, self.observation["features"]), dtype=np.float32)

    # --- the network ---------------------------------------------------------------------------

    def linear(self, name, x):
        return x @ self.tensors[name + ".weight"].T + self.tensors[name + ".bias"]

    def outputs(self, x, tau=None):
        """x (B, inputs), tau (B, N) for iqn -> (B, [N,] actions * outputs per action)."""
        x = np.asarray(x, dtype=np.float32)
        if self.network["normalize_observations"]:
            clip = self.network["observation_clip"]
            x = (x - self.tensors["normalizer.mean"]) * self.tensors["normalizer.scale"]
            x = np.clip(x, -clip, clip)
        for i, layer in enumerate(self.network["layers"]):
            name = "layers.%d" % i
            kind = layer["type"]
            if kind in ("linear", "noisy_linear"):  # noise is for training
                x = self.linear(name, x)
            elif kind == "relu":
                x = np.maximum(x, 0)
            elif kind == "tanh":
                x = np.tanh(x)
            elif kind == "gelu":
                x = gelu(x)
            elif kind == "layer_norm":
                x = layer_norm(x, self.tensors[name + ".weight"], self.tensors[name + ".bias"])
            elif kind == "cosine_embedding":
                n = np.arange(1, self.tensors[name + ".weight"].shape[1] + 1, dtype=np.float32)
                cosines = np.cos(np.float32(math.pi) * n * tau[:, :, None])
                phi = np.maximum(self.linear(name, cosines), 0)
                x = x[:, None, :] * phi
            else:
                raise ValueError("layer %d: unknown type %r" % (i, kind))
        x = self.linear("head", x)
        if self.network["head"]["dueling"]:
            per_action = x.shape[-1] // (self.actions + 1)
            split = x.reshape(x.shape[:-1] + (self.actions + 1, per_action))
            advantages, values = split[..., :-1, :], split[..., -1:, :]
            x = values + advantages - advantages.mean(axis=-2, keepdims=True)
            x = x.reshape(x.shape[:-2] + (-1,))
        return x

    def q(self, x, rng=None):
        """x (B, inputs) -> expected return of every action (B, actions)."""
        if self.algorithm == "iqn":
            rng = rng or np.random.default_rng()
            tau = rng.random((len(x), self.acting_quantiles), dtype=np.float32)
            return self.outputs(x, tau).mean(axis=1)
        return self.outputs(x).reshape(len(x), self.actions, -1).mean(axis=2)

    def act(self, observation, state, mask=None, rng=None):
        """The greedy action; `state` (from new_state) is moved on by one frame."""
        state[:-1] = state[1:]
        state[-1] = self.frame(observation)
        q = self.q(state.reshape(1, -1), rng)[0]
        if mask is not None:
            q = np.where(np.asarray(mask) == 1, q, -np.inf)
        return int(np.argmax(q))


# --- trying it out -----------------------------------------------------------------------------


def describe(policy):
    for key in ("experiment", "policy", "algorithm", "world", "network", "actions", "frame_stack",
                "updates", "env_steps"):
        print("%-12s %s" % (key, policy.metadata[key]))
    print("%-12s %d" % ("parameters", sum(t.size for t in policy.tensors.values())))


def act_at_random(policy, count, rng):
    shape, dtype = policy.observation["shape"], policy.observation["dtype"]
    for _ in range(count):
        if dtype == "f32":
            observation = rng.normal(size=shape)
        else:
            high = policy.observation["codes"] if dtype == "code8" else policy.observation["high"] + 1
            observation = rng.integers(0, max(1, min(high, 127)), size=shape)
        print("action", policy.act(observation, policy.new_state(), rng=rng))


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


def run_files(policy, inputs, tau, outputs):
    x = np.fromfile(inputs, dtype="<f4").reshape(-1, policy.inputs)
    t = np.fromfile(tau, dtype="<f4").reshape(len(x), -1) if tau else None
    policy.outputs(x, t).astype("<f4").tofile(outputs)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("policy", help="a file of policies/ or checkpoints/ of a run directory")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--play", type=int, metavar="EPISODES")
    parser.add_argument("--inputs", help="raw float32 (rows, inputs)")
    parser.add_argument("--tau", help="raw float32 (rows, quantiles), for iqn")
    parser.add_argument("--outputs", help="where the network's outputs go, raw float32")
    arguments = parser.parse_args()
    try:
        policy = Policy.load(arguments.policy)
    except (OSError, ValueError) as error:
        sys.exit("use_policy.py: %s" % error)
    rng = np.random.default_rng(arguments.seed)
    if arguments.inputs:
        run_files(policy, arguments.inputs, arguments.tau, arguments.outputs)
    elif arguments.play:
        play(policy, arguments.play, rng)
    else:
        describe(policy)
        act_at_random(policy, 5, rng)


if __name__ == "__main__":
    main()
