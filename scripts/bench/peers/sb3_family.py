"""PPO, DQN and SAC for libraries with stable-baselines3's interface: itself and SBX."""
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env

import common
import settings


class Looking(BaseCallback):
    """Looks at the clock before every rollout, so after every round of updates."""

    def __init__(self, watch):
        super().__init__()
        self.watch = watch
        self.going = True

    def _on_rollout_start(self):
        if self.num_timesteps:
            self.going = self.watch.look(self.num_timesteps, self._greedy)

    def _greedy(self, observations):
        return self.model.predict(observations, deterministic=True)[0]

    def _on_step(self):
        return self.going


def ppo(cls, args, policy_kwargs):
    s = settings.TASKS[args.task]
    env = make_vec_env("CartPole-v1", n_envs=s["worlds"], seed=args.seed)
    return cls("MlpPolicy", env, n_steps=s["rollout"], batch_size=s["batch"], n_epochs=s["epochs"],
               learning_rate=s["learning_rate"], gamma=s["gamma"], gae_lambda=s["gae_lambda"],
               clip_range=s["clip"], ent_coef=s["entropy"], vf_coef=s["value"],
               max_grad_norm=s["grad_clip"], seed=args.seed, device="cpu", policy_kwargs=policy_kwargs)


def dqn(cls, args, policy_kwargs):
    s = settings.DQN
    env = make_vec_env("CartPole-v1", n_envs=s["worlds"], seed=args.seed)
    return cls("MlpPolicy", env, learning_rate=s["learning_rate"], batch_size=s["batch"],
               buffer_size=s["replay"], learning_starts=s["learning_starts"], gamma=s["gamma"],
               target_update_interval=s["target_interval_steps"], train_freq=s["steps_per_burst"],
               gradient_steps=s["updates_per_burst"], exploration_fraction=s["epsilon_steps"] / args.steps,
               exploration_initial_eps=s["epsilon_start"], exploration_final_eps=s["epsilon_end"],
               seed=args.seed, device="cpu", policy_kwargs=policy_kwargs)


def sac(cls, args, policy_kwargs):
    s = settings.SAC
    env = make_vec_env("Pendulum-v1", n_envs=s["worlds"], seed=args.seed)
    return cls("MlpPolicy", env, learning_rate=s["learning_rate"], batch_size=s["batch"], buffer_size=s["replay"],
               learning_starts=s["learning_starts"], gamma=s["gamma"], tau=s["tau"], train_freq=1, gradient_steps=1,
               seed=args.seed, device="cpu", policy_kwargs=policy_kwargs)


def measure(name, packages, args, make):
    """make(): the model; its making is on the clock, as the start of Ringmaster's processes is."""
    watch = common.Watch(args)
    model = make()
    model.learn(args.steps + 1_000_000 * (not args.task.startswith(("dqn", "sac"))), callback=Looking(watch))
    common.emit(name, packages, args.task, **watch.figures())
