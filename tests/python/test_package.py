"""The package as it is installed, by whoever is not root: run by tests/protocol/check-wheel in a throw-away environment."""
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import ringmaster
from ringmaster.runs import Progress
from ringmaster.vector import AtRandom

SMALL = {"layers": [{"type": "linear", "units": 8}, {"type": "tanh"}]}
PPO = {"network": SMALL, "actor": {"worlds": 8}, "rollout": {"steps": 16},
       "evaluation": {"episodes": 4, "final_episodes": 4, "worlds": 2}}
CORRIDOR = """
import sys
import numpy as np
import gymnasium
import ringmaster
from ringmaster.vector import AtRandom


class Corridor(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(0, 8, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)
    metadata = {"figures": ["way"]}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = self.time = 0
        return np.array([0], np.float32), {}

    def step(self, action):
        self.place, self.time = max(0, self.place + (1 if action else -1)), self.time + 1
        return np.array([self.place], np.float32), -0.1, self.place == 4, self.time == 20, {"way": self.place}


if __name__ == "__main__":
    run = ringmaster.train(env=Corridor, steps=1500, directory=sys.argv[1], progress=False, **__SETTINGS__)
    print(run.directory)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def run(folder):
    """A run of a world of C, with whom we talk meanwhile."""
    seen = {}

    def begun(client):
        talk(client, seen)

    run = ringmaster.train({"world": {"name": "cartpole"}, "mode": "free", **PPO}, algorithm="ppo", steps=10**9, seed=3,
                           name="talked-to", directory=folder, progress=False, on_start=begun)
    return run, seen


def until(condition):
    while not condition():
        time.sleep(0.01)


def patiently(command, **arguments):
    """A reply, once the run's state allows the command."""
    while True:
        try:
            return command(**arguments)
        except ringmaster.Refused as why:
            if why.kind != "not-now":
                raise
            time.sleep(0.01)


def read_counters(client):
    """Values of memory while the daemon cannot answer, between those that it tells."""
    counters, before = client.counters(), client.metrics()
    pid = client.status()["pid"]
    os.kill(pid, signal.SIGSTOP)
    try:
        first = counters.read()
        until(lambda: counters.read()["workers"]["actor-0"]["steps"] > first["workers"]["actor-0"]["steps"])
        later = counters.read()
    finally:
        os.kill(pid, signal.SIGCONT)
    with pytest.raises(TypeError):
        counters.memory[200] = 1
    where = client.call("counters")
    for change, words in (({"layout": 0}, "layout"), ({"layout_hash": "0" * 16}, "is expected"), ({"bytes": 64}, "bytes where 64"),
                          ({"path": "/proc/self/exe"}, "bytes where"), ({"path": "/no/such"}, "daemon has ended")):
        with pytest.raises((ValueError, FileNotFoundError), match=words):
            ringmaster.Counters({**where, **change})
    return before, first, later, client.metrics(), counters


def talk(client, seen):
    with ringmaster.Client(client.path) as listener:
        events = []
        stream = listener.events(timeout_s=20)  # from here on, whenever the thread begins
        thread = threading.Thread(target=lambda: events.extend(stream))
        thread.start()
        until(lambda: (client.status()["policies"][0]["updates"] or 0) >= 10)
        seen["pause"], seen["resume"] = patiently(client.pause), patiently(client.resume)
        seen["commands"] = [command["name"] for command in client.query_schema()]
        seen["trace"] = client.trace(1)
        seen["set"] = client.set("optimizer.learning_rate", 0.002)
        seen["rate"] = client.get("optimizer.learning_rate")
        seen["config"] = client.get()
        seen["metrics"] = client.metrics(describe=True)
        seen["counters"] = read_counters(client)
        seen["checkpoint"] = patiently(client.checkpoint)
        seen["evaluate"] = patiently(client.evaluate, episodes=3)
        seen["policies"] = patiently(client.policies)
        with pytest.raises(ringmaster.Refused) as refused:
            client.set("no.such.key", 1)
        seen["refused"] = refused.value
        until(lambda: (client.status()["evaluation"]["count"] or 0) >= 1)
        seen["stop"] = client.stop()
        thread.join()
        seen["events"] = events


