"""The site: each page is in the navigation, each game has a page, links lead somewhere."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import ale_py
import build_site
import gallery
import markdown
import markup
import notebooks
import numpy as np
import pictures
import pytest
import torch
from ale_py import roms
from markdown_it import MarkdownIt
from mkdocs.config import load_config
from PIL import Image

import cule
from cule.facts.modifications import MODIFICATIONS
from cule.facts.ram_labels import RAM_LABELS
from cule.rom import find_game, games
from tests.support.anchors import anchors

ROOT = Path(__file__).resolve().parents[1]
ADDRESS = "https://github.com/someone/cule"
# The first has the screen of a PAL console.
SHOWN = ("adventure", "breakout", "seaquest")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of short pictures of some games."""
    folder = tmp_path_factory.mktemp("pictures")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pictures, "STEPS", 12)
        for game in SHOWN:
            pictures.make(game, folder)
    return folder


@pytest.fixture(scope="module")
def staged(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages of a site of some games, in a repository whose address is not known."""
    folder = tmp_path_factory.mktemp("site")
    build_site.stage(folder, [find_game(name) for name in SHOWN], made, "")
    return folder


def test_every_document_is_in_the_navigation_once() -> None:
    named = Counter(path for pages in build_site.NAVIGATION.values() for path in pages)
    assert set(named.values()) == {1}
    there = {str(path.relative_to(ROOT))
             for pattern in ("docs/*.md", "docs/notebooks/*.ipynb", "design/*.md")
             for path in ROOT.glob(pattern)}  # fmt: skip
    assert there <= set(named)
    assert all((ROOT / path).exists() for path in set(named) - {"docs/gallery/index.md"})


def test_pages_in_the_navigation_are_there(staged: Path) -> None:
    navigation = json.loads((staged / "mkdocs.yml").read_text())["nav"]
    named = {path for part in navigation for pages in part.values() for path in pages}
    there = {str(path.relative_to(staged / "pages")) for path in staged.rglob("*.md")}
    assert named == there
    assert {f"gallery/{game}.md" for game in SHOWN} < named and "reference/cule.md" in named
    breakout = (staged / "pages" / "gallery" / "breakout.md").read_text()
    assert "[`episode_start`](../api.md#which-life-keyword)" in breakout


def test_a_picture_shows_every_screen(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "STEPS", 12)
    screens, measured = pictures.play("seaquest")
    with Image.open(made / "seaquest.webp") as picture:
        shown = []
        for i in range(picture.n_frames):
            picture.seek(i)
            # What does not change is one picture that is shown for longer.
            times = round(picture.info["duration"] / 50) if "duration" in picture.info else 1
            shown += [np.array(picture.convert("RGB"))] * times
    assert len(shown) == len(screens) == 12
    assert np.array_equal(np.stack(shown), screens.numpy())
    assert len(torch.unique(screens.flatten(1), dim=0)) > 4
    facts = json.loads((made / "seaquest.json").read_text())
    assert facts == {"key": pictures.key("seaquest"), **measured}
    assert pictures.is_made("seaquest", made) and not pictures.is_made("pong", made.parent)


def numbers(text: str) -> list[int]:
    """What a list of ranges such as "0-2, 5" stands for."""
    runs = [[int(end) for end in run.split("-")] for run in text.split(", ")]
    return [number for run in runs for number in range(run[0], run[-1] + 1)]


def test_pages_of_games_have_the_facts_of_ale(made: Path) -> None:
    ale = ale_py.ALEInterface()
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    for game in games()[::9]:
        ale.loadROM(roms.get_rom_path(game.name))
        facts = gallery.facts(game, {"lives": 3, "height": 210})
        shown, _, default = facts["modes"].partition("; default: ")
        assert numbers(shown) == sorted(ale.getAvailableModes())
        assert int(default) in ale.getAvailableModes()
        assert numbers(facts["difficulties"]) == sorted(ale.getAvailableDifficulties())
        number, _, names = facts["minimal actions"].partition(": ")
        actions = [action.name for action in ale.getMinimalActionSet()]
        assert (int(number), names.split(", ")) == (len(actions), actions)
    for name in SHOWN:
        ale.loadROM(roms.get_rom_path(name))
        ale.reset_game()
        measured = json.loads((made / f"{name}.json").read_text())
        assert (measured["lives"], measured["height"]) == (ale.lives(), ale.getScreenDims()[0])
        shown = gallery.facts(find_game(name), measured)
        assert shown["lives at the start"] == str(ale.lives())
        assert shown["screen"] == f"{ale.getScreenDims()[0]} x 160 pixels"


def test_pages_of_games_have_what_tables_know_of_them() -> None:
    faults, measured = (
        gallery.kept_faults(),
        {"lives": 3, "height": 210, "points": 1234, "seconds": 8.0},
    )
    for game in games():
        page = gallery.game_page(game, measured, faults.get(game.name, []))
        assert page.startswith(f"# {gallery.head(game)['title']}\n") and "1,234 points" in page
        assert f'cule.AtariEnv("{game.name}"' in page and game.md5 in page
        for one in cule.modifications(game.name):
            assert f"| `{one.name}` | {one.effect} |" in page
        assert ("## Modifications" in page) == (game.name in MODIFICATIONS)
        assert ("## RAM" in page) == (game.name in RAM_LABELS)
        assert all(f"| `{name}` |" in page for name in RAM_LABELS.get(game.name, ()))
        assert ("| score of a human |" in page) == (game.name in cule.ATARI_57)
        assert page.count("\n- ") == len(faults.get(game.name, []))


def test_faults_are_told_of_the_games_that_have_them() -> None:
    found = {name: len(items) for name, items in gallery.kept_faults().items()}
    assert found == {
        "asterix": 1, "atlantis": 1, "breakout": 2, "defender": 1, "gopher": 1, "pacman": 1,
        "pitfall": 1, "seaquest": 1, "skiing": 1, "space_invaders": 2, "video_pinball": 1,
    }  # fmt: skip


LINKS = """A [page](games.md#faults-that-are-kept), [code](../csrc/games/pong.h), an [`a[0]`](#own),
a [site](https://pytorch.org), a ![picture](start.png) and the [log
book](../benchmarks/NOTES.md#head). `[no](games.md)`, ``[`](games.md)`` nor

```python
x = [f](games.md)
```
"""


def test_links_lead_to_pages_or_to_the_repository() -> None:
    on_site = {"games.md", "start.png"}
    known = markup.rewritten(LINKS, "docs/api.md", on_site, ADDRESS)
    assert known == LINKS.replace("../", f"{ADDRESS}/blob/HEAD/")
    unknown = markup.rewritten(LINKS, "docs/api.md", on_site, "")
    expected = LINKS.replace("[code](../csrc/games/pong.h)", "code")
    assert unknown == expected.replace("[log\nbook](../benchmarks/NOTES.md#head)", "log\nbook")
    deeper = markup.rewritten("[a](../../docs/games.md#x)", "examples/ppo/README.md", on_site, "")
    assert deeper == "[a](../../games.md#x)"
    home = markup.rewritten("[a](docs/games.md) [b](roms)", "README.md", on_site, "")
    assert home == "[a](games.md) b"
    with pytest.raises(ValueError, match=r"docs/api\.md: expected a link to a file, got gone\.md"):
        markup.rewritten("[a](gone.md)", "docs/api.md", on_site, "")


class Elements(HTMLParser):
    """Counts elements, and finds the anchors of headings."""

    def __init__(self) -> None:
        super().__init__()
        self.found: Counter[str] = Counter()
        self.headings: list[str] = []
        self.last = ""

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Counts an element; a paragraph that an item begins with is a matter of space only."""
        permalink = dict(attributes).get("class") == "headerlink"
        self.found[tag] += not permalink and (self.last, tag) != ("li", "p")
        self.last = tag
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(dict(attributes).get("id") or "")


# Other elements are not Markdown's, or are drawn in another way.
COMPARED = ("p", "h1", "h2", "h3", "h4", "li", "ul", "ol", "table", "tr", "td", "a", "img", "pre")


def test_pages_are_read_as_on_github(staged: Path) -> None:
    """Python-Markdown finds the paragraphs, lists, tables and links that CommonMark does."""
    config = load_config(str(staged / "mkdocs.yml"))
    theirs = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    for pages in build_site.NAVIGATION.values():
        for path in pages:
            if not path.endswith(".md") or path.startswith("docs/gallery/"):
                continue
            text = (staged / "pages" / markup.site_path(path)).read_text()
            if path == "README.md":  # its pictures are HTML
                text = text.partition('<div class="games">')[0] + text.partition("</div>")[2]
            text = text.replace('<details markdown="1">', "").replace("</details>", "")
            text = re.sub("<summary>.*?</summary>", "", text)
            ours = markdown.Markdown(
                extensions=config.markdown_extensions, extension_configs=config.mdx_configs
            )
            found, expected = Elements(), Elements()
            found.feed(ours.convert(text))
            expected.feed(theirs.render(text))
            for kind in COMPARED:
                assert found.found[kind] == expected.found[kind], f"{path}: <{kind}>"
            if path != "CHANGELOG.md":  # whose headings repeat
                others = [one for one in anchors(ROOT / path) if one not in found.headings]
                assert others == re.findall(r'<a id="([\w-]+)"></a>', text), path


def test_a_notebook_is_a_page_and_opens_in_colab_from_github() -> None:
    path = ROOT / "docs" / "notebooks" / "quickstart.ipynb"
    page = notebooks.markdown(path, "")
    cells = [cell["cell_type"] for cell in json.loads(path.read_text())["cells"]]
    assert page.startswith("# Quickstart") and page.count("```python\n") == cells.count("code")
    assert "colab.research" not in page and page == notebooks.markdown(
        path, "https://example.org/x"
    )
    address = "https://colab.research.google.com/github/someone/cule/blob/HEAD/docs/notebooks/"
    assert f"]({address}quickstart.ipynb)" in notebooks.markdown(path, ADDRESS)


class Page(HTMLParser):
    """The anchors of a page of HTML, its links, and what a browser loads with it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Notes an element."""
        of = {name: value or "" for name, value in attributes}
        self.anchors |= {of[name] for name in ("id", "name") if name in of}
        if tag == "a" and "href" in of:
            self.links.append(of["href"])
        elif tag in ("script", "img", "iframe", "source") and "src" in of:
            self.loaded.append(of["src"])
        elif tag == "link" and of.get("rel") != "canonical":
            self.loaded.append(of["href"])


@pytest.mark.slow
def test_the_whole_site_is_built_and_its_links_lead_somewhere(tmp_path: Path) -> None:
    site = tmp_path / "site"
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    variables = {"CULE_PROJECT_URL": ADDRESS, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    program = ROOT / "docs" / "site" / "build_site.py"
    subprocess.run([sys.executable, program, "--output", site], check=True,
                   env=os.environ | variables)  # fmt: skip
    found = {path: Page(path.read_text()) for path in site.rglob("*.html")}
    assert {f"gallery/{game.name}/index.html" for game in games()} < {
        str(path.relative_to(site)) for path in found
    }
    for path, page in found.items():
        if path.name == "404.html":
            continue
        for target in page.loaded + page.links:
            if re.match("https?:|mailto:", target):
                assert target in page.links, f"{path}: {target} is of another host"
                continue
            name, _, heading = unquote(target).partition("#")
            there = (path.parent / name.partition("?")[0]).resolve() if name else path
            there = there / "index.html" if there.is_dir() else there
            assert there.exists(), f"{path}: {target}"
            assert not heading or heading in found[there].anchors, f"{path}: {target}"
    for sheet in site.rglob("*.css"):
        assert not re.search(r"(url\(|@import )[\"']?(https?:)?//", sheet.read_text()), sheet
    assert sum(path.stat().st_size for path in site.rglob("*")) < 40 * 10**6
