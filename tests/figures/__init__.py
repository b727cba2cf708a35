"""Every measured figure of the user's pages, and the rows that it comes from.

A page with figures has a module here, with

- `PAGE`, the page's path;
- `SOURCES`, the rows behind it. They are the page's table of sources, which
  `python -m tests.figures` writes;
- `figures()`, what the page says: sentences and lines of tables with holes, and what the rows give
  for each hole. A hole's format has as many digits as the page prints;
- `GIVEN`, the numbers with a unit that are no measurement of ours, and what they are instead:
  settings, limits, figures of others.

tests/test_figures.py puts the values into the holes and looks for the text in the page. Then it
looks for numbers in the page that are in none of the holes and not given.
"""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType


def modules() -> list[ModuleType]:
    """The modules of pages."""
    names = [f"{__name__}.{found.name}" for found in pkgutil.iter_modules(__path__)]
    found = [importlib.import_module(name) for name in names if not name.endswith("__main__")]
    return [module for module in found if hasattr(module, "GIVEN")]