def test_every_command_is_answered(run):
    run, seen = run
    assert seen["set"]["value"] == seen["rate"] == 0.002 and seen["config"]["seed"] == 3
    assert seen["pause"]["state"] == "paused" and seen["resume"]["state"] in ("starting", "running")
    methods = [name for name, method in vars(ringmaster.Client).items() if callable(method)]
    assert "trace" in seen["commands"] and {name.replace("-", "_") for name in seen["commands"]} <= set(methods)
    assert 0.9e9 < seen["trace"]["until_ns"] - seen["trace"]["from_ns"] < 1.1e9
    assert seen["metrics"]["definitions"] and seen["checkpoint"]["number"] == 1
    assert list(seen["policies"]) == ["agent_0"] and seen["refused"].kind == "invalid-argument"
    before, first, later, after, counters = seen["counters"]
    assert counters.policies == ["agent_0"] and "actor-0" in counters.workers
    told = [metrics["policies"][0]["values"] for metrics in (before, after)]
    for name in ("env_steps", "updates", "published", "samples"):
        values = [told[0][name], first["policies"]["agent_0"][name], later["policies"]["agent_0"][name], told[1][name]]
        assert values == sorted(values) and values[0] > 0, (name, values)
    assert set(first["policies"]["agent_0"]) == set(told[0]) and 0 < later["policies"]["agent_0"]["learning_rate"] < 1
    assert counters.read()["policies"]["agent_0"]["updates"] >= told[1]["updates"]  # the daemon has ended
    counters.close()
    kinds = {event["event"] for event in seen["events"]}
    assert {"state", "set", "evaluation"} <= kinds


def test_nothing_listens():
    with pytest.raises(ConnectionError, match="nothing runs at"):
        ringmaster.Client("no-such-run")


class Crowded(threading.Thread):
    """A daemon whose connections each get lines, after a greeting and a command, and are closed."""

    def __init__(self, folder, *lines):
        super().__init__(daemon=True)
        self.lines, self.requests, self.path = lines, [], f"{folder}/crowded.sock"
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen()
        self.start()

    def run(self):
        for greeting, request, *lines in self.lines:
            with self.listener.accept()[0] as client:
                client.sendall(greeting + b"\n")
                if request:
                    self.requests.append(json.loads(client.makefile().readline())["execute"])
                client.sendall(b"".join(line + b"\n" for line in lines))


HELLO = b'{"ringmaster": {"version": "0", "protocol": 1}}'
FULL = b'{"error": {"class": "not-now", "desc": "too many clients"}}'
BUSY = b'{"error": {"class": "not-now", "desc": "is ending"}, "id": 1}'
DONE = b'{"return": {"state": "paused"}, "id": 1}'


def test_a_replaced_client_sends_its_command_again(tmp_path):
    daemon = Crowded(tmp_path, (HELLO, True, FULL), (HELLO, True, DONE))
    with ringmaster.Client(daemon.path) as client:
        assert client.pause() == {"state": "paused"} and daemon.requests == ["pause", "pause"]


def test_a_client_that_was_replaced_before_sends_its_command_once(tmp_path):
    daemon = Crowded(tmp_path, (HELLO, False, FULL), (HELLO, True, DONE))
    with ringmaster.Client(daemon.path) as client:
        daemon.join(0.2)  # its first connection is closed: the pipe is broken
        assert client.pause() == {"state": "paused"} and daemon.requests == ["pause"]


def test_a_refused_command_is_not_sent_again(tmp_path):
    daemon = Crowded(tmp_path, (HELLO, True, BUSY))
    with ringmaster.Client(daemon.path) as client, pytest.raises(ringmaster.Refused, match="is ending"):
        client.pause()
    assert daemon.requests == ["pause"]


def test_the_events_of_a_replaced_client_end_with_the_reason(tmp_path):
    event = b'{"event": "state", "time": 1, "data": {}}'
    daemon = Crowded(tmp_path, (HELLO, True, b'{"return": {}, "id": 1}', event, FULL), (HELLO, True, DONE))
    with ringmaster.Client(daemon.path) as client:
        events = client.events(timeout_s=20)
        assert next(events)["event"] == "state"
        with pytest.raises(ConnectionError, match="too many clients"):
            next(events)
        assert client.pause() == {"state": "paused"}


def test_a_client_without_room_waits_for_it(tmp_path):
    with ringmaster.Client(Crowded(tmp_path, (FULL, False), (HELLO, True, DONE)).path) as client:
        assert client.pause() == {"state": "paused"}


