"""Builds the site: `make docs`.

First all pages are put into one folder as Markdown: those of docs/, other pages of the repository,
the notebook, and what is made of cule's tables and docstrings. Then MkDocs makes the site of them;
a link that leads nowhere is an error. CULE_PROJECT_URL is the repository's address, if it has one.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import gallery
import markup
import notebooks
import reference_pages

import cule
from cule.rom import Game, find_game

ROOT = Path(__file__).resolve().parents[2]
PICTURES = ROOT / "build" / "pictures"
# Parts of the site with their pages, as paths in the repository. The other pages that are made
# follow.
NAVIGATION = {
    "Home": ["README.md"],
    "Learn": ["docs/notebooks/quickstart.ipynb", "docs/training.md", "docs/faq.md"],
    "How to": [
        "docs/install.md", "docs/migrating.md", "docs/jax.md", "docs/scaling.md",
        "docs/profiling.md", "docs/atari57.md", "docs/troubleshooting.md",
        "examples/ppo/README.md", "examples/dqn/README.md", "examples/rainbow/README.md",
        "examples/a2c_vtrace/README.md", "examples/self_play/README.md",
        "examples/jax_ppo/README.md", "examples/go_explore/README.md",
    ],
    "How it works": [
        "docs/how-it-works.md", "docs/benchmarks.md", "docs/findings.md",
        "design/architecture.md", "design/glossary.md", "design/ale_differences.md",
        "design/resets_and_observations.md", "design/tia_instruction_buffer.md",
        "design/decode.md", "design/translation.md", "design/translation_details.md",
        "design/train.md", "design/scope.md", "design/planted_faults.md",
    ],
    "Games": ["docs/gallery/index.md", "docs/games.md", "roms/README.md"],
    "Reference": ["docs/api.md", "CHANGELOG.md", "docs/release.md"],
}  # fmt: skip
# The games on the front page, in place of the README's picture.
FRONT = (
    "pong", "breakout", "ms_pacman", "space_invaders", "seaquest", "montezuma_revenge",
    "qbert", "enduro", "pitfall2", "riverraid", "road_runner", "beam_rider",
)  # fmt: skip


def front_page(markdown: str, shown: list[Game]) -> str:
    """The README with moving pictures in place of its own."""
    before, picture, after = markdown.partition("![The screens of a dozen games")
    assert picture, "expected the README to show the screens of a dozen games"
    cards = gallery.cards([game for game in shown if game.name in FRONT], "gallery/")
    return before + cards + after.partition(")")[2]


def page(path: str, shown: list[Game], repository: str) -> str:
    """The Markdown of a page of the repository, with the repository's links."""
    if path.endswith(".ipynb"):
        return notebooks.markdown(ROOT / path, repository)
    text = (ROOT / path).read_text()
    return front_page(text, shown) if path == "README.md" else text


def made_pages(shown: list[Game], pictures: Path) -> dict[str, dict[str, str]]:
    """The parts' pages that are made, by their paths as if they were in docs/."""
    made = {"Games": gallery.pages(shown, pictures), "Reference": reference_pages.pages()}
    return {
        part: {f"docs/{path}": text for path, text in pages.items()} for part, pages in made.items()
    }


def stage(folder: Path, shown: list[Game], pictures: Path, repository: str) -> Path:
    """Puts the pages and pictures of a site into a folder.

    Args:
        folder: is emptied first.
        shown: the games that have a page.
        pictures: what pictures.py has made of them.
        repository: the repository's address, or "".

    Returns:
        The configuration for MkDocs.
    """
    shutil.rmtree(folder, ignore_errors=True)
    made = made_pages(shown, pictures)
    navigation = {
        part: list(dict.fromkeys([*pages, *made.get(part, {})]))
        for part, pages in NAVIGATION.items()
    }
    texts = {path: text for pages in made.values() for path, text in pages.items()}
    texts |= {
        path: page(path, shown, repository)
        for pages in navigation.values()
        for path in pages
        if path not in texts
    }
    files = {
        markup.site_path(str(path.relative_to(ROOT))): path
        for pattern in ("*.png", "site/*.css")
        for path in (ROOT / "docs").glob(pattern)
    }
    files |= {f"gallery/{game.name}.webp": pictures / f"{game.name}.webp" for game in shown}
    on_site = {markup.site_path(path) for path in texts} | set(files)
    for name, source in files.items():
        copied = folder / "pages" / name
        copied.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, copied)
    for path, text in texts.items():
        written = folder / "pages" / markup.site_path(path)
        written.parent.mkdir(parents=True, exist_ok=True)
        written.write_text(markup.rewritten(text, path, on_site, repository))
    configuration: dict[str, Any] = {
        "INHERIT": str(Path(__file__).with_name("mkdocs.yml")),
        "docs_dir": "pages",
        "repo_url": repository or None,
        "edit_uri": "",
        "nav": [
            {part: [markup.site_path(path) for path in pages]} for part, pages in navigation.items()
        ],
    }
    (folder / "mkdocs.yml").write_text(json.dumps(configuration))  # JSON is YAML
    return folder / "mkdocs.yml"


def main() -> None:
    """Builds the site."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "site", metavar="FOLDER",
                        help="default: build/site")  # fmt: skip
    parser.add_argument("--games", nargs="+", default=cule.list_games(), metavar="GAME",
                        help="games with a page (default: all)")  # fmt: skip
    arguments = parser.parse_args()
    shown = [find_game(name) for name in arguments.games]
    names = [game.name for game in shown]
    program = Path(__file__).with_name("pictures.py")
    subprocess.run([sys.executable, program, PICTURES, *names], check=True)
    repository = os.environ.get("CULE_PROJECT_URL", "").rstrip("/")
    configuration = stage(ROOT / "build" / "pages", shown, PICTURES, repository)
    mkdocs = [sys.executable, "-m", "mkdocs", "build", "--strict"]
    # Where mkdocs finds cule, and the extension that mkdocs.yml names.
    paths = [str(ROOT), str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    subprocess.run(
        [*mkdocs, "-f", configuration, "-d", arguments.output.resolve()],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}, check=True,
    )  # fmt: skip
    print(f"The site is in {arguments.output / 'index.html'}.")


if __name__ == "__main__":
    main()
