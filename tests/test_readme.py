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


SEVERAL = "<!-- games of several players: written by tests/test_readme.py -->\n"
END_OF_SEVERAL = "<!-- end of games of several players -->\n"


def several_table() -> str:
    """The table of games of several players as Markdown."""
    lines = ["| game | players | modes | difficulties | actions |", "|---|---|---|---|---|"]
    for game in sorted(games(2) + games(4), key=lambda game: game.words):
        actions = len(action_numbers(game, "minimal"))
        paddles = " (paddle)" if game.facts["uses_paddles"] else ""
        lines.append(
            f"| `{game.name}` | {game.num_players} | {ranges(game.modes)} "
            f"| {ranges(game.difficulties)} | {actions}{paddles} |"
        )
    return "\n".join(lines) + "\n"


def test_table_of_several_players_is_the_list_of_games() -> None:
    _, rest = GAMES.read_text().split(SEVERAL)
    assert rest.split(END_OF_SEVERAL)[0] == several_table(), "run python tests/test_readme.py"


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
    after, rest = after.split(SEVERAL)
    after += SEVERAL + several_table() + END_OF_SEVERAL + rest.split(END_OF_SEVERAL)[1]
    GAMES.write_text(before + BEGIN + game_table() + END + after)