def test_a_client_without_room_gives_up(tmp_path):
    with pytest.raises(ConnectionError, match="too many clients"):
        ringmaster.Client(Crowded(tmp_path, *[(FULL, False)] * 100).path, timeout_s=0.2)


def test_what_a_run_has_left(run):
    run, _ = run
    metrics = run.metrics
    assert metrics["steps"].dtype == np.float64 and np.nanmax(metrics["steps"]) >= 100
    assert len({len(column) for column in metrics.values()}) == 1
    frame = run.frame()
    assert list(frame) == list(metrics) and np.array_equal(frame["steps"], metrics["steps"], equal_nan=True)
    assert run.summary["state"] == "stopped" and not run.summary["finished"]
    assert run.config["name"] == "talked-to" and "talked-to" in run.log
    assert run.checkpoints and run.score is not None
    with open(run.plot(), encoding="utf-8") as file:
        assert file.read().startswith("<svg")
    assert ringmaster.Run(run.directory).policies == run.policies
    with pytest.raises(FileNotFoundError, match="is not a run directory"):
        ringmaster.Run(os.path.dirname(__file__))


def test_a_policy_acts_and_is_evaluated(run):
    policy = run[0].policy()
    state = policy.new_state()
    assert policy.act(np.zeros(4, np.float32), state) in (0, 1)
    assert policy.act(np.zeros(4, np.float32), state, mask=[0, 1]) == 1
    ours = policy.evaluate("cartpole", episodes=5, seed=1)
    theirs = policy.evaluate("gymnasium:CartPole-v1", episodes=5, seed=1)
    assert ours["returns"].shape == (5,) and ours["mean"] == ours["returns"].mean() and ours["lengths"].min() > 0
    assert 8 <= theirs["mean"] <= 500
    with pytest.raises(ValueError, match="the environment takes one of"):
        policy.evaluate(Turned)


class Turned:
    """Shows what CartPole shows and takes something else."""

    def __init__(self):
        import gymnasium
        self.observation_space = gymnasium.spaces.Box(-1, 1, (4,), np.float32)
        self.action_space = gymnasium.spaces.Discrete(5)


def test_a_policy_of_real_actions_is_evaluated(folder):
    run = ringmaster.train(env="pendulum", steps=600, directory=folder, progress=False, **PPO)
    assert run.policy().evaluate("pendulum", episodes=2, seed=1)["mean"] < 0


@pytest.mark.parametrize("world, options, settings", [
    ("pairing", {}, {}), ("pairing", {}, {"algorithm": "dqn", "sample": {"frame_stack": 2, "min_fill": 64, "batch": 8}}),
    ("cartpole", {}, {"algorithm": "dqn", "sample": {"frame_stack": 3, "min_fill": 64, "batch": 8}}),
    ("platformer", {"observe": ["reach", "graph"]}, {}), ("platformer", {"observe": ["reach"]}, {})])
def test_a_policy_is_evaluated_in_its_own_world(folder, world, options, settings):
    more = {**PPO, "run": {"steps": 600}, **settings}
    if "sample" in settings:
        del more["rollout"]
    policy = ringmaster.train(env=world, options=options, directory=folder, progress=False, **more).policy()
    act, shown = policy.act, []
    policy.act = lambda observation, *rest: shown.append(observation) or act(observation, *rest)
    assert policy.evaluate(ringmaster.make(world, **options), episodes=2, seed=1, max_steps=16)["lengths"].max() <= 16
    if world == "pairing":
        assert {len(obs["hand"]) for obs in shown} == {1, 2, 3, 4, 5}
        assert all((obs["hand"] > 0).all() and list(obs) == ["board", "hand", "left"] for obs in shown)


def test_a_policy_without_the_counts_of_its_observations_is_not_evaluated(folder):
    policy = ringmaster.train(env="pairing", steps=600, directory=folder, progress=False, **PPO).policy()
    env = ringmaster.make("pairing")
    del env.observation_space.spaces["hand.count"]
    with pytest.raises(ValueError, match=r"trained on board \[3, 3\], hand \[5\], left \[1\], hand.count \[1\]"):
        policy.evaluate(env)


