"""Where a class is, as a text that a later process finds it by."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from typing import Any


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


def find(address: str) -> Any:
    """The class at an address.

    Raises:
        ValueError: it is not there.
    """
    module, _, name = address.rpartition(":")
    try:
        if module.endswith(".py"):
            spec = importlib.util.spec_from_file_location(Path(module).stem, module)
            assert spec is not None and spec.loader is not None
            loaded = importlib.util.module_from_spec(spec)
            sys.modules.setdefault(spec.name, loaded)
            spec.loader.exec_module(loaded)
        else:
            loaded = importlib.import_module(module)
        found: Any = loaded
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, OSError, AttributeError) as problem:
        raise ValueError(
            f"expected the algorithm that was trained at {address}, got none there: {problem}"
        ) from problem
    return found
