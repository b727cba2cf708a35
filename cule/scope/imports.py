"""Says when packages are imported. startup/sitecustomize.py reads this file before it has cule.

So it imports nothing but the standard library.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


class ImportHook(MetaPathFinder):
    """Calls a function each time that a module of some packages has been imported.

    Args:
        packages: names of packages and modules.
        imported: called with the name of a module that has been executed, and whether another one
            of these packages is still being imported, which imports this one.
    """

    def __init__(self, packages: Iterable[str], imported: Callable[[str, bool], Any]):
        self.packages, self.imported = frozenset(packages), imported
        self._depth, self._finding = 0, set[str]()

    def install(self) -> None:
        """Begins."""
        sys.meta_path.insert(0, self)

    def uninstall(self) -> None:
        """Ends. Can be called again."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """The spec that another finder has, whose module is noted when it is executed."""
        if name.partition(".")[0] not in self.packages or name in self._finding:
            return None
        self._finding.add(name)
        try:
            found = (
                finder.find_spec(name, path, target)
                for finder in list(sys.meta_path)
                if finder is not self and hasattr(finder, "find_spec")
            )
            spec = next(filter(None, found), None)
        finally:
            self._finding.discard(name)
        if spec is not None and hasattr(spec.loader, "exec_module"):
            self._note(spec.loader, name)
        return spec

    def _note(self, loader: Any, name: str) -> None:
        execute = loader.exec_module

        def noted(module: ModuleType) -> None:
            self._depth += 1
            try:
                execute(module)
            finally:
                self._depth -= 1
            self.imported(name, self._depth > 0)

        loader.exec_module = noted