def test_a_policy_is_evaluated_with_masks(folder):
    policy = ringmaster.train(env="taxi", steps=600, directory=folder, progress=False, **PPO).policy()
    assert policy.evaluate("taxi", episodes=3, seed=1)["lengths"].max() <= 200  # the world refuses illegal actions


class Still:
    """Shows the same in every step; an episode has ten."""

    def __init__(self):
        import gymnasium
        self.observation_space = gymnasium.spaces.Box(-1, 1, (4,), np.float32)
        self.action_space = gymnasium.spaces.Discrete(2)
        self.actions = []

    def reset(self, *, seed=None):
        self.actions.append([])
        return np.ones(4, np.float32), {}

    def step(self, action):
        self.actions[-1].append(action)
        return np.ones(4, np.float32), 0.0, False, len(self.actions[-1]) == 10, {}


def test_a_policy_is_evaluated_with_memory(folder):
    layers = [{"type": "linear", "units": 8}, {"type": "tanh"}, {"type": "gru", "units": 8}]
    policy = ringmaster.train(env="cartpole", steps=600, directory=folder, progress=False,
                              **{**PPO, "network": {"layers": layers}}).policy()
    weights = dict(policy.tensors)
    for name in ("head.weight", "head.bias"):  # the action changes as memory fills
        weights[name] = np.random.default_rng(3).normal(size=weights[name].shape).astype(np.float32)
    memory, logits = {}, []
    policy = ringmaster.Policy(weights, policy.metadata)
    for _ in range(10):
        logits.append(policy.outputs(np.ones((1, 4)), memory=memory)[0])
    between = (logits[0] + logits[-1]) / 2  # of what it says first and last
    policy.tensors["head.bias"] = weights["head.bias"] - between
    state, env = policy.new_state(), Still()
    wanted = [policy.act(np.ones(4, np.float32), state) for _ in range(10)]
    assert policy.evaluate(env, episodes=3)["lengths"].tolist() == [10] * 3
    assert env.actions == [wanted] * 3 and set(wanted) == {0, 1}


def test_ctrl_c_stops_a_run_which_is_resumed(folder):
    """A run of an experiment's file."""
    file = folder / "file.json"
    file.write_text(json.dumps({"name": "of-a-file", "world": {"name": "cartpole"}, "algorithm": {"name": "ppo"}, "seed": 1,
                                "mode": "free", "run": {"steps": 10**9}, **PPO}))

    def interrupt(client):
        until(lambda: client.status()["state"] == "running" and (client.status()["policies"][0]["updates"] or 0) >= 5)
        raise KeyboardInterrupt

    first = ringmaster.train(file, seed=3, directory=folder, progress=False, on_start=interrupt)
    assert first.config["seed"] == 3 and first.config["name"] == "of-a-file"
    summary = first.summary
    assert summary["state"] == "stopped" and not summary["finished"] and first.checkpoints
    steps = []
    again = ringmaster.train(str(file), seed=3, directory=folder, progress=False, resume=True,
                             on_start=lambda client: steps.append(client.status()["progress"]["steps"]) or client.stop())
    assert steps[0] >= summary["progress"]["steps"] > 0 and again.directory == first.directory


