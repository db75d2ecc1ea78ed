"""A policy as a module of PyTorch: the same layers, with weights that can be trained."""
import copy
import math
from typing import TYPE_CHECKING, Any, Dict, Optional

import torch
from torch import nn
from torch.nn import functional

if TYPE_CHECKING:
    import numpy

    from .policy import Policy, State

ACTIVATIONS = {"relu": torch.relu, "tanh": torch.tanh, "gelu": functional.gelu, "silu": functional.silu,
               "elu": functional.elu, "leaky_relu": functional.leaky_relu, "sigmoid": torch.sigmoid, "dropout": lambda x: x}


class TorchPolicy(nn.Module):
    """module(x (B, inputs), memory=None, tau=None) -> (B, actions * outputs per action), or (B, N, ...) with tau (B, N).
    `memory`, a dict that is empty at first, holds what recurrent layers remember and goes on with it. `policy` has the
    rest: frames and choices. act() is that of the policy, with this module's weights."""

    #: While layers run: what they know of x, as Walk of scripts/use_policy.py.
    tau: Any
    there: Any
    image: Any
    seen: Any
    tokens: bool

    def __init__(self, policy: "Policy"):
        super().__init__()
        self.policy: Any = policy
        self.names = {name: name.replace(".", "_") for name in policy.tensors}
        for name, tensor in policy.tensors.items():
            value = torch.tensor(tensor)
            if name.startswith("normalizer."):
                self.register_buffer(self.names[name], value)
            else:
                self.register_parameter(self.names[name], nn.Parameter(value))

    def tensor(self, name: str) -> torch.Tensor:
        """By its name in the file."""
        return getattr(self, self.names[name])

    def linear(self, name: str, x: torch.Tensor) -> torch.Tensor:
        return functional.linear(x, self.tensor(name + ".weight"), self.tensor(name + ".bias"))

    # --- layers: (x, name, layer) -> x ---

    def run_linear(self, x, name, layer):
        return self.linear(name, x)

    def run_layer_norm(self, x, name, layer):
        return functional.layer_norm(x, x.shape[-1:], self.tensor(name + ".weight"), self.tensor(name + ".bias"), 1e-5)

    def run_cosine_embedding(self, x, name, layer):
        n = torch.arange(1, self.tensor(name + ".weight").shape[1] + 1, dtype=torch.float32, device=x.device)
        cosines = torch.cos(math.pi * n * self.tau[:, :, None])
        return x[:, None, :] * torch.relu(self.linear(name, cosines))

    def run_embedding(self, x, name, layer):
        table, numbers, policy = self.tensor(name + ".weight"), x.long(), self.policy
        if layer["columns"]:
            columns = torch.arange(numbers.shape[-1], device=x.device) % layer["columns"]
            rows = table[numbers.clamp(max=len(table) - 1)]
            if layer["first_codes"]:
                first = self.tensor(name + ".first")
                ahead = columns == 0
                rows = torch.where(ahead[:, None], first[torch.where(ahead, numbers, 0)], table[torch.where(ahead, 0, numbers)])
            signs = torch.where((columns + 1 == layer["columns"]) & bool(layer["difference"]), -1.0, 1.0)
            return (rows * (signs * (numbers != 0))[..., None]).sum(-2)
        codes = numbers - (0 if self.seen["dtype"] == "code8" else int(self.seen["low"]))
        codes = torch.where((codes >= 0) & (codes < len(table)), codes, 0)
        shape = policy.shape(self.seen)
        self.tokens = True
        return table[codes.reshape(len(codes), -1, shape[-1] if len(shape) > 1 else 1)].sum(2)

    def run_conv2d(self, x, name, layer):
        y = functional.conv2d(x.reshape(-1, *self.image), self.tensor(name + ".weight"), self.tensor(name + ".bias"),
                              layer["stride"], layer["padding"])
        self.image = y.shape[1:]
        return y.flatten(1)

    def gates(self, x, h, name, count):
        return (part.reshape(len(h), count, -1).unbind(1) for part in (self.linear(name + ".ih", x), self.linear(name + ".hh", h)))

    def run_gru(self, x, name, layer):
        h = self.memory.get(name)
        h = x.new_zeros(len(x), layer["units"]) if h is None else h
        own, of = self.gates(x, h, name, 3)
        reset, update = torch.sigmoid(own[0] + of[0]), torch.sigmoid(own[1] + of[1])
        self.memory[name] = (1 - update) * torch.tanh(own[2] + reset * of[2]) + update * h
        return self.memory[name]

    def run_lstm(self, x, name, layer):
        h, c = self.memory.get(name, (x.new_zeros(len(x), layer["units"]),) * 2)
        own, of = self.gates(x, h, name, 4)
        c = torch.sigmoid(own[1] + of[1]) * c + torch.sigmoid(own[0] + of[0]) * torch.tanh(own[2] + of[2])
        h = torch.sigmoid(own[3] + of[3]) * torch.tanh(c)
        self.memory[name] = h, c
        return h

    def rows_seen(self):
        """Of a history: which rows are queries; how many rows of the context each row sees besides itself; and the place
        of each row without padding."""
        there, queries = self.there.long(), self.policy.history["queries"]
        place, rows = there.cumsum(1) - there, there.sum(1, keepdim=True)
        asks = place >= rows - queries
        return asks, torch.where(asks, place + 1 - queries, place).clamp(min=0), place

    def run_history(self, x, name, layer):
        part = lambda what: self.tensor(f"{name}.{what}")
        asks, seen, _ = self.rows_seen()
        kind = torch.where(asks, 4, x[:, :, 0].long())
        end = (kind == 2) | (kind == 3)
        codes = torch.where(asks, x[:, :, 1].long(), 0)
        y = torch.where(end[..., None], part("ends")[torch.where(end, kind - 2, 0)], self.linear(name + ".context", x[:, :, 2:]))
        if not layer.get("tied"):
            y = torch.where(asks[..., None], part("query")[codes], y)
        self.tokens = True
        return y + part("type")[torch.where(end, kind - 1, 0)] + part("position")[seen]

    def run_attention(self, x, name, layer):
        batch, tokens, _ = x.shape
        q, k, v = self.linear(name + ".qkv", x).reshape(batch, tokens, 3, layer["heads"], -1).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        sees = self.there[:, None, None, :].expand_as(scores)
        if layer["causal"]:
            sees = sees & torch.ones(tokens, tokens, dtype=torch.bool, device=x.device).tril()
        if self.policy.history:  # nothing sees a query but itself
            asks, seen, place = self.rows_seen()
            others = (place[:, None] < (seen + (~asks).long())[..., None]) & ~asks[:, None]
            sees = sees & (others | torch.eye(tokens, dtype=torch.bool, device=x.device))[:, None]
        weights = torch.softmax(scores.masked_fill(~sees, -1e30), -1) * sees
        return self.linear(name + ".out", (weights @ v).transpose(1, 2).reshape(batch, tokens, -1))

    def run_position(self, x, name, layer):
        return x + self.tensor(name + ".weight")[:x.shape[1]]

    def run_mean_pool(self, x, name, layer):
        there, self.tokens = self.there[:, :, None].to(x.dtype), False
        return (x * there).sum(1) / there.sum(1).clamp(min=1)

    def run_pointer(self, x, name, layer):
        f = self.linear(name, x)
        self.tokens = False
        return torch.where(self.there[:, 1:], (f[:, 1:] @ f[:, 0, :, None])[:, :, 0] / math.sqrt(layer["units"]), 0.0)

    def run_one_hot(self, x, name, layer):
        rest = torch.cat([x[..., :layer["column"]], x[..., layer["column"] + 1:]], -1)
        codes = x[..., layer["column"], None] == torch.arange(layer["codes"], device=x.device)
        return torch.cat([rest, codes.to(x.dtype)], -1)

    def edges(self, x):
        """How many edges lead from node j to node i: (B, i, j)."""
        numbers = self.parts[self.seen["name"] + "_edges"][:, 1:].long().tolist()
        edges = torch.zeros(*x.shape[:2], x.shape[1])
        for to, row, nodes in zip(edges, numbers, self.there.sum(1).tolist()):
            starts, sources = row[:nodes + 1], row[nodes + 1:]
            for i in range(nodes if sources else 0):
                for source in sources[starts[i]:max(starts[i], starts[i + 1])]:
                    if 0 <= source < nodes:
                        to[i, source] += 1
        return edges.to(x.device)

    def run_message_passing(self, x, name, layer):
        edges = self.edges(x)
        return self.linear(name, torch.cat([x, edges @ x / edges.sum(2, keepdim=True).clamp(min=1)], 2))

    def run_graph_attention(self, x, name, layer):
        batch, nodes, _ = x.shape
        q, k, v = self.linear(name + ".qkv", x).reshape(batch, nodes, 3, layer["heads"], -1).permute(2, 0, 3, 1, 4)
        ours, theirs = self.tensor(name + ".score")[:, None].chunk(2, -1)
        scores = functional.leaky_relu((q * ours).sum(-1)[..., None] + (k * theirs).sum(-1)[:, :, None], 0.2)
        edges = self.edges(x)[:, None]
        most = scores.masked_fill(edges == 0, -1e30).max(-1, keepdim=True).values
        weights = edges * torch.exp((scores - most).clamp(max=0))
        weights = weights / weights.sum(-1, keepdim=True).clamp(min=1e-30)
        return self.linear(name + ".out", (weights @ v).transpose(1, 2).reshape(batch, nodes, -1))

    def run_graph_pool(self, x, name, layer):
        own, nodes = self.parts[self.seen["name"] + "_node"][:, 0].long(), self.there.sum(1)
        picked = x[torch.arange(len(x), device=x.device), own.clamp(0, x.shape[1] - 1)]
        picked = torch.where(((own >= 0) & (own < nodes))[:, None], picked, 0.0)
        return torch.cat([self.run_mean_pool(x, name, layer), picked], 1)

    RUN = {"one_hot": run_one_hot, "message_passing": run_message_passing, "graph_attention": run_graph_attention,
           "graph_pool": run_graph_pool, "linear": run_linear, "noisy_linear": run_linear, "layer_norm": run_layer_norm,
           "cosine_embedding": run_cosine_embedding, "embedding": run_embedding, "conv2d": run_conv2d, "gru": run_gru,
           "lstm": run_lstm, "attention": run_attention, "position": run_position, "mean_pool": run_mean_pool,
           "pointer": run_pointer, "history": run_history}

    def normalized(self, x: torch.Tensor) -> torch.Tensor:
        if not self.policy.network["normalize_observations"]:
            return x
        clip = self.policy.network["observation_clip"]
        return ((x - self.tensor("normalizer.mean")) * self.tensor("normalizer.scale")).clamp(-clip, clip)

    def begin(self, x: torch.Tensor) -> torch.Tensor:
        """What layers see first, and what they know of it."""
        policy, shape = self.policy, self.policy.shape()
        self.there, self.image, self.seen = None, None, policy.observation
        if len(shape) in (2, 3):
            self.image = [1] * (3 - len(shape)) + shape
        types = {layer["type"] for layer in [*policy.layers, *policy.network["value_layers"]]}
        if types & {"attention", "position", "mean_pool", "pointer", "history"}:
            self.there = (x.reshape(len(x), shape[0], -1) != 0).any(2)
            if policy.layers[-1]["type"] == "pointer":
                self.there[:, 0] = True
        self.tokens = self.there is not None
        x = self.normalized(x)
        return x if self.there is None else x.reshape(len(x), shape[0], -1)

    def run_input(self, o, combine: str, x: torch.Tensor) -> torch.Tensor:
        """One of several observations through its layers; self.parts are all, before they were normalised."""
        policy, raw = self.policy, self.parts[o["name"]]
        layers, shape = policy.branches[o["name"]], policy.shape(o)
        tokens, counts = policy.tokens(o, layers, combine), policy.frame_stack if o["counted"] else 0
        self.there, self.image, self.seen, self.tokens = None, None, o, tokens > 0
        if tokens:
            x, n = x[:, counts:].reshape(len(x), tokens, -1), tokens // max(counts, 1)
            if counts:
                item = policy.words(o) // o["shape"][0]
                first = torch.arange(n, device=x.device) * x.shape[2]
                self.there = (first < raw[:, :counts, None] * item).reshape(len(x), tokens)
            else:
                self.there = (raw.reshape(len(x), tokens, -1) != 0).any(2)
        elif len(shape) in (2, 3) and not counts:
            self.image = [1] * (3 - len(shape)) + shape
        return self.run(x, layers, f"inputs.{o['name']}")

    def combine(self, group, x: Dict[str, torch.Tensor]) -> torch.Tensor:
        """The inputs of a group, each through its own layers: side by side, or their tokens one after another."""
        policy, rows, there, as_tokens = self.policy, [], [], group["combine"] == "tokens"
        by_name = {o["name"]: o for o in policy.observations}
        for name, own in policy.members(group):
            if isinstance(own, dict):
                y = self.run(self.combine(own, x), own["layers"], f"inputs.{name}")
            else:
                y = self.run_input(by_name[name], group["combine"], x[name])
            if not as_tokens:
                rows.append(self.side_by_side(y))
                continue
            rows.append(y if self.tokens else y[:, None])
            there.append(self.there if self.tokens else torch.ones(len(y), 1, dtype=torch.bool, device=y.device))
        self.there, self.tokens, self.image = torch.cat(there, 1) if as_tokens else None, as_tokens, None
        return torch.cat(rows, 1) * self.there[:, :, None] if as_tokens else torch.cat(rows, 1)

    def begin_several(self, raw: torch.Tensor) -> torch.Tensor:
        """What layers see first, of a network with inputs of their own."""
        policy, x = self.policy, self.normalized(raw)
        names = [o["name"] for o in policy.observations]
        sizes = [policy.frame_stack * (policy.words(o) + o["counted"]) for o in policy.observations]
        self.parts = dict(zip(names, raw.split(sizes, 1)))
        y = self.combine(policy.network, dict(zip(names, x.split(sizes, 1))))
        if self.tokens and policy.layers and policy.layers[-1]["type"] == "pointer":
            self.there = self.there.clone()
            self.there[:, 0] = True
        return y

    def side_by_side(self, x: torch.Tensor) -> torch.Tensor:
        if not self.tokens:
            return x
        return (x if self.there is None else x * self.there[:, :, None]).flatten(1)

    def run(self, x: torch.Tensor, layers, name: str) -> torch.Tensor:
        """x through a list of layers."""
        before = []
        for i, layer in enumerate(layers):
            before.append(x)
            if layer["type"] == "residual":
                x = x + before[i - layer["span"]]
            elif layer["type"] in ACTIVATIONS:
                x = ACTIVATIONS[layer["type"]](x)
            else:
                x = self.RUN[layer["type"]](self, x, f"{name}.{i}", layer)
        return x

    def forward(self, x: torch.Tensor, memory: Optional[Dict[str, Any]] = None,
                tau: Optional[torch.Tensor] = None) -> torch.Tensor:
        """As the class says."""
        policy, x = self.policy, x.float()
        self.memory, self.tau = {} if memory is None else memory, tau
        x = self.run(self.begin_several(x) if policy.branches else self.begin(x), policy.layers, "layers")
        if policy.layers and policy.layers[-1]["type"] == "pointer":
            return x
        if policy.history:  # of each query: logits of actions, then of types
            return self.linear("head", x[:, -policy.history["queries"]:]).flatten(1)
        x = self.linear("head", self.side_by_side(x))
        if policy.reals and policy.reals["deviation"] == "parameter":
            x = torch.cat([x, self.tensor("head.log_deviation").expand(len(x), -1)], 1)
        if policy.network["head"]["dueling"]:
            split = x.unflatten(-1, (policy.actions + 1, -1))
            advantages, values = split[..., :-1, :], split[..., -1:, :]
            x = (values + advantages - advantages.mean(-2, keepdim=True)).flatten(-2)
        return x

    def act(self, observation: Any, state: "State", mask: Any = None, rng: Optional["numpy.random.Generator"] = None) -> Any:
        """The greedy action, as Policy.act() gives it. What recurrent layers remember is in `state` as tensors."""
        device = next(self.parameters()).device

        def outputs(x, tau=None, memory=None):
            with torch.no_grad():
                x, tau = (value if value is None else torch.as_tensor(value, device=device) for value in (x, tau))
                return self(x, memory, tau).cpu().numpy()
        acting = copy.copy(self.policy)
        acting.outputs = outputs
        return acting.act(observation, state, mask, rng)
