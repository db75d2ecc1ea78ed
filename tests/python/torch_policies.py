#!/usr/bin/env python3
"""Policies of short runs as modules of PyTorch beside NumPy: the same outputs to 1e-5 and the same actions, masks or none, over
steps with memory. Prints TAP."""
import sys
import tempfile

import numpy as np
import torch

import ringmaster
from ringmaster.programs import script

LINEAR = [{"type": "linear", "units": 16}]
TOKENS = {"world": {"name": "treasurehunt"}, "policy": {"map": "shared"}}
HAND = [{"type": "embedding", "units": 8}]
PAIRING = {"world": {"name": "pairing"}, "network": {"inputs": {
    "board": [{"type": "conv2d", "units": 4, "kernel": 2}], "hand": [*HAND, {"type": "mean_pool"}], "left": []}}}
HANDS = {"world": {"name": "pairing"}, "network": {"combine": "tokens", "normalize_observations": False, "inputs": {
    "board": [{"type": "linear", "units": 8}], "hand": HAND, "left": [{"type": "linear", "units": 8}]}}}
GROUPS = {"world": {"name": "pairing"}, "network": {"combine": "tokens", "normalize_observations": False, "inputs": {
    "left": [{"type": "linear", "units": 8}], "all": {
        "inputs": {"one": {"inputs": {"hand": [*HAND, {"type": "mean_pool"}]}, "layers": LINEAR},
                   "board": [{"type": "conv2d", "units": 4, "kernel": 2}]},
        "layers": [{"type": "linear", "units": 8}]}}}}
GRAPH = {"world": {"name": "platformer", "options": {"stage": "c3", "observe": ["reach", "graph"]}},
         "network": {"inputs": {"reach": [], "graph": [{"type": "one_hot", "column": 10, "codes": 5}, *LINEAR]}}}


def over_edges(*layers):
    inputs = {**GRAPH["network"]["inputs"], "graph": [*GRAPH["network"]["inputs"]["graph"], *layers]}
    return {**GRAPH, "network": {"inputs": inputs}}


# (name, algorithm, world and what goes with it, layers)
CASES = [
    ("dueling dqn", "dqn", {"network": {"head": {"dueling": True}}}, [*LINEAR, {"type": "layer_norm"}, {"type": "gelu"}]),
    ("iqn", "iqn", {}, [*LINEAR, {"type": "relu"}, {"type": "cosine_embedding"}, *LINEAR, {"type": "silu"}]),
    ("residual", "ppo", {}, [*LINEAR, {"type": "elu"}, *LINEAR, {"type": "residual", "span": 1}, {"type": "leaky_relu"}]),
    ("gru", "ppo", {}, [*LINEAR, {"type": "tanh"}, {"type": "gru", "units": 8}]),
    ("lstm", "ppo", {}, [*LINEAR, {"type": "sigmoid"}, {"type": "lstm", "units": 8}]),
    ("convolutions", "ppo", TOKENS, [{"type": "conv2d", "units": 4, "kernel": 3, "padding": 1}, {"type": "relu"}, *LINEAR]),
    ("attention", "ppo", TOKENS, [{"type": "embedding", "units": 8, "codes": 8}, {"type": "attention", "heads": 2},
                                  {"type": "mean_pool"}, *LINEAR]),
    ("positions", "ppo", TOKENS, [{"type": "embedding", "units": 8, "codes": 8}, {"type": "position"},
                                  {"type": "attention", "heads": 2, "causal": True}, {"type": "residual", "span": 1},
                                  {"type": "mean_pool"}, *LINEAR]),
    ("real actions", "ppo", {"world": {"name": "pendulum"}}, [*LINEAR, {"type": "tanh"}]),
    ("numbers side by side", "dqn", {"world": {"name": "pairing"}}, LINEAR),
    ("inputs", "dqn", PAIRING, [*LINEAR, {"type": "relu"}]),
    ("inputs as tokens", "ppo", HANDS, [{"type": "attention", "heads": 2}, {"type": "mean_pool"}, *LINEAR]),
    ("groups of inputs", "ppo", GROUPS, [{"type": "attention", "heads": 2}, {"type": "mean_pool"}, *LINEAR]),
    ("message passing", "ppo", over_edges({"type": "message_passing", "units": 8}, {"type": "graph_pool"}), LINEAR),
    ("graph attention", "dqn", over_edges({"type": "graph_attention", "heads": 2}, {"type": "mean_pool"}), LINEAR),
    ("several choices", "ppo", {"world": {"name": "count", "options": {"choices": 3, "mask": 1}}}, LINEAR),
    ("normalised", "ppo", {"network": {"normalize_observations": True}}, [*LINEAR, {"type": "relu"}]),
]


HISTORY = [{"type": "history", "units": 8, "codes": 32}, {"type": "attention", "heads": 2, "causal": True, "dropout": 0.1},
           {"type": "residual", "span": 1}, {"type": "layer_norm"}, {"type": "linear", "units": 8}, {"type": "gelu"},
           {"type": "attention", "heads": 2, "causal": True}, {"type": "residual", "span": 1}, {"type": "layer_norm"}]


