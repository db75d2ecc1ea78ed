"""parity.py DIRECTORY [NAME...]: what dump_net wrote, against the same networks in PyTorch.

Forward: rtol 1.3e-6, atol 1e-5 (torch.testing's for float32). Gradients: rtol 1e-4, atol 1e-6 of the
largest of their tensor. Weights after a thousand steps of Adam: relative L2 at most 1e-4 from PyTorch in
float64, or twice as far as PyTorch ends from itself when its start is moved by a millionth of its length or when it
computes in float32.
Numbers whose exact gradient is zero are left out and counted: there Adam makes steps of rounding errors."""

import json
import math
import pathlib
import sys

import numpy
import torch
import torch.nn.functional as F

ACTIVATIONS = {
    "relu": torch.relu,
    "tanh": torch.tanh,
    "gelu": F.gelu,
    "silu": F.silu,
    "elu": F.elu,
    "leaky_relu": F.leaky_relu,
    "sigmoid": torch.sigmoid,
}
OVER_EDGES = {"message_passing", "graph_attention", "graph_pool"}
ACROSS = {"attention", "position", "mean_pool", "pointer", "history"} | OVER_EDGES


def signed_root(x):
    return torch.sign(x) * torch.sqrt(torch.abs(x))


def types(layers):
    return {layer["type"] for layer in layers}


