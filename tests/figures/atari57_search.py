"""The figures of docs/atari57.md: the search for the suite's setting."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from examples.atari57.references import human_normalised
from tests.figures.pages import Said, said, table_line
from tests.figures.results import ROOT, Row, Source, source

PAGE = ROOT / "docs" / "atari57.md"
FOUR = ("qbert", "asterix", "space_invaders", "ms_pacman")


def candidate_of(row: Row) -> str:
    """The candidate that was trained; in older rows only the folder's name says it."""
    if "candidate" in row:
        return row["candidate"]
    found = re.search(r"--folder runs/search\w*/([\w.-]+)/", row.get("command", ""))
    return found[1] if found else ""


def searched(row: Row) -> bool:
    """Whether a row is of the search; a candidate may have been dropped since."""
    return (
        re.match("vtrace|ppo|pqn", candidate_of(row)) is not None and row.get("score") is not None
    )


@dataclass(frozen=True)
class Round:
    """A round of the search: its rows, and the columns of its table."""

    rows: Source
    games: Sequence[str]
    absolute: bool = False

    def cells(self, candidate: str) -> list[str]:
        """The candidate's million FPS and its scores, as the table has them."""
        found = self.rows.where(lambda row: candidate_of(row) == candidate)
        by_game = {row["game"]: row["score"] for row in found}
        assert len(by_game) == len(found)
        fps = [f"{bound(row['fps'] for row in found) / 1e6:.1f}" for bound in (min, max)]
        scores = ["." if game not in by_game else self._score(game, by_game[game])
                  for game in self.games]  # fmt: skip
        return scores if self.absolute else [" to ".join(dict.fromkeys(fps)), *scores]

    def _score(self, game: str, score: float) -> str:
        return f"{score:,.0f}" if self.absolute else f"{human_normalised(game, score):,.0%}"


ROUNDS = (
    Round(source("search: 45 seconds", "2026-11-25-h100", "0a3d278", searched),
          (*FOUR, "breakout")),
    Round(source("search: 40 seconds", "2026-11-25-h100", "a03fa19", searched), FOUR),
    Round(source("search: rate, envs, updates", "2026-11-25-h100", "63ca04a 5381819", searched),
          FOUR),
    Round(source("search: PPO, Muon", "2026-11-25-h100", "3571310 fd3f3cf d345bce", searched,
                 mode="evaluation"), FOUR),
    Round(source("search: weight of the entropy", "2026-11-26-h200", "b200cc0", searched),
          ("qbert", "space_invaders", "ms_pacman", "beam_rider", "seaquest")),
    Round(source("search: the rate once more", "2026-11-26-h200", "0028b9e", searched),
          ("asterix", "qbert", "ms_pacman", "seaquest"), absolute=True),
    Round(source("search: a GPU-hour, `machado`", "2026-11-30-h200", "3540ab3 8806b88", searched,
                 mode="evaluation"), FOUR),
)  # fmt: skip
SOURCES = tuple(one.rows for one in ROUNDS)


def tables() -> list[list[tuple[str, str]]]:
    """(candidate, what the page says it is) of each line of the page's tables of candidates."""
    blocks = re.findall(r"^\| candidate \|.*\n((?:\|.*\n)+)", PAGE.read_text(), re.MULTILINE)
    return [re.findall(r"^\| `(.+?)` \| (.*?) \|", block, re.MULTILINE) for block in blocks]


def figures() -> Iterator[Said]:
    for one, lines in zip(ROUNDS, tables(), strict=True):
        assert {name for name, _ in lines} == set(map(candidate_of, one.rows.rows))
        for candidate, what in lines:
            cells = one.cells(candidate)
            yield table_line(f"`{candidate}` | {what} | {' | '.join('{}' for _ in cells)}", *cells)
    for name, _ in tables()[1]:
        for row in ROUNDS[1].rows.where(lambda row, name=name: candidate_of(row) == name):
            yield said("| rate {}, entropy {} |", row["learning_rate"], row["ent_coef"])
    seconds = [statistics.median(one.rows.values("seconds")) for one in ROUNDS[:2]]
    yield said("**First, {:.0f} seconds on an H100**", seconds[0])
    yield said("weights of the entropy, for {:.0f} seconds", seconds[1])
    budget = ROUNDS[6].rows
    yield said(
        "the seed {}, and trainings of {:.0f} seconds, two at a time",
        *budget.values("seed")[:1], statistics.median(budget.values("seconds")),
    )  # fmt: skip
    for one, text in (
        (ROUNDS[2], "whole trainings of {:.0f} million frames"), (ROUNDS[5], "over {:.0f} million")
    ):  # fmt: skip
        yield said(text, one.rows.rows[0]["frames"] / 1e6)
