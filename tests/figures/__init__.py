"""Every measured figure of the user's pages, and the rows that it comes from.

A page with figures has a module here, with

- `PAGE`, the page's path;
- `SOURCES`, the rows behind it. They are the page's table of sources, which
  `python -m tests.figures` writes;
- `WRITTEN`, if there are any, other blocks of the page that it writes, by their names;
- `figures()`, what the page says: sentences and lines of tables with holes, and what rows give
  for each hole. A hole's format has as many digits as the page prints;
- `GIVEN`, numbers with a unit and ratios in words ("twice") that are no measurement of ours, and
  what they are instead: settings, limits, figures of others;
- `NUMBERS`, those that may stand anywhere without a unit: years, sizes, counts of envs.

others.py has `GIVEN` and `NUMBERS` of the pages without measured figures.

tests/test_figures.py puts the values into the holes and looks for the text in the page. Then it
looks for numbers and ratios in the page that are in none of the holes and not given.
"""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType, SimpleNamespace

from tests.figures import others
from tests.figures.pages import table_of_sources, with_written


def modules() -> list[ModuleType | SimpleNamespace]:
    """The modules of pages, and what stands for those of the other pages."""
    names = [f"{__name__}.{found.name}" for found in pkgutil.iter_modules(__path__)]
    found = [importlib.import_module(name) for name in names if not name.endswith("__main__")]
    return [module for module in found if hasattr(module, "GIVEN")] + others.pages()


def rewritten(module: ModuleType | SimpleNamespace) -> str:
    """The page's text with what is written by `python -m tests.figures`."""
    blocks = {name: text() for name, text in getattr(module, "WRITTEN", {}).items()}
    if module.SOURCES:
        blocks["sources"] = table_of_sources(module.PAGE, module.SOURCES)
    return with_written(module.PAGE, blocks)
