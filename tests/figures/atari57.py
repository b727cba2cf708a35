"""The figures of docs/atari57.md: scores, aggregates, seeds, times."""

from __future__ import annotations

import datetime
import re
import statistics
from collections.abc import Iterator

import numpy as np

from examples.atari57 import costs
from examples.atari57.aggregates import STATISTICS
from examples.atari57.references import AGENTS, human_normalised, references
from examples.atari57.settings import SEARCH_GAMES
from tests.figures import atari57_search
from tests.figures.pages import Said, said, table_line
from tests.figures.results import ROOT, Source, source

PAGE = ROOT / "docs" / "atari57.md"
NOOPS = source("Atari-57, `noops`", "2026-11-26-h100", "37fe219", protocol="noops")
SEEDS = source(
    "Atari-57, more seeds", ("2026-11-26-h100", "2026-11-26-h200", "2026-11-27-h200"),
    "4f269c1 6b8f61e 6229a59", protocol="noops",
)  # fmt: skip
MACHADO = source("Atari-57, `machado`", "2026-11-27-h200", "6229a59", protocol="machado")


def normalised(rows: Source) -> dict[str, float]:
    """Human-normalised scores by game."""
    return {row["game"]: row["score_normalised"] for row in rows.rows}


def aggregates(rows: Source) -> dict[str, float]:
    """Median, mean and IQM over the 57 games."""
    scores = np.array(list(normalised(rows).values()))[None]
    assert scores.shape == (1, 57)
    return {name: float(statistic(scores)) for name, statistic in STATISTICS.items()}


def of_seeds() -> dict[str, list[float]]:
    """Human-normalised scores of the games that have three seeds, by seed."""
    found: dict[str, dict[int, float]] = {}
    for row in (*NOOPS.rows, *SEEDS.rows):
        assert found.setdefault(row["game"], {}).setdefault(row["seed"], row) is row
    return {
        game: [seeds[seed]["score_normalised"] for seed in range(3)]
        for game, seeds in sorted(found.items()) if len(seeds) > 1
    }  # fmt: skip


def median_of_means() -> float:
    """The median over all games with the means of those that have three seeds."""
    means = {game: statistics.mean(scores) for game, scores in of_seeds().items()}
    return statistics.median((normalised(NOOPS) | means).values())


def hours(rows: Source) -> float:
    """The hours of all trainings."""
    return sum(row["seconds"] for row in rows.rows) / 3600


def minutes(rows: Source) -> float:
    """The minutes from the first agent's start to the last one's row."""
    begin = min(row["trained_from"] - row["startup_seconds"] for row in rows.rows)
    end = max(datetime.datetime.fromisoformat(row["date"]).timestamp() for row in rows.rows)
    return (end - begin) / 60


SOURCES = (NOOPS, SEEDS, MACHADO, *atari57_search.SOURCES)
SETTING, THEIRS, BY_HAND = "a setting", "stated by its source", "noted while it ran"
NUMBERS = (
    "-1 0 1 2 3 4 6 8 10 12 16 18 20 30 32 34 40 49 50 57 64 96 100 200 300 1,024 1,280 "
    "2015 2016 2018 2021 2022 2025 2,048 2,560 4,096 5,120 8,192 12,288 16,384 18,000 27,000 "
    "108,000"
)
GIVEN = {
    "at a tenth of the way": "a bound, and a setting of theirs",
    "a fifth of the frames": "a bound, and a setting of theirs",
    "than half; in 13": "no measurement",
    "Zone, Double Dunk, Name": "no measurement",
    "its half of the": "no measurement",
    "a quarter to a": "no measurement",
    "a half of the": "no measurement",
    "from twice as many": "no measurement",
    "| twice the rate": "no measurement",
    "of twice as many": "no measurement",
    "same, twice the rate": "no measurement",
    "of half as many": "no measurement",
    "zero, half as many": "no measurement",
    "together, twice the rate": "no measurement",
    "| half of that": "no measurement",
    "| half the rate": "no measurement",
    "middle half of all": "no measurement",
    "200 million frames each": SETTING,
    "which has 63 seconds of a GPU for each game": "by definition",
    "learns from each step twice, three times or once": SETTING,
    "the same with 0.95 as V-trace's lambda": SETTING,
    "After ten minutes the suite was stopped": BY_HAND,
    "an episode, five minutes at most": SETTING,
    "Muon, a scaled entropy, 0.02 its weight": SETTING,
    "| sticky actions | none | 0.25 |": SETTING,
    "The intervals are 95%": SETTING,
    "table 2 | | no-ops | 0, 1 | 0, 1 | 0, 1 | 57 |": "by definition",
    "table C.1 | 200 million |": THEIRS,
    "no-op starts | 200 million |": THEIRS,
    "`ppo_atari_envpool_xla_jax` | 40 million |": THEIRS,
    "the paper's own, 93.2% and 191.8%. The paper's means are 466.4% and 957.6%.": THEIRS,
    "and states a median of 223%": THEIRS,
    "| PQN | 228 | 2.31 | . | 400 million |": THEIRS,
    "| Rainbow of Schmidt and Schmied | 427.5 | 2.06 | . | 10 million | . | RTX 3090 |": THEIRS,
    "| BTR, 60 games | 720 | . | 7.40 | 200 million |": THEIRS,
    "half of their seconds count": "by definition",
}


