"""Real runs: a directory that they are made in, how they are started, asked and ended, and what is left of one in
lockstep that another must have to the bit."""
import array
import hashlib
import json
import os
import subprocess
import tempfile
import time

import archive  # beside this file

BUILD = os.environ.get("BUILD", "build")
PATIENCE_S = 300
ALREADY_RUNNING = 3
SETTINGS = {"mode": "free", "run.steps": 0, "actor.worlds": 4, "evaluation.interval": 0,
            "evaluation.final_episodes": 0, "metrics.tensorboard": "off"}
SHARED = ("ring", "priorities", "weights")  # and no counters


class Home:
    """A directory with runs of the name "t", all of them with these settings unless a start says otherwise."""

    def __init__(self, path, file="config/cartpole-dqn.json", settings=None):
        self.path, self.file = path, file
        self.settings = SETTINGS if settings is None else settings
        self.process, self.user, self.socket = None, None, f"{path}/socket"

    def start(self, *options, environment=None, file=None, socket=None, name="t", **settings):
        self.socket = socket or f"{self.path}/socket"
        command = [f"{BUILD}/bin/ringmasterd", "--name", name, "--run-directory", self.path, "--socket", self.socket,
                   *options]
        for key, value in {**self.settings, **{k.replace("__", "."): v for k, v in settings.items()}}.items():
            command += ["--set", f"{key}={value}"]
        self.process = subprocess.Popen([*command, file or self.file], stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE, text=True, env={**os.environ, **(environment or {})},
                                        start_new_session=True, user=self.user,
                                        group=self.user, extra_groups=None if self.user is None else [])
        return self.process

    def ask(self, *words):
        done = subprocess.run([f"{BUILD}/bin/ringctl", words[0], "--socket", self.socket, *words[1:]],
                              capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        return done.returncode, done.stdout + done.stderr

    def status(self):
        code, text = self.ask("status", "--json")
        return json.loads(text) if code == 0 else {}

    def until(self, true):
        end = time.monotonic() + PATIENCE_S
        while not true():
            if self.process.poll() is not None or time.monotonic() > end:
                raise AssertionError(f"did not come about; {self.process.communicate()[1][-600:]}")
            time.sleep(0.02)

    def value(self, key):
        return self.ask("get", key)[1].strip()

    def until_free(self):
        """Of one that was killed, the sweeper removes the socket and its lock a moment later."""
        end = time.monotonic() + PATIENCE_S
        while any(map(os.path.exists, (self.socket, f"{self.socket}.lock"))) and time.monotonic() < end:
            time.sleep(0.02)

    def kill(self):
        """Leaves nobody who still makes or removes files in the directory."""
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.communicate()
        self.until_free()

    def steps(self):
        return self.status().get("progress", {}).get("steps", 0)

    def up(self):
        """All are there and work: before that there can be no checkpoint."""
        workers = self.status().get("workers", [])
        return bool(workers) and all(w["supervisor"] == "up" for w in workers)

    def trained(self, more=1000):
        self.until(self.up)
        begun = self.steps()
        self.until(lambda: self.steps() >= begun + more)

    def end(self, code=0):
        said = self.process.communicate(timeout=PATIENCE_S)[1]
        assert self.process.returncode == code, f"exit code {self.process.returncode}: {said}"
        return said

    def stop(self):
        self.ask("stop")
        return self.end()

    def latest(self):
        return os.path.realpath(f"{self.path}/t/latest")

    def checkpoints(self):
        folder = f"{self.latest()}/checkpoints"
        return sorted(os.listdir(folder)) if os.path.isdir(folder) else []

    def manifest(self, name):
        with open(f"{self.latest()}/checkpoints/{name}/manifest.json", encoding="utf-8") as file:
            return json.load(file)["manifest"]

    def summary(self):
        with open(f"{self.latest()}/summary.json", encoding="utf-8") as file:
            return json.load(file)

    def stopped_once(self):
        """A run that was stopped, and where."""
        self.start()
        self.trained(2000)
        self.stop()
        assert self.checkpoints() == ["000001"], self.checkpoints()
        return self.manifest("000001")["step"]


    def finished(self):
        path = f"{self.path}/t/latest/summary.json"
        return os.path.exists(path) and self.summary()["finished"]

    def to_its_end(self, *options):
        """What was said. The place of one that was killed is free a moment later."""
        until = time.monotonic() + PATIENCE_S
        while True:
            said = self.start(*options).communicate(timeout=PATIENCE_S)[1]
            if self.process.returncode == 0:
                return said
            if self.process.returncode != ALREADY_RUNNING or time.monotonic() > until:
                raise RuntimeError(f"exit code {self.process.returncode}: {said}")
            time.sleep(0.05)

    def results(self):
        """Hashes by name: of policies, and of what the last checkpoint is made of. Not of the best policy: a run that is
        resumed does not play an evaluation again."""
        latest = f"{self.path}/t/latest"
        folder = f"{latest}/checkpoints/{max(n for n in os.listdir(f'{latest}/checkpoints') if n.isdigit())}"
        found = {
            f"policies/{entry.name}": hashed(entry.path) for entry in os.scandir(f"{latest}/policies") if entry.is_file()
        }
        found |= {n: hashed(f"{folder}/{n}") for n in os.listdir(folder) if n.startswith(("actor", "learner"))}
        for name, data in archive.streams(f"{folder}/shared-0.state").items():
            if name.startswith(SHARED):
                found[name] = hashlib.sha256(data).hexdigest()
        return found


def hashed(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def undisturbed(file, settings):
    """The results of a run that nobody touches."""
    with tempfile.TemporaryDirectory() as directory:
        home = Home(directory, file, settings)
        home.to_its_end()
        return home.results()


def differences(found, expected):
    return sorted(name for name in found.keys() | expected.keys() if found.get(name) != expected.get(name))


def parameters(run):
    """All parameters of a run's policy."""
    with open(f"{run.latest()}/policies/agent_0.safetensors", "rb") as file:
        file.seek(int.from_bytes(file.read(8), "little"), os.SEEK_CUR)
        return array.array("f", file.read())


def use_device(count=1):
    """Runs from now on have `count` emulated devices, or those of the plugin in the environment."""
    os.environ.setdefault("RINGMASTER_CUDA_PLUGIN", os.path.abspath(f"{BUILD}/lib/emulated/ringmaster-cuda.so"))
    os.environ.setdefault("RINGMASTER_NCCL", os.path.abspath(f"{BUILD}/lib/emulated/libnccl.so.2"))
    os.environ["RM_EMULATED_DEVICES"] = str(count)


def report(tests, home_of=Home):
    """Runs them, each with a home of its own, and prints TAP lines. The exit code. A test that returns words was
    skipped for that reason."""
    failed = 0
    print(f"1..{len(tests)}", flush=True)
    for number, test in enumerate(tests, 1):
        with tempfile.TemporaryDirectory() as path:
            home, wrong, skipped = home_of(path), "", None
            try:
                skipped = test(home)
            except (AssertionError, OSError, RuntimeError, subprocess.TimeoutExpired) as error:
                wrong, failed = f": {error}", failed + 1
            finally:
                home.kill()
        print(f"{'not ' if wrong else ''}ok {number} - {test.__name__.replace('_', ' ')}{wrong}"
              f"{f' # SKIP {skipped}' if skipped else ''}", flush=True)
    return 1 if failed else 0
