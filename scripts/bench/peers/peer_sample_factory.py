"""Sample Factory: PPO on CartPole.

--threads 1 is its serial mode, where a policy can be evaluated between updates; --threads 2 its asynchronous
mode with two workers and a learner in processes of their own: steps/s only.
"""
import sys
import tempfile

import common

args = common.arguments(["ppo", "ppo40", "ppo64"])
parallel = args.threads > 1
args.no_evaluation |= parallel
torch = common.torch_threads(1)

import gymnasium  # noqa: E402
from sample_factory.algo.runners.runner import AlgoObserver  # noqa: E402
from sample_factory.algo.utils.misc import ExperimentStatus  # noqa: E402
from sample_factory.algo.utils.rl_utils import prepare_and_normalize_obs  # noqa: E402
from sample_factory.cfg.arguments import parse_full_cfg, parse_sf_args  # noqa: E402
from sample_factory.envs.env_utils import register_env  # noqa: E402
from sample_factory.train import make_runner  # noqa: E402
from sample_factory.utils.utils import log  # noqa: E402

import settings  # noqa: E402


def world(*_args, **_more):
    """Not within main: other processes look it up."""
    return gymnasium.make("CartPole-v1")


class Looking(AlgoObserver):
    def __init__(self, watch):
        self.watch = watch

    def on_start(self, _runner):
        self.watch.start()  # before it, processes were started that import everything again

    def on_training_step(self, runner, _):
        steps = runner.env_steps.get(0, 0) if parallel else runner.learners[0].learner.env_steps
        if steps and not self.watch.look(steps, lambda observations: self.greedy(runner, observations)):
            runner.cfg.train_for_env_steps = 0  # ends at its next look

    @staticmethod
    def greedy(runner, observations):
        net = runner.learners[0].learner.actor_critic
        with torch.no_grad():
            inputs = prepare_and_normalize_obs(net, {"obs": torch.from_numpy(observations)})
            net(inputs, torch.zeros(len(observations), 2))
            return net.action_distribution().probs.argmax(-1).numpy()


def config(directory):
    s = settings.TASKS[args.task]
    workers = 2 if parallel else 1
    options = {
        "env": "CartPole-v1", "experiment": "peer", "train_dir": directory, "seed": args.seed,
        "device": "cpu", "serial_mode": not parallel, "async_rl": parallel, "num_workers": workers,
        "num_envs_per_worker": s["worlds"] // workers, "worker_num_splits": 2 if parallel else 1,
        "rollout": s["rollout"], "batch_size": s["batch"], "num_batches_per_epoch": s["minibatches"],
        "num_epochs": s["epochs"], "shuffle_minibatches": True, "use_rnn": False, "recurrence": 1,
        "actor_critic_share_weights": False, "nonlinearity": "tanh", "policy_initialization": "orthogonal",
        "normalize_input": False, "normalize_returns": False, "learning_rate": s["learning_rate"],
        "gamma": s["gamma"], "gae_lambda": s["gae_lambda"], "ppo_clip_ratio": s["clip"],
        "ppo_clip_value": 1e6, "value_loss_coeff": s["value"], "exploration_loss_coeff": s["entropy"],
        "max_grad_norm": s["grad_clip"], "adam_eps": s["adam_epsilon"], "value_bootstrap": True,
        "train_for_env_steps": 10**9, "save_every_sec": 10**6, "with_wandb": False, "save_best_every_sec": 10**6,
        "experiment_summaries_interval": 3600, "max_policy_lag": 10**6,
    }
    flags = [f"--{key}={value}" for key, value in options.items()]
    parser, _ = parse_sf_args([*flags, "--encoder_mlp_layers", *map(str, s["layers"])])
    return parse_full_cfg(parser, [*flags, "--encoder_mlp_layers", *map(str, s["layers"])])


def main():
    log.setLevel("ERROR")
    register_env("CartPole-v1", world)
    with tempfile.TemporaryDirectory() as directory:
        watch = common.Watch(args)
        _, runner = make_runner(config(directory))
        runner.register_observer(Looking(watch))
        if runner.init() != ExperimentStatus.SUCCESS or runner.run() != ExperimentStatus.SUCCESS:
            sys.exit("Sample Factory did not run")
        common.emit("Sample Factory", ["sample-factory", "torch", "gymnasium", "numpy"], args.task,
                    mode="asynchronous" if parallel else "serial", **watch.figures())


if __name__ == "__main__":
    main()
