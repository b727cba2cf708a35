"""Builds the API reference from the docstrings: python docs/reference.py [FOLDER]."""

from __future__ import annotations

import sys
from pathlib import Path

import pdoc

# What users import, and what they do not; the other modules are reached through cule's names.
MODULES = ("cule", "cule.adapters", "!cule.adapters.keywords")


def build(folder: Path) -> None:
    """Writes one page for each module into `folder`, and an index."""
    pdoc.render.configure(docformat="google", show_source=False)
    pdoc.pdoc(*MODULES, output_directory=folder)


if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "build/reference")
    build(target)
    print(f"The reference is in {target / 'index.html'}.")
