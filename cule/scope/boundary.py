"""Boundaries: calls from Python into native code that torch.profiler does not see.

As RL-Scope does (section 3.2), the functions of native modules are replaced by functions that take
the time before and after; no simulator is compiled again. They are replaced while a recording runs,
and put back after it.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.machinery import ExtensionFileLoader
from time import perf_counter_ns
from types import FunctionType, ModuleType
from typing import Any

from torch.autograd import Variable

from cule.errors import InvalidValue
from cule.scope import capture
from cule.scope.collect import Collected
from cule.scope.events import BACKWARD, REPLAY
from cule.scope.imports import ImportHook
from cule.scope.waiting import waiting_functions

# Packages and modules whose native functions are of a level. JAX's compiled functions are no
# functions of a module (jax_calls.py); what waits for them and copies arrays is.
KNOWN = {
    "cule": "simulator", "ale_py": "simulator", "envpool": "simulator",
    "jaxlib._jax": "backend", "jaxlib.xla_extension": "backend",
}  # fmt: skip
# What a user can say that a module is.
_CHOICES = ("simulator", "backend")
# Native, but they call Python back: env's guard runs the step.
NO_BOUNDARIES = frozenset(("cule._core.Guard",))
_STATIC = ("builtin_function_or_method", "nb_func", "staticmethod", "nb_static_property")
_METHODS = ("instancemethod", "nb_method", "method_descriptor", "function", "method")


def _is_native(module: Any) -> bool:
    return isinstance(getattr(module, "__loader__", None), ExtensionFileLoader)


def inside(name: str) -> list[ModuleType]:
    """The modules that were imported of a package, or a module itself."""
    return [
        module
        for other, module in list(sys.modules.items())
        if module is not None and (other == name or other.startswith(f"{name}."))
    ]


def modules_of(name: str) -> list[ModuleType]:
    """The native modules that were imported of a package, or a module itself that has none."""
    modules = inside(name)
    native = [module for module in modules if _is_native(module)]
    return native or [module for module in modules if module.__name__ == name]


def parse_boundary(text: str) -> tuple[str, str]:
    """Reads "MODULE" or "MODULE=LEVEL": the module, and what it is; a simulator if not said.

    Raises:
        ValueError: there is no such level.
    """
    name, said, level = text.partition("=")
    if said and level not in _CHOICES:
        raise InvalidValue(
            f"expected a boundary to be MODULE, or MODULE=LEVEL with one of {', '.join(_CHOICES)}, "
            f"got {text!r}"
        )
    return name, level or "simulator"


def levels_of(boundaries: Iterable[str]) -> dict[str, str]:
    """The level of each module and package: those that a user names, then those that are known.

    A module of several of them has the level of the first.

    Raises:
        ValueError: as parse_boundary.
    """
    named = dict(map(parse_boundary, boundaries))
    return named | {name: level for name, level in KNOWN.items() if name not in named}


def find_boundary(text: str) -> None:
    """Imports a module whose functions are to be a boundary.

    Raises:
        ValueError: there is no such module, or no such level.
    """
    name, _ = parse_boundary(text)
    try:
        importlib.import_module(name)
    except ImportError as problem:
        raise InvalidValue(
            f"expected --boundary to name a module that can be imported, got {name!r}: {problem}"
        ) from problem


def _callables(module: ModuleType) -> Iterator[tuple[Any, str, Any]]:
    """The functions of a module and of its classes: where, name, and what is there."""
    for name, value in list(vars(module).items()):
        kind = type(value).__name__
        if name.startswith("__"):
            continue
        if isinstance(value, type):
            imported = value.__module__ != module.__name__ and not _is_native(module)
            if imported or f"{value.__module__}.{name}" in NO_BOUNDARIES:
                continue
            for attribute, member in list(vars(value).items()):
                if not attribute.startswith("__") and type(member).__name__ in _STATIC + _METHODS:
                    yield value, attribute, member
        elif (kind in _STATIC and _is_native(module)) or (
            isinstance(value, FunctionType) and value.__module__ == module.__name__
        ):
            yield module, name, value


class Boundaries:
    """The boundaries of a recording.

    Args:
        collected: the lists to which calls are appended.
        levels: the level of packages' and modules' functions, as of levels_of.
    """

    def __init__(self, collected: Collected, levels: Mapping[str, str]):
        self.collected, self.levels = collected, levels
        self._replaced: list[tuple[Any, str, Any]] = []
        self._engine: Any = None
        self._done: list[ModuleType] = []
        # Functions of native modules by their identities, and what is in their place.
        self._wrapped: dict[int, tuple[Any, Any]] = {}
        roots = {name.partition(".")[0] for name in levels}
        self._imports = ImportHook(roots, self._imported)

    def timed(self, function: Callable[..., Any], level: str, name: str) -> Callable[..., Any]:
        """The function, wrapped so that its calls are noted."""
        here = self.collected.here

        @functools.wraps(function, assigned=("__doc__",), updated=())
        def call(*args: Any, **kwargs: Any) -> Any:
            calls = here().calls
            begun = perf_counter_ns()
            try:
                return function(*args, **kwargs)
            finally:
                ended = perf_counter_ns()
                calls.append((begun, ended, level, name))

        return call

    def waited(self, function: Callable[..., Any], name: str) -> Callable[..., Any]:
        """The same for a function that waits, which may not have returned when the window ends."""
        here = self.collected.here

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            lists = here()
            begun = perf_counter_ns()
            lists.waits.append((begun, name))
            try:
                return function(*args, **kwargs)
            finally:
                ended = perf_counter_ns()
                lists.waits.pop()
                lists.calls.append((begun, ended, "waiting", name))

        return call

    def _replace(self, where: Any, name: str, by: Any, before: Any) -> None:
        try:
            setattr(where, name, by)
        except (AttributeError, TypeError):  # such as an enum's method
            return
        self._replaced.append((where, name, before))

    def _wrap(self, where: Any, name: str, member: Any, level: str) -> None:
        plain = member.__func__ if isinstance(member, staticmethod) else member
        full = (
            f"{where.__module__}.{where.__qualname__}"
            if isinstance(where, type)
            else where.__name__
        )
        wrapped: Any = self.timed(plain, level, f"{full}.{name}")
        if isinstance(where, type) and type(member).__name__ in _STATIC:
            wrapped = staticmethod(wrapped)
        if isinstance(where, ModuleType):
            self._wrapped[id(member)] = member, wrapped
        self._replace(where, name, wrapped, member)

    def install(self) -> None:
        """Replaces the functions, also those of modules that are imported later."""
        for package in self.levels:
            self._install_package(package)
        for where, name, function in waiting_functions():
            full = where.__name__ if isinstance(where, ModuleType) else where.__qualname__
            self._replace(where, name, self.waited(function, f"{full}.{name}"), function)
        self._install_backend()
        self._imports.install()

    def _install_package(self, package: str) -> None:
        for module in modules_of(package):
            if module not in self._done:
                self._done.append(module)
                for where, name, member in _callables(module):
                    self._wrap(where, name, member, self.levels[package])
        # A package often has its native module's functions under names of its own, as mujoco does.
        for module in inside(package):
            for name, value in list(vars(module).items()):
                if id(value) in self._wrapped:
                    member, wrapped = self._wrapped[id(value)]
                    self._replace(module, name, wrapped, member)

    def _imported(self, module: str, inside: bool) -> None:
        """A module was imported, perhaps with one that has a level."""
        if not inside:
            root = module.partition(".")[0]
            for package in self.levels:
                if package.partition(".")[0] == root:
                    self._install_package(package)

    def _install_backend(self) -> None:
        """Replaces the long calls into torch that torch.profiler does not see on their thread."""
        self._engine = Variable._execution_engine
        Variable._execution_engine = _Engine(self._engine, self)  # type: ignore[assignment]
        capture.noted_replay = self._replay

    def _replay(self, replay: Callable[[Any], None], graph: Any) -> None:
        lists = self.collected.here()
        begun = perf_counter_ns()
        try:
            replay(graph)
        finally:
            ended = perf_counter_ns()
            lists.calls.append((begun, ended, "backend", REPLAY))
        number = getattr(graph, "_cule_scope_number", None)
        if number is not None:
            lists.replays.append((begun, ended, number))

    def uninstall(self) -> None:
        """Restores the functions."""
        self._imports.uninstall()
        while self._replaced:
            where, name, before = self._replaced.pop()
            setattr(where, name, before)
        capture.noted_replay = None
        if self._engine is not None:
            Variable._execution_engine = self._engine
            self._engine = None


class _Engine:
    """torch's autograd engine, whose backward passes are noted.

    On a GPU the passes run on torch's own thread, and the calling one only waits.
    """

    def __init__(self, engine: Any, boundaries: Boundaries):
        self._engine = engine
        self.run_backward = boundaries.timed(engine.run_backward, "backend", BACKWARD)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)
