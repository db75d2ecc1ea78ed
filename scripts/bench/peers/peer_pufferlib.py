"""PufferLib: its PPO on 8192 of its own C CartPoles, on the CPU, with its trainer's own settings. Steps/s only."""
import os
import sys
import tempfile

import common

args = common.arguments(["puffer-mlp", "puffer-lstm"])
args.no_evaluation = True
torch = common.torch_threads(args.threads)
sys.argv = sys.argv[:1]  # PufferLib reads it as well
os.chdir(tempfile.mkdtemp(prefix="peer-pufferlib-"))

import pufferlib.models  # noqa: E402
import pufferlib.vector  # noqa: E402
from pufferlib import pufferl  # noqa: E402
from pufferlib.ocean.cartpole.cartpole import Cartpole  # noqa: E402

import settings  # noqa: E402

s = settings.TASKS[args.task]
config = pufferl.load_config("puffer_cartpole")["train"] | {
    "device": "cpu", "use_rnn": args.task == "puffer-lstm", "env": "cartpole", "bptt_horizon": s["rollout"],
    "batch_size": s["worlds"] * s["rollout"], "minibatch_size": s["batch"], "max_minibatch_size": s["batch"],
    "update_epochs": s["epochs"], "seed": args.seed, "optimizer": "adam", "learning_rate": s["learning_rate"],
    "total_timesteps": 10**9, "adam_beta1": 0.9, "adam_beta2": 0.999, "adam_eps": s["adam_epsilon"],
}
worlds = pufferlib.vector.make(Cartpole, env_kwargs={"num_envs": s["worlds"] // 2}, num_envs=2,
                               backend=pufferlib.vector.Serial)
policy = pufferlib.models.Default(worlds, hidden_size=s["layers"][0])
if config["use_rnn"]:
    policy = pufferlib.models.LSTMWrapper(worlds, policy, input_size=128, hidden_size=128)
pufferl.PuffeRL.print_dashboard = lambda *_args, **_more: None

watch = common.Watch(args)
trainer = pufferl.PuffeRL(config, worlds, policy)
going = True
while going:
    trainer.evaluate()
    trainer.train()
    going = watch.look(trainer.global_step, None)
common.emit("PufferLib", ["pufferlib", "torch", "numpy"], args.task, parameters=trainer.model_size,
            **watch.figures())
os._exit(0)  # a thread of its own watches the machine
