"""Where Ringmaster's programs are: inside the package, or beside the sources that it is part of."""
import functools
import importlib.util
import os
import sys
import types
from typing import NoReturn

HERE = os.path.dirname(os.path.abspath(__file__))


def find(kind: str, name: str) -> str:
    """The path of a program (`kind` "bin") or library ("lib"). RINGMASTER_BUILD names another build folder."""
    build = os.environ.get("RINGMASTER_BUILD") or os.path.join(HERE, "..", "..", "build")
    places = [os.path.join(HERE, kind, name), os.path.join(build, "wheel", kind, name), os.path.join(build, kind, name)]
    for place in places:
        if os.path.exists(place):
            return os.path.abspath(place)
    raise FileNotFoundError(f"{name} is not in this package ({HERE}): install ringmaster's wheel, or build it by `make wheel`")


def worker_package() -> str:
    """The folder in which workers of Python worlds find this package, and none beside it."""
    inside = os.path.join(HERE, "python")
    return inside if os.path.isdir(inside) else os.path.dirname(HERE)


@functools.lru_cache(maxsize=None)
def script(name: str) -> types.ModuleType:
    """A module that is also a program of its own: scripts/ of the sources."""
    places = [os.path.join(HERE, "scripts", f"{name}.py"), os.path.join(HERE, "..", "..", "scripts", f"{name}.py")]
    path = next(filter(os.path.exists, places))
    spec = importlib.util.spec_from_file_location(f"ringmaster.scripts.{name}", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def ringctl() -> NoReturn:
    """The console script of the same name."""
    os.execv(find("bin", "ringctl"), ["ringctl", *sys.argv[1:]])


def ringmasterd() -> NoReturn:
    """The console script of the same name."""
    os.execv(find("bin", "ringmasterd"), ["ringmasterd", *sys.argv[1:]])
