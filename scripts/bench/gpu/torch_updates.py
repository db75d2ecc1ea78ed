#!/usr/bin/env python3
"""The updates of scripts/bench/bench_cuda.c and bench_history.c in PyTorch, for a comparison in the same run.

usage: torch_updates.py [--device cuda:0] [--seconds 2] [--forms eager,compiled] [NAME]...

Names:
  mlp     DQN, two layers of 128, batch 1024, Adam: updates/s
  w1      the treasure hunt: five IQN learners, batch 64, 12 quantiles, noisy layers, double Q, soft target:
          updates/s of all five together
  w3      the Goodhart grid: PPO on 24,576 samples, 4 epochs of one minibatch, a convolutional network of 4 M
          parameters, bf16 products: environment steps/s that its updates allow (acting not counted)
  distil  the dark room's transformer: 13 regions of 80 packed queries, dropout, both losses, AdamW: updates/s
  peak    one matrix product, 8192 x 8192 x 8192 in bf16: TFLOP/s

eager: as written. compiled: torch.compile(mode="max-autotune-no-cudagraphs") of loss and gradient, and the
whole update, optimizer and target included, captured into one CUDA graph. Prints one JSON object a figure.
"""
import argparse
import json
import math
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn


class NoisyLinear(nn.Module):
    """Independent Gaussian noise on every weight (Fortunato 2018), drawn anew for every pass."""

    def __init__(self, inputs, outputs, sigma):
        super().__init__()
        bound = math.sqrt(3.0 / inputs)
        self.weight = nn.Parameter(torch.empty(outputs, inputs).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(outputs).uniform_(-bound, bound))
        self.weight_sigma = nn.Parameter(torch.full((outputs, inputs), sigma))
        self.bias_sigma = nn.Parameter(torch.full((outputs,), sigma))

    def forward(self, x):
        weight = self.weight + self.weight_sigma * torch.randn_like(self.weight)
        return F.linear(x, weight, self.bias + self.bias_sigma * torch.randn_like(self.bias))


class Iqn(nn.Module):
    def __init__(self, inputs, actions, units=250, cosines=64):
        super().__init__()
        self.base = nn.Linear(inputs, units)
        self.embed = nn.Linear(cosines, units)
        self.hidden = NoisyLinear(units, units, 0.017)
        self.advantage = NoisyLinear(units, actions, 0.017)
        self.value = NoisyLinear(units, 1, 0.017)
        self.register_buffer("pis", math.pi * torch.arange(1, cosines + 1))

    def forward(self, x, tau):
        quantiles = tau.shape[1]
        phi = torch.relu(self.embed(torch.cos(tau.unsqueeze(-1) * self.pis)))
        z = torch.relu(self.base(x)).unsqueeze(1) * phi
        z = torch.relu(self.hidden(z.view(-1, z.shape[-1])))
        advantage = self.advantage(z)
        q = self.value(z) + advantage - advantage.mean(1, keepdim=True)
        return q.view(x.shape[0], quantiles, -1)


