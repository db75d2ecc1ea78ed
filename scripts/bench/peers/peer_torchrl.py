"""TorchRL: PPO and DQN on CartPole, from its own collectors, losses and replay buffer."""
import warnings

import common

warnings.filterwarnings("ignore")
args = common.arguments(["ppo", "ppo64", "dqn"])
torch = common.torch_threads(args.threads)

from tensordict.nn import TensorDictModule, TensorDictSequential  # noqa: E402
from torchrl.collectors import SyncDataCollector  # noqa: E402
from torchrl.data import LazyTensorStorage, TensorDictReplayBuffer  # noqa: E402
from torchrl.envs import SerialEnv  # noqa: E402
from torchrl.envs.libs.gym import GymEnv  # noqa: E402
from torchrl.modules import EGreedyModule, MLP, ProbabilisticActor, QValueActor, ValueOperator  # noqa: E402
from torchrl.objectives import ClipPPOLoss, DQNLoss, HardUpdate  # noqa: E402
from torchrl.objectives.value import GAE  # noqa: E402

import settings  # noqa: E402

FOREVER = 10**9


def world():
    return GymEnv("CartPole-v1", categorical_action_encoding=True)


def worlds(count):
    env = SerialEnv(count, world) if count > 1 else world()
    env.set_seed(args.seed)
    return env


def mlp(layers, outputs, activation, gain=None):
    """gain: that of the last layer, of an orthogonal start."""
    net = MLP(in_features=4, out_features=outputs, num_cells=layers, activation_class=activation)
    if gain is not None:
        linear = [m for m in net.modules() if isinstance(m, torch.nn.Linear)]
        for layer in linear:
            torch.nn.init.orthogonal_(layer.weight, gain if layer is linear[-1] else 2**0.5)
            torch.nn.init.zeros_(layer.bias)
    return net


def greedy(net):
    def act(observations):
        with torch.no_grad():
            return net(torch.from_numpy(observations)).argmax(-1).numpy()
    return act


def descend(loss, parameters, optimizer, clip):
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(parameters, clip)
    optimizer.step()


def ppo(watch):
    s = settings.TASKS[args.task]
    policy = mlp(s["layers"], 2, torch.nn.Tanh, 0.01)
    value = ValueOperator(mlp(s["layers"], 1, torch.nn.Tanh, 1.0), in_keys=["observation"])
    actor = ProbabilisticActor(TensorDictModule(policy, in_keys=["observation"], out_keys=["logits"]),
                               in_keys=["logits"], distribution_class=torch.distributions.Categorical,
                               return_log_prob=True)
    rollout = s["worlds"] * s["rollout"]
    advantages = GAE(gamma=s["gamma"], lmbda=s["gae_lambda"], value_network=value)
    loss = ClipPPOLoss(actor, value, clip_epsilon=s["clip"], entropy_bonus=False, critic_coeff=s["value"],
                       loss_critic_type="l2", normalize_advantage=True)
    parameters = list(loss.parameters())
    optimizer = torch.optim.Adam(parameters, lr=s["learning_rate"], eps=s["adam_epsilon"])
    steps = 0
    for data in SyncDataCollector(worlds(s["worlds"]), actor, frames_per_batch=rollout,
                                  total_frames=FOREVER):
        with torch.no_grad():
            advantages(data)
        data = data.reshape(-1)
        for _ in range(s["epochs"]):
            for part in torch.randperm(rollout).split(s["batch"]):
                terms = loss(data[part])
                descend(terms["loss_objective"] + terms["loss_critic"], parameters, optimizer,
                        s["grad_clip"])
        steps += rollout
        if not watch.look(steps, greedy(policy)):
            break


def dqn(watch):
    s = settings.DQN
    net = mlp(s["layers"], 2, torch.nn.ReLU)
    actor = QValueActor(net, in_keys=["observation"], spec=world().action_spec, action_space="categorical")
    explore = EGreedyModule(world().action_spec, s["epsilon_start"], s["epsilon_end"], s["epsilon_steps"])
    replay = TensorDictReplayBuffer(storage=LazyTensorStorage(s["replay"]), batch_size=s["batch"])
    loss = DQNLoss(actor, loss_function="smooth_l1", delay_value=True, double_dqn=False,
                   action_space="categorical")
    loss.make_value_estimator(gamma=s["gamma"])
    target = HardUpdate(loss, value_network_update_interval=s["updates_per_burst"])
    parameters = list(net.parameters())
    optimizer = torch.optim.Adam(parameters, lr=s["learning_rate"], eps=s["adam_epsilon"])
    steps = 0
    for data in SyncDataCollector(worlds(1), TensorDictSequential(actor, explore),
                                  frames_per_batch=s["steps_per_burst"], total_frames=FOREVER,
                                  init_random_frames=s["learning_starts"]):
        steps += data.numel()
        explore.step(data.numel())
        replay.extend(data.reshape(-1))
        if steps >= s["learning_starts"]:
            for _ in range(s["updates_per_burst"]):
                descend(loss(replay.sample())["loss"], parameters, optimizer, s["grad_clip"])
                target.step()
        if not watch.look(steps, greedy(net)):
            break


torch.manual_seed(args.seed)
timed = common.Watch(args)
(dqn if args.task == "dqn" else ppo)(timed)
common.emit("TorchRL", ["torchrl", "tensordict", "torch", "gymnasium"], args.task, **timed.figures())
