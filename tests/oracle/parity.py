"""parity.py DIRECTORY: what dump_net wrote, against the same networks in PyTorch.

Forward: rtol 1.3e-6, atol 1e-5 (torch.testing's for float32). Gradients: rtol 1e-4, atol 1e-6 of the
largest of their tensor. Weights after a thousand steps of Adam: relative L2 at most 1e-4, or twice
what rounding alone does to that network in PyTorch, where that is more."""

import json
import math
import pathlib
import sys

import numpy
import torch
import torch.nn.functional as F

ACTIVATIONS = {"relu": torch.relu, "tanh": torch.tanh, "gelu": F.gelu}


def signed_root(x):
    return torch.sign(x) * torch.sqrt(torch.abs(x))


class Net:
    def __init__(self, about, arrays):
        self.about = about
        self.noise = arrays["noise"]
        self.x = arrays["x"].reshape(about["batch"], -1)
        self.tau = arrays["tau"]
        self.p = self.split(arrays["params"])
        for t in self.p.values():
            t.requires_grad_()

    def split(self, flat):
        tensors = {}
        for name, rows, columns, offset in self.about["tensors"]:
            shape = (rows, columns) if columns else (rows,)
            tensors[name] = flat[offset : offset + math.prod(shape)].reshape(shape).clone()
        return tensors

    def flat(self):
        return torch.cat([t.detach().reshape(-1) for t in self.p.values()])

    def grads(self):
        return {
            name: torch.zeros_like(t) if t.grad is None else t.grad for name, t in self.p.items()
        }

    def linear(self, x, name, noisy):
        weight, bias = self.p[name + ".weight"], self.p[name + ".bias"]
        if noisy and self.about["noisy"]:
            out, inputs = weight.shape
            if self.about["noise_kind"] == "factorised":
                e = self.noise[self.used : self.used + inputs + out]
                e_w = torch.outer(signed_root(e[inputs:]), signed_root(e[:inputs]))
                e_b = signed_root(e[inputs:])
            else:
                e = self.noise[self.used : self.used + out * inputs + out]
                e_w, e_b = e[: out * inputs].reshape(out, inputs), e[out * inputs :]
            self.used += len(e)
            weight = weight + self.p[name + ".sigma_weight"] * e_w
            bias = bias + self.p[name + ".sigma_bias"] * e_b
        return F.linear(x, weight, bias)

    def forward(self):
        about, x = self.about, self.x
        self.used = 0
        for i, layer in enumerate(about["layers"]):
            name, kind = f"layers.{i}", layer["type"]
            if kind in ("linear", "noisy_linear"):
                x = self.linear(x, name, kind == "noisy_linear")
            elif kind == "layer_norm":
                x = F.layer_norm(x, x.shape[-1:], self.p[name + ".weight"], self.p[name + ".bias"])
            elif kind == "cosine_embedding":
                # in double: 64 pi is a coarse argument for a float's cosine
                i_pi = torch.arange(1, layer["cosines"] + 1, dtype=torch.float64) * math.pi
                cosines = torch.cos(self.tau.double()[:, None] * i_pi).float()
                phi = torch.relu(self.linear(cosines, name, False))
                x = x.repeat_interleave(about["quantiles"], 0) * phi
            else:
                x = ACTIVATIONS[kind](x)
        x = self.linear(x, "head", about["noisy_head"])
        if about["dueling"]:
            x = x.reshape(len(x), about["actions"] + 1, about["outputs_per_action"])
            advantage, value = x[:, :-1], x[:, -1:]
            x = value + advantage - advantage.mean(1, keepdim=True)
        return x.reshape(len(x), -1)


def train(net, wanted):
    """The weights after the steps of Adam that dump_net made, in the net's precision."""
    optimizer = torch.optim.Adam(net.p.values(), lr=2.5e-4, betas=(0.9, 0.999), eps=1e-8)
    for _ in range(net.about["adam_steps"]):
        optimizer.zero_grad()
        out = net.forward()
        ((out - wanted.reshape(out.shape)) ** 2).mean().backward()
        optimizer.step()
    return net.flat().double()


def rounding_alone(about, arrays, trained):
    """How far PyTorch itself ends when its first weights are off by a part in a million.

    That is what rounding adds up to over the steps in the smooth networks here. But a ReLU that switches
    a step sooner, or an Adam step of a gradient near 1e-8, makes more of it than any bound on the
    arithmetic covers."""
    worst = 0.0
    for seed in range(4):
        torch.manual_seed(seed)
        signs = torch.sign(torch.rand_like(arrays["params"]) - 0.5)
        moved = {**arrays, "params": arrays["params"] * (1 + 1e-6 * signs)}
        other = train(Net(about, moved), arrays["wanted"])
        worst = max(worst, ((other - trained).norm() / trained.norm()).item())
    return worst


def check(path):
    about = json.loads(path.read_text())
    flat = torch.from_numpy(numpy.fromfile(path.with_suffix(".f32"), numpy.float32))
    arrays = dict(zip([a[0] for a in about["arrays"]], flat.split([a[1] for a in about["arrays"]])))
    net = Net(about, arrays)
    complaints = []

    out = net.forward()
    want = arrays["out"].reshape(out.shape)
    if not torch.allclose(out, want, rtol=1.3e-6, atol=1e-5):
        complaints.append(f"forward differs by {(out - want).abs().max():.3g}")

    out.backward(arrays["d_out"].reshape(out.shape))
    theirs, worst = net.grads(), 0.0
    for name, ours in net.split(arrays["grads"]).items():
        atol = 1e-6 * max(1.0, theirs[name].abs().max().item())
        excess = (ours - theirs[name]).abs() / (1e-4 * theirs[name].abs() + atol)
        worst = max(worst, excess.max().item())
    if not worst <= 1:
        complaints.append(f"gradients differ by {worst:.3g} times what is allowed")

    trained = train(net, arrays["wanted"])
    ours, start = arrays["trained"].double(), arrays["params"].double()
    distance = ((trained - ours).norm() / trained.norm()).item()
    moved = ((trained - start).norm() / start.norm()).item()
    allowed = 1e-4
    if not distance <= allowed:
        allowed = max(allowed, 2 * rounding_alone(about, arrays, trained))
    if not distance <= allowed:
        complaints.append(f"weights after Adam differ by {distance:.3g}, {allowed:.3g} is allowed")
    verdict = "; ".join(complaints) or "ok"
    print(f"  {path.stem:30} gradients {worst:6.3f} of allowed, "
          f"Adam moved {moved:8.3g}, apart {distance:8.2g} of {allowed:8.2g}: {verdict}")
    return not complaints


def main():
    torch.set_num_threads(1)
    paths = sorted(pathlib.Path(sys.argv[1]).glob("*.json"))
    print(f"PyTorch {torch.__version__}, {len(paths)} networks")
    passed = sum([check(path) for path in paths])
    print(f"{passed} passed, {len(paths) - passed} failed")
    return 0 if paths and passed == len(paths) else 1


sys.exit(main())
