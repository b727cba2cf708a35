"""Import paths of classes, by which a later process finds them.

A checkpoint has such paths, and may be somebody else's. To import a module is to run it, so that a
module that a file names is imported only if it ships with cule, or if the user names it, too.
"""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import sys
import warnings
from collections.abc import Collection, Mapping
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import cule
from cule.errors import InvalidValue
from cule.train.algorithm import Algorithm
from cule.train.checks import check_types
from cule.train.settings import Args

Kind = TypeVar("Kind")
# The folder of the package. In a source tree the examples are beside it.
_ROOT = Path(cule.__file__).resolve().parents[1]


def module_of(kind: type) -> str:
    """The module of a class, or the path of its script."""
    if kind.__module__ != "__main__":
        return kind.__module__
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    return spec.name if spec else str(Path(getattr(main, "__file__", None) or "-c").resolve())


def address_of(kind: type) -> str:
    """Module and name of a class, "examples.ppo.ppo:PPO", or its script's path and its name."""
    return f"{module_of(kind)}:{kind.__qualname__}"


def program_of(kind: type) -> str:
    """The command that runs the program which defines a class: "python -m examples.ppo.ppo"."""
    module = module_of(kind)
    return f"python {Path(module).name}" if module.endswith(".py") else f"python -m {module}"


def load(module: str) -> ModuleType:
    """A module by its name, or a script by its path.

    Raises:
        ImportError, OSError: it is not there.
    """
    if not module.endswith(".py"):
        return importlib.import_module(module)
    spec = importlib.util.spec_from_file_location(Path(module).stem, module)
    assert spec is not None and spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    kept = sys.modules.setdefault(spec.name, loaded)
    try:
        spec.loader.exec_module(loaded)
    except BaseException:  # as Python does: a later import begins anew
        if kept is loaded:
            sys.modules.pop(spec.name, None)
        raise
    return loaded


def _is_missing(module: str, problem: Exception) -> bool:
    """Whether a module or script is not there; otherwise the error is one of its own."""
    if isinstance(problem, ModuleNotFoundError):
        return f"{module}.".startswith(f"{problem.name}.")
    return isinstance(problem, OSError) and problem.filename == str(Path(module).absolute())


def ships(module: str) -> bool:
    """Whether a module is one of cule's own, or one of the examples of the same source tree.

    The examples count: who runs cule from its source tree trusts all of that tree. A folder
    `examples` elsewhere on Python's path is another's. Nothing is imported to find out.
    """
    package, *parts = module.split(".")
    in_tree = package == "examples" and (_ROOT / "pyproject.toml").is_file()
    if package != "cule" and not in_tree:
        return False
    name, found = package, importlib.util.find_spec(package)
    for part in parts:
        places = None if found is None else found.submodule_search_locations
        if not places:
            return False
        name = f"{name}.{part}"
        found = PathFinder.find_spec(name, list(places))
    origin = None if found is None else found.origin
    return origin is not None and Path(origin).resolve().is_relative_to(_ROOT / package)


def _named(module: str, programs: Collection[str]) -> str | None:
    """The one of the user's programs that is this module; None: there is none.

    A script counts by its file's name without the folder, so that it may have moved.
    """
    if module in programs:
        return module
    name = Path(module).name if module.endswith(".py") else f"{module}.py"
    return next((one for one in programs if Path(one).name == name), None)


def find(address: str, kind: type[Kind], programs: Collection[str] = ()) -> type[Kind]:
    """Imports the class at a path that a file names.

    Args:
        address: "examples.ppo.ppo:PPO", or a script's path and the name.
        kind: the class that it has to be a subclass of.
        programs: modules and scripts that the user has named; of others, only those that ship with
            cule are imported.

    Raises:
        ValueError: it does not exist, is no such class, or is in a module that must not be
            imported.
    """
    module, _, name = address.rpartition(":")
    trusted = module if ships(module) else _named(module, programs)
    if trusted is None:
        program = Path(module).name if module.endswith(".py") else module
        raise InvalidValue(
            f"expected a program that ships with cule or that you name, got a checkpoint of "
            f"{address}: its code runs if you name it, with --program {program}"
        )
    wanted = f"expected the {kind.__name__} that was trained at {address}, got none there"
    try:
        value: Any = load(trusted)
    except (ImportError, OSError) as problem:
        if not _is_missing(trusted, problem):
            raise
        raise InvalidValue(f"{wanted}: {problem}") from problem
    for part in name.split("."):
        if not hasattr(value, part):
            raise InvalidValue(f"{wanted}: {trusted} has no {name}")
        value = getattr(value, part)
    if not (isinstance(value, type) and issubclass(value, kind)):
        raise InvalidValue(f"{wanted}: {name} is no subclass of train.{kind.__name__}")
    return value


def settings_from(kind: type[Args], values: Mapping[str, Any]) -> Args:
    """Settings from the plain values of a file; fields that it lacks have their defaults.

    Old names of settings mean what they meant. There is no warning of them: the user did not write
    the file.

    Raises:
        ValueError: a value is of another type than its field, or there is no such field.
    """
    names = [field.name for field in dataclasses.fields(kind)]
    if unknown := [str(name) for name in values if name not in names]:
        raise InvalidValue(f"expected settings of {kind.__name__}, got {', '.join(unknown)}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        settings = kind(**values)
    check_types(settings)  # once more, if the class has a __post_init__ of its own
    return settings


def program_in(module: str) -> tuple[type[Algorithm[Any]], type[Args]]:
    """The algorithm that a program's module or script defines, and its settings.

    Raises:
        ValueError: it is not there, or does not define one algorithm.
    """
    try:
        loaded = load(module)
    except (ImportError, OSError) as problem:
        if not _is_missing(module, problem):
            raise
        raise InvalidValue(
            f"expected a training program such as examples.ppo.ppo, got {module}: {problem}"
        ) from problem
    own = [
        value
        for value in vars(loaded).values()
        if isinstance(value, type) and value.__module__ == loaded.__name__
    ]
    algorithms = [one for one in own if issubclass(one, Algorithm)]
    settings = [one for one in own if issubclass(one, Args)] or [Args]
    if len(algorithms) != 1 or len(settings) != 1:
        names = ", ".join(one.__name__ for one in [*algorithms, *settings])
        raise InvalidValue(
            f"expected {module} to define one algorithm and its settings, got {names}"
        )
    return algorithms[0], settings[0]
