"""Elo ratings from counts of games, by maximum likelihood.

A rating is that of Bradley and Terry (1952), "Rank analysis of incomplete block designs", on Elo's
scale: i beats j with probability 1 / (1 + 10^((r_j - r_i) / 400)). A draw counts as half a win of
either. Greatest likelihood exists and is unique where nobody, and no group, has lost to others only
or won against them only (Ford, 1957); Hunter (2004), "MM algorithms for generalized Bradley-Terry
models", Annals of Statistics 32, section 2, has this, and the logarithm's derivatives.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from cule.errors import InvalidValue

# Points of Elo in which odds grow by e.
SCALE = 400 / math.log(10)
# Newton's steps, of which a few are enough, and the largest last one: a part of Elo's point.
STEPS, SMALL = 100, 1e-12


@dataclass(frozen=True)
class Ratings:
    """Ratings of some policies.

    Attributes:
        elo: (n,) float64, with 0 for the anchor.
        errors: (n,) float64, standard errors of the differences from the anchor, which has 0. They
            are those of games that are won or lost; where some are drawn, they are too large.
        bounded: whether greatest likelihood had no end, so that each pair that has played counts as
            if it had drawn a further game.
    """

    elo: np.ndarray
    errors: np.ndarray
    bounded: bool


def _joined(reaches: np.ndarray) -> bool:
    """Whether each of a graph's nodes reaches each other one: (n, n) bool, an edge from i to j."""
    closed = reaches | np.eye(len(reaches), dtype=bool)
    for _ in range(len(reaches)):
        closed = (closed.astype(int) @ closed.astype(int)) > 0
    return bool(closed.all())


def _likelihood(games: np.ndarray, won: np.ndarray, strengths: np.ndarray) -> float:
    """The logarithm of the likelihood, up to a constant."""
    return float(won @ strengths) - float(
        (np.triu(games, 1) * np.logaddexp.outer(strengths, strengths)).sum()
    )


def fit(points: np.ndarray, anchor: int = 0) -> Ratings:
    """Fits ratings by Newton's method; each step is halved until the likelihood has grown.

    Args:
        points: (n, n), of i against j: games won, and half of those drawn.
        anchor: whose rating is 0.

    Raises:
        ValueError: the counts are not such a matrix, or some policies have never met the others,
            directly or over others.
    """
    points = np.asarray(points, dtype=np.float64)
    n = len(points)
    if points.shape != (n, n) or n < 2 or not np.isfinite(points).all() or (points < 0).any():
        raise InvalidValue(
            f"expected points of two policies or more against each other, (n, n) numbers of at "
            f"least 0, got {points.shape}"
        )
    if not 0 <= anchor < n:
        raise InvalidValue(f"expected an anchor from 0 to {n - 1}, got {anchor}")
    points = points * ~np.eye(n, dtype=bool)
    games = points + points.T
    if not _joined(games > 0):
        raise InvalidValue("expected policies that have all met, got some that have not")
    bounded = not _joined(points > 0)
    if bounded:
        points = points + 0.5 * (games > 0)
        games = points + points.T
    strengths, won, free = np.zeros(n), points.sum(1), np.arange(n) != anchor
    for _ in range(STEPS):
        chances = 1 / (1 + np.exp(strengths[None, :] - strengths[:, None]))
        gradient = won - (games * chances).sum(1)
        weights = games * chances * chances.T
        information = np.diag(weights.sum(1)) - weights
        step = np.zeros(n)
        step[free] = np.linalg.solve(information[np.ix_(free, free)], gradient[free])
        before = _likelihood(games, won, strengths)
        while _likelihood(games, won, strengths + step) < before and np.abs(step).max() > SMALL:
            step = step / 2
        strengths = strengths + step
        if np.abs(step).max() <= SMALL:
            break
    errors = np.zeros(n)
    errors[free] = np.sqrt(np.diag(np.linalg.inv(information[np.ix_(free, free)])))
    return Ratings(SCALE * strengths, SCALE * errors, bounded)
