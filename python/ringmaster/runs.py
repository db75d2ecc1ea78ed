"""Runs: starting them and reading what they have left."""
import csv
import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Union

import numpy as np

from .client import Client, connect
from .programs import find

if TYPE_CHECKING:
    import pandas

    from .policy import Policy

BAR = 28  # letters
EVERY_S = 5  # between lines of progress in a file


class Run:
    """What a run has left in its directory, which may still grow."""

    def __init__(self, directory: Union[str, os.PathLike]):
        self.directory = os.path.realpath(directory)
        if not os.path.exists(self.path("config.json")):
            raise FileNotFoundError(f"{directory} is not a run directory: it has no config.json")

    def __repr__(self) -> str:
        return f"Run({self.directory!r})"

    def path(self, *names: str) -> str:
        """Of a file of the run."""
        return os.path.join(self.directory, *names)

    def read(self, name: str) -> Dict[str, Any]:
        with open(self.path(name), encoding="utf-8") as file:
            return json.load(file)

    @property
    def config(self) -> Dict[str, Any]:
        """Every key, resolved."""
        return self.read("config.json")

    @property
    def summary(self) -> Dict[str, Any]:
        """Final figures, as `status` of the control protocol has them. There is none before the end."""
        return self.read("summary.json")

    @property
    def score(self) -> Optional[float]:
        """Mean of the last greedy evaluation, else of the last 100 episodes."""
        summary = self.summary
        evaluated = summary["evaluation"]["mean"]
        return summary["score"]["last"] if evaluated is None else evaluated

    @property
    def metrics(self) -> Dict[str, np.ndarray]:
        """Columns of metrics.csv: float64 (rows,), NaN where a row has none."""
        with open(self.path("metrics.csv"), newline="", encoding="utf-8") as file:
            reader = csv.reader(file)
            names = next(reader)
            rows = [row for row in reader if len(row) == len(names)]  # the last one may be half written
        values = np.array([[float(cell) if cell else np.nan for cell in row] for row in rows]).reshape(-1, len(names))
        return dict(zip(names, values.T))

    def frame(self) -> "pandas.DataFrame":
        """The metrics as a frame of pandas."""
        import pandas
        return pandas.DataFrame(self.metrics)

    def files(self, *folder: str) -> Dict[str, str]:
        place = self.path(*folder)
        names = sorted(os.listdir(place)) if os.path.isdir(place) else []
        return {name[:-len(".safetensors")]: os.path.join(place, name) for name in names if name.endswith(".safetensors")}

    @property
    def policies(self) -> Dict[str, str]:
        """Files of the final policies, by name."""
        return self.files("policies")

    @property
    def best(self) -> Dict[str, str]:
        """Files of the policies of the best evaluation."""
        return self.files("policies", "best")

    @property
    def checkpoints(self) -> List[str]:
        """Folders of checkpoints, the newest last."""
        place = self.path("checkpoints")
        return [os.path.join(place, name) for name in sorted(os.listdir(place)) if name.isdigit()] if os.path.isdir(place) \
            else []

    @property
    def log(self) -> str:
        """The journal."""
        with open(self.path("log.txt"), encoding="utf-8", errors="replace") as file:
            return file.read()

    def policy(self, name: Optional[str] = None) -> "Policy":
        """A final policy; the only one needs no name."""
        from .policy import Policy
        files = self.policies
        if name is None and len(files) != 1:
            raise ValueError(f"the run has policies {', '.join(files)}: give the name of one")
        return Policy.load(files[name or next(iter(files))])

    def plot(self, path: Optional[str] = None) -> str:
        """Draws the learning curves, of each agent if there are several, as SVG. Returns the file's path: rewards.svg of the
        run unless told otherwise."""
        path = path or self.path("rewards.svg")
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([find("bin", "ringctl"), "report", self.directory, "--output", os.path.join(folder, "report.html"),
                            "--plots", folder], check=True, stdout=subprocess.DEVNULL)
            plots = [os.path.join(folder, name) for name in ("agents.svg", "score.svg") if name in os.listdir(folder)]
            if not plots:
                raise ValueError(f"{self.directory}: no episode was finished")
            shutil.copyfile(plots[0], path)
        return path


