"""stable-baselines3: PPO and DQN on CartPole, SAC on Pendulum."""
import common

args = common.arguments(["ppo", "ppo-python", "ppo64", "dqn", "sac", "sac-python"])
torch = common.torch_threads(args.threads)

from stable_baselines3 import DQN, PPO, SAC  # noqa: E402  (threads first)

import sb3_family  # noqa: E402
import settings  # noqa: E402


def make():
    layers = settings.TASKS[args.task]["layers"]
    if args.task in ("sac", "sac-python"):
        return sb3_family.sac(SAC, args, {"net_arch": layers})
    if args.task == "dqn":
        return sb3_family.dqn(DQN, args, {"net_arch": layers})
    return sb3_family.ppo(PPO, args, {"net_arch": {"pi": layers, "vf": layers},
                                      "activation_fn": torch.nn.Tanh, "ortho_init": True})


sb3_family.measure("stable-baselines3", ["stable-baselines3", "torch", "gymnasium", "numpy"], args, make)