class Net:
    """One network of dump_net, in the given precision. Rows of tokens are (states, tokens, features)
    with self.valid (states, tokens) false where they are padding."""

    def __init__(self, about, arrays, dtype=torch.float32):
        self.about, self.dtype = about, dtype
        real = {name: a.to(dtype) for name, a in arrays.items()}
        self.noise, self.tau = real["noise"], real["tau"]
        self.dropout = {k: a for k, a in arrays.items() if k.startswith(("dropout.", "kept."))}
        self.x = real["x"].reshape(about["batch"], -1)
        self.now = about  # the observation at hand: its "low" and "dims"
        if about["inputs"]:
            self.raw = arrays["x"].reshape(about["batch"], -1)
        elif about["codes"]:
            self.x = arrays["x"].view(torch.int32).long().reshape(about["batch"], -1)
        if about["state"]:
            lanes = about["batch"] // about["steps"]
            self.state = real["state"][: lanes * about["state"]].reshape(lanes, -1)
            self.restart = arrays["restart"].reshape(about["steps"], lanes) != 0
        trained = {name for name, _, _, trains in about["tensors"] if trains}
        self.p = self.split(arrays["params"].to(dtype))
        for name, t in self.p.items():
            t.requires_grad_(name in trained)

    def split(self, flat):
        tensors = {}
        for name, shape, offset, _ in self.about["tensors"]:
            tensors[name] = flat[offset : offset + math.prod(shape)].reshape(shape).clone()
        return tensors

    def flat(self):
        return torch.cat([t.detach().reshape(-1) for t in self.p.values()])

    def grads(self):
        return {
            name: torch.zeros_like(t) if t.grad is None else t.grad for name, t in self.p.items()
        }

    def linear(self, x, name, noisy=False):
        weight, bias = self.p[name + "weight"], self.p[name + "bias"]
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
            weight = weight + self.p[name + "sigma_weight"] * e_w
            bias = bias + self.p[name + "sigma_bias"] * e_b
        return F.linear(x, weight, bias)

    def cosine_embedding(self, x, name, cosines):
        # in double: 64 pi is a coarse argument for a float's cosine
        i_pi = torch.arange(1, cosines + 1, dtype=torch.float64) * math.pi
        c = torch.cos(self.tau.double()[:, None] * i_pi).to(self.dtype)
        phi = self.linear(c, name)
        return x.repeat_interleave(self.about["quantiles"], 0) * torch.relu(phi)

    def ranks(self):
        """Places of tokens among those of their state that are no padding; how many there are."""
        there = self.valid.long()
        return there.cumsum(1) - there, there.sum(1)

    def seen(self):
        """How many of a history's rows each sees: context rows with themselves, queries without."""
        rank, rows = self.ranks()
        queries = self.about["queries"]
        context = (rows - queries)[:, None]
        return torch.where(rank < context, rank + 1, rank + 1 - queries), rank < context

    def history(self, x, name):
        """Transitions, <c>, </c> and queries, with their types and positions."""
        kind, query, features = x[..., 0].long(), x[..., 1].long(), x[..., 2:]
        ends = torch.cat([self.p[name + "ends"]] * 2)[kind.clamp(max=3)]  # of kinds 2 and 3
        product = self.linear(features, name + "context.")
        y = torch.where((kind == 1)[..., None], product, ends)
        y = torch.where((kind == 4)[..., None], self.p[name + "query"][query] if name + "query" in self.p else product, y)
        seen, context = self.seen()
        y = y + self.p[name + "type"][torch.where((kind == 2) | (kind == 3), kind - 1, 0)]
        return y + self.p[name + "position"][(seen - context.long()).clamp(min=0)]

    def attention(self, x, name, layer, number):
        heads = layer["heads"]
        q, k, v = self.linear(x, name + "qkv.").chunk(3, -1)
        q, k, v = (t.unflatten(-1, (heads, -1)).transpose(1, 2) for t in (q, k, v))
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        seen = self.valid[:, None, None, :].expand_as(scores)
        if layer["causal"]:
            seen = seen & torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
        if self.about["queries"]:
            rank, _ = self.ranks()
            first, context = self.seen()
            theirs = (rank[:, None, :] < first[..., None]) & context[:, None, :]
            seen = seen & (theirs | torch.eye(x.shape[1], dtype=torch.bool))[:, None]
        weights = torch.softmax(scores.masked_fill(~seen, -1e30), -1)
        if layer["rate"]:
            kept = self.dropout[f"kept.{number}"].reshape(scores.shape).to(self.dtype)
            rank, _ = self.ranks()
            at = rank[:, None].expand(-1, heads, -1)
            kept = kept.gather(2, at[..., None].expand_as(kept)).gather(3, at[:, :, None].expand_as(kept))
            weights = weights * kept
        o = weights @ v
        return self.linear(o.transpose(1, 2).flatten(-2), name + "out.")

    def recur(self, x, name, kind, units):
        cell = torch.gru_cell if kind == "gru" else torch.lstm_cell
        width = units if kind == "gru" else 2 * units
        state = self.state[:, self.state_used : self.state_used + width]
        self.state_used += width
        weights = [self.p[f"{name}{part}"] for part in ("ih.weight", "hh.weight", "ih.bias", "hh.bias")]
        results = []
        for t, row in enumerate(x.reshape(self.about["steps"], len(state), -1)):
            state = torch.where(self.restart[t][:, None], torch.zeros_like(state), state)
            if kind == "gru":
                state = h = cell(row, state, *weights)
            else:
                h, c = cell(row, (state[:, :units], state[:, units:]), *weights)
                state = torch.cat([h, c], 1)
            results.append(h)
        return torch.cat(results)

    def edge_index(self, width):
        """Sources and targets of the edges of all states, as PyTorch Geometric's edge_index: nodes of state i are
        rows i * width and up."""
        o = next(o for o in self.about["inputs"] if o["name"] == self.now["name"] + "_edges")
        sources, targets = [], []
        numbers = self.raw[:, o["at"] + o["counts"] : o["at"] + o["counts"] + o["words"]].long()
        for i, (row, nodes) in enumerate(zip(numbers.tolist(), self.valid.sum(1).tolist())):
            starts, names = row[: nodes + 1], row[nodes + 1 :]
            for target in range(nodes if names else 0):
                for source in names[starts[target] : max(starts[target], starts[target + 1])]:
                    if source < nodes:
                        sources.append(i * width + source)
                        targets.append(i * width + target)
        return torch.tensor(sources, dtype=torch.long), torch.tensor(targets, dtype=torch.long)

    def over_edges(self, x, name, layer):
        """SAGEConv: W (x_i, mean of x_j); GATConv, with queries, keys and values of their own: softmax over the edges to
        i of LeakyReLU(a (q_i, k_j)), slope 0.2; the sum over edges by scatter, as there."""
        states, width, n = x.shape
        flat = x.reshape(states * width, n)
        source, target = self.edge_index(width)
        if layer["type"] == "message_passing":
            total = torch.zeros_like(flat).index_add(0, target, flat[source])
            degree = torch.zeros(len(flat), dtype=x.dtype).index_add(0, target, torch.ones(len(target), dtype=x.dtype))
            return self.linear(torch.cat([flat, total / degree.clamp(min=1)[:, None]], 1), name).reshape(states, width, -1)
        if layer["type"] == "graph_pool":
            mask = self.valid[..., None].to(x.dtype)
            mean = (x * mask).sum(1) / mask.sum(1).clamp(min=1)
            o = next(o for o in self.about["inputs"] if o["name"] == self.now["name"] + "_node")
            own = self.raw[:, o["at"]].long()
            there = own < self.valid.sum(1)
            picked = x[torch.arange(states), own.clamp(max=width - 1)]
            return torch.cat([mean, torch.where(there[:, None], picked, torch.zeros_like(picked))], 1)
        heads = layer["heads"]
        q, k, v = (t.unflatten(-1, (heads, -1)) for t in self.linear(flat, name + "qkv.").chunk(3, -1))
        ours, theirs = self.p[name + "score"].chunk(2, -1)
        score = (q * ours).sum(-1)[target] + (k * theirs).sum(-1)[source]
        score = F.leaky_relu(score, 0.2)
        index = target[:, None].expand_as(score)
        most = torch.full((len(flat), heads), -1e30, dtype=x.dtype)
        most = most.scatter_reduce(0, index, score.detach(), "amax")
        part = torch.exp(score - most[target])
        total = torch.zeros(len(flat), heads, dtype=x.dtype).index_add(0, target, part)
        part = part / total[target]
        o = torch.zeros_like(v).index_add(0, target, part[..., None] * v[source])
        return self.linear(o.flatten(1), name + "out.").reshape(states, width, n)

    def pointer(self, x, name, units):
        f = self.linear(x, name)
        scores = (f[:, 1:] * f[:, :1]).sum(-1) / math.sqrt(units)
        return torch.where(self.valid[:, 1:], scores, torch.zeros_like(scores))

    def layer(self, x, layer, name, number):
        """x after a layer; before[number] is what it was."""
        kind = layer["type"]
        if kind in ("linear", "noisy_linear"):
            return self.linear(x, name, kind == "noisy_linear")
        if kind == "layer_norm":
            return F.layer_norm(x, x.shape[-1:], self.p[name + "weight"], self.p[name + "bias"])
        if kind == "cosine_embedding":
            return self.cosine_embedding(x, name, layer["cosines"])
        if kind == "embedding":
            return self.relate(x, name, layer) if layer["columns"] else self.embedding(x, name)
        if kind == "conv2d":
            y = F.conv2d(
                x.reshape(len(x), *self.image),
                self.p[name + "weight"],
                self.p[name + "bias"],
                stride=layer["stride"],
                padding=layer["padding"],
            )
            self.image = y.shape[1:]
            return y.flatten(1)
        if kind == "dropout":
            u, queries = self.dropout[f"dropout.{number}"], self.about["queries"]
            if queries:  # draws of the rows that are no padding; behind the last attention, of the queries
                rank, rows = self.ranks()
                places = x.shape[1]
                if number > max(i for i, l in enumerate(self.about["layers"]) if l["type"] == "attention"):
                    rank, places = (rank - (rows - queries)[:, None]).clamp(min=0), queries
                u = u[: len(x) * places * x.shape[2]].reshape(len(x), places, -1)
                u = u.gather(1, rank[..., None].expand(x.shape))
            else:
                u = u[: x.numel()].reshape(x.shape)
            return x * (u > 0).to(x.dtype) / (1 - layer["rate"])
        if kind == "attention":
            return self.attention(x, name, layer, number)
        if kind == "history":
            return self.history(x, name)
        if kind == "position":
            return x + self.p[name + "weight"][: x.shape[1]]
        if kind == "mean_pool":
            mask = self.valid[..., None].to(x.dtype)
            return (x * mask).sum(1) / mask.sum(1).clamp(min=1)
        if kind == "pointer":
            return self.pointer(x, name, layer["units"])
        if kind == "one_hot":
            rest = torch.cat([x[..., : layer["column"]], x[..., layer["column"] + 1 :]], -1)
            codes = torch.arange(layer["codes"], dtype=x.dtype)
            return torch.cat([rest, (x[..., layer["column"], None] == codes).to(x.dtype)], -1)
        if kind in OVER_EDGES:
            return self.over_edges(x, name, layer)
        if kind in ("gru", "lstm"):
            return self.recur(x, name, kind, layer["units"])
        return ACTIVATIONS[kind](x)

    def embedding(self, x, name):
        table = self.p[name + "weight"]
        row = x - int(self.now["low"])
        row = torch.where((row >= 0) & (row < len(table)), row, torch.zeros_like(row))
        if x.dim() == 3:
            return table[row].sum(2)
        numbers = self.now["dims"][-1] if len(self.now["dims"]) > 1 else 1
        return table[row.unflatten(1, (-1, numbers))].sum(2)

    def relate(self, x, name, layer):
        """Groups of numbers: the first of each may have a table of its own, the last may be
        subtracted; a 0 adds nothing."""
        table = self.p[name + "weight"]
        first = self.p[name + "first"] if layer["first_codes"] else table
        groups = x.unflatten(-1, (-1, layer["columns"]))
        parts = [(first if i == 0 else table)[groups[..., i]] for i in range(layer["columns"])]
        parts = [p * (groups[..., i] != 0)[..., None] for i, p in enumerate(parts)]
        if layer["difference"]:
            parts[-1] = -parts[-1]
        return sum(parts).sum(-2)

    def layers(self, x, layers, prefix, base):
        before = []
        for i, layer in enumerate(layers):
            before.append(x)
            if layer["type"] == "residual":
                x = x + before[i - layer["span"]]
            else:
                place = f"{prefix}{i}." if prefix.startswith("inputs.") else f"{prefix}layers.{i}."
                x = self.layer(x, layer, place, base + i)
        return x, before

    def side_by_side(self, x):
        if x.dim() < 3:
            return x
        if self.valid is not None:
            x = torch.where(self.valid[..., None], x, torch.zeros_like(x))
        return x.flatten(1)

    def observe(self):
        about, x = self.about, self.x
        dims = about["dims"]
        self.image = ([1] if len(dims) == 2 else []) + dims
        self.valid = None
        kinds = types(about["layers"]) | types(about["value_layers"])
        if kinds & ACROSS:
            rows = x.reshape(len(x), dims[0], -1)
            self.valid = (rows != 0).any(-1)
            if "pointer" in kinds:
                self.valid[:, 0] = True
        if about["normalized"]:
            x = (x - self.p["normalizer.mean"]) * self.p["normalizer.scale"]
            x = x.clamp(-about["clip"], about["clip"])
        return x.reshape(len(x), dims[0], -1) if kinds & ACROSS else x

    def one_of_several(self, o, x):
        """An observation through its own layers: (states, tokens, features) with self.valid, or
        (states, features) where that is None."""
        layers, dims, counts = o["layers"], o["dims"], o["counts"]
        end = o["at"] + counts + o["words"]
        words = self.raw[:, o["at"] : end].contiguous()
        codes = bool(layers) and layers[0]["type"] == "embedding"
        if codes:
            words = words.view(torch.int32).long()
        x = words if codes else x[:, o["at"] : end]
        tokens, self.valid, self.image, self.now = 0, None, None, o
        group = self.about["groups"][str(o["group"])] if o["group"] else self.about
        if group["as_tokens"] or types(layers) & ACROSS or (codes and counts):
            if codes or len(dims) > 1 or (dims and counts):
                tokens = 0 if layers and layers[0]["type"] == "conv2d" else dims[0]
        if tokens:
            x, each = x[:, counts:].reshape(len(x), tokens, -1), o["words"] // tokens
            self.valid = (words[:, counts:].reshape(len(x), tokens, -1) != 0).any(-1)
            if counts:
                first = torch.arange(tokens // counts) * each
                self.valid = (first < words[:, :counts, None] * o["item"]).reshape(len(x), -1)
        elif codes and len(dims) > 1:
            x = x.reshape(len(x), dims[0], -1)  # none is padding
        elif len(dims) in (2, 3) and not counts:
            self.image = ([1] if len(dims) == 2 else []) + dims
        x, _ = self.layers(x, layers, f"inputs.{o['name']}.", o["first"])
        return x

    def inputs(self):
        """Several observations, first in groups, as one."""
        about, x = self.about, self.x
        if about["normalized"]:
            x = (x - self.p["normalizer.mean"]) * self.p["normalizer.scale"]
            x = x.clamp(-about["clip"], about["clip"])
        made = {}  # by groups: what their inputs have become, with the place in the world's order
        for order, o in enumerate(about["inputs"]):
            if not o["of_graph"]:
                y = self.one_of_several(o, x)
                made.setdefault(o["group"], []).append((order, y, self.valid if y.dim() == 3 else None))
        self.now = about
        for number in sorted(map(int, about["groups"]), reverse=True):
            group, members = about["groups"][str(number)], made[number]
            y = self.combine(members, group["as_tokens"])
            y, _ = self.layers(y, group["layers"], f"inputs.{group['name']}.", group["first"])
            first = min(order for order, _, _ in members)
            made.setdefault(group["group"], []).append((first, y, self.valid if y.dim() == 3 else None))
        y = self.combine(made[0], about["as_tokens"])
        if about["as_tokens"] and "pointer" in types(about["layers"]):
            self.valid = self.valid.clone()
            self.valid[:, 0] = True
        return y

    def combine(self, members, as_tokens):
        """The inputs of a group: side by side, or as tokens with self.valid."""
        rows, valid = [], []
        for _, y, self.valid in sorted(members, key=lambda member: member[0]):
            if not as_tokens:
                rows.append(self.side_by_side(y))
                continue
            rows.append(y if y.dim() == 3 else y[:, None])
            valid.append(self.valid if y.dim() == 3 else torch.ones(len(y), 1, dtype=torch.bool))
        self.valid = torch.cat(valid, 1) if as_tokens else None
        rows = torch.cat(rows, 1)
        return torch.where(self.valid[..., None], rows, torch.zeros_like(rows)) if as_tokens else rows

    def value(self, first, trunk, before):
        about = self.about
        own = about["value_layers"] or about["layers"]
        points = "pointer" in types(about["layers"])
        x = before[-1] if points else trunk
        if about["separate"]:
            x = first
            if about["codes"] and not about["inputs"] and about["value_layers"] and own[0]["type"] != "embedding":
                x = before[1]
        if points and not types(about["value_layers"]) & ACROSS:
            x = x[:, 0]
        if about["separate"]:
            x, _ = self.layers(x, own, "value_", about["layers_max"])
        return self.linear(self.side_by_side(x), "value_head.", about["noisy_head"])

    def forward(self):
        about = self.about
        self.used = self.state_used = 0
        first = self.inputs() if about["inputs"] else self.observe()
        trunk, before = self.layers(first, about["layers"], "", 0)
        x = trunk
        if about["queries"]:
            x = self.linear(x[:, -about["queries"] :], "head.")
        elif "pointer" not in types(about["layers"]):
            x = self.linear(self.side_by_side(x), "head.", about["noisy_head"])
        if "head.log_deviation" in self.p:
            x = torch.cat([x, self.p["head.log_deviation"].expand(len(x), -1)], 1)
        if about["dueling"]:
            x = x.reshape(len(x), about["actions"] + 1, about["outputs_per_action"])
            advantage, value = x[:, :-1], x[:, -1:]
            x = value + advantage - advantage.mean(1, keepdim=True)
        x = x.reshape(len(x), -1)
        if about["head"] == "critic":
            self.image = ([1] if len(about["dims"]) == 2 else []) + about["dims"]
            x = torch.cat([x, self.value(first, trunk, before)], 1)
        return x


def train(about, arrays, dtype=torch.float64):
    """The weights after the steps of Adam that dump_net made, and each one's largest gradient."""
    net = Net(about, arrays, dtype)
    trained = [t for t in net.p.values() if t.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=2.5e-4, betas=(0.9, 0.999), eps=1e-8, weight_decay=about["weight_decay"])
    largest = torch.zeros(len(arrays["params"]), dtype=torch.float64)
    for _ in range(about["adam_steps"]):
        optimizer.zero_grad()
        out = net.forward()
        ((out - arrays["wanted"].to(dtype).reshape(out.shape)) ** 2).mean().backward()
        optimizer.step()
        largest = torch.maximum(largest, torch.cat([g.abs().reshape(-1).double() for g in net.grads().values()]))
    return net.flat().double(), largest


def apart(x, y):
    return ((x - y).norm() / y.norm()).item()


def sensitivity(about, arrays, trained, there):
    """How far from `trained` PyTorch ends when its start is moved by a millionth of its length, the
    largest of three directions: a unit near a kink may then be on the other side of it. Or when it computes in
    float32: rounding, too, can grow over a thousand steps."""
    largest = apart(train(about, arrays, torch.float32)[0][there], trained[there])
    for seed in range(3):
        moved = torch.randn(arrays["params"].shape, generator=torch.Generator().manual_seed(seed))
        moved *= 1e-6 * arrays["params"].norm() / moved.norm()
        weights, _ = train(about, {**arrays, "params": arrays["params"] + moved})
        largest = max(largest, apart(weights[there], trained[there]))
    return largest


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

    trained, largest = train(about, arrays)
    # The bias of attention's keys has no gradient, for example: softmax does not see it.
    there = (largest == 0) | (largest > 1e-12 * largest.max())
    ours, start = arrays["trained"].double(), arrays["params"].double()
    distance, moved = apart(ours[there], trained[there]), apart(trained, start)
    allowed, left_out = 1e-4, int((~there).sum())
    why = f" ({left_out} numbers without a gradient left out)" if left_out else ""
    if not distance <= allowed:
        allowed = max(allowed, 2 * sensitivity(about, arrays, trained, there))
    if not distance <= allowed:
        complaints.append(f"weights after Adam differ by {distance:.3g}, {allowed:.3g} is allowed")
    verdict = "; ".join(complaints) or "ok"
    print(f"  {path.stem:30} gradients {worst:6.3f} of allowed, "
          f"Adam moved {moved:8.3g}, apart {distance:8.2g} of {allowed:8.2g}: {verdict}{why}",
          flush=True)
    return not complaints


def main():
    torch.set_num_threads(1)
    paths = sorted(pathlib.Path(sys.argv[1]).glob("*.json"))
    if len(sys.argv) > 2:
        paths = [p for p in paths if any(name in p.stem for name in sys.argv[2:])]
    print(f"PyTorch {torch.__version__}, {len(paths)} networks")
    passed = sum([check(path) for path in paths])
    print(f"{passed} passed, {len(paths) - passed} failed")
    return 0 if paths and passed == len(paths) else 1


sys.exit(main())