class Grid(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(6, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(),
            nn.Conv2d(64, 64, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(7744, 512), nn.ReLU())
        self.actor, self.value = nn.Linear(512, 8), nn.Linear(512, 1)

    def forward(self, x):
        h = self.body(x)
        return self.actor(h), self.value(h).squeeze(-1)


class Dqn:
    """One learner with a target network; loss() differs."""

    def __init__(self, make, device, learning_rate, clip, tau):
        self.online, self.target = make().to(device), make().to(device)
        self.target.load_state_dict(self.online.state_dict())
        self.optimizer = torch.optim.Adam(self.online.parameters(), lr=learning_rate, capturable=device != "cpu")
        self.clip, self.tau = clip, tau
        self.gradient = self._gradient

    def compile(self):
        self.gradient = torch.compile(self._gradient, mode="max-autotune-no-cudagraphs")

    def loss(self):
        raise NotImplementedError

    def _gradient(self):
        loss = self.loss()
        loss.backward()
        return loss

    def update(self):
        self.optimizer.zero_grad(set_to_none=True)
        self.gradient()
        nn.utils.clip_grad_norm_(self.online.parameters(), self.clip, foreach=True)
        self.optimizer.step()
        with torch.no_grad():
            online, target = list(self.online.parameters()), list(self.target.parameters())
            torch._foreach_lerp_(target, online, self.tau)


class Mlp(Dqn):
    def __init__(self, device, batch=1024, inputs=4, actions=2):
        def make():
            return nn.Sequential(nn.Linear(inputs, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(),
                                 nn.Linear(128, actions))
        super().__init__(make, device, 1e-3, 10.0, 0.005)
        self.x, self.next = torch.randn(batch, inputs, device=device), torch.randn(batch, inputs, device=device)
        self.action = torch.randint(actions, (batch, 1), device=device)
        self.reward, self.discount = torch.randn(batch, device=device), torch.full((batch,), 0.99, device=device)

    def loss(self):
        with torch.no_grad():
            target = self.reward + self.discount * self.target(self.next).amax(1)
        return F.smooth_l1_loss(self.online(self.x).gather(1, self.action).squeeze(1), target)


class Treasure(Dqn):
    def __init__(self, device, inputs, actions, batch=64, quantiles=12):
        super().__init__(lambda: Iqn(inputs, actions), device, 2.5e-4, 10.0, 1e-3)
        self.quantiles, self.batch = quantiles, batch
        self.x, self.next = torch.rand(batch, inputs, device=device), torch.rand(batch, inputs, device=device)
        self.action = torch.randint(actions, (batch, 1, 1), device=device)
        self.reward = torch.randn(batch, 1, device=device)
        self.discount = torch.full((batch, 1), 0.97, device=device)

    def fractions(self):
        return torch.rand(self.batch, self.quantiles, device=self.x.device)

    def loss(self):
        with torch.no_grad():
            best = self.online(self.next, self.fractions()).mean(1).argmax(1).view(-1, 1, 1).expand(-1, self.quantiles, 1)
            y = self.reward + self.discount * self.target(self.next, self.fractions()).gather(2, best).squeeze(2)
        tau = self.fractions()
        q = self.online(self.x, tau).gather(2, self.action.expand(-1, self.quantiles, 1)).squeeze(2)
        u = y.unsqueeze(1) - q.unsqueeze(2)
        huber = torch.where(u.abs() <= 1, 0.5 * u * u, u.abs() - 0.5)
        return ((tau.unsqueeze(2) - (u.detach() < 0).float()).abs() * huber).mean(2).sum(1).mean()


class Goodhart:
    def __init__(self, device, samples=24576):
        self.net = Grid().to(device)
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=3e-4, capturable=device != "cpu")
        self.x = torch.rand(samples, 6, 11, 11, device=device)
        self.action = torch.randint(8, (samples,), device=device)
        self.logp = torch.full((samples,), -math.log(8), device=device)
        self.advantage, self.target = torch.randn(samples, device=device), torch.randn(samples, device=device)
        self.old = torch.zeros(samples, device=device)
        self.kind = "cuda" if device != "cpu" else "cpu"
        self.gradient = self._gradient

    def compile(self):
        self.gradient = torch.compile(self._gradient, mode="max-autotune-no-cudagraphs")

    def _gradient(self):
        with torch.autocast(self.kind, dtype=torch.bfloat16):
            logits, value = self.net(self.x)
        logp_all = F.log_softmax(logits.float(), 1)
        logp = logp_all.gather(1, self.action.unsqueeze(1)).squeeze(1)
        ratio = (logp - self.logp).exp()
        policy = torch.minimum(ratio * self.advantage, ratio.clamp(0.8, 1.2) * self.advantage).mean()
        value = value.float()
        clipped = self.old + (value - self.old).clamp(-0.2, 0.2)
        fit = torch.maximum((value - self.target) ** 2, (clipped - self.target) ** 2).mean()
        entropy = -(logp_all.exp() * logp_all).sum(1).mean()
        loss = -policy + 0.5 * fit - 0.01 * entropy
        loss.backward()
        return loss

    def update(self):
        self.optimizer.zero_grad(set_to_none=True)
        self.gradient()
        nn.utils.clip_grad_norm_(self.net.parameters(), 0.5, foreach=True)
        self.optimizer.step()


class Block(nn.Module):
    def __init__(self, units, heads, rate):
        super().__init__()
        self.heads, self.rate = heads, rate
        self.qkv, self.out = nn.Linear(units, 3 * units), nn.Linear(units, units)
        self.up, self.down = nn.Linear(units, 4 * units), nn.Linear(4 * units, units)
        self.norms = nn.ModuleList([nn.LayerNorm(units), nn.LayerNorm(units)])

    def forward(self, x, mask):
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        o = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=self.rate)
        x = self.norms[0](x + F.dropout(self.out(o.transpose(1, 2).flatten(2)), self.rate))
        y = self.down(F.dropout(F.gelu(self.up(x)), self.rate))
        return self.norms[1](x + F.dropout(y, self.rate))


class Darkroom(nn.Module):
    """A row of the context is a transition (kind 1), its begin (2) or its end (3)."""

    def __init__(self, context, units=64, heads=4, blocks=4, rate=0.1):
        super().__init__()
        self.rows = context
        self.context, self.query = nn.Linear(10, units), nn.Embedding(81, units)
        self.ends, self.types = nn.Parameter(torch.randn(2, units) * 0.02), nn.Embedding(3, units)
        self.position = nn.Parameter(torch.randn(328, units) * 0.02)
        self.blocks = nn.ModuleList([Block(units, heads, rate) for _ in range(blocks)])
        self.action, self.kind = nn.Linear(units, 5), nn.Linear(units, 3)

    def forward(self, kind, features, query, place, mask):
        x = torch.where((kind == 1)[..., None], self.context(features), torch.cat([self.ends, self.ends])[kind])
        x = torch.cat([x, self.query(query)], 1)
        kinds = F.pad(torch.where(kind > 1, kind - 1, 0), (0, query.shape[1]))
        x = x + self.types(kinds) + self.position[place]
        for block in self.blocks:
            x = block(x, mask)
        x = x[:, self.rows:]
        return self.action(x), self.kind(x)


class Distil:
    """Regions of packed queries, one in twelve without a region before it; one mask for a batch."""

    def __init__(self, device, pairs=13, region=80):
        context, self.samples = 2 * region + 2, pairs * region
        kind = torch.ones(pairs, context, dtype=torch.long)
        kind[:, 0], kind[:, region + 1], kind[:, region + 2] = 2, 3, 2
        kind[::12] = 0
        kind[::12, 0], kind[::12, 1:region] = 2, 1
        length = (kind > 0).sum(1)
        asks, rows = torch.arange(region), torch.arange(context + region)
        seen = length[:, None] - region + 1 + asks
        place = torch.cat([torch.arange(context).expand(pairs, -1), seen], 1)
        first = torch.cat([(torch.arange(context) + 1).expand(pairs, -1), seen], 1)
        mask = (rows < first[:, :, None]) & (rows < context) | torch.eye(context + region, dtype=torch.bool)
        given = (kind, torch.rand(pairs, context, 10), torch.randint(81, (pairs, region)), place, mask[:, None])
        self.given = tuple(x.to(device) for x in given)
        self.action = torch.randint(5, (self.samples,), device=device)
        self.kind = torch.zeros(pairs, region, dtype=torch.long, device=device)
        self.kind[:, -1] = 2
        self.net = Darkroom(context).to(device)
        assert sum(p.numel() for p in self.net.parameters()) == 227656
        self.optimizer = torch.optim.AdamW(self.net.parameters(), 3e-4, (0.9, 0.99), weight_decay=0.01, fused=True,
                                           capturable=device != "cpu")
        self.loss = self._loss

    def compile(self):
        on_device = self.action.device.type != "cpu"
        self.loss = torch.compile(self._loss, mode="max-autotune-no-cudagraphs" if on_device else "default")

    def _loss(self):
        action, kind = self.net(*self.given)
        return (F.cross_entropy(action.flatten(0, 1), self.action)
                + 0.1 * F.cross_entropy(kind.flatten(0, 1), self.kind.flatten()))

    def update(self):
        self.optimizer.zero_grad()
        self.loss().backward()
        self.optimizer.step()


def captured(update):
    """The whole update as one CUDA graph."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(5):
            update()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        update()
    return graph.replay


def rate(update, seconds, device):
    """Updates/s, the median of five."""
    def wait():
        if device != "cpu":
            torch.cuda.synchronize()
    for _ in range(5):
        update()
    wait()
    rates = []
    for _ in range(5):
        n, start = 0, time.perf_counter()
        while time.perf_counter() - start < seconds / 5:
            for _ in range(5):
                update()
            wait()
            n += 5
        rates.append(n / (time.perf_counter() - start))
    return sorted(rates)[2]


def report(name, form, value, unit):
    print(json.dumps({"name": name, "form": form, "value": value, "unit": unit, "torch": torch.__version__}),
          flush=True)


def measure(name, form, things, per_update, unit, arguments):
    """`things`: learners that are updated in turn."""
    compiled = form == "compiled"
    if compiled:
        for thing in things:
            thing.compile()
    updates = [captured(t.update) if compiled and arguments.device != "cpu" else t.update for t in things]

    def all_of_them():
        for update in updates:
            update()
    report(name, form, rate(all_of_them, arguments.seconds, arguments.device) * len(things) * per_update, unit)


def peak(arguments):
    n = 8192 if arguments.device != "cpu" else 256
    a = torch.randn(n, n, device=arguments.device, dtype=torch.bfloat16)
    b = torch.randn(n, n, device=arguments.device, dtype=torch.bfloat16)
    report("peak", "bf16", rate(lambda: a @ b, arguments.seconds, arguments.device) * 2 * n ** 3 / 1e12, "TFLOP/s")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--seconds", type=float, default=2.0, help="of every figure")
    parser.add_argument("--forms", default="eager,compiled")
    parser.add_argument("--small", action="store_true", help="few samples: does it run at all?")
    parser.add_argument("names", nargs="*", default=["peak", "mlp", "w1", "w3", "distil"])
    arguments = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cudnn.allow_tf32 = True
    samples = 192 if arguments.small else 24576
    for name in arguments.names:
        if name == "peak":
            peak(arguments)
            continue
        for form in arguments.forms.split(","):
            try:
                if name == "mlp":
                    measure(name, form, [Mlp(arguments.device)], 1, "updates/s", arguments)
                elif name == "w1":
                    hunters = [Treasure(arguments.device, 625, 4) for _ in range(5)]
                    measure(name, form, hunters, 1, "updates/s", arguments)
                elif name == "w3":
                    measure(name, form, [Goodhart(arguments.device, samples)], samples / 4, "steps/s", arguments)
                elif name == "distil":
                    measure(name, form, [Distil(arguments.device)], 1, "updates/s", arguments)
                else:
                    sys.exit(f"{name}: no such figure")
            except Exception as error:  # a peer that fails is listed with the reason
                print(json.dumps({"name": name, "form": form, "failed": str(error)[:300]}), flush=True)


if __name__ == "__main__":
    main()
