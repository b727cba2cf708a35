"""Scores of other players and agents, from references.csv, and scores relative to a human's.

docs/atari57.md says how the numbers were checked, and what differs between the protocols.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path

TABLE = Path(__file__).with_name("references.csv")


@dataclass(frozen=True)
class Source:
    """Where a column of references.csv is from.

    Attributes:
        label: what tables and pictures call it.
        table: paper or page, and the table in it.
        protocol: how the agent was trained and evaluated.
    """

    label: str
    table: str
    protocol: str


SOURCES = {
    "random": Source(
        "random",
        "Wang et al. (2016), Dueling Network Architectures, arXiv:1511.06581, table 2; in 49 games "
        "as in Mnih et al. (2015), Nature 518, extended data table 2",
        "up to 30 no-ops, uniform random actions",
    ),
    "human": Source(
        "human",
        "Wang et al. (2016), arXiv:1511.06581, table 2",
        "up to 30 no-ops, a professional tester; Mnih et al. (2015) have other human scores",
    ),
    "impala_shallow": Source(
        "IMPALA, shallow",
        "Espeholt et al. (2018), arXiv:1802.01561, table C.1",
        "200 million frames, up to 30 no-ops, a lost life ends an episode in training, minimal "
        "actions, one setting for all games",
    ),
    "impala_deep": Source(
        "IMPALA, deep",
        "Espeholt et al. (2018), arXiv:1802.01561, table C.1",
        "as IMPALA, shallow, with the ResNet",
    ),
    "rainbow": Source(
        "Rainbow",
        "Hessel et al. (2018), arXiv:1710.02298, table of scores with no-op starts, which lacks "
        "jamesbond, riverraid and up_n_down",
        "200 million frames, up to 30 no-ops, the best snapshot of a training is evaluated",
    ),
    "cleanrl_ppo": Source(
        "PPO of CleanRL",
        "CleanRL, docs/benchmark, ppo_atari_envpool_xla_jax, the mean of 3 seeds",
        "40 million frames of EnvPool, a lost life ends an episode; the last episodes of training, "
        "not an evaluation",
    ),
}
# The columns that are agents.
AGENTS = tuple(name for name in SOURCES if name not in ("random", "human"))


@cache
def references() -> dict[str, dict[str, float]]:
    """The scores of each column by game; a game that the source lacks is left out."""
    with TABLE.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return {name: {row["game"]: float(row[name]) for row in rows if row[name]} for name in SOURCES}


def human_normalised(game: str, score: float) -> float:
    """A score as a share of a human's: 0 is random play, 1 is the human.

    Raises:
        KeyError: the game is not one of the 57.
    """
    random, human = references()["random"][game], references()["human"][game]
    return (score - random) / (human - random)
