"""From "module:name" and options to environments, and what kind they are."""
import difflib
import importlib
import importlib.util
import os
import pkgutil
import sys

from .spaces import LEGACY, Fault, warn


RENDER_MODES = {"text": ("ansi", "rgb_array"), "picture": ("rgb_array",)}


def close(env):
    """Makes room for another one: some engines allow only one instance in a process."""
    try:
        getattr(env, "close", int)()
    except Exception as why:  # the next one may be made all the same
        warn(f"an environment that is not used was not closed: {type(why).__name__}: {why}")


def first(spec, options, show=None):
    """A function without arguments that makes environments, and one that it has made. `show`: "text" or "picture",
    if they are to be rendered as that, in whichever way they can."""
    for mode in RENDER_MODES.get(show, ()):
        if "render_mode" in options:
            break
        try:
            make = load(spec, {**options, "render_mode": mode})
            env = make()
        except Exception:  # environments refuse modes in ways of their own
            continue
        can = (getattr(env, "metadata", None) or {}).get("render_modes", [mode])
        if getattr(env, "render_mode", None) == mode and mode in can:
            return make, env
        close(env)
    make = load(spec, options)

    def made():
        env = make()
        check_rendering(env)
        return env
    return made, made()


def name_library_of_glfw():
    """MuJoCo's environments import glfw, which starts a process at its import to ask its library's version. A confined world
    may not, and need not when glfw is told which library to take: its own."""
    found = importlib.util.find_spec("glfw")
    for folder in found.submodule_search_locations or () if found else ():
        library = os.path.join(folder, "x11", "libglfw.so")
        if os.path.exists(library):
            os.environ.setdefault("PYGLFW_LIBRARY", library)


def versions(spec):
    """The interpreter's, and those of packages that have a part in worlds, for the log."""
    names = dict.fromkeys(("numpy", "gymnasium", "gym", "pettingzoo", *(part.partition(".")[0] for part in spec.split(":")[:-1])))
    found = [f"{name} {version}" for name in names
             for version in [getattr(sys.modules.get(name), "__version__", None)] if isinstance(version, str)]
    return f"Python {sys.version.split()[0]} with {', '.join(found)}"


def meant(name, names):
    """ " (did you mean NAME?)" if one of the names is close to a misspelled one, else "". """
    folded = {other.lower(): other for other in names}
    close = difflib.get_close_matches(name.lower(), folded, 1, 0.75)
    return f" (did you mean {folded[close[0]]!r}?)" if close else ""


def modules_beside(name):
    """Names of the modules that can be imported from where `name` would be, gymnasium in any case."""
    above = name.rpartition(".")[0]
    if not above:
        return ["gymnasium", *(found.name for found in pkgutil.iter_modules())]
    return [found.name for found in pkgutil.iter_modules(getattr(sys.modules.get(above), "__path__", []), f"{above}.")]


def load(spec, options):
    """A function without arguments that makes one environment."""
    name_library_of_glfw()
    module_name, _, name = spec.partition(":")
    if module_name == "gymnasium":
        return gymnasium_maker(name, options)
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as why:
        if why.name and (module_name == why.name or module_name.startswith(why.name + ".")):
            raise Fault(f"there is no module {why.name!r}{meant(why.name, modules_beside(why.name))}: it is looked for in the "
                        f"working directory, the folders of PYTHONPATH and {sys.prefix}") from None
        raise
    make = module
    for part in name.split("."):
        if not hasattr(make, part):
            raise Fault(f"module {module_name} has no {name!r}{meant(part, dir(make))}")
        make = getattr(make, part)
    if not callable(make):
        raise Fault(f"{name!r} of module {module_name} is {type(make).__name__}: it has to be a function that returns an "
                    "environment")

    def made():
        env = make(**options)
        if env is None:
            raise Fault(f"{name!r} of module {module_name} returned None: it has to return an environment")
        return env
    return made


def gymnasium_maker(name, options):
    try:
        import gymnasium
    except ModuleNotFoundError as why:
        if why.name != "gymnasium":
            raise
        raise Fault(f"gymnasium is not installed for {sys.executable}: pip install gymnasium, or give "
                    "world.interpreter the path of an interpreter that has it") from None
    options = dict({"disable_env_checker": True}, **options)

    def made():
        try:
            return gymnasium.make(name, **options)
        except (gymnasium.error.Error, ModuleNotFoundError) as why:
            raise Fault(f"gymnasium.make({name!r}): {' '.join(str(why).split())}") from None
    return made


def kind_of(env):
    """"vector", "parallel", "aec" or "single"."""
    modules = {cls.__module__.split(".")[0] for cls in type(env).__mro__}
    if "gym" in modules:
        raise Fault(f"{type(env).__name__} is an environment of gym, not of gymnasium: {LEGACY}")
    if isinstance(env, type):
        raise Fault(f"{env.__name__} is a class that was returned, not an environment: call it")
    if hasattr(env, "num_envs") and hasattr(env, "single_observation_space"):
        return "vector"
    if hasattr(env, "possible_agents") or hasattr(env, "agents"):
        return "aec" if hasattr(env, "last") else "parallel"
    for name in ("reset", "step", "observation_space", "action_space"):
        if getattr(env, name, None) is None:
            raise Fault(f"{type(env).__name__} has no {name}: an environment is an Env or VectorEnv of Gymnasium, or a "
                        "ParallelEnv or AECEnv of PettingZoo")
    return "single"


def check_rendering(env):
    mode = getattr(env, "render_mode", None)
    if mode == "human":
        raise Fault("render_mode is \"human\", which opens a window for every world: leave render_mode out")


DISPLAY = ("display", "xcb", "x server", "glx", "opengl", "egl", "video device")


def hint(error):
    """What to do about an exception that many have met; "" if nothing is known."""
    words = f"{type(error).__name__}: {error}".lower()
    if any(word in words for word in DISPLAY):
        return " (it needs a display: leave rendering out, or run below xvfb-run)"
    if isinstance(error, PermissionError):
        return (" (actor.sandbox lets worlds read the interpreter's and the system's files, the working directory and "
                "the folders of PYTHONPATH, and write below TMPDIR; \"off\" lifts it)")
    if isinstance(error, TypeError) and "unexpected keyword argument" in words:
        return " (world.options are given by name)"
    return ""