# --- starting ------------------------------------------------------------------------------------


def in_worker() -> bool:
    """Is this process one that steps worlds, which imports a script for its environment?"""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    return spec is not None and spec.name == "ringmaster.worker"


def pickled(env: Callable, folder: str) -> str:
    """A module that has a function of a notebook in it."""
    try:
        import cloudpickle
    except ImportError:
        raise ValueError(f"{getattr(env, '__name__', env)!r} is not in a file that workers can import: define it in a module, or "
                         "pip install cloudpickle") from None
    with open(os.path.join(folder, "env.pickle"), "wb") as file:
        cloudpickle.dump(env, file)
    with open(os.path.join(folder, "ringmaster_notebook.py"), "w", encoding="utf-8") as file:
        file.write("import os\nimport pickle\n\nwith open(os.path.join(os.path.dirname(__file__), 'env.pickle'), 'rb') as file:\n"
                   "    make = pickle.load(file)\n")
    return "ringmaster_notebook:make"


def world_of(env: Union[str, Callable], folder: str) -> Dict[str, Any]:
    """The `world` of an experiment whose environments come from `env`; `folder` is temporary."""
    world: Dict[str, Any] = {"interpreter": sys.executable}
    if isinstance(env, str):
        return {**world, "python": env, "directory": os.getcwd()} if ":" in env else {"name": env}
    name, module = getattr(env, "__qualname__", None), getattr(env, "__module__", None)
    file = getattr(sys.modules.get(module or ""), "__file__", None)
    if isinstance(env, functools.partial) or not name or "<" in name or not module or not file:
        return {**world, "python": pickled(env, folder), "name": "notebook", "directory": folder}
    file = os.path.abspath(file)
    if module == "__main__":
        module = os.path.splitext(os.path.basename(file))[0]
        top = os.path.dirname(file)
    else:
        top = file
        for _ in range(module.count(".") + 1 + (os.path.basename(file) == "__init__.py")):
            top = os.path.dirname(top)
    return {**world, "python": f"{module}:{name}", "directory": top}


def overrides_of(settings: Dict[str, Any], above: str = "") -> List[str]:
    """key=value of every leaf."""
    found: List[str] = []
    for key, value in settings.items():
        if isinstance(value, dict) and value:
            found += overrides_of(value, f"{above}{key}.")
        elif value is not None:
            found.append(f"{above}{key}={json.dumps(value)}")
    return found


class Progress:
    """A line on standard error that follows a run. In a file or a pipe: a line every EVERY_S seconds, and one at the end."""

    def __init__(self, shown: bool, clock: Callable[[], float] = time.monotonic):
        self.shown, self.clock = shown, clock
        self.terminal = sys.stderr.isatty() or "ipykernel" in sys.modules
        self.next_s = clock() + (0 if self.terminal else EVERY_S)
        self.said = ""

    def show(self, status: Dict[str, Any], last: bool = False) -> None:
        now = self.clock()
        if not self.shown or (now < self.next_s and not last):
            return
        self.next_s = now + (0 if self.terminal else EVERY_S)
        progress, score = status["progress"], status["score"]["last"]
        done = min(progress["fraction"] or 0, 1)
        left = progress["left_s"]
        line = (f"[{'=' * int(BAR * done):{BAR}}] {100 * done:3.0f} %  {progress['steps']:,} steps  "
                f"{status['rates']['steps_per_s'] or 0:,.0f}/s" + ("" if score is None else f"  score {score:.4g}")
                + ("" if last or not left else f"  {left:,.0f} s left"))
        if line == self.said:
            return
        self.said = line
        print(f"{line:100.100}" if self.terminal else line, end="\r" if self.terminal else "\n", file=sys.stderr, flush=True)

    def end(self) -> None:
        if self.shown and self.terminal:
            print(file=sys.stderr)