def test_an_environment_of_a_script_trains(folder):
    script = folder / "corridor.py"
    script.write_text(CORRIDOR.replace("__SETTINGS__", repr(PPO)))
    done = subprocess.run([sys.executable, script, folder], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    run = ringmaster.Run(done.stdout.split()[-1])
    assert run.config["world"]["python"] == "corridor:Corridor"
    assert set(run.summary["agents"][0]["figures"]) == {"length", "way"}


def status_of(steps):
    return {"progress": {"steps": steps, "fraction": steps / 1000, "left_s": 9}, "score": {"last": 21.5},
            "rates": {"steps_per_s": 50.4}}


def test_progress_in_a_file_is_a_line_every_some_seconds(capfd):
    now = [100.0]
    progress = Progress(True, lambda: now[0])
    for steps in range(0, 1000, 50):  # one second each
        progress.show(status_of(steps))
        now[0] += 1
    progress.show(status_of(1000), last=True)
    progress.show(status_of(1000), last=True)  # nothing new
    progress.end()
    said = capfd.readouterr().err
    assert said.endswith("\n") and "\r" not in said
    assert [line.partition(" %")[0].split()[-1] for line in said.splitlines()] == ["25", "50", "75", "100"]
    assert "250 steps  50/s  score 21.5  9 s left" in said and said.count("left") == 3


def test_the_last_line_of_progress_is_the_whole_run(folder, capfd):
    run = ringmaster.train(env="cartpole", steps=600, directory=folder, **PPO)
    last = capfd.readouterr().err.splitlines()[-1]
    assert "100 %" in last and f"{run.summary['progress']['steps']:,} steps" in last, last


def test_an_environment_by_name_trains(folder):
    run = ringmaster.train(env="gymnasium:CartPole-v1", steps=600, directory=folder, progress=False, **PPO)
    assert run.config["world"]["interpreter"] == sys.executable and run.config["name"] == "CartPole-v1"


def test_an_environment_of_a_notebook_trains(folder):
    made = {}
    exec("import gymnasium\ndef make(): return gymnasium.make('CartPole-v1', max_episode_steps=9)", made)
    run = ringmaster.train(env=made["make"], steps=600, directory=folder, progress=False, **PPO)
    assert run.score == 9


def test_what_is_wrong_is_said(folder):
    with pytest.raises(RuntimeError, match="there is no built-in world 'cartpool'; the nearest is 'cartpole'"):
        ringmaster.train(env="cartpool", steps=600, directory=folder, progress=False)
    with pytest.raises(ValueError, match="either an experiment's file or env="):
        ringmaster.train()
    with pytest.raises(RuntimeError, match="returned None: it has to return an environment"):
        ringmaster.train(env=lambda: None, steps=600, directory=folder, progress=False)
    with pytest.raises(ValueError, match="there is no built-in world"):
        ringmaster.make_vec("cartpool")
    with pytest.raises(ValueError, match="act in turn"):
        ringmaster.parallel_env("treasurehunt")


@pytest.mark.parametrize("world", ["cartpole", "mountaincar", "frozenlake", "darkroom", "pendulum", "pairing"])
def test_a_world_is_an_environment(world):
    from gymnasium.utils.env_checker import check_env
    check_env(ringmaster.make(world), skip_render_check=True)


def legal(action, mask):
    """The action, or a legal one if it is not."""
    return action if mask[action] else int(mask.argmax())


@pytest.mark.parametrize("world", ["taxi", "prover"])
def test_a_world_with_masks_is_an_environment(world):
    import gymnasium
    from gymnasium.utils.env_checker import check_env

    class Legal(gymnasium.ActionWrapper):
        def action(self, action):
            return legal(action, self.env.info()["action_mask"])

    check_env(Legal(ringmaster.make(world)), skip_render_check=True)
    check_env(ringmaster.make("taxi", mask=0), skip_render_check=True)


def test_an_illegal_action_is_refused():
    env = ringmaster.make("taxi")
    for _ in range(2):  # reset() is all that is needed then
        _, info = env.reset(seed=1)
        with pytest.raises(RuntimeError, match="is masked out"):
            env.step(int(info["action_mask"].argmin()))
    env.reset(seed=1)
    env.step(env.action_space.sample(info["action_mask"]))
    vector = ringmaster.make_vec("taxi", num_envs=5)
    _, infos = vector.reset(seed=1)
    for _ in range(20):
        *_, infos = vector.step(vector.action_space.sample(tuple(infos["action_mask"])))
    vector.close()


def test_seeds_and_options_that_worlds_side_by_side_do_not_take():
    vector = ringmaster.make_vec("cartpole", num_envs=2)
    for wrong in ({"seed": [3, 4]}, {"seed": np.array([3, 4])}, {"options": {"reset_mask": np.array([True, False])}}):
        with pytest.raises(ValueError, match="one seed"):
            vector.reset(**wrong)
    vector.reset(seed=np.int64(3), options={})
    vector.close()


def test_a_vector_environment_closes_in_any_gymnasium(monkeypatch):
    from gymnasium.vector import VectorEnv

    def initial(self, num_envs, observation_space, action_space):
        assert num_envs == 2 and observation_space.shape == (4,) and action_space.n == 2
        self.closed = self.viewer = None

    monkeypatch.delattr(VectorEnv, "closed", raising=False)  # as 0.29 has it
    monkeypatch.setattr(VectorEnv, "__init__", initial, raising=False)
    vector = ringmaster.make_vec("cartpole", num_envs=2)
    vector.reset(seed=1)
    vector.close()
    assert vector.closed and vector.worlds.handle is None
    vector.close()


def test_worlds_side_by_side_do_as_each_alone():
    vector, other = ringmaster.make_vec("cartpole", num_envs=5), ringmaster.make_vec("cartpole", num_envs=5)
    for one in (vector, other):
        obs, infos = one.reset(seed=9)
        assert obs in one.observation_space and obs.dtype == np.float32 and infos == {}
    ends = 0
    for t in range(300):
        actions = np.full(5, t % 3 == 0, np.int64)
        rows, again = vector.step(actions), other.step(actions)
        for a, b in zip(rows[:4], again[:4]):
            assert np.array_equal(a, b)
        assert rows[1].dtype == np.float64 and rows[2].dtype == rows[3].dtype == bool
        ends += int(rows[2].sum())
    assert ends > 5
    vector.close()


def test_several_observations_are_a_dict():
    vector = ringmaster.make_vec("pairing", num_envs=64)
    obs, _ = vector.reset(seed=4)
    paid = 0.0
    for _ in range(40):
        assert obs in vector.observation_space and list(obs) == ["board", "hand", "hand.count", "left"]
        assert obs["board"].shape == (64, 3, 3) and (obs["board"].sum(axis=(1, 2)) == 1).all()
        counts = obs["hand.count"][:, 0]
        assert ((obs["hand"] > 0).sum(axis=1) == counts).all() and counts.min() == 1 and counts.max() == 5
        seven = (obs["hand"] == 7).any(axis=1)
        obs, rewards, terminated, truncated, _ = vector.step((obs["board"].max(axis=1).argmax(axis=1) + seven) % 3)
        paid += rewards.sum()
    begun = 40 // 17  # steps in which every world began anew
    assert paid == 64 * (40 - begun) and obs["left"].dtype == np.float32
    vector.close()


def test_choices_beside_real_numbers_are_a_dict():
    from gymnasium.utils.env_checker import check_env
    world = {"python": "games:both_levers", "interpreter": sys.executable, "directory": os.environ["RM_TEST_WORLDS"]}
    check_env(ringmaster.make(world), skip_render_check=True)
    vector = ringmaster.make_vec(world, num_envs=6, seed=2)
    vector.reset()
    drawn = AtRandom(1)(vector.lanes)
    for actions in (vector.action_space.sample(), {name: part.astype(vector.action_space[name].dtype)
                                                   for name, part in drawn.items()}):
        assert actions in vector.action_space and list(actions) == ["choices", "reals"]
        obs, rewards, *_ = vector.step(actions)
        pull, push = actions["reals"][:, :1], actions["reals"][:, 1:]
        assert np.array_equal(obs, np.concatenate([push, pull], axis=1)) and np.array_equal(rewards, actions["choices"])
    vector.close()


def test_one_agent_among_others():
    vector = ringmaster.make_vec("treasurehunt", num_envs=64, agent="agent_3")
    obs, _ = vector.reset(seed=1)
    assert obs.shape == (64, *vector.single_observation_space.shape) and vector.num_envs == 64
    asked = []
    vector.others = lambda name, obs, mask: asked.append((name, obs.shape)) or np.zeros(64, np.int32)
    for _ in range(60):
        obs, rewards, terminated, truncated, infos = vector.step(vector.action_space.sample())
        if truncated.any() or terminated.any():
            break
    assert truncated.all() and "gems" in infos and infos["_gems"].all()
    assert {name for name, _ in asked} == {"agent_0", "agent_1", "agent_2", "agent_4"}
    with pytest.raises(ValueError, match="has no agent 'agent_9'"):
        ringmaster.make_vec("treasurehunt", agent="agent_9")


def test_agents_of_a_world():
    pytest.importorskip("pettingzoo")
    from pettingzoo.test import api_test, parallel_api_test
    api_test(ringmaster.aec_env("treasurehunt"), num_cycles=200)
    world = {"python": "games:meeting", "interpreter": sys.executable, "directory": os.environ["RM_TEST_WORLDS"]}
    parallel_api_test(ringmaster.parallel_env(world), num_cycles=200)
    masked = ringmaster.parallel_env("count", agents=2, mask=1)
    step = masked.step
    masked.step = lambda actions: step({name: legal(action, masked.info(name)["action_mask"])
                                        for name, action in actions.items()})
    parallel_api_test(masked, num_cycles=200)


def test_a_world_shows_itself():
    env = ringmaster.make("frozenlake", render_mode="ansi")
    env.reset(seed=1)
    assert env.render().startswith("@")
    env = ringmaster.make("frozenlake", render_mode="rgb_array")
    env.reset(seed=1)
    assert env.render().ndim == 3


def test_ringctl_is_there():
    ringctl = os.path.join(os.path.dirname(sys.executable), "ringctl")
    done = subprocess.run([ringctl, "schema"], capture_output=True, text=True, check=True)
    assert "properties" in json.loads(done.stdout)
    assert subprocess.run([ringctl, "nonsense"], capture_output=True, check=False).returncode == 2


def test_recording(folder):
    """A run's rows as arrays, as episodes and as a file; ringctl writes the same file by this package."""
    run = ringmaster.train({"world": {"name": "darkroom"}, "record": {"directory": "recording", "wait": True}, **PPO},
                           algorithm="ppo", steps=1000, seed=3, name="recorded", directory=folder, progress=False)
    recording = ringmaster.Recording(os.path.join(run.directory, "recording"))
    stream = recording["actor-0.agent_0"]
    assert stream["obs"].shape == (*stream["flags"].shape, 2) and len(recording) == 1
    assert stream["row"].tolist() == list(range(len(stream["row"])))
    episodes = list(recording.episodes("actor-0.agent_0"))
    assert len(episodes) == np.count_nonzero(stream["flags"] & 2)
    for episode in episodes:
        assert len(episode["obs"]) == 21 and len(episode["action"]) == len(episode["reward"]) == 20
        assert (episode["obs"][0] == 4).all() and episode["flags"].tolist() == [0] * 19 + [2]
    recording.export(folder / "rows.npz")
    with np.load(folder / "rows.npz") as file:
        assert all((file[f"actor-0.agent_0.{column}"] == stream[column]).all() for column in stream)
    with pytest.raises(ValueError, match="should end with"):
        recording.export(folder / "rows.txt")
    with pytest.raises(ValueError, match="recording.json"):
        ringmaster.Recording(folder)


PUBLIC = """
import ringmaster
reveal_type(ringmaster.train)  # ringmaster.runs.Run
reveal_type(ringmaster.train().policy())  # ringmaster.policy.Policy
reveal_type(ringmaster.train().policies)  # dict[str, str]
reveal_type(ringmaster.Policy.load("").torch())  # ringmaster.torch_policy.TorchPolicy
reveal_type(ringmaster.Policy.load("").outputs(0))  # ndarray
reveal_type(ringmaster.make("cartpole"))  # gymnasium.core.Env
reveal_type(ringmaster.make_vec("cartpole"))  # gymnasium.vector.vector_env.VectorEnv
reveal_type(ringmaster.parallel_env)  # def (world: 
reveal_type(ringmaster.aec_env)  # def (world: 
reveal_type(ringmaster.Client("").trace(1))  # dict[str, int]
reveal_type(ringmaster.Client("").counters())  # ringmaster.client.Counters
reveal_type(ringmaster.Recording(""))  # ringmaster.recording.Recording
ringmaster.trian()  # error
"""


def test_types_can_be_checked(tmp_path):
    pytest.importorskip("mypy", reason="mypy is not installed")
    (tmp_path / "user.py").write_text(PUBLIC)
    names = ("client", "making", "policy", "programs", "recording", "runs", "showing", "torch_policy", "vector")
    modules = [word for name in names for word in ("-m", f"ringmaster.{name}")]
    done = subprocess.run([sys.executable, "-m", "mypy", "--ignore-missing-imports", "--check-untyped-defs",
                           "--follow-imports=silent", "--cache-dir", tmp_path, "-m", "user", "-m", "ringmaster", *modules],
                          cwd=tmp_path, capture_output=True, text=True, check=False)
    said = done.stdout.replace("builtins.", "")  # as older versions say
    revealed = dict(re.findall(r'user.py:(\d+): note: Revealed type is "(.*)"', said))
    errors = re.findall(r".*: error: .*", done.stdout)
    for number, line in enumerate(PUBLIC.splitlines(), 1):
        if line.startswith("reveal_type"):
            assert line.partition("# ")[2] in revealed[str(number)], (line, done.stdout)
    assert len(errors) == 1 and '"trian"' in errors[0], done.stdout
