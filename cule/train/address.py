"""Where a class is, as a text that a later process finds it by."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from cule.errors import InvalidValue
from cule.train.algorithm import Algorithm
from cule.train.settings import Args


def module_of(made: type) -> str:
    """The module of a class, or the path of its script."""
    if made.__module__ != "__main__":
        return made.__module__
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    return spec.name if spec else str(Path(getattr(main, "__file__", None) or "-c").resolve())


def address_of(made: type) -> str:
    """Module and name of a class, "examples.ppo.ppo:PPO", or its script's path and its name."""
    return f"{module_of(made)}:{made.__qualname__}"


def program_of(made: type) -> str:
    """How the program that defines a class is called: "python -m examples.ppo.ppo"."""
    module = module_of(made)
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
    sys.modules.setdefault(spec.name, loaded)
    spec.loader.exec_module(loaded)
    return loaded


def _is_missing(module: str, problem: Exception) -> bool:
    """Whether a module or script is not there; otherwise the error is one of its own."""
    if isinstance(problem, ModuleNotFoundError):
        return f"{module}.".startswith(f"{problem.name}.")
    return isinstance(problem, OSError) and problem.filename == str(Path(module).absolute())


def find(address: str) -> Any:
    """The class at an address.

    Raises:
        ValueError: it is not there.
    """
    module, _, name = address.rpartition(":")
    try:
        found: Any = load(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, OSError, AttributeError) as problem:
        raise InvalidValue(
            f"expected the algorithm that was trained at {address}, got none there: {problem}"
        ) from problem
    return found


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
