"""The repository's pages as the site has them: links, and Markdown that GitHub reads otherwise.

On GitHub a page links to any file of the repository. On the site a link leads to the file's page
if it has one, else to the file in the repository, and if its address is not known, it is text.
"""

from __future__ import annotations

import os
import re
from collections.abc import Container
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[2]
# Code, in which nothing is a link, and links: their text and where they lead.
_PARTS = re.compile(
    r"^ *```.*?^ *```$|<!--.*?-->|"
    r"(?P<image>!?)\[(?P<text>(?:[^\[\]`]|`[^`]*`)*)\]\((?P<target>[^)\s]+)\)|"
    r"(?P<ticks>`+)(?!`).*?(?<!`)(?P=ticks)(?!`)",
    re.DOTALL | re.MULTILINE,
)
_FENCED = re.compile(r"(^ *```.*?^ *```$)", re.DOTALL | re.MULTILINE)
_LIST_AT_PARAGRAPH = re.compile(r"^(?![-#]? |- )(.*\S.*)\n(?=- )", re.MULTILINE)


def site_path(path: str) -> str:
    """Where a file of the repository is on the site: those of docs/ are at its root."""
    return path.removeprefix("docs/").replace(".ipynb", ".md")


def rewritten(markdown: str, page: str, on_site: Container[str], repository: str) -> str:
    """A page with the links of the site.

    Args:
        markdown: the page's text.
        page: its path in the repository.
        on_site: paths of the site that there are.
        repository: the repository's address, or "".

    Raises:
        ValueError: a link leads to no file.
    """
    here = PurePosixPath(page).parent
    site_here = PurePosixPath(site_path(page)).parent

    def replace(link: re.Match[str]) -> str:
        target = link["target"]
        if not target or target.startswith("#") or ":" in target:
            return link[0]
        name, _, heading = target.partition("#")
        path = os.path.normpath(here / name)
        if site_path(path) in on_site:
            there = os.path.relpath(site_path(path), site_here) + (f"#{heading}" if heading else "")
            return f"{link['image']}[{link['text']}]({there})"
        if not (ROOT / path).exists():
            raise ValueError(f"{page}: expected a link to a file, got {target}")
        if not repository:
            return link["text"]
        return f"[{link['text']}]({repository}/blob/HEAD/{path}{'#' if heading else ''}{heading})"

    return _PARTS.sub(replace, as_on_github(markdown))


def as_on_github(markdown: str) -> str:
    """Markdown that Python-Markdown reads as GitHub reads the given one.

    It wants an empty line between a paragraph and a list, and to be told of Markdown within HTML.
    """
    parts = _FENCED.split(markdown)
    parts[::2] = [_LIST_AT_PARAGRAPH.sub(r"\1\n\n", part) for part in parts[::2]]
    return "".join(parts).replace("<details>", '<details markdown="1">')
