"""SBX, stable-baselines3 on JAX: PPO and DQN on CartPole. Compiling is on the clock for time to 475, not for
steps/s."""
import os

import common

args = common.arguments(["ppo", "ppo64", "dqn"])
os.environ["XLA_FLAGS"] = (f"--xla_cpu_multi_thread_eigen={'true' if args.threads > 1 else 'false'} "
                           f"intra_op_parallelism_threads={args.threads}")
common.torch_threads(args.threads)

import flax.linen as nn  # noqa: E402
from sbx import DQN, PPO  # noqa: E402

import sb3_family  # noqa: E402
import settings  # noqa: E402


def make():
    layers = settings.TASKS[args.task]["layers"]
    if args.task == "dqn":
        return sb3_family.dqn(DQN, args, {"net_arch": layers})
    return sb3_family.ppo(PPO, args, {"net_arch": {"pi": layers, "vf": layers}, "activation_fn": nn.tanh})


sb3_family.measure("SBX", ["sbx-rl", "stable-baselines3", "jax", "flax", "gymnasium"], args, make)
