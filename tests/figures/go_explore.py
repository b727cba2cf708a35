"""The figures of the README of Go-Explore."""

from __future__ import annotations

from collections.abc import Iterator

from examples.atari57.references import human_normalised
from tests.figures.pages import Said, said, table_line
from tests.figures.results import ROOT, source

PAGE = ROOT / "examples" / "go_explore" / "README.md"
EXPLORED = source("explored", "2026-11-30", "e2a0801 f0681c3", mode="exploration")
HARD = source("hard games", "2026-11-30-h200", "7d1bbbc")
HARD_ON_CPU = source("hard games, evaluated later", "2026-11-30", "7d1bbbc", mode="evaluation")
GREEDY = source("hard games, `--greedy`", "2026-11-30", "f0681c3 44adffc", mode="evaluation")
ON_CPU = source("Skiing on a CPU", "2026-11-30", "72bca03")
FIRST = source(
    "hard games, first try", "2026-11-30-h200", "786f4fb",
    lambda row: row["mode"] in ("training", "evaluation"),
)  # fmt: skip
DEMONSTRATIONS = source(
    "demonstrations on the H200", "2026-11-30-h200", "3a0b6b3 786f4fb", mode="exploration"
)
SOURCES = (EXPLORED, HARD, HARD_ON_CPU, ON_CPU, GREEDY, FIRST, DEMONSTRATIONS)
NUMBERS = "0.25 0.997 8 11 16 24 30 64 2018 2021 18,000"
GIVEN = {
    "a tenth of": "the choice of the games", "for 30 seconds each": "a setting",
    "a trial of 50 seconds": "a setting", "for 130 seconds": "a setting",
    "in 40 seconds": "a setting", "for five minutes": "a limit of the settings",
    "Trials of 80 seconds": "a setting",
    "32 episodes": "a setting",
}  # fmt: skip
FULL = 4096  # cells of an archive on a CPU
TENTH = 0.1


def explored() -> Iterator[Said]:
    assert all("--seconds 30 --num-threads 2" in row["command"] for row in EXPLORED.rows)
    scored = [row for row in EXPLORED.rows if row["demonstration_steps"]]
    for row in scored:
        yield table_line(
            f"`{row['game']}` | {{:,}} | {{:,.0f}} | {{:.0%}} | {{:,}}", row["cells"], row["score"],
            row["score_normalised"], row["demonstration_steps"],
        )  # fmt: skip
    without = {row["game"] for row in EXPLORED.rows} - {row["game"] for row in scored}
    assert without == {"montezuma_revenge", "pitfall", "solaris"}
    full = {row["game"] for row in EXPLORED.rows if row["cells"] == FULL}
    assert full == {"asteroids", "skiing", "solaris"}


def demonstrated(game: str, commit: str) -> float:
    """What the demonstration scores from which a game was learned."""
    found = [
        row["score"]
        for row in (*DEMONSTRATIONS.rows, *EXPLORED.rows)
        if row["game"] == game and row["commit"][:7] == commit and row["demonstration_steps"]
    ]
    (score,) = found
    return float(score)


def hard() -> Iterator[Said]:
    """The trainings, in the table's order, and their evaluations."""
    evaluated = (*HARD.where(mode="evaluation"), *HARD_ON_CPU.rows)
    assert {row["system"] for row in evaluated} == {"ale-py"}
    assert {(row["sticky"], row["noops"], row["full_action_space"]) for row in evaluated} == {
        (0.25, 0, False)
    }
    trainings = HARD.where(mode="training")
    assert len(trainings) == len(evaluated)
    found_at = {"private_eye": "e2a0801", "skiing": "f0681c3"}
    above = set()
    for row in trainings:
        game, backward = row["game"], row["algorithm"] == "Robustify"
        (its,) = (
            one for one in evaluated if (one["game"], one["frames"]) == (game, row["frames"])
        )  # fmt: skip
        wanted = {"private_eye": (16, 18_000), "skiing": (8, 108_000)}.get(game, (64, 18_000))
        assert (its["episodes"], its["max_frames"]) == wanted
        share = human_normalised(game, its["score"])
        above |= {game} if share > TENTH else set()
        values = [its["score"], share]
        if backward:
            values.append(demonstrated(game, found_at.get(game, "3a0b6b3")))
        how = "backward | {:,.0f}" if backward else "PPO | "
        yield table_line(
            f"`{game}` | {{:,.1f}} | {{:.0%}} | {how} | {{:.1f}} | {{:.0f}}", *values,
            row["frames"] / 1e6, row["seconds"],
        )  # fmt: skip
    assert above == {"venture", "bowling"}
    training, its = ON_CPU.one(mode="training"), ON_CPU.one(mode="evaluation")
    assert (its["system"], its["sticky"], its["noops"], its["episodes"]) == ("ale-py", 0.25, 0, 64)
    share = human_normalised("skiing", its["score"])
    assert share > TENTH and its["max_frames"] == 108_000
    yield table_line(
        "`skiing`, two CPU cores | {:,.1f} | {:.0%} | from everywhere | {:,.0f} | {:.1f} | {:,.0f}",
        its["score"], share, demonstrated("skiing", "f0681c3"), training["frames"] / 1e6,
        training["seconds"],
    )  # fmt: skip
    assert all(row["greedy"] for row in GREEDY.rows)
    games = ("venture", "bowling", "gravitar")
    yield said(
        "Venture's agent scores {:.1f}, Bowling's {:.1f} and Gravitar's by PPO {:.1f} in 64 "
        "episodes. In 24 episodes before, Gravitar's agents had {:.1f} (PPO) and {:.1f}.",
        *(GREEDY.one(game=game, episodes=64)["score"] for game in games),
        *(GREEDY.one(episodes=24, algorithm=name)["score"] for name in ("PPO", "Robustify")),
    )  # fmt: skip


def first_try() -> Iterator[Said]:
    for row in FIRST.where(mode="training"):
        game = row["game"]
        its = FIRST.one(mode="evaluation", game=game)
        assert (its["episodes"], its["system"], row["seconds"] // 10) == (32, "cule", 13)
        yield table_line(
            f"`{game}` | {{:,.1f}} | {{:.0%}} | {{:,.0f}} | {{:.1f}}", its["score"],
            human_normalised(game, its["score"]), demonstrated(game, "786f4fb"),
            row["frames"] / 1e6,
        )  # fmt: skip


def figures() -> Iterator[Said]:
    yield from explored()
    yield from hard()
    yield from first_try()
