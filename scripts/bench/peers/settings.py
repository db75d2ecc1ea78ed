"""What every library is asked to train: CartPole-v1 by PPO and by DQN, Pendulum-v1 by SAC, the same for all.

PPO is of the usual size (4 epochs, 4 minibatches of 256 transitions, separate 64x64 tanh trunks, orthogonal
start). DQN has the settings that stable-baselines3's authors tuned for CartPole: 256x256, batch 64, and 128
updates after every 256 steps, so one update every two steps.
"""

SOLVED = 475.0   # mean score of EPISODES greedy episodes
EPISODES = 10

PPO = {
    "worlds": 8, "rollout": 128, "epochs": 4, "minibatches": 4, "batch": 256,
    "layers": [64, 64], "learning_rate": 1e-3, "gamma": 0.98, "gae_lambda": 0.8, "clip": 0.2,
    "entropy": 0.0, "value": 0.5, "grad_clip": 0.5, "adam_epsilon": 1e-5,
}
# Both are tried, by every library; the better of the two counts.
LEARNING_RATES = (2.5e-4, 1e-3)
# The same with 64 worlds: rollouts of 4096 transitions, minibatches of 1024. For throughput.
PPO_WIDE = dict(PPO, worlds=64, rollout=64, batch=1024)
# 20 worlds to each of two workers, as Sample Factory is used: 20 minibatches of 256.
PPO_40 = dict(PPO, worlds=40, minibatches=20)

DQN = {
    "worlds": 1, "steps_per_burst": 256, "updates_per_burst": 128, "batch": 64, "layers": [256, 256],
    "learning_rate": 2.3e-3, "gamma": 0.99, "replay": 100_000, "learning_starts": 1000,
    # Copied every 10 steps, between bursts: so once a burst, after 128 updates.
    "target_interval_steps": 10, "epsilon_start": 1.0, "epsilon_end": 0.04, "epsilon_steps": 8000,
    "grad_clip": 10.0, "adam_epsilon": 1e-8,
}

# PufferLib's way: very many worlds, one pass over their steps, one hidden layer of 128 (GELU), shared by
# policy and value.
PUFFER = dict(PPO, worlds=8192, rollout=64, epochs=1, minibatches=16, batch=32768, layers=[128])

# stable-baselines3's own settings, one update a step among them, but for the learning rate, which its authors tuned for
# Pendulum, and the random steps before the first update.
SAC = {
    "worlds": 1, "batch": 256, "layers": [256, 256], "learning_rate": 1e-3, "gamma": 0.99, "tau": 0.005, "replay": 50_000,
    "learning_starts": 500, "adam_epsilon": 1e-8,
}

TASKS = {"sac": SAC, "sac-python": SAC, "ppo": PPO, "ppo-python": PPO, "ppo40": PPO_40, "ppo64": PPO_WIDE, "dqn": DQN,
         "puffer-mlp": PUFFER, "puffer-lstm": PUFFER}

# What a run of either side is over after, and nothing else ends it. PufferLib's: six rollouts, and with an LSTM three.
STEPS = {"ppo": 100_000, "ppo-python": 100_000, "ppo40": 100_000, "ppo64": 100_000, "dqn": 50_000, "puffer-mlp": 6 << 19,
         "puffer-lstm": 3 << 19, "sac": 2000, "sac-python": 2000}
# Once 475 is reached, a run goes on to so many steps for its steps/s.
ENOUGH = {"ppo": 20_000, "dqn": 20_000}
# Steps between greedy evaluations, where there are any; and after how many steps the clock for steps/s starts: by
# then all is compiled and training.
EVERY = {"ppo": 4096, "dqn": 2048}
WARM = {"ppo": 2048, "ppo-python": 2048, "ppo40": 10240, "ppo64": 8192, "dqn": 2048, "puffer-mlp": 1,
        "puffer-lstm": 1, "sac": 600, "sac-python": 600}