def of_scores(rows: Source, *columns: dict[str, float], times: bool = False) -> Iterator[Said]:
    """The lines of a table of all games: score, human-normalised, those of others, and times."""
    for row in sorted(rows.rows, key=lambda row: row["game"]):
        cells = [f"{row['score']:,.1f}", f"{row['score_normalised']:,.0%}"]
        cells += [f"{column[row['game']]:,.0%}" for column in columns]
        if times:
            cells += [f"{row['seconds']:.0f}", f"{row['fps'] / 1e6:.2f}"]
        yield table_line(f"`{row['game']}` | {' | '.join('{}' for _ in cells)}", *cells)


def of_reference(agent: str) -> dict[str, float]:
    """The human-normalised scores of an agent of the literature by game."""
    return {game: human_normalised(game, score) for game, score in references()[agent].items()}


def without_searched(rows: Source) -> float:
    """The median of the games on which no setting was chosen."""
    return statistics.median(
        score for game, score in normalised(rows).items() if game not in SEARCH_GAMES
    )


def compared() -> Iterator[Said]:
    """The table of aggregates, and in how many games an agent is better."""
    names = {
        "IMPALA, shallow network": "impala_shallow", "IMPALA, deep network": "impala_deep",
        "Rainbow": "rainbow", "PPO of CleanRL": "cleanrl_ppo",
    }  # fmt: skip
    assert set(names.values()) == set(AGENTS)
    ours = aggregates(NOOPS).values()
    yield table_line(
        "**A2C with V-trace, this suite** | {} | {:,.0%} | {:,.0%} | {:,.0%} | {:.0f} million",
        len(NOOPS.rows), *ours, NOOPS.rows[0]["frames"] / 1e6,
    )  # fmt: skip
    for label, agent in names.items():
        scores = np.array(list(of_reference(agent).values()))[None]
        values = [statistic(scores) for statistic in STATISTICS.values()]
        frames = 40 if agent == "cleanrl_ppo" else 200
        yield table_line(
            f"{label} | {{}} | {{:,.0%}} | {{:,.0%}} | {{:,.0%}} | {{}} million",
            scores.size, *values, frames,
        )  # fmt: skip
    above = [
        sum(row["score"] > references()[name][row["game"]] for row in NOOPS.rows)
        for name in ("impala_shallow", "impala_deep", "human")
    ]
    yield said(
        "In {} games the score is above that of IMPALA's shallow network, in {} above that of the "
        "deep one; in {} it is above the human's.",
        *above,
    )


def of_noops() -> Iterator[Said]:
    every = aggregates(NOOPS)
    yield said(
        "{} episodes of each agent on ale-py: {:.2f} GPU-hours of training on H100s, and a median "
        "human-normalised score of {:.0%}. On four H100s it took {:.0f} minutes",
        NOOPS.rows[0]["episodes"], hours(NOOPS), every["median"], minutes(NOOPS),
    )  # fmt: skip
    yield said("Without the eight the median is {:.0%}, too.", without_searched(NOOPS))
    yield from compared()
    seconds = sorted(row["seconds"] for row in NOOPS.rows)
    assert seconds[17] > seconds[16] + 0.1
    yield said("Seventeen games take {:.0f} to {:.0f} seconds", seconds[0], seconds[16])
    low = {row["game"] for row in NOOPS.rows if row["score_normalised"] <= 0.1}
    assert len(low) == 10
    deep = {game for game in low if of_reference("impala_deep")[game] <= 0.1}
    assert low - deep == {"asteroids", "bowling", "skiing", "solaris"}
    yield said("(Solaris {:.1%})", of_reference("impala_deep")["solaris"])
    others = [of_reference(agent) for agent in ("impala_shallow", "impala_deep")]
    yield from of_scores(NOOPS, *others, times=True)


