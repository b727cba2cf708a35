"""docs/games.md has every game, and what README.md names exists.

`python tests/test_readme.py` writes the table of games again.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from cule.console import action_numbers
from cule.rom import games

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "docs" / "site")]  # pytest has them already
from gallery import modes, ranges  # noqa: E402

README, GAMES = ROOT / "README.md", ROOT / "docs" / "games.md"
BEGIN, END = "<!-- games: written by tests/test_readme.py -->\n", "<!-- end of games -->\n"


def game_table() -> str:
    """The table as Markdown."""
    lines = ["| game | modes | difficulties | actions | two players |", "|---|---|---|---|---|"]
    for game in games():
        actions = len(action_numbers(game, "minimal"))
        paddles = " (paddle)" if game.facts["uses_paddles"] else ""
        lines.append(
            f"| `{game.name}` | {modes(game)} | {ranges(game.difficulties)} | {actions}{paddles} "
            f"| {ranges(game.modes_of_two)} |"
        )
    return "\n".join(lines) + "\n"


def split_games() -> tuple[str, str, str]:
    """What comes before the table, the table, what comes after it."""
    before, rest = GAMES.read_text().split(BEGIN)
    table, after = rest.split(END)
    return before, table, after


def test_table_is_the_list_of_games() -> None:
    _, table, _ = split_games()
    assert table == game_table(), "run python tests/test_readme.py"
    assert len(games()) == 104


def test_readme_folders_and_files_exist() -> None:
    text = README.read_text()
    linked = [target for target in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in target]
    mapped = re.findall(r"^([\w./]+/)  ", text, re.MULTILINE)
    assert linked and mapped
    for name in linked + mapped:
        assert (ROOT / name).exists(), name


if __name__ == "__main__":
    before, _, after = split_games()
    GAMES.write_text(before + BEGIN + game_table() + END + after)
