"""Builds the API reference: python docs/reference.py [FOLDER].

It has the docstrings of what users import, and the pages of docs/ as guides.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pdoc
import pdoc.doc

ROOT = Path(__file__).resolve().parents[1]
# What users import. The other modules are reached through cule's names.
MODULES = ("cule", "cule.adapters", "cule.scope", "cule.train")
# Pages about building and releasing cule are none of a user's.
GUIDES = sorted(path for path in (ROOT / "docs").glob("*.md") if path.stem != "release")
LINK = re.compile(r"\]\((?!https?:|#)([^)#]*)(#[^)]*)?\)")

_declared_in = pdoc.doc.Class._taken_from


def _shown_in(shown: pdoc.doc.Class, name: str, member: Any) -> tuple[str, str]:
    """Where a class's member is documented: with the class, if it inherits it from cule.env."""
    module, path = _declared_in(shown, name, member)
    if module.startswith("cule.env."):
        module, path = shown.taken_from[0], f"{shown.taken_from[1]}.{name}"
    return module, path


def _guides(folder: Path) -> Iterator[pdoc.doc.Module]:
    """The guides as modules without members, and "guides", which lists them.

    Links between guides lead to their pages in `folder`, others to the files of the checkout.
    """

    def target(link: re.Match[str]) -> str:
        path = (ROOT / "docs" / link[1]).resolve()
        if path in GUIDES:
            return f"]({path.stem.replace('-', '_')}.html{link[2] or ''})"
        return f"]({os.path.relpath(path, (folder / 'guides').resolve())}{link[2] or ''})"

    titles = {}
    for path in GUIDES:
        text = path.read_text()
        name = path.stem.replace("-", "_")
        titles[name] = text.partition("\n")[0].lstrip("# ")
        yield pdoc.doc.Module(ModuleType(f"guides.{name}", LINK.sub(target, text)))
    listed = "\n".join(f"- [{title}](guides/{name}.html)" for name, title in titles.items())
    yield pdoc.doc.Module(ModuleType("guides", f"# Guides\n\n{listed}\n"))


def build(folder: Path) -> None:
    """Writes one page for each module and guide into `folder`, and an index."""
    pdoc.doc.Class._taken_from = _shown_in
    pdoc.render.configure(docformat="google", show_source=False)
    modules = {
        name: pdoc.doc.Module.from_name(name) for name in pdoc.extract.walk_specs(MODULES)
    } | {module.fullname: module for module in _guides(folder)}
    pages = {
        f"{name.replace('.', '/')}.html": pdoc.render.html_module(module, modules)
        for name, module in modules.items()
    }
    pages |= {
        "index.html": pdoc.render.html_index(modules),
        "search.js": pdoc.render.search_index(modules),
    }
    for name, text in pages.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "build/reference")
    build(target)
    print(f"The reference is in {target / 'index.html'}.")