def distilled_run(folder, tied):
    """Of the history of a short learner, with regions of 5 steps."""
    ringmaster.train({"world": {"name": "darkroom", "options": {"goal": [5, 4]}}, "algorithm": {"name": "ppo"},
                      "actor": {"worlds": 4}, "record": {"directory": "recording"},
                      "evaluation": {"episodes": 1, "final_episodes": 1, "worlds": 1}},
                     steps=2000, directory=folder, name="source", progress=False)
    return ringmaster.train({"world": {"name": "darkroom", "options": {"goal": [5, 4]}},
                             "algorithm": {"name": "distill"}, "network": {"layers": [{**HISTORY[0], "tied": tied}, *HISTORY[1:]]},
                             "sample": {"from": f"{folder}/source/latest/recording", "batch": 4, "region": 5},
                             "evaluation": {"episodes": 1, "final_episodes": 1, "worlds": 1}},
                            steps=20, directory=folder, name="distilled", progress=False)


def packed(policy, rng, samples=7):
    """Histories with padding in some: <c>, a region, </c>, <c>, steps of the next; then all of its queries."""
    shape = policy.history
    context, region = shape["places"] - shape["queries"], shape["queries"]
    x = np.zeros((samples, shape["places"], shape["width"]), dtype=np.float32)
    for i, own in enumerate(x):
        kinds = ([2] + [1] * region + [3] if i % 3 else []) + [2] + [1] * (region - 1)
        assert len(kinds) <= context
        own[:len(kinds), 0] = kinds
        own[:len(kinds), 2:] = rng.integers(0, 9, (len(kinds), shape["width"] - 2)) * (own[:len(kinds), :1] == 1)
        own[context:, 0] = 4
        if policy.layers[0]["tied"]:
            own[context:, 2:4] = rng.integers(0, 9, (region, 2))
        else:
            own[context:, 1] = rng.integers(0, 81, region)
    return x.reshape(samples, -1)


def short_run(folder, name, algorithm, more, layers):
    settings = {"world": {"name": "cartpole"}, "actor": {"worlds": 4}, "sample": {"min_fill": 64, "batch": 8},
                "evaluation": {"episodes": 1, "final_episodes": 1, "worlds": 1}, **more}
    if algorithm in ("ppo",):
        del settings["sample"]
    settings["network"] = {**more.get("network", {}), "layers": layers}
    return ringmaster.train({"algorithm": {"name": algorithm}, **settings}, steps=600, directory=folder,
                            name=name.replace(" ", "-"), progress=False)


def compare(policy):
    module, rng, mine, its = policy.torch(), np.random.default_rng(1), {}, {}
    for _ in range(4):
        x = rng.normal(size=(7, policy.inputs)).astype(np.float32)
        if policy.observation["dtype"] != "f32":
            x = rng.integers(0, 3, (7, policy.inputs)).astype(np.float32)
        if policy.history:
            x = packed(policy, rng)
        if any(o["name"] == "graph" for o in policy.observations):
            x = rng.integers(0, 6, (7, policy.inputs)).astype(np.float32)
        tau = rng.random((7, 8), dtype=np.float32) if policy.algorithm == "iqn" else None
        wanted = policy.outputs(x, tau, mine)
        got = module(torch.tensor(x), its, None if tau is None else torch.tensor(tau))
        worst = np.abs(got.detach().numpy() - wanted).max()
        assert worst <= 1e-5 * (1 + np.abs(wanted).max()), worst
        assert wanted.std() > 0
    got.sum().backward()
    assert all(p.grad is not None for name, p in module.named_parameters()
               if name.startswith(("layers_", "head_")) and "sigma" not in name)
    if not policy.history:  # whose act() is refused
        compare_actions(policy, module, rng)


def compare_actions(policy, module, rng):
    """Of both over episodes, with masks that allow one action of each choice at least."""
    mine, its, acted = policy.new_state(), policy.new_state(), []
    for step in range(60):
        seen = {o["name"]: script("use_policy").random_observation(o, rng) for o in policy.observations}
        seen = seen.get(None, seen)
        masks = [rng.permutation(np.arange(n) < rng.integers(1, n + 1)) for n in policy.choices]
        mask = np.concatenate(masks).astype(np.int8) if masks and step % 3 else None
        wanted = policy.act(seen, mine, mask, np.random.default_rng(step))
        got = module.act(seen, its, mask, np.random.default_rng(step))
        wanted, got = ([np.asarray(part) for part in (action if isinstance(action, list) else [action])]
                       for action in (wanted, got))
        assert len(got) == len(wanted) == len(policy.choices) + (policy.reals is not None), (got, wanted)
        assert all(np.allclose(a, b, atol=1e-5) for a, b in zip(wanted, got)), (step, wanted, got)
        if mask is not None:
            assert all(own[int(choice)] for own, choice in zip(masks, got)), (masks, got)
        acted.append(tuple(int(part) for part in got[:len(policy.choices)]))
        if step % 20 == 19:
            mine, its = policy.new_state(), policy.new_state()
    assert not policy.choices or len(set(acted)) > 1


def main():
    cases = [(name, short_run, (name, *case)) for name, *case in CASES] + [(name, distilled_run, (tied,)) for name, tied in (("a history", False), ("a tied history", True))]
    print(f"1..{len(cases)}")
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, train, case in cases:
            try:
                run = train(folder, *case)
                compare(run.policy(sorted(run.policies)[0]))
                print(f"ok {name} is the same in PyTorch", flush=True)
            except (AssertionError, RuntimeError) as why:
                failed += 1
                print(f"not ok {name} is the same in PyTorch\n# " + str(why).replace("\n", "\n# "), flush=True)
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
