"""What rollouts.py and batches.py have in common: what dump_rollouts and dump_batches wrote, networks, Adam and
running scales in PyTorch, in double.

After every rollout or update: relative L2 of the weights at most 2e-6, of their change since the start at
most 1e-4; losses, norms and the like, and errors of samples, within 1e-5 of one plus their size."""

import json
import math
import pathlib
import sys

import numpy
import torch
import torch.nn.functional as F

WEIGHTS, WAY, FIGURES = 2e-6, 1e-4, 1e-5
torch.set_default_dtype(torch.float64)


class Case:
    """What was written of one sample."""

    def __init__(self, path):
        self.name = path.stem
        self.about = json.loads(path.read_text())
        flat = numpy.fromfile(path.with_suffix(".f32"), numpy.float32).astype(numpy.float64)
        self.arrays, at = {}, 0
        for name, n in self.about["arrays"]:
            self.arrays[name] = torch.from_numpy(flat[at : at + n].copy())
            at += n
        e = self.about["experiment"]
        self.algorithm, self.network, self.sample = e["algorithm"], e["network"], e["sample"]
        self.optimizer, self.seed, self.priority = e["optimizer"], e["seed"], e["priority"]
        self.worst = {"weights": 0.0, "way": 0.0, "figures": 0.0}

    def get(self, name, number, *shape):
        a = self.arrays[f"{name}.{number}"]
        return (a.reshape(shape) if shape else a) if a.numel() else None

    def compare_weights(self, number, net):
        ours, start = self.get("params", number), self.get("params", 0)
        theirs = net.flat()
        apart = (ours - theirs).norm()
        self.worst["weights"] = max(self.worst["weights"], (apart / theirs.norm()).item())
        self.worst["way"] = max(self.worst["way"], (apart / (theirs - start).norm()).item())

    def compare(self, name, ours, theirs):
        ours, theirs = torch.as_tensor(ours), torch.as_tensor(theirs)
        off = ((ours - theirs).abs() / (1 + theirs.abs())).max().item()
        if not off <= FIGURES:
            print(f"    {self.name}: {name}: {ours.reshape(-1)[:4].tolist()} instead of "
                  f"{theirs.reshape(-1)[:4].tolist()}, {off:.2g} apart")
        self.worst["figures"] = max(self.worst["figures"], off if off == off else math.inf)

    def verdict(self):
        good = (self.worst["weights"] <= WEIGHTS and self.worst["way"] <= WAY
                and self.worst["figures"] <= FIGURES)
        print(f"  {self.name:14} weights {self.worst['weights']:8.2g} of {WEIGHTS:.0e}, their way "
              f"{self.worst['way']:8.2g} of {WAY:.0e}, figures {self.worst['figures']:8.2g} of "
              f"{FIGURES:.0e}: {'ok' if good else 'FAILED'}", flush=True)
        return good


class Net:
    """A network's tensors by name, and what it says of rows. State is (lanes, floats)."""

    def __init__(self, case, tensors, flat):
        self.case, self.config = case, case.network
        self.names = [t[0] for t in tensors]
        self.trained = {t[0] for t in tensors if t[3]}
        self.places = tensors
        self.p = {n: flat[at : at + math.prod(shape)].reshape(shape).clone()
                  for n, shape, at, _ in tensors}
        for name in self.trained:
            self.p[name].requires_grad_()

    def copy(self):
        return Net(self.case, self.places, self.flat())

    def flat(self):
        size = max(at + math.prod(shape) for _, shape, at, _ in self.places)
        out = torch.zeros(size)
        for n, shape, at, _ in self.places:
            out[at : at + math.prod(shape)] = self.p[n].detach().reshape(-1)
        return out

    def follow(self, other, part):
        for name in self.names:
            with torch.no_grad():
                self.p[name].lerp_(other.p[name], part)

    def linear(self, x, name):
        return F.linear(x, self.p[name + "weight"], self.p[name + "bias"])

    def recur(self, x, name, kind, units, state, restart):
        """x (steps, lanes, features)."""
        weights = [self.p[name + part] for part in ("ih.weight", "hh.weight", "ih.bias", "hh.bias")]
        results = []
        for row, again in zip(x, restart):
            state = torch.where(again[:, None], torch.zeros_like(state), state)
            if kind == "gru":
                state = h = torch.gru_cell(row, state, *weights)
            else:
                h, c = torch.lstm_cell(row, (state[:, :units], state[:, units:]), *weights)
                state = torch.cat([h, c], 1)
            results.append(h)
        return torch.stack(results), state

    def layers(self, x, prefix, states, restart, tau):
        after = []
        for i, layer in enumerate(self.config["layers"]):
            kind, name = layer["type"], f"{prefix}layers.{i}."
            if kind == "linear":
                x = self.linear(x, name)
            elif kind == "tanh":
                x = torch.tanh(x)
            elif kind == "cosine_embedding":
                i_pi = torch.arange(1, layer["cosines"] + 1) * math.pi
                phi = torch.relu(self.linear(torch.cos(tau[..., None] * i_pi), name))
                x = x[:, None] * phi
            else:
                width = layer["units"] * (1 if kind == "gru" else 2)
                state, states = states[:, :width], states[:, width:]
                x, state = self.recur(x, name, kind, layer["units"], state, restart)
                after.append(state)
        return x, states, after

    def __call__(self, x, state=None, restart=None, tau=None, action=None):
        """Outputs (..., actions * each), values or None, states after."""
        if self.config["normalize_observations"]:
            most = self.config["observation_clip"]
            x = ((x - self.p["normalizer.mean"]) * self.p["normalizer.scale"]).clamp(-most, most)
        if action is not None:
            x = torch.cat([x, action], -1)
        y, rest, after = self.layers(x, "", state, restart, tau)
        out = self.linear(y, "head.")
        if "head.log_deviation" in self.p:
            out = torch.cat([out, self.p["head.log_deviation"].expand(*out.shape[:-1], -1)], -1)
        if self.config["head"]["dueling"]:
            actions = self.case.about["actions"]
            out = out.unflatten(-1, (actions + 1, -1))
            out = out[..., -1:, :] + out[..., :-1, :] - out[..., :-1, :].mean(-2, keepdim=True)
            out = out.flatten(-2)
        value = None
        if "value_head.weight" in self.p:
            if self.config["trunk"] == "separate":
                y, _, more = self.layers(x, "value_", rest, restart, tau)
                after += more
            value = self.linear(y, "value_head.")[..., 0]
        return out, value, torch.cat(after, 1) if after else None