def of_machado() -> Iterator[Said]:
    every, before = aggregates(MACHADO), normalised(NOOPS)
    yield said(
        "a median of {:.0%}, a mean of {:.0%}, an IQM of {:.0%}. Without the eight games on which "
        "the setting was chosen the median is {:.0%}.",
        *every.values(), without_searched(MACHADO),
    )  # fmt: skip
    yield said("The last row was written {:.0f} minutes after the first start", minutes(MACHADO))
    yield said("The trainings took {:.2f} hours in all", hours(MACHADO))
    after = normalised(MACHADO)
    lower = [game for game in after if after[game] < before[game]]
    half = [game for game in lower if before[game] > 0.1 and after[game] < before[game] / 2]
    higher = sum(after[game] > before[game] for game in after)
    assert round(after["yars_revenge"] / before["yars_revenge"]) == 7
    yield said(
        "In {} games the score is lower than with `noops`, in {} of those (of games above {:.0%} "
        "there) less than half; in {} it is higher, in Yars' Revenge {}. {} games are above "
        "the human.",
        len(lower), len(half), 0.1, higher, "seven times",
        sum(score > 1 for score in after.values()),
    )  # fmt: skip
    yield from of_scores(MACHADO, before)


def of_more_seeds() -> Iterator[Said]:
    for game, scores in of_seeds().items():
        yield table_line(
            f"`{game}` | {{:,.0%}} | {{:,.0%}} | {{:,.0%}} | {{:,.0%}}",
            *scores, statistics.mean(scores),
        )  # fmt: skip
    assert len(of_seeds()) == 10
    yield said(
        "With these means the median of the 57 games is {:.0%} instead of {:.0%}.",
        median_of_means(), aggregates(NOOPS)["median"],
    )  # fmt: skip


def of_costs() -> Iterator[Said]:
    """What the two suites took, as costs.py has it."""
    for rows, hardware in ((MACHADO, "H200"), (NOOPS, "H100")):
        (cost,) = costs.costs_of(rows.rows)
        assert cost.median is not None and cost.iqm is not None and hardware in cost.hardware
        yield table_line(
            f"A2C+V-trace, `{rows.rows[0]['protocol']}` | {{:,.2f}} | {{:.2f}} | {{:.2f}} | "
            "{:.0f} million",
            cost.hours, cost.median, cost.iqm, cost.frames,
        )  # fmt: skip


def of_video_pinball() -> Iterator[Said]:
    """How much one game makes of means."""
    shares = [
        scores["video_pinball"] / sum(scores.values())
        for scores in (
            normalised(NOOPS),
            *map(of_reference, ("impala_shallow", "impala_deep", "rainbow")),
        )
    ]
    yield said(
        "is {:.0%} of ours and {:.0%} to {:.0%} of those of IMPALA and Rainbow", shares[0],
        min(shares[1:]), max(shares[1:]),
    )  # fmt: skip


def of_the_literature() -> Iterator[Said]:
    """The aggregates of others once more, as shares."""
    text = PAGE.read_text()
    for agent in AGENTS:
        (start,) = re.findall(rf"^\| (`{agent}` \| .*? \| .*? \| .*? \|)", text, re.MULTILINE)
        scores = np.array(list(of_reference(agent).values()))[None]
        yield said(
            f"| {start} {{:.2f}} | {{:.2f}} | {{:.2f}} | {{}} |",
            *(statistic(scores) for statistic in STATISTICS.values()), scores.size,
        )  # fmt: skip

    random, human = (references()[name]["video_pinball"] for name in ("random", "human"))
    means = []
    for agent in ("impala_shallow", "impala_deep"):
        scores = of_reference(agent)
        scores["video_pinball"] = references()[agent]["video_pinball"] / human
        means.append(statistics.mean(scores.values()))
    yield said("score of Video Pinball is {:,.1f} here", random)
    yield said("with 0 they would be {:.1%} and {:.1%}", *means)


def figures() -> Iterator[Said]:
    steps = NOOPS.rows[0]["episodes"] * NOOPS.rows[0]["max_frames"] / NOOPS.rows[0]["frameskip"]
    yield said("are {:.1f} million steps", steps / 1e6)
    yield from of_noops()
    yield from of_more_seeds()
    yield from of_machado()
    yield from of_costs()
    yield from of_video_pinball()
    yield from of_the_literature()
    yield from atari57_search.figures()