def train(experiment: Union[str, os.PathLike, Dict[str, Any], None] = None, *, env: Union[str, Callable, None] = None,
          algorithm: Optional[str] = None, steps: Optional[float] = None, seed: Optional[int] = None,
          name: Optional[str] = None, directory: Union[str, os.PathLike] = "runs", options: Optional[Dict[str, Any]] = None,
          progress: bool = True, resume: bool = False, on_start: Optional[Callable[[Client], None]] = None,
          **settings: Any) -> Run:
    """Trains, and returns when the run is over.

    experiment: an experiment's file, or what is in one. env instead of it: "gymnasium:CartPole-v1", "module:function", the
    name of a world of C, or a function that returns an environment (in a script, call train() below
    `if __name__ == "__main__":`). options: of the environment. steps: of each agent over all worlds. settings: any keys of
    the configuration, as groups: actor={"worlds": 64}, optimizer={"learning_rate": 3e-4}. directory: in which
    runs are; `resume` goes on with the latest one. on_start is given a Client as soon as the run is there. Ctrl-C stops the
    run in good order.
    """
    if in_worker():
        raise RuntimeError("train() is called while a worker imports this script for its environment: call it below "
                           'if __name__ == "__main__":')
    if (env is None) == (experiment is None):
        raise ValueError("train() takes either an experiment's file or env=")
    folder = tempfile.mkdtemp(prefix="ringmaster-")
    try:
        if env is not None:
            experiment = {"world": world_of(env, folder)}
            called = env.rpartition(":")[2] if isinstance(env, str) else getattr(env, "__name__", "notebook")
            name = name or "".join(c if c.isalnum() or c in "._-" else "_" for c in called).strip("._-") or "env"
        if options:
            settings = {**settings, "world": {**settings.get("world", {}), "options": options}}
        assert experiment is not None  # one of them is
        if isinstance(experiment, dict):
            file = os.path.join(folder, "experiment.json")
            with open(file, "w", encoding="utf-8") as out:
                json.dump({"algorithm": {"name": algorithm or "ppo"}, **experiment}, out)
        else:
            file = os.fspath(experiment)
        settings = {**settings, "seed": seed, "name": name}
        words = overrides_of({**settings, **({"algorithm.name": algorithm} if algorithm else {}),
                              **({"run.steps": int(steps)} if steps is not None else {})})
        command = [find("bin", "ringctl"), "run", file, "--resume" if resume else "--fresh", "--run-directory",
                   os.fspath(directory), "--socket", os.path.join(folder, "control.sock")]
        for word in words:
            command += ["--set", word]
        return follow(command, folder, os.fspath(directory), Progress(progress), on_start)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def follow(command: List[str], folder: str, directory: str, progress: Progress,
           on_start: Optional[Callable[[Client], None]]) -> Run:
    said_path, place = os.path.join(folder, "said"), None
    with open(said_path, "wb") as said:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True)
    client = None
    try:
        client = connect(os.path.join(folder, "control.sock"), lambda: process.poll() is None)
        if client is not None:
            place = place_of(client)
            if place is not None and on_start is not None:
                on_start(client)
        while process.poll() is None:
            try:
                process.wait(0.3)
            except subprocess.TimeoutExpired:
                show(client, progress)
    except KeyboardInterrupt:
        process.terminate()  # in good order: a checkpoint is made
    finally:
        if client is not None:
            client.close()
        if sys.exc_info()[0] is not None:
            process.terminate()
            progress.end()
        process.wait()
    with open(said_path, encoding="utf-8", errors="replace") as file:
        lines = file.read().strip().splitlines()
    if process.returncode and place is None:
        raise RuntimeError("\n".join(lines[-8:]) or f"ringctl ended with exit code {process.returncode}")
    if place is None:
        place = next(line.split(": ", 1)[1] for line in reversed(lines) if line.startswith("run directory: "))
    run = Run(place)
    if os.path.exists(run.path("summary.json")):
        progress.show(run.summary, last=True)
    progress.end()
    if process.returncode not in (0, 5, 130):
        raise RuntimeError("\n".join(lines[-8:]))
    return run


def place_of(client: Client) -> Optional[str]:
    """The run's directory; None if the run is over before it can answer."""
    try:
        return client.status()["run_directory"]
    except ConnectionError:
        return None


def show(client: Optional[Client], progress: Progress) -> None:
    try:
        if client is not None:
            progress.show(client.status())
    except (ConnectionError, OSError):
        pass