class Adam:
    """Kingma 2015 with the gradient's norm clipped; the value's parameters apart if asked for."""

    def __init__(self, case, net):
        self.o, self.net, self.steps = case.optimizer, net, 0
        self.m = {n: torch.zeros_like(net.p[n]) for n in net.trained}
        self.v = {n: torch.zeros_like(net.p[n]) for n in net.trained}

    def step(self, loss):
        names = sorted(self.net.trained)
        grads = dict(zip(names, torch.autograd.grad(loss, [self.net.p[n] for n in names],
                                                    allow_unused=True)))
        grads = {n: torch.zeros_like(self.net.p[n]) if g is None else g for n, g in grads.items()}
        groups = [names]
        if self.o["clip_apart"]:
            groups = [[n for n in names if n.startswith("value_") == own] for own in (True, False)]
        whole = math.sqrt(sum((g ** 2).sum().item() for g in grads.values()))
        for group in groups:
            norm = math.sqrt(sum((grads[n] ** 2).sum().item() for n in group))
            most = self.o["grad_clip"]
            if 0 < most < norm:
                for n in group:
                    grads[n] = grads[n] * (most / norm)
        self.steps += 1
        b1, b2 = self.o["beta1"], self.o["beta2"]
        with torch.no_grad():
            for n, g in grads.items():
                self.m[n] = b1 * self.m[n] + (1 - b1) * g
                self.v[n] = b2 * self.v[n] + (1 - b2) * g ** 2
                m, v = self.m[n] / (1 - b1 ** self.steps), self.v[n] / (1 - b2 ** self.steps)
                self.net.p[n] -= self.o["learning_rate"] * m / (v.sqrt() + self.o["epsilon"])
        return whole


class Normaliser:
    """All rows there were."""

    def __init__(self):
        self.rows = torch.zeros(0)

    def add(self, x, *nets):
        self.rows = torch.cat([self.rows.reshape(-1, x.shape[-1]), x])
        for net in nets:
            if "normalizer.mean" in net.p:
                net.p["normalizer.mean"] = self.rows.mean(0)
                net.p["normalizer.scale"] = (self.rows.var(0, unbiased=False) + 1e-8).rsqrt()


def log_softmax(logits, mask):
    """Illegal logits far below the others before softmax (Huang and Ontanon 2020)."""
    return torch.log_softmax(torch.where(mask > 0, logits, torch.full_like(logits, -1e8)), -1)


def main(check):
    torch.set_num_threads(1)
    paths = sorted(pathlib.Path(sys.argv[1]).glob("*.json"))
    if len(sys.argv) > 2:
        paths = [p for p in paths if any(name in p.stem for name in sys.argv[2:])]
    print(f"PyTorch {torch.__version__}, {len(paths)} learners")
    passed = 0
    for path in paths:
        case = Case(path)
        check(case)
        passed += case.verdict()
    print(f"{passed} passed, {len(paths) - passed} failed")
    return 0 if paths and passed == len(paths) else 1
