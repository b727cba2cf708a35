"""Builds the API reference from the docstrings: python docs/reference.py [FOLDER]."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pdoc
import pdoc.doc

# What users import. The other modules are reached through cule's names.
MODULES = ("cule", "cule.adapters", "cule.scope", "cule.train")


_declared_in = pdoc.doc.Class._taken_from


def _shown_in(shown: pdoc.doc.Class, name: str, member: Any) -> tuple[str, str]:
    """Where a class's member is documented: with the class, if it inherits it from cule.env."""
    module, path = _declared_in(shown, name, member)
    if module.startswith("cule.env."):
        module, path = shown.taken_from[0], f"{shown.taken_from[1]}.{name}"
    return module, path


def build(folder: Path) -> None:
    """Writes one page for each module into `folder`, and an index."""
    pdoc.doc.Class._taken_from = _shown_in
    pdoc.render.configure(docformat="google", show_source=False)
    pdoc.pdoc(*MODULES, output_directory=folder)


if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "build/reference")
    build(target)
    print(f"The reference is in {target / 'index.html'}.")
