"""Ringmaster's worlds for a program in Python: stepping CartPole with random actions by ringmaster.make_vec(), nothing
else, in the program's own thread. The best of EnvPool's synchronous sizes."""
import common

args = common.arguments(["stepping"])

import numpy as np  # noqa: E402
import ringmaster  # noqa: E402

SIZES = (256, 1024, 4096)


def rate(worlds):
    env = ringmaster.make_vec("cartpole", num_envs=worlds)
    actions = np.random.default_rng(args.seed).integers(0, 2, (64, worlds)).astype(np.int32)
    env.reset(seed=args.seed)
    found = worlds * common.turns_per_s(lambda i: env.step(actions[i % 64]), args.seconds / len(SIZES))
    env.close()
    return found


rates = {f"{worlds} worlds": rate(worlds) for worlds in SIZES}
best = max(rates, key=rates.get)
common.emit("Ringmaster", ["gymnasium", "numpy"], args.task, steps_per_s=rates[best], setting=f"{best}, 1 thread", all=rates)
