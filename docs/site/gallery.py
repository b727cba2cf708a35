"""The gallery: a page for each game, of what cule's own tables say, and one that shows them all.

Title, publisher and what is said of the score are the head of the game's header in csrc/games/.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import cule
from cule import _core
from cule.console import action_numbers
from cule.facts.modifications import MODIFICATIONS
from cule.facts.names import spelled_alike
from cule.facts.ram_labels import RAM_LABELS
from cule.rom import Game, games
from examples.atari57.references import SOURCES, references

ROOT = Path(__file__).resolve().parents[2]
HEAD = re.compile(r"(?P<title>.+?) \((?P<publisher>[^)]+)\)\. (?P<score>.+)")


def ranges(numbers: tuple[int, ...]) -> str:
    """Numbers as text: (0, 1, 2, 5) as "0-2, 5"."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs)


def modes(game: Game) -> str:
    """The game's modes. Video Cube has 153, so theirs are shown as a pattern."""
    if game.name == "video_cube":
        hundreds = sorted({mode // 100 for mode in game.modes})
        assert game.modes == tuple(100 * h + units for h in hundreds for units in (0, 1, 2))
        assert hundreds == list(range(51))
        return "0-2, and these plus 100, 200, ... 5000"
    return ranges(game.modes)


def head(game: Game) -> dict[str, str]:
    """The game's title, publisher (with the year), and what is said of its score and its end."""
    comment = _core.headers()[f"games/{game.name}.h"].partition("#pragma")[0]
    found = HEAD.fullmatch(" ".join(line[3:] for line in comment.strip().splitlines()))
    assert found, f"expected csrc/games/{game.name}.h to begin with the game's title and year"
    return found.groupdict()


def kept_faults() -> dict[str, list[str]]:
    """What docs/games.md says of faults that are kept, by the games that it names."""
    text = (ROOT / "docs" / "games.md").read_text()
    section = text.partition("\n## Faults that are kept\n")[2].partition("\n## ")[0]
    items = re.findall(r"^- (.+(?:\n  .+)*)", section, re.MULTILINE)
    found: dict[str, list[str]] = {}
    for item in items:
        words = re.findall(r"[\w-]+", re.sub(r"\]\([^)]*\)|'s\b", "", item))
        said = {spelled_alike("".join(words[i : i + n])) for n in (1, 2) for i in range(len(words))}
        for game in games():
            if said & {spelled_alike(game.name), spelled_alike(head(game)["title"])}:
                # A page of the gallery is a folder further down.
                text = re.sub(r"\]\((?!\w+:)", "](../", " ".join(item.split()))
                found.setdefault(game.name, []).append(text)
    return found


def table(names: tuple[str, str], rows: dict[str, Any]) -> str:
    """A table of two columns, without empty rows."""
    lines = [f"| {names[0]} | {names[1]} |", "|---|---|"]
    return "\n".join([*lines, *(f"| {name} | {of} |" for name, of in rows.items() if of)]) + "\n"


def facts(game: Game, measured: dict[str, Any]) -> dict[str, str]:
    """The rows of the table at the head of a game's page."""
    actions = action_numbers(game, "minimal")
    return {
        "name": f"`{game.name}`",
        "in gymnasium": f"`cule/{game.ale_id}-v5`",
        "publisher": head(game)["publisher"],
        "modes": f"{modes(game)}; default: {game.facts['default_mode']}",
        "difficulties": ranges(game.difficulties),
        "minimal actions": f"{len(actions)}: {', '.join(cule.ACTIONS[one] for one in actions)}",
        "controller": "paddle" if game.facts["uses_paddles"] else "joystick",
        "a second player in the modes": ranges(game.modes_of_two),
        "lives at the start": str(measured["lives"]),
        "score and end": head(game)["score"],
        **{
            f"score of {who}": f"{references()[column][game.name]:,.1f}"
            for column, who in (("random", "random play"), ("human", "a human"))
            if game.name in references()[column]
        },
        "screen": f"{measured['height']} x 160 pixels",
        "one of the 57 games": "yes" if game.name in cule.ATARI_57 else "",
        "MD5 of the ROM": f"`{game.md5}`",
    }


def game_page(game: Game, measured: dict[str, Any], faults: list[str]) -> str:
    """A game's page."""
    title = head(game)["title"]
    label = f"{title}, played at random for {measured['seconds']:g} seconds"
    parts = [
        f"# {title}\n",
        f"![{label}]({game.name}.webp){{ .screen }}\n",
        f"Random actions, {measured['seconds']:g} seconds, {measured['points']:,} points.\n",
        table(("what", "of this game"), facts(game, measured)),
    ]
    if game.name in references()["human"]:
        parts.append(f"Scores of random play and of a human: {SOURCES['human'].table}.\n")
    parts.append(
        f'```python\nimport cule\n\nenv = cule.AtariEnv("{game.name}", num_envs=64)\n```\n'
    )
    if faults:
        listed = "\n".join(f"- {one}" for one in faults)
        parts.append(f"## Faults that are kept\n\n{listed}\n")
    if changes := MODIFICATIONS.get(game.name):
        rows = {f"`{name}`": one.effect for name, one in changes.items()}
        source = next(iter(changes.values())).source
        parts.append(
            "## Modifications\n\nNames for `patches`, as in "
            f"[HackAtari]({source}).\n\n{table(('name', 'effect'), rows)}"
        )
    if labels := RAM_LABELS.get(game.name):
        rows = {f"`{name}`": str(byte).strip("()") for name, byte in labels.items()}
        parts.append(
            "## RAM\n\nBytes of `get_ram()`, from [AtariARI]"
            "(https://github.com/mila-iqia/atari-representation-learning).\n\n"
            + table(("what", "byte"), rows)
        )
    parts.append(f"The rules: [csrc/games/{game.name}.h](../../csrc/games/{game.name}.h).\n")
    return "\n".join(parts)


def card(game: Game, folder: str) -> str:
    """A game's picture and title, with a link to its page; `folder` is the way to the gallery."""
    title = head(game)["title"]
    return (
        f'<a href="{folder}{game.name}/"><img src="{folder}{game.name}.webp" alt="{title}" '
        f'loading="lazy"><span>{title}</span></a>'
    )


def cards(shown: list[Game], folder: str) -> str:
    """Cards side by side."""
    return f'<div class="games">\n{chr(10).join(card(one, folder) for one in shown)}\n</div>\n'


def index_page(shown: list[Game]) -> str:
    """The gallery."""
    return (
        "# Gallery\n\nEach game, played at random. Its page has its modes, actions,"
        " lives, score, and what is known of its RAM. [All games in a table](../games.md).\n\n"
        + cards(shown, "")
    )


def pages(shown: list[Game], pictures: Path) -> dict[str, str]:
    """The gallery's pages by their paths, with what was measured while pictures were made."""
    faults = kept_faults()
    made = {
        f"gallery/{game.name}.md": game_page(
            game,
            json.loads((pictures / f"{game.name}.json").read_text()),
            faults.get(game.name, []),
        )
        for game in shown
    }
    return {"gallery/index.md": index_page(shown), **made}
