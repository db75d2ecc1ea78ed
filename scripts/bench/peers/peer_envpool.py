"""EnvPool: stepping CartPole-v1 with random actions on two threads, nothing else. The best of a few sizes,
synchronous and asynchronous."""
import common

args = common.arguments(["stepping"])

import envpool  # noqa: E402
import numpy as np  # noqa: E402

THREADS = 2
SIZES = ((256, 256), (1024, 1024), (4096, 4096), (1024, 512), (1024, 256), (4096, 2048))  # worlds, answered at once


def rate(worlds, batch, seconds):
    env = envpool.make("CartPole-v1", env_type="gymnasium", num_envs=worlds, batch_size=batch,
                       num_threads=THREADS, seed=args.seed)
    actions = np.random.default_rng(args.seed).integers(0, 2, (64, batch)).astype(np.int32)
    if batch == worlds:
        env.reset()

        def turn(i):
            env.step(actions[i % 64])
    else:
        env.async_reset()

        def turn(i):
            info = env.recv()[4]
            env.send(actions[i % 64], info["env_id"])
    found = batch * common.turns_per_s(turn, seconds)
    env.close()
    return found


rates = {f"{w} worlds, {b} at once": rate(w, b, args.seconds / len(SIZES)) for w, b in SIZES}
best = max(rates, key=rates.get)
common.emit("EnvPool", ["envpool", "gymnasium", "numpy"], args.task, steps_per_s=rates[best], setting=best,
            threads=THREADS, all=rates)
